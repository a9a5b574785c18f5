import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine import encoder as encoder_room
from bitextmine.embeddings import embed as embed_room
from bitextmine.errors import BitextmineError
from bitextmine.evaluation import ranking
from bitextmine.evaluation import retrieval as module
from bitextmine.evaluation.pools import language_pairs, queries_of, read_queries
from bitextmine.evaluation.ranking import RankingOptions, rank_in_pool
from bitextmine.evaluation.retrieval import evaluate_muse, evaluate_retrieval, muse_keys
from bitextmine.mining.margin import RATIO_FLOOR
from bitextmine.mining.scorer import candidate_features
from bitextmine.run import Run

CPU = Run("cpu")


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


def top_mean(cos, k):
    return -np.sort(-cos, axis=1)[:, :k].mean(axis=1)


def cosines(x, y):
    return (x.astype(np.float64) @ y.astype(np.float64).T).astype(np.float32).astype(np.float64)


QUERIES = np.arange(100)


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(3)
    meaning = rng.standard_normal((400, 12))
    src_pool = unit(meaning[:300] + 0.8 * rng.standard_normal((300, 12)))
    pool = unit(meaning + 0.8 * rng.standard_normal((400, 12)))
    return src_pool[:100], pool, src_pool


@pytest.fixture
def among(monkeypatch):
    """Has the margins choose among so many candidates."""
    return lambda candidates: monkeypatch.setattr(ranking, "CANDIDATES", candidates)


@pytest.mark.parametrize("k", [4, 1, 500])
def test_pool_ranking_is_the_formula(world, among, k):
    queries, pool, src_pool = world
    among(len(pool))
    cos = cosines(queries, pool)
    back = cosines(pool, src_pool)
    ranked = rank_in_pool(QUERIES, src_pool, pool, RankingOptions(k), CPU)
    assert np.array_equal(ranked["cosine"], cos.argmax(axis=1))
    ratio = cos / np.maximum((top_mean(cos, k)[:, None] + top_mean(back, k)) / 2, RATIO_FLOOR)
    assert np.array_equal(ranked[f"ratio-{k}"], ratio.argmax(axis=1))
    score = 2 * cos - top_mean(cos, 10)[:, None] - top_mean(back, 10)
    assert np.array_equal(ranked["csls-10"], score.argmax(axis=1))


WEIGHTS = np.array([1.0, -0.5, 4.0, -2.0, 0.3])


class Again:
    """A score that sums features computed anew."""

    asked: ClassVar[list] = []

    def __init__(self, rows, targets):
        self.rows, self.targets = rows, targets

    def scores(self, src, tgt, cosine, neighbours, k):
        self.asked.append(set(zip(self.rows[src].tolist(), self.targets[tgt].tolist(), strict=True)))
        return candidate_features(src, tgt, cosine, neighbours, k) @ WEIGHTS + 2 * cosine


def again(cos, row, target, k):
    """The score of `Again` by its formula."""
    means, gaps = [], []
    for sims, other in ((cos[row], target), (cos[:, target], row)):
        near = np.argsort(-sims)[:k]
        means.append(sims[near].mean())
        gaps.append(cos[row, target] - max(sims[i] for i in near if i != other))
    ratio = cos[row, target] / max(sum(means) / 2, 0.05)
    return WEIGHTS @ [ratio, np.log(np.clip(ratio, 0.05, 4)), *gaps, 3.0] + 2 * cos[row, target]


TWICE = np.array([5, 90, 5, 0, 41, 299])  # one of the queries comes twice


@pytest.mark.parametrize(("k", "candidates"), [(4, 10), (2, 1), (12, 3)])
def test_pool_ranking_scores_the_candidates_again(world, k, candidates, among, monkeypatch):
    _, pool, src_pool = world
    among(candidates)
    monkeypatch.setattr(Again, "asked", [])
    found = rank_in_pool(TWICE, src_pool, pool, RankingOptions(k), CPU, Again)
    cos = cosines(src_pool, pool)
    nearest = {int(row): np.argsort(-cos[row])[:candidates] for row in TWICE}
    assert Again.asked == [{(row, int(target)) for row, near in nearest.items() for target in near}]
    assert found[f"rescored-{k}"].tolist() == [
        max(nearest[int(row)], key=lambda t, row=row: again(cos, row, t, k)) for row in TWICE
    ]


@pytest.mark.parametrize("candidates", [8, 1])
@pytest.mark.parametrize("rescorer", [None, Again])
def test_a_second_encoder_ranks_the_candidates_of_both_ways(world, candidates, rescorer, among):
    """Beside cosines or log odds; the second encoder is asked for each candidate once."""
    _, pool, src_pool = world
    among(candidates)
    rng = np.random.default_rng(1)
    others = [unit(side + 0.3 * rng.standard_normal(side.shape)) for side in (src_pool, pool)]
    asked = []

    def second(rows, targets):
        asked.append((rows.tolist(), targets.tolist()))
        return others[0][rows], others[1][targets]

    options, weight = RankingOptions(), ranking.SECOND_WEIGHT
    ranked = rank_in_pool(TWICE, src_pool, pool, options, CPU, rescorer, second)
    cos, by_second = cosines(src_pool, pool), cosines(*others)
    pairs = {(int(s), int(t)) for s in TWICE for t in np.argsort(-cos[s])[:candidates]}
    pairs |= {(int(s), t) for t in {t for _, t in pairs} for s in np.argsort(-cos[:, t])[:candidates]}
    first = cos if rescorer is None else {pair: again(cos, *pair, options.k) for pair in pairs}

    def stands_out(values, pair):
        rivals = [[values[other] for other in pairs if other[side] == pair[side]] for side in (0, 1)]
        return values[pair] - sum(np.mean(sorted(some)[-2:]) for some in rivals) / 2

    alone = {pair: stands_out(by_second, pair) for pair in pairs}
    spread = [np.std([values[pair] for pair in pairs]) for values in (first, by_second)]
    both = {pair: stands_out(first, pair) / spread[0] + weight * alone[pair] / spread[1] for pair in pairs}
    for found, score in ((ranked["second"], alone), (ranked["both"], both)):
        best = [max((pair for pair in pairs if pair[0] == s), key=score.get)[1] for s in TWICE]
        assert found.tolist() == best
    assert asked == [tuple(sorted({pair[side] for pair in pairs}) for side in (0, 1))]


def test_ties_go_to_the_lower_row():
    x = unit(np.array([[1.0, 0.0]]))
    pool = unit(np.array([[0.0, 1], [1, 0], [1, 0], [1, 0]]))
    ranked = rank_in_pool(np.zeros(1, np.int64), x, pool, RankingOptions(), CPU)
    assert [int(rows[0]) for rows in ranked.values()] == [1, 1, 1]


def as_muse_does(src, tgt, keys, queries):
    """Follow load_europarl_data and get_sent_translation_accuracy line by line, on object arrays of lists."""
    data = {}
    for lang, lines in (("src", src), ("tgt", tgt)):
        data[lang] = np.empty(len(lines), dtype=object)
        data[lang][:] = [tuple(line.lower().rstrip().split()) for line in lines]
    data["src"], indices = np.unique(data["src"], return_index=True)
    data["tgt"] = data["tgt"][indices]
    data["tgt"], indices = np.unique(data["tgt"], return_index=True)
    data["src"] = data["src"][indices]
    rng = np.random.RandomState(1234)
    perm = rng.permutation(len(data["src"]))
    keys = min(keys, len(perm))
    rng = np.random.RandomState(1234)
    idx_query = rng.choice(range(keys), size=min(queries, keys), replace=False)
    return *([" ".join(s) for s in data[lang][perm][:keys]] for lang in ("src", "tgt")), idx_query


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(*[st.text(st.sampled_from("aBc \t!\u00c9"), min_size=1, max_size=4)] * 2),
        min_size=1,
        max_size=30,
    )
)
def test_muse_keys_are_those_of_muse(drawn):
    src, tgt = (list(side) for side in zip(*drawn, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MUSE_KEYS", 12)
        patch.setattr(module, "MUSE_QUERIES", 5)
        got = muse_keys(iter(src), iter(tgt), ("a.en", "b.fr"))
    expected = as_muse_does(src, tgt, 12, 5)
    assert got[0] == expected[0]
    assert got[1] == expected[1]
    assert got[2].tolist() == expected[2].tolist()


def test_muse_refuses_files_that_are_not_aligned():
    with pytest.raises(BitextmineError, match=r"b.fr ends after 1 lines"):
        muse_keys(iter(["a", "b"]), iter(["c"]), ("a.en", "b.fr"))
    with pytest.raises(BitextmineError, match="no sentence"):
        muse_keys(iter([]), iter([]), ("a.en", "b.fr"))


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_queries_from_lists():
    assert queries_of({"en": ["one\ttwo"], "pt-BR": ("um",)}) == {"en": ["one two"], "pt-BR": ["um"]}
    for wrong, message in (
        ({"en": ["one"]}, "1 language"),
        ({"en": ["one"], "fr": ["\u200b"]}, "row 1: no sentence in 'fr'"),
        ({"en": ["one"], "fr": ["un", "deux"]}, "1 in 'en', 2 in 'fr'"),
    ):
        with pytest.raises(BitextmineError, match=message):
            queries_of(wrong)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["en\t"], "line 1: expected a header"),
        (["Good morning.\tBonjour."], "line 1: expected a header"),
        (["en\tfr", "a\tb", "c"], "line 3: 1 cell, but the header has 2"),
        (["en\tfr", "\u200b\tb"], "line 2: no sentence in 'en'"),
    ],
)
def test_what_is_no_queries_file(tmp_path, lines, message):
    with pytest.raises(BitextmineError, match=message):
        read_queries(write(tmp_path / "q.tsv", lines))


def test_pairs():
    langs = ["en", "fr", "pt-BR"]
    assert language_pairs("all", langs) == [("en", "fr"), ("fr", "en"), ("en", "pt-BR"), ("pt-BR", "en")]
    assert language_pairs("all", ["fr", "de"]) == [("fr", "de"), ("de", "fr")]
    assert language_pairs("fr-en, en-pt-BR,fr-en", langs) == [("fr", "en"), ("en", "pt-BR")]
    for wrong in ("en-de", "en", "en-en", "en_fr", ""):
        with pytest.raises(BitextmineError, match="no pair"):
            language_pairs(wrong, langs)


@dataclass
class WordEncoder:
    """A sentence is the sum of its words' random vectors; a word of any language ends in its number."""

    hash: str = "0123456789abcdef"
    device: str = "cpu"

    def vector(self, line):
        total = np.zeros(16)
        for word in line.lower().split():
            total += np.random.default_rng(int("".join(filter(str.isdigit, word)) or 0)).standard_normal(16)
        return total / max(np.linalg.norm(total), 1e-9)

    def embed(self, text, encoder, run):
        return np.array([self.vector(line) for line in text.lines()]).astype(np.float16)


@pytest.fixture
def encoder(monkeypatch):
    fake = WordEncoder()
    monkeypatch.setattr(encoder_room, "load_encoder", lambda model, device="auto": fake)
    monkeypatch.setattr(embed_room, "embed_lines", fake.embed)
    return fake


@pytest.fixture
def bench(tmp_path):
    """Write 60 queries in three languages (five French ones lack their words) and distractors for en and fr."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 300, 6) for _ in range(60)]
    text = {lang: [" ".join(f"{lang}{w}" for w in row) for row in rows] for lang in ("en", "fr", "de")}
    text["fr"][:5] = [f"rien{i + 900}" for i in range(5)]
    write(
        tmp_path / "q.tsv", ["en\tfr\tde", *("\t".join(cells) for cells in zip(*text.values(), strict=True))]
    )
    folder = tmp_path / "pools"
    folder.mkdir()
    for lang in ("en", "fr"):
        extra = [" ".join(f"{lang}{w}" for w in rng.integers(0, 300, 6)) for _ in range(400)]
        write(folder / f"distractors.{lang}.txt", [*extra, extra[0], "", f" {text[lang][7]}"])
    return tmp_path / "q.tsv", folder


def test_pools_end_to_end(encoder, bench):
    queries, folder = bench
    report = evaluate_retrieval(queries, folder, run=CPU)
    by = {(r.src, r.tgt, r.measure): r for r in report.results}
    assert list(by)[:3] == [("en", "fr", "cosine"), ("en", "fr", "ratio-4"), ("en", "fr", "csls-10")]
    assert {key[:2] for key in by} == {("en", "fr"), ("fr", "en"), ("en", "de"), ("de", "en")}
    found = by["en", "fr", "cosine"]
    assert (found.queries, found.pool, found.correct) == (60, 460, 55)
    assert found.p_at_1 == 55 / 60
    assert found.low < found.p_at_1 < found.high
    assert by["en", "de", "cosine"].pool == 60, "German has no distractors"
    assert by["de", "en", "ratio-4"].correct == 60
    assert any("no distractors.de.txt" in note for note in report.notes)
    assert sum("3 blank or repeated" in note for note in report.notes) == 2
    assert "pools:en=460,fr=460,de=60" in report.signature
    assert "neighbourhood:source-pool" in report.signature
    lines = report.to_table().splitlines()
    assert lines[0].split() == ["P@1", "queries", "pool", "cosine", "ratio-4", "csls-10"]
    assert lines[1].startswith("en-fr") and "91.67 [" in lines[1]
    assert lines[-1] == report.signature
    assert len(json.loads(json.dumps(report.to_dict()))["results"]) == 12
    assert report.to_frame()["p_at_1"].tolist() == [r.p_at_1 for r in report.results]


def test_a_repeated_translation_is_right_wherever_it_stands(encoder, tmp_path):
    """Two queries with one French translation: both are found, though only one row can come first."""
    queries = write(tmp_path / "q.tsv", ["en\tfr", "a1 b2\tu1 v2", "a1 c2\tu1  v2", "a5\tu5"])
    report = evaluate_retrieval(queries, pairs="en-fr")
    assert [r.correct for r in report.results] == [3, 3, 3]
    assert report.results[0].pool == 2


def test_muse_end_to_end(encoder, tmp_path):
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 300, 5) for _ in range(80)]
    for lang in ("en", "fr"):
        write(
            tmp_path / f"c.{lang}", [" ".join(f"{lang.upper()}{w}" for w in row) for row in [*rows, rows[0]]]
        )
    report = evaluate_muse((tmp_path / "c.en", tmp_path / "c.fr"), (None, None), RankingOptions(), CPU)
    assert [(r.src, r.tgt, r.queries, r.pool) for r in report.results[::3]] == [
        ("en", "fr", 80, 80),
        ("fr", "en", 80, 80),
    ]
    assert all(r.correct == 80 for r in report.results)
    assert "this is 80 against 80, not 2,000 against 200k" in report.notes[0]
    assert "200k" not in report.signature
    assert "protocol:muse-sent-translation" in report.signature
