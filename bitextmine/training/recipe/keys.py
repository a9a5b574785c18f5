"""The keys of a recipe: what a training run is; every key has a default, a meaning and limits."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

from bitextmine.encoder.columns.lengths import COLUMNS
from bitextmine.encoder.precomputed import PRECOMPUTED
from bitextmine.files.storage import Place, place
from bitextmine.files.urls import is_remote
from bitextmine.training.objectives.catalogue import objectives_in_words

__all__ = [
    "SECTIONS",
    "Corpus",
    "Data",
    "Distil",
    "Model",
    "Recipe",
    "Reduce",
    "Teacher",
    "Training",
    "Vocabulary",
]


# Of a recipe, in the order in which they are shown.
SECTIONS = ("data", "vocabulary", "model", "train", "teacher", "distil", "reduce")


def key(default: Any, doc: str, **limits: Any) -> Any:
    """A key of a recipe: its default, what it means, and what it may be.

    The limits are least, most, above, below (numbers) and choices (words); `check_recipe` holds values to them, and
    `bitextmine train --print-recipe` prints them with the meaning.
    """
    metadata = {"doc": doc, "limits": limits}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Sentence pairs: a TSV file (``pairs``) or two files of equal length (``src`` and ``tgt``)."""

    langs: tuple[str, str]  # of the first and the second column
    pairs: str = key("", "TSV: source, tab, target; further columns are ignored")
    src: str = key("", "instead of pairs: the source sentences, one per line")
    tgt: str = key("", "their translations, line by line")
    weight: float = key(
        1.0, "a pair of this corpus is drawn so many times as often as one of weight 1", above=0
    )
    src_vectors: str = key(
        "",
        'with teacher.model = "precomputed": its vectors of the source sentences, a .npy of a row per pair',
    )
    tgt_vectors: str = key("", "... and of the target sentences; one of the two will do")

    @property
    def name(self) -> str:
        """What it is called in messages, counts and model cards."""
        return self.pairs or f"{self.src} + {self.tgt}"

    @property
    def files(self) -> tuple[str, ...]:
        """The TSV file, or the two of a paired corpus, as the recipe names them."""
        return (self.pairs,) if self.pairs else (self.src, self.tgt)


@dataclasses.dataclass(frozen=True)
class Data:
    """The corpora, which of their pairs are left out, and how many are held out."""

    corpora: tuple[Corpus, ...] = ()
    folder: str = key(
        ".", "where relative paths begin; itself relative to the recipe's folder (--data overrides it)"
    )
    errors: str = key(
        "strict", "invalid UTF-8: stop and name the line, or read it as U+FFFD", choices=("strict", "replace")
    )
    min_pieces: int = key(1, "a pair with a side of fewer pieces is dropped", least=1)
    max_ratio: float = key(
        4.0,
        "a pair whose longer side has more than so many times the pieces of the shorter is dropped",
        least=1,
    )
    max_ratio_slack: int = key(
        10, "... counting so many pieces on top of each side, so that short lines pass", least=0
    )
    deduplicate: bool = key(
        True, "of pairs that are the same in pieces keep the first, whatever corpus it is in"
    )
    language_filter: bool = key(
        False, "drop a pair with a side that is not in its language; needs py3langid (the extra `languages`)"
    )
    language_share: float = key(
        0.2,
        "... that is, whose language is less probable than so: its probability over that and the best other one's; "
        "0.5 asks for the best guess",
        above=0,
        below=1,
    )
    check_languages: bool = key(
        True, "refuse a corpus whose columns look swapped, where py3langid is installed"
    )
    valid_pairs: int = key(
        1000,
        "pairs held out of each corpus (at most a twentieth of it) to measure P@1 on; pairs that share a sentence "
        "with one of them are not trained on",
        least=0,
    )
    cache: str = key(
        "", "folder for the tokenised corpora, which runs may share; empty: work/cache in the model folder"
    )


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The subword pieces: a tokenizer that there is, or how one is trained on the corpora."""

    tokenizer: str = key("", "a tokenizer.model to use as it is; empty: train one")
    grow: int = key(
        0,
        "with model.start_from: up to so many pieces that the corpora have and its vocabulary lacks are added to it",
        least=0,
        most=1_000_000,
    )
    size: int = key(32_000, "subword pieces", least=8, most=1_000_000)
    type: str = key("unigram", "kind of SentencePiece model", choices=("unigram", "bpe"))
    fold_case: bool = key(True, "read upper case as lower case")
    coverage: float = key(0.9998, "share of the characters that get a piece of their own", above=0, most=1)
    lines_per_language: int = key(160_000, "lines sampled from the corpora to train it on", least=1)


@dataclasses.dataclass(frozen=True)
class Model:
    """The encoder: its size, what its vectors hold, and how they are stored."""

    start_from: str = key(
        "",
        "an encoder to train on from, instead of random vectors: one in the package, by its name, or a model folder "
        "(--from); its vocabulary, its n-grams and the keys of its shape are then kept",
    )
    dim: int = key(256, "numbers per sentence vector", least=1)
    layers: int = key(0, "transformer layers, best few; 0: the mean of the piece vectors", least=0)
    heads: int = key(8, "attention heads of a layer; must divide dim", least=1)
    ffn: int = key(1024, "hidden numbers of a layer's feed-forward part", least=1)
    recurrent: int = key(
        0,
        "of the layers so many have weights, and are gone through again and again until there are `layers` of them; it "
        "must divide their number; 0: all are different",
        least=0,
    )
    bottleneck: int = key(
        0,
        "numbers in the vector of a piece, from which a matrix makes dim of them: most of a model with layers is piece "
        "vectors; 0: dim",
        least=0,
    )
    dropout: float = key(0.1, "share of a layer's numbers zeroed at random in training", least=0, below=1)
    max_pieces: int = key(200, "longer sentences are cut to so many pieces", least=1)
    spelling: bool = key(
        False,
        "in training, let pieces that are spelled alike share part of their vectors, through their character n-grams "
        "(no layers; contrastive): better on text of another kind than the corpora, and not slower in use",
    )
    ngrams: int = key(
        0,
        "... and keep so many n-grams as pieces of their own, for words that the vocabulary cuts up: better still, "
        "for a larger model (they count as pieces in max_pieces)",
        least=0,
    )
    length_share: float = key(
        0.0,
        "share of a vector's squared length that tells how long the sentence is, in characters "
        f"({COLUMNS} of its numbers, and no layers): translations are about equally long; 0: nothing does",
        least=0,
        below=1,
    )
    order_columns: int = key(
        0,
        "so many of dim tell where in the sentence the pieces stand (no layers): sums of the pieces' first numbers, "
        "weighed by place, so that the same words in another order make another vector; 0: nothing does",
        least=0,
    )
    order_weight: float = key(0.6, "how much order_columns count", above=0)
    initial_std: float = key(0.01, "standard deviation of the piece vectors at the start", above=0)
    storage: str = key(
        "int8",
        "of the piece vectors in the finished model: 8 bits and a scale per row, 4 bits and a scale per 64 columns "
        "(half the size), or as they are",
        choices=("int8", "int4", "float32"),
    )


@dataclasses.dataclass(frozen=True)
class Training:
    """How the encoder learns: objectives, batches, learning rates, and when it is measured and saved."""

    objective: dict[str, float] = key(  # noqa: RUF009 (a function that makes the default)
        lambda: {"contrastive": 1.0},
        f"what to minimise: objectives with their weights. {objectives_in_words()}",
    )
    steps: int = key(0, "steps to train; 0: as many as `epochs` passes over the data take", least=0)
    epochs: float = key(5.0, "passes over the data", above=0)
    batch: int = key(
        4096,
        "pairs per step, of all processes together; all of one corpus, which makes them hard to tell apart",
        least=2,
    )
    temperature: float = key(0.05, "of contrastive", above=0, most=1)
    length_share_in_training: float = key(
        0.0,
        "what model.length_share is while training goes on; 0: the same. With a larger one training minds the "
        "sentences that are as long as the translation, and leaves the others to their length",
        least=0,
        below=1,
    )
    learn_temperature: bool = key(False, "let training move the temperature")
    margin: float = key(0.0, "taken off the cosine of a true pair in contrastive", least=0, below=1)
    hard_negatives: float = key(
        0.0,
        "share of a batch that is chosen, not drawn: pairs which the encoder as it is takes for translations of "
        "other pairs of the batch (contrastive); they count in `epochs`, as the others do",
        least=0,
        below=1,
    )
    hard_pool: int = key(8, "... out of so many pairs drawn for each of them", least=1)
    hard_limit: float = key(
        0.9,
        "... unless their cosine is above this: they then say the same, and are taken only where others are missing",
        above=0,
        most=1,
    )
    piece_dropout: float = key(
        0.1, "share of the pieces of a sentence left out at random (contrastive)", least=0, below=1
    )
    piece_splits: float = key(
        0.0,
        "share of the pieces that come in two halves at random in training (twice over), so that rare words are "
        "understood by their parts: little slower, and better on text of another kind than the corpora",
        least=0,
        below=1,
    )
    piece_splits_end: float = key(
        0.3, "share of the steps, the last ones, that take the pieces whole again", least=0, most=1
    )
    learning_rate: float = key(3e-4, "highest learning rate of the layers", above=0)
    embedding_learning_rate: float = key(6e-3, "highest learning rate of the piece vectors", above=0)
    weight_decay: float = key(0.0, "of the layers' matrices", least=0)
    warmup: float = key(
        0.02, "share of the steps in which the learning rate rises to its highest", least=0, most=1
    )
    schedule: str = key(
        "cosine",
        "how it falls from there to the floor",
        choices=("cosine", "linear", "constant", "inverse-sqrt"),
    )
    floor: float = key(0.02, "learning rate at the end, as a share of the highest", least=0, most=1)
    clip: float = key(1.0, "largest gradient norm of the layers; 0: no limit", least=0)
    batch_tokens: int = key(16_384, "pieces that go through the layers at once, padding included", least=1)
    recompute: bool = key(
        False, "compute the layers anew in the backward pass: memory then does not depend on `batch`"
    )
    precision: str = key(
        "auto",
        "of the products of the losses (similarities, predicted pieces); auto: bfloat16 where it is native",
        choices=("auto", "float32", "bfloat16"),
    )
    autocast: str = key(
        "auto",
        "of the products inside the layers; auto: bfloat16 on GPUs that have it, float32 on the CPU",
        choices=("auto", "float32", "bfloat16"),
    )
    compile: bool = key(
        False, "compile the layers with torch.compile: a slow start, faster steps; needs a compiler"
    )
    seed: int = key(1, "of everything random", least=0)
    valid_every: int = key(
        0,
        "steps between two measurements of P@1 on the held-out pairs; 0: 500, or a tenth of the run where that is less "
        "(always 500 with patience, which counts them)",
        least=0,
    )
    patience: int = key(
        0,
        "stop after so many measurements without a better P@1, and keep the weights of the best; 0: train to the end "
        "and keep the last",
        least=0,
    )
    checkpoint_seconds: float = key(60.0, "seconds between two checkpoints", least=0)


@dataclasses.dataclass(frozen=True)
class Teacher:
    """An encoder whose vectors are known for some of the pairs, and followed in training."""

    model: str = key(
        "",
        "an encoder to learn from: one in the package, a model folder, ORG/NAME of the hub, or "
        f'"{PRECOMPUTED}" where the corpora bring its vectors (src_vectors, tgt_vectors); train.objective says what '
        "is learned of it; empty: none",
    )
    languages: tuple[str, ...] = key(
        (),
        "the languages that it reads: a sentence of another one is taught the vector of its translation, and corpora "
        "of two others are left out; empty: all",
    )
    corpora: tuple[str, ...] = key(
        (), "those it teaches on, called as in data.corpora (pairs, or src); empty: all that it can read"
    )
    lines: int = key(
        200_000,
        "pairs that it teaches on, of all corpora together, each giving as large a share as it has of the pairs that "
        "are drawn; its vectors of them are computed once, and kept where data.cache is",
        least=2,
    )
    batch: int = key(
        1024, "pairs per step that it teaches on, beside those of train.batch; all of one corpus", least=2
    )
    epochs: float = key(
        0.0,
        "passes over the pairs after those of [train], in which it teaches beside them, the optimiser going on as it "
        "is; 0: it teaches in those of [train]",
        least=0,
    )
    rate: float = key(
        0.15,
        "... in which learning rates begin at this share of the peak, and fall to the floor as half a cosine",
        above=0,
        most=1,
    )
    temperature: float = key(0.05, "of mcl_ce and structure_kl", above=0, most=1)


@dataclasses.dataclass(frozen=True)
class Distil:
    """Training in the four stages of multi-stage distillation (Ding et al. 2022), one command for all of them."""

    epochs: tuple[float, ...] = key(
        (),
        "four numbers, passes over the pairs in each stage: 1 the teacher teaches a large assistant its vectors; 2 the "
        "student, the assistant's first layers with model.recurrent and model.bottleneck, learns the outputs of its "
        "piece vectors; 3 the assistant teaches the student its vectors; 4 the teacher teaches the student, with "
        "contrast. 0 leaves a stage out; empty: an ordinary training",
    )
    assistant: str = key(
        "",
        "of stage 1: a model folder with layers to go on from, whose shape and vocabulary are then kept; empty: random "
        "weights in the shape of [model], without recurrent and bottleneck",
    )
    contrast: str = key(
        "soft",
        "of stage 4, beside the teacher's vectors: cosines of translations and others as the teacher's (mcl, Eq. 5), "
        "as 1 and 0 (mcl_bool, Eq. 8), by cross-entropy (mcl_ce, Eq. 9), or nothing",
        choices=("soft", "bool", "ce", "none"),
    )
    layers: int = key(
        0,
        "of the student, the assistant's first so many, gone through once where model.recurrent is not set; 0: as many "
        "as the assistant has",
        least=0,
    )


@dataclasses.dataclass(frozen=True)
class Reduce:
    """What the finished vectors are cut to: trained large, used small (no layers)."""

    dim: int = key(
        0,
        "cut the vectors to so many numbers, all columns included: to the axes along which sentences of the corpora "
        "differ most (principal component analysis); 0: leave them as they were trained",
        least=0,
    )
    order_columns: int = key(
        0,
        "... of which so many tell where the pieces stand, as model.order_columns, without training",
        least=0,
    )
    order_weight: float = key(0.6, "... and how much they count", above=0)
    pairs: int = key(5_000, "pairs of each corpus that the axes are found with", least=1)
    norm_power: float = key(
        1.0,
        "the lengths of piece vectors are first raised to this power: below 1 rare pieces, whose vectors training "
        "makes long, count less; 1: as they are",
        above=0,
        most=1,
    )


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A training run. ``base`` is the folder that relative paths begin at (not part of the identity)."""

    data: Data = dataclasses.field(default_factory=Data)
    vocabulary: Vocabulary = dataclasses.field(default_factory=Vocabulary)
    model: Model = dataclasses.field(default_factory=Model)
    train: Training = dataclasses.field(default_factory=Training)
    teacher: Teacher = dataclasses.field(default_factory=Teacher)
    distil: Distil = dataclasses.field(default_factory=Distil)
    reduce: Reduce = dataclasses.field(default_factory=Reduce)
    base: Path = Path()

    def path(self, name: str) -> Path:
        """Where a file that the recipe names lies, on this machine."""
        return self.base / self.data.folder / name

    def corpus(self, name: str) -> Place:
        """Where a file of a corpus lies, here or in shared storage."""
        return place(name) if is_remote(name) else self.path(name)

    def to_json(self) -> dict[str, Any]:
        """Every key and its value, but for the folders of the data and of the cache; of the encoders that training
        starts from and learns from the names alone."""
        content = dataclasses.asdict(self)
        content["model"]["start_from"] = Path(self.model.start_from).name
        content["teacher"]["model"] = Path(self.teacher.model).name
        content["distil"]["assistant"] = Path(self.distil.assistant).name
        del content["base"], content["data"]["folder"], content["data"]["cache"]
        return content

    def digest(self) -> str:
        """16 hex digits that change with anything in the recipe but the folders of the data, of the cache and of the
        encoders that it starts from and learns from, and the seconds between checkpoints.

        Keys at their defaults do not count, so that a key added by a later version changes no digest.
        """
        content = _changed(
            dataclasses.replace(
                self,
                base=Path(),
                data=dataclasses.replace(self.data, folder=".", cache=""),
                model=dataclasses.replace(self.model, start_from=""),
                train=dataclasses.replace(self.train, checkpoint_seconds=Training().checkpoint_seconds),
                teacher=dataclasses.replace(self.teacher, model=""),
                distil=dataclasses.replace(self.distil, assistant=""),
            )
        )
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


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
