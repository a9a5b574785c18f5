"""Fit the networks of the column `quality` for an encoder, and write quality.safetensors.

    python mine/fit_quality.py DATA/train --bench DATA --model europe5 --langs de,es,fr,it -o quality.safetensors
    python mine/fit_quality.py DATA/train --bench DATA --model europe20 -o quality.safetensors

DATA is a folder of pairs, NAME.en-LANG.tsv.zst (English, tab, another language), and NAME.LANG-LANG.tsv.zst. Half of
the rows are right, the others spoilt by the rules of noise.py that are for fitting. mine/quality.md has the results.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from bench_filtering import noisy_stream
from noise import RULES, Stream, noisy_rows
from safetensors.numpy import save
from torch import nn

from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder.folder import summed
from bitextmine.encoder.pieces import Pieces
from bitextmine.files.source import iter_lines
from bitextmine.languages.codes import usual_length
from bitextmine.mining.scorer import Network
from bitextmine.scoring.columns import evidence
from bitextmine.scoring.columns.catalogue import PairTexts, Tools
from bitextmine.scoring.columns.neighbourhood import WindowNeighbourhood
from bitextmine.scoring.columns.quality import (
    BOTH_INPUTS,
    ENCODER_INPUTS,
    INPUTS,
    NAME_STEPS,
    NEGATION_INPUTS,
    PIECE_INPUTS,
    SIDE_INPUTS,
    Quality,
    language_number,
)

ALL = "de,es,fr,it,nl,sv,da,nb,fi,cs,pl,pt,ru,tr,uk,hu,ro,el,bg"
# Inputs of a pair whose languages are not stated, and of one without a neighbourhood.
NOT_STATED = {
    "lang": 1.0,
    "half lang": 1.0,
    "languages stated": 0.0,
    "negated source": 0.0,
    "negated target": 0.0,
}
# The inputs of each network.
USED = {
    "texts": slice(ENCODER_INPUTS, len(INPUTS)),
    "plain": slice(len(INPUTS)),
    "pieces": slice(len(INPUTS) + PIECE_INPUTS),
}
# Of the kinds of noise in the fit: what looks most like a right pair counts most, and has as many more rows.
WEIGHTS = {
    "truncated": 4.0,
    "gapped": 4.0,
    "added": 7.0,
    "names": 8.0,
    "negation": 6.0,
    "numbers": 8.0,
    "shuffled": 4.0,
    "alike": 4.0,
    "half_untranslated": 2.0,
    "half_foreign": 2.0,
    "looped": 3.0,
    "copied": 4.0,
}
# The thresholds of the presets mild and strict, and the shares of right pairs that are to reach them.
THRESHOLDS, GOOD_KEPT = (0.25, 0.35), (0.957, 0.925)
# Noise, in standard deviations, of these inputs and of those of pieces.
NOISE, NOISY = 0.3, ("similarity", "log margin", "length", "longer target")
GOOD = 20.0  # weight of the right pairs, all together; a kind of noise has 1, or that of WEIGHTS

# Negating words of English, whose pieces count for one negation each; those of other languages are learned from these.
NEGATING = (
    "not",
    "no",
    "never",
    "nobody",
    "nothing",
    "none",
    "without",
    "neither",
    "nor",
    "nowhere",
    "cannot",
)
NEGATION_PAIRS = 200_000  # to learn from, of all languages
SPARSE = 0.1  # a larger number leaves fewer negating pieces

NAME_PAIRS = 400_000  # to learn from, of all languages
NAME_EPOCHS = 6
MARKS = ".,;:!?()[]\"'«»„“”‘’"
SPELLED = 0.7  # distance of the spellings (`unlike`) of two words that do not count as one name

# Corpora with free translations and long sentences, which count several times: most others are short and literal.
FREE = {"europarl": 6, "europarl2": 4, "news": 6, "bible": 2, "web": 2, "law": 2, "swisslaw": 2}


def sampled_lines(path: Path, most: int) -> list[str]:
    """Return lines spread over the file, by their checksums."""
    lines = [line for line in iter_lines(path) if line.count("\t") == 1]
    lines.sort(key=lambda line: zlib.crc32(line.encode()))
    return lines[:most]


def streams(data: Path, langs: list[str], each: int) -> Iterator[tuple[Stream, tuple[str, str]]]:
    """Yield a stream for each language with English, in either direction, and some without English."""
    pool: dict[str, list[str]] = {}
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for lang in langs:
        files = sorted(data.glob(f"*.en-{lang}.tsv.zst"))
        found: list[tuple[str, str]] = []
        weights = {file: FREE.get(file.name.split(".")[0], 1) for file in files}
        for file in files:
            rows = [
                line.split("\t")
                for line in sampled_lines(file, round(1.3 * each * weights[file] / sum(weights.values())))
            ]
            # A share of the corpora is noisy itself: what differs threefold in length is no example of a right pair.
            usual = usual_length("en", lang) or 1.0
            found += [
                (en, text)
                for en, text in rows
                if en != text and 1 / 3 < (len(text) + 9) / (len(en) * usual + 9) < 3
            ]
        random.Random(1).shuffle(found)
        pairs["en", lang], pairs[lang, "en"] = found[::2], [(text, en) for en, text in found[1::2]]
        pool[lang] = [text for _, text in found[:500]]
    direct = sorted(data.glob("*.??-??.tsv.zst"))
    for file in direct:
        one, other = file.name.split(".")[1].split("-")
        if "en" not in (one, other) and {one, other} <= set(langs):
            rows = [tuple(line.split("\t")) for line in sampled_lines(file, each // 10)]
            pairs.setdefault((one, other), []).extend([(a, b) for a, b in rows])
    for stated, rows in pairs.items():
        elsewhere = [text for lang, texts in pool.items() if lang not in stated for text in texts]
        yield Stream(rows, stated, True, elsewhere), stated


def negating_pieces(encoder: Encoder, data: Path, langs: list[str]) -> np.ndarray:
    """Return `Networks.negation`: pieces, such that both sides of most pairs count for the same number of negations.

    They include words such as "unable" and "fail". By stochastic gradient descent (AdaGrad) on the absolute difference
    up to 1, with an L1 penalty.
    """
    codes = sorted({"en", *langs})
    vocabulary = len(encoder.piece_rows()[0])
    both: list[list[Pieces]] = [[], []]
    for stream, stated in streams(data, langs, NEGATION_PAIRS // len(langs)):
        for side in range(2):
            found = encoder.tokenizer.encode([pair[side] for pair in stream.pairs], 128, 1)[0]
            both[side].append(Pieces(found.ids + vocabulary * codes.index(stated[side]), found.offsets))
    sides = [Pieces.join(parts) for parts in both]
    known = {name: at for at, name in enumerate(encoder.tokenizer.names())}
    fixed = [known[f"▁{word}"] + vocabulary * codes.index("en") for word in NEGATING if f"▁{word}" in known]
    weight, squares = np.zeros(vocabulary * len(codes)), np.full(vocabulary * len(codes), 1e-3)
    weight[fixed] = 1
    rng = np.random.default_rng(1)
    for _ in range(4):
        for rows in np.array_split(rng.permutation(len(sides[0])), len(sides[0]) // 512):
            some = [side.take(rows) for side in sides]
            text = [np.repeat(np.arange(len(rows)), side.lengths) for side in some]
            sums = [np.bincount(at, weight[side.ids], len(rows)) for at, side in zip(text, some, strict=True)]
            apart = np.clip(sums[0] - sums[1], -1, 1)
            seen, place = np.unique(np.concatenate([side.ids for side in some]), return_inverse=True)
            slope = np.bincount(place, np.concatenate([apart[text[0]], -apart[text[1]]]), len(seen))
            squares[seen] += slope**2
            weight[seen] -= (0.06 * slope + 0.02 * SPARSE) / np.sqrt(squares[seen])
            weight[seen] = np.clip(weight[seen], 0, 1.5)
            weight[fixed] = 1
    at = np.flatnonzero(weight >= 0.05)
    numbers = np.array([language_number(code) for code in codes])
    found = [numbers[at // vocabulary], at % vocabulary, np.rint(1000 * weight[at])]
    return np.stack(found, axis=1).astype(np.int32)


def name_pieces(encoder: Encoder, data: Path, langs: list[str]) -> np.ndarray:
    """Return `Networks.names`, by logistic regression on the capitalised words of right pairs.

    "Kowalski" keeps its spelling in any language, "Commission" in some, "Member" in hardly any.
    """
    torch.manual_seed(1)
    words: list[str] = []
    kept: list[float] = []
    for stream, _ in streams(data, langs, NAME_PAIRS // len(langs)):
        for pair in stream.pairs:
            for text, other in (pair, pair[::-1]):
                own = text.split()
                known = [word.strip(MARKS) for word in other.lower().split()]
                for at in evidence.name_places(own):
                    if len(word := own[at].strip(MARKS)) > 2:
                        words.append(word)
                        kept.append(max(0.0, 1 - evidence.unlike(word.lower(), known) / SPELLED))
    pieces = encoder.tokenizer.encode(words, 64, 1)[0]
    target = torch.tensor(kept)
    bag = nn.EmbeddingBag(len(encoder.piece_rows()[0]), 1, mode="mean")
    nn.init.constant_(bag.weight, float(torch.logit(target.mean())))
    optimizer = torch.optim.Adam(bag.parameters(), lr=0.03)
    for _ in range(NAME_EPOCHS):
        for rows in torch.randperm(len(words)).split(2048):
            some = pieces.take(rows.numpy())
            ids, starts = torch.from_numpy(some.ids.astype(np.int64)), torch.from_numpy(some.offsets[:-1])
            loss = nn.functional.binary_cross_entropy_with_logits(bag(ids, starts)[:, 0], target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return np.clip(np.rint(NAME_STEPS * bag.weight.detach().numpy()[:, 0]), -127, 127).astype(np.int8)


def inputs_of(
    encoder: Encoder,
    rows: list[tuple[str, str, str]],
    langs: tuple[str, str],
    tables: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return INPUTS and PIECE_INPUTS (n, m) of a stream."""
    tools = Tools(encoder, WindowNeighbourhood(), src_lang=langs[0], tgt_lang=langs[1])
    tools.quality = Quality(encoder, tables)
    parts = []
    for start in range(0, len(rows), 4096):
        part = rows[start : start + 4096]
        pairs = PairTexts([row[0] for row in part], [row[1] for row in part], tools)
        parts.append(np.concatenate([pairs.inputs(), pairs.piece_inputs()], axis=1))
    return np.concatenate(parts)


def fitted(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray, used: slice, hidden: int, epochs: int
) -> dict[str, np.ndarray]:
    """Return the arrays of a network fitted to these inputs of x (n, m) and y (n,).

    Inputs of the encoder get random noise: it was trained on these pairs, and matches them better than others.
    """
    torch.manual_seed(1)
    noise = torch.zeros(x.shape[1])
    noise[[INPUTS.index(name) for name in NOISY]] = NOISE
    noise[len(INPUTS) :] = NOISE
    x, noise = x[:, used], noise[used]
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale < 1e-6] = 1
    inputs = torch.from_numpy(((x - mean) / scale).astype(np.float32))
    target, weights = torch.from_numpy(y.astype(np.float32)), torch.from_numpy(weight.astype(np.float32))
    first, last = nn.Linear(x.shape[1], hidden), nn.Linear(hidden, 1)
    parameters = [*first.parameters(), *last.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3, weight_decay=0.1)
    batch = 1024
    steps = epochs * -(-len(x) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(batch):
            some = inputs[rows] + noise * torch.randn(len(rows), x.shape[1])
            odds = last(torch.tanh(first(some)))[:, 0]
            loss = nn.functional.binary_cross_entropy_with_logits(odds, target[rows], weights[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    state = {"hidden": first.weight, "bias": first.bias, "out": last.weight[0], "constant": last.bias}
    found = {name: value.detach().numpy() for name, value in state.items()}
    return found | {"mean": mean.astype(np.float32), "scale": scale.astype(np.float32)}


def without(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the inputs with languages not stated for a third of the rows, and no margin for a tenth."""
    x = x.copy()
    negated = len(INPUTS) + 1 + np.array([1, 1 + SIDE_INPUTS])  # cosines of negating words
    counted = len(INPUTS) + 1 + 2 * SIDE_INPUTS + BOTH_INPUTS + np.arange(NEGATION_INPUTS)
    for names, share in ((NOT_STATED, 0.33), ({"log margin": 0.0, "no margin": 1.0}, 0.1)):
        rows = rng.random(len(x)) < share
        for name, value in names.items():
            x[rows, INPUTS.index(name)] = value
        if "lang" in names:
            x[np.ix_(rows, negated)] = 1.0
            x[np.ix_(rows, counted)] = 0.0
        if "no margin" in names:
            x[rows, 0] = np.maximum(0, x[rows, len(INPUTS)])
    return x


def calibrate(arrays: dict[str, np.ndarray], encoder: Encoder, data: Path, langs: list[str]) -> None:
    """Scale the odds so that GOOD_KEPT of the right pairs in odd lines of the benchmarks reach THRESHOLDS."""
    parts, kinds = [], []
    for lang in langs:
        rows = noisy_stream(data, lang, 0)
        parts.append(inputs_of(encoder, rows, ("en", lang), (arrays["negation"], arrays["names"])))
        kinds += [row[2] for row in rows]
    x, kind = np.concatenate(parts), np.array(kinds)
    for name, used in USED.items():
        network = Network(*(arrays[f"{name}.{field}"] for field in Network.__dataclass_fields__))
        odds = network.score(network.drive(x[:, used]))
        good = odds[kind == "good"]
        wanted = [math.log(each / (1 - each)) for each in THRESHOLDS]
        limits = [float(np.quantile(good, 1 - share)) for share in GOOD_KEPT]
        slope = (wanted[1] - wanted[0]) / (limits[1] - limits[0])
        arrays[f"{name}.out"] = arrays[f"{name}.out"] * np.float32(slope)
        arrays[f"{name}.constant"] = (slope * (arrays[f"{name}.constant"] - limits[0]) + wanted[0]).astype(
            np.float32
        )
        print(f"{name}: log odds times {slope:.2f}", file=sys.stderr)
        for share, limit in zip(GOOD_KEPT, limits, strict=True):
            kept = {str(each): round(100 * float((odds[kind == each] >= limit).mean()), 1) for each in RULES}
            print(f"{name}: {share:.1%}: {kept}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="europe5")
    parser.add_argument("--langs", default=ALL)
    parser.add_argument("--each", type=int, default=3000, help="pairs of a language to make rows of")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--bench", type=Path, help="DATA of bench_filtering.py, to set the constants by")
    parser.add_argument("--scale-langs", help="those of --langs that set the constants (default: all)")
    parser.add_argument("--rows", type=Path, help="keep the inputs in this .npz, or take them from it")
    parser.add_argument("-o", dest="out", type=Path, required=True)
    a = parser.parse_args()
    torch.set_num_threads(1)  # the products are small
    if a.rows is None or not a.rows.exists():
        encoder = load_encoder(a.model, "cpu")
        begin = time.process_time()
        negation = negating_pieces(encoder, a.data, a.langs.split(","))
        names = name_pieces(encoder, a.data, a.langs.split(","))
        took = time.process_time() - begin
        print(f"{len(negation):,} negating pieces, names, {took:.1f} s", file=sys.stderr, flush=True)
        parts, kinds = [], []
        kinds_of_noise = sum(WEIGHTS.get(name, 1) for name in RULES)
        for stream, langs in streams(a.data, a.langs.split(","), a.each):
            begin = time.process_time()
            half = len(stream.pairs) // 2
            rows = noisy_rows(stream, half, round(half / kinds_of_noise), WEIGHTS)
            if sum(row[2] == "good" for row in rows) < 100:
                continue
            parts.append(inputs_of(encoder, rows, langs, (negation, names)))
            kinds += [row[2] for row in rows]
            took = time.process_time() - begin
            print(f"{'-'.join(langs)}: {len(rows):,} rows, {took:.1f} s", file=sys.stderr, flush=True)
        x, kind = np.concatenate(parts), np.array(kinds)
        if a.rows is not None:
            np.savez(a.rows, x=x.astype(np.float32), kind=kind, negation=negation, names=names)
    else:
        with np.load(a.rows) as file:
            x, kind, negation = file["x"].astype(np.float64), file["kind"], file["negation"]
            names = file["names"]
    y = kind == "good"
    weight = np.zeros(len(x))
    for name in np.unique(kind):
        weight[kind == name] = (GOOD if name == "good" else WEIGHTS.get(name, 1.0)) / (kind == name).sum()
    weight *= len(x) / weight.sum()
    x = without(x, np.random.default_rng(1))
    arrays = {"negation": negation, "names": names}
    for name, used in USED.items():
        network = fitted(x, y, weight, used, a.hidden, a.epochs)
        arrays |= {f"{name}.{part}": value for part, value in network.items()}
        odds = np.tanh(
            ((x[:, used] - network["mean"]) / network["scale"]) @ network["hidden"].T + network["bias"]
        )
        odds = odds @ network["out"] + network["constant"][0]
        limit = np.quantile(odds[y], 0.05)
        kept = {str(each): round(100 * float((odds[kind == each] >= limit).mean()), 1) for each in RULES}
        print(f"{name}: kept at 95% of the right pairs (log odds {limit:.2f}): {kept}", file=sys.stderr)
    if a.bench is not None:
        calibrate(arrays, load_encoder(a.model, "cpu"), a.bench, (a.scale_langs or a.langs).split(","))
    kept_as = {"negation": np.int32, "names": np.int8}
    with summed(a.out):  # a model folder's checksums cover the file
        a.out.write_bytes(
            save(
                {
                    name: np.ascontiguousarray(value, kept_as.get(name, np.float32))
                    for name, value in arrays.items()
                }
            )
        )


if __name__ == "__main__":
    main()
