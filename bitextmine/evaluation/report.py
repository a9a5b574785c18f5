"""The base of all evaluation reports: tables, JSON values, frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, cast

from bitextmine.console import aligned, tab_separated

if TYPE_CHECKING:
    import pandas


class Report:
    """A dataclass with a signature, which identifies the measurement, and notes for the reader."""

    kind: ClassVar[str]
    signature: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {"kind": self.kind, **asdict(cast(Any, self))}

    def _table(self, tabs: bool, header: Sequence[str], rows: Sequence[Sequence[str]], *remarks: str) -> str:
        """Return an aligned table with remarks, or a tab-separated one without."""
        if tabs:
            return tab_separated(header, rows)
        return "\n".join([aligned(header, rows), *remarks, *self.notes, self.signature])


def frame_of(results: Iterable[Any]) -> pandas.DataFrame:
    """Return dataclasses as the rows of a frame."""
    import pandas

    return pandas.DataFrame([asdict(result) for result in results])


def percent(*shares: float) -> list[str]:
    """Return shares from 0 to 1 as percentages with two decimals."""
    return [f"{100 * share:.2f}" for share in shares]


def cut_note(cut: int, noun: str, most: int) -> tuple[str, ...]:
    """Return a note on texts that are longer than an encoder reads, if there are any."""
    if not cut:
        return ()
    subject = f"{cut:,} {noun} is" if cut == 1 else f"{cut:,} {noun}s are"
    return (f"{subject} longer than {most} pieces: of these only the beginning counts",)
