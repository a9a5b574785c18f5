"""Zero-shot classification of documents, after MLDoc (Schwenk and Li, 2018).

A linear classifier is trained on the vectors of documents in one language and tested on those of documents in others;
the encoder stays as it is. MLDoc trains on 1,000 documents, chooses on 1,000 and tests on 4,000 of each language, and
results are means of several runs (Mao et al. 2021: five). A logistic regression has one solution, so runs differ in
their training data: each holds out another tenth of every label's documents and, without a development file, chooses
the strength of its L2 term on these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.declarations import keywords
from bitextmine.documents.sources import language_of
from bitextmine.errors import BitextmineError
from bitextmine.evaluation.report import SEED, FileName, Report, cut_note, percent, wilson
from bitextmine.files.source import Source
from bitextmine.run import Run
from bitextmine.shipped import choose_model
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

RUNS = 5  # as Mao et al. average
# Of the mean cross-entropy, strongest first: of equally good ones the strongest wins.
STRENGTHS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True)
class ClassificationResult:
    """Accuracy on one test file: shares from 0 to 1.

    `accuracy` and `std` are mean and standard deviation of the runs, `low` and `high` Wilson's 95%
    interval of the mean for this number of documents, `largest` the share of the most frequent label.
    """

    test: str
    accuracy: float
    std: float
    low: float
    high: float
    largest: float
    documents: int
    runs: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class ClassificationReport(Report):
    """Accuracy on each test file, and the strength of the L2 term in each run."""

    kind: ClassVar[str] = "classification evaluation"
    train: str
    documents: int
    labels: tuple[str, ...]
    strengths: tuple[float, ...]
    results: tuple[ClassificationResult, ...]

    def to_table(self) -> str:
        """Return percentages, aligned for a terminal."""
        rows = [
            [r.test, *percent(r.accuracy, r.std, r.low, r.high, r.largest), str(r.documents)]
            for r in self.results
        ]
        return self._table(
            ["test", "accuracy", "std", "low", "high", "largest label", "documents"],
            rows,
            f"trained on {counted(self.documents, 'document')} of {self.train} with {len(self.labels)} labels; "
            f"mean and standard deviation of {counted(len(self.strengths), 'run')}, 95% interval of the mean",
        )


class _Set(NamedTuple):
    """Documents as labels (n,) int64 and vectors (n, d) float64."""

    labels: NDArray[np.int64]
    vectors: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> _Set:
        return _Set(self.labels[rows], self.vectors[rows])

    def accuracy(self, weights: NDArray[np.float64]) -> float:
        """Return the share of the documents whose most probable label is theirs; ties go to the first."""
        best = np.argmax(self.vectors @ weights[:, :-1].T + weights[:, -1], axis=1)
        return float((best == self.labels).mean())


@keywords
def evaluate_classification(
    train: FileName,
    tests: Sequence[FileName],
    *,
    dev: FileName | None = None,
    model: FileName | Encoder = "auto",
    run: Run,
) -> ClassificationReport:
    """Measure how well a classifier trained on one language's vectors does on other languages.

    Files have lines "label, tab, text", one document per line. Each run is trained on nine tenths of the documents of
    every label.

    Args:
        train: the documents to learn from, in one language.
        tests: a file of documents for each language to test on.
        dev: the documents on which the best of STRENGTHS is chosen for the L2 term; default: the remaining tenth.
        model: an encoder, or the name of one.
        run: resources; or its fields, such as ``device``.

    Raises:
        BitextmineError: malformed files, or labels too few, too rare, or not in `train`.
    """
    if not tests:
        raise BitextmineError("evaluate classification: no test file is given")
    paths = [Source.of(path, run) for path in (train, *tests, *([] if dev is None else [dev]))]
    read = [read_labelled(path) for path in paths]
    names = sorted(set(read[0][0]))
    labels = [_numbered(path, column, names, train) for path, (column, _) in zip(paths, read, strict=True)]
    counts = np.bincount(labels[0])
    if len(names) < 2:
        raise BitextmineError(f"{train}: one label, {names[0]!r}; two or more are needed")
    if counts.min() < 2:
        raise BitextmineError(
            f"{train}: one document with the label {names[int(counts.argmin())]!r}; each label needs two, one to learn "
            "from and one to choose by"
        )
    from bitextmine.encoder import load_encoder

    encoder = load_encoder(choose_model(model, map(language_of, paths)), run.device)
    vectors, cut = _encode(encoder, paths, [texts for _, texts in read], run)
    sets = [_Set(*each) for each in zip(labels, vectors, strict=True)]
    tested = sets[1 : 1 + len(tests)]
    strengths, accuracies = [], []
    for number in range(RUNS):
        rng = np.random.default_rng([SEED, number])
        strength, weights = _train(sets[0], None if dev is None else sets[-1], len(names), rng)
        strengths.append(strength)
        accuracies.append([each.accuracy(weights) for each in tested])
    by_test = zip(paths[1 : 1 + len(tests)], tested, np.array(accuracies).T, strict=True)
    results = tuple(_result(path, own.labels, each) for path, own, each in by_test)
    return ClassificationReport(
        *(paths[0].path.name, len(labels[0]), tuple(names), tuple(strengths), results),
        signature=signature(
            task="classification",
            model=encoder.hash,
            train=len(labels[0]),
            labels=len(names),
            classifier="logistic",
            dev="held-out" if dev is None else len(labels[-1]),
            runs=RUNS,
            seed=SEED,
        ),
        notes=cut_note(cut, "document", encoder.max_pieces),
    )


def read_labelled(path: FileName) -> tuple[list[str], list[str]]:
    """Read labels and texts from a file of lines "label, tab, text"; further tabs belong to the text."""
    labels, texts = [], []
    for number, line in enumerate(Source.of(path).lines(), 1):
        label, tab, text = line.partition("\t")
        if not tab or not label.strip():
            raise BitextmineError(
                f"{path}: line {number}: expected a label, a tab and a text, found {line[:60]!r}"
            )
        labels.append(label.strip())
        texts.append(text)
    if not labels:
        raise BitextmineError(f"{path}: empty; it should hold a label, a tab and a text per line")
    return labels, texts


def _numbered(path: FileName, labels: list[str], names: list[str], train: FileName) -> NDArray[np.int64]:
    numbers = {name: i for i, name in enumerate(names)}
    for line, name in enumerate(labels, 1):
        if name not in numbers:
            raise BitextmineError(
                f"{path}: line {line}: the label {name!r} is not in {train}, which has {', '.join(names)}"
            )
    return np.array([numbers[name] for name in labels], dtype=np.int64)


def _encode(
    encoder: Encoder, paths: Sequence[FileName], texts: Sequence[list[str]], run: Run
) -> tuple[list[NDArray[np.float64]], int]:
    """Return the vectors of each file, and the number of documents that were cut."""
    from bitextmine.encoder.familiar import sampled, warn_unfamiliar

    vectors, cut = [], 0
    for path, lines in zip(paths, texts, strict=True):
        warn_unfamiliar(encoder, str(path), "", sampled(lines))
        pieces, more, inverse = encoder.tokenize(lines)
        rows = encoder.encode_pieces(pieces, batch_tokens=run.batch_tokens).astype(np.float64)
        vectors.append(rows if inverse is None else rows[inverse])
        cut += more
    return vectors, cut


def _train(
    documents: _Set, dev: _Set | None, classes: int, rng: np.random.Generator
) -> tuple[float, NDArray[np.float64]]:
    """Train on nine tenths of the documents; return the best strength on dev, or on the rest, and the weights."""
    held_out = _tenth_of_each(documents.labels, rng)
    learn = documents.take(np.delete(np.arange(len(documents.labels)), held_out))
    dev = dev or documents.take(held_out)
    best, chosen, weights = -1.0, (0.0, np.empty(0)), None
    for strength in STRENGTHS:
        weights = fit(learn.vectors, learn.labels, classes, strength, weights)
        accuracy = dev.accuracy(weights)
        if accuracy > best:
            best, chosen = accuracy, (strength, weights)
    return chosen


def _tenth_of_each(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a tenth of the rows of each label, at least one."""
    of_labels = (np.flatnonzero(labels == label) for label in np.unique(labels))
    return np.concatenate([rng.permutation(rows)[: max(1, len(rows) // 10)] for rows in of_labels])


def _result(source: Source, labels: NDArray[np.int64], runs: NDArray[np.float64]) -> ClassificationResult:
    accuracy, n = float(runs.mean()), len(labels)
    interval, largest = wilson(round(accuracy * n), n), float(np.bincount(labels).max() / n)
    return ClassificationResult(
        source.path.name, accuracy, float(runs.std(ddof=1)), *interval, largest, n, tuple(runs.tolist())
    )


def fit(
    vectors: NDArray[np.float64],
    labels: NDArray[np.int64],
    classes: int,
    l2: float,
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Minimise the mean cross-entropy plus l2 / 2 times the squared weights (not of the bias) by L-BFGS.

    `vectors` are (n, d), `labels` (n,) from 0 to classes - 1; l2 > 0 makes the minimum unique. `start` are initial
    weights. Returns weights (classes, d + 1), the last column the bias.
    """
    import torch
    from scipy.optimize import minimize
    from torch.nn import functional

    x, y, d = torch.from_numpy(vectors), torch.from_numpy(labels), vectors.shape[1]

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = torch.tensor(flat.reshape(classes, d + 1), requires_grad=True)
        slopes, bias = weights[:, :-1], weights[:, -1]
        value = functional.cross_entropy(functional.linear(x, slopes, bias), y)
        value = value + l2 / 2 * slopes.square().sum()
        return value.item(), torch.autograd.grad(value, weights)[0].numpy().ravel()

    begin = np.zeros((classes, d + 1)) if start is None else start
    limits = {"maxiter": 2000, "ftol": 1e-12, "gtol": 1e-7}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the products are small: threads would mostly wait for each other
    try:
        solution = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options=limits)
    finally:
        torch.set_num_threads(threads)
    return np.asarray(solution.x).reshape(classes, d + 1)
