"""How the program meets the shell: help, exit codes, interrupts, closed pipes. Failing commands are put in by hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import pytest

from bitextmine import __version__
from bitextmine.cli.program import program


def all_commands(group: click.Group = program, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path]
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += all_commands(command, (*path, name))
        else:
            found.append((*path, name))
    return found


def run_with(body: str, *args: str, after: str = "", **kwargs) -> subprocess.CompletedProcess[bytes]:
    """Run the program with a command `try` whose body is given."""
    return subprocess.run(command_with(body, *args, after=after), capture_output=True, **kwargs)


def command_with(body: str, *args: str, after: str = "") -> list[str]:
    code = (
        "import click, sys, time\n"
        "from bitextmine.cli.program import main, program\n"
        "from bitextmine.errors import BitextmineError\n"
        "@program.command('try', example='bitextmine try', resume='a rerun goes on')\n"
        "def command():\n" + textwrap.indent(textwrap.dedent(body), "    ") + "\n"
        "main()\n"
    )
    return [sys.executable, "-c", code, "try", *args]


def test_version(bitextmine):
    assert bitextmine("--version").out == f"bitextmine {__version__}\n"


def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "bitextmine", "--version"], capture_output=True)
    assert (done.returncode, done.stdout.decode()) == (0, f"bitextmine {__version__}\n")


@pytest.mark.parametrize("path", all_commands(), ids=lambda path: " ".join(path) or "bitextmine")
def test_help_opens_with_a_line_to_copy(path):
    context = click.Context(program, info_name="bitextmine")
    command: click.Command = program
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
        context = click.Context(command, info_name=name, parent=context)
    first = command.get_help(context).splitlines()[0]
    assert first.startswith("Example: ")
    assert f"bitextmine {' '.join(path)}".strip() in first


def test_the_commands_of_the_design_are_there():
    assert {"train", "embed", "index", "mine", "evaluate", "info"} <= set(program.commands)
    evaluate = program.commands["evaluate"]
    assert isinstance(evaluate, click.Group)
    assert {"retrieval", "mining"} <= set(evaluate.commands)


# Where a stage keeps the names of what it can be told.
NAMES = {
    "bitextmine.alignment.choices",
    "bitextmine.scoring.choices",
    "bitextmine.scoring.columns.names",
    "bitextmine.exporting.forms",
    "bitextmine.files.formats.names",
    "bitextmine.files.urls",
    "bitextmine.indexing.kinds",
    "bitextmine.mining.choices",
}


@pytest.mark.parametrize(
    "args", [["--help"], ["mine", "--help"], ["evaluate", "mining", "--help"], ["--version"]]
)
def test_help_imports_nothing_but_click_and_a_few_small_modules(args):
    """Which is what has it answer at once."""
    code = (
        "import sys\nbefore = set(sys.modules)\nfrom bitextmine.cli.program import program\n"
        f"program({args!r}, prog_name='bitextmine', standalone_mode=False)\n"
        "print(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    loaded = done.stderr.decode().split()
    ours = {name for name in loaded if name.partition(".")[0] == "bitextmine"}
    ours -= {"bitextmine", "bitextmine.errors", "bitextmine.version"}
    stages = {name for name in ours if name.split(".")[1] != "cli"}
    packages = {name.rpartition(".")[0] for name in NAMES} | {"bitextmine.scoring"}
    assert stages <= NAMES | packages
    others = {name.partition(".")[0].lstrip("_") for name in loaded} - {"bitextmine", "click"}
    assert others <= {name.lstrip("_") for name in sys.stdlib_module_names}


def test_choices_are_those_of_the_stage():
    from bitextmine.alignment.choices import FORMATS
    from bitextmine.mining.dedup import Dedup
    from bitextmine.mining.margin import Margin
    from bitextmine.mining.options import Duplicates, SearchWay
    from bitextmine.mining.retrieval import Retrieval
    from bitextmine.scoring.choices import DUPLICATES, PRESETS

    def offered(command):
        options = program.commands[command].params
        return {o.name: set(o.type.choices) for o in options if isinstance(o.type, click.Choice)}

    wanted = {"margin": Margin, "retrieval": Retrieval, "dedup": Dedup, "duplicates": Duplicates}
    wanted["search"] = SearchWay
    found = offered("mine")
    assert {name: found[name] for name in wanted} == {name: set(choices) for name, choices in wanted.items()}
    assert offered("score")["margin"] == set(Margin)
    assert offered("filter") == {"preset": {*PRESETS, "none"}, "duplicates": set(DUPLICATES)}
    assert offered("align")["format"] == set(FORMATS)


def test_every_choice_is_told_in_the_help():
    from bitextmine.mining.choices import Dedup, Duplicates, Margin, Retrieval, SearchWay

    options = {option.name: option for option in program.commands["mine"].params}
    named = {"margin": Margin, "retrieval": Retrieval, "dedup": Dedup, "duplicates": Duplicates}
    for name, choices in {**named, "search": SearchWay}.items():
        assert all(f"{one}: {one.meaning}" in options[name].help for one in choices)


@pytest.mark.parametrize(
    "args", [["nosuch"], ["--nosuch"], ["mine", "--nosuch"], ["mine"], ["embed"], ["mine", "--src", "en"]]
)
def test_wrong_usage_is_exit_2(bitextmine, args):
    result = bitextmine(*args, code=2)
    assert result.out == ""
    assert "Usage: " in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(bitextmine, shell):
    script = bitextmine(env={"_BITEXTMINE_COMPLETE": f"{shell}_source"}).out
    assert "_BITEXTMINE_COMPLETE" in script
    words = {"COMP_WORDS": "bitextmine em", "COMP_CWORD": "em" if shell == "fish" else "1"}
    assert "embed" in bitextmine(env={"_BITEXTMINE_COMPLETE": f"{shell}_complete", **words}).out


def test_an_error_of_ours_is_one_line_and_exit_1():
    done = run_with("click.echo('row')\nraise BitextmineError('corpus.fr: no such file; check the path')")
    assert done.returncode == 1
    assert done.stdout == b"row\n"
    assert done.stderr.decode() == "bitextmine: error: corpus.fr: no such file; check the path\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise MemoryError", ["out of memory", "--batch-tokens"]),
        (
            'raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory: 9 bytes")',
            ["out of memory", "9 bytes"],
        ),
        (
            "class OutOfMemoryError(RuntimeError): pass\nraise OutOfMemoryError('CUDA out of memory.')",
            ["CUDA"],
        ),
        (
            "raise OSError(28, 'No space left on device', 'x.npy')",
            ["x.npy", "No space left", "free some space"],
        ),
        ("open('/nonexistent/file')", ["/nonexistent/file", "No such file"]),
        ("import nosuchpackage", ["nosuchpackage", "install"]),
        ("raise EOFError('Compressed file ended')", ["ended too early", "Compressed file ended"]),
    ],
)
def test_trouble_with_the_machine_is_told_in_words(body, words):
    done = run_with(body)
    message = done.stderr.decode()
    assert done.returncode == 1
    assert message.startswith("bitextmine: error: ")
    assert message.count("\n") == 1
    assert all(word in message for word in words), message


def test_a_bug_keeps_its_traceback():
    done = run_with("raise ValueError('a bug')")
    assert done.returncode == 1
    assert b"Traceback" in done.stderr


def test_ctrl_c_says_what_a_rerun_does():
    child = subprocess.Popen(
        command_with("click.echo('ready')\nsys.stdout.flush()\ntime.sleep(60)"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate()
    assert child.returncode == 130
    assert err.decode() == "bitextmine: interrupted; a rerun goes on\n"


@pytest.mark.parametrize("write", ["click.echo('row')", "print('row')", "sys.stdout.write('row')"])
@pytest.mark.parametrize("rows", [1, 100_000])
def test_a_closed_pipe_is_quiet(write, rows):
    """One row stays in the buffer until the interpreter shuts down; many hit the closed pipe on the way."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            command_with(f"for _ in range({rows}): {write}"), stdout=writer, stderr=subprocess.PIPE
        )
    finally:
        os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("rows", [1, 100_000])
def test_a_full_standard_output_is_an_error(rows):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command_with(f"for _ in range({rows}): print('row')"), stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert done.stderr.decode().startswith("bitextmine: error: ")
    assert "No space left" in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_log_records_of_the_library_go_to_standard_error():
    done = run_with(
        "import logging\nlogging.getLogger('bitextmine.embeddings.store').info('corpus.fr.npy is fresh')"
    )
    assert (done.stdout, done.stderr) == (b"", b"bitextmine: corpus.fr.npy is fresh\n")


# --- standard streams that are closed at the start ---


@pytest.fixture(scope="module")
def work(bitextmine, tiny_model, parallel_text, tmp_path_factory) -> Path:
    """A folder with something to do for every command."""
    folder = tmp_path_factory.mktemp("work")
    parallel_text(folder, 200)
    mine = f"mine --src en --tgt fr --model {tiny_model} --ids --threshold none -o mined.tsv".split()
    bitextmine(*mine, cwd=folder)
    rows = [line.split("\t") for line in (folder / "mined.tsv").read_text().splitlines()]
    (folder / "gold.tsv").write_text("".join(f"{row[1]}\t{row[2]}\n" for row in rows))
    (folder / "pairs.tsv").write_text("".join(f"{row[3]}\t{row[4]}\n" for row in rows))
    bitextmine("score", "pairs.tsv", "--model", tiny_model, "-o", "scored.tsv", cwd=folder)
    return folder


# What each prints to standard output, and what it does when it is told a file.
PRINT = {
    "help": "--help",
    "version": "--version",
    "help of a command": "score --help",
    "info": "info scored.tsv",
    "mine": "mine --src en --tgt fr --model MODEL --threshold none",
    "score": "score pairs.tsv --model MODEL",
    "filter": "filter scored.tsv",
    "report": "report mined.tsv -o -",
    "evaluate": "evaluate mining mined.tsv --gold gold.tsv",
}
WRITE = {
    "embed": "embed corpus.en --model MODEL --out OUT.npy",
    "index": "index out.npy --type ivf --force",
    "mine": "mine --src en --tgt fr --model MODEL --threshold none -o OUT",
    "score": "score pairs.tsv --model MODEL -o OUT",
    "filter": "filter scored.tsv -o OUT",
    "report": "report mined.tsv -o OUT",
}


def closed(
    bitextmine, streams: str, text: str, folder: Path, model: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command with some of its standard streams closed, as `<&- >&- 2>&-` does in a shell."""
    args = text.replace("MODEL", str(model)).split()
    shell = ["sh", "-c", f'exec "$@" {streams}', "sh"]
    return subprocess.run(
        [*shell, *bitextmine.argv, *args], cwd=folder, capture_output=True, check=False, text=True
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("text", PRINT.values(), ids=PRINT)
@pytest.mark.parametrize("streams", [">&-", "<&- >&- 2>&-"])
def test_nothing_can_be_printed_where_standard_output_is_closed(bitextmine, tiny_model, work, text, streams):
    before = contents(work)
    done = closed(bitextmine, streams, text, work, tiny_model)
    assert (done.returncode, done.stdout) == (1, "")
    if "2>" not in streams:
        assert "Traceback" not in done.stderr
        said = [line for line in done.stderr.splitlines() if line.startswith("bitextmine: error: ")]
        assert len(said) == 1 and "standard output is closed" in said[0], done.stderr
    assert contents(work) == before, "not a byte of it may go into a file"


@pytest.mark.parametrize("text", PRINT.values(), ids=PRINT)
def test_the_other_streams_may_be_closed(bitextmine, tiny_model, work, text):
    before = contents(work)
    usual = bitextmine(*text.replace("MODEL", str(tiny_model)).split(), cwd=work)
    done = closed(bitextmine, "<&- 2>&-", text, work, tiny_model)
    assert (done.returncode, done.stdout) == (0, usual.out)
    assert contents(work) == before


def write_all(folder: Path, source: Path, run: Callable[[list[str]], object]) -> Path:
    """A copy of a folder in which every command of WRITE was run."""
    folder.mkdir()
    for path in source.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    for name, text in WRITE.items():
        run(text.replace("OUT", "out" if name == "embed" else name).split())
    return folder


@pytest.fixture(scope="module")
def usual(bitextmine, tiny_model, work, tmp_path_factory) -> Path:
    """What the commands write with all streams open."""
    folder = tmp_path_factory.mktemp("usual") / "work"
    command = partial(bitextmine, cwd=folder)
    return write_all(
        folder, work, lambda args: command(*(str(tiny_model) if a == "MODEL" else a for a in args))
    )


@pytest.mark.parametrize("streams", [">&-", "<&- >&- 2>&-"])
def test_a_file_is_written_all_the_same(bitextmine, tiny_model, work, usual, tmp_path, streams):
    """The first file that is opened would get the number of the stream that is missing, and what is said with it."""

    def run(args: list[str]) -> None:
        done = closed(bitextmine, streams, " ".join(args), tmp_path / "work", tiny_model)
        assert (done.returncode, done.stdout) == (0, ""), (args, done.stderr)

    wanted, found = contents(usual), contents(write_all(tmp_path / "work", work, run))
    assert found.keys() == wanted.keys()
    timed = {name for name in wanted if name.endswith(".faiss.json")}
    assert {name for name in wanted if found[name] != wanted[name]} <= timed


def test_wrong_usage_is_exit_2_where_nobody_can_be_told(bitextmine, tiny_model, work):
    assert closed(bitextmine, "2>&-", "mine --nosuch", work, tiny_model).returncode == 2
    assert closed(bitextmine, "<&- >&- 2>&-", "info nosuch", work, tiny_model).returncode == 1


def test_a_corpus_from_a_closed_standard_input(bitextmine, tiny_model, work):
    done = closed(bitextmine, "<&-", "score - --model MODEL", work, tiny_model)
    assert (done.returncode, done.stdout) == (1, "")
    assert "stdin is closed" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("args", [["--help"], ["--version"], ["mine", "--help"]])
def test_help_into_a_full_disk(bitextmine, args):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*bitextmine.argv, *args], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("bitextmine: error: cannot write: No space left")
    assert done.stderr.count(b"\n") == 1
