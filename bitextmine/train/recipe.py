"""Recipes: what a training run is, as TOML; every key has a default, a meaning and a check."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.text import corpus_language

__all__ = ["Corpus", "Data", "Model", "Recipe", "Training", "Vocabulary", "load_recipe", "recipe_from_pairs"]


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Sentence pairs: a TSV file (``pairs``) or two files of equal length (``src`` and ``tgt``)."""

    langs: tuple[str, str]  # of the first and the second column
    pairs: str = ""  # TSV: source, tab, target; further columns are ignored
    src: str = ""
    tgt: str = ""
    weight: float = 1.0  # a pair of this corpus is drawn this many times as often as one of weight 1

    @property
    def name(self) -> str:
        return self.pairs or f"{self.src} + {self.tgt}"


@dataclasses.dataclass(frozen=True)
class Data:
    corpora: tuple[Corpus, ...] = ()
    folder: str = "."  # where relative paths begin; relative to the recipe's own folder
    errors: str = "strict"  # or "replace": what to do with invalid UTF-8
    min_pieces: int = 1  # a pair with a shorter side is dropped
    max_ratio: float = 4.0  # a pair whose longer side has more than this many times the pieces is dropped
    max_ratio_slack: int = 10  # ... counting this many pieces on top of each side, so that short lines pass
    valid_pairs: int = 1000  # held out of each corpus to measure P@1 on (at most a twentieth of it)


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    tokenizer: str = ""  # a tokenizer.model to use as it is; empty: train one
    size: int = 32_000
    type: str = "unigram"  # or "bpe"
    fold_case: bool = True
    coverage: float = 0.9998  # share of the characters that get a piece of their own
    lines_per_language: int = 160_000  # sampled from the corpora to train on


@dataclasses.dataclass(frozen=True)
class Model:
    dim: int = 256
    layers: int = 0
    heads: int = 8
    ffn: int = 1024
    dropout: float = 0.1
    max_pieces: int = 200
    initial_std: float = 0.01  # of the piece vectors


@dataclasses.dataclass(frozen=True)
class Training:
    objective: dict[str, float] = dataclasses.field(default_factory=lambda: {"contrastive": 1.0})  # weights
    steps: int = 0  # 0: as many as `epochs` passes over the data take
    epochs: float = 5.0
    batch: int = 4096  # pairs a step; a batch is drawn from one corpus, which makes its negatives hard
    temperature: float = 0.05  # of the contrastive objective
    learn_temperature: bool = False
    margin: float = 0.0  # taken off the cosine of a true pair in the contrastive objective
    piece_dropout: float = 0.1  # share of the pieces of a sentence left out at random in training
    learning_rate: float = 3e-4  # of the layers
    embedding_learning_rate: float = 6e-3  # of the piece vectors
    weight_decay: float = 0.0  # of the layers' matrices
    warmup: float = 0.02  # share of the steps
    floor: float = 0.02  # learning rate at the end, as a share of the highest
    clip: float = 1.0  # largest gradient norm of the layers; 0: no limit
    batch_tokens: int = 16_384  # pieces that go through the layers at once, padding included
    recompute: bool = False  # compute the layers anew in the backward pass: memory independent of `batch`
    precision: str = (
        "auto"  # of the similarity products: float32, bfloat16, auto (bfloat16 where it is native)
    )
    seed: int = 1
    valid_every: int = 500  # steps between two P@1 measurements
    checkpoint_seconds: float = 60.0


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A training run. ``base`` is the folder that relative paths begin at (not part of the identity)."""

    data: Data = dataclasses.field(default_factory=Data)
    vocabulary: Vocabulary = dataclasses.field(default_factory=Vocabulary)
    model: Model = dataclasses.field(default_factory=Model)
    train: Training = dataclasses.field(default_factory=Training)
    base: Path = Path()

    def path(self, name: str) -> Path:
        """Where a file that the recipe names lies."""
        return self.base / self.data.folder / name

    def to_json(self) -> dict[str, Any]:
        content = dataclasses.asdict(self)
        del content["base"], content["data"]["folder"]
        return content

    def digest(self) -> str:
        """16 hex digits that change with anything in the recipe but the folder of the data.

        Keys at their defaults do not count, so that a key added by a later version changes no digest.
        """
        content = _changed(
            dataclasses.replace(self, base=Path(), data=dataclasses.replace(self.data, folder="."))
        )
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def check(self) -> Recipe:
        """Raises BitextmineError naming the first key with an impossible value; returns the recipe."""
        d, v, m, t = self.data, self.vocabulary, self.model, self.train
        _must(
            bool(d.corpora),
            "data.corpora",
            "names no corpus",
            "add a [[data.corpora]] table, or pass --pairs",
        )
        for i, c in enumerate(d.corpora, 1):
            where = f"data.corpora {i}"
            _must(bool(c.pairs) != bool(c.src and c.tgt), where, "needs either pairs, or src and tgt")
            _must(
                len(c.langs) == 2 and c.langs[0] != c.langs[1],
                f"{where}: langs",
                f"found {list(c.langs)}",
                "name two languages",
            )
            _must(c.weight > 0, f"{where}: weight", f"found {c.weight}", "it must be above 0")
        _must(
            d.errors in ("strict", "replace"),
            "data.errors",
            f"found {d.errors!r}",
            'it is "strict" or "replace"',
        )
        _must(d.min_pieces >= 1, "data.min_pieces", f"found {d.min_pieces}", "it must be at least 1")
        _must(d.max_ratio >= 1, "data.max_ratio", f"found {d.max_ratio}", "it must be at least 1")
        _must(
            v.type in ("unigram", "bpe"), "vocabulary.type", f"found {v.type!r}", 'it is "unigram" or "bpe"'
        )
        _must(
            8 <= v.size <= 1_000_000,
            "vocabulary.size",
            f"found {v.size}",
            "it must lie between 8 and 1,000,000",
        )
        _must(
            m.layers == 0 or m.dim % m.heads == 0,
            "model.heads",
            f"{m.heads} does not divide model.dim {m.dim}",
        )
        _must(m.layers >= 0 and m.dim > 0, "model", f"found layers {m.layers}, dim {m.dim}")
        _must(m.initial_std > 0, "model.initial_std", f"found {m.initial_std}", "it must be above 0")
        _must(bool(t.objective), "train.objective", "names no objective")
        _must(t.steps > 0 or t.epochs > 0, "train.epochs", f"found {t.epochs}", "it must be above 0")
        _must(t.batch >= 2, "train.batch", f"found {t.batch}", "in-batch negatives need at least 2")
        _must(0 < t.temperature <= 1, "train.temperature", f"found {t.temperature}", "it must lie in (0, 1]")
        _must(
            0 <= t.piece_dropout < 1,
            "train.piece_dropout",
            f"found {t.piece_dropout}",
            "it must lie in [0, 1)",
        )
        _must(t.precision in ("auto", "float32", "bfloat16"), "train.precision", f"found {t.precision!r}")
        _must(0 <= t.margin < 1, "train.margin", f"found {t.margin}", "it must lie in [0, 1)")
        for key in ("learning_rate", "embedding_learning_rate"):
            _must(getattr(t, key) > 0, f"train.{key}", f"found {getattr(t, key)}", "it must be above 0")
        return self


def _changed(part: Any) -> Any:
    """A (nested) dataclass as a dictionary without the fields that are at their defaults."""
    if isinstance(part, tuple):
        return [_changed(item) for item in part]
    if not dataclasses.is_dataclass(part):
        return str(part) if isinstance(part, Path) else part
    found = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        made = field.default_factory
        default = made() if made is not dataclasses.MISSING else field.default
        if value != default:
            found[field.name] = _changed(value)
    return found


def _must(holds: bool, key: str, found: str, hint: str = "") -> None:
    if not holds:
        raise BitextmineError(f"recipe: {key}: {found}" + (f"; {hint}" if hint else ""))


def load_recipe(
    path: Path, overrides: Mapping[str, Any] | None = None, *, folder: Path | None = None
) -> Recipe:
    """Reads a TOML recipe; ``overrides`` ({"train.batch": 512, ...}) win over it, ``folder`` over data.folder.

    Raises BitextmineError naming the file, or the key that is unknown or of the wrong type.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise BitextmineError(f"{path}: cannot be read: {e.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise BitextmineError(f"{path}: not valid TOML: {e}") from None
    try:
        recipe = _recipe(content, overrides or {})
        recipe = dataclasses.replace(recipe, base=path.parent)
        return _with_folder(recipe, folder).check()
    except BitextmineError as e:
        raise BitextmineError(f"{path}: {e}") from None


def recipe_from_pairs(
    pairs: typing.Sequence[str], overrides: Mapping[str, Any] | None = None, *, folder: Path | None = None
) -> Recipe:
    """A recipe of defaults for TSV files whose names tell their languages: NAME.en-fr.tsv[.gz|.xz|.zst]."""
    corpora = [{"pairs": name, "langs": list(_langs_of(name))} for name in pairs]
    return _with_folder(_recipe({"data": {"corpora": corpora}}, overrides or {}), folder).check()


def _with_folder(recipe: Recipe, folder: Path | None) -> Recipe:
    if folder is None:
        return recipe
    return dataclasses.replace(recipe, base=folder, data=dataclasses.replace(recipe.data, folder="."))


def _langs_of(name: str) -> tuple[str, str]:
    for part in reversed(Path(name).name.split(".")):
        langs = part.split("-")
        if len(langs) == 2 and all(2 <= len(x) <= 3 and x.isalpha() for x in langs):
            return corpus_language(f"x.{langs[0]}"), corpus_language(f"x.{langs[1]}")
    raise BitextmineError(
        f"{name}: its name does not tell its two languages; call it NAME.en-fr.tsv, or write a recipe with langs"
    )


def _recipe(content: Mapping[str, Any], overrides: Mapping[str, Any]) -> Recipe:
    merged = {key: dict(value) if isinstance(value, Mapping) else value for key, value in content.items()}
    for key, value in overrides.items():
        section, _, name = key.partition(".")
        merged.setdefault(section, {})[name] = value
    return typing.cast(Recipe, _build(Recipe, merged, ""))


def _build(cls: type, content: Any, where: str) -> Any:
    if not isinstance(content, Mapping):
        raise BitextmineError(f"recipe: {where.rstrip('.') or 'it'}: expected a table, found {content!r}")
    hints = typing.get_type_hints(cls)
    known = [field.name for field in dataclasses.fields(cls) if field.name != "base"]
    values = {}
    for key, value in content.items():
        if key not in known:
            raise BitextmineError(
                f"recipe: unknown key {where + key!r}; {where or 'the recipe'} takes {', '.join(known)}"
            )
        values[key] = _value(hints[key], value, where + key)
    try:
        return cls(**values)
    except TypeError as e:
        raise BitextmineError(f"recipe: {where.rstrip('.')}: {str(e).split('() ')[-1]}") from None


def _value(kind: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return _build(typing.cast(type, kind), value, f"{where}.")
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise BitextmineError(f"recipe: {where}: expected a list, found {value!r}")
        return tuple(_value(typing.get_args(kind)[0], item, where) for item in value)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise BitextmineError(f"recipe: {where}: expected a table, found {value!r}")
        return {str(key): _value(float, item, f"{where}.{key}") for key, item in value.items()}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if (
        isinstance(kind, types.UnionType)
        or not isinstance(value, kind)
        or (isinstance(value, bool) and kind is not bool)
    ):
        raise BitextmineError(f"recipe: {where}: expected {kind.__name__}, found {value!r}")
    return value
