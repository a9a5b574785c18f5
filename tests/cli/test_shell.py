"""The program and the shell: exit codes, error messages, interrupts, closed pipes and streams."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bitextmine import __version__

from .helpers import contents


def run_with(body):
    """Run the program with a command `try` whose body is given."""
    return subprocess.run(command_with(body), capture_output=True)


def command_with(body):
    code = (
        "import click, sys, time\n"
        "from bitextmine.cli.program import main, program\n"
        "from bitextmine.errors import BitextmineError\n"
        "@program.command('try', example='bitextmine try', resume='a rerun resumes')\n"
        "def command():\n" + textwrap.indent(textwrap.dedent(body), "    ") + "\n"
        "main()\n"
    )
    return [sys.executable, "-c", code, "try"]


def test_version(bitextmine):
    assert bitextmine("--version").out == f"bitextmine {__version__}\n"
    done = subprocess.run([sys.executable, "-m", "bitextmine", "--version"], capture_output=True)
    assert (done.returncode, done.stdout.decode()) == (0, f"bitextmine {__version__}\n")


@pytest.mark.parametrize("args", [["--help"], ["evaluate", "mining", "--help"]])
def test_help_imports_only_click_and_the_standard_library(args):
    code = (
        "import sys\nbefore = set(sys.modules)\nfrom bitextmine.cli.program import program\n"
        f"program({args!r}, prog_name='bitextmine', standalone_mode=False)\n"
        "print(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    loaded = {name.partition(".")[0].lstrip("_") for name in done.stderr.decode().split()}
    assert loaded - {"bitextmine", "click"} <= {name.lstrip("_") for name in sys.stdlib_module_names}


def test_errors_and_log_records_are_one_line():
    done = run_with("click.echo('row')\nraise BitextmineError('c.fr: no such file')")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        b"row\n",
        b"bitextmine: error: c.fr: no such file\n",
    )
    done = run_with("import logging\nlogging.getLogger('bitextmine.x.y').info('c.fr.npy is fresh')")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"bitextmine: c.fr.npy is fresh\n")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise MemoryError", ["out of memory", "--batch-tokens"]),
        ('raise RuntimeError("can\'t allocate memory: 9 bytes")', ["out of memory", "9 bytes"]),
        ("class OutOfMemoryError(RuntimeError): pass\nraise OutOfMemoryError('CUDA')", ["CUDA"]),
        ("raise OSError(28, 'No space left', 'x.npy')", ["x.npy", "No space left", "free some space"]),
        ("open('/nonexistent/file')", ["/nonexistent/file", "No such file"]),
        ("import nosuchpackage", ["nosuchpackage", "install"]),
        ("raise EOFError('Compressed file ended')", ["Compressed file ended"]),
    ],
)
def test_errors_of_the_machine_have_a_message(body, words):
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


def test_ctrl_c_prints_a_hint():
    child = subprocess.Popen(
        command_with("click.echo('ready')\nsys.stdout.flush()\ntime.sleep(60)"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate()
    assert child.returncode == 130
    assert err.decode() == "bitextmine: interrupted; a rerun resumes\n"


@pytest.mark.parametrize(
    ("write", "rows"), [("click.echo('row')", 1), ("print('row')", 1), ("print('row')", 100_000)]
)
def test_a_closed_pipe_is_quiet(write, rows):
    """One row stays in the buffer until the interpreter shuts down; many hit the closed pipe earlier."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe:
        done = subprocess.run(
            command_with(f"for _ in range({rows}): {write}"), stdout=pipe, stderr=subprocess.PIPE
        )
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("rows", [1, 100_000])
def test_a_full_standard_output_is_an_error(rows):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command_with(f"for _ in range({rows}): print()"), stdout=full, stderr=subprocess.PIPE
        )
    said = done.stderr.decode()
    assert done.returncode == 1 and said.startswith("bitextmine: error: ")
    assert "No space left" in said and said.count("\n") == 1


@pytest.fixture(scope="module")
def work(bitextmine, tiny_model, parallel_text, tmp_path_factory):
    """A folder with inputs for every command."""
    folder = tmp_path_factory.mktemp("work")
    parallel_text(folder, 60)
    mine = f"mine --src en --tgt fr --model {tiny_model} --ids --threshold none -o mined.tsv".split()
    bitextmine(*mine, cwd=folder)
    rows = [line.split("\t") for line in (folder / "mined.tsv").read_text().splitlines()]
    (folder / "gold.tsv").write_text("".join(f"{row[1]}\t{row[2]}\n" for row in rows))
    (folder / "pairs.tsv").write_text("".join(f"{row[3]}\t{row[4]}\n" for row in rows))
    bitextmine("score", "pairs.tsv", "--model", tiny_model, "-o", "scored.tsv", cwd=folder)
    return folder


# Commands that print, and commands that write a file.
PRINT = {
    "help": "--help",
    "info": "info scored.tsv",
    "mine": "mine --src en --tgt fr --model MODEL --threshold none",
    "report": "report mined.tsv -o -",
}
WRITE = {
    "out.npy": "embed corpus.en --model MODEL --out",
    "out.tsv": "filter scored.tsv -o",
    "out.html": "report mined.tsv -o",
}


def closed(bitextmine, streams, text, folder, model):
    """Run a command with some of its standard streams closed, as `<&- >&- 2>&-` does in a shell."""
    args = text.replace("MODEL", str(model)).split()
    shell = ["sh", "-c", f'exec "$@" {streams}', "sh"]
    return subprocess.run(
        [*shell, *bitextmine.argv, *args], cwd=folder, capture_output=True, check=False, text=True
    )


@pytest.mark.parametrize(
    ("text", "streams"), [*((text, ">&-") for text in PRINT.values()), (PRINT["info"], "<&- >&- 2>&-")]
)
def test_printing_to_a_closed_standard_output(bitextmine, tiny_model, work, text, streams):
    before = contents(work)
    done = closed(bitextmine, streams, text, work, tiny_model)
    assert (done.returncode, done.stdout) == (1, "")
    if "2>" not in streams:
        assert "Traceback" not in done.stderr
        said = [line for line in done.stderr.splitlines() if line.startswith("bitextmine: error: ")]
        assert len(said) == 1 and "standard output is closed" in said[0], done.stderr
    assert contents(work) == before, "no byte of it goes into a file"


@pytest.mark.parametrize("name", WRITE)
def test_files_are_written_with_closed_streams(bitextmine, tiny_model, work, tmp_path, name):
    """Without care the first opened file gets the descriptor of the missing stream, and what is printed to it."""
    args = WRITE[name].replace("MODEL", str(tiny_model)).split()
    for folder in ("usual", "closed"):
        (tmp_path / folder).mkdir()
    bitextmine(*args, tmp_path / "usual" / name, cwd=work)
    before = contents(work)
    done = closed(bitextmine, "<&- >&- 2>&-", f"{WRITE[name]} {tmp_path}/closed/{name}", work, tiny_model)
    assert (done.returncode, done.stdout) == (0, "")
    assert contents(work) == before
    assert contents(tmp_path / "closed") == contents(tmp_path / "usual")


def test_reading_a_closed_standard_input(bitextmine, tiny_model, work):
    done = closed(bitextmine, "<&-", "score - --model MODEL", work, tiny_model)
    assert (done.returncode, done.stdout) == (1, "")
    assert "stdin is closed" in done.stderr
