"""The set of hashes that duplicates are looked up in."""

import numpy as np
import pytest

from bitextmine.scoring.seen import Seen


def oracle(batches):
    known: set[int] = set()
    for batch in batches:
        fresh = []
        for value in np.where(batch == 0, 1, batch).tolist():
            fresh.append(value not in known)
            known.add(value)
        yield np.array(fresh, dtype=bool)


@pytest.mark.parametrize(("low", "high"), [(0, 50), (0, 3000), (0, 2**63), (2**63, 2**64 - 1)])
def test_new_is_what_a_python_set_says(low, high):
    rng = np.random.default_rng(1)
    batches = [
        rng.integers(low, high, size, dtype=np.uint64) for size in (0, 1, 500, 3000, 20_000, 70_000, 7)
    ]
    seen = Seen()
    for batch, wanted in zip(batches, oracle(batches), strict=True):
        assert np.array_equal(seen.add(batch), wanted)
    assert seen.forgotten == 0
    assert seen.count == len({max(1, v) for batch in batches for v in batch.tolist()})


def test_it_grows_and_remembers():
    rng = np.random.default_rng(2)
    values = rng.integers(1, 2**63, 300_000, dtype=np.uint64)
    seen = Seen()
    small = seen.bytes
    assert all(seen.add(part).all() for part in np.array_split(values, 50))
    assert seen.bytes > small
    assert not seen.add(values).any()
    assert seen.bytes <= 8 * len(values) * 4


@pytest.mark.parametrize("memory", [1, 8, 64, 1000, 8192])
def test_memory_is_a_limit(memory):
    seen = Seen(memory)
    values = np.arange(1, 5001, dtype=np.uint64) * np.uint64(7919)
    assert seen.add(values).all()  # what is not remembered is still taken for new
    assert seen.bytes <= max(memory, 8)
    assert seen.count + seen.forgotten == 5000
    again = seen.add(values)
    assert (~again).sum() == seen.count  # what is remembered is found again
