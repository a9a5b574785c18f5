"""Fit the scorer of `mine` to mined candidates with known translations.

Each corpus of a training gives mining tasks: its held-out pairs, hidden among sentences whose translations are not
there. The mined pairs are the examples, right if they are held-out pairs. The two networks of a scorer
(`mining.scorer`) learn the log odds; the right examples of a task have a fixed share of its weight, whatever their
number. The second network also learns to choose the translation among a sentence's neighbours, by the softmax of their
scores.

As text repeats itself, some wrong examples are translations after all: an example does not count as wrong if either of
its sentences is nearly equal to the translation of the other, which is known from elsewhere.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save
from scipy.optimize import minimize
from scipy.special import expit

from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder.folder import SCORER, TOKENIZER, resolve
from bitextmine.encoder.ngrams import Ngrams
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.streams import open_output
from bitextmine.mining.calibration import calibration_error, pair_share, probability
from bitextmine.mining.margin import candidates
from bitextmine.mining.piece_features import PieceFeatures, Sentences
from bitextmine.mining.retrieval import ScoredPairs, retrieve
from bitextmine.mining.scorer import (
    LOG_RATIO,
    NEIGHBOURS,
    SIZE,
    Network,
    Scorer,
    candidate_features,
    pair_cosines,
)
from bitextmine.mining.threshold import tune
from bitextmine.run import Run
from bitextmine.search.exact import search_both
from bitextmine.search.neighbours import Neighbours
from bitextmine.training.cache import PairCache, open_caches
from bitextmine.training.outputs import check_file_output
from bitextmine.training.pairs import find_corpora
from bitextmine.training.recipe import Recipe
from bitextmine.training.sampling import with_ngrams

# Neighbours among which the network learns to choose, and held-out sentences of each side.
NEAREST, ASKED = 10, 300
# Weight of choosing, relative to the odds.
CHOICE_WEIGHT = 0.1
# Share of a task's weight that its right examples have.
SHARE = 0.2
# Cosine from which sentences count as equal.
SAME = 0.8
# Share of the right candidates given up, with the lowest scores: their pieces are not compared.
GIVEN_UP = 0.01
# Software manuals are left out, as they make the rest worse: their lines often differ in one word.
CORPORA = {"europarl": 4.0, "laws": 1.0, "tatoeba": 0.5}
LEARNING_RATE, MARGIN_LEARNING_RATE = 1e-2, 3e-2
# Multiple of the log ratio margin added to the second network's score: that is fitted to text that the encoder was
# trained on, where pieces tell more than elsewhere.
LEAN = 30.0
# Inputs this small pass a hidden unit unchanged up to a millionth.
FAINT = 1e-3
MARGIN_HIDDEN, MARGIN_STEPS, MARGIN_DECAY = 8, 150, 0.01
NETWORK_SEED = 1


@dataclasses.dataclass(frozen=True)
class Fitting:
    """The data and settings of a fit.

    Attributes:
        corpora: prefixes of the names of corpora to use, and the total weight of each.
        held_out: minimum number of held-out pairs of a corpus.
        draws: tasks per corpus, with different distractors.
        distractors: sentences without translation on either side, for the tasks in turn.
        seed: random seed of the distractors.
        hidden: units of the second network.
        steps: of AdamW, on all examples.
        decay: its weight decay.
    """

    corpora: Mapping[str, float] = dataclasses.field(default_factory=lambda: dict(CORPORA))
    held_out: int = 500
    draws: int = 5
    distractors: tuple[int, ...] = (40_000, 5_000, 15_000, 1_000, 200)
    seed: int = 1
    hidden: int = 32
    steps: int = 600
    decay: float = 0.1


@dataclasses.dataclass(frozen=True)
class TaskScore:
    """The result of a task: numbers of candidates, right ones and hidden pairs (gold), and the best F1 in per cent.

    f1_by_scorer, share (estimated share of right candidates) and calibration_error (expected, of the probabilities) are
    of a scorer fitted to the other kinds of text.
    """

    corpus: str
    candidates: int
    right: int
    gold: int
    f1_by_margin: float
    f1_by_scorer: float
    share: float
    calibration_error: float


@dataclasses.dataclass(frozen=True)
class FittedScorer:
    """The scorer, its file, and the results of scorers on kinds of text that they were not fitted to."""

    scorer: Scorer
    path: Path
    tasks: tuple[TaskScore, ...]


@dataclasses.dataclass(frozen=True)
class Trained:
    """A training whose held-out pairs a scorer is fitted to.

    Attributes:
        folder: a model folder that `bitextmine train` made with the recipe.
        recipe: its recipe.
        model: the encoder that mines, on the CPU (default: that of the folder).
        cache: folder of the token cache (default: work/cache in the folder).
    """

    folder: str | os.PathLike[str]
    recipe: Recipe
    model: str | os.PathLike[str] | None = None
    cache: str | os.PathLike[str] | None = None


def fit_scorer(
    trained: Trained,
    out: str | os.PathLike[str] | None = None,
    fitting: Fitting | None = None,
    *,
    force: bool = False,
    run: Run | None = None,
) -> FittedScorer:
    """Fit a scorer, write it (safetensors) and measure it.

    Args:
        trained: the training.
        out: the file to write (default: in the model's folder, where `mine` looks for it).
        fitting: data and settings.
        force: overwrite ``out``.
        run: progress bars.

    Raises:
        UsageError: the fitting is impossible.
        BitextmineError: no corpus has enough held-out pairs, the encoder has no piece vectors, or a file cannot be
            read or written.
    """
    fitting, run = fitting or Fitting(), run or Run()
    _check(fitting)
    recipe, root = trained.recipe, Path(trained.folder)
    model = root if trained.model is None else trained.model
    place = resolve(model) / SCORER if out is None else Path(out)
    check_file_output(place, force)
    find_corpora(recipe)
    encoder = load_encoder(model, "cpu")
    comparing = PieceFeatures(*encoder.piece_rows())
    folder = root / "work" / "cache" if trained.cache is None else Path(trained.cache)
    tokenizer, own = Tokenizer(root / TOKENIZER), encoder.tokenizer
    if not isinstance(own, Tokenizer) or own.pieces() != tokenizer.pieces():
        raise BitextmineError(
            f"{tokenizer.path}: not the vocabulary of {os.fspath(model)}; name an encoder that has it with --model"
        )
    corpora = _wanted(fitting, recipe)
    caches = [
        cache
        for cache in open_caches(folder, recipe, tokenizer, run)
        if cache.corpus.name.startswith(tuple(corpora)) and len(cache.valid) >= fitting.held_out
    ]
    if not caches:
        raise BitextmineError(
            f"{folder}: --corpora {','.join(corpora)}: none of them has {fitting.held_out} held-out pairs; lower "
            "--held-out, or name others"
        )
    # One kind of text alone is halved, to measure on one half a scorer fitted to the other.
    halves = 2 if len({_kind(cache.corpus.name) for cache in caches}) == 1 else 1
    tasks: list[MiningTask] = []
    with run.progress(len(caches) * halves * fitting.draws, "mine", "tasks") as bar:
        for one, half, _ in itertools.product(caches, range(halves), range(fitting.draws)):
            rng = np.random.default_rng([fitting.seed, len(tasks)])
            most = fitting.distractors[len(tasks) % len(fitting.distractors)]
            hidden = _hidden_pairs(one, slice(half, None, halves), most, rng).as_read(own.ngrams, recipe)
            name = one.corpus.name
            kind, said = (_kind(name), name) if halves == 1 else (str(half), f"{name}, half {half + 1}")
            tasks.append(_mined(said, kind, encoder, hidden))
            bar.update(1)
    _weigh(tasks, corpora)
    margin, cut = _margin_network(tasks)
    with run.progress(len(tasks), "compare pieces", "tasks") as bar:
        for task in tasks:
            task.compare(comparing, margin, cut)
            bar.update(1)
    measured = _measured(tasks, margin, cut, fitting)
    scorer = Scorer(margin, _leaning(_piece_network(tasks, fitting), tasks), cut, SHARE)
    with open_output(place) as file:
        file.write(save(scorer.arrays()))
    return FittedScorer(scorer, place, measured)


def _weigh(tasks: Sequence[MiningTask], corpora: Mapping[str, float]) -> None:
    """Divide the weight of each name among its tasks; a corpus belongs to the first name that it starts with."""
    names = [next(name for name in corpora if task.corpus.startswith(name)) for task in tasks]
    for task, name in zip(tasks, names, strict=True):
        task.share = corpora[name] / names.count(name)


def _wanted(fitting: Fitting, recipe: Recipe) -> Mapping[str, float]:
    """Return the names of corpora to use with their weights: all of a recipe that has none of CORPORA."""
    names = [corpus.name for corpus in recipe.data.corpora]
    if fitting.corpora == CORPORA and not any(name.startswith(tuple(CORPORA)) for name in names):
        return dict.fromkeys(names, 1.0)
    return fitting.corpora


def _kind(corpus: str) -> str:
    return corpus.partition(".")[0]


def _check(fitting: Fitting) -> None:
    for option, value, least in (
        ("corpora", min(fitting.corpora.values(), default=-1), 0),
        ("draws", fitting.draws, 1),
        ("distractors", min(fitting.distractors, default=-1), 0),
        ("held-out", fitting.held_out, 1),
        ("hidden", fitting.hidden, 1),
        ("steps", fitting.steps, 1),
        ("decay", fitting.decay, 0),
    ):
        if not value >= least:
            raise UsageError(f"--{option} {value}: at least {least}")


@dataclasses.dataclass(frozen=True)
class HiddenPairs:
    """Source and target sentences, the first ``gold`` of them translations in order, and all their translations."""

    src: Pieces
    tgt: Pieces
    of_src: Pieces
    of_tgt: Pieces
    gold: int

    def as_read(self, ngrams: Ngrams | None, recipe: Recipe) -> HiddenPairs:
        """Return the sentences as the encoder reads them."""
        src, tgt, of_src, of_tgt = (
            with_ngrams(side, ngrams, recipe.model.max_pieces)
            for side in (self.src, self.tgt, self.of_src, self.of_tgt)
        )
        return HiddenPairs(src, tgt, of_src, of_tgt, self.gold)


@dataclasses.dataclass(frozen=True)
class Choices:
    """The neighbours, q pairs, of sentences that have their translation among them.

    Source and target rows (q,), features (q, n), and the sentence of each pair (q,), from 0.
    """

    src: NDArray
    tgt: NDArray
    features: NDArray
    of: NDArray


@dataclasses.dataclass
class MiningTask:
    """The candidates of a corpus, p pairs, and the neighbours of held-out sentences.

    Attributes:
        corpus: its name.
        kind: the kind of text; scorers are measured on other kinds than they were fitted to.
        gold: number of hidden pairs.
        sentences: both sides, until `compare`.
        pairs: the candidates and their margin scores.
        base: their features (p, CANDIDATE_FEATURES).
        counts: (p,) bool, False for wrong examples that may be translations after all.
        near: the neighbours; from `compare` on their features are of the pieces, too.
        share: the task's weight.
        hopeful: (p,) bool, the candidates whose pieces were compared.
        features: theirs.
    """

    corpus: str
    kind: str
    gold: int
    sentences: tuple[Pieces, Pieces]
    pairs: ScoredPairs
    base: NDArray
    counts: NDArray
    near: Choices
    share: float = 1.0
    hopeful: NDArray = dataclasses.field(init=False)
    features: NDArray = dataclasses.field(init=False)

    @property
    def right(self) -> NDArray:
        """The held-out pairs among the candidates, (p,) bool."""
        right: NDArray = (self.pairs.src == self.pairs.tgt) & (self.pairs.src < self.gold)
        return right

    @property
    def weight(self) -> NDArray:
        """The weights of the candidates, (p,): they sum to the task's, of which the right ones have SHARE."""
        right = self.right
        each = np.where(
            right,
            SHARE / max(1, (self.counts & right).sum()),
            (1 - SHARE) / max(1, (self.counts & ~right).sum()),
        )
        weight: NDArray = np.where(self.counts, each * self.share, 0)
        return weight

    def compare(self, comparing: PieceFeatures, margin: Network, cut: float) -> None:
        """Compute the piece features of candidates that reach ``cut``, and free their sentences."""
        src, tgt = self.sentences
        self.hopeful = margin.score(margin.drive(self.base)) >= cut

        def features(base: NDArray, rows: NDArray, columns: NDArray) -> NDArray:
            compared = comparing.features(Sentences(src, rows), Sentences(tgt, columns))
            return np.concatenate([base, compared], axis=1)

        self.features = features(
            self.base[self.hopeful], self.pairs.src[self.hopeful], self.pairs.tgt[self.hopeful]
        )
        found = features(self.near.features, self.near.src, self.near.tgt)
        self.near = dataclasses.replace(self.near, features=found)
        del self.sentences


def _hidden_pairs(cache: PairCache, part: slice, distractors: int, rng: np.random.Generator) -> HiddenPairs:
    """Hide the held-out pairs of ``part`` among sentences of as large a part of the training pairs."""
    gold = cache.valid.take(np.arange(len(cache.valid))[part])
    rows = rng.permutation(np.arange(len(cache.train))[part])
    most = min(distractors, len(rows) // 2)
    here, there = (cache.train.take(np.sort(some)) for some in (rows[:most], rows[most : 2 * most]))
    return HiddenPairs(
        Pieces.join([gold.src, here.src]),
        Pieces.join([gold.tgt, there.tgt]),
        Pieces.join([gold.tgt, here.tgt]),
        Pieces.join([gold.src, there.src]),
        len(gold),
    )


def _mined(corpus: str, kind: str, encoder: Encoder, hidden: HiddenPairs) -> MiningTask:
    x, y, of_x, of_y = (
        encoder.encode_pieces(side).astype(np.float16)
        for side in (hidden.src, hidden.tgt, hidden.of_src, hidden.of_tgt)
    )
    wide = search_both(x, y, NEAREST)
    found = Neighbours(
        wide.fwd_sim[:, :NEIGHBOURS],
        wide.fwd_id[:, :NEIGHBOURS],
        wide.bwd_sim[:, :NEIGHBOURS],
        wide.bwd_id[:, :NEIGHBOURS],
    )
    pairs = retrieve(candidates(found, NEIGHBOURS))
    cosine = np.maximum(
        pair_cosines(pairs.src, pairs.tgt, found.fwd_sim, found.fwd_id),
        pair_cosines(pairs.tgt, pairs.src, found.bwd_sim, found.bwd_id),
    )
    base = candidate_features(pairs.src, pairs.tgt, cosine, found, NEIGHBOURS)
    same = (
        np.maximum(_cosines(of_x[pairs.src], y[pairs.tgt]), _cosines(x[pairs.src], of_y[pairs.tgt])) >= SAME
    )
    right = (pairs.src == pairs.tgt) & (pairs.src < hidden.gold)
    near = _near(wide, found, min(hidden.gold, ASKED))
    return MiningTask(corpus, kind, hidden.gold, (hidden.src, hidden.tgt), pairs, base, right | ~same, near)


def _cosines(x: NDArray, y: NDArray) -> NDArray:
    found: NDArray = np.einsum("ij,ij->i", x.astype(np.float32), y.astype(np.float32))
    return found


def _near(wide: Neighbours, found: Neighbours, asked: int) -> Choices:
    """Return the neighbours of each side's first sentences that have their translation among them."""
    parts = []
    for ids, sim, forward in ((wide.fwd_id, wide.fwd_sim, True), (wide.bwd_id, wide.bwd_sim, False)):
        rows = np.flatnonzero((ids[:asked] == np.arange(min(asked, len(ids)))[:, None]).any(axis=1))
        row, column = np.nonzero(ids[rows] >= 0)
        one, other = rows[row], ids[rows[row], column]
        src, tgt = (one, other) if forward else (other, one)
        cosine = sim[one, column].astype(np.float64)
        parts.append(Choices(src, tgt, candidate_features(src, tgt, cosine, found, NEIGHBOURS), row))
    return _joined(parts)


def _joined(parts: Sequence[Choices]) -> Choices:
    of, sentences = [], 0
    for part in parts:
        of.append(part.of + sentences)
        sentences += int(part.of.max(initial=-1)) + 1
    src, tgt, features = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("src", "tgt", "features")
    )
    return Choices(src, tgt, features, np.concatenate(of))


def _measured(
    tasks: Sequence[MiningTask], margin: Network, cut: float, fitting: Fitting
) -> tuple[TaskScore, ...]:
    """Measure each task with a second network fitted to the other kinds of text."""
    networks = {
        kind: _leaning(_piece_network(others, fitting), others)
        for kind in sorted({task.kind for task in tasks})
        if (others := [task for task in tasks if task.kind != kind])
    }
    found = []
    for task in tasks:
        network = networks[task.kind]
        score = margin.score(margin.drive(task.base))
        score[task.hopeful] = network.score(network.drive(task.features))
        score, by_margin, right = (one[task.counts] for one in (score, task.pairs.score, task.right))
        share = pair_share(score, SHARE)
        p = probability(score + np.log(share / (1 - share)) - np.log(SHARE / (1 - SHARE)))
        before, after = (100 * tune(one, right, task.gold).f1 for one in (by_margin, score))
        error = calibration_error(p, right)
        found.append(
            TaskScore(task.corpus, len(right), int(right.sum()), task.gold, before, after, share, error)
        )
    return tuple(found)


def _margin_network(tasks: Sequence[MiningTask]) -> tuple[Network, float]:
    """Return the first network, and the score that all but GIVEN_UP of the right candidates reach."""
    network = _fitted(
        np.concatenate([task.base for task in tasks]),
        np.concatenate([task.right for task in tasks]),
        np.concatenate([task.weight for task in tasks]) / sum(task.share for task in tasks),
        (MARGIN_HIDDEN, MARGIN_STEPS, MARGIN_DECAY, MARGIN_LEARNING_RATE),
    )
    right = np.concatenate([network.score(network.drive(task.base[task.right])) for task in tasks])
    return network, float(np.float32(np.quantile(right, GIVEN_UP)))


def _examples(tasks: Sequence[MiningTask]) -> tuple[NDArray, NDArray, NDArray]:
    """Return features (p, n), right (p,) bool and weights (p,) of the compared candidates that count."""
    some = [task.hopeful & task.counts for task in tasks]
    features = np.concatenate([task.features[task.counts[task.hopeful]] for task in tasks])
    right = np.concatenate([task.right[one] for task, one in zip(tasks, some, strict=True)])
    weight = np.concatenate([task.weight[one] for task, one in zip(tasks, some, strict=True)])
    return features, right, weight


def _piece_network(tasks: Sequence[MiningTask], fitting: Fitting) -> Network:
    features, right, weight = _examples(tasks)
    return _fitted(
        features,
        right,
        weight / sum(task.share for task in tasks),
        (fitting.hidden, fitting.steps, fitting.decay, LEARNING_RATE),
        _joined([task.near for task in tasks]),
    )


def _leaning(network: Network, tasks: Sequence[MiningTask]) -> Network:
    """Return the network with LEAN times the log ratio margin added, calibrated to log odds again.

    Logistic regression on the score and the size of the corpora, with an intercept.
    """
    features, right, weight = _examples(tasks)
    scores = network.score(network.drive(features)) + LEAN * features[:, LOG_RATIO]
    times, plus, by_size = _logistic(
        np.stack([scores, np.ones(len(scores)), features[:, SIZE]], axis=1), right, weight / weight.sum()
    )
    mean, scale = network.mean.astype(np.float64), network.scale.astype(np.float64)
    linear = np.zeros((2, len(mean)))
    linear[0, LOG_RATIO] = linear[1, SIZE] = FAINT
    slopes = np.array([times * LEAN, by_size])
    columns = [LOG_RATIO, SIZE]
    constant = times * network.constant + plus + slopes @ mean[columns]
    return Network(
        np.concatenate([network.hidden, linear]).astype(np.float32),
        np.concatenate([network.bias, np.zeros(2)]).astype(np.float32),
        np.concatenate([times * network.out, slopes * scale[columns] / FAINT]).astype(np.float32),
        constant.astype(np.float32),
        network.mean,
        network.scale,
    )


def _logistic(columns: NDArray, right: NDArray, weight: NDArray) -> NDArray[np.float64]:
    """Return the weights (c,) of a logistic regression on columns (n, c), without a penalty."""

    def loss(at: NDArray) -> tuple[float, NDArray]:
        z = columns @ at
        error = expit(z) - right
        value = float(weight @ (np.logaddexp(0, z) - right * z))
        return value, columns.T @ (weight * error)

    start = np.zeros(columns.shape[1])
    start[0] = 1 / (1 + LEAN / 10)
    found: NDArray[np.float64] = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return found


def _fitted(
    features: NDArray,
    right: NDArray,
    weight: NDArray,
    how: tuple[int, int, float, float],
    choices: Choices | None = None,
) -> Network:
    """Fit a network by weighted logistic loss; full batches, AdamW, cosine schedule.

    how: units, steps, decay, learning rate.
    """
    hidden, steps, decay, learning_rate = how
    torch.manual_seed(NETWORK_SEED)
    mean, scale = features.mean(0), features.std(0) + 1e-6

    def usual(values: NDArray) -> torch.Tensor:
        return torch.from_numpy((values - mean) / scale).float()

    x, y, w = usual(features), torch.from_numpy(right).float(), torch.from_numpy(weight).float()
    network = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1)
    )
    optimizer = torch.optim.AdamW(network.parameters(), learning_rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    if choices is not None:
        near = usual(choices.features)
        translations, of = torch.from_numpy(choices.src == choices.tgt), torch.from_numpy(choices.of)
    for _ in range(steps):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(network(x)[:, 0], y, w, reduction="sum")
        if choices is not None:
            loss = loss + CHOICE_WEIGHT * _choice_loss(network(near)[:, 0], translations, of)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    parts = {key: value.detach().numpy() for key, value in network.state_dict().items()}
    arrays = parts["0.weight"], parts["0.bias"], parts["2.weight"][0], parts["2.bias"], mean, scale
    return Network(*(np.ascontiguousarray(array, dtype=np.float32) for array in arrays))


def _choice_loss(score: torch.Tensor, right: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
    """Return the mean over sentences of minus the log softmax of the right neighbour."""
    sentences = int(of[-1]) + 1 if len(of) else 0
    if not sentences:
        return score.sum() * 0
    highest = torch.full((sentences,), -torch.inf).scatter_reduce(0, of, score.detach(), "amax")
    total = torch.zeros(sentences).index_add(0, of, torch.exp(score - highest[of]))
    return (torch.log(total) + highest).mean() - score[right].sum() / sentences
