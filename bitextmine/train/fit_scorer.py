"""Fits the scorer of `mine --rescore` to mined candidates whose translations are known.

A training held pairs out. Each of its corpora gives mining tasks: those pairs, hidden among sentences of either side
that have no translation there. The pairs that mining finds are the examples, right if they are held-out pairs. A
network of one hidden layer learns the logarithm of the odds, with every task weighing the same.

Only corpora without near copies of lines will do: where distractors are translations of each other, right examples
count as wrong (documentation, everyday sentences).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save

from bitextmine.console import progress
from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder.folder import TOKENIZER
from bitextmine.encoder.ngrams import Ngrams
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.streams import open_output
from bitextmine.mine.candidates import candidates
from bitextmine.mine.piece_features import PieceFeatures
from bitextmine.mine.retrieval import retrieve
from bitextmine.mine.scorer import Scorer, candidate_features, pair_cosines
from bitextmine.mine.threshold import tune
from bitextmine.search.exact import search_both
from bitextmine.train.cache import PairCache, open_caches
from bitextmine.train.outputs import check_file_output
from bitextmine.train.recipe import Recipe
from bitextmine.train.sampling import with_ngrams

__all__ = ["FittedScorer", "Fitting", "TaskScore", "fit_scorer"]

K = 4
LEARNING_RATE = 1e-2
NETWORK_SEED = 1


@dataclasses.dataclass(frozen=True)
class Fitting:
    """What a scorer is fitted to, and how.

    corpora: beginnings of the names of those that give tasks; held_out: the fewest held-out pairs that one must have;
    draws: tasks of each, with other distractors; distractors: sentences without a translation on either side of a task;
    seed: of what is drawn. hidden: units of the network; steps: of AdamW, on all examples; decay: its weight decay.
    """

    corpora: tuple[str, ...] = ("europarl",)
    held_out: int = 500
    draws: int = 1
    distractors: int = 60_000
    seed: int = 1
    hidden: int = 32
    steps: int = 600
    decay: float = 0.1


@dataclasses.dataclass(frozen=True)
class TaskScore:
    """A task: its corpus, how many candidates there were, how many of them right, of how many pairs (gold), and the
    best F1 (per cent) by margin, and by a scorer fitted to the other corpora."""

    corpus: str
    candidates: int
    right: int
    gold: int
    f1_by_margin: float
    f1_by_scorer: float


@dataclasses.dataclass(frozen=True)
class FittedScorer:
    """The scorer, and how well others like it do on corpora that they were not fitted to."""

    scorer: Scorer
    tasks: tuple[TaskScore, ...]


def fit_scorer(
    trained: str | os.PathLike[str],
    recipe: Recipe,
    out: str | os.PathLike[str],
    fitting: Fitting | None = None,
    *,
    model: str | os.PathLike[str] = "default",
    cache: str | os.PathLike[str] | None = None,
    force: bool = False,
    show_progress: bool | None = None,
) -> FittedScorer:
    """Writes a scorer (safetensors) to ``out``, a file that ``force`` allows to write over.

    trained: a model folder of `bitextmine train`, made by ``recipe``; ``cache`` (or its work/cache) has the tokenised
    corpora, and tells which pairs were held out. model: the encoder that mines, on the CPU.

    Raises UsageError for an impossible fitting; BitextmineError for fewer than two corpora with enough held-out pairs
    (each is measured with a scorer fitted to the others), an encoder without piece vectors, and files that cannot be
    read or written.
    """
    fitting = fitting or Fitting()
    _check(fitting)
    place = Path(out)
    check_file_output(place, force)
    encoder = load_encoder(model, "cpu")
    comparing = PieceFeatures(*encoder.piece_rows())
    folder = Path(trained) / "work" / "cache" if cache is None else Path(cache)
    tokenizer, own = Tokenizer(Path(trained) / TOKENIZER), encoder.tokenizer
    if not isinstance(own, Tokenizer) or own.pieces() != tokenizer.pieces():
        raise BitextmineError(
            f"{tokenizer.path}: another vocabulary than that of {os.fspath(model)}, which is to mine the same pieces; "
            "name an encoder of this vocabulary with --model"
        )
    caches = [
        cache
        for cache in open_caches(folder, recipe, tokenizer, show_progress=show_progress)
        if cache.corpus.name.startswith(fitting.corpora) and len(cache.valid) >= fitting.held_out
    ]
    names = sorted({cache.corpus.name for cache in caches})
    if len(names) < 2:
        raise BitextmineError(
            f"{folder}: --corpora {','.join(fitting.corpora)}: {len(names)} of {fitting.held_out} held-out pairs or "
            "more, but each needs another one"
        )
    tasks: list[MiningTask] = []
    disable = None if show_progress is None else not show_progress
    with progress(len(caches) * fitting.draws, "mine", "tasks", disable) as bar:
        for one in caches:
            for _ in range(fitting.draws):
                rng = np.random.default_rng([fitting.seed, len(tasks)])
                src, tgt, gold = _hidden_pairs(one, recipe, own.ngrams, fitting.distractors, rng)
                tasks.append(_mined(one.corpus.name, encoder, comparing, src, tgt, gold))
                bar.update(1)
    measured = _measured(tasks, names, fitting)
    scorer = _fitted(tasks, fitting)
    arrays = {field.name: getattr(scorer, field.name) for field in dataclasses.fields(scorer)}
    with open_output(place, "binary") as file:
        file.write(save(arrays))
    return FittedScorer(scorer, measured)


def _check(fitting: Fitting) -> None:
    for option, value, least in (
        ("draws", fitting.draws, 1),
        ("distractors", fitting.distractors, 0),
        ("held-out", fitting.held_out, 1),
        ("hidden", fitting.hidden, 1),
        ("steps", fitting.steps, 1),
        ("decay", fitting.decay, 0),
    ):
        if not value >= least:
            raise UsageError(f"--{option} {value}: at least {least}")


@dataclasses.dataclass(frozen=True)
class MiningTask:
    """The candidates of a corpus: features (p, f), right (p,) bool, by margin (p,); gold: how many pairs there were."""

    corpus: str
    features: NDArray
    right: NDArray
    margin: NDArray
    gold: int


def _hidden_pairs(
    cache: PairCache, recipe: Recipe, ngrams: Ngrams | None, distractors: int, rng: np.random.Generator
) -> tuple[Pieces, Pieces, int]:
    """Source and target sentences of a task; the first of both sides are translations of each other, in order."""
    gold = cache.valid.take(np.arange(len(cache.valid)))
    rows = rng.permutation(len(cache.train))
    most = min(distractors, len(rows) // 2)
    src = cache.train.take(np.sort(rows[:most])).src
    tgt = cache.train.take(np.sort(rows[most : 2 * most])).tgt
    sides = [
        with_ngrams(Pieces.join([known, other]), ngrams, recipe.model.max_pieces)
        for known, other in ((gold.src, src), (gold.tgt, tgt))
    ]
    return sides[0], sides[1], len(gold)


def _mined(
    corpus: str, encoder: Encoder, comparing: PieceFeatures, src: Pieces, tgt: Pieces, gold: int
) -> MiningTask:
    x, y = (encoder.encode_pieces(side).astype(np.float16) for side in (src, tgt))
    found = search_both(x, y, K)
    pairs = retrieve(candidates(found, K))
    cosine = np.maximum(
        pair_cosines(pairs.src, pairs.tgt, found.fwd_sim, found.fwd_id),
        pair_cosines(pairs.tgt, pairs.src, found.bwd_sim, found.bwd_id),
    )
    base = candidate_features(pairs.src, pairs.tgt, cosine, found, K)
    features = np.concatenate([base, comparing.features(src.take(pairs.src), tgt.take(pairs.tgt))], axis=1)
    return MiningTask(corpus, features, (pairs.src == pairs.tgt) & (pairs.src < gold), pairs.score, gold)


def _measured(tasks: Sequence[MiningTask], names: Sequence[str], fitting: Fitting) -> tuple[TaskScore, ...]:
    """Each task by a scorer that is fitted to the other corpora."""
    scorers = {name: _fitted([task for task in tasks if task.corpus != name], fitting) for name in names}
    found = []
    for task in tasks:
        scorer = scorers[task.corpus]
        again = scorer.score(scorer.drive(task.features, 0))
        f1 = [100 * tune(score, task.right, task.gold).f1 for score in (task.margin, again)]
        found.append(TaskScore(task.corpus, len(task.right), int(task.right.sum()), task.gold, *f1))
    return tuple(found)


def _fitted(tasks: Sequence[MiningTask], fitting: Fitting) -> Scorer:
    """Logistic loss, every task weighing the same; full batches, AdamW, a learning rate that falls as a cosine."""
    torch.manual_seed(NETWORK_SEED)
    features = np.concatenate([task.features for task in tasks])
    mean, scale = features.mean(0), features.std(0) + 1e-6
    x = torch.from_numpy((features - mean) / scale).float()
    y = torch.from_numpy(np.concatenate([task.right for task in tasks])).float()
    shares = np.concatenate([np.full(len(task.right), 1 / len(task.right)) for task in tasks])
    weight = torch.from_numpy(shares).float()
    network = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], fitting.hidden), torch.nn.Tanh(), torch.nn.Linear(fitting.hidden, 1)
    )
    optimizer = torch.optim.AdamW(network.parameters(), LEARNING_RATE, weight_decay=fitting.decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, fitting.steps)
    for _ in range(fitting.steps):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            network(x)[:, 0], y, weight, reduction="sum"
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    parts = {key: value.detach().numpy() for key, value in network.state_dict().items()}
    arrays = parts["0.weight"], parts["0.bias"], parts["2.weight"][0], parts["2.bias"], mean, scale
    return Scorer(*(np.ascontiguousarray(array, dtype=np.float32) for array in arrays))
