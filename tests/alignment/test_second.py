"""A second encoder's opinion on the links in doubt."""

import numpy as np
import pytest

from bitextmine import align
from bitextmine.alignment import second as module
from bitextmine.alignment.align import align_files
from bitextmine.alignment.lattice import Band, Lattice, kinds
from bitextmine.alignment.options import AlignOptions
from bitextmine.alignment.second import SecondJudge
from bitextmine.alignment.windows import Windows
from bitextmine.errors import BitextmineError
from bitextmine.run import Run

from ..mining.test_second import encoder


def test_the_distance_of_steps_in_doubt_is_that_of_both_encoders(monkeypatch):
    rng = np.random.default_rng(2)
    steps, band = kinds(4), Band.full(3, 4)
    distances = rng.random((8, 4, len(steps))).astype(np.float32)
    likely = rng.choice([0.0, 0.005, 0.3, 0.8, 0.995], distances.shape)
    x, y = band.nodes(0, 8)
    for k, (s, t) in enumerate(steps):
        likely[(x < 0) | (y < 0) | (x + s > 3) | (y + t > 4), k] = 0
    monkeypatch.setattr(module, "marginals", lambda lattice: likely)
    sides = [Windows(np.eye(count)) for count in (3, 4)]
    sides[0].lines, sides[1].lines = ["a", "b", "c"], ["a'", "b'", "c'", "d'"]
    other = encoder(lambda text: text.replace("'", ""), noise=0.4)
    found = SecondJudge(other, Run("cpu")).blended(
        Lattice(band, steps, distances, 1.0), distances, *sides, "x"
    )
    asked = {
        at: tuple(
            " ".join(side.lines[i : i + size])
            for side, i, size in zip(sides, (int(x[at[:2]]), int(y[at[:2]])), steps[at[2]], strict=True)
        )
        for at in np.ndindex(likely.shape)
        if 0.01 < likely[at] < 0.99
    }
    vectors = [
        {text: other.encode([text])[0] for text in {pair[i] for pair in asked.values()}} for i in (0, 1)
    ]
    means = [np.mean(list(some.values()), axis=0) for some in vectors]
    again = {}
    for at, (one, two) in asked.items():
        u, v = vectors[0][one], vectors[1][two]
        again[at] = (1 - u @ v) / ((1 - u @ means[1] + 1 - v @ means[0]) / 2)
    scale = sum(likely[at] * distances[at] for at in asked) / sum(likely[at] * again[at] for at in asked)
    expected = distances.copy()
    for at, value in again.items():
        expected[at] = (distances[at] + scale * value) / 2
    assert np.allclose(found, expected, atol=2e-3) and len(asked) > 10


@pytest.fixture
def texts():
    """Documents of made-up words, which the shipped encoder does not know, their meaning and links.

    Half of the target sentences are split after two of seven words.
    """
    rng = np.random.default_rng(1)
    letters = [list("bdfgklmnprst"), list("aeiou")] * 3
    words = ["".join(rng.choice(some) for some in letters) for _ in range(400)]
    src = [" ".join(rng.choice(words, 7)) for _ in range(40)]
    tgt, links = [], []
    for i, line in enumerate(src):
        there = [word[::-1] for word in line.split()]
        parts = [there[:2], there[2:]] if rng.random() < 0.5 else [there]
        links.append(([i + 1], [len(tgt) + 1 + part for part in range(len(parts))]))
        tgt += [" ".join(part) for part in parts]
    known = set(words)

    def meaning(text):
        return " ".join(word if word in known else word[::-1] for word in text.split())

    return src, tgt, meaning, links


def test_links_in_doubt_are_judged_by_both(texts):
    src, tgt, meaning, links = texts
    alone, both = (align(src, tgt, second=other, device="cpu") for other in (None, encoder(meaning)))
    hits = [sum((link.src_lines, link.tgt_lines) in links for link in found) for found in (alone, both)]
    assert hits[1] > hits[0] + 3
    assert "|second:" in both.signature and "|second:" not in alone.signature
    again = align(src, tgt, second=encoder(meaning), device="cpu")
    assert [tuple(link) for link in again] == [tuple(link) for link in both]


def test_an_encoder_that_fails_is_named(texts):
    src, tgt, meaning, _ = texts
    with pytest.raises(BitextmineError, match=r"oracle: src, source: after 0 of .*out of memory"):
        align(src, tgt, second=encoder(meaning, fail_at=1), device="cpu")


def test_documents_aligned_before_a_failure_are_kept(texts, tmp_path):
    src, tgt, meaning, links = texts
    for lang, lines in (("en", src), ("fr", tgt)):
        (tmp_path / lang).mkdir()
        for number in range(3):
            end = 10 * number + 10
            some = lines[: end if lang == "en" else links[end - 1][1][-1]]
            (tmp_path / lang / f"{number}.{lang}").write_text("".join(f"{line}\n" for line in some))

    def run(other, name):
        folders = (str(tmp_path / lang) for lang in ("en", "fr"))
        align_files(*folders, str(tmp_path / name), AlignOptions(second=other), Run("cpu", threads=1))
        return other.network.calls, (tmp_path / name).read_bytes()

    calls, expected = run(encoder(meaning), "whole.tsv")
    with pytest.raises(BitextmineError, match=r"oracle: 2, target: after 0 of .*out of memory"):
        run(encoder(meaning, fail_at=calls), "out.tsv")
    assert not (tmp_path / "out.tsv").exists()
    more, content = run(encoder(meaning), "out.tsv")
    assert more < calls and content == expected
