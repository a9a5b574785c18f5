"""The pages: every relative link leads to a file, and to a heading where it names one; the map names every room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    page
    for page in [
        *ROOT.glob("*.md"),
        *(p for top in ("train", "index", "mine") for p in (ROOT / top).rglob("*.md")),
    ]
    if "work" not in page.relative_to(ROOT).parts  # what the tutorial makes
)
LINK = re.compile(r'\]\(([^()\s]+)\)|(?:src|srcset|href)="([^"]+)"')


def text_of(page: Path) -> str:
    """A page without its blocks of code."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    return re.sub(r"(?m)^ {4,}\S.*$", "", text)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"(?m)^#+ +(.+)$", text_of(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    broken = []
    for link in (a or b for a, b in LINK.findall(text_of(page))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_there_are_links_and_headings_to_check():
    """The patterns find what the pages have."""
    assert len(PAGES) > 10
    assert "house-rules" in anchors(ROOT / "CONTRIBUTING.md")
    assert sum(len(LINK.findall(text_of(page))) for page in PAGES) > 40


def test_pictures_come_in_both_shades():
    """A <picture> names a dark file and a light one, which are there."""
    pairs = []
    for page in PAGES:
        for block in re.findall(r"(?s)<picture>.*?</picture>", page.read_text(encoding="utf-8")):
            names = re.findall(r'(?:src|srcset)="([^"]+)"', block)
            assert [name.rpartition("-")[2] for name in names] == ["dark.svg", "light.svg"]
            pairs += [page.parent / name for name in names]
    assert pairs
    assert all(picture.read_text(encoding="utf-8").startswith("<?xml") for picture in pairs)


def test_the_map_of_the_house_is_true():
    """CONTRIBUTING.md has every room of the package, and what it tells a newcomer to touch is there."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = text[text.index("    bitextmine/ ") : text.index("    train/ index/ mine/")]
    package = ROOT / "bitextmine"
    rooms = {
        path.parts[0].removesuffix(".py") for path in (p.relative_to(package) for p in package.rglob("*.py"))
    }
    assert sorted(room for room in rooms - {"__main__"} if not re.search(rf"\b{room}\b", drawn)) == []
    paths = re.findall(r"`((?:bitextmine|tests|train|index|mine)/[\w./-]*)`", text)
    assert len(paths) > 12
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("stage", ["train", "index", "mine"])
def test_tables_name_scripts_that_are_there(stage):
    rows = re.findall(r"(?m)^\| (`.+?`) \|", (ROOT / stage / "README.md").read_text(encoding="utf-8"))
    names = [name for row in rows for name in re.findall(r"`([\w.]+(?:\.py|\.sh|/))`", row)]
    assert len(names) > 4
    assert [name for name in names if not (ROOT / stage / name).exists()] == []
    there = {path.name for path in (ROOT / stage).glob("*.py") if not path.name.startswith("_")}
    assert there <= set(names)
