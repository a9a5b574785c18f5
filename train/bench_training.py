"""Pairs per second of training against the same model written plainly, step by step in one process.

Example: python train/bench_training.py --threads 2

Two workloads on made-up batches (lengths and piece frequencies like running text): `mean`, the mean-of-pieces
encoder with the contrastive objective (batch 4,096, d 256), and `paper`, the configuration of Mao et al. 2021
(2 layers, d 512, 50,000 pieces, batch 128, ugt + 2 align + 2 sim). The peer is what one writes first: batches padded
to their longest sentence, nn.TransformerEncoder, the whole matrix of logits or similarities, autograd for everything.
Both start from the same weights, see the same batches and must come to the same loss.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.training.losses import piece_counts
from bitextmine.training.objectives.registry import Objectives, Setup, Views
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.recipe import Recipe, load_recipe
from bitextmine.training.run import make_optimizer, set_rates

WORKLOADS: dict[str, dict[str, object]] = {
    "mean": {"model.layers": 0, "model.dim": 256, "train.batch": 4096, "vocabulary.size": 48_000},
    "paper": {
        "model.layers": 2,
        "model.dim": 512,
        "model.heads": 8,
        "model.ffn": 1024,
        "train.batch": 128,
        "vocabulary.size": 50_000,
        "train.objective": {"ugt": 1.0, "align": 2.0, "sim": 2.0},
    },
}


def make_batch(n: int, vocabulary: int, rng: np.random.Generator) -> TokenPairs:
    """Sentence lengths log-normal with a median of 22 pieces, pairs of like length, Zipf-like pieces."""
    base = rng.lognormal(np.log(22), 0.6, n)
    sides = []
    for _ in range(2):
        lengths = np.clip(base * rng.lognormal(0, 0.15, n), 2, 200).astype(np.int64)
        ids = np.minimum(rng.zipf(1.2, lengths.sum()), vocabulary - 1).astype(np.int32)
        sides.append(Pieces(ids, np.concatenate([[0], np.cumsum(lengths)])))
    return TokenPairs(sides[0], sides[1], rng.integers(0, 2**62, (2, n)).astype(np.uint64))


class Plain(nn.Module):
    """The same network from torch's own parts, for padded batches."""

    def __init__(self, model: SentenceModel) -> None:
        super().__init__()
        c = model.config
        self.config = c
        self.embedding = nn.Embedding(c.vocab_size, c.dim)
        self.embedding.load_state_dict(model.embedding.state_dict())
        if c.layers:
            self.positions = nn.Embedding(c.max_pieces, c.dim)
            self.positions.load_state_dict(model.positions.state_dict())
            layer = nn.TransformerEncoderLayer(
                c.dim, c.heads, c.ffn, c.dropout, "gelu", batch_first=True, norm_first=True
            )
            self.encoder = nn.TransformerEncoder(
                layer, c.layers, nn.LayerNorm(c.dim), enable_nested_tensor=False
            )
            for theirs, ours in zip(self.encoder.layers, model.layers, strict=True):
                attention = theirs.self_attn
                pairs = (
                    (attention.in_proj_weight, ours.qkv.weight),
                    (attention.in_proj_bias, ours.qkv.bias),
                    (attention.out_proj.weight, ours.out.weight),
                    (attention.out_proj.bias, ours.out.bias),
                    (theirs.linear1.weight, ours.up.weight),
                    (theirs.linear1.bias, ours.up.bias),
                    (theirs.linear2.weight, ours.down.weight),
                    (theirs.linear2.bias, ours.down.bias),
                )
                for a, b in pairs:
                    a.data.copy_(b.data)

    def forward(self, pieces: Pieces) -> Tensor:
        edges = itertools.pairwise(pieces.offsets)
        rows = [torch.from_numpy(pieces.ids[a:b].astype(np.int64)) for a, b in edges]
        padded = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        inside = torch.arange(padded.shape[1])[None] < torch.tensor([len(row) for row in rows])[:, None]
        hidden = self.embedding(padded)
        if self.config.layers:
            hidden = functional.dropout(
                hidden + self.positions.weight[: padded.shape[1]], self.config.dropout
            )
            hidden = self.encoder(hidden, src_key_padding_mask=~inside)
        return (hidden * inside[:, :, None]).sum(1) / inside.sum(1, keepdim=True)


def plain_loss(plain: Plain, head: nn.Module | None, views: Views, recipe: Recipe) -> Tensor:
    """Compute the loss of the recipe with whole matrices; ``views`` only gives the masked pieces."""
    n = len(views.batch)
    if head is None:
        u, v = (functional.normalize(plain(side)) for side in (views.batch.src, views.batch.tgt))
        scores = u @ v.T / recipe.train.temperature
        right = torch.arange(n)
        return (functional.cross_entropy(scores, right) + functional.cross_entropy(scores.T, right)) / 2
    masked = views.one_masked
    vectors = torch.cat(
        [plain(masked.pieces.take(np.arange(n))), plain(masked.pieces.take(np.arange(n, 2 * n)))]
    )
    log_p = (head(vectors) @ plain.embedding.weight.T + head.bias).log_softmax(1)
    piece = np.full(2 * n, -1, dtype=np.int64)
    piece[np.arange(n) + n * masked.side] = masked.piece
    targets = piece_counts(Pieces.join([views.batch.tgt, views.batch.src])).mixed(piece, 0.5)
    q = torch.zeros_like(log_p)
    q.index_put_(
        tuple(map(torch.from_numpy, (targets.row, targets.piece))),
        torch.from_numpy(targets.mass),
        accumulate=True,
    )
    ugt = functional.kl_div(log_p, q, reduction="sum") / n
    u, v = vectors[:n], vectors[n:]
    scores = u @ v.T
    align = -(scores.log_softmax(1).diagonal() + scores.log_softmax(0).diagonal()).mean()
    difference = (u @ u.T).softmax(1) - (v @ v.T).softmax(1)
    sim = -torch.log(torch.cos(torch.pi / 2 * difference)).sum(1).mean()
    return ugt + 2 * align + 2 * sim


def measure(name: str, steps: int, batches: int, dropout: float) -> None:
    settings = WORKLOADS[name] | {"train.piece_dropout": 0.0, "model.dropout": dropout}
    recipe = load_recipe(None, settings, pairs=["made-up.en-fr.tsv"])
    m = recipe.model
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    size = recipe.vocabulary.size
    model = SentenceModel(
        EncoderConfig(size, m.dim, m.layers, m.heads, m.ffn, m.dropout, m.max_pieces)
    ).train()
    model.initialise(m.initial_std)
    content = np.ones(size, dtype=bool)
    objectives = Objectives(recipe, Setup(recipe.train, model.config), content)
    heads = [part.head for part in objectives.parts.values() if hasattr(part, "head")]
    plain = Plain(model).train()
    plain_objectives = Objectives(recipe, Setup(recipe.train, model.config), content)
    plain_objectives.load_state_dict(objectives.state_dict())
    plain_heads = [part.head for part in plain_objectives.parts.values() if hasattr(part, "head")]
    data = [make_batch(recipe.train.batch, size, rng) for _ in range(batches)]
    ours = make_optimizer(model, objectives, recipe.train)
    theirs = torch.optim.AdamW(
        [*plain.parameters(), *plain_objectives.parameters()], lr=recipe.train.learning_rate
    )
    set_rates(ours, 1.0)

    def our_step(step: int) -> tuple[float, float]:
        def loss() -> Tensor:
            parts = objectives(model, data[step % batches], step)
            return sum((objectives.weights[key] * part for key, part in parts.items()), torch.zeros(()))

        return timed_step(loss, ours)

    def their_step(step: int) -> tuple[float, float]:
        views = Views(model, data[step % batches], recipe.train, content, step)
        if heads:  # choosing what to mask is the same work for both, and not what is compared
            with torch.no_grad():
                _ = views.one_masked
        head = plain_heads[0] if plain_heads else None
        return timed_step(lambda: plain_loss(plain, head, views, recipe), theirs)

    found = [(our_step(step), their_step(step)) for step in range(steps + 1)]
    first = [loss for _, loss in found.pop(0)]  # also the warm-up, and so not timed
    seconds = {"ours": [a[0] for a, _ in found], "plain": [b[0] for _, b in found]}
    ratio = statistics.median(b / a for a, b in zip(seconds["ours"], seconds["plain"], strict=True))
    rates = {key: recipe.train.batch / statistics.median(value) for key, value in seconds.items()}
    print(
        f"{name}: ours {rates['ours']:,.0f} pairs/s, plain {rates['plain']:,.0f} pairs/s, ratio {ratio:.2f} "
        f"(median of {steps} paired steps); first loss {first[0]:.4f} and {first[1]:.4f}"
    )


def timed_step(loss_of: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> tuple[float, float]:
    """Seconds of a whole training step, and its loss."""
    begin = time.perf_counter()
    loss = loss_of()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return time.perf_counter() - begin, float(loss.detach())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--steps", type=int, default=9, help="paired steps of each workload")
    parser.add_argument("--batches", type=int, default=4, help="different batches")
    parser.add_argument(
        "--dropout", type=float, default=0.0, help="of the layers; 0 makes the losses comparable"
    )
    parser.add_argument("workload", nargs="*", default=list(WORKLOADS), help="mean, paper (default: both)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.workload:
        measure(name, arguments.steps, arguments.batches, arguments.dropout)


if __name__ == "__main__":
    main()
