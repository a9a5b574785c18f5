"""Does a small transformer of our own pay as second encoder of `world56`? Two layers, trained for minutes.

    python mine/train_second.py DATA --minutes 10

DATA is the folder of training text and benchmarks. Trains two layers on the frozen piece vectors of `world56` with
contrastive loss, alone and added to the cosines of `world56`; a batch holds pairs, and those that `world56` takes for
their translations. Prints the table of bench_second.py --retrieval, sentences a second of processor time, and size.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import torch
from bench_dirty import Data
from bench_second import MEASURES, retrieval
from harness import parser, table
from torch import Tensor, nn
from torch.nn import functional

from bitextmine import Encoder
from bitextmine.encoder import load_encoder
from bitextmine.encoder.pieces import Network, Pieces
from bitextmine.files.source import iter_lines

LANGS = ("ru", "pl", "de", "fi", "el", "hu")
EACH, BLOCK, SEEDS, WRONG, DROPPED, LONGEST = 3_000, 4_096, 32, 5, 0.2, 64
DIM, HEADS, FFN, LAYERS = 256, 4, 1_024, 2


class Layers(nn.Module):
    """Layers on projected piece vectors, which begin as the sums of these; n-grams join in the sum only."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.values, self.scale = torch.from_numpy(network.values), torch.from_numpy(network.scale)
        self.words = network.config.vocab_size
        some = np.random.default_rng(0).choice(self.words, 20_000, replace=False)
        rows = network.values[some] * network.scale[some, None]
        self.scale = self.scale * float(DIM**0.5 / 4 / np.linalg.norm(rows, axis=1).mean())
        self.project = nn.Parameter(torch.from_numpy(np.linalg.svd(rows.T @ rows)[0][:, :DIM].copy()))
        self.places = nn.Parameter(torch.randn(200, DIM) * 0.02)
        shapes = {"qkv": (DIM, 3 * DIM), "out": (DIM, DIM), "up": (DIM, FFN), "down": (FFN, DIM)}
        for name, shape in shapes.items():
            setattr(self, name, nn.ModuleList(nn.Linear(*shape) for _ in range(LAYERS)))
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(2 * LAYERS))
        for values in (*self.out.parameters(), *self.down.parameters()):
            nn.init.zeros_(values)
        self.heat = nn.Parameter(torch.tensor([3.0, 2.5, 2.5]))  # logs of the factors of cosines

    def forward(self, pieces: Pieces) -> Tensor:
        """Return unit rows (n, DIM)."""
        ids, n = torch.from_numpy(pieces.ids).long(), len(pieces)
        row = torch.from_numpy(np.repeat(np.arange(n), pieces.lengths))
        word, rows = ids < self.words, self.values[ids].float() * self.scale[ids, None]
        total = torch.zeros(n, DIM).index_add(0, row[~word], (rows[~word] @ self.project.detach()).float())
        x, row = (rows[word] @ self.project).float(), row[word]
        counts = torch.bincount(row, minlength=n)
        place, longest = torch.arange(len(row)) - (counts.cumsum(0) - counts)[row], int(counts.max())
        at, blank = row * longest + place, torch.arange(longest) >= counts[:, None]
        state = x + self.places[place]
        for i in range(LAYERS):
            flat = self.qkv[i](self.norms[2 * i](state))
            padded = flat.new_zeros(n * longest, 3 * DIM).index_copy(0, at, flat)
            q, k, v = padded.view(n, longest, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            shares = (q @ k.transpose(2, 3)).float() * q.shape[-1] ** -0.5
            found = shares.masked_fill(blank[:, None, None], -1e9).softmax(-1).to(v.dtype) @ v
            state = state + self.out[i](found.transpose(1, 2).reshape(-1, DIM)[at])
            state = state + self.down[i](functional.gelu(self.up[i](self.norms[2 * i + 1](state))))
        return functional.normalize(total.index_add(0, row, state.float() - self.places[place]), dim=1)


class Second(Network):
    """The layers as the network of an encoder."""

    slow, dim, facts = True, DIM, {}

    def __init__(self, layers: Layers) -> None:
        self.layers, self.seconds, self.lines = layers, 0.0, 0

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """Return unit rows (n, DIM)."""
        begin, rows = time.process_time(), np.zeros((len(pieces), DIM), np.float32)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            for part in np.array_split(np.argsort(pieces.lengths), len(pieces) // 64 + 1):
                rows[part] = self.layers(pieces.take(part)).numpy()
        self.seconds, self.lines = self.seconds + time.process_time() - begin, self.lines + len(rows)
        return rows


def corpus(folder: Path, lang: str, first: Encoder) -> tuple[list[Pieces], list[np.ndarray], np.ndarray]:
    """Return pieces and vectors of both sides, and rows (n, WRONG) whose translations are like the row's."""
    pairs = []
    for file in sorted(folder.glob(f"*.en-{lang}.tsv.zst")):
        rows = (line.split("\t")[:2] for line in iter_lines(file))
        some = [two for two in rows if len(two) == 2 and 30 <= len(two[0]) <= 220]
        pairs += random.sample(some, min(EACH, len(some)))
    random.shuffle(pairs)
    pieces = [first.cut(side, 1)[0].first(LONGEST)[0] for side in zip(*pairs, strict=True)]
    x, y = (first.encode_pieces(side) for side in pieces)
    wrong = np.empty((len(x), WRONG), np.int64)
    for start in range(0, len(x), BLOCK):
        a, b = x[start : start + BLOCK], y[start : start + BLOCK]
        sims = np.where(alike(a, b), -1, a @ b.T)
        wrong[start : start + BLOCK] = start + np.argpartition(-sims, WRONG, axis=1)[:, :WRONG]
    return pieces, [x, y], wrong


def alike(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which pairs (n, n) are nearly equal on one side, each with itself among them."""
    return (x @ x.T > 0.9) | (y @ y.T > 0.9)


def train(layers: Layers, corpora: list, minutes: float) -> None:
    """Train for so many minutes."""
    optimiser = torch.optim.AdamW(layers.parameters(), weight_decay=0.01)
    draw, begin, step = np.random.default_rng(1), time.monotonic(), 0
    while (done := (time.monotonic() - begin) / max(1e-9, 60 * minutes)) < 1:
        pieces, (x, y), wrong = corpora[step % len(corpora)]
        seeds = draw.choice(len(wrong), SEEDS, replace=False)
        rows = np.unique(np.append(seeds, wrong[seeds]))
        with torch.autocast("cpu", torch.bfloat16):
            joined = Pieces.join([side.take(rows) for side in pieces])
            a, b = layers(joined.keep(draw.random(len(joined.ids)) > DROPPED)).chunk(2)
        own, heat, gold = a @ b.T, layers.heat.exp(), torch.arange(len(rows))
        hidden = torch.from_numpy(alike(x[rows], y[rows]) & ~np.eye(len(rows), dtype=bool))
        together = heat[1] * own + heat[2] * torch.from_numpy(x[rows] @ y[rows].T)
        logits = [side.masked_fill(hidden, -1e4) for side in (heat[0] * own, together)]
        loss = sum(
            functional.cross_entropy(each, gold) for side in logits for each in (side, side.T.contiguous())
        )
        optimiser.param_groups[0]["lr"] = 1e-3 * min(1, (step + 1) / 30) * (1 - done)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(layers.parameters(), 1.0)
        optimiser.step()
        step += 1
    print(f"{step} steps")


def main() -> None:
    command = parser(__doc__)
    command.add_argument("data", type=Path)
    command.add_argument("--minutes", type=float, default=10)
    command.add_argument(
        "--weight", type=float, default=0.5, help="of the second margin, chosen on the odd lines"
    )
    args = command.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    random.seed(1)
    first = load_encoder("world56", "cpu")
    layers = Layers(first.network)
    train(layers, [corpus(args.data / "train", lang, first) for lang in LANGS], args.minutes)
    network = Second(layers)
    second = Encoder(network, first.tokenizer, "layers", "0" * 16, first.max_pieces)
    found = retrieval(Data(args.data), [*LANGS], {"layers": second}, first, second_weight=args.weight)
    table(["pair", "second", *MEASURES], found)
    megabytes = sum(each.numel() for each in layers.parameters()) * 2 / 1e6
    print(f"{network.lines / network.seconds:,.0f} sentences a second, {megabytes:.1f} MB in float16")


if __name__ == "__main__":
    main()
