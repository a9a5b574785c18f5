"""Pages: links lead to files and headings, commands parse, the map is complete, and README.md is short and true."""

import doctest
import re
import shlex
import shutil
import sys
from pathlib import Path

import click
import pytest

from bitextmine.cli.program import program

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    page
    for page in [
        *ROOT.glob("*.md"),
        *(p for top in ("train", "index", "mine") for p in (ROOT / top).rglob("*.md")),
    ]
    if "work" not in page.relative_to(ROOT).parts  # made by the tutorial
)
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEVELOPERS = ("CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r'\]\(([^()\s]+)\)|(?:src|srcset|href)="([^"]+)"')


def text_of(page):
    """A page without code blocks."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    return re.sub(r"(?m)^ {4,}\S.*$", "", text)


def anchors(page):
    """GitHub's anchors for the headings of a page."""
    headings = re.findall(r"(?m)^#+ +(.+)$", text_of(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page):
    broken = []
    for link in (a or b for a, b in LINK.findall(text_of(page))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short(page):
    """Lines of prose; tables and pictures take what they need."""
    lines = text_of(page).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith(("|", "![", "  <img"))] == []


def test_links_headings_and_commands_are_found():
    assert len(PAGES) > 10 and len(COMMANDS) > 30 and len(commands_of(ROOT / "README.md")) > 6
    assert "house-rules" in anchors(ROOT / "CONTRIBUTING.md")
    assert sum(len(LINK.findall(text_of(page))) for page in PAGES) > 40


def test_pictures_have_a_dark_and_a_light_file():
    pairs = []
    for page in PAGES:
        for block in re.findall(r"(?s)<picture>.*?</picture>", page.read_text(encoding="utf-8")):
            names = re.findall(r'(?:src|srcset)="([^"]+)"', block)
            assert [name.rpartition("-")[2] for name in names] == ["dark.svg", "light.svg"]
            pairs += [page.parent / name for name in names]
    assert pairs
    assert all(picture.read_text(encoding="utf-8").startswith("<?xml") for picture in pairs)


def test_the_map_is_complete():
    """CONTRIBUTING.md has every package, and the paths that it names exist."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawn = text[text.index("    bitextmine/ ") : text.index("    train/ index/ mine/")]
    package = ROOT / "bitextmine"
    names = {path.relative_to(package).parts[0].removesuffix(".py") for path in package.rglob("*.py")}
    assert [name for name in sorted(names - {"__main__"}) if not re.search(rf"\b{name}\b", drawn)] == []
    paths = re.findall(r"`((?:bitextmine|tests|train|index|mine)/[\w./-]*)`", text)
    assert len(paths) > 12
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("stage", ["train", "index", "mine"])
def test_tables_name_all_scripts(stage):
    rows = re.findall(r"(?m)^\| (`.+?`) \|", (ROOT / stage / "README.md").read_text(encoding="utf-8"))
    names = [name for row in rows for name in re.findall(r"`([\w.]+(?:\.py|\.sh|/))`", row)]
    assert len(names) > 1
    assert [name for name in names if not (ROOT / stage / name).exists()] == []
    assert {path.name for path in (ROOT / stage).glob("*.py")} <= set(names)


def commands_of(page):
    """The bitextmine commands in the indented blocks of a page, without pipes, redirections and comments."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for name, value in re.findall(r"(?m)^(\w+)=(\S+)$", text):
        text = text.replace(f"${name}", value)
    return {
        re.sub(r"\s{2,}# .*", "", part).strip()
        for line in text.splitlines()
        if re.match(r" {4}(\$ )?[^ ]", line)
        for part in re.split(r"\s\d?[|>&]+", line.strip().removeprefix("$ "))
        if part.strip().startswith("bitextmine ") and "..." not in part
    }


COMMANDS = sorted(set().union(*(commands_of(page) for page in PAGES if page.name not in DEVELOPERS)))


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_parse(line):
    """Options, choices and numbers of arguments are right; nothing is run."""
    command: click.Command = program
    context = click.Context(program, info_name="bitextmine")
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context(command.name, words, parent=context)


def test_it_is_short():
    assert len(README.split()) < 900


def test_first_example(bitextmine, samples):
    """The sentences that it shows, line by line, and their scores up to rounding on another processor."""
    shown = [row.strip().split("\t") for row in re.findall(r"^ {4}\d+\.\d{6}\t.*$", README, re.MULTILINE)]
    assert len(shown) >= 4
    result = bitextmine("mine", "sample.en", "sample.fr", cwd=samples)
    printed = result.out.splitlines()
    short = [row.split("\t") for row in printed if len(row.encode()) < 120][: len(shown)]
    assert [row[1:] for row in short] == [row[1:] for row in shown]
    assert [float(row[0]) for row in short] == pytest.approx([float(row[0]) for row in shown], abs=2e-3)
    counts = [int(number) for number in re.findall(r"\b(\d+) pairs\b", README)]
    assert counts
    assert all(abs(count - len(printed)) <= 2 for count in counts)


@pytest.fixture(scope="module")
def samples(root, tmp_path_factory):
    """A copy of mine/samples, where README.md's examples run, and of the script that they call."""
    folder = tmp_path_factory.mktemp("readme") / "mine"
    shutil.copytree(
        root / "mine" / "samples", folder / "samples", ignore=shutil.ignore_patterns("*.npy", "*.json")
    )
    shutil.copy(root / "mine" / "make_crawl.py", folder)
    return folder / "samples"


def test_examples_run(bitextmine, samples):
    """Each block of commands after the first, in the order of the page; later ones use the files of earlier ones."""
    pytest.importorskip("py3langid")
    pytest.importorskip("fastwarc")
    lines = re.findall(r"(?m)^ {4}\$ (.*)$", README)
    assert lines[0] == "cd mine/samples"
    assert len(lines) > 8
    script = "\n".join(lines[1:]).replace("python ", f"{shlex.quote(sys.executable)} ")
    # `head` closes its pipe early, as on the page
    done = bitextmine.shell(f"set -e; set +o pipefail\n{script}", cwd=samples)
    assert done.returncode == 0, done.stderr.decode()
    made = {"pairs.tsv", "clean.en-fr.tsv", "report.html", "crawl.en", "crawl.fr", "book.tmx", "model"}
    assert made <= {path.name for path in samples.iterdir()}


def test_python_session(samples, monkeypatch):
    monkeypatch.chdir(samples)
    session = doctest.DocTestParser().get_doctest(README, {}, "README.md", None, None)
    assert len(session.examples) >= 5
    assert doctest.DocTestRunner().run(session).failed == 0
