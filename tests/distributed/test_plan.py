"""The arithmetic of plans, against slow counting, and on the real command."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitextmine.distributed.plan import EmbeddingPlan, IndexPlan, Rates, SearchPlan, plan_table, shard_rows
from bitextmine.distributed.planned import text_size
from bitextmine.errors import UsageError

ONE = Rates(embed=10.0, search=100.0, index=5.0, lists=50.0, share=0.25, network=1e12)


def shards(rows: int, size: int) -> list[int]:
    return [min(size, rows - start) for start in range(0, rows, size)]


@pytest.mark.parametrize("rows", [1, 65_536, 65_537, 64 * 65_536, 64 * 65_536 + 1, 10**8, 10**9, 10**12])
def test_shards_are_a_64th_within_bounds(rows: int) -> None:
    found = shard_rows(rows)
    assert found % 1024 == 0
    assert 1 << 16 <= found <= 1 << 22
    if 1 << 16 < found < 1 << 22:
        assert 0 <= found - rows / 64 < 1024
    assert found == 1 << 16 or found == 1 << 22 or 63 <= len(range(0, rows, found)) <= 64


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("lines", [1, 9, 10, 11, 95, 100])
def test_embedding_against_shards_that_are_dealt_out(lines: int, workers: int) -> None:
    plan = EmbeddingPlan(lines, 700, 6, 10, replace(ONE, workers=workers, processors=2))
    dealt = [0] * workers
    for number, size in enumerate(shards(lines, 10)):
        dealt[number % workers] += size
    assert plan.shards == len(shards(lines, 10))
    assert plan.vectors == lines * 12
    assert plan.moved == 700 + lines * 12
    assert plan.processor_seconds == pytest.approx(lines / 10)
    assert max(dealt) / 20 <= plan.seconds <= (max(dealt) + 10) / 20, (
        "a shard more at most, if the last is small"
    )
    if workers == 1 or lines % 10 == 0:
        assert plan.seconds == pytest.approx(max(dealt) / 20)
    assert plan.worker == pytest.approx(min(lines, 10) * 12 + 700 * min(lines, 10) / lines, abs=1)


@pytest.mark.parametrize("workers", [1, 2, 5, 40])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (10, 10), (21, 40), (95, 7), (100, 100)])
def test_search_against_tiles_that_are_counted(n: int, m: int, workers: int) -> None:
    plan = SearchPlan(n, m, 4, 2, 10, replace(ONE, workers=workers))
    tiles = [(i, x, j, y) for i, x in enumerate(shards(n, 10)) for j, y in enumerate(shards(m, 10))]
    dealt = [0] * workers
    read = 0
    held = [-1] * workers  # the source's shard that a worker has
    for number, (i, x, _, y) in enumerate(tiles):
        worker = number % workers
        dealt[worker] += x * y
        read += y * 8
        if held[worker] != i:
            held[worker] = i
            read += x * 8
    assert plan.tiles == len(tiles) == math.prod(plan.grid)
    assert plan.read == read
    assert plan.processor_seconds == pytest.approx(n * m * 4 / 100)
    whole = math.ceil(len(tiles) / workers) * max(x * y for _, x, _, y in tiles)  # as if no tile were small
    assert plan.seconds == pytest.approx(min(n * m, whole) * 4 / 100)
    assert max(dealt) * 4 / 100 <= plan.seconds
    if workers == 1 or (n % 10 == 0 and m % 10 == 0):
        assert plan.seconds == pytest.approx(max(dealt) * 4 / 100)
    assert plan.driver == (n + m) * (2 * 12 + 200)


def test_what_is_found_is_what_chance_finds() -> None:
    """In random similarities, tile after tile, a row is handed back where one of its k best so far is in the tile."""
    n, m, k, size = 400, 600, 3, 50
    similar = np.random.default_rng(1).random((n, m))
    handed = 0
    for axis, length in ((similar, m), (similar.T, n)):
        for start in range(0, length, size):
            seen = axis[:, : start + size]
            best = np.argsort(-seen, axis=1)[:, :k]
            handed += int((best >= start).any(axis=1).sum())
    bound = SearchPlan(n, m, 4, k, size, ONE).found / (4 + 8 * k)
    assert handed <= bound <= 1.35 * handed


def test_an_index_compares_a_share_of_all_both_ways() -> None:
    plan = IndexPlan(30, 20, 4, 2, 10, replace(ONE, processors=2))
    assert plan.building == pytest.approx(50 / 5)
    assert plan.searching == pytest.approx(2 * sum(0.25 * 20 * 4 for _ in range(30)) / 50)
    assert plan.seconds == pytest.approx((plan.building + plan.searching) / 2)
    assert plan.tiles == 3 * 2 + 2 * 3
    assert plan.moved == SearchPlan(30, 20, 4, 2, 10, ONE).moved + SearchPlan(20, 30, 4, 2, 10, ONE).moved
    many = replace(plan, rates=replace(ONE, processors=2, workers=4))
    assert many.seconds == pytest.approx(plan.building / 2 + plan.searching / 2 / 4), "one machine builds"
    slow = replace(plan, rates=replace(ONE, network=1.0, workers=100))
    assert slow.seconds == pytest.approx(slow.building + slow.moved / 6), "the tiles of a pass, and no more"
    assert plan.indexes == 50 * (4 * 2 + 10)


def test_a_slow_network_decides_the_time() -> None:
    slow = replace(ONE, network=10.0, workers=4)
    embedding, search = EmbeddingPlan(100, 700, 6, 10, slow), SearchPlan(100, 100, 4, 2, 10, slow)
    assert embedding.seconds == pytest.approx(embedding.moved / 40)
    assert search.seconds == pytest.approx(search.moved / 40)
    few = EmbeddingPlan(15, 700, 6, 10, replace(slow, workers=40))
    assert few.seconds == pytest.approx(few.moved / 20), "two shards go over two networks"


def test_the_default_rates_say_what_the_pages_measured() -> None:
    rates = Rates()
    assert EmbeddingPlan(198_000, 0, 480, 1 << 16, rates).processor_seconds == pytest.approx(2.6, rel=0.02)
    exact = SearchPlan(60_000, 60_000, 512, 4, 1 << 16, rates)
    assert exact.processor_seconds == pytest.approx(6.2, rel=0.02)
    million = IndexPlan(10**6, 10**6, 256, 4, 1 << 16, rates)
    assert million.building == pytest.approx(65 + 63, rel=0.02)
    assert million.searching == pytest.approx(108, rel=0.02)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"embed": 0}, "embed=0: it must be above 0"),
        ({"search": -1.5}, "search=-1.5"),
        ({"network": math.inf}, "network=inf"),
        ({"index": math.nan}, "index=nan"),
        ({"share": 1.5}, "share=1.5: it must be above 0 and at most 1"),
        ({"workers": 1.5}, "workers=1.5: it must be whole"),
        ({"speed": 1}, "there is no such rate; there are embed, search, index"),
    ],
)
def test_rates_that_are_none(given: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Rates().with_given(given)


def test_numbers_are_for_people() -> None:
    rates = Rates(workers=64, processors=16)
    rows = shard_rows(10**9)
    table = plan_table(
        {"news.en": EmbeddingPlan(10**9, 120 * 10**9, 480, rows, rates)},
        SearchPlan(10**9, 10**9, 480, 4, rows, rates),
        rates,
    )
    for part in (
        "239 x 4,194,304",
        "960 GB",
        "1.1 TB",
        "3.7 h",
        "444,444 h",
        "436 h",
        "64 workers",
        "network=1.25e+09",
    ):
        assert part in table, part


@pytest.mark.parametrize(("text", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"\n\nb\r\nc", 4)])
def test_lines_are_counted_as_wc_does_and_a_last_one(tmp_path: Path, text: bytes, lines: int) -> None:
    import gzip

    (tmp_path / "x.en").write_bytes(text)
    (tmp_path / "x.en.gz").write_bytes(gzip.compress(text))
    assert text_size(tmp_path / "x.en") == text_size(tmp_path / "x.en.gz") == (lines, len(text))


# --- the command ---


@pytest.fixture
def corpora(tmp_path: Path, parallel_text: Any) -> Path:
    parallel_text(tmp_path, 60, 20)
    return tmp_path


def test_plan_prints_and_writes_nothing(bitextmine: Any, corpora: Path) -> None:
    before = sorted(corpora.iterdir())
    found = bitextmine(
        "mine",
        "corpus.en",
        "corpus.fr",
        "--plan",
        "--assume",
        "workers=4",
        "--assume",
        "search=1e9",
        cwd=corpora,
    )
    assert sorted(corpora.iterdir()) == before
    assert "80 x 80" in found.out
    assert "embed corpus.en     80  1 x 8,192" in found.out
    assert "in all about" in found.out and "with 4 workers" in found.out
    assert "search=1e+09" in found.out
    through = bitextmine("mine", "corpus.en", "corpus.fr", "--plan", "--search", "index", cwd=corpora).out
    assert "through indexes  80 x 80" in through
    alone = bitextmine("embed", "corpus.en", "corpus.fr", "--plan", cwd=corpora).out
    assert "embed corpus.fr" in alone and "search " not in alone
    assert sorted(corpora.iterdir()) == before


def test_a_plan_is_of_the_workers_that_were_asked_for(bitextmine: Any, corpora: Path) -> None:
    """Nothing of Ray is needed for it."""
    how = ("--ray", "auto", "--ray-cpus", "8", "--ray-rows", "25", "--plan")
    both = ("corpus.en", "corpus.fr")
    out = bitextmine("mine", *both, *how, cwd=corpora).out
    assert "4 x 4 of 25 x 25" in out
    assert "processors=8" in out
    assert "1 x 8,192" in out, "a shard of an embedding is whole chunks"
    through = bitextmine("mine", *both, *how, "--search", "index", "--ray-gpus", "1", cwd=corpora).out
    assert "32 of 25" in through
    assert "--ray-gpus: the rates are those of processors" in through
    alone = bitextmine("embed", *both, *how, "--assume", "processors=2", cwd=corpora).out
    assert "processors=2" in alone and "--ray-gpus" not in alone
    usual = bitextmine("mine", *both, "--plan", cwd=corpora).out
    assert "processors=1" in usual and "1 x 1 of 65,536" in usual


def test_what_is_embedded_is_not_planned_again(bitextmine: Any, corpora: Path) -> None:
    bitextmine("embed", "corpus.fr", cwd=corpora)
    out = bitextmine("mine", "corpus.en", "corpus.fr", "--plan", cwd=corpora).out
    assert "embed corpus.en" in out and "embed corpus.fr" not in out


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("embed", "corpus.en", "--plan", "--assume", "workers=0"), 2, "workers=0: it must be above 0"),
        (("embed", "corpus.en", "--plan", "--assume", "speed=3"), 2, "there is no such rate"),
        (("embed", "corpus.en", "--plan", "--assume", "embed"), 2, "is not KEY=VALUE"),
        (("embed", "corpus.en", "--plan", "--assume", "embed=fast"), 2, "is not a number"),
        (("embed", "corpus.en", "--assume", "embed=3"), 2, "--assume is for --plan"),
        (("mine", "corpus.en", "corpus.fr", "--assume", "embed=3"), 2, "--assume is for --plan"),
        (("embed", "-", "--plan", "--lang", "en"), 2, "a plan counts its lines"),
        (("embed", "none.en", "--plan"), 1, "no such file"),
        (("embed", "empty.en", "--plan"), 1, "there is no line to embed"),
        (("embed", "corpus.en", "--plan", "--vectors", "x.npy"), 2, "made already"),
        (("embed", "corpus.en", "--plan", "--model", "precomputed"), 2, "encodes nothing"),
    ],
)
def test_plans_that_cannot_be_made(
    bitextmine: Any, corpora: Path, args: tuple[str, ...], code: int, said: str
) -> None:
    (corpora / "empty.en").touch()
    result = bitextmine(*args, cwd=corpora, code=code)
    assert said in " ".join(result.err.split())
    assert result.out == ""
