"""Every option that a message advises is one that the command has, or one of the command that the message names."""

from __future__ import annotations

import ast
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bitextmine.cli.program import program
from bitextmine.files.streams import LONGEST_LINE, longest_line

PACKAGE = Path(__file__).resolve().parents[2] / "bitextmine"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
# Options of pip, torchrun and hf, and the variables of a style sheet.
FOREIGN = {
    "--force-reinstall",
    "--no-deps",
    "--editable",
    "--head",
    "--nproc-per-node",
    "--object-store-memory",
    "--revision",
}
STYLE = PACKAGE / "report" / "style.py"


def commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def options(command: click.Command) -> set[str]:
    return {opt for param in command.params for opt in (*param.opts, *param.secondary_opts)} | {"--help"}


COMMANDS = {name: options(command) for name, command in commands(program)}


def strangers(message: str, command: str) -> list[str]:
    """The options in a message that neither the command has nor another that stands before them, as in 'embed - --lang
    fr'."""
    found = []
    for match in OPTION.finditer(message):
        clause = re.split(r"[;:,(']", message[: match.start()])[-1]
        named = [name for name in COMMANDS if re.search(rf"\b{name}\b", clause)]
        if not any(match[0] in COMMANDS[name] for name in [command, *named]):
            found.append(match[0])
    return found


def test_an_option_of_another_command_is_found():
    assert strangers("no language; pass --lang", "mine") == ["--lang"]
    assert strangers("no language; pass --lang", "embed") == []
    assert strangers("embed it first, as in 'bitextmine embed - --lang fr', or pass --out", "index") == [
        "--out"
    ]


def test_no_message_speaks_of_an_option_that_no_command_has():
    known = set().union(*COMMANDS.values()) | FOREIGN
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if path != STYLE and isinstance(node, ast.Constant) and isinstance(node.value, str):
                for option in OPTION.findall(node.value):
                    assert option in known, f"{path.name}: {node.value!r}"


@pytest.fixture
def files(tmp_path, monkeypatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("corpus.en", "corpus.fr", "other.fr", "a.txt", "pairs.tsv"):
        Path(name).write_text("Good morning.\tBonjour.\n")
    Path("packed.de.gz").write_bytes(gzip.compress(b"Guten Tag.\n"))
    Path("packed.de").write_text("Guten Morgen.\n")
    Path("latin.es").write_bytes(b"ma\xf1ana\n")
    Path("long.it").write_text("a" * 5000 + "\n")
    Path("five.tsv").write_text("".join(f"{i}\tGood\tday\tBon\tjour\n" for i in range(20)))
    yield
    longest_line(LONGEST_LINE)  # --max-line holds for the process


# Messages that advise an option, each by the command that a person would see it from.
ADVICE = [
    ("embed a.txt", "--lang"),
    ("embed - ", "--out"),
    ("embed - --out x.npy", "--lang"),
    ("embed latin.es", "--errors"),
    ("embed long.it --max-line 1000", "--max-line"),
    ("embed corpus.fr --cache corpus.en/x", "--cache"),
    ("embed corpus.fr --out no/where.npy", None),
    ("index a.txt", "--lang"),
    ("index -", "--lang"),
    ("index latin.es", "--errors"),
    ("index corpus.fr --type Nonsense", "--type"),
    ("index long.it --max-line 1000", "--max-line"),
    ("mine", "--src"),
    ("mine --src en", "--tgt"),
    ("mine a.txt corpus.fr", "--src"),
    ("mine corpus.en a.txt", "--tgt"),
    ("mine --src-file a.txt --tgt fr --name other", "--src"),
    ("mine --src en --tgt fr", "--name"),
    ("mine --src en --tgt de", "--tgt-file"),
    ("mine --src en --tgt es", "--errors"),
    ("mine --src en --tgt it --max-line 1000", "--max-line"),
    ("mine --src en --tgt ru", None),
    ("mine --src en --tgt ru --dir nowhere", "--dir"),
    ("mine --src en --src it --tgt es", "-o"),
    ("mine --src-file - --tgt-file corpus.fr", "--src-file"),
    ("mine corpus.en corpus.fr --memory 1", "--memory"),
    ("mine corpus.en corpus.fr --rescore -k 1", "--rescore"),
    ("evaluate retrieval --src-file a.txt --tgt-file corpus.fr", "--src-lang"),
    ("evaluate retrieval --src-file corpus.en --tgt-file a.txt", "--tgt-lang"),
    ("evaluate retrieval", "--queries"),
    ("evaluate mining pairs.tsv --gold pairs.tsv --src-file corpus.en", "--tgt-file"),
    ("score five.tsv --columns numbers", "--scol"),
    ("score pairs.tsv --columns lang", "--src"),
    ("score pairs.tsv --src-index a", "--tgt-index"),
    ("filter five.tsv --max copy=1", "--scol"),
    ("filter pairs.tsv --no-header --min cosine=1", "--columns"),
    ("report five.tsv -o x.html", "--scol"),
    ("report pairs.tsv", "--png"),
    ("align a.txt corpus.fr --format tmx", "--src-lang"),
]


@pytest.mark.parametrize(("line", "advised"), ADVICE, ids=[line for line, _ in ADVICE])
def test_what_a_message_advises_can_be_done(files, line, advised):
    result = CliRunner().invoke(program, line.split(), input="Bonjour.\n", prog_name="bitextmine")
    assert result.exit_code in (1, 2), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    message = result.output.rpartition("rror: ")[2]
    assert message
    command = next(name for name in COMMANDS if f"{line} ".startswith(f"{name} "))
    assert strangers(message, command) == []
    if advised is not None:
        assert advised in message, message
