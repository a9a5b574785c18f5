"""The plan for a billion lines: the page has what the script prints, and other rates change it rightly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def printed(root: Path, *args: str) -> str:
    script = root / "index" / "plan_billion.py"
    return subprocess.run([sys.executable, script, *args], capture_output=True, text=True, check=True).stdout


def cells(text: str, stage: str) -> list[float]:
    (row,) = [line for line in text.split("| all of it")[0].splitlines() if line.startswith(f"| {stage}")]
    return [float(cell.strip().replace(",", "") or 0) for cell in row.split("|")[2:-1]]


def test_the_page_has_what_the_script_prints(root: Path) -> None:
    page = (root / "index" / "distributed.md").read_text(encoding="utf-8")
    assert printed(root).strip() in page


def test_other_rates(root: Path) -> None:
    text = printed(
        root, "--lines", "1e8", "--other", "1e6", "--dim", "100", "--workers", "10", "--processors", "1",
        "--assume", "search=1e9", "--assume", "embed=1000", "--processor-hour", "2", "--gigabyte-month", "0",
    )  # fmt: skip
    processor, gpu, _, _, _, cost = cells(text, "search: exact, by processors")
    assert processor == pytest.approx(1e8 * 1e6 * 100 / 1e9 / 3600, rel=0.01)
    assert (gpu, cost) == (0, pytest.approx(2 * processor, rel=0.01))
    assert cells(text, "embed")[0] == pytest.approx(1.01e8 / 1000 / 3600, rel=0.05)
    assert cells(text, "search: exact, by GPUs")[1] == pytest.approx(1e16 / 1.5e14 / 3600, rel=0.06)
    same = printed(
        root, "--lines", "1e6", "--other", "1e6", "--dim", "256", "--processors", "1", "--gigabyte-month", "0"
    )
    for power in ("1.25", "1.5", "1.75"):  # where it was measured all powers say what was
        hours = cells(same, f"search: indexes, work as rows^{power}")[0]
        assert hours == pytest.approx((65 + 63 + 108) / 3600, rel=0.03)
