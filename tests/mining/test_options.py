"""Options: text becomes a member of its enum, and what does not go together is refused in one place."""

import dataclasses

import numpy as np
import pytest
import torch

from bitextmine import device
from bitextmine.errors import UsageError
from bitextmine.mining import neighbours
from bitextmine.mining.dedup import Dedup
from bitextmine.mining.margin import Margin
from bitextmine.mining.options import Duplicates, MiningOptions, SearchWay, WorkOptions, split_options
from bitextmine.mining.retrieval import Retrieval
from bitextmine.run import Run


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
        ({"retrieval": "best"}, "retrieval: unknown value 'best'; choose one of max, matching"),
        ({"dedup": "fuzzy"}, "dedup: unknown value"),
        ({"duplicates": "none"}, "duplicates: unknown value"),
        ({"retrieval": "matching", "k": 1}, "-k 2 or more"),
        ({"rescore": True, "k": 1}, "--rescore -k 1"),
        ({"threshold": "fpr=1"}, "threshold: fpr= takes a share"),
        ({"threshold": "f0"}, "threshold: fBETA takes a weight"),
        ({"threshold": "nan"}, "'nan'"),
        ({"gold": "g.tsv", "threshold": "none"}, "threshold is none"),
        ({"gold": ""}, "gold: expected the name of a file or folder, found ''"),
        ({"k": 2.5}, "k: expected a whole number, found 2.5"),
        ({"k": "4"}, "k: expected a whole number, found '4'"),
        ({"k": True}, "k: expected a whole number, found True"),
        ({"rescore": "no"}, "rescore: expected True or False, found 'no'"),
        ({"threshold": [1]}, r"threshold: expected a number, 'auto' or 'none', found \[1\]"),
        ({"margin": ["ratio"]}, "margin: unknown value"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(UsageError, match=message):
        MiningOptions(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"memory": "lots"}, "memory: 'lots' is no amount of memory"),
        ({"memory": 0}, "memory must be at least 1, found 0"),
        ({"memory": 1.5}, "memory: expected a whole number, found 1.5"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1, found 0"),
        ({"force": 1}, "force: expected True or False, found 1"),
        ({"errors": "bar"}, "errors: unknown value 'bar'; choose one of strict, replace"),
        ({"device": 3}, "device: expected auto, cpu, cuda or cuda:N, found 3"),
        ({"search": None}, "search: unknown value None"),
    ],
)
def test_what_is_refused_of_the_work(given, message):
    with pytest.raises(UsageError, match=message):
        split_options(given)


def test_numbers_may_be_numpys_and_memory_text():
    assert MiningOptions(k=np.int32(3), rescore=np.True_) == MiningOptions(k=3, rescore=True)
    assert split_options({"memory": "1.5G"})[1].run.memory == 3 << 29


def test_what_goes_together():
    assert MiningOptions(retrieval="matching", k=1, margin="absolute").k == 1
    assert MiningOptions().estimates_noise
    assert not MiningOptions(gold="g.tsv").estimates_noise
    assert not MiningOptions(threshold=1.0).estimates_noise


def test_keywords_are_sorted_into_both_kinds():
    mining, work = split_options({"k": 8, "search": "exact", "memory": 5})
    assert (mining, work) == (MiningOptions(k=8), WorkOptions(Run(memory=5), search="exact"))
    with pytest.raises(TypeError, match=r"mine\(\) has no option 'nosuch'; there are .*duplicates"):
        split_options({"nosuch": 1})


def test_a_gpu_compares_more_exactly(monkeypatch):
    assert neighbours.exact_up_to("cpu") == 10**12
    monkeypatch.setattr(device, "device_name", lambda name: "cuda" if name == "auto" else name)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert neighbours.exact_up_to("auto") == 10**14
    assert neighbours.exact_up_to("cuda:1") == 10**14
