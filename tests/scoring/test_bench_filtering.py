"""The noise benchmark: its rules, and, where the real text is at hand, the targets on a part of it."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from bitextmine.encoder import load_encoder

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"

# Shares of each kind that the presets may keep.
MOST = {
    "half_untranslated": (0.13, 0.06),
    "looped": (0.05, 0.02),
    "truncated": (0.04, 0.03),
    "gapped": (0.45, 0.25),
    "added": (0.15, 0.1),
    "numbers": (0.12, 0.1),
    "names": (0.3, 0.12),
    "shuffled": (0.1, 0.05),
    "misaligned": (0.02, 0.02),
    "negation": (0.53, 0.25),
    "wrong_language": (0.01, 0.01),
    "copied": (0.01, 0.01),
}


@pytest.fixture(scope="module")
def mine():
    sys.path.insert(0, str(ROOT / "mine"))
    try:
        import bench_filtering
        import noise
    finally:
        sys.path.remove(str(ROOT / "mine"))
    return bench_filtering, noise


PAIRS = [
    (
        f"Mr Dupont did not see the {a} {b} in Berlin when he counted {i} of them there.",
        f"Monsieur Dupont n'a pas vu le {b} {a} quand il en a compté {i} à Berlin.",
    )
    for i, (a, b) in enumerate((f"x{i}y", f"z{i}") for i in range(20, 120))
]


@pytest.mark.parametrize("fit", [True, False])
def test_each_kind_spoils_its_side_and_leaves_the_other(mine, fit):
    near = [[(i + 1) % len(PAIRS), (i + 2) % len(PAIRS)] for i in range(len(PAIRS))]
    stream = mine[1].Stream(PAIRS, ("en", "fr"), fit, ["Ein anderer Satz.", "Noch einer."], near)
    rows = mine[1].noisy_rows(stream, 0.15)
    assert rows == mine[1].noisy_rows(stream, 0.15)  # the same every time
    kinds = [row.kind for row in rows]
    assert kinds.count("good") == 0.15 * len(PAIRS)
    assert all(kinds.count(kind) >= 4 for kind in mine[1].RULES if kind != "names" or not fit), kinds
    src, tgt = ({pair[side] for pair in PAIRS} for side in (0, 1))
    for one, other, kind, at in rows:
        if kind == "good":
            assert (one, other) == PAIRS[at]
        else:
            assert (one, other) not in PAIRS
            assert kind in ("copied", "tiny") or one in src or other in tgt
        if kind == "wrong_language":
            assert other in stream.other
        if kind == "neighbour":
            assert tgt_number(other) in near[at]
        if kind == "shuffled":  # as many words
            assert [len(text.split()) for text in (one, other)] == [len(text.split()) for text in PAIRS[at]]
        if kind in ("truncated", "gapped"):
            assert len(one.split()) != 16 or len(other.split()) != 15


def tgt_number(text):
    return next(i for i, pair in enumerate(PAIRS) if pair[1] == text)


def test_text_without_spaces_has_words_too(mine):
    text = "我们昨天在北京见到了王先生,他说 Linux 很好。"
    words = mine[1].words_of(text)
    assert mine[1].joined(words) == text
    assert max(len(word) for word in words if not word.isascii()) <= 3
    pairs = [(f"We saw {i} of them in Beijing yesterday, he said.", f"{text}{i}") for i in range(60)]
    rows = mine[1].noisy_rows(mine[1].Stream(pairs, ("en", "zh"), False), 0.2)
    for kind in ("truncated", "gapped", "shuffled", "looped"):
        assert any(row.kind == kind and row.tgt != pairs[row.at][1] for row in rows), kind


def test_areas(mine):
    rng = random.Random(1)
    values = np.array([rng.random() for _ in range(40)])
    clean = np.array([rng.random() < 0.5 for _ in range(40)])
    wins = [(a > b) + (a == b) / 2 for a in values[clean] for b in values[~clean]]
    assert mine[0].area(values, clean) == pytest.approx(np.mean(wins))


@pytest.mark.skipif(not (DATA / "bench").is_dir(), reason="the real text is not here")
def test_presets_on_real_text(mine, tmp_path):
    pytest.importorskip("py3langid")
    encoder = load_encoder("europe5", "cpu")
    rows, text = mine[0].noisy_stream(DATA, "fr", "report", encoder)
    mine[0].scored(rows, "fr", encoder, tmp_path)
    kinds, text = np.array([row.kind for row in rows]), np.array(text)
    for number, (preset, good) in enumerate((("mild", 0.93), ("strict", 0.89))):
        kept = mine[0].kept_by(preset, tmp_path, len(rows))
        assert kept[kinds == "good"].mean() >= good
        for kind, limits in MOST.items():
            assert kept[kinds == kind].sum() <= limits[number] * (kinds == kind).sum() + 3, (preset, kind)
