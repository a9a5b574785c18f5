"""Fit the scorer of `mine` to mined candidates with known translations.

Each corpus of a training gives mining tasks: its held-out pairs, hidden among sentences whose translations are not
there. The mined pairs are the examples, right if they are held-out pairs. The two networks of a scorer
(`mining.scorer`) learn the log odds; the right examples of a task have a fixed share of its weight, whatever their
number. The second network also learns to choose the translation among a sentence's neighbours, by the softmax of their
scores.

As text repeats itself, some wrong examples are translations after all: an example does not count as wrong if either of
its sentences is nearly equal to the translation of the other, which is known from elsewhere.
"""

import dataclasses
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save
from scipy.optimize import minimize
from scipy.special import expit
from torch.nn import functional

from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder.folder import SCORER, TOKENIZER, resolve
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.files.output import Destination
from bitextmine.mining import scorer as scoring
from bitextmine.mining.margin import candidates
from bitextmine.mining.pairing import ScoredPairs, retrieve
from bitextmine.mining.piece_features import PieceFeatures, Sentences
from bitextmine.mining.scorer import LOG_RATIO, NEIGHBOURS, SIZE, Scorer, ScorerNetwork
from bitextmine.mining.threshold import tune
from bitextmine.run import Run
from bitextmine.search.exact import search_both
from bitextmine.search.neighbours import Neighbours
from bitextmine.training.data.cache import PairCache, open_caches
from bitextmine.training.data.sampling import with_ngrams
from bitextmine.training.options import Fitting
from bitextmine.training.recipe import Recipe, resolve_corpora

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
# Of the two networks: units, steps of AdamW on all examples, weight decay, learning rate.
MARGIN_FIT, PIECE_FIT = (8, 150, 0.01, 3e-2), (32, 600, 0.1, 1e-2)
# Multiple of the log ratio margin added to the second network's score: that is fitted to text that the encoder was
# trained on, where pieces tell more than elsewhere.
LEAN = 30.0
# Inputs this small pass a hidden unit unchanged up to a millionth.
FAINT = 1e-3
SEED = 1
# Sentences without translation on either side, for the tasks in turn.
DISTRACTORS = (40_000, 5_000, 15_000, 1_000, 200)


@dataclasses.dataclass(frozen=True)
class TaskScore:
    """The result of a task: numbers of candidates, right ones and hidden pairs (gold), and the best F1 in per cent."""

    corpus: str
    candidates: int
    right: int
    gold: int
    f1_by_margin: float
    f1_by_scorer: float


def fit_scorer(
    folder: str | os.PathLike[str],
    recipe: Recipe,
    model: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    fitting: Fitting | None = None,
    *,
    force: bool = False,
    run: Run | None = None,
) -> tuple[Path, Scorer, list[TaskScore]]:
    """Fit a scorer, write it (safetensors; default: in the model's folder, where `mine` looks for it) and measure it.

    Args:
        folder: a model folder of `bitextmine train`, with its work folder.
        recipe: that of the training, whose held-out pairs it is fitted to.
        model: the encoder that mines, on the CPU (None: that of the folder).
        out: the file to write.
        fitting: the data and settings.
        force: overwrite the file.
        run: resources.

    Returns:
        The file, the scorer, and its results on the held-out pairs, which it was fitted to.

    Raises:
        BitextmineError: no corpus has enough held-out pairs, the encoder has no piece vectors, or a file cannot be
            read or written.
    """
    fitting, run, root = fitting or Fitting(), run or Run(), Path(folder)
    model = root if model is None else model
    target = resolve(model) / SCORER if out is None else Path(out)
    if target.is_dir() or (target.is_file() and not force):
        raise BitextmineError(f"{target}: the file exists; name another one, or pass --force to overwrite it")
    destination = Destination.of(target)
    destination.check()
    recipe = resolve_corpora(dataclasses.replace(recipe, max_line=run.max_line, errors=run.errors))
    encoder = load_encoder(model, "cpu")
    comparing = PieceFeatures(*encoder.piece_rows())
    tokenizer, own = Tokenizer(root / TOKENIZER, recipe.model.transliterate), encoder.tokenizer
    if not isinstance(own, Tokenizer) or own.pieces() != tokenizer.pieces():
        raise BitextmineError(
            f"{tokenizer.path}: not the vocabulary of {model}; name an encoder that has it with --model"
        )
    weights = fitting.corpora or {corpus.name: 1.0 for corpus in recipe.data.corpora}
    caches = [
        cache
        for cache in open_caches(root / "work" / "cache", recipe, tokenizer, run)
        if cache.corpus.name.startswith(tuple(weights)) and len(cache.valid) >= fitting.held_out
    ]
    if not caches:
        raise BitextmineError(
            f"{root}: --corpora {','.join(weights)}: none of them has {fitting.held_out} held-out pairs; lower "
            "--held-out, or name others"
        )
    # The weight of a name is divided among the tasks of its corpora; a corpus belongs to the first that it starts with.
    prefixes = [next(name for name in weights if cache.corpus.name.startswith(name)) for cache in caches]
    tasks: list[MiningTask] = []
    with run.progress(len(caches) * fitting.draws, "mine", "tasks") as bar:
        for (cache, prefix), _ in itertools.product(zip(caches, prefixes, strict=True), range(fitting.draws)):
            rng = np.random.default_rng([SEED, len(tasks)])
            sides = _hidden_pairs(cache, DISTRACTORS[len(tasks) % len(DISTRACTORS)], rng)
            extended = [with_ngrams(side, own.ngrams, recipe.model.max_pieces) for side in sides]
            share = weights[prefix] / (prefixes.count(prefix) * fitting.draws)
            tasks.append(_mined(cache.corpus.name, share, encoder, extended, len(cache.valid)))
            bar.update(1)
    if not any(task.right.any() for task in tasks):
        raise BitextmineError(f"{root}: the encoder finds none of the held-out pairs; train it longer")
    margin, cut = _margin_network(tasks)
    with run.progress(len(tasks), "compare pieces", "tasks") as bar:
        for task in tasks:
            task.compare(comparing, margin, cut)
            bar.update(1)
    scorer = Scorer(margin, _piece_network(tasks), cut, SHARE)
    with destination.open() as file:
        file.write(save(scorer.arrays()))
    return target, scorer, [task.measured(scorer) for task in tasks]


class Choices(NamedTuple):
    """The neighbours, q pairs, of sentences that have their translation among them.

    Source and target rows (q,), features (q, n), and the sentence of each pair (q,), from 0.
    """

    src: NDArray
    tgt: NDArray
    features: NDArray
    of: NDArray


@dataclasses.dataclass
class MiningTask:
    """The p candidates of a corpus, with their margin scores, and the neighbours of held-out sentences.

    Attributes:
        share: the task's weight.
        gold: number of hidden pairs.
        sentences: both sides, until `compare`.
        base: features (p, CANDIDATE_FEATURES).
        right: (p,) bool, the held-out pairs.
        counts: (p,) bool, False for wrong examples that may be translations after all.
        near: the neighbours; from `compare` on their features are of the pieces, too.
        hopeful: (p,) bool, the candidates whose pieces were compared; features: theirs.
    """

    corpus: str
    share: float
    gold: int
    sentences: tuple[Pieces, Pieces]
    pairs: ScoredPairs
    base: NDArray
    right: NDArray
    counts: NDArray
    near: Choices
    hopeful: NDArray = dataclasses.field(init=False)
    features: NDArray = dataclasses.field(init=False)

    @property
    def weight(self) -> NDArray:
        """Return the weights of the candidates, (p,): they sum to the task's; the right ones have SHARE of it."""
        weight: NDArray = np.zeros(len(self.counts))
        for rows, share in ((self.counts & self.right, SHARE), (self.counts & ~self.right, 1 - SHARE)):
            weight[rows] = share / max(1, rows.sum()) * self.share
        return weight

    def compare(self, comparing: PieceFeatures, margin: ScorerNetwork, cut: float) -> None:
        """Compute the piece features of candidates that reach ``cut``, and free their sentences."""
        src, tgt = self.sentences
        self.hopeful = margin.score(margin.drive(self.base)) >= cut

        def features(rows: NDArray, columns: NDArray, base: NDArray) -> NDArray:
            compared = comparing.features(Sentences(src, rows), Sentences(tgt, columns))
            return np.concatenate([base, compared], axis=1)

        self.features = features(
            *(part[self.hopeful] for part in (self.pairs.src, self.pairs.tgt, self.base))
        )
        self.near = self.near._replace(features=features(*self.near[:3]))
        del self.sentences

    def measured(self, scorer: Scorer) -> TaskScore:
        """Return the best F1 by margin and by a scorer."""
        score = scorer.margin.score(scorer.margin.drive(self.base))
        score[self.hopeful] = scorer.pieces.score(scorer.pieces.drive(self.features))
        score, by_margin, right = (values[self.counts] for values in (score, self.pairs.score, self.right))
        before, after = (100 * tune(values, right, self.gold).f1 for values in (by_margin, score))
        return TaskScore(self.corpus, len(right), int(right.sum()), self.gold, before, after)


def _hidden_pairs(
    cache: PairCache, distractors: int, rng: np.random.Generator
) -> tuple[Pieces, Pieces, Pieces, Pieces]:
    """Hide the held-out pairs among sentences of training pairs.

    Return source and target sentences, the held-out pairs first and in order, and the translations of each side.
    """
    gold = cache.valid.take(np.arange(len(cache.valid)))
    rows = rng.permutation(np.arange(len(cache.train)))
    most = min(distractors, len(rows) // 2)
    here, there = (cache.train.take(np.sort(numbers)) for numbers in (rows[:most], rows[most : 2 * most]))
    src, tgt = Pieces.join([gold.src, here.src]), Pieces.join([gold.tgt, there.tgt])
    return src, tgt, Pieces.join([gold.tgt, here.tgt]), Pieces.join([gold.src, there.src])


def _mined(corpus: str, share: float, encoder: Encoder, sides: Sequence[Pieces], gold: int) -> MiningTask:
    """Mine the first two of the sides; the others are their translations, all of them."""
    x, y, of_x, of_y = (encoder.encode_pieces(side).astype(np.float16) for side in sides)
    wide = search_both(x, y, NEAREST)
    narrow = Neighbours(*(getattr(wide, f.name)[:, :NEIGHBOURS] for f in dataclasses.fields(Neighbours)))
    pairs = retrieve(candidates(narrow, NEIGHBOURS))
    cosine = np.maximum(
        scoring.pair_cosines(pairs.src, pairs.tgt, narrow.fwd_sim, narrow.fwd_id),
        scoring.pair_cosines(pairs.tgt, pairs.src, narrow.bwd_sim, narrow.bwd_id),
    )
    base = scoring.candidate_features(pairs.src, pairs.tgt, cosine, narrow, NEIGHBOURS)
    nearly = np.maximum(_cosines(of_x[pairs.src], y[pairs.tgt]), _cosines(x[pairs.src], of_y[pairs.tgt]))
    near = _near(wide, narrow, min(gold, ASKED))
    right = (pairs.src == pairs.tgt) & (pairs.src < gold)
    counts = right | (nearly < SAME)
    return MiningTask(corpus, share, gold, (sides[0], sides[1]), pairs, base, right, counts, near)


def _cosines(x: NDArray, y: NDArray) -> NDArray:
    return np.asarray(np.einsum("ij,ij->i", x.astype(np.float32), y.astype(np.float32)))


def _near(wide: Neighbours, narrow: Neighbours, asked: int) -> Choices:
    """Return the neighbours of each side's first sentences that have their translation among them."""
    parts = []
    for ids, sim, order in ((wide.fwd_id, wide.fwd_sim, 1), (wide.bwd_id, wide.bwd_sim, -1)):
        rows = np.flatnonzero((ids[:asked] == np.arange(min(asked, len(ids)))[:, None]).any(axis=1))
        row, column = np.nonzero(ids[rows] >= 0)
        src, tgt = (rows[row], ids[rows[row], column])[::order]
        cosine = sim[rows[row], column].astype(np.float64)
        parts.append(Choices(src, tgt, scoring.candidate_features(src, tgt, cosine, narrow, NEIGHBOURS), row))
    return _joined(parts)


def _joined(parts: Sequence[Choices]) -> Choices:
    sentences = np.cumsum([0, *(int(part.of.max(initial=-1)) + 1 for part in parts)])
    of = [part.of + before for part, before in zip(parts, sentences, strict=False)]
    src, tgt, features, _ = map(np.concatenate, zip(*parts, strict=True))
    return Choices(src, tgt, features, np.concatenate(of))


def _margin_network(tasks: Sequence[MiningTask]) -> tuple[ScorerNetwork, float]:
    """Return the first network, and the score that all but GIVEN_UP of the right candidates reach."""
    base, right, weight = (
        np.concatenate([getattr(task, name) for task in tasks]) for name in ("base", "right", "weight")
    )
    weight /= sum(task.share for task in tasks)
    network = _fitted(base, right, weight, MARGIN_FIT)
    right = np.concatenate([network.score(network.drive(task.base[task.right])) for task in tasks])
    return network, float(np.float32(np.quantile(right, GIVEN_UP)))


def _piece_network(tasks: Sequence[MiningTask]) -> ScorerNetwork:
    """Fit the second network to the compared candidates that count."""
    features = np.concatenate([task.features[task.counts[task.hopeful]] for task in tasks])
    right, weight = (
        np.concatenate([getattr(task, name)[task.hopeful & task.counts] for task in tasks])
        for name in ("right", "weight")
    )
    near = _joined([task.near for task in tasks])
    network = _fitted(features, right, weight / sum(task.share for task in tasks), PIECE_FIT, near)
    return _leaning(network, features, right, weight / weight.sum())


def _leaning(network: ScorerNetwork, features: NDArray, right: NDArray, weight: NDArray) -> ScorerNetwork:
    """Return the network with LEAN times the log ratio margin added, calibrated to log odds again.

    Logistic regression on the score and the size of the corpora, with an intercept.
    """
    scores = network.score(network.drive(features)) + LEAN * features[:, LOG_RATIO]
    columns = np.stack([scores, np.ones(len(scores)), features[:, SIZE]], axis=1)
    times, plus, by_size = _logistic(columns, right, weight)
    mean, scale = network.mean.astype(np.float64), network.scale.astype(np.float64)
    linear = np.zeros((2, len(mean)))
    linear[0, LOG_RATIO] = linear[1, SIZE] = FAINT
    slopes = np.array([times * LEAN, by_size])
    inputs = [LOG_RATIO, SIZE]
    constant = times * network.constant + plus + slopes @ mean[inputs]
    return ScorerNetwork(
        np.concatenate([network.hidden, linear]).astype(np.float32),
        np.concatenate([network.bias, np.zeros(2)]).astype(np.float32),
        np.concatenate([times * network.out, slopes * scale[inputs] / FAINT]).astype(np.float32),
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
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


def _fitted(
    features: NDArray,
    right: NDArray,
    weight: NDArray,
    how: tuple[int, int, float, float],
    choices: Choices | None = None,
) -> ScorerNetwork:
    """Fit a network by weighted logistic loss; full batches, AdamW, cosine schedule."""
    hidden, steps, decay, learning_rate = how
    torch.manual_seed(SEED)
    mean, scale = features.mean(0), features.std(0) + 1e-6

    def usual(values: NDArray) -> torch.Tensor:
        return torch.from_numpy((values - mean) / scale).float()

    x, y, w = usual(features), torch.from_numpy(right).float(), torch.from_numpy(weight).float()
    layers = torch.nn.Linear(x.shape[1], hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1)
    network = torch.nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(network.parameters(), learning_rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    if choices is not None:
        near = usual(choices.features)
        translations, of = torch.from_numpy(choices.src == choices.tgt), torch.from_numpy(choices.of)
    for _ in range(steps):
        loss = functional.binary_cross_entropy_with_logits(network(x)[:, 0], y, w, reduction="sum")
        if choices is not None:
            loss = loss + CHOICE_WEIGHT * _choice_loss(network(near)[:, 0], translations, of)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    parts = {key: value.detach().numpy() for key, value in network.state_dict().items()}
    arrays = parts["0.weight"], parts["0.bias"], parts["2.weight"][0], parts["2.bias"], mean, scale
    return ScorerNetwork(*(np.ascontiguousarray(array, dtype=np.float32) for array in arrays))


def _choice_loss(score: torch.Tensor, right: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
    """Return the mean over sentences of minus the log softmax of the right neighbour."""
    sentences = int(of[-1]) + 1 if len(of) else 0
    if not sentences:
        return score.sum() * 0
    highest = torch.full((sentences,), -torch.inf).scatter_reduce(0, of, score.detach(), "amax")
    total = torch.zeros(sentences).index_add(0, of, torch.exp(score - highest[of]))
    return (torch.log(total) + highest).mean() - score[right].sum() / sentences
