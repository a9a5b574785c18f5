"""Zero-shot classification of documents, after MLDoc (Schwenk and Li, 2018).

A linear classifier is trained on the vectors of documents in one language and tested on those of documents in
others; the encoder stays as it is. MLDoc trains on 1,000 documents, chooses on 1,000 and tests on 4,000 of each
language, and results are means of several runs (Mao et al. 2021: five). A logistic regression has one solution, so
that runs differ in what they are trained on: each leaves another tenth of every label's documents out, and, where no
file for it is given, chooses the strength of its L2 term on these.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import aligned, counted, tab_separated
from bitextmine.errors import BitextmineError
from bitextmine.evaluation.classifier import fit, predict
from bitextmine.evaluation.intervals import wilson
from bitextmine.files.lines import iter_lines
from bitextmine.files.storage import place
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["ClassificationReport", "ClassificationResult", "evaluate_classification", "read_labelled"]

# Of the mean cross-entropy, strongest first: of equally good ones the strongest is taken.
STRENGTHS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True)
class ClassificationResult:
    """Accuracy on one test file: shares from 0 to 1.

    accuracy: the mean of the runs; std: their standard deviation (0 for one run); low, high: Wilson's 95% interval of
    the mean on so many documents; largest: the share of the most frequent label, what guessing it would reach.
    """

    test: str
    accuracy: float
    std: float
    low: float
    high: float
    largest: float
    documents: int
    runs: tuple[float, ...]


@dataclass(frozen=True)
class ClassificationReport:
    """What `evaluate_classification` found; labels as in the training file, in alphabetical order."""

    train: str
    documents: int
    labels: tuple[str, ...]
    strengths: tuple[float, ...]
    results: tuple[ClassificationResult, ...]
    signature: str
    notes: tuple[str, ...] = field(default=())

    def to_table(self, tabs: bool = False) -> str:
        """The numbers in percent: aligned for a terminal, or tab-separated without the remarks."""
        header = ["test", "accuracy", "std", "low", "high", "largest label", "documents"]
        rows = [
            [
                r.test,
                *(f"{100 * x:.2f}" for x in (r.accuracy, r.std, r.low, r.high, r.largest)),
                str(r.documents),
            ]
            for r in self.results
        ]
        if tabs:
            return tab_separated(header, rows)
        runs = len(self.strengths)
        return "\n".join(
            [
                aligned(header, rows),
                f"trained on {counted(self.documents, 'document')} of {self.train} with {len(self.labels)} labels; "
                f"mean and standard deviation of {counted(runs, 'run')}, 95% interval of the mean",
                *self.notes,
                self.signature,
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {"kind": "classification evaluation", **asdict(self)}


def evaluate_classification(
    train: str | os.PathLike[str],
    tests: Sequence[str | os.PathLike[str]],
    *,
    dev: str | os.PathLike[str] | None = None,
    model: str | os.PathLike[str] | Encoder = "default",
    runs: int = 5,
    seed: int = 1,
    device: str = "auto",
    batch_tokens: int | None = None,
    errors: str = "strict",
) -> ClassificationReport:
    """How well a classifier trained on one language's vectors does on those of others.

    train, tests, dev: files of lines "label, tab, text", one document per line. Each run is trained on nine tenths of
    the documents of every label; the strength of the L2 term is the best of STRENGTHS on dev, or else on the remaining
    tenth. model: an `Encoder`, or what `load_encoder` takes. seed: of the draw.

    Raises BitextmineError for unreadable or malformed files, fewer than two labels to learn, a label with fewer than
    two documents, and labels in dev or test that training does not have.
    """
    if runs < 1:
        raise BitextmineError(f"evaluate classification: runs must be at least 1, found {runs}")
    if not tests:
        raise BitextmineError("evaluate classification: no test file is given")
    paths = (train, *tests, *([dev] if dev is not None else []))
    named = [read_labelled(path, errors) for path in paths]
    names = sorted(set(named[0][0]))
    numbers = {name: i for i, name in enumerate(names)}
    labels = []
    for path, (found, _) in zip((train, *tests, dev), named, strict=False):
        for line, name in enumerate(found, 1):
            if name not in numbers:
                raise BitextmineError(
                    f"{path}: line {line}: the label {name!r} is not in {train}, which has {', '.join(names)}"
                )
        labels.append(np.array([numbers[name] for name in found], dtype=np.int64))
    counts = np.bincount(labels[0])
    if len(names) < 2:
        raise BitextmineError(f"{train}: one label, {names[0]!r}; there must be two to tell apart")
    if counts.min() < 2:
        raise BitextmineError(
            f"{train}: one document with the label {names[int(counts.argmin())]!r}; each label needs two, one to learn "
            "from and one to choose by"
        )
    from bitextmine.encoder import Encoder, load_encoder
    from bitextmine.encoder.familiar import sampled, warn_unfamiliar

    encoder = model if isinstance(model, Encoder) else load_encoder(model, device)
    vectors, cut = [], 0
    for path, (_, texts) in zip(paths, named, strict=True):
        warn_unfamiliar(encoder, str(path), "", sampled(texts))
        pieces, more, inverse = encoder.tokenize(texts)
        part = encoder.encode_pieces(pieces, batch_tokens=batch_tokens).astype(np.float64)
        vectors.append(part if inverse is None else part[inverse])
        cut += more
    chosen, accuracies = [], []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        held_out = _tenth_of_each(labels[0], rng)
        learn = np.setdiff1d(np.arange(len(labels[0])), held_out)
        x, y = vectors[0][learn], labels[0][learn]
        choose = (vectors[-1], labels[-1]) if dev is not None else (vectors[0][held_out], labels[0][held_out])
        strength, weights = _best(x, y, len(names), *choose)
        chosen.append(strength)
        accuracies.append(
            [float((predict(weights, vectors[i]) == labels[i]).mean()) for i in range(1, 1 + len(tests))]
        )
    by_test = np.array(accuracies).T
    results = []
    for path, own, each in zip(tests, labels[1:], by_test, strict=False):
        low, high = wilson(round(float(each.mean()) * len(own)), len(own))
        results.append(
            ClassificationResult(
                test=place(path).name,
                accuracy=float(each.mean()),
                std=float(each.std(ddof=1)) if runs > 1 else 0.0,
                low=low,
                high=high,
                largest=float(np.bincount(own).max() / len(own)),
                documents=len(own),
                runs=tuple(each.tolist()),
            )
        )
    notes = []
    if cut:
        what = counted(cut, "document is", "documents are")
        notes.append(f"{what} longer than {encoder.max_pieces} pieces: of these only the beginning counts")
    return ClassificationReport(
        train=place(train).name,
        documents=len(labels[0]),
        labels=tuple(names),
        strengths=tuple(chosen),
        results=tuple(results),
        signature=signature(
            task="classification",
            model=encoder.hash,
            train=len(labels[0]),
            labels=len(names),
            classifier="logistic",
            dev="held-out" if dev is None else len(labels[-1]),
            runs=runs,
            seed=seed,
        ),
        notes=tuple(notes),
    )


def read_labelled(path: str | os.PathLike[str], errors: str = "strict") -> tuple[list[str], list[str]]:
    """The labels and the texts of a file of lines "label, tab, text"; further tabs are the text's.

    Raises BitextmineError, with the line, for one without a tab or a label, and for an empty file.
    """
    labels, texts = [], []
    for number, line in enumerate(iter_lines(path, errors), 1):
        label, tab, text = line.partition("\t")
        if not tab or not label.strip():
            what = "no label before the tab" if tab else "no tab"
            raise BitextmineError(f"{path}: line {number}: {what}; a line is a label, a tab and the text")
        labels.append(label.strip())
        texts.append(text)
    if not labels:
        raise BitextmineError(f"{path}: empty; it should hold a label, a tab and a text per line")
    return labels, texts


def _tenth_of_each(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows drawn from each label: a tenth of them, at least one."""
    parts = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        parts.append(rng.permutation(rows)[: max(1, len(rows) // 10)])
    return np.concatenate(parts)


def _best(
    x: NDArray[np.float64],
    y: NDArray[np.int64],
    classes: int,
    dev_x: NDArray[np.float64],
    dev_y: NDArray[np.int64],
) -> tuple[float, NDArray[np.float64]]:
    """The strength whose classifier does best on dev, and its weights."""
    best, found, weights = -1.0, (0.0, np.empty(0)), None
    for strength in STRENGTHS:
        weights = fit(x, y, classes, strength, weights)
        accuracy = float((predict(weights, dev_x) == dev_y).mean())
        if accuracy > best:
            best, found = accuracy, (strength, weights)
    return found
