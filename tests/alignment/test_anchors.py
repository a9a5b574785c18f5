"""Fixed points of an alignment: keys, chains, paragraphs; and the alignments that lead through them."""

import random
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bitextmine
from bitextmine.alignment.aligner import Aligner
from bitextmine.alignment.anchors import fixed_points, longest_chain
from bitextmine.alignment.windows import Windows

from . import oracle


def points(src, tgt):
    """The fixed points of two texts of lines, blank ones before paragraphs."""
    sides = []
    for text in (src, tgt):
        lines = text.split("\n")
        kept = [i for i, line in enumerate(lines) if line]
        sides.append(([lines[i] for i in kept], [i > 0 and not lines[i - 1] for i in kept]))
    return fixed_points(*sides)[:, :2].tolist()


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14))
def test_the_longest_chain(pairs):
    pairs = sorted(set(pairs))
    chain = longest_chain(pairs)
    assert len(chain) == oracle.longest_chain(pairs) and set(chain) <= set(pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(chain))


@pytest.mark.parametrize(
    ("src", "tgt", "expected"),
    [
        ("Genesis\n1:1 In\n1:2 And\n1:3 Then", "1. Mose\n1:1 Am\n1:3 Da", [[1, 1], [3, 2]]),
        ("§ 1 A\nb\n§ 2 C", "§ 1 D\n§ 2 E", [[0, 0], [2, 1]]),
        ("Chapter 1\na\nChapter 2: b", "Kapitel 1\nKapitel 2. c", [[0, 0], [2, 1]]),
        ("a.title = Yes\na.b = No\nc", "a.title=Ja\nd\na.b = Nein", [[0, 0], [1, 2]]),
        ('"ok": "Yes",\n"no": "No"', '"ok": "Ja",\n"no": "Nein"', [[0, 0], [1, 1]]),
        ("See https://a.org/x.\nb", "c\nSiehe (https://a.org/x)", [[0, 1]]),
        # Out of order: the longer chain; repeated: unique between the points of others.
        ("1. a\n2. b\n3. c", "3. c\n1. d\n2. e", [[0, 1], [1, 2]]),
        (
            "http://x\n1. a\nhttp://y\n1. b",
            "http://x\n1. c\nd\nhttp://y\n1. e",
            [[0, 0], [1, 1], [2, 3], [3, 4]],
        ),
        ("1. a\n1. b", "1. c\n1. d\n1. e", []),
        # A number inside a sentence is no key.
        ("In 1950 a\n3.14159 is b", "Since 1950 c\n3.2 is d", []),
        # Paragraphs and headings, as many on both sides.
        ("a\nb\n\nc\n\nd", "e\n\nf\ng\n\nh", [[2, 1], [3, 3]]),
        ("a\n\nb\n\nc", "d\n\ne", []),
        ("# A\na\n## B\nb\n# C", "# D\n## E\ne\nf\n# F", [[0, 0], [2, 1], [4, 4]]),
        ("", "a", []),
    ],
)
def test_fixed_points(src, tgt, expected):
    assert points(src, tgt) == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("whole", [0, 1 << 30])
def test_links_begin_at_fixed_points_and_cross_none(seed, whole, monkeypatch):
    monkeypatch.setattr("bitextmine.alignment.aligner.trusted", lambda *_: True)
    rng = np.random.default_rng(seed)
    sides = []
    for count in (9, 8):
        rows = rng.normal(size=(count, 6)).astype(np.float32)
        sides.append(Windows(rows / np.linalg.norm(rows, axis=1, keepdims=True), 3))
    src, tgt = sides
    fixed = np.array([[1, 3, 1], [4, 4, 0], [6, 5, 1]])
    found = Aligner(max_size=4, whole=whole, radius=20).align(src, tgt, fixed=fixed)
    begins = {(link.src[0], link.tgt[0]) for link in found if link.src and link.tgt}
    assert {(1, 3), (6, 5)} <= begins
    for link in found:
        parts = {sum(i >= x for x in fixed[:, 0]) for i in link.src} | {
            sum(j >= y for y in fixed[:, 1]) for j in link.tgt
        }
        assert len(parts) == 1
    assert sorted(i for link in found for i in link.src) == list(range(9))
    assert sorted(j for link in found for j in link.tgt) == list(range(8))


def test_a_bible_whose_verses_are_counted_otherwise(sentence_pairs):
    en, fr, expected = ["Genesis"], ["La Genèse"], []
    for number, (text, other) in enumerate(sentence_pairs[:200]):
        verse = f"{number // 30 + 1}:{number % 30 + 1}"
        if number % 50 > 40:  # the text has moved by a verse, the numbers tell more
            other = sentence_pairs[number + 1][1]
        has = number % 7 != 3, number % 11 != 5
        if all(has):
            expected.append((len(en) + 1, len(fr) + 1))
        en += [f"{verse} {text}"] * has[0]
        fr += [f"{verse} {other}"] * has[1]

    def right(**how):
        links = bitextmine.align(en, fr, src_lang="en", tgt_lang="fr", **how)
        return len({(x[0], y[0]) for _, x, y, *_ in links if x and y}.intersection(expected))

    assert right(anchors=True) == len(expected) > right()


def test_numbers_that_are_shifted_are_no_guide(sentence_pairs):
    en, fr = (
        [f"{number + start}. {pair[side]}" for number, pair in enumerate(sentence_pairs[:80])]
        for side, start in ((0, 1), (1, 2))
    )
    links = bitextmine.align(en, fr, src_lang="en", tgt_lang="fr", anchors=True)
    assert sum(x == y and len(x) == 1 for _, x, y, *_ in links) > 75


def test_keys_of_two_catalogues(sentence_pairs):
    rng = random.Random(2)
    en, fr, expected = [], [], []
    for number, pair in enumerate(sentence_pairs[:120]):
        key = f"menu.item{number}.label"
        text = pair if rng.random() < 0.3 else ("OK", "Valider")
        has = rng.random() > 0.2, rng.random() > 0.2
        if all(has):
            expected.append((len(en) + 1, len(fr) + 1))
        en += [f"{key} = {text[0]}"] * has[0]
        fr += [f"{key} = {text[1]}"] * has[1]
    links = bitextmine.align(en, fr, src_lang="en", tgt_lang="fr", anchors=True)
    assert {*expected} <= {(x[0], y[0]) for _, x, y, *_ in links if len(x) == len(y) == 1}


def test_no_link_crosses_a_paragraph(sentence_pairs, tmp_path):
    parts = [sentence_pairs[at : at + 4] for at in range(0, 40, 4)]
    texts = []
    for side, lang in enumerate(("en", "fr")):
        # A paragraph lacks its first sentence in English, its last one in French.
        some = [[pair[side] for pair in part][1 - side : 4 - side] for part in parts]
        texts.append([line for lines in some for line in (*lines, "")])
        (tmp_path / f"doc.{lang}").write_text("\n\n".join(" ".join(lines) for lines in some) + "\n")
    of_lines = bitextmine.align(*texts, src_lang="en", tgt_lang="fr", anchors=True)
    of_paragraphs = bitextmine.align(tmp_path / "doc.en", tmp_path / "doc.fr", anchors=True)
    for links, length in ((of_lines, 4), (of_paragraphs, 3)):
        assert sum(len(link.src_lines) == len(link.tgt_lines) == 1 for link in links) == 20
        for link in links:
            assert len({(line - 1) // length for line in [*link.src_lines, *link.tgt_lines]}) == 1
    assert "anchors" in of_lines.signature


_MEGABYTE = 1_000_000


@pytest.mark.parametrize("piece", ["1", "1.", "1:", "a", "a@", "#", "http://", "[", "(", "="])
def test_time_is_linear(piece):
    started = time.process_time()
    text = [piece * (_MEGABYTE // len(piece)), *[piece] * 20_000], [False] * 20_001
    fixed_points(text, (["a"], [False]))
    assert time.process_time() - started < 4
