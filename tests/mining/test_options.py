"""Options: text becomes a member of its enum, and what does not go together is refused in one place."""

import pytest
import torch

from bitextmine import device
from bitextmine.errors import UsageError
from bitextmine.mining import neighbours
from bitextmine.mining.mine import mine


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"retrieval": "best"}, "retrieval: unknown value 'best'; choose one of max, matching"),
        ({"retrieval": "matching", "k": 1}, "-k 2 or more"),
        ({"rescore": True, "k": 1}, "--rescore -k 1"),
        ({"gold": "g.tsv", "threshold": "none"}, "the threshold .--threshold. is none"),
        ({"second_budget": "5m"}, "no second encoder .--second."),
        ({"k": 2.5}, "k: expected a whole number, found 2.5"),
        ({"rescore": "no"}, "rescore: expected True or False, found 'no'"),
        ({"memory": "lots"}, "memory: 'lots' is not a size"),
        ({"force": 1}, "force: expected True or False, found 1"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(UsageError, match=message):
        mine(["a"], ["b"], **given)


def test_a_gpu_compares_more_exactly(monkeypatch):
    assert neighbours.exact_up_to("cpu") == 10**12
    monkeypatch.setattr(device, "device_name", lambda name: "cuda" if name == "auto" else name)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert neighbours.exact_up_to("auto") == 10**14
    assert neighbours.exact_up_to("cuda:1") == 10**14
