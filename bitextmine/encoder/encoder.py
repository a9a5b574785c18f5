"""The encoder as every other stage sees it, lines in, unit vectors out; and loading one by its name or folder."""

from __future__ import annotations

import dataclasses
import importlib
import os
import pickle
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from bitextmine.arguments import whole_number
from bitextmine.encoder.folder import (
    PACKAGED,
    WEIGHTS,
    folder_hash,
    hash_files,
    hub_name,
    read_folder,
    resolve,
)
from bitextmine.encoder.foreign import foreign_kind
from bitextmine.encoder.pieces import Network, PieceMaker, PieceRows, Pieces
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.weights import read_weights
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.languages.clean import readable
from bitextmine.run import Run
from bitextmine.system import return_freed_memory

PRECOMPUTED = "precomputed"


@dataclasses.dataclass(eq=False, repr=False)
class Encoder:
    """Turns lines of any of its languages into comparable vectors; make one with `load_encoder`.

    It can be pickled if `load_encoder` made it: the other process loads it again, once. sentence-transformers and MTEB
    take it as `bitextmine.sentence_transformers.SentenceEncoder`.

    Attributes:
        dim: dimensions of a vector.
        max_pieces: the longest sentence that is encoded; of a longer one the first pieces count.
        name: of the folder, or ORG/NAME on the hub.
        hash: 16 hex digits of the folder's content; of one from the hub ORG/NAME@COMMIT.
        device: cpu, cuda or cuda:N.
        network, tokenizer: its parts (`pieces`).
        languages: codes of the languages that it was trained on; pairs: training pairs by language, if recorded.
        folder: the model folder, None for an encoder of another toolkit.
        run: threads and batch_tokens, unless a call states its own.
        source: what `load_encoder` finds it by in another process: a name, or an absolute path; "" if nothing does.
    """

    network: Network
    tokenizer: PieceMaker
    name: str
    hash: str
    max_pieces: int
    run: Run = dataclasses.field(default_factory=Run)
    languages: tuple[str, ...] = ()
    pairs: Mapping[str, int] = dataclasses.field(default_factory=dict)
    folder: Path | None = None
    source: str = ""

    def __post_init__(self) -> None:
        self.dim, self.device = self.network.dim, self.network.device

    def __repr__(self) -> str:
        return f"<Encoder {self.name}: {self.dim} dimensions, on {self.device}, hash {self.hash}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.source:
            raise pickle.PicklingError(f"{self!r} cannot be pickled: load_encoder did not make it")
        return load_same, (self.source, self.run, self.hash)

    def encode(self, sentences: str | Iterable[str], *, batch_tokens: int | None = None) -> np.ndarray:
        """Return the vector (dim,) of one string or the vectors (n, dim) of n strings, float32, row i for sentence i.

        Rows have length 1 (from a GPU to within 0.001), so that the product of two is their cosine. A sentence
        without pieces (empty, or blanks only) gets zeros. Equal sentences have equal vectors.

        Args:
            sentences: one string, or strings.
            batch_tokens: the most pieces in a batch.

        Raises:
            BitextmineError: a sentence is no string.
            UsageError: `sentences` is neither, or the batch no whole number from 1.
        """
        if batch_tokens is not None:
            whole_number("batch_tokens", batch_tokens)
        if not isinstance(sentences, Iterable):
            raise UsageError(f"encode: expected a sentence or sentences, found {sentences!r}")
        lines = [sentences] if isinstance(sentences, str) else list(sentences)
        wrong = next((i for i, line in enumerate(lines) if not isinstance(line, str)), None)
        if wrong is not None:
            raise BitextmineError(f"sentence {wrong}: expected a string, found {lines[wrong]!r}")
        if self.network.slow:
            pieces, _, inverse = self.tokenize(lines)
        else:  # finding equal lines would take longer than encoding them
            pieces, inverse = self.cut(lines, self.run.thread_count)[0], None
        vectors = self.encode_pieces(pieces, batch_tokens=batch_tokens).astype(np.float32, copy=False)
        vectors = vectors if inverse is None else vectors[inverse]
        return vectors[0] if isinstance(sentences, str) else vectors

    def tokenize(self, lines: Sequence[str]) -> tuple[Pieces, int, np.ndarray | None]:
        """Return the pieces of the distinct lines, the number of these that were cut, and the row of each line.

        The rows are None if row i is line i.
        """
        first: dict[str, int] = {}
        rows = (first.setdefault(line, len(first)) for line in lines)
        inverse = np.fromiter(rows, dtype=np.int64, count=len(lines))
        pieces, cut = self.cut(list(first), self.run.thread_count)
        return pieces, cut, None if len(first) == len(lines) else inverse

    def cut(self, lines: Sequence[str], threads: int) -> tuple[Pieces, int]:
        """Return the pieces of lines, seen without markup (`languages.clean.readable`), and how many were cut short."""
        return self.tokenizer.encode(readable(lines), self.max_pieces, threads)

    def encode_pieces(self, pieces: Pieces, *, batch_tokens: int | None = None) -> np.ndarray:
        """Return (n, dim) unit rows for n tokenised sentences, float32 (from a GPU float16); no pieces give zeros.

        The same pieces with the same ``batch_tokens`` give the same bits on one machine.
        """
        return self.network.vectors(pieces, batch_tokens)

    def piece_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pieces' vectors, (pieces, d) int8, each on a scale of its own, and their norms (pieces,) float32.

        Raises BitextmineError if sentence vectors are not sums of such vectors.
        """
        if not isinstance(self.network, PieceRows):
            raise BitextmineError(
                f"the encoder '{self.name}' has no vectors of pieces to compare, as --rescore would: it has layers"
            )
        return self.network.piece_rows()

    def describe(self) -> dict[str, Any]:
        """Return the facts of `bitextmine info`."""
        languages = ", ".join(self.languages) or "not stated"
        facts = {"kind": "", "name": self.name, "hash": self.hash, "languages": languages}
        if self.pairs:
            facts["training_pairs"] = ", ".join(f"{lang} {n:,}" for lang, n in self.pairs.items())
        return {**facts, "max_pieces": self.max_pieces, **self.network.facts}


class _Precomputed(Network):
    """The network and tokeniser of PRECOMPUTED, vectors that another tool made: encoding raises BitextmineError."""

    def __init__(self) -> None:
        self.facts = {"kind": "encoder (vectors that another tool made)"}

    def encode(self, *_: Any) -> NoReturn:
        refuse()

    def vectors(self, *_: Any) -> NoReturn:
        refuse()


def refuse(corpus: str = "") -> NoReturn:
    """Raise BitextmineError: `corpus` would have to be encoded."""
    before = f"{corpus}: " if corpus else ""
    raise BitextmineError(
        f"{before}--model precomputed encodes nothing: it stands for vectors that another tool made of a whole corpus; "
        "import them first with 'bitextmine embed CORPUS --vectors FILE', or name an encoder"
    )


def load_encoder(model: str | os.PathLike[str] | Encoder = "auto", device: str | Run = "auto") -> Encoder:
    """Load an encoder, or return one as it is; errors name the value or file that is missing or wrong.

    Args:
        model: the name of a packaged encoder; a model folder, or one of sentence-transformers or LASER; ORG/NAME or
            ORG/NAME@REVISION on the Hugging Face hub; or "precomputed", for vectors that another tool made and ``embed
            --vectors`` takes in.
        device: auto, cpu, cuda, cuda:N; or a `Run`, whose threads and batch_tokens then hold as well.
    """
    run = device if isinstance(device, Run) else Run(device=device)
    if not isinstance(model, (str, os.PathLike)) and hasattr(model, "encode_pieces"):
        return model  # anything that works like an Encoder will do
    if not isinstance(model, (str, os.PathLike)) or not os.fspath(model):  # "" would be the current folder
        raise UsageError(f"model: expected an encoder, or the name or folder of one, found {model!r}")
    text = os.fspath(model)
    if text == PRECOMPUTED:
        nothing = _Precomputed()
        return Encoder(nothing, nothing, PRECOMPUTED, PRECOMPUTED, 1)
    on_hub = None if text in PACKAGED else hub_name(model)
    folder = resolve(model)
    name, known, source = folder.resolve().name, None, text if text in PACKAGED else str(folder.absolute())
    if on_hub is not None:
        # A commit says what the files are; the folder in the cache may lack some that are not read here.
        name = on_hub[0]
        known = source = f"{name}@{folder.name}"
    if (kind := foreign_kind(folder)) is not None:
        module = importlib.import_module(f"bitextmine.encoder.foreign.{kind}")
        network, tokenizer, most = module.load(folder, run)
        own = known or hash_files(module.weight_files(folder))
        return Encoder(network, tokenizer, name, own, most, run, source=source)
    config, tokenizer = read_folder(folder)
    weights = read_weights(config, folder / WEIGHTS)
    own = folder_hash(folder)
    # By default a GPU gets no sums: they take less time than looking up the words, and it would wait for text.
    device_name = run.device_name if config.layers or run.device != "auto" else "cpu"
    if not config.layers and device_name == "cpu":
        network = PieceSums(weights, config)
        return_freed_memory()  # of the text of the vocabulary
    else:
        from bitextmine.encoder.network import DeviceSums, Transformer

        here = dataclasses.replace(run, device=device_name)
        network = (Transformer if config.layers else DeviceSums)(config, weights, here)
    stated = config.max_pieces, run, config.languages, config.pairs
    return Encoder(network, tokenizer, name, known or own, *stated, folder, source)


@lru_cache(maxsize=2)
def load_same(source: str, run: Run, hash: str) -> Encoder:
    """Load the encoder of another process, once per process; BitextmineError if it has another hash here."""
    encoder = load_encoder(source, run)
    if encoder.hash != hash:
        raise BitextmineError(f"{source}: expected the encoder of hash {hash}, found {encoder.hash}")
    return encoder
