"""The keys of a recipe, each with its type, range and default; template.toml beside this module has their meaning."""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from bitextmine.encoder.config import EncoderConfig
from bitextmine.files.source import Source
from bitextmine.files.storage import is_remote
from bitextmine.run import LONGEST_LINE

# The tables of a recipe, in the order in which they are printed.
SECTIONS = ("data", "vocabulary", "model", "train", "teacher", "reduce")
# Keys that are not part of a training's identity, as encoders count by their content.
UNCOUNTED = {"data": "cache", "train": "checkpoint_seconds", "model": "start_from", "teacher": "model"}

# Fields of a recipe that are no keys.
UNKEYED = ("base", "max_line", "errors")

Count = Annotated[int, Meta(ge=1)]
CountOrZero = Annotated[int, Meta(ge=0)]
Pieces = Annotated[int, Meta(ge=8, le=1_000_000)]
Pairs = Annotated[int, Meta(ge=2)]
FINITE = 1e100
Positive = Annotated[float, Meta(gt=0, lt=FINITE)]
NotNegative = Annotated[float, Meta(ge=0, lt=FINITE)]
Share = Annotated[float, Meta(ge=0, le=1)]
ShareAboveZero = Annotated[float, Meta(gt=0, le=1)]
ShareBelowOne = Annotated[float, Meta(ge=0, lt=1)]


@dataclasses.dataclass(frozen=True)
class PairCorpus:
    """Sentence pairs: a TSV file (``pairs``), or all that match it, or two files of equal length (``src``, ``tgt``)."""

    langs: tuple[str, str] = ("", "")
    pairs: str = ""
    src: str = ""
    tgt: str = ""
    weight: Positive = 1.0
    fragments: Share = 1.0

    @property
    def is_pattern(self) -> bool:
        """Return True if ``pairs`` stands for all files that match it."""
        return any(c in self.pairs for c in "*?[")

    @property
    def name(self) -> str:
        """Return the corpus's name in messages, counts and model cards."""
        return self.pairs or f"{self.src} + {self.tgt}"

    @property
    def files(self) -> tuple[str, ...]:
        """Return the TSV file, or the two files of a paired corpus, as the recipe names them."""
        return (self.pairs,) if self.pairs else (self.src, self.tgt)


@dataclasses.dataclass(frozen=True)
class Data:
    """The corpora, the filters, and the pairs held out."""

    corpora: tuple[PairCorpus, ...] = ()
    valid_pairs: CountOrZero = 1000
    balance: ShareBelowOne = 0.0
    languages: tuple[str, ...] = ()
    pivot: dict[str, ShareBelowOne] = dataclasses.field(default_factory=dict)
    cache: str = ""


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The training of the subword pieces."""

    size: Pieces = 32_000
    fold_case: bool = True
    coverage: ShareAboveZero = 0.9998
    lines_per_language: Count = 160_000


@dataclasses.dataclass(frozen=True)
class Model:
    """The encoder: its size, the columns of its vectors, and their storage."""

    start_from: str = ""
    dim: Count = 256
    layers: CountOrZero = 0
    heads: Count = 8
    ffn: Count = 1024
    recurrent: CountOrZero = 0
    bottleneck: CountOrZero = 0
    dropout: ShareBelowOne = 0.1
    max_pieces: Count = 200
    transliterate: bool | Literal["all"] = False
    spelling: bool = False
    ngrams: CountOrZero = 0
    skeletons: CountOrZero = 0
    length_share: ShareBelowOne = 0.0
    initial_std: Positive = 0.01
    storage: Literal["int8", "int4", "float32"] = "int8"

    def config(self, vocab_size: int = 8, **changes: Any) -> EncoderConfig:
        """Return the configuration of the encoder; BitextmineError if two keys disagree."""
        shape = {name: getattr(self, name) for name in SHAPE} | changes
        return EncoderConfig(vocab_size, dropout=self.dropout, **shape)


# The keys of a model that an encoder decides. Dropout belongs to the training, not to the weights.
SHAPE = tuple(
    field.name
    for field in dataclasses.fields(Model)
    if field.name in {other.name for other in dataclasses.fields(EncoderConfig)} - {"dropout"}
)


@dataclasses.dataclass(frozen=True)
class Training:
    """Optimisation: objectives, batches, learning rates, measurements and checkpoints."""

    objective: dict[str, Positive] = dataclasses.field(default_factory=lambda: {"contrastive": 1.0})
    steps: CountOrZero = 0
    epochs: Positive = 5.0
    batch: Pairs = 4096
    temperature: ShareAboveZero = 0.05
    length_share_in_training: ShareBelowOne = 0.0
    margin: ShareBelowOne = 0.0
    piece_dropout: ShareBelowOne = 0.1
    piece_splits: ShareBelowOne = 0.0
    piece_splits_end: Share = 0.3
    learning_rate: Positive = 3e-4
    embedding_learning_rate: Positive = 6e-3
    warmup: Share = 0.02
    schedule: Literal["cosine", "linear"] = "cosine"
    floor: Share = 0.02
    cycles: Count = 1
    hard_from: ShareBelowOne = 0.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: CountOrZero = 1
    valid_every: CountOrZero = 0
    checkpoint_seconds: NotNegative = 60.0


@dataclasses.dataclass(frozen=True)
class Teacher:
    """An encoder whose vectors, for a sample of the pairs, the student imitates."""

    model: str = ""
    languages: tuple[str, ...] = ()
    corpora: tuple[str, ...] = ()
    lines: Pairs = 200_000
    batch: Pairs = 1024
    epochs: NotNegative = 0.0

    def teaches_on(self, corpus: PairCorpus) -> bool:
        """Return True if the corpus is among ``corpora``."""
        return not self.corpora or any(fnmatch.fnmatchcase(corpus.files[0], name) for name in self.corpora)


@dataclasses.dataclass(frozen=True)
class Reduce:
    """Reduction of the finished vectors: trained large, used small (no layers)."""

    dim: CountOrZero = 0
    order_columns: CountOrZero = 0
    order_weight: Positive = 0.6
    norm_power: ShareAboveZero = 1.0
    repeat_damping: ShareBelowOne = 0.0

    def applied(self, config: EncoderConfig) -> EncoderConfig:
        """Return the configuration of the finished encoder."""
        if self.repeat_damping:
            config = dataclasses.replace(config, repeat_damping=self.repeat_damping)
        if not self.dim:
            return config
        weight = self.order_weight if self.order_columns else 0.0
        return dataclasses.replace(
            config, dim=self.dim, order_columns=self.order_columns, order_weight=weight
        )


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A training run.

    Attributes:
        base: the folder that relative paths start from; no key, and not part of the identity.
        max_line, errors: the longest line of a corpus in bytes, and the treatment of invalid UTF-8, as in `Run`;
            likewise.
    """

    data: Data = dataclasses.field(default_factory=Data)
    vocabulary: Vocabulary = dataclasses.field(default_factory=Vocabulary)
    model: Model = dataclasses.field(default_factory=Model)
    train: Training = dataclasses.field(default_factory=Training)
    teacher: Teacher = dataclasses.field(default_factory=Teacher)
    reduce: Reduce = dataclasses.field(default_factory=Reduce)
    base: Path = Path()
    max_line: int = LONGEST_LINE
    errors: str = "strict"

    def path(self, name: str) -> Path:
        """Return the local path of a file that the recipe names."""
        return self.base / name

    def corpus(self, name: str) -> Source:
        """Return a corpus file, local or in shared storage."""
        path = name if is_remote(name) else str(self.path(name))
        return Source(path, self.errors, self.max_line)

    def named(self) -> Recipe:
        """Return the recipe without the folders of the encoders it starts from and learns from, and of the cache."""
        return dataclasses.replace(
            self,
            data=dataclasses.replace(self.data, cache=""),
            model=dataclasses.replace(self.model, start_from=Path(self.model.start_from).name),
            teacher=dataclasses.replace(self.teacher, model=Path(self.teacher.model).name),
        )

    def to_json(self) -> dict[str, Any]:
        """Return every key and its value, except the folders of cache and encoders."""
        content = dataclasses.asdict(self.named())
        del content["data"]["cache"]
        return {name: value for name, value in content.items() if name not in UNKEYED}

    def settings(self) -> dict[str, Any]:
        """Return the keys that are not at their defaults, by table."""
        content, usual = dataclasses.asdict(self), dataclasses.asdict(Recipe())
        tables = {section: _changed(content[section], usual[section]) for section in SECTIONS}
        if "corpora" in tables["data"]:
            of_a_corpus = dataclasses.asdict(PairCorpus())
            tables["data"]["corpora"] = [_changed(each, of_a_corpus) for each in tables["data"]["corpora"]]
        return {section: table for section, table in tables.items() if table}

    def digest(self) -> str:
        """Return 16 hex digits that identify the training, whatever the folders and the checkpoint interval.

        Keys at their defaults do not count, so that a key added by a later version changes no digest.
        """
        tables = self.settings()
        for section, name in UNCOUNTED.items():
            tables.get(section, {}).pop(name, None)
        content = {section: table for section, table in tables.items() if table}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _changed(table: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value != usual[name]}
