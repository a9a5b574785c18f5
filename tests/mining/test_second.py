"""A second encoder's opinion: whom it is asked about, what it counts, and what happens when it fails."""

import csv
import dataclasses
import hashlib
import json
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine import mine
from bitextmine.encoder import Encoder
from bitextmine.encoder.pieces import Network, Pieces
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpus import Corpus
from bitextmine.mining import second
from bitextmine.mining.calibration import probability
from bitextmine.mining.dedup import unique_lines
from bitextmine.mining.margin import BestBothWays, BestCandidates
from bitextmine.mining.pairing import ScoredPairs
from bitextmine.mining.second import (
    NOTHING,
    Evidence,
    SecondFailed,
    doubtful,
    fit_evidence,
    fit_to_gold,
    hopeful,
    length_penalty,
    rivalled,
    within_lines,
)
from bitextmine.mining.sides import Side
from bitextmine.run import Run
from bitextmine.search.neighbours import Neighbours

CPU = Run("cpu")
SHORT = 24  # characters of a line that leave its translation in doubt


class Characters:
    """A tokenizer whose pieces are characters."""

    def encode(self, lines, max_pieces=None, threads=1):
        return Pieces.from_lists([list(map(ord, line)) for line in lines]), 0


class Meanings(Network):
    """A network that gives each text the vector of its meaning, and some noise of its own."""

    dim, facts, chunk_lines = 16, {}, 40

    def __init__(self, meaning, noise=0.2, fail_at=None):
        self.meaning, self.noise, self.fail_at, self.calls, self.lines = meaning, noise, fail_at, 0, 0

    def vectors(self, pieces, batch_tokens=None):
        self.calls += 1
        self.lines += len(pieces.offsets) - 1
        if self.calls == self.fail_at:
            raise RuntimeError("out of memory")
        out = []
        for start, stop in zip(pieces.offsets, pieces.offsets[1:], strict=False):
            text = "".join(map(chr, pieces.ids[start:stop].tolist()))
            out.append(self.draw(self.meaning(text)) + self.noise * self.draw(text))
        rows = np.array(out).reshape(-1, self.dim)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def draw(self, text):
        seed = int.from_bytes(hashlib.sha256(str(text).encode()).digest()[:8], "big")
        return np.random.default_rng(seed).standard_normal(self.dim)


def encoder(*args, name="oracle", **options):
    digits = hashlib.sha256(name.encode()).hexdigest()[:16]
    return Encoder(Meanings(*args, **options), Characters(), name, digits, 1_000)


@pytest.fixture(scope="module")
def hard(root):
    """Beginnings of the sample's lines, their translations as sets of line numbers, and the meaning of a text."""
    samples = root / "mine" / "samples"
    sides = [
        [line[:SHORT] for line in (samples / f"sample.{lang}").read_text(encoding="utf-8").splitlines()]
        for lang in ("en", "fr")
    ]
    with open(samples / "gold.en-fr.tsv", encoding="utf-8", newline="") as file:
        gold = {(int(s), int(t)) for s, t in csv.reader(file, delimiter="\t")}
    meaning = {sides[1][t - 1]: sides[0][s - 1] for s, t in gold}
    return sides, gold, lambda text: meaning.get(text, text)


def f1(pairs, gold):
    found = {(pair.src_line, pair.tgt_line) for pair in pairs}
    return 2 * len(found & gold) / (len(found) + len(gold))


def run(sides, other=None, **options):
    options = {"src_lang": "en", "tgt_lang": "fr", "device": "cpu", **options}
    if other is not None:
        options.setdefault("second_budget", 0.6)
    return mine(*sides, second=other, **options)


def test_the_right_opinion_improves_the_pairs_and_a_foreign_one_changes_nothing(hard):
    sides, gold, meaning = hard
    alone, both = run(sides), run(sides, encoder(meaning))
    assert f1(both, gold) > f1(alone, gold) + 0.01
    assert any("encoded again" in note and "changed" in note for note in both.notes)
    facts = both.details["second"]
    assert facts["weight"] > 0 and 0 < sum(facts["lines"]) <= 0.6 * 2 * 528
    assert "|second:" in both.signature and "|second:" not in alone.signature
    noise = run(sides, encoder(lambda text: text, name="noise"))
    assert list(noise) == list(alone)
    assert any("adds nothing" in note for note in noise.notes)
    assert noise.details["second"]["weight"] == 0


def test_gold_fits_the_weight(hard, tmp_path):
    sides, gold, meaning = hard
    path = tmp_path / "gold.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in sorted(gold)))
    alone, both = (run(sides, other, gold=path) for other in (None, encoder(meaning)))
    assert f1(both, gold) > f1(alone, gold)
    assert run(sides, encoder(lambda text: text, name="noise"), gold=path).details["second"]["weight"] < 0.5


@pytest.mark.parametrize("threshold", ["precision=0.9", "fpr=0.05", "none", 1.0])
@pytest.mark.parametrize("retrieval", ["max", "forward", "intersect", "matching"])
def test_every_rule_and_retrieval_takes_it(hard, retrieval, threshold):
    sides, gold, meaning = hard
    found = run(sides, encoder(meaning), retrieval=retrieval, threshold=threshold)
    assert len(found) and f1(found, gold) > 0.3
    scores = [pair.score for pair in found]
    assert scores == sorted(scores, reverse=True)


def test_a_failure_keeps_the_first_result_and_the_next_run_goes_on(hard, tmp_path):
    sides, _, meaning = hard
    paths = [tmp_path / "c.en", tmp_path / "c.fr"]
    for path, lines in zip(paths, sides, strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = list(map(str, paths))
    alone = run(files)
    with pytest.raises(
        SecondFailed, match=r"c\.en: after \d+ of .*out of memory.*first encoder alone"
    ) as failed:
        run(files, encoder(meaning, fail_at=7))
    assert list(failed.value.first) == list(alone)
    assert any("out of memory" in note for note in failed.value.first.notes)
    resumed = encoder(meaning)
    found = run(files, resumed)
    calls = resumed.network.calls
    again = run(files, resumed)
    assert resumed.network.calls == calls and json.dumps(again.to_dict()) == json.dumps(found.to_dict())
    fresh = encoder(meaning)
    in_memory = run(sides, fresh)
    assert list(in_memory) == list(found) and calls < fresh.network.calls


def test_the_budget_may_be_a_time(hard, tmp_path, monkeypatch):
    sides, _, meaning = hard
    paths = [tmp_path / "c.en", tmp_path / "c.fr"]
    for path, lines in zip(paths, sides, strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = list(map(str, paths))
    monkeypatch.setattr(second, "_PILOT", 20)
    other = encoder(meaning)
    # A clock that an encoded line moves on by a second.
    clock = types.SimpleNamespace(perf_counter=lambda: float(other.network.lines))
    monkeypatch.setattr(second, "time", clock)
    counts = [
        sum(run(files, other, second_budget=time).details["second"]["lines"]) for time in ("2m", "2m", "1h")
    ]
    assert 100 <= counts[0] <= 120 and 200 <= counts[1] <= 240 and counts[2] > 300, (
        "vectors that are kept are free"
    )
    lines = other.network.lines
    assert sum(run(files, other, second_budget="90s").details["second"]["lines"]) == counts[2]
    assert other.network.lines == lines


def test_it_judges_log_odds_only(hard):
    with pytest.raises(UsageError, match="--second"):
        run(hard[0], "default", k=1)
    for budget in (1.5, 0, "0m", "-2h", "30 minutes", True, None):
        with pytest.raises(UsageError, match="second_budget"):
            run(hard[0], "default", second_budget=budget)
    first = dataclasses.replace(encoder(hard[2]), languages=("en", "fr"))
    with pytest.raises(BitextmineError, match="no scorer"):
        mine(*hard[0], model=first, second="default", src_lang="en", tgt_lang="fr")


# --- the parts ---


def pairs_of(draw, count=12):
    codes = draw(st.lists(st.integers(0, 63), min_size=1, max_size=count, unique=True))
    score = draw(st.lists(st.floats(-6, 6), min_size=len(codes), max_size=len(codes)))
    rows = np.array(codes)
    return ScoredPairs(rows // 8, rows % 8, np.array(score))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_doubt_is_asked_about_in_order_within_the_budget(data):
    pairs = pairs_of(data.draw)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs))))
    budget, left = data.draw(st.sampled_from([0, 2, 5, 99])), data.draw(st.sampled_from([0.0, 0.01, 0.2]))
    heeded = rivalled(pairs)
    odds = np.exp(pairs.score)
    for i in range(len(pairs)):
        sums = [odds[rows == rows[i]].sum() - odds[i] for rows in (pairs.src, pairs.tgt)]
        assert heeded[i] == pytest.approx(np.log(odds[i] / (1 + max(sums))), abs=1e-6)
    true = probability(heeded)
    loss = np.where(pairs.score < second.FLOOR, 0, np.where(kept, 1 - true, true))
    asked = within_lines(pairs, doubtful(pairs, kept, 10, left), budget).tolist()
    wanted = sorted(range(len(pairs)), key=lambda i: (-loss[i], pairs.src[i], pairs.tgt[i]))
    assert asked == wanted[: len(asked)]
    lines = len({*pairs.src[asked].tolist()}) + len({*pairs.tgt[asked].tolist()})
    assert lines <= budget
    remaining = loss.sum() - loss[asked].sum()
    if remaining > 10 * left + 1e-9 and len(asked) < np.count_nonzero(loss):
        more = wanted[: len(asked) + 1]
        assert len({*pairs.src[more].tolist()}) + len({*pairs.tgt[more].tolist()}) > budget


def test_hopeful_rows_bring_all_their_candidates():
    fwd = np.array([[0, 2], [1, -1], [2, 0]])
    bwd = np.array([[2, 0], [1, 0], [0, 1]])
    sim = np.array([[0.9, 0.5], [0.8, -np.inf], [0.7, 0.3]], dtype=np.float32)
    near = Neighbours(sim, fwd, sim, bwd)
    high, low = 1.0, second.FLOOR - 1
    best = BestBothWays(
        BestCandidates(fwd[:, 0], np.array([high, low, low])),
        BestCandidates(bwd[:, 0], np.array([low, low, high])),
    )
    found = hopeful(best, near, 2)
    assert list(zip(found.src.tolist(), found.tgt.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 2)]
    assert found.score == pytest.approx([0.9, 0.5, 0.3])


def sample(shift, seed=0, size=2_000):
    """Log odds that hold, and evidence whose mean is `shift` standard deviations higher for true candidates."""
    rng = np.random.default_rng(seed)
    log_odds = rng.uniform(-5, 4, size)
    true = rng.random(size) < probability(log_odds)
    return log_odds, 0.3 + 0.1 * (rng.standard_normal(size) + shift * true), true


@pytest.mark.parametrize("shift", [1.0, 2.0, 3.0])
def test_the_evidence_is_found_without_known_pairs(shift):
    log_odds, evidence, true = sample(shift)
    blind = fit_evidence(log_odds, evidence)
    known = fit_to_gold(log_odds, evidence, true)
    assert known.weight == pytest.approx(10 * shift, rel=0.15)
    assert known.middle == pytest.approx(0.3 + 0.05 * shift, abs=0.02)
    assert 2 * blind.weight == pytest.approx(10 * shift, rel=0.25), (
        "half, as the encoders are not independent"
    )
    assert blind.middle == pytest.approx(0.3 + 0.05 * shift, abs=0.03)


@pytest.mark.parametrize("case", ["nothing", "reversed", "constant", "few", "none"])
def test_evidence_that_tells_nothing_has_no_weight(case):
    log_odds, evidence, true = sample({"nothing": 0.0, "reversed": -2.0}.get(case, 2.0))
    if case == "constant":
        evidence = np.full(len(evidence), 0.5)
    count = {"few": 20, "none": 0}.get(case, len(evidence))
    log_odds, evidence, true = log_odds[:count], evidence[:count], true[:count]
    assert fit_evidence(log_odds, evidence) == NOTHING
    assert fit_to_gold(log_odds, evidence, true).weight < 0.5
    assert NOTHING.log_odds(evidence).tolist() == [0.0] * count


def test_evidence_is_limited():
    assert Evidence(100.0, 0.5).log_odds(np.array([-9.0, 0.51, 9.0])).tolist() == pytest.approx([-5, 1, 5])


class Rows(Network):
    """A network whose vectors are in the text."""

    dim, facts = 3, {}

    def vectors(self, pieces, batch_tokens=None):
        texts = ["".join(map(chr, some)) for some in np.split(pieces.ids, pieces.offsets[1:-1])]
        rows = np.array([text.split()[:3] for text in texts], dtype=np.float64)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def vectors():
    """Two sides of lines with vectors of a second encoder; the last two lines are copies."""
    rng = np.random.default_rng(4)
    lines = [
        [" ".join(f"{v:.2f}" for v in row) + f" {word}" for row in rng.standard_normal((9, 3))]
        for word in "ab"
    ]
    for side in lines:
        side[-1] = "1 2 3 the same words again"
    sides = tuple(
        Side(Corpus(side, "en"), unique_lines(side), np.zeros((9, 2), np.float16)) for side in lines
    )
    digits = hashlib.sha256(b"rows").hexdigest()[:16]
    return lines, sides, second.Second(Encoder(Rows(), Characters(), "rows", digits, 1_000), 1.0, CPU)


@pytest.mark.parametrize(("most", "few"), [(99, 40), (1, 40), (99, 3)])
def test_the_evidence_is_the_cosine_and_twice_the_lead_over_the_best_rival(vectors, most, few, monkeypatch):
    """From three lines on the vectors are centred here."""
    lines, sides, other = vectors
    monkeypatch.setattr(second, "_FEW", few)
    monkeypatch.setattr(second, "_PAIRS", 2)
    monkeypatch.setattr(second, "_POOL", most)
    pairs = ScoredPairs(np.array([0, 0, 3, 5, 7]), np.array([2, 4, 4, 1, 6]), np.zeros(5))
    x, y = (np.array([line.split()[:3] for line in side], dtype=np.float64) for side in lines)
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    if few == 3:
        x, y = (side - side[np.unique(own)].mean(axis=0) for side, own in ((x, pairs.src), (y, pairs.tgt)))
        x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    cosine = x @ y.T
    rows = [np.unique(side)[: 1 if most == 1 else 9] for side in (pairs.src, pairs.tgt)]
    expected = []
    for s, t in zip(pairs.src, pairs.tgt, strict=True):
        rivals = [cosine[s, j] for j in rows[1] if j != t] + [cosine[i, t] for i in rows[0] if i != s]
        expected.append(cosine[s, t] + 2 * (cosine[s, t] - max(rivals)) if rivals else cosine[s, t])
    assert other.evidence(pairs, sides) == pytest.approx(expected, abs=4e-3)


def test_a_copy_gains_nothing(vectors, monkeypatch):
    _, sides, other = vectors
    monkeypatch.setattr(second, "fit_evidence", lambda *args: Evidence(9.0, -9.0))
    pairs = ScoredPairs(np.array([0, 8]), np.array([0, 8]), np.array([0.5, 0.5]))
    none = BestCandidates(np.full(9, -1), np.full(9, -np.inf))
    opinion = second.consult(other, sides, BestBothWays(none, none), pairs, np.arange(2))
    assert opinion.best.forward.score[[0, 8]].tolist() == [5.5, 0.5]


def side_of(lines, lang):
    return Side(Corpus(lines, lang), unique_lines(lines), np.zeros((len(lines), 2), np.float16))


def test_lengths_far_from_the_usual_ratio_cost():
    src = [f"<p>{'a' * (10 * i + 2)}</p>" for i in range(1, 9)]
    sides = (
        side_of(src, "en"),
        side_of(["b" * (20 * i + 12) for i in range(1, 9)], "fr"),
    )  # twice as long, with the slack
    pairs = ScoredPairs(np.array([0, 1, 2, 3, 3, 7]), np.array([0, 1, 2, 3, 7, 0]), np.zeros(6))
    cost = length_penalty(pairs, sides, np.array([3.0, 4.0, 5.0, 0.0, 0.0, 0.0]))
    assert cost == pytest.approx([0, 0, 0, 0, 4.5 * np.log(9 / 5) ** 2, 4.5], abs=1e-9), (
        "markup does not count"
    )
    assert length_penalty(pairs, sides, np.zeros(6))[3] == pytest.approx(4.5 * np.log(2) ** 2)
