"""Folders of sentence-transformers: transformers and static embeddings.

The library (the extra ``transformers``) loads them. Nothing is fetched and no code of the folder is run:
weights are safetensors, never pickles, and only modules of the library itself are supported.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.network import BATCH_TOKENS, TorchNetwork
from bitextmine.encoder.pieces import Network, PieceMaker, Pieces
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.tokenizer import CHARACTERS_PER_PIECE
from bitextmine.encoder.weights import PIECES
from bitextmine.errors import BitextmineError, MissingPackage
from bitextmine.files.json_toml import parse_json, read_json
from bitextmine.run import Run

MODULES = "modules.json"
TRANSFORMER, STATIC = "Transformer", "StaticEmbedding"
SUPPORTED = {TRANSFORMER, STATIC, "Pooling", "Dense", "LayerNorm", "Normalize"}
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")

# Older ones ignore the weights and the shared rows of Model2Vec encoders, and so return other vectors.
OLDEST = 6, 2
# The longest sentence of a model that does not state one.
LONGEST = {TRANSFORMER: 512, STATIC: 8192}


def load(folder: Path, run: Run) -> tuple[Network, PieceMaker, int]:
    """Load a folder; raises BitextmineError for unsupported modules, and weights that are no safetensors."""
    modules = _modules(folder)
    kinds = [kind for kind, _ in modules]
    first = kinds[0] if kinds else "nothing"
    if (
        first not in LONGEST
        or not SUPPORTED.issuperset(kinds)
        or (first == TRANSFORMER) != ("Pooling" in kinds)
    ):
        raise BitextmineError(
            f"{folder / MODULES}: found {', '.join(kinds) or first}; supported are Transformer and Pooling, or "
            "StaticEmbedding, followed by Dense, LayerNorm and Normalize"
        )
    for kind, where in modules:
        _check_weights(kind, where)
    plain = first == STATIC and set(kinds[1:]) <= {"Normalize"}
    here = dataclasses.replace(run, device="cpu" if plain else run.device_name)
    model = _load(folder)
    network: Network
    if plain:  # a GPU would not help
        table = model[0].embedding.weight.detach().float().numpy()
        if not np.isfinite(table).all():
            raise BitextmineError(f"{folder}: the weights hold NaN or infinite values")
        network = PieceSums({PIECES: table})
    else:
        network = Backbone(model, here)
    fast = getattr(model[0].tokenizer, "backend_tokenizer", model[0].tokenizer)
    if not hasattr(fast, "encode_batch"):
        raise BitextmineError(f"{folder}: has no fast tokenizer (tokenizer.json)")
    prompt = (model.prompts or {}).get(model.default_prompt_name or "", "")
    if prompt and not all(getattr(module, "include_prompt", True) for module in model):
        raise BitextmineError(f"{folder}: pooling that leaves out the prompt is not supported")
    longest = model[0].max_seq_length
    if longest is None or not 0 < longest < 1_000_000:  # "no limit" is infinity or a huge number
        longest = (fast.truncation or {}).get("max_length") or LONGEST[first]
    tokenizer = FastTokenizer(fast, special=first == TRANSFORMER, prompt=prompt)
    return network, tokenizer, int(longest)


def weight_files(folder: Path) -> dict[str, Path]:
    """Return the files that decide the vectors, by their paths in the folder."""
    kinds = ("*.json", "*.safetensors")
    paths = {path for _, where in _modules(folder) for kind in kinds for path in where.glob(kind)}
    return {path.relative_to(folder).as_posix(): path for path in sorted(paths | {*folder.glob("*.json")})}


def _load(folder: Path) -> Any:
    try:
        import sentence_transformers
        import transformers
    except ImportError:
        raise MissingPackage(f"{folder}: needs the package sentence-transformers", "transformers") from None
    version = sentence_transformers.__version__
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise MissingPackage(
            f"{folder}: needs sentence-transformers {oldest} or newer, found {version}", "transformers"
        )
    quiet = transformers.utils.logging
    level = quiet.get_verbosity()
    quiet.set_verbosity_error()
    quiet.disable_progress_bar()
    try:
        return sentence_transformers.SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": "float32"},
        ).eval()
    except Exception as e:  # of many kinds, from parsing the configuration to reading the weights
        raise BitextmineError(f"{folder}: sentence-transformers cannot load it: {e}") from e
    finally:
        quiet.set_verbosity(level)
        quiet.enable_progress_bar()


class Backbone(TorchNetwork):
    """A SentenceTransformer; matrix products of its first module run in its precision, all else in float32."""

    # Its feed-forward part is padded and wide: larger batches leave the cache (index/performance.md).
    batch_tokens: Mapping[str, int] = {**BATCH_TOKENS, "cpu": 1_024}

    def __init__(self, model: Any, run: Run) -> None:
        super().__init__(int(model.get_embedding_dimension()), run)
        self._model = model.to(self._device)
        config = getattr(model[0], "config", None)
        self.facts = {
            "kind": f"encoder ({getattr(config, 'model_type', 'static embedding')} of sentence-transformers)",
            "dim": self.dim,
            "layers": int(getattr(config, "num_hidden_layers", 0)),
            "vocab_size": int(getattr(config, "vocab_size", 0)) or model[0].tokenizer.get_vocab_size(),
            "parameters": sum(p.numel() for p in model.parameters()),
        }

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        first, *rest = self._model
        on_device = torch.from_numpy(lengths).to(self._device)
        starts = on_device.cumsum(0) - on_device
        if type(first).__name__ == STATIC:
            features = {"input_ids": ids.long(), "offsets": starts}
        else:
            inside = torch.arange(int(lengths[0]), device=self._device)[None, :] < on_device[:, None]
            padding = first.tokenizer.pad_token_id or 0
            padded = torch.full(inside.shape, padding, dtype=torch.int64, device=self._device)
            # By position, not by mask: a mask would have the GPU tell how many there are, and wait for that.
            row = torch.repeat_interleave(on_device, output_size=len(ids))
            padded[row, torch.arange(len(ids), device=self._device) - starts[row]] = ids.long()
            features = {"input_ids": padded, "attention_mask": inside.long()}
        with torch.autocast(self._device.type, dtype=self._low, enabled=self.precision != "float32"):
            features = first(features)
        features = {
            name: value.float() if isinstance(value, Tensor) and value.is_floating_point() else value
            for name, value in features.items()
        }
        for module in rest:
            features = module(features)
        return functional.normalize(features["sentence_embedding"], dim=1, eps=1e-12)


class FastTokenizer:
    """A tokenizer of the tokenizers library; the prompt stands before each line."""

    def __init__(self, model: Any, *, special: bool = True, prompt: str = "") -> None:
        self._model, self._special, self._prompt = model, special, prompt
        self._model.no_padding()

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
        filled = [i for i, line in enumerate(lines) if line.strip()]
        # A lone surrogate has no UTF-8.
        texts = [(self._prompt + lines[i]).encode("utf-8", "replace").decode() for i in filled]
        encodings = self._model.encode_batch(texts, add_special_tokens=self._special)
        lists: list[list[int]] = [[] for _ in lines]
        for i, encoding in zip(filled, encodings, strict=True):
            lists[i] = encoding.ids
        return Pieces.from_lists(lists), sum(bool(encoding.overflowing) for encoding in encodings)


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """Return the name and the folder of each module, in order; one that is not the library's keeps its full name."""
    path = folder / MODULES
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        modules = []
        for module in sorted(content, key=lambda module: int(module["idx"])):
            package, _, name = str(module["type"]).rpartition(".")
            own = package.split(".")[0] == "sentence_transformers"
            modules.append((name if own else str(module["type"]), folder / module["path"]))
        return modules
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
    if kind != TRANSFORMER:
        return
    if (where / "adapter_config.json").is_file():
        raise BitextmineError(f"{where}: adapters are not supported; merge it into the model and save that")
    for path in where.glob("sentence_*_config.json"):
        # These the library would pass on to transformers as they are.
        content = read_json(path)
        if passed := [key for key in content if key.endswith(("_args", "_kwargs")) and content[key]]:
            raise BitextmineError(f"{path}: {passed[0]} is not supported; remove it")
