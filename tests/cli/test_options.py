"""Options: values and combinations that are refused (exit code 2), the help, and options named in messages."""

import ast
import re
from pathlib import Path

import click
import pytest

from bitextmine.cli.program import program

from .helpers import contents

PACKAGE = Path(__file__).resolve().parents[2] / "bitextmine"


def commands(group, prefix=""):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield f"{prefix}{name}", command
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


COMMANDS = dict(commands(program))
OPTIONS = {
    name: {opt for param in command.params for opt in (*param.opts, *param.secondary_opts)} | {"--help"}
    for name, command in COMMANDS.items()
}


TRAIN = "train --pairs x.en-fr.tsv --out m"
MINE = "mine --src en --tgt fr"
RETRIEVAL = "evaluate retrieval --queries q.tsv"
NINES = "9" * 5000
WRONG = [  # a command, its option, values that it must refuse
    (TRAIN, "--vocabulary", ["many", "0"]),
    (TRAIN, "--epochs", ["0", "nan", "inf", "x"]),
    (TRAIN, "--seed", ["-1", "x"]),
    (TRAIN, "--set", ["train.batch", "train.batch=many", "train.nosuch=1", f"train.temperature={NINES}"]),
    ("embed corpus.fr", "--model", [""]),
    ("embed corpus.fr", "--lang", ["", "f", "../fr", "fr "]),
    ("embed corpus.fr", "--out", ["", "vectors", ".npy"]),
    ("embed corpus.fr", "--device", ["cuda:", "cuda:x", "cuda:-1", ""]),
    ("index corpus.fr", "--type", ["nonsense", "", "IVF 1024"]),
    (MINE, "-k", ["0", "x", NINES]),
    (MINE, "--memory", ["20", f"{'9' * 400}G", f"{NINES}G"]),
    ("mine --src en", "--tgt", ["", "f", "corpus/fr"]),
    (
        MINE,
        "--threshold",
        [
            *["", "abc", "nan", "inf", "1,2"],
            *["precision=1", "precision=", "precision", "fpr=0", "fpr=95%", "fpr=nan", "f0"],
        ],
    ),
    (RETRIEVAL, "--pairs", ["en", "en-", "en-fr;fr-en", ""]),
    ("report pairs.tsv -o x.html", "--threshold", ["abc", "precision=0.9"]),
    ("report pairs.tsv", "-o", [""]),
    ("score pairs.tsv", "--columns", ["nosuch", "cosine,cosine", "cosine,"]),
    ("score pairs.tsv", "--src", ["e"]),
    (
        "filter scored.tsv",
        "--min",
        [*["cosine", "cosine=x", "cosine=nan", "cosine=true", "=1"], f"score={NINES}"],
    ),
    ("filter scored.tsv", "--equal", ["lang"]),
    ("filter scored.tsv", "--memory", ["0", "2048", "much"]),
    ("encoder fit-scorer m --recipe europe5", "--corpora", ["laws=x", "=1"]),
]
TOGETHER = [  # combinations, and the options that the message must name
    ("train --out m", ["--pairs"]),
    ("embed corpus.fr corpus.en --out x.npy", ["--out"]),
    ("embed - --lang fr", ["--out"]),
    ("embed - --out x.npy", ["--lang"]),
    ("embed corpus.fr corpus.en --vectors made.npy", ["--vectors"]),
    (f"{TRAIN} --from europe5 --vocabulary 100", ["--vocabulary", "--from"]),
    ("mine --src en", ["--tgt"]),
    (f"{MINE} --gold gold.tsv --threshold 1", ["--gold", "--threshold"]),
    (f"{MINE} --retrieval matching -k 1", ["--retrieval", "-k"]),
    ("mine - corpus.fr --src en", ["SRC: "]),
    ("evaluate retrieval", ["--queries", "--src-file"]),
    ("evaluate retrieval --tgt-file corpus.en", ["--src-file"]),
    (f"{RETRIEVAL} --src-file corpus.en --tgt-file corpus.fr", ["--queries", "--src-file"]),
    ("encoder fit-scorer europe5", ["--recipe"]),
    ("report pairs.tsv", ["-o"]),
    ("score pairs.tsv --columns lang", ["--src", "--tgt"]),
    ("score pairs.tsv --no-header --scol en", ["--no-header"]),
    ("filter pairs.tsv --no-header --tcol fr --max copy=0.5", ["--no-header"]),
]


@pytest.fixture
def refuses(bitextmine, tmp_path):
    """Run a command to exit code 2 in a folder of good files; return the message, a line or two after the usage."""
    for lang in ("en", "fr"):
        (tmp_path / f"corpus.{lang}").write_text("Bonjour.\n")
    for name in ("pairs.tsv", "scored.tsv", "x.en-fr.tsv"):
        (tmp_path / name).write_text("Good morning.\tBonjour.\n")
    (tmp_path / "q.tsv").write_text("en\tfr\nGood morning.\tBonjour.\n")
    for name in ("gold.tsv", "mined.tsv"):
        (tmp_path / name).write_text("1\t1\n")
    before = contents(tmp_path)

    def run(*args):
        result = bitextmine(*args, code=2, cwd=tmp_path)
        assert result.out == "" and "Traceback" not in result.err
        said = result.err.removeprefix("bitextmine: --model auto: europe5, for fr\n")
        assert said.startswith(f"Usage: bitextmine {args[0]}")
        message = result.err.partition("\nError: ")[2]
        assert message.count("\n") <= 2, message
        assert contents(tmp_path) == before
        return message

    return run


@pytest.mark.parametrize(
    ("command", "option", "values"), WRONG, ids=lambda x: x[:60] if isinstance(x, str) else ""
)
def test_bad_values(refuses, command, option, values):
    for value in values:
        assert option in refuses(*command.split(), option, value)


@pytest.mark.parametrize(("command", "options"), TOGETHER, ids=lambda x: x if isinstance(x, str) else "")
def test_bad_combinations(refuses, command, options):
    message = refuses(*command.split())
    assert all(option in message for option in options), message


@pytest.mark.parametrize("args", [["embed", ""], ["embed", "corpus.fr", ""], ["info", ""], ["score", ""]])
def test_empty_file_names(refuses, args):
    """An unset variable of a script gives an empty argument."""
    assert "empty" in refuses(*args)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_opens_with_an_example(name):
    context = click.Context(program, info_name="bitextmine")
    command: click.Command = program
    for part in name.split():
        assert isinstance(command, click.Group)
        command = command.commands[part]
        context = click.Context(command, info_name=part, parent=context)
    text = command.get_help(context)
    assert text.splitlines()[0].startswith(f"Example: bitextmine {name}".strip())
    assert all(param.help for param in command.params if isinstance(param, click.Option))


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_valid(name):
    """Every part of an example pipeline parses: options, choices and number of arguments."""
    lines = COMMANDS[name].example
    for line in [lines] if isinstance(lines, str) else lines:
        for part in re.split(r"\s[|>&]+\s?", line):
            words = part.split()
            if words[:1] != ["bitextmine"]:
                continue
            command, context = program, click.Context(program)
            while isinstance(command, click.Group):
                command = command.commands[words.pop(1)]
            command.make_context(command.name, words[1:], parent=context)


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
# Options of pip, hf, ray and soffice.
FOREIGN = "--convert-to --force-reinstall --no-deps --editable --head --object-store-memory --revision"


def test_messages_name_existing_options():
    known = set().union(*OPTIONS.values(), FOREIGN.split()) | {"--version"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ": var(" not in node.value:
                for option in OPTION.findall(node.value):
                    assert option in known or re.search(rf"{option}:\s", node.value), f"{path.name}: {option}"
