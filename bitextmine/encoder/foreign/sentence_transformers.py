"""Folders of sentence-transformers: transformers and static embeddings.

The library loads them (`pip install 'bitextmine[transformers]'`). Nothing is fetched and no code of the folder is run:
weights are safetensors, never pickles, and only modules of the library itself are supported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.encoder.config import KIND
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.protocols import Network
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.weights import PIECES
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import parse_json, read_json
from bitextmine.run import Run

MODULES, CONFIG = "modules.json", "config.json"
FIRST = ("Transformer", "StaticEmbedding")
SUPPORTED = {*FIRST, "Pooling", "Dense", "LayerNorm", "Normalize"}
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")

# Settings of the Transformer module that the library would pass on to transformers as they are.
PASSED_ON = [
    f"{kind}_{name}" for kind in ("model", "tokenizer", "processor", "config") for name in ("args", "kwargs")
]

# Files of a module's folder that decide its vectors.
FILES = ("*.json", "*.safetensors")

# The longest sentence of a model that does not state one, and characters tokenised per piece wanted.
LONGEST = {"Transformer": 512, "StaticEmbedding": 8192}
CHARACTERS_PER_PIECE = 64


def is_imported(folder: Path) -> bool:
    """Return True for a folder of sentence-transformers, unless an encoder of ours is its module."""
    return (folder / MODULES).is_file() and not (
        (folder / CONFIG).is_file() and read_json(folder / CONFIG).get("kind") == KIND
    )


class Import:
    """A folder of sentence-transformers, loaded on first use.

    Attributes:
        heavy: a GPU would help.

    Raises:
        BitextmineError: the modules are not supported, or their weights are no safetensors.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._modules = _modules(folder)
        kinds = [kind for kind, _ in self._modules]
        first = kinds[0] if kinds else "nothing"
        if (
            first not in FIRST
            or not SUPPORTED.issuperset(kinds)
            or (first == FIRST[0]) != ("Pooling" in kinds)
        ):
            raise BitextmineError(
                f"{folder / MODULES}: found {', '.join(kinds) or first}; supported are Transformer and Pooling, or "
                "StaticEmbedding, followed by Dense, LayerNorm and Normalize"
            )
        self.heavy = not (first == FIRST[1] and set(kinds[1:]) <= {"Normalize"})
        for kind, where in self._modules:
            _check_weights(kind, where)

    @cached_property
    def _model(self) -> Any:
        try:
            import sentence_transformers
            import transformers
        except ImportError:
            raise BitextmineError(
                f"{self.folder}: needs sentence-transformers: pip install 'bitextmine[transformers]'"
            ) from None
        quiet = transformers.utils.logging
        level, bars = quiet.get_verbosity(), quiet.is_progress_bar_enabled()
        quiet.set_verbosity_error()
        quiet.disable_progress_bar()
        try:
            return sentence_transformers.SentenceTransformer(
                str(self.folder),
                device="cpu",
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, "dtype": "float32"},
            ).eval()
        except Exception as e:  # of many kinds, from parsing the configuration to reading the weights
            raise BitextmineError(f"{self.folder}: sentence-transformers cannot load it: {e}") from e
        finally:
            quiet.set_verbosity(level)
            if bars:
                quiet.enable_progress_bar()

    @cached_property
    def tokenizer(self) -> FastTokenizer:
        """The tokenizer, with the prompt that the folder puts before each line."""
        found = getattr(self._model[0].tokenizer, "backend_tokenizer", self._model[0].tokenizer)
        if not hasattr(found, "encode_batch"):
            raise BitextmineError(f"{self.folder}: has no fast tokenizer (tokenizer.json)")
        prompt = (self._model.prompts or {}).get(self._model.default_prompt_name or "", "")
        if prompt and not all(getattr(module, "include_prompt", True) for module in self._model):
            raise BitextmineError(f"{self.folder}: pooling that leaves out the prompt is not supported")
        return FastTokenizer(found, special=self._modules[0][0] == FIRST[0], prompt=prompt)

    @cached_property
    def max_pieces(self) -> int:
        """The longest sentence in pieces, as the library, or else the tokenizer, has it."""
        longest = self._model[0].max_seq_length
        if longest is None or not 0 < longest < 1_000_000:  # "no limit" is infinity or a huge number
            longest = self.tokenizer.longest or LONGEST[self._modules[0][0]]
        return int(longest)

    def hash(self) -> str:
        """Return 16 hex digits of a SHA-256 over the files that decide the vectors."""
        paths = {path for _, where in self._modules for kind in FILES for path in where.glob(kind)}
        digest = hashlib.sha256()
        for path in sorted(paths | set(self.folder.glob("*.json"))):
            with path.open("rb") as file:
                part = hashlib.file_digest(file, "sha256").digest()
            digest.update(path.relative_to(self.folder).as_posix().encode() + b"\0" + part)
        return digest.hexdigest()[:16]

    def network(self, run: Run, precision: str) -> Network:
        """Return the model on ``run.device``."""
        if not self.heavy:
            table = self._model[0].embedding.weight.detach().float().numpy()
            if not np.isfinite(table).all():
                raise BitextmineError(f"{self.folder}: the weights hold NaN or infinite values")
            return PieceSums({PIECES: table})
        from bitextmine.encoder.foreign.backbone import Backbone

        return Backbone(self._model, run, precision)


class FastTokenizer:
    """A tokenizer of the tokenizers library.

    Attributes:
        longest: the pieces that its file says to cut at, or None.
    """

    def __init__(self, model: Any, *, special: bool = True, prompt: str = "") -> None:
        self._model, self._special, self._prompt = model, special, prompt
        self._model.no_padding()
        cut = self._model.truncation
        self.longest: int | None = cut["max_length"] if cut else None

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Return the pieces of each line, special ones included, cut to ``max_pieces``, and the number of lines cut.

        A blank line has no pieces. The library's threads are as many as RAYON_NUM_THREADS or the processors.
        """
        if max_pieces is None:
            self._model.no_truncation()
        else:
            self._model.enable_truncation(max_pieces)
            limit = max_pieces * CHARACTERS_PER_PIECE
            lines = [line[:limit] for line in lines]
        some = [i for i, line in enumerate(lines) if line.strip()]
        # A lone surrogate has no UTF-8.
        texts = [(self._prompt + lines[i]).encode("utf-8", "replace").decode() for i in some]
        found = self._model.encode_batch(texts, add_special_tokens=self._special)
        lists: list[list[int]] = [[] for _ in lines]
        for i, encoding in zip(some, found, strict=True):
            lists[i] = encoding.ids
        return Pieces.from_lists(lists), sum(bool(encoding.overflowing) for encoding in found)


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """Return the name and the folder of each module, in order; one that is not the library's keeps its full name."""
    path = folder / MODULES
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        found = []
        for module in sorted(content, key=lambda module: int(module["idx"])):
            package, _, name = str(module["type"]).rpartition(".")
            own = package.split(".")[0] == "sentence_transformers"
            found.append((name if own else str(module["type"]), folder / module["path"]))
        return found
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BitextmineError(f"{path}: not the modules of a sentence-transformers model ({e!r})") from e


def _check_weights(kind: str, where: Path) -> None:
    if kind in ("Pooling", "Normalize"):
        return
    if not any((where / name).is_file() for name in WEIGHTS):
        raise BitextmineError(
            f"{where}: no model.safetensors; weights in other files, pickles among them, are not read: load the model "
            "with sentence-transformers and save it again"
        )
    if kind != FIRST[0]:
        return
    if (where / "adapter_config.json").is_file():
        raise BitextmineError(f"{where}: adapters are not supported; merge it into the model and save that")
    for path in where.glob("sentence_*_config.json"):
        if passed := [key for key in PASSED_ON if read_json(path).get(key)]:
            raise BitextmineError(f"{path}: {passed[0]} is not supported; remove it")
