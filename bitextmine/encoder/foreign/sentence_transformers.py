"""Encoders from elsewhere: folders that sentence-transformers wrote, transformers as well as static embeddings.

Nothing is fetched and no code of the folder is run: weights are safetensors (never pickles), the tokeniser is its
tokenizer.json, and an architecture that transformers itself does not know is an error. `pip install
'bitextmine[transformers]'` brings what this needs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.protocols import Network
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.weights import PIECES, read_arrays
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import parse_json, read_json

__all__ = ["MODULES", "FastTokenizer", "Import", "is_imported"]

MODULES = "modules.json"

# What is read of each module's folder, and so decides what the vectors are.
FILES = ("*.json", "*.safetensors")

# The longest sentence of a static embedding whose tokenizer.json does not say where to cut.
STATIC_PIECES = 8192

# Characters tokenised per piece wanted; the rest of a longer line is left out.
CHARACTERS_PER_PIECE = 64

POOLINGS = ("cls", "max", "mean")
ACTIVATIONS = ("Identity", "Tanh")


def is_imported(folder: Path) -> bool:
    """Whether a folder is one of sentence-transformers."""
    return (folder / MODULES).is_file()


class Import:
    """What a sentence-transformers folder says of itself; raises BitextmineError for what cannot be run here.

    Attributes: max_pieces (int), tokenizer (FastTokenizer), heavy (bool, whether a GPU would help).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._modules = _modules(folder)
        if not self._modules or self._modules[0][0] not in ("Transformer", "StaticEmbedding"):
            found = repr(self._modules[0][0]) if self._modules else "nothing"
            raise BitextmineError(
                f"{folder / MODULES}: begins with {found}; only Transformer and StaticEmbedding are supported"
            )
        first, where = self._modules[0]
        self._static = first == "StaticEmbedding"
        self.heavy = not self._static
        self._check_order()
        settings = _optional_json(where / "sentence_bert_config.json")
        prompts = _optional_json(folder / "config_sentence_transformers.json")
        prompt = prompts.get("prompts", {}).get(prompts.get("default_prompt_name") or "", "")
        self.tokenizer = FastTokenizer(
            where / "tokenizer.json",
            special=not self._static,
            lower=bool(settings.get("do_lower_case")),
            prompt=prompt,
        )
        longest = self.tokenizer.longest or STATIC_PIECES
        self.max_pieces = longest if self._static else _longest(where, settings)

    def _check_order(self) -> None:
        wanted = ["StaticEmbedding"] if self._static else ["Transformer", "Pooling"]
        kinds = [kind for kind, _ in self._modules]
        rest = kinds[len(wanted) :]
        if kinds[: len(wanted)] != wanted or not set(rest) <= {"Dense", "Normalize"}:
            raise BitextmineError(
                f"{self.folder / MODULES}: modules {', '.join(kinds)}; only {', '.join(wanted)} and then Dense and "
                "Normalize are supported"
            )

    def hash(self) -> str:
        """16 hex digits of a SHA-256 over the files that decide what the vectors are."""
        paths = {path for _, where in self._modules for kind in FILES for path in where.glob(kind)}
        digest = hashlib.sha256()
        for path in sorted(paths | set(self.folder.glob("*.json"))):
            with path.open("rb") as file:
                part = hashlib.file_digest(file, "sha256").digest()
            digest.update(path.relative_to(self.folder).as_posix().encode() + b"\0" + part)
        return digest.hexdigest()[:16]

    def network(self, device: str, precision: str) -> Network:
        """The model, ready on ``device`` (cpu, cuda, cuda:N)."""
        _, where = self._modules[0]
        dense = [_dense(path) for kind, path in self._modules if kind == "Dense"]
        if self._static:
            if dense:
                raise BitextmineError(
                    f"{self.folder}: a Dense module after a static embedding is not supported"
                )
            return PieceSums({PIECES: _static_table(where)})
        from bitextmine.encoder.foreign.backbone import Backbone

        return Backbone(where, _pooling(self._modules[1][1]), dense, device, precision)


class FastTokenizer:
    """A tokenizer.json as the tokenizers library runs it. Raises BitextmineError when there is none, or no library.

    Attributes: longest (int or None), the pieces that the file itself says to cut at.
    """

    def __init__(self, path: Path, *, special: bool = True, lower: bool = False, prompt: str = "") -> None:
        try:
            import tokenizers
        except ImportError:
            raise BitextmineError(
                f"{path.parent}: needs the tokenizers library: pip install 'bitextmine[transformers]'"
            ) from None
        if not path.is_file():
            raise BitextmineError(
                f"{path}: no such file: load the model with sentence-transformers and save it again, which writes it"
            )
        try:
            self._model = tokenizers.Tokenizer.from_file(os.fspath(path))
        except Exception as e:  # the library raises this very type
            raise BitextmineError(f"{path}: not a tokenizer that the tokenizers library reads ({e})") from e
        self._model.no_padding()
        cut = self._model.truncation
        self.longest: int | None = cut["max_length"] if cut else None
        self._special, self._lower, self._prompt = special, lower, prompt

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Pieces of each line, special ones included, cut to ``max_pieces``, and how many lines were cut; a line
        of blanks has none. The library's threads are as many as RAYON_NUM_THREADS or the processors."""
        if max_pieces is None:
            self._model.no_truncation()
        else:
            self._model.enable_truncation(max_pieces)
            limit = max_pieces * CHARACTERS_PER_PIECE
            lines = [line if len(line) <= limit else line[:limit] for line in lines]
        some = [i for i, line in enumerate(lines) if line.strip()]
        texts = [self._prompt + lines[i] for i in some]
        if self._lower:
            texts = [text.lower() for text in texts]
        try:
            found = self._model.encode_batch(texts, add_special_tokens=self._special)
        except (UnicodeEncodeError, TypeError):  # a lone surrogate
            clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            found = self._model.encode_batch(clean, add_special_tokens=self._special)
        lists: list[list[int]] = [[] for _ in lines]
        for i, encoding in zip(some, found, strict=True):
            lists[i] = encoding.ids
        return Pieces.from_lists(lists), sum(bool(encoding.overflowing) for encoding in found)


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """The last part of each module's class, and its folder, in order."""
    path = folder / MODULES
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        ordered = sorted(content, key=lambda module: int(module["idx"]))
        return [(str(module["type"]).rpartition(".")[2], folder / module["path"]) for module in ordered]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BitextmineError(f"{path}: not the modules of a sentence-transformers model ({e!r})") from e


def _optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _longest(where: Path, settings: dict[str, Any]) -> int:
    """The longest sentence in pieces: as sentence-transformers has it, as the tokeniser, as the model."""
    tokenizer = _optional_json(where / "tokenizer_config.json").get("model_max_length")
    model = _optional_json(where / "config.json").get("max_position_embeddings")
    for value in (settings.get("max_seq_length"), tokenizer, model):
        if isinstance(value, int) and 0 < value < 1_000_000:  # "no limit" is written as a huge number
            return value
    return 512


def _pooling(where: Path) -> str:
    config = read_json(where / "config.json")
    modes = config.get("pooling_mode")
    if modes is None:  # as older versions wrote it
        names = {"cls_token": "cls", "max_tokens": "max", "mean_tokens": "mean"}
        flags = [key.removeprefix("pooling_mode_") for key, value in config.items() if value is True]
        modes = [names.get(flag, flag) for flag in flags if flag != "include_prompt"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise BitextmineError(
            f"{where / 'config.json'}: pooling {' + '.join(map(str, modes)) or 'none'}; supported: one of "
            f"{', '.join(POOLINGS)}"
        )
    return str(modes[0])


def _dense(where: Path) -> tuple[np.ndarray, np.ndarray | None, str]:
    """Weight (out, in) float32, bias (out,) or None, and the name of the activation."""
    config = read_json(where / "config.json")
    activation = str(config.get("activation_function", "")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise BitextmineError(
            f"{where / 'config.json'}: activation {activation!r}; supported: {', '.join(ACTIVATIONS)}"
        )
    state = read_arrays(where / "model.safetensors")
    weight, bias = state.get("linear.weight"), state.get("linear.bias")
    if weight is None or weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        raise BitextmineError(f"{where / 'model.safetensors'}: not the weights of a Dense module")
    return weight.astype(np.float32), None if bias is None else bias.astype(np.float32), activation


def _static_table(where: Path) -> np.ndarray:
    """(pieces, dim) float32 of a static embedding, as sentence-transformers or model2vec write it; the latter may
    map pieces to fewer rows, and weigh them."""
    path = where / "model.safetensors"
    state = read_arrays(path)
    table = state.get("embedding.weight", state.get("embeddings"))
    if table is None or table.ndim != 2:
        raise BitextmineError(f"{path}: no tensor 'embedding.weight' or 'embeddings'")
    table = table.astype(np.float32)
    if "mapping" in state:
        table = table[state["mapping"].astype(np.int64)]
    if "weights" in state:
        table = table * state["weights"].astype(np.float32)[:, None]
    if not np.isfinite(table).all():
        raise BitextmineError(f"{path}: holds NaN or infinite values")
    return table
