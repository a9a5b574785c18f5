"""The noise benchmark: what it makes, and, where the real text is at hand, that the targets hold on a part of it."""

from __future__ import annotations

import importlib.util
import random
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"

TARGETS = {
    "shuffled": 0.98,
    "language": 0.98,
    "truncated": 0.95,
    "numbers": 0.90,
    "copied": 0.95,
    "gibberish": 0.95,
}


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_filtering", ROOT / "mine" / "bench_filtering.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made_up(count):
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghij", k=5)) for _ in range(200)]
    return [
        (
            " ".join([*rng.choices(words, k=10), str(i)]),
            " ".join([*rng.choices(words, k=10), str(i)]),
            (f"anders {i}",),
        )
        for i in range(count)
    ]


def test_noise_is_what_it_says(bench):
    pairs = made_up(60)
    right = {src: tgt for src, tgt, _ in pairs}
    of = {src: tuple(others) for src, _, others in pairs}
    for kind in bench.KINDS:
        rows = bench.stream(kind, pairs, 20)
        assert len(rows) == 40
        assert sum(clean for _, _, clean in rows) == 20
        assert len({src.split()[-1] for src, _, _ in rows}) >= 39 or kind in ("truncated", "numbers")
        assert rows == bench.stream(kind, pairs, 20)  # the same every time
        for src, tgt, clean in rows:
            if clean:
                assert right[src] == tgt
                continue
            match kind:
                case "shuffled" | "similar":
                    assert tgt in right.values()
                    assert tgt != right[src]
                case "language":
                    assert tgt in of[src]
                case "copied":
                    assert set(tgt.lower().split()) <= set(src.lower().split())
                case "gibberish":
                    assert tgt != right[src]
                case "truncated":
                    assert any(
                        (src == s) != (tgt == t) and s.startswith(src) and t.startswith(tgt)
                        for s, t, _ in pairs
                    )
                case "numbers":
                    assert re.findall(r"\d+", src) != re.findall(r"\d+", tgt)
                    assert re.sub(r"\d", "", tgt) in [re.sub(r"\d", "", t) for t in right.values()]


@pytest.mark.skipif(not (DATA / "bench").is_dir(), reason="the real text is not here")
def test_targets_on_real_text(bench, tmp_path):
    pytest.importorskip("py3langid")
    pairs = bench.europarl(DATA, "fr")
    random.Random(4).shuffle(pairs)
    for kind, least in TARGETS.items():
        rows = bench.stream(kind, pairs, 600)
        columns = bench.scored(rows, "fr", "default", tmp_path)
        clean = np.array([row[2] for row in rows])
        assert bench.area(columns["quality"], clean) >= least, kind
        assert bench.area(bench.standing(columns), clean) >= least, kind
