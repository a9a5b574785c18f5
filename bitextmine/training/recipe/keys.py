"""The keys of a recipe, each with its type, range, default and meaning."""

# ruff: noqa: RUF009 (key() makes fields)

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from bitextmine.encoder.columns import COLUMNS
from bitextmine.encoder.encoder import PRECOMPUTED
from bitextmine.files.storage import Place, place
from bitextmine.files.urls import is_remote
from bitextmine.training.objectives.catalogue import objectives_in_words

# The tables of a recipe, in the order in which they are printed.
SECTIONS = ("data", "vocabulary", "model", "train", "teacher", "distil", "reduce")

Count = Annotated[int, Meta(ge=1)]
CountOrZero = Annotated[int, Meta(ge=0)]
Pieces = Annotated[int, Meta(ge=8, le=1_000_000)]
Pairs = Annotated[int, Meta(ge=2)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
ShareAboveZero = Annotated[float, Meta(gt=0, le=1)]
ShareBelowOne = Annotated[float, Meta(ge=0, lt=1)]
Precision = Literal["auto", "float32", "bfloat16"]


def key(default: Any, doc: str) -> Any:
    """Return a dataclass field with its default (or the function that makes it) and its meaning."""
    metadata = {"doc": doc}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Sentence pairs: a TSV file (``pairs``) or two files of equal length (``src`` and ``tgt``)."""

    langs: tuple[str, str]  # of the first and the second column
    pairs: str = key("", "TSV file: source, tab, target; further columns are ignored")
    src: str = key("", "instead of pairs: the source sentences, one per line")
    tgt: str = key("", "their translations, line by line")
    weight: Positive = key(1.0, "how often a pair of this corpus is drawn, relative to one of weight 1")
    src_vectors: str = key(
        "",
        'with teacher.model = "precomputed": vectors of the source sentences, a .npy with one row per pair',
    )
    tgt_vectors: str = key("", "... and of the target sentences; either file is enough")

    @property
    def name(self) -> str:
        """The corpus's name in messages, counts and model cards."""
        return self.pairs or f"{self.src} + {self.tgt}"

    @property
    def files(self) -> tuple[str, ...]:
        """The TSV file, or the two files of a paired corpus, as the recipe names them."""
        return (self.pairs,) if self.pairs else (self.src, self.tgt)


@dataclasses.dataclass(frozen=True)
class Data:
    """The corpora, the filters, and the pairs held out."""

    corpora: tuple[Corpus, ...] = ()
    folder: str = key(
        ".", "base of relative paths, itself relative to the recipe's folder (--data overrides it)"
    )
    errors: Literal["strict", "replace"] = key(
        "strict", "invalid UTF-8: stop and name the line, or replace it with U+FFFD"
    )
    min_pieces: Count = key(1, "drop pairs with fewer pieces than this on either side")
    max_ratio: Annotated[float, Meta(ge=1)] = key(
        4.0, "drop pairs whose longer side has more than this many times the pieces of the shorter side"
    )
    max_ratio_slack: CountOrZero = key(
        10, "... after adding this many pieces to each side, so that short lines pass"
    )
    deduplicate: bool = key(True, "of pairs with the same pieces keep the first, across all corpora")
    language_filter: bool = key(
        False, "drop pairs with a side in the wrong language; needs py3langid (the extra `languages`)"
    )
    language_share: Annotated[float, Meta(gt=0, lt=1)] = key(
        0.2,
        "... that is, when the probability of the expected language, relative to its sum with that of the best other "
        "language, is below this; 0.5 requires it to be the best guess",
    )
    check_languages: bool = key(
        True, "refuse a corpus whose columns look swapped (if py3langid is installed)"
    )
    valid_pairs: CountOrZero = key(
        1000,
        "pairs held out of each corpus (at most a twentieth of it) to measure P@1; pairs that share a sentence with "
        "them are not trained on",
    )
    pivot: dict[str, ShareBelowOne] = key(
        dict,
        "draw also pairs of two languages, joined by the sentences that their corpora share in a third: { en = 0.2 } "
        "joins by English, for a fifth of the pairs drawn; batches are then of two languages instead of one corpus",
    )
    cache: str = key(
        "", "folder for the tokenised corpora, which runs may share; empty: work/cache in the model folder"
    )


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The subword pieces: an existing tokenizer, or the training of a new one."""

    tokenizer: str = key("", "an existing tokenizer.model to use; empty: train one")
    grow: Annotated[int, Meta(ge=0, le=1_000_000)] = key(
        0, "with model.start_from: add up to this many pieces of the corpora to its vocabulary"
    )
    size: Pieces = key(32_000, "number of subword pieces")
    type: Literal["unigram", "bpe"] = key("unigram", "kind of SentencePiece model")
    fold_case: bool = key(True, "lower-case the text")
    coverage: ShareAboveZero = key(0.9998, "share of the characters that get a piece of their own")
    lines_per_language: Count = key(160_000, "lines sampled from the corpora to train it")


@dataclasses.dataclass(frozen=True)
class Model:
    """The encoder: its size, the columns of its vectors, and their storage."""

    start_from: str = key(
        "",
        "an encoder to continue from, instead of random weights: a packaged encoder's name or a model folder (--from); "
        "its vocabulary, n-grams and shape are kept",
    )
    dim: Count = key(256, "dimensions of a sentence vector")
    layers: CountOrZero = key(0, "transformer layers, best few; 0: the mean of the piece vectors")
    heads: Count = key(8, "attention heads per layer; must divide dim")
    ffn: Count = key(1024, "hidden units of a layer's feed-forward part")
    recurrent: CountOrZero = key(
        0,
        "number of layers with weights of their own, which are repeated until there are `layers` of them; must divide "
        "that number; 0: no layer is repeated",
    )
    bottleneck: CountOrZero = key(
        0,
        "dimensions of a piece vector, which a matrix maps to dim (piece vectors are most of a model with layers); "
        "0: dim",
    )
    dropout: ShareBelowOne = key(0.1, "dropout within the layers")
    max_pieces: Count = key(200, "longer sentences are cut to this many pieces")
    spelling: bool = key(
        False,
        "in training, pieces with similar spelling share part of their vectors, through character n-grams (no layers; "
        "contrastive): better on text unlike the corpora, at no cost in use",
    )
    ngrams: CountOrZero = key(
        0,
        "... and keep this many n-grams as pieces, for words that the vocabulary cuts up: better still, for a larger "
        "model (they count towards max_pieces)",
    )
    length_share: ShareBelowOne = key(
        0.0,
        "share of a vector's squared length that encodes the sentence's length in characters "
        f"({COLUMNS} of the dimensions; no layers), as translations are of similar length; 0: none",
    )
    order_columns: CountOrZero = key(
        0,
        "how many of dim encode word order (no layers): sums of the pieces' first dimensions weighted by position, so "
        "that the same words in another order give another vector; 0: none",
    )
    order_weight: Positive = key(0.6, "weight of order_columns")
    initial_std: Positive = key(0.01, "standard deviation of the initial piece vectors")
    storage: Literal["int8", "int4", "float32"] = key(
        "int8",
        "piece vectors of the finished model: 8 bits and a scale per row, 4 bits and a scale per 64 columns (half the "
        "size), or unchanged",
    )


@dataclasses.dataclass(frozen=True)
class Training:
    """Optimisation: objectives, batches, learning rates, measurements and checkpoints."""

    objective: dict[str, Positive] = key(
        lambda: {"contrastive": 1.0}, f"objectives to minimise, with their weights. {objectives_in_words()}"
    )
    steps: CountOrZero = key(0, "training steps; 0: as many as `epochs` requires")
    epochs: Positive = key(5.0, "passes over the data")
    batch: Pairs = key(
        4096, "pairs per step over all processes; all from one corpus, which makes for hard negatives"
    )
    temperature: ShareAboveZero = key(0.05, "temperature of contrastive")
    length_share_in_training: ShareBelowOne = key(
        0.0,
        "model.length_share during training; 0: the same. A larger value focuses training on sentences as long as the "
        "translation and leaves the others to their length",
    )
    learn_temperature: bool = key(False, "learn the temperature")
    margin: ShareBelowOne = key(0.0, "subtracted from the cosine of a true pair in contrastive")
    piece_dropout: ShareBelowOne = key(0.1, "share of a sentence's pieces dropped at random (contrastive)")
    piece_splits: ShareBelowOne = key(
        0.0,
        "share of the pieces split into two at random in training (applied twice), so that rare words are understood "
        "by their parts: slightly slower, and better on text unlike the corpora",
    )
    piece_splits_end: Share = key(0.3, "share of the steps, at the end, without splits")
    learning_rate: Positive = key(3e-4, "peak learning rate of the layers")
    embedding_learning_rate: Positive = key(6e-3, "peak learning rate of the piece vectors")
    weight_decay: NotNegative = key(0.0, "weight decay of the layers' matrices")
    warmup: Share = key(0.02, "share of the steps in which the learning rate rises to its peak")
    schedule: Literal["cosine", "linear", "constant", "inverse-sqrt"] = key(
        "cosine", "decay of the learning rate from the peak to the floor"
    )
    floor: Share = key(0.02, "final learning rate, as a share of the peak")
    clip: NotNegative = key(1.0, "maximum gradient norm of the layers; 0: no limit")
    batch_tokens: Count = key(16_384, "pieces in the layers at once, padding included")
    recompute: bool = key(
        False, "recompute the layers in the backward pass: memory then does not depend on `batch`"
    )
    precision: Precision = key(
        "auto",
        "precision of the losses' matrix products (similarities, predicted pieces); auto: bfloat16 where it is native",
    )
    autocast: Precision = key(
        "auto",
        "precision of the matrix products inside the layers; auto: bfloat16 on GPUs that have it, float32 on the CPU",
    )
    compile: bool = key(
        False, "compile the layers with torch.compile: slow start, faster steps; needs a compiler"
    )
    seed: CountOrZero = key(1, "random seed")
    valid_every: CountOrZero = key(
        0,
        "steps between measurements of P@1 on the held-out pairs; 0: 500, or a tenth of the run if less (always "
        "500 with patience, which counts them)",
    )
    patience: CountOrZero = key(
        0,
        "stop after this many measurements without a better P@1, and keep the best weights; 0: train to the end and "
        "keep the last",
    )
    checkpoint_seconds: NotNegative = key(60.0, "seconds between checkpoints")


@dataclasses.dataclass(frozen=True)
class Teacher:
    """An encoder whose vectors of some of the pairs are imitated in training."""

    model: str = key(
        "",
        "an encoder to learn from: a packaged one, a model folder, ORG/NAME of the hub, or "
        f'"{PRECOMPUTED}" if the corpora come with its vectors (src_vectors, tgt_vectors); train.objective says how; '
        "empty: none",
    )
    languages: tuple[str, ...] = key(
        (),
        "the languages it reads: a sentence in another language learns the vector of its translation, and corpora "
        "without any of these languages are left out; empty: all",
    )
    corpora: tuple[str, ...] = key(
        (), "the corpora it teaches on, named as in data.corpora (pairs, or src); empty: all it can read"
    )
    lines: Pairs = key(
        200_000,
        "pairs it teaches on, over all corpora, in proportion to how often each corpus is drawn; its vectors are "
        "computed once and kept in data.cache",
    )
    batch: Pairs = key(1024, "taught pairs per step, in addition to train.batch; all from one corpus")
    epochs: NotNegative = key(
        0.0,
        "additional passes after those of [train] in which it teaches, with the same optimiser; 0: it teaches during "
        "those of [train]",
    )
    rate: ShareAboveZero = key(
        0.15,
        "... whose learning rates start at this share of the peak and fall to the floor as half a cosine",
    )
    temperature: ShareAboveZero = key(0.05, "temperature of mcl_ce and structure_kl")


@dataclasses.dataclass(frozen=True)
class Distil:
    """Multi-stage distillation (Ding et al. 2022), all four stages in one command."""

    epochs: tuple[NotNegative, ...] = key(
        (),
        "four numbers, the passes over the pairs in each stage: 1 the teacher teaches a large assistant; 2 the student "
        "(the assistant's first layers, with model.recurrent and model.bottleneck) learns the output of its piece "
        "vectors; 3 the assistant teaches the student; 4 the teacher teaches the student, with contrast. 0 skips a "
        "stage; empty: ordinary training",
    )
    assistant: str = key(
        "",
        "for stage 1: a model folder with layers to continue from, whose shape and vocabulary are kept; empty: random "
        "weights in the shape of [model], without recurrent and bottleneck",
    )
    contrast: Literal["soft", "bool", "ce", "none"] = key(
        "soft",
        "in stage 4, besides the teacher's vectors: cosines of all translations like the teacher's (mcl, Eq. 5), "
        "like 1 and 0 (mcl_bool, Eq. 8), by cross-entropy (mcl_ce, Eq. 9), or none",
    )
    layers: CountOrZero = key(
        0,
        "layers of the student, the first ones of the assistant, applied once unless model.recurrent is set; 0: as "
        "many as the assistant has",
    )


@dataclasses.dataclass(frozen=True)
class Reduce:
    """Reduction of the finished vectors: trained large, used small (no layers)."""

    dim: CountOrZero = key(
        0,
        "reduce the vectors to this many dimensions, all columns included, by principal component analysis of the "
        "corpora's sentences; 0: keep them as trained",
    )
    order_columns: CountOrZero = key(
        0, "... how many of them encode word order, like model.order_columns but without training"
    )
    order_weight: Positive = key(0.6, "... and the weight of these")
    pairs: Count = key(5_000, "pairs of each corpus for the principal component analysis")
    norm_power: ShareAboveZero = key(
        1.0,
        "first raise the norms of the piece vectors to this power: below 1, rare pieces, whose norms training makes "
        "large, count less; 1: unchanged",
    )


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A training run. ``base`` is the folder that relative paths start from (not part of the identity)."""

    data: Data = dataclasses.field(default_factory=Data)
    vocabulary: Vocabulary = dataclasses.field(default_factory=Vocabulary)
    model: Model = dataclasses.field(default_factory=Model)
    train: Training = dataclasses.field(default_factory=Training)
    teacher: Teacher = dataclasses.field(default_factory=Teacher)
    distil: Distil = dataclasses.field(default_factory=Distil)
    reduce: Reduce = dataclasses.field(default_factory=Reduce)
    base: Path = Path()

    def path(self, name: str) -> Path:
        """Return the local path of a file that the recipe names."""
        return self.base / self.data.folder / name

    def corpus(self, name: str) -> Place:
        """Return the place of a corpus file, local or in shared storage."""
        return place(name) if is_remote(name) else self.path(name)

    def named(self) -> Recipe:
        """Return the recipe with the encoders it starts from and learns from by name, without their folders."""
        return dataclasses.replace(
            self,
            model=dataclasses.replace(self.model, start_from=Path(self.model.start_from).name),
            teacher=dataclasses.replace(self.teacher, model=Path(self.teacher.model).name),
            distil=dataclasses.replace(self.distil, assistant=Path(self.distil.assistant).name),
        )

    def to_json(self) -> dict[str, Any]:
        """Return every key and its value, except the folders of data, cache and encoders."""
        content = dataclasses.asdict(self.named())
        del content["base"], content["data"]["folder"], content["data"]["cache"]
        return content

    def digest(self) -> str:
        """Return 16 hex digits that identify the training, whatever the folders and the checkpoint interval.

        Keys at their defaults do not count, so that a key added by a later version changes no digest.
        """
        plain = dataclasses.replace(
            self,
            base=Path(),
            data=dataclasses.replace(self.data, folder=".", cache=""),
            model=dataclasses.replace(self.model, start_from=""),
            train=dataclasses.replace(self.train, checkpoint_seconds=Training().checkpoint_seconds),
            teacher=dataclasses.replace(self.teacher, model=""),
            distil=dataclasses.replace(self.distil, assistant=""),
        )
        return hashlib.sha256(json.dumps(_plain(plain), sort_keys=True).encode()).hexdigest()[:16]


def default(field: dataclasses.Field) -> Any:
    """Return the default of a field, dataclasses.MISSING if it has none."""
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def changed(part: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are not at their defaults."""
    values = {field.name: (getattr(part, field.name), default(field)) for field in dataclasses.fields(part)}
    return {name: value for name, (value, usual) in values.items() if value != usual}


def _plain(part: Any) -> Any:
    if isinstance(part, tuple):
        return [_plain(item) for item in part]
    if dataclasses.is_dataclass(part):
        return {name: _plain(value) for name, value in changed(part).items()}
    return part
