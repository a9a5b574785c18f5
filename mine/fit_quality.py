"""Fit the networks of the column `quality` for an encoder, and write quality.safetensors.

    python mine/fit_quality.py DATA --model europe5 -o quality.safetensors

DATA is a folder of real text: train/NAME.LANG-LANG.tsv.zst, pairs of a kind of text, and bench/ as for
bench_filtering.py, of which the odd lines are used. All languages of the encoder and all kinds of text count alike.
Half of the rows are right, the others spoilt by the rules of noise.py that are for fitting. An eighth of the benchmarks
sets the scale.
mine/quality.md has the results.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from bench_filtering import (
    MOST_OF_A_KIND,
    TRAINED,
    balanced,
    kinds_of_text,
    languages_of,
    neighbours,
    noisy_stream,
)
from noise import RULES, Row, Stream, Texts, noisy_rows
from safetensors.numpy import save
from scipy import sparse
from torch import nn

from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder.pieces import Pieces
from bitextmine.files.source import iter_lines
from bitextmine.languages.codes import usual_length
from bitextmine.scoring.columns import evidence
from bitextmine.scoring.columns.catalogue import PairTexts, Request, Tools
from bitextmine.scoring.columns.names import NAME_DIRECTIONS, NAME_INPUTS
from bitextmine.scoring.columns.quality import (
    BOTH_INPUTS,
    ENCODER_INPUTS,
    INPUTS,
    NAME_STEPS,
    NEGATION_INPUTS,
    PIECE_INPUTS,
    SIDE_INPUTS,
    WEIGHT_SMOOTH,
    WEIGHT_STEPS,
    KindNetwork,
    Quality,
    language_number,
    usual_weights,
)

Pool = list[tuple[tuple[str, str], list[Texts], list[str]]]  # languages, pairs, and the kind of text of each
Part = tuple[tuple[str, str], list[Row], list[str]]  # languages, rows, and the kind of text of each
Examples = dict[str, np.ndarray]  # EXAMPLES by name

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
# How many times as many rows of a kind of noise: most of what looks most like a right pair.
ROWS = {
    "truncated": 4.0,
    "gapped": 12.0,
    "added": 7.0,
    "names": 18.0,
    "negation": 12.0,
    "numbers": 6.0,
    "shuffled": 8.0,
    "neighbour": 10.0,
    "alike": 4.0,
    "half_untranslated": 2.0,
    "half_foreign": 2.0,
    "looped": 4.0,
    "copied": 4.0,
    "misaligned": 3.0,
    "gibberish": 3.0,
}
# How much a kind counts in the fit.
WEIGHTS = ROWS | {
    "names": 42.0,
    "gapped": 26.0,
    "negation": 20.0,
    "shuffled": 13.0,
    "truncated": 9.0,
    "numbers": 7.0,
}
# The thresholds of the presets mild and strict, and the shares of right pairs that are to reach them.
THRESHOLDS, GOOD_KEPT = (0.22, 0.35), (0.956, 0.903)
EQUAL = 0.7  # of what languages keep more or less of their right pairs than others is evened out
# Noise, in standard deviations, of these inputs and of those of pieces.
NOISE, NOISY = 0.2, ("similarity", "log margin", "length", "longer target")
NEW = 2.0  # weight of rows of text that the encoder was not trained on
GOOD = 86.0  # weight of the right pairs, all together; a kind of noise has 1, or that of WEIGHTS

FEWEST = 100  # pairs of two languages to make rows of
# Pieces that may negate: texts that they stand in, and how much oftener, as a share, these negate than others.
RARE, LIFT = 6, 0.05

HIDDEN, EPOCHS = 256, 20
WORD_HIDDEN, NAMED = 64, 160_000  # pairs, right and spoilt, that `words` is fitted to
NAME_EPOCHS = 6
WEIGHT_EPOCHS = 3
MARKS = ".,;:!?()[]\"'«»„“”‘’"
SPELLED = 0.7  # distance of the spellings (`unlike`) of two words that do not count as one name


def pool_of(data: Path, langs: list[str], each: int) -> Pool:
    """Return pairs of each language with English, half of them in either direction, and of others where there are.

    What differs threefold in length is no example of a right pair: a share of the corpora is noisy itself.
    """
    found: Pool = []
    for lang in langs:
        some = balanced(kinds_of_text(data, lang, "fit"), each)
        usual = usual_length("en", lang) or 1.0
        some = [(p, k) for p, k in some if 1 / 3 < (len(p[1]) + 9) / (len(p[0]) * usual + 9) < 3]
        random.Random(1).shuffle(some)
        found.append((("en", lang), [pair for pair, _ in some[::2]], [kind for _, kind in some[::2]]))
        back = [((text, en), kind) for (en, text), kind in some[1::2]]
        found.append(((lang, "en"), [pair for pair, _ in back], [kind for _, kind in back]))
    for path in sorted(data.glob("train/*.??-??.tsv.zst")):
        kind, (one, other) = path.name.split(".")[0], path.name.split(".")[1].split("-")
        if {one, other} <= set(langs):
            cells = (line.split("\t") for line in itertools.islice(iter_lines(path), each // 20))
            rows = [(row[0], row[1]) for row in cells if len(row) == 2 and all(map(str.strip, row))]
            found.append(((one, other), rows, [f"{kind}{TRAINED}"] * len(rows)))
    return found


def further_pairs(data: Path, langs: list[str], each: int) -> Pool:
    """Return pairs of each language with English that no row is made of, to fit the tables to."""
    found: Pool = []
    for lang in langs:
        kinds = {}
        for path in sorted(data.glob(f"train/*.en-{lang}.tsv.zst")):
            lines = itertools.islice(iter_lines(path), MOST_OF_A_KIND, MOST_OF_A_KIND + each)
            rows = [(row[0], row[1]) for row in (line.split("\t") for line in lines) if len(row) == 2]
            kinds[path.name] = rows if "newsmt" not in path.name else []
        pairs, names = zip(*balanced(kinds, each), strict=True)
        found.append((("en", lang), list(pairs), list(names)))
    return found


def weight_pieces(encoder: Encoder, pool: Pool) -> tuple[np.ndarray, dict[str, float]]:
    """Return `Networks.weights`, and what is added to the logarithm of the weight of a text in each language.

    They make both sides of a translation weigh the same: Adam, on the Huber loss of the logarithm of their ratio, with
    an L2 penalty.
    """
    torch.manual_seed(1)
    codes = sorted({code for langs, _, _ in pool for code in langs})
    sides, code = [], []
    for side in range(2):
        texts = [pair[side] for _, pairs, _ in pool for pair in pairs]
        sides.append(encoder.tokenizer.encode(texts, encoder.max_pieces, 1)[0])
        code.append(
            np.repeat([codes.index(langs[side]) for langs, _, _ in pool], [len(p) for _, p, _ in pool])
        )
    norms = encoder.piece_rows()[1]
    usual = torch.from_numpy(usual_weights(encoder.tokenizer.names(), norms).astype(np.float32))
    count = torch.from_numpy(sum(np.bincount(side.ids, minlength=len(norms)) for side in sides))
    table, level = (nn.Parameter(torch.zeros(size)) for size in (len(norms), len(codes)))
    optimizer = torch.optim.Adam([table, level], lr=0.02)
    batches = -(-len(sides[0]) // 2048)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for _ in range(WEIGHT_EPOCHS):
        for rows in np.array_split(np.random.default_rng(1).permutation(len(sides[0])), batches):
            logs, penalty = [], torch.zeros(())
            for side, of in zip(sides, code, strict=True):
                some = side.take(rows)
                ids = torch.from_numpy(some.ids.astype(np.int64))
                text = torch.from_numpy(np.repeat(np.arange(len(rows)), some.lengths))
                total = torch.zeros(len(rows)).index_add(0, text, usual[ids] * table[ids].exp())
                logs.append(torch.log(total * level[of[rows]].exp() + WEIGHT_SMOOTH))
                penalty = penalty + (table[ids] ** 2 / (1 + count[ids])).mean()
            loss = nn.functional.huber_loss(logs[1], logs[0], delta=0.3) + 2.5 * penalty
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    steps = np.clip(np.rint(WEIGHT_STEPS * table.detach().numpy()), -127, 127).astype(np.int8)
    levels = level.detach().numpy() - level[codes.index("en")].item()
    return steps, dict(zip(codes, levels.tolist(), strict=True))


def rows_to_fit(pool: Pool, encoder: Encoder) -> Iterator[Part]:
    """Yield languages, rows and kinds of text of each part of a pool that is large enough."""
    texts = {langs[1]: pairs[:100] for langs, pairs, _ in pool if langs[0] == "en"}
    for langs, pairs, kinds in pool:
        if len(pairs) >= FEWEST:
            elsewhere = [pair[1] for lang, some in texts.items() if lang not in langs for pair in some]
            stream = Stream(pairs, langs, True, elsewhere, neighbours(encoder, pairs))
            rows = noisy_rows(stream, weights=ROWS)
            yield langs, rows, [kinds[row.at] for row in rows]


def negating_pieces(encoder: Encoder, pool: Pool) -> np.ndarray:
    """Return `Networks.negation`: in each language the pieces that tell how many negating words English has.

    Then those of English that tell what the others have beyond that, such as "unable" and "fail", and the others again.
    """
    vocabulary = len(encoder.tokenizer.names())
    sides: list[list[sparse.csr_matrix]] = [[], []]
    for _, pairs, _ in pool:
        for side in range(2):
            found = encoder.tokenizer.encode([pair[side] for pair in pairs], 128, 1)[0]
            found = found.keep(found.ids < vocabulary)
            shape = len(found), vocabulary
            sides[side].append(sparse.csr_matrix((np.ones(len(found.ids)), found.ids, found.offsets), shape))
    words = [
        evidence.negations(evidence.Vocabulary().read([pair[0] for pair in pairs]), "en")
        for _, pairs, _ in pool
    ]
    english, weights = np.zeros(vocabulary), {}
    for last in (False, True):
        for (langs, _, _), own, there, count in zip(pool, sides[1], sides[0], words, strict=True):
            weights[langs[1]] = counting_pieces(own, count + there @ english, 1)
        if not last:
            more = [
                own @ weights[langs[1]] - n
                for (langs, _, _), own, n in zip(pool, sides[1], words, strict=True)
            ]
            english = counting_pieces(sparse.vstack(sides[0], "csr"), np.concatenate(more), 3)
    weights["en"] = english
    found = []
    for code, weight in sorted(weights.items()):
        at = np.flatnonzero(weight >= 0.05)
        found.append([np.full(len(at), language_number(code)), at, np.rint(1000 * weight[at])])
    return np.concatenate(found, axis=1).T.astype(np.int32)


def counting_pieces(texts: sparse.csr_matrix, counts: np.ndarray, penalty: float) -> np.ndarray:
    """Return weights (vocabulary,), of which those of a text's pieces sum up to its count.

    Non-negative regression with the Huber loss and an L1 penalty, by FISTA (Beck and Teboulle 2009) with a step for
    each piece; of pieces that stand in enough texts, in those with a count oftener than elsewhere.
    """
    wanted, some = np.clip(counts, 0, 3), np.clip(counts, 0, 1)
    often = np.asarray(texts.sum(axis=0)).ravel()
    likely = np.flatnonzero(
        (often >= RARE * penalty) & (texts.T @ some > (some.mean() + LIFT) * np.maximum(often, 1))
    )
    columns = texts[:, likely].tocsr()
    rows = columns.T.tocsr()
    step = 1 / (rows @ np.asarray(columns.sum(axis=1)).ravel() + 1e-6)
    weight = ahead = np.zeros(len(likely))
    pace = 1.0
    for _ in range(80):
        slope = rows @ np.clip(columns @ ahead - wanted, -1, 1) + penalty
        before, weight = weight, np.clip(ahead - step * slope, 0, 1.5)
        pace, faster = (1 + math.sqrt(1 + 4 * pace * pace)) / 2, pace - 1
        ahead = weight + faster / pace * (weight - before)
    found = np.zeros(texts.shape[1])
    found[likely] = weight
    return found


def capitalised(pool: Pool) -> tuple[list[str], list[float]]:
    """Return the capitalised words of right pairs, and how far each keeps its spelling, from 0 to 1."""
    words: list[str] = []
    kept: list[float] = []
    for _, pairs, _ in pool:
        texts = [text for pair in pairs for text in pair]
        own = evidence.Vocabulary().read(texts)
        row, _, place = evidence.marked_words(own, "")
        for text, at in zip(row.tolist(), place.tolist(), strict=True):
            if len(word := texts[text].split()[at].strip(MARKS)) > 2:
                known = [word.strip(MARKS) for word in texts[text ^ 1].lower().split()]  # of the other side
                words.append(word)
                kept.append(max(0.0, 1 - evidence.unlike(word.lower(), known) / SPELLED))
    return words, kept


def name_directions(quality: Quality, pieces: Pieces) -> np.ndarray:
    """Return `Networks.directions`: the directions in which the vectors of words (n,) are longest."""
    rows, scale, *_ = quality.piece_table
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for some in np.array_split(np.arange(len(pieces)), -(-len(pieces) // 4096)):
        part = pieces.take(some)
        vectors = np.add.reduceat(scale[part.ids, None] * rows[part.ids], part.offsets[:-1])
        total += vectors.T.astype(np.float64) @ vectors
    return np.linalg.eigh(total)[1].T[: -NAME_DIRECTIONS - 1 : -1].astype(np.float32)


def name_pieces(encoder: Encoder, pieces: Pieces, kept: list[float]) -> np.ndarray:
    """Return `Networks.names`, by logistic regression on words (n,), and how far each keeps its spelling.

    "Kowalski" keeps its spelling in any language, "Commission" in some, "Member" in hardly any.
    """
    torch.manual_seed(1)
    target = torch.tensor(kept)
    bag = nn.EmbeddingBag(len(encoder.piece_rows()[0]), 1, mode="mean")
    nn.init.constant_(bag.weight, float(torch.logit(target.mean())))
    optimizer = torch.optim.Adam(bag.parameters(), lr=0.03)
    for _ in range(NAME_EPOCHS):
        for rows in torch.randperm(len(pieces)).split(2048):
            some = pieces.take(rows.numpy())
            ids, starts = torch.from_numpy(some.ids.astype(np.int64)), torch.from_numpy(some.offsets[:-1])
            loss = nn.functional.binary_cross_entropy_with_logits(bag(ids, starts)[:, 0], target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return np.clip(np.rint(NAME_STEPS * bag.weight.detach().numpy()[:, 0]), -127, 127).astype(np.int8)


def names_to_fit(pool: Pool, encoder: Encoder, quality: Quality) -> tuple[np.ndarray, np.ndarray]:
    """Return NAME_INPUTS (n, m) of names of pairs, and "good" or, if it was put in place of another, "names" (n,)."""
    large = [(langs, pairs) for langs, pairs, _ in pool if len(pairs) >= FEWEST]
    most = NAMED // (2 * len(large))
    tools, signs, kinds = Tools(encoder=encoder), [], []
    for langs, pairs in large:
        stream, rng = Stream(pairs, langs, True), random.Random(1)
        spoilt = ((pair, stream.spoilt("names", at, rng)) for at, pair in enumerate(pairs))
        both = [(pair, pair) for pair in pairs[:most]]
        both += itertools.islice(((pair, found) for pair, found in spoilt if found), most)
        texts = PairTexts(*zip(*(found for _, found in both), strict=True), tools, is_readable=True)
        matched = quality.matched(texts.words, texts.pieces)
        for side in range(2):
            names = quality.marked_words(matched, side, "")[1]
            for row, word, own in zip(names.row.tolist(), names.word, names.signs, strict=True):
                right, found = both[row]
                # The name that the other side lacks now is neither.
                if found is right or word not in right[side].split():
                    signs.append(own)
                    kinds.append("good" if found is right else "names")
    return np.array(signs), np.array(kinds)


def fitted_names(x: np.ndarray, kinds: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays of the network `words`; both kinds count alike."""
    share = (kinds == "good").mean()
    weight = np.where(kinds == "good", 0.5 / share, 0.5 / (1 - share))
    return fitted(x, kinds, weight, torch.full((NAME_INPUTS,), NOISE / 2), WORD_HIDDEN)


# The inputs of rows (n, m), and the kind of noise, the languages and the kind of text of each.
EXAMPLES = ("x", "noise", "langs", "text")


def inputs_of(encoder: Encoder, quality: Quality, rows: list[Row], langs: tuple[str, str]) -> np.ndarray:
    """Return INPUTS and PIECE_INPUTS (n, m) of a stream, float32."""
    tools = Tools(Request(("quality",), langs), encoder)
    tools.quality = quality
    parts = []
    for start in range(0, len(rows), 4096):
        part = rows[start : start + 4096]
        pairs = PairTexts([row.src for row in part], [row.tgt for row in part], tools)
        parts.append(np.concatenate([pairs.inputs(), pairs.piece_inputs()], axis=1).astype(np.float32))
    return np.concatenate(parts)


def rows_to_scale(data: Path, langs: list[str], encoder: Encoder) -> Iterator[Part]:
    """Yield what `rows_to_fit` does of the part of the benchmarks that sets the scale."""
    for lang in langs:
        yield ("en", lang), *noisy_stream(data, lang, "scale", encoder)


def columns(encoder: Encoder, quality: Quality, parts: Iterator[Part]) -> Examples:
    """Return EXAMPLES of all parts together."""
    found = [
        (
            inputs_of(encoder, quality, rows, langs),
            [row.kind for row in rows],
            ["-".join(langs)] * len(rows),
            kinds,
        )
        for langs, rows, kinds in parts
    ]
    return {name: np.concatenate(each) for name, each in zip(EXAMPLES, zip(*found, strict=True), strict=True)}


def random_noise(used: slice) -> torch.Tensor:
    """Return the standard deviations of the noise of inputs."""
    noise = torch.zeros(len(INPUTS) + PIECE_INPUTS)
    noise[[INPUTS.index(name) for name in NOISY]] = NOISE
    noise[len(INPUTS) :] = NOISE
    return noise[used]


def fitted(
    x: np.ndarray, noise_of: np.ndarray, weight: np.ndarray, noise: torch.Tensor, units: int = HIDDEN
) -> dict[str, np.ndarray]:
    """Return the arrays of a `KindNetwork` fitted to inputs x (n, m) and the kinds of noise (n,).

    Inputs of the encoder get random noise: it was trained on these pairs, and matches them better than others.
    """
    torch.manual_seed(1)
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale < 1e-6] = 1
    inputs = torch.from_numpy(((x - mean) / scale).astype(np.float32))
    kinds = ["good", *sorted(set(noise_of.tolist()) - {"good"})]
    target = torch.from_numpy(np.array([kinds.index(kind) for kind in noise_of.tolist()]))
    weights = torch.from_numpy(weight.astype(np.float32))
    first, last = nn.Linear(x.shape[1], units), nn.Linear(units, len(kinds))
    parameters = [*first.parameters(), *last.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3, weight_decay=0.1)
    batch = 1024
    steps = EPOCHS * -(-len(x) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(batch):
            some = inputs[rows] + noise * torch.randn(len(rows), x.shape[1])
            each = nn.functional.cross_entropy(last(torch.tanh(first(some))), target[rows], reduction="none")
            loss = (each * weights[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    state = {"hidden": first.weight, "bias": first.bias, "out": last.weight, "constant": last.bias}
    found = {name: value.detach().numpy() for name, value in state.items()}
    return found | {"mean": mean, "scale": scale, "line": np.array([1.0, 0.0])}


def without(x: np.ndarray, levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the inputs with languages not stated for a third of the rows, and no margin for a tenth.

    levels: what the stated languages add to the logarithm of the ratio of weights, (n,).
    """
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
            x[rows, -2] -= levels[rows]
            x[rows, -1] = np.abs(x[rows, -2])
        if "no margin" in names:
            x[rows, 0] = np.maximum(0, x[rows, len(INPUTS)])
    return x


def calibrate(arrays: dict[str, np.ndarray], apart: Examples, shifts: dict[str, float]) -> None:
    """Scale the odds so that the shares GOOD_KEPT of the right pairs reach THRESHOLDS, before `shifts` are added."""
    good = apart["noise"] == "good"
    wanted = [math.log(each / (1 - each)) for each in THRESHOLDS]
    for name, used in USED.items():
        network = network_of(arrays, name)
        odds = network.score(network.drive(apart["x"][:, used].astype(np.float64)))
        limits = [float(np.quantile(odds[good], 1 - share)) for share in GOOD_KEPT]
        slope = (wanted[1] - wanted[0]) / (limits[1] - limits[0])
        steep, shift = arrays[f"{name}.line"]
        arrays[f"{name}.line"] = np.float32([slope * steep, slope * (shift - limits[0]) + wanted[0]])
        odds = slope * (odds - limits[0]) + wanted[0]
        if name == "pieces":
            for code in shifts:
                shifts[code] *= slope
            odds += [sum(shifts.get(code, 0.0) for code in langs.split("-")) for langs in apart["langs"]]
        for share, limit in zip(GOOD_KEPT, wanted, strict=True):
            kept = {kind: f"{100 * (odds[apart['noise'] == kind] >= limit).mean():.1f}" for kind in RULES}
            print(f"{name}: {share:.1%}: {100 * (odds[good] >= limit).mean():.1f} {kept}", file=sys.stderr)


def network_of(arrays: dict[str, np.ndarray], name: str) -> KindNetwork:
    return KindNetwork(*(arrays[f"{name}.{part}"] for part in KindNetwork.__dataclass_fields__))


def language_shifts(arrays: dict[str, np.ndarray], fit: Examples) -> dict[str, float]:
    """Return, by language, what is added to the log odds by `pieces`, so that about as many right pairs of each pass.

    The networks are fitted to these pairs, but there are many: they predict which languages keep fewer of other text
    (correlation 0.86; 0.25 by the hundred pairs of each that nothing was fitted to).
    """
    network, levels = network_of(arrays, "pieces"), {}
    good = fit["noise"] == "good"
    for code in sorted({code for langs in np.unique(fit["langs"]) for code in langs.split("-")} - {"en"}):
        own = good & np.isin(fit["langs"], (f"en-{code}", f"{code}-en"))
        odds = network.score(network.drive(fit["x"][own].astype(np.float64)))
        levels[code] = float(np.quantile(odds, 1 - np.array(GOOD_KEPT)).mean())
    usual = float(np.median(list(levels.values())))
    return {code: EQUAL * (usual - level) for code, level in levels.items()}


def weights_of(noise: np.ndarray, text: np.ndarray) -> np.ndarray:
    """Return the weight of each row by its kind of noise and of text, 1 in the mean."""
    weight = np.where(np.char.endswith(text, TRAINED), 1.0, NEW)
    for name in np.unique(noise):
        rows = noise == name
        weight[rows] *= (GOOD if name == "good" else WEIGHTS.get(name, 1.0)) / weight[rows].sum()
    return weight * len(noise) / weight.sum()


def networks(encoder: Encoder, a: argparse.Namespace) -> dict[str, np.ndarray]:
    """Return the tables and the networks."""
    data, langs, each, begin = a.data, languages_of(a, encoder), a.each, time.process_time()

    def done(what: str) -> None:
        print(f"{what}: {time.process_time() - begin:.0f} s", file=sys.stderr, flush=True)

    pool = pool_of(data, langs, each)
    if (most := max((len(pairs) for _, pairs, _ in pool), default=0)) < FEWEST:
        sys.exit(
            f"too few rows: {most} pairs of two languages in one direction, at least {FEWEST} are needed"
        )
    done(f"{sum(len(pairs) for _, pairs, _ in pool):,} pairs")
    apart = further_pairs(data, langs, 2 * each)
    weights, levels = weight_pieces(encoder, apart)
    done("weights")
    words, kept = capitalised(apart)
    pieces = encoder.tokenizer.encode(words, 64, 1)[0]
    arrays = {
        "negation": negating_pieces(encoder, apart),
        "names": name_pieces(encoder, pieces, kept),
        "weights": weights,
        "languages": np.array(
            [(language_number(code), round(1000 * level), 0) for code, level in levels.items()],
            dtype=np.int32,
        ),
    }
    arrays["directions"] = name_directions(Quality(encoder, arrays), pieces)
    done("negations and names")
    names = fitted_names(*names_to_fit(pool, encoder, Quality(encoder, arrays)))
    quality = Quality(encoder, arrays | {"words": KindNetwork(**names)})
    arrays |= {f"words.{part}": np.ascontiguousarray(value, np.float32) for part, value in names.items()}
    fit = columns(encoder, quality, rows_to_fit(pool, encoder))
    scale = columns(encoder, quality, rows_to_scale(data, langs, encoder))
    done("rows")
    level = {code: round(1000 * level) / 1000 for code, level in levels.items()}
    both = np.array([[level[code] for code in langs.split("-")] for langs in fit["langs"]])
    x = without(fit["x"], both[:, 1] - both[:, 0], np.random.default_rng(1))
    for name, used in USED.items():
        weight = weights_of(fit["noise"], fit["text"])
        network = fitted(x[:, used], fit["noise"], weight, random_noise(used))
        arrays |= {
            f"{name}.{part}": np.ascontiguousarray(value, np.float32) for part, value in network.items()
        }
    shifts = language_shifts(arrays, fit)
    calibrate(arrays, scale, shifts)
    numbers = {language_number(code): round(1000 * shift) for code, shift in shifts.items()}
    arrays["languages"][:, 2] = [numbers.get(number, 0) for number in arrays["languages"][:, 0].tolist()]
    done("networks")
    return arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="default")
    parser.add_argument("--langs", help="of the pairs with English (default: all that the encoder states)")
    parser.add_argument("--each", type=int, default=7000, help="pairs of a language to make rows of")
    parser.add_argument("-o", dest="out", type=Path, required=True)
    a = parser.parse_args()
    torch.set_num_threads(1)  # the products are small
    arrays = networks(load_encoder(a.model, "cpu"), a)
    a.out.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


if __name__ == "__main__":
    main()
