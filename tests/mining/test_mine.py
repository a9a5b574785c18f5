"""Mining as a whole against the plain oracle, on corpora made to be awkward."""

import importlib.util
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine.embeddings.store import VectorFile
from bitextmine.errors import BitextmineError
from bitextmine.files.corpus import Corpus
from bitextmine.mining.dedup import unique_lines
from bitextmine.mining.gold import read_gold
from bitextmine.mining.margin import Margin
from bitextmine.mining.mine import mine_sides
from bitextmine.mining.options import MiningOptions
from bitextmine.mining.pairing import Retrieval
from bitextmine.mining.sides import Side, load_side, packed_rows
from bitextmine.mining.threshold import NoEstimate
from bitextmine.search.exact import search_both

_spec = importlib.util.spec_from_file_location("mining_oracle", Path(__file__).with_name("oracle.py"))
oracle = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(oracle)

# The oracle goes through these pair by pair; a matching may have equals, see test_pairing.
PLAIN = [how for how in Retrieval if how != "matching"]


def side(lines, vectors, dedup="exact", name="corpus.xx"):
    unique = unique_lines(lines, dedup)
    unique = unique.without(~vectors[unique.rows].any(axis=1))
    return Side(Corpus(Path(name), "xx"), unique, vectors)


def mined(src, tgt, x, y, *, k, dedup="exact", **options):
    sides = side(src, x, dedup), side(tgt, y, dedup)
    return mined_from(sides, search_both(*(side.vectors for side in sides), k), k=k, dedup=dedup, **options)


def mined_from(sides, neighbours, **options):
    found = mine_sides(sides, neighbours, MiningOptions(**{"threshold": "none", **options}))
    return list(zip(found.src_index.tolist(), found.tgt_index.tolist(), found.score.tolist(), strict=True))


def unit(vectors):
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0).astype(np.float16)


def text(number):
    """Some texts are blank, some are the same but for white space or Unicode form."""
    return ["", " \t", "\u200b", "one", " one ", "caf\u00e9", "cafe\u0301", "two", "a\u2028b", "a b"][
        number % 10
    ] + (f" {number // 10}" if number % 10 > 2 else "")


@st.composite
def corpora(draw):
    """Two little corpora: few directions, so that cosines tie and turn negative; repeats, blanks, zero
    vectors.
    """
    dim = draw(st.integers(1, 4))
    sizes = draw(st.tuples(st.integers(1, 14), st.integers(1, 14)))
    numbers = st.integers(3, 39)
    sides = []
    for size in sizes:
        lines = [text(draw(st.integers(0, 39))) for _ in range(size - 1)] + [text(draw(numbers))]
        values = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0])
        raw = np.array(draw(st.lists(values, min_size=size * dim, max_size=size * dim))).reshape(size, dim)
        raw[-1, 0] = raw[-1, 0] or 1.0  # one line at least can be mined
        # equal lines have equal vectors, as any encoder gives them
        first: dict[str, int] = {}
        for i, line in enumerate(lines):
            raw[i] = raw[first.setdefault(oracle.key(line), i)]
        sides += [lines, unit(raw)]
    return sides


@settings(max_examples=60)
@given(corpora(), st.sampled_from(["exact", "none"]))
def test_every_combination_agrees_with_the_oracle(drawn, dedup):
    src, x, tgt, y = drawn
    if any(not oracle.representatives(lines, v, dedup == "exact") for lines, v in ((src, x), (tgt, y))):
        return
    a, b = side(src, x, dedup), side(tgt, y, dedup)
    for k in (1, 2, 4, 16):
        neighbours = search_both(a.vectors, b.vectors, k)
        for margin, retrieval in itertools.product(Margin, PLAIN):
            expected = oracle.mine(
                src, tgt, x, y, k=k, margin=margin, retrieval=retrieval, dedup=dedup == "exact"
            )
            assert mined_from((a, b), neighbours, k=k, margin=margin, retrieval=retrieval) == expected


@pytest.fixture(scope="module")
def noisy():
    """60 and 70 lines, 40 of them translations, each side with repeats and blanks."""
    rng = np.random.default_rng(7)
    base = rng.standard_normal((130, 16))
    x = unit(base[:60] + 0.2 * rng.standard_normal((60, 16)))
    y = unit(np.concatenate([base[:40], base[60:90]]) + 0.2 * rng.standard_normal((70, 16)))
    src, tgt = [f"source {i}" for i in range(60)], [f"target {i}" for i in range(70)]
    for i, j in ((5, 2), (9, 2), (30, 29)):
        src[i], x[i] = f" {src[j]}", x[j]
    for i, j in ((50, 3), (51, 3), (60, 59)):
        tgt[i], y[i] = tgt[j].replace(" ", "  "), y[j]
    src[11], tgt[40] = "", "  "
    return src, tgt, x, y


def test_duplicates_all_gives_each_repetition_a_pair(noisy):
    src, tgt, x, y = noisy
    first = mined(src, tgt, x, y, k=4)
    every = mined(src, tgt, x, y, k=4, duplicates="all")
    score = {(s, t): v for s, t, v in first}
    assert set(first) <= set(every)
    extra = set(every) - set(first)
    # source 2 is also lines 5 and 9; target 3 is also lines 50 and 51; 29 is 30; target 59 is 60
    assert {(5, 2, score[2, 2]), (9, 2, score[2, 2]), (3, 50, score[3, 3]), (3, 51, score[3, 3])} <= extra
    assert every == sorted(every, key=lambda p: (-p[2], p[0], p[1]))


def numbered():
    """Two corpora of numbered articles among other lines: under "near" the articles of a side are one row."""
    rng = np.random.default_rng(0)
    article, other = rng.standard_normal(16), rng.standard_normal((8, 16))
    number = {n: rng.standard_normal(16) for n in range(1, 6)}
    src = [f"Article {n}" for n in (3, 1, 2)] + [f"source {'abcdefgh'[i]}" for i in range(8)]
    tgt = [f"article {n}." for n in (1, 5, 2, 3)] + [f"target {'abcdefgh'[i]}" for i in range(8)]
    x = unit(np.array([article + 0.2 * number[n] for n in (3, 1, 2)] + list(other)))
    y = unit(np.array([article + 0.2 * number[n] for n in (1, 5, 2, 3)] + list(other)))
    return src, tgt, x, y


def test_near_lines_are_mined_as_one_and_the_closest_two_are_given():
    src, tgt, x, y = numbered()
    found = mined(src, tgt, x, y, k=4, dedup="near")
    assert [(src[s].lower(), tgt[t].strip(".")) for s, t, _ in found if s < 3] in (
        [(f"article {n}", f"article {n}")] for n in (1, 2, 3)
    )
    assert {(s, t) for s, t, _ in found if s >= 3} == {(i + 3, i + 4) for i in range(8)}
    every = mined(src, tgt, x, y, k=4, dedup="near", duplicates="all")
    articles = {(s, t) for s, t, _ in every if s < 3}
    assert {(0, 3), (1, 0), (2, 2)} < articles
    assert len(articles) == 4, "article 5 goes with its closest"
    assert every == sorted(every, key=lambda p: (-p[2], p[0], p[1]))


def test_auto_with_gold_is_the_best_f1_and_says_so(noisy, tmp_path):
    src, tgt, x, y = noisy
    gold = tmp_path / "gold.tsv"
    true = [i for i in range(40) if i not in (5, 9, 11, 30)]
    gold.write_text("".join(f"{i + 1}\t{i + 1}\n" for i in true))
    a, b = side(src, x), side(tgt, y)
    options = MiningOptions(threshold="auto", gold=gold)
    found = mine_sides((a, b), search_both(a.vectors, b.vectors, 4), options, gold=read_gold(gold))
    best = 0.0
    everything = mined(src, tgt, x, y, k=4)
    for n in range(1, len(everything) + 1):
        hits = sum(s == t and s in true for s, t, _ in everything[:n])
        best = max(best, 2 * hits / (n + len(true)))
    assert found.details["tuned"]["f1"] == pytest.approx(best)
    assert found.score.min() >= found.details["threshold"]["value"]
    assert "threshold_by:gold" in found.signature
    assert any("optimistic" in note for note in found.notes)


def test_margins_that_cannot_tell_right_from_wrong_give_no_estimate():
    base = np.random.default_rng(0).standard_normal((200, 16))
    a, b = (side([f"{name} {i}" for i in range(200)], unit(base)) for name in ("a", "b"))
    neighbours = search_both(a.vectors, b.vectors, 2)
    found = mine_sides((a, b), neighbours, MiningOptions(k=1))
    assert found.threshold is None and found.estimate is None
    assert "one neighbour" in found.notes[-1] and "%" not in found.notes[-1]
    with pytest.raises(NoEstimate, match="one neighbour"):
        mine_sides((a, b), neighbours, MiningOptions(k=1, threshold="precision=0.9"))


def test_gold_of_another_corpus_is_refused(noisy, tmp_path):
    src, tgt, x, y = noisy
    gold = tmp_path / "gold.tsv"
    gold.write_text("61\t1\n")
    a, b = side(src, x, name="a.en"), side(tgt, y, name="b.fr")
    with pytest.raises(BitextmineError, match=r"gold.tsv: line number 61, but a.en has 60 lines"):
        mine_sides((a, b), search_both(a.vectors, b.vectors, 4), MiningOptions(), gold=read_gold(gold))


def test_counts_and_signature_tell_the_run(noisy):
    src, tgt, x, y = noisy
    a, b = side(src, x), side(tgt, y)
    neighbours = search_both(a.vectors, b.vectors, 4)
    found = mine_sides((a, b), neighbours, MiningOptions(threshold=1.1), made_by={"model": "abc"})
    assert found.signature.startswith("model:abc|k:4|margin:ratio|retrieval:max|threshold:1.100000|")
    rows = found.details["rows"]
    assert (rows["src"]["lines"], rows["src"]["repeated"], rows["src"]["empty_or_unknown"]) == (60, 3, 1)
    everything = mine_sides((a, b), neighbours, MiningOptions(threshold="none"))
    for row in found.details["counts"]:
        assert row["pairs"] == int((everything.score >= row["threshold"]).sum())
    json.dumps(found.to_dict())


def test_load_side_leaves_out_blank_repeated_and_unknown_lines():
    lines = ["a", "", "b", " a", "\u2063", "c"]
    vectors = unit(np.array([[1.0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [0, 0]]))
    loaded = load_side(Corpus(lines, name="c"), vectors)
    assert loaded.unique.rows.tolist() == [0, 2, 4]
    assert loaded.unique.line_to_row.tolist() == [0, -1, 1, 0, 2, -1]
    assert np.array_equal(loaded.vectors[:], vectors[[0, 2, 4]])


def test_rows_of_vectors_in_memory_and_in_their_file(tmp_path):
    matrix = np.random.default_rng(5).standard_normal((50, 8)).astype(np.float16)
    np.save(tmp_path / "c.npy", matrix)
    file = VectorFile(tmp_path / "c.npy")
    assert packed_rows(matrix, np.arange(50)) is matrix
    for rows in (np.array([1, 3, 4, 19]), np.array([0, 49]), np.arange(50)):
        for whole in (matrix, file):
            for in_memory in (0, 1 << 20):
                found = packed_rows(whole, rows, in_memory)
                assert found.shape == (len(rows), 8) and found.dtype == np.float16
                assert np.array_equal(found[:], matrix[rows])
                assert np.array_equal(found[1:3], matrix[rows][1:3])
                assert np.array_equal(found[np.array([1, 0])], matrix[rows[[1, 0]]])
