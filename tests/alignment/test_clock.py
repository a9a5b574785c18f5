"""The clocks of two subtitle files, and their times as evidence."""

import random

import numpy as np
import pytest

import bitextmine
from bitextmine.alignment.aligner import VECTORS, Aligner
from bitextmine.alignment.clock import apart, by_time, fit_clock, spans
from bitextmine.alignment.costs import Costs
from bitextmine.alignment.lattice import Band, kinds
from bitextmine.alignment.windows import Windows

from . import oracle

FILM = 25 / (24 / 1.001)


def film(seed, minutes=90):
    """The times of sentences, (n, 2)."""
    rng = np.random.default_rng(seed)
    begin = np.cumsum(rng.uniform(1, 8, size=minutes * 12))
    return np.stack([begin, begin + rng.uniform(0.5, 3, size=len(begin))], axis=1)


@pytest.mark.parametrize("slope", [1.0, FILM, 1 / FILM, 24 / 25, 1.03])
@pytest.mark.parametrize("offset", [0.0, 3.0, -95.5])
@pytest.mark.parametrize("wrong", [0.0, 0.5])
def test_the_line_is_found_among_wrong_links(slope, offset, wrong):
    rng = np.random.default_rng(2)
    src = film(1)[:, 0]
    tgt = slope * src + offset + rng.normal(0, 0.2, size=len(src))
    bad = rng.random(len(src)) < wrong
    tgt[bad] += rng.uniform(-60, 60, size=bad.sum())
    clock = fit_clock(src, tgt)
    assert np.abs(clock.of(src) - (slope * src + offset)).max() < 0.3


def test_a_few_links_show_an_offset_and_random_ones_nothing():
    src = np.array([1.0, 4.0, 5.5, 9.0])
    clock = fit_clock(src, src + 2.1)
    assert clock.slope == 1 and clock.offsets == pytest.approx([2.1])
    assert fit_clock(src[:2], src[:2]) is None
    rng = np.random.default_rng(3)
    assert fit_clock(np.sort(rng.uniform(0, 5000, 300)), np.sort(rng.uniform(0, 5000, 300)) * 1.4) is None


@pytest.mark.parametrize("slope", [1.0, FILM])
@pytest.mark.parametrize(
    "breaks", [[0.5], [0.1, 0.9], [0.2, 0.4, 0.6, 0.8], [1 / 12 * n for n in range(1, 12)]]
)
@pytest.mark.parametrize("wrong", [0.0, 0.3])
def test_offsets_change_where_advertisements_stand(slope, breaks, wrong):
    rng = np.random.default_rng(3)
    src = film(1)[:, 0]
    at = np.searchsorted(breaks, np.arange(len(src)) / len(src), side="right")
    exact = slope * src + 3 + np.cumsum([0, *rng.choice([-45.0, 60, 180], len(breaks))])[at]
    tgt = exact + rng.normal(0, 0.2, size=len(src))
    bad = rng.random(len(src)) < wrong
    tgt[bad] += rng.uniform(-60, 60, size=bad.sum())
    clock = fit_clock(src, tgt)
    off = np.abs(clock.of(src) - exact)
    assert len(clock.changes) == len(breaks) and np.count_nonzero(off > 0.5) <= 3 * len(breaks)
    assert np.array_equal(clock.of(film(1))[:, 0], clock.of(src))


def test_times_of_windows_and_what_they_share():
    rng = np.random.default_rng(4)
    src, tgt = film(5, 2), film(6, 2)[:20]
    sides = spans(src, 4), spans(tgt, 3)
    for i, s, j, t in rng.integers([0, 1, 0, 1], [len(src), 5, len(tgt), 4], size=(300, 4)).tolist():
        if i + s <= len(src) and j + t <= len(tgt):
            x, y = (
                [ends[at] for ends in side[size - 1]]
                for side, at, size in zip(sides, (i, j), (s, t), strict=True)
            )
            assert apart(x, y) == pytest.approx(oracle.apart(src[i : i + s], tgt[j : j + t]), abs=1e-6)
    assert len(spans(src[:2], 5)) == 2
    order = by_time(src, tgt)
    middles = sorted([*((x, 0) for x in src.mean(axis=1)), *((y, 1) for y in tgt.mean(axis=1))])
    assert order.tolist() == np.append(0, np.cumsum([side for _, side in middles])).tolist()


def test_costs_are_those_of_the_definition():
    rng = np.random.default_rng(7)
    sides = []
    for count in (7, 6):
        rows = rng.normal(size=(count, 8)).astype(np.float32)
        side = Windows(rows / np.linalg.norm(rows, axis=1, keepdims=True), 5, rng.integers(5, 90, size=count))
        side.times = film(count, 1)[:count]
        sides.append(side)
    src, tgt = sides
    costs = Costs(src, tgt, kinds(6))
    clock = fit_clock(np.arange(9.0), np.arange(9.0) + 2)
    costs.use_times(clock)
    band = Band.full(7, 6)
    cost = costs.lattice(band, costs.distances(band), VECTORS, 0.3).cost
    shifted = clock.of(src.times)
    for x in range(7):
        for y in range(6):
            for k, (s, t) in enumerate(costs.steps):
                if x + s <= 7 and y + t <= 6:
                    lost = oracle.apart(shifted[x : x + s], tgt.times[y : y + t])
                    expected = oracle.cost(src, tgt, (x, s, y, t), VECTORS, 0.3, 9)
                    expected += VECTORS.apart * lost * (s + t) / 2
                    assert cost[x + y, y - band.low[x + y], k] == pytest.approx(expected, abs=1e-3)


SHORT = [
    ("Yes.", "Oui."),
    ("No.", "Non."),
    ("What?", "Quoi ?"),
    ("Come on.", "Allez."),
    ("Thanks.", "Merci."),
]


def subtitles(pairs, tmp_path, *, shift=0.0, pace=1.0, missing=0.0, advertisement=0.0):
    """Write a film whose cues are half one-word lines; return the pairs of cues that are in both files."""
    rng = random.Random(8)
    now, made, shared = 5.0, {"en": [], "fr": []}, []
    for en, fr in pairs:
        en, fr = rng.choice(SHORT) if rng.random() < 0.5 else (en, fr)
        now += rng.choice((0.1, 0.5, 2.0))
        begin, end = now, now + max(1.0, 0.05 * len(en))
        now = end
        kept = rng.random() >= missing
        if kept:
            shared.append((len(made["en"]) + 1, len(made["fr"]) + 1))
            late = rng.uniform(-0.2, 0.2) + advertisement * (len(shared) > len(pairs) // 3)
            made["fr"].append((pace * begin + shift + late, pace * end + shift + late, fr))
        made["en"].append((begin, end, en))
    for lang, cues in made.items():
        stamps = [[f"{t // 3600:02.0f}:{t // 60 % 60:02.0f}:{t % 60:06.3f}" for t in cue[:2]] for cue in cues]
        (tmp_path / f"film.{lang}.vtt").write_text(
            "WEBVTT\n\n"
            + "".join(f"{a} --> {b}\n{cue[2]}\n\n" for (a, b), cue in zip(stamps, cues, strict=True))
        )
        (tmp_path / f"film.{lang}").write_text("".join(f"{cue[2]}\n" for cue in cues))
    return shared


@pytest.mark.parametrize(
    "how",
    [
        {"shift": 3.0},
        {"pace": 1 / FILM, "shift": -2.0},
        {"missing": 0.5, "shift": 3.0, "pace": FILM},
        {"missing": 0.3, "advertisement": 90.0},
    ],
    ids=str,
)
def test_times_help_where_lines_are_repeated(sentence_pairs, tmp_path, how):
    shared = subtitles(sentence_pairs[:220], tmp_path, **how)

    def right(suffix):
        found = bitextmine.align(tmp_path / f"film.en{suffix}", tmp_path / f"film.fr{suffix}")
        links = [
            (link.src_lines[0], link.tgt_lines[0])
            for link in found
            if len(link.src_lines) == len(link.tgt_lines) == 1
        ]
        return len({*links} & {*shared}) / len(shared), len(links)

    assert right(".vtt")[0] >= 0.97
    if "missing" in how:
        assert right(".vtt")[0] > right("")[0] + 0.03


def test_a_clock_that_nothing_shows_is_not_used():
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(60, 32)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    src, tgt = Windows(rows, 5), Windows(rows, 5)
    expected = Aligner().align(src, tgt)
    src.times, tgt.times = film(10)[:60], np.sort(rng.uniform(0, 9000, size=(60, 2)))
    assert Aligner().align(src, tgt) == expected
