"""Options: text becomes a member of its enum, and what does not go together is refused in one place."""

from __future__ import annotations

import dataclasses

import pytest

from bitextmine.errors import UsageError
from bitextmine.mine.dedup import Dedup
from bitextmine.mine.margin import Margin
from bitextmine.mine.options import Duplicates, MiningOptions, SearchWay, WorkOptions, split_options
from bitextmine.mine.retrieval import Retrieval


def test_text_becomes_a_member():
    options = MiningOptions(
        margin="distance", retrieval="union", dedup="near", duplicates="all", threshold=" AUTO "
    )
    assert options.margin is Margin.DISTANCE
    assert options.retrieval is Retrieval.UNION
    assert options.dedup is Dedup.NEAR
    assert options.duplicates is Duplicates.ALL
    assert options.threshold == "auto"
    assert MiningOptions(threshold="1.5").threshold == 1.5
    assert MiningOptions(threshold=None).threshold == "none"
    assert WorkOptions(search="index").search is SearchWay.INDEX
    assert f"{options.margin}" == "distance"


def test_options_are_frozen_and_checked_again_when_replaced():
    options = MiningOptions()
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.k = 5
    with pytest.raises(UsageError, match="k must be"):
        dataclasses.replace(options, k=0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"retrieval": "best"}, "retrieval: unknown value 'best'; choose one of forward, backward"),
        ({"dedup": "fuzzy"}, "dedup: unknown value"),
        ({"duplicates": "none"}, "duplicates: unknown value"),
        ({"retrieval": "matching", "k": 1}, "-k 2 or more"),
        ({"rescore": True, "k": 1}, "--rescore -k 1"),
        ({"fpr": 1.0}, "fpr: expected a rate"),
        ({"threshold": "nan"}, "'nan'"),
        ({"gold": "g.tsv", "threshold": "none"}, "--threshold is none"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(UsageError, match=message):
        MiningOptions(**given)


def test_what_goes_together():
    assert MiningOptions(retrieval="matching", k=1, margin="absolute").k == 1
    assert MiningOptions().estimates_noise
    assert not MiningOptions(gold="g.tsv").estimates_noise
    assert not MiningOptions(threshold=1.0).estimates_noise


def test_keywords_are_sorted_into_both_kinds():
    mining, work = split_options({"k": 8, "search": "exact", "memory": 5})
    assert (mining, work) == (MiningOptions(k=8), WorkOptions(search="exact", memory=5))
    with pytest.raises(TypeError, match="nosuch"):
        split_options({"nosuch": 1})
