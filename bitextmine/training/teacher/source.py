"""The teacher of a recipe: an encoder, or vectors of the corpora made by another tool."""

from __future__ import annotations

import dataclasses
import hashlib
import os

import numpy as np

from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.folder import PACKAGED, WEIGHTS, read_folder
from bitextmine.encoder.load import load_encoder
from bitextmine.encoder.precomputed import PRECOMPUTED
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import piece_vectors, read_weights, unrolled
from bitextmine.errors import BitextmineError
from bitextmine.training.recipe import Corpus, Recipe


@dataclasses.dataclass(frozen=True)
class TeacherSource:
    """A teacher; encoder: None if the corpora come with its vectors; hash: changes with the vectors."""

    name: str
    hash: str
    encoder: Encoder | None


def open_teacher(recipe: Recipe, device: str = "auto") -> TeacherSource | None:
    """Return the teacher of a recipe, None without one.

    Raises:
        BitextmineError: the encoder cannot be loaded, or the vectors cannot be read.
    """
    name = recipe.teacher.model
    if not name:
        return None
    if name == PRECOMPUTED:
        return TeacherSource(PRECOMPUTED, _hash_of_vectors(recipe), None)
    path = recipe.path(name)
    model = name if name in PACKAGED or not path.exists() else os.fspath(path)
    try:
        encoder = load_encoder(model, device)
    except BitextmineError as e:
        raise type(e)(f"recipe: teacher.model: {e}; --set teacher.model=FOLDER names another") from None
    return TeacherSource(encoder.name, encoder.hash, encoder)


def taught_sides(recipe: Recipe, corpus: Corpus) -> tuple[int, int] | None:
    """Return, for each side of a pair, the column whose vector it learns; None if the corpus is not taught.

    A side learns its own vector if the teacher reads its language, else that of the other side.
    """
    teacher = recipe.teacher
    if not teacher.model or (teacher.corpora and corpus.files[0] not in teacher.corpora):
        return None
    there = (True, True)
    if teacher.model == PRECOMPUTED:
        there = (bool(corpus.src_vectors), bool(corpus.tgt_vectors))
    src, tgt = (
        found and (not teacher.languages or lang in teacher.languages)
        for found, lang in zip(there, corpus.langs, strict=True)
    )
    if not (src or tgt):
        return None
    return 0 if src else 1, 1 if tgt else 0


def teacher_pieces(teacher: TeacherSource, tokenizer: Tokenizer, dim: int) -> np.ndarray:
    """Return the teacher's piece vectors, before its layers, (V, dim) float32.

    Raises:
        BitextmineError: 'bitextmine train' did not make the teacher, or its vocabulary or dimensions are not the
            student's.
    """
    folder = teacher.encoder.folder if teacher.encoder else None
    if folder is None:
        raise BitextmineError(
            f"recipe: teacher.model: {teacher.name} has no piece vectors to learn from (embedding): only encoders of "
            "'bitextmine train' do"
        )
    config, theirs = read_folder(folder)
    differ = f"recipe: teacher.model: {folder}: teacher and student disagree: its"
    if theirs.pieces() != tokenizer.pieces():
        raise BitextmineError(
            f"{differ} vocabulary, of {config.vocab_size} pieces, is not the student's, of {tokenizer.vocab_size}"
        )
    if config.piece_dim != dim:
        raise BitextmineError(f"{differ} pieces have {config.piece_dim} dimensions, the student's {dim}")
    _, weights = unrolled(config, read_weights(config, folder / WEIGHTS))
    return np.ascontiguousarray(piece_vectors(weights)[: config.vocab_size])


def _hash_of_vectors(recipe: Recipe) -> str:
    digest = hashlib.sha256()
    for corpus in recipe.data.corpora:
        for name in (corpus.src_vectors, corpus.tgt_vectors):
            digest.update(b"\0")
            if not name:
                continue
            path = recipe.path(name)
            try:
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            except OSError as e:
                raise BitextmineError(f"{path}: cannot read the teacher's vectors: {e.strerror}") from None
    return digest.hexdigest()[:16]
