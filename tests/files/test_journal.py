"""Journals: records survive a kill at any byte, and nothing else's file is touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.files.journal import Journal, JournalBusyError

RECORDS = [
    {"rows": 4096, "digest": "ab"},
    {"text": "line\nfeed \u2028 ü"},
    {"rows": 8192, "nested": [1, {"a": None}]},
]


def written(path, records=RECORDS, identity=None):
    with Journal(path, "embed", identity or {"text": "x", "rows": 3}) as journal:
        for record in records:
            journal.append(record)
    return path.read_bytes()


@given(cut=st.integers(0, 400))
def test_a_file_cut_anywhere_holds_the_complete_records(cut, tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "x.journal"
    data = written(path)
    path.write_bytes(data[:cut])
    whole = [RECORDS[i] for i in range(3) if len(b"".join(data.splitlines(keepends=True)[: i + 2])) <= cut]
    with Journal(path, "embed", {"text": "x", "rows": 3}) as journal:
        assert list(journal) == whole
        journal.append({"last": True})
    with Journal(path, "embed", {"text": "x", "rows": 3}) as journal:
        assert [*journal] == [*whole, {"last": True}]
        assert journal[-1] == {"last": True}


def test_a_damaged_record_ends_the_journal(tmp_path):
    path = tmp_path / "x.journal"
    data = bytearray(written(path))
    data[data.index(b"line") + 1] ^= 1
    path.write_bytes(data)
    with Journal(path, "embed", {"text": "x", "rows": 3}) as journal:
        assert list(journal) == RECORDS[:1]


def test_truncate_and_remove(tmp_path):
    path = tmp_path / "x.journal"
    written(path)
    with Journal(path, "embed", {"text": "x", "rows": 3}) as journal:
        journal.truncate(1)
        journal.append({"b": 1})
        assert list(journal) == [RECORDS[0], {"b": 1}]
        journal.remove()
    assert not path.exists()


@pytest.mark.parametrize(
    "content", [b"a diary\n", b'{"journal": 1, "job": "align", "identity": {}}\n', b"{}"]
)
def test_the_file_of_another_stays(tmp_path, content):
    path = tmp_path / "x.journal"
    path.write_bytes(content)
    with pytest.raises(BitextmineError, match=r"x\.journal"), Journal(path, "embed", {}):
        pass
    assert path.read_bytes() == content


def test_zeros_of_a_power_cut_count_as_empty(tmp_path):
    path = tmp_path / "x.journal"
    path.write_bytes(bytes(5000))
    with Journal(path, "embed", {}) as journal:
        assert not len(journal)


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "x.journal"
    with Journal(path, "embed", {}), pytest.raises(JournalBusyError), Journal(path, "embed", {}):
        pass
    with Journal(path, "embed", {}) as journal:
        journal.append({"a": 1})
