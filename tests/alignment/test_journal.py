"""The journal of a run that may be killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitextmine.alignment.journal import Journal
from bitextmine.errors import BitextmineError

KEY = {"model": "x", "names": ["é"]}


def filled(path: Path, count: int, key: dict = KEY) -> None:
    with Journal(path, key) as journal:
        for i in range(count):
            journal.add({"digest": f"d{i}", "text": f"{i} é\n"})


def test_entries_come_back(tmp_path: Path) -> None:
    filled(tmp_path / "j", 3)
    with Journal(tmp_path / "j", KEY) as journal:
        assert len(journal) == 3
        assert [entry["text"] for entry in journal.entries()] == ["0 é\n", "1 é\n", "2 é\n"]
        assert (journal.digest(2), journal.digest(3)) == ("d2", "")
        journal.add({"digest": "new", "text": "x"})
        assert journal.entry(3)["text"] == "x"
        journal.cut(1)
        journal.add({"digest": "other", "text": "y"})
        assert [entry["digest"] for entry in journal.entries()] == ["d0", "other"]
    with Journal(tmp_path / "j", KEY) as journal:
        assert [entry["digest"] for entry in journal.entries()] == ["d0", "other"]


@pytest.mark.parametrize("lost", range(1, 40))
def test_a_torn_end_is_dropped(tmp_path: Path, lost: int) -> None:
    filled(tmp_path / "j", 3)
    whole = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(whole[:-lost])
    with Journal(tmp_path / "j", KEY) as journal:
        kept = len(journal)
        assert kept == (2 if lost <= len(whole.splitlines()[-1]) + 1 else 1)
        for i in range(kept, 3):
            journal.add({"digest": f"d{i}", "text": f"{i} é\n"})
    assert (tmp_path / "j").read_bytes() == whole


def test_another_key_begins_anew(tmp_path: Path) -> None:
    filled(tmp_path / "j", 3)
    with Journal(tmp_path / "j", {"model": "y"}) as journal:
        assert len(journal) == 0
        journal.add({"digest": "a", "text": ""})
    with Journal(tmp_path / "j", {"model": "y"}) as journal:
        assert journal.digest(0) == "a"


def test_two_runs_at_once(tmp_path: Path) -> None:
    with (
        Journal(tmp_path / "j", KEY),
        pytest.raises(BitextmineError, match="another run"),
        Journal(tmp_path / "j", KEY),
    ):
        pass
    with pytest.raises(BitextmineError, match="cannot write"), Journal(tmp_path / "no" / "j", KEY):
        pass
