"""Scores by margin and matched pieces: features against plain loops, and a scorer that mining gains by."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors.numpy import save

from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import SCORER, TOKENIZER
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.mining.margin import candidates
from bitextmine.mining.piece_features import (
    FEATURES,
    LIMITS,
    PARTS,
    SIDE_FEATURES,
    TOGETHER,
    WIDTHS,
    WINDOW_LIMITS,
    PieceFeatures,
    Sentences,
)
from bitextmine.mining.scorer import (
    CANDIDATE_FEATURES,
    Rescorer,
    Scorer,
    ScorerNetwork,
    candidate_features,
    open_scoring,
    packaged_scorer,
)
from bitextmine.shipped import shipped_folder

from ..encoder.conftest import save_folder
from ..encoder.test_matches import cosine

VOCABULARY, DIM = 30, 12
RNG = np.random.default_rng(5)
ROWS = RNG.integers(-127, 128, (VOCABULARY, DIM)).astype(np.int8)
LENGTHS = RNG.random(VOCABULARY).astype(np.float32) + 0.1
VECTORS = ROWS / np.linalg.norm(ROWS.astype(np.float64), axis=1, keepdims=True) * LENGTHS[:, None]
UNITS = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
WEIGHTS = LENGTHS.astype(np.float64) / LENGTHS.mean(dtype=np.float64)
SENTENCES = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=7), min_size=1, max_size=4)


# Pieces whose cosines with another are nearer to each other than this: rounding decides which of them matches it.
NEAR = 1e-5


def sentences(lists):
    return Sentences(Pieces.from_lists(lists), np.arange(len(lists)))


def slow_match(a, b):
    """Where in b each piece of a has its match, the first of equal pieces; and whether arithmetic decides it: not
    where another piece is all but as similar."""
    match, decided = [], True
    for p in a:
        cosines = [UNITS[p] @ UNITS[q] for q in b]
        nearest = [q for q, x in zip(b, cosines, strict=True) if x > max(cosines) - NEAR]
        decided &= len(set(nearest)) == 1
        match.append(b.index(nearest[0]))
    return match, decided


def slow_matches(a, b):
    """How much weight is unmatched at each limit; and what follows from where the matches are, None where rounding
    decides that."""
    best = [max(UNITS[p] @ UNITS[q] for q in b) for p in a]
    (match, decided), (back, decided_back) = slow_match(a, b), slow_match(b, a)
    unmatched = [
        math.log1p(sum(WEIGHTS[p] for p, m in zip(a, best, strict=True) if m < limit)) for limit in LIMITS
    ]
    if not (decided and decided_back):
        return unmatched, None
    sure = [max(m, 0) * WEIGHTS[p] for p, m in zip(a, best, strict=True)]
    away = [abs(i / len(a) - match[i] / len(b)) for i in range(len(a))]
    places = [sum(x * w for x, w in zip(away, sure, strict=True)) / max(sum(sure), 1e-9)]
    both = [math.sqrt(sure[i] * sure[i - 1]) for i in range(1, len(a))]
    near = [abs(match[i] - match[i - 1]) <= TOGETHER for i in range(1, len(a))]
    places.append(sum(w for w, x in zip(both, near, strict=True) if x) / max(sum(both), 1e-9))
    mutual = [back[match[i]] == i for i in range(len(a))]
    places.append(math.log1p(sum(WEIGHTS[p] for p, m in zip(a, mutual, strict=True) if not m)))
    places.append(sum(s for s, m in zip(sure, mutual, strict=True) if m) / sum(WEIGHTS[p] for p in a))
    return unmatched, places


def slow_windows(a, b, width):
    """How much weight is unmatched at each limit, give or take what a cosine so near to it that rounding decides
    weighs; the mean; the lowest."""
    sums = [
        [VECTORS[side[max(0, i - width // 2) : i + width // 2 + 1]].sum(0) for i in range(len(side))]
        for side in (a, b)
    ]
    best = [max(cosine(x, y) for y in sums[1]) for x in sums[0]]
    weights = [WEIGHTS[p] for p in a]
    found, unsure = [], 0.0
    for limit in WINDOW_LIMITS:
        found.append(math.log1p(sum(w for w, x in zip(weights, best, strict=True) if x < limit)))
        unsure += sum(w for w, x in zip(weights, best, strict=True) if abs(x - limit) < 5e-3)
    mean = sum(w * x for w, x in zip(weights, best, strict=True)) / sum(weights)
    return [*found, mean, min(best)], unsure


def slow_parts(a, b, parts):
    """Of the parts; and the distance of the middle of a piece from an edge, where rounding may decide."""
    sums, edge = np.zeros((2, parts, DIM)), 1.0
    for side, sentence in enumerate((a, b)):
        weights = np.array([WEIGHTS[p] for p in sentence])
        for i, piece in enumerate(sentence):
            middle = (weights[:i].sum() + weights[i] / 2) / weights.sum() * parts
            sums[side, int(middle)] += VECTORS[piece]
            edge = min(edge, abs(middle - round(middle)))
    all_ = [[cosine(x, y) for y in sums[1]] for x in sums[0]]
    others = [all_[i][j] for i in range(parts) for j in range(parts) if i != j]
    return [*(all_[i][i] for i in range(parts)), sum(others) / len(others)], edge


@given(SENTENCES, SENTENCES)
@example([[13]], [[27, 10]])  # 27 and 10 are all but equally similar to 13
@example([[13, 4, 13]], [[4, 27, 13, 4, 4]])  # equal pieces
def test_features_of_matched_pieces(a, b):
    n = min(len(a), len(b))
    found = PieceFeatures(ROWS, LENGTHS).features(sentences(a[:n]), sentences(b[:n]))
    assert found.shape == (n, FEATURES) and found.dtype == np.float32
    for row, x, y in zip(found, a, b, strict=False):
        if not x or not y:
            assert not row.any()
            continue
        assert row[-2:] == pytest.approx([math.log1p(len(x)), math.log1p(len(y))], abs=1e-4)
        for side, (here, there) in zip(
            (row[:SIDE_FEATURES], row[SIDE_FEATURES:]), ((x, y), (y, x)), strict=False
        ):
            unmatched, places = slow_matches(here, there)
            np.testing.assert_allclose(side[: len(LIMITS)], unmatched, atol=1e-4)
            at = len(LIMITS) + 4
            if places is not None:
                np.testing.assert_allclose(side[len(LIMITS) : at], places, atol=1e-4)
            for width in WIDTHS:
                expected, unsure = slow_windows(here, there, width)
                if not unsure:
                    np.testing.assert_allclose(side[at : at + len(expected)], expected, atol=1e-2)
                at += len(expected)
            assert at == SIDE_FEATURES
        at = 2 * SIDE_FEATURES
        for parts in PARTS:
            expected, edge = slow_parts(x, y, parts)
            if edge > 1e-3:
                np.testing.assert_allclose(row[at : at + len(expected)], expected, atol=1e-2)
            at += len(expected)
        assert at + 2 == FEATURES


def neighbours(n, m, k):
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((n, 8)), rng.standard_normal((m, 8))
    y[: n // 2] = x[: n // 2] + 0.3 * rng.standard_normal((n // 2, 8))
    x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, y))
    sim = (x @ y.T).astype(np.float32)
    fwd, bwd = np.argsort(-sim, axis=1)[:, :k], np.argsort(-sim.T, axis=1)[:, :k]
    return SimpleNamespace(
        fwd_id=fwd,
        fwd_sim=np.take_along_axis(sim, fwd, 1),
        bwd_id=bwd,
        bwd_sim=np.take_along_axis(sim.T, bwd, 1),
    )


def slow_candidate(found, i, j, cosine, sizes):
    means, gaps = [], []
    for sims, ids, other in ((found.fwd_sim[i], found.fwd_id[i], j), (found.bwd_sim[j], found.bwd_id[j], i)):
        means.append(float(np.mean(sims)) if len(sims) else cosine)
        rivals = [s for s, r in zip(sims, ids, strict=True) if r != other]
        gaps.append(cosine - max(rivals) if rivals else 0.0)
    ratio = cosine / ((means[0] + means[1]) / 2)
    rows = [min(max(n, 1_000), 40_000) for n in sizes]
    return [ratio, math.log(ratio), *gaps, math.log10(math.sqrt(rows[0] * rows[1]))]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("sizes", [None, (5_000, 20_000), (200_000, 2_000)])
def test_features_of_candidates(k, sizes):
    found = neighbours(20, 30, k)
    src, tgt = np.arange(20), found.fwd_id[:, k - 1].copy()
    cosine = found.fwd_sim[:, k - 1].astype(np.float64)
    cosine = np.abs(cosine) + 0.1
    features = candidate_features(src, tgt, cosine, found, k, sizes)
    assert features.shape == (20, CANDIDATE_FEATURES)
    for i, row in enumerate(features):
        slow = slow_candidate(found, i, tgt[i], cosine[i], sizes or (20, 30))
        np.testing.assert_allclose(row, slow, rtol=1e-4, atol=1e-6)


def some_network(width, hidden=4):
    rng = np.random.default_rng(width)
    shapes = ((hidden, width), (hidden,), (hidden,), (1,), (width,), (width,))
    *parts, scale = (rng.standard_normal(shape).astype(np.float32) * 0.3 for shape in shapes)
    return ScorerNetwork(*parts, np.abs(scale) + 1)


def some_scorer(cut):
    return Scorer(some_network(CANDIDATE_FEATURES), some_network(CANDIDATE_FEATURES + FEATURES), cut, 0.2)


def slow_score(network, features):
    x = (features - network.mean) / network.scale
    return float(network.out @ np.tanh(network.hidden @ x + network.bias) + network.constant[0])


@pytest.mark.parametrize("some_are_hopeless", [False, True])
def test_scores_of_candidates_both_ways_and_again(some_are_hopeless):
    n, m, k = 20, 30, 3
    rng = np.random.default_rng(2)
    src, tgt = (
        sentences([rng.integers(0, VOCABULARY, c).tolist() for c in rng.integers(1, 9, size)])
        for size in (n, m)
    )
    found, comparing = neighbours(n, m, k), PieceFeatures(ROWS, LENGTHS)
    best = candidates(found, k)
    margins = {
        (i, int(j)): slow_score(
            some_scorer(0).margin,
            np.array(
                slow_candidate(
                    found, i, int(j), float(found.fwd_sim[i][list(found.fwd_id[i]).index(j)]), (n, m)
                )
            ),
        )
        for i, j in enumerate(best.forward.id)
    }
    # Between two scores, so that rounding does not decide which are compared.
    low, high = sorted(margins.values())[n // 3 : n // 3 + 2]
    scorer = some_scorer((low + high) / 2 if some_are_hopeless else -math.inf)
    compared = []
    rescorer = Rescorer(comparing, src, tgt, scorer, compared.append)
    again = rescorer(best, found, k)
    assert (again.forward.id == best.forward.id).all() and (again.backward.id == best.backward.id).all()
    pairs = {(i, int(j)) for i, j in enumerate(best.forward.id)} | {
        (int(i), j) for j, i in enumerate(best.backward.id)
    }
    hopeful = set()
    for forward, one in ((True, again.forward), (False, again.backward)):
        for row, other in enumerate(one.id):
            i, j = (row, int(other)) if forward else (int(other), row)
            sims, ids = (found.fwd_sim, found.fwd_id) if forward else (found.bwd_sim, found.bwd_id)
            base = np.array(
                [slow_candidate(found, i, j, float(sims[row][list(ids[row]).index(other)]), (n, m))]
            )
            expected = slow_score(scorer.margin, base[0])
            if expected >= scorer.cut:
                hopeful.add((i, j))
                pieces = comparing.features(src.take(np.array([i])), tgt.take(np.array([j])))
                expected = slow_score(scorer.pieces, np.concatenate([base, pieces], axis=1)[0])
            assert one.score[row] == pytest.approx(expected, abs=1e-4)
    assert sum(compared) == len(hopeful), "each pair's pieces are compared once, where there is hope"
    assert len(hopeful) < len(pairs) if some_are_hopeless else hopeful == pairs
    mutual = [i for i, j in enumerate(again.forward.id) if again.backward.id[j] == i]
    assert mutual and all(again.forward.score[i] == again.backward.score[again.forward.id[i]] for i in mutual)
    compared.clear()
    once_more = rescorer(best, found, k)
    assert not compared and (once_more.forward.score == again.forward.score).all()


def test_a_file_of_a_scorer(tmp_path):
    path = tmp_path / "scorer.safetensors"
    scorer = some_scorer(-1.5)
    path.write_bytes(save(scorer.arrays()))
    read = Scorer.read(path)
    assert read.hash == scorer.hash and (read.cut, read.share) == (-1.5, pytest.approx(0.2))
    other = Scorer(scorer.margin, scorer.pieces, -1.0, 0.2)
    assert other.hash != scorer.hash
    path.write_bytes(save({"hidden": np.zeros((4, 74), dtype=np.float32)}))
    with pytest.raises(BitextmineError, match=r"not a scorer of this version .*fit-scorer"):
        Scorer.read(path)
    for number in (np.nan, np.inf):
        broken = scorer.arrays()
        broken["pieces.out"][0] = number
        path.write_bytes(save(broken))
        with pytest.raises(BitextmineError, match=r"'pieces\.out' holds NaN or infinite"):
            Scorer.read(path)
    wrong = Scorer(some_network(CANDIDATE_FEATURES), some_network(FEATURES), 0.0, 0.2)
    path.write_bytes(save(wrong.arrays()))
    with pytest.raises(BitextmineError, match=f"not a network of {CANDIDATE_FEATURES + FEATURES} features"):
        Scorer.read(path)


def model_folder(folder, layers):
    tokenizer = shipped_folder("europe5") / TOKENIZER
    config = EncoderConfig(Tokenizer(tokenizer).vocab_size, 8, layers=layers, heads=2, ffn=8)
    save_folder(folder, SentenceModel(config), tokenizer)
    return folder


def test_which_encoders_have_a_scorer(tmp_path):
    folder = model_folder(tmp_path / "mean", 0)
    encoder = load_encoder(folder, "cpu")
    assert open_scoring(encoder, folder) is None, "it has none"
    asked = open_scoring(encoder, folder, True)
    assert asked is not None and asked.scorer.hash == packaged_scorer().hash
    (folder / SCORER).write_bytes(save(some_scorer(0.5).arrays()))
    own = open_scoring(encoder, folder)
    assert own is not None and own.scorer.hash == some_scorer(0.5).hash
    assert open_scoring(encoder, folder, False) is None
    (folder / SCORER).write_bytes(b"nonsense")
    with pytest.raises(BitextmineError, match=r"scorer\.safetensors"):
        open_scoring(encoder, folder)
    layers = model_folder(tmp_path / "layers", 1)
    (layers / SCORER).write_bytes(save(some_scorer(0.5).arrays()))
    assert open_scoring(load_encoder(layers, "cpu"), layers) is None, "no pieces to compare"
    with pytest.raises(BitextmineError, match="it has layers"):
        open_scoring(load_encoder(layers, "cpu"), layers, True)
    model_folder(folder, 0)
    assert not (folder / SCORER).exists(), "it was not fitted to these weights"
