"""Fits the scorer of `mine --rescore` to mined candidates whose translations are known.

Example:  python mine/fit_rescoring.py TRAINED --recipe europe5 --data FOLDER --model europe5 \\
              --draws 3 --out bitextmine/mine/scorer.safetensors

TRAINED is what `bitextmine train` made: its work/cache (or --cache) says which pairs were held out of training. Each
corpus gives --draws mining tasks: its held-out pairs, hidden among --distractors sentences of either side that have no
translation there, drawn anew each time. The pairs that mining finds are the examples, right if they are held-out pairs.
A network of one hidden layer learns the logarithm of the odds, with every task weighing the same. Prints, for each task
in turn, the best F1 by margin and by a scorer fitted to the other corpora.

Only corpora without near copies of lines will do: where distractors are translations of each other, right examples
count as wrong (documentation, everyday sentences).
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from bitextmine.encoder import load_encoder
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.mine.candidates import candidates
from bitextmine.mine.piece_features import PieceFeatures
from bitextmine.mine.retrieval import retrieve
from bitextmine.mine.scorer import Scorer, candidate_features, pair_cosines
from bitextmine.mine.threshold import tune
from bitextmine.search.exact import search_both
from bitextmine.train.cache import PairCache, open_caches
from bitextmine.train.recipe import Recipe, load_recipe
from bitextmine.train.sampling import with_ngrams

K = 4


@dataclasses.dataclass(frozen=True)
class Task:
    """The candidates of a corpus: features (p, f), right (p,) bool, by margin (p,); gold: how many pairs there were."""

    name: str
    features: np.ndarray
    right: np.ndarray
    margin: np.ndarray
    gold: int


def hidden_pairs(
    cache: PairCache, recipe: Recipe, tokenizer: Tokenizer, distractors: int, rng: np.random.Generator
) -> tuple[Pieces, Pieces, int]:
    """Source and target sentences of a task; the first of both sides are translations of each other, in order."""
    gold = cache.valid.take(np.arange(len(cache.valid)))
    rows = rng.permutation(len(cache.train))
    most = min(distractors, len(rows) // 2)
    sides = [
        with_ngrams(
            Pieces.join([getattr(gold, side), getattr(cache.train.take(np.sort(others)), side)]),
            tokenizer.ngrams,
            recipe.model.max_pieces,
        )
        for side, others in (("src", rows[:most]), ("tgt", rows[most : 2 * most]))
    ]
    return sides[0], sides[1], len(gold)


def mined(name: str, encoder: Encoder, comparing: PieceFeatures, src: Pieces, tgt: Pieces, gold: int) -> Task:
    found = search_both(*(encoder.encode_pieces(side).astype(np.float16) for side in (src, tgt)), K)
    pairs = retrieve(candidates(found, K))
    cosine = np.maximum(
        pair_cosines(pairs.src, pairs.tgt, found.fwd_sim, found.fwd_id),
        pair_cosines(pairs.tgt, pairs.src, found.bwd_sim, found.bwd_id),
    )
    base = candidate_features(pairs.src, pairs.tgt, cosine, found, K)
    features = np.concatenate([base, comparing.features(src.take(pairs.src), tgt.take(pairs.tgt))], axis=1)
    return Task(name, features, (pairs.src == pairs.tgt) & (pairs.src < gold), pairs.score, gold)


def fitted(tasks: list[Task], hidden: int, steps: int, decay: float, seed: int = 1) -> Scorer:
    """Logistic loss, every task weighing the same; full batches, AdamW."""
    torch.manual_seed(seed)
    features = np.concatenate([task.features for task in tasks])
    mean, scale = features.mean(0), features.std(0) + 1e-6
    x = torch.from_numpy((features - mean) / scale).float()
    y = torch.from_numpy(np.concatenate([task.right for task in tasks])).float()
    weight = torch.from_numpy(
        np.concatenate([np.full(len(task.right), 1 / len(task.right)) for task in tasks])
    ).float()
    network = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1)
    )
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
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


def best_f1(score: np.ndarray, task: Task) -> float:
    return 100 * tune(score, task.right, task.gold).f1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trained", type=Path, help="a model folder with its recipe.json and work/cache")
    parser.add_argument("--recipe", required=True, help="the recipe that it was trained by")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the recipe's corpora")
    parser.add_argument("--cache", type=Path, help="the tokenised corpora, where not in TRAINED/work/cache")
    parser.add_argument("--model", default="default", help="the encoder that mines")
    parser.add_argument("--corpora", default="europarl", help="comma-separated beginnings of names")
    parser.add_argument("--distractors", type=int, default=60_000)
    parser.add_argument("--draws", type=int, default=1, help="tasks of each corpus")
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.draws < 1:
        parser.error(f"--draws {args.draws}: at least 1")
    recipe = load_recipe(args.recipe, folder=args.data)
    encoder = load_encoder(args.model, "cpu")
    caches = open_caches(
        args.cache or args.trained / "work" / "cache", recipe, Tokenizer(args.trained / "tokenizer.model")
    )
    wanted = tuple(args.corpora.split(","))
    comparing = PieceFeatures(*encoder.piece_rows())
    tasks = []
    for cache in caches:
        name = cache.corpus.name
        if len(cache.valid) < 500 or not name.startswith(wanted):
            continue
        for _ in range(args.draws):
            rng = np.random.default_rng([args.seed, len(tasks)])
            src, tgt, gold = hidden_pairs(cache, recipe, encoder.tokenizer, args.distractors, rng)
            tasks.append(mined(name, encoder, comparing, src, tgt, gold))
    names = {task.name for task in tasks}
    if len(names) < 2:
        parser.error(
            f"--corpora {args.corpora}: {len(names)} of 500 held-out pairs or more; each needs another one"
        )
    print(
        "| corpus | candidates | right | F1 by margin | F1 by a scorer fitted to the others |\n|---|---|---|---|---|"
    )
    scorers = {
        name: fitted([other for other in tasks if other.name != name], args.hidden, args.steps, args.decay)
        for name in sorted(names)
    }
    for task in tasks:
        scorer = scorers[task.name]
        again = scorer.score(scorer.drive(task.features, 0))
        print(
            f"| {task.name} | {len(task.right):,} | {int(task.right.sum()):,} of {task.gold:,} | "
            f"{best_f1(task.margin, task):.2f} | {best_f1(again, task):.2f} |",
            flush=True,
        )
    scorer = fitted(tasks, args.hidden, args.steps, args.decay)
    save_file({field.name: getattr(scorer, field.name) for field in dataclasses.fields(scorer)}, args.out)
    print(f"\n{args.out}: scorer {scorer.hash}")


if __name__ == "__main__":
    main()
