"""The program and the shell: help, error messages, exit codes, closed pipes and closed standard streams.

Exit codes: 0 done, 1 error with a message, 2 wrong usage (Click's), 130 interrupted (Ctrl-C), 141 the reader of
standard output has closed it (as in `cat big | head`).
"""

import contextlib
import errno
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import click

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.version import __version__

_INTERRUPTED = 130
_CLOSED_PIPE = 141
_NO_STDOUT = (
    "standard output is closed; redirect it (> FILE), or name an output file if the command takes one"
)


@contextlib.contextmanager
def usage_errors(ctx: click.Context | None) -> Iterator[None]:
    """Turn a UsageError into Click's."""
    try:
        yield
    except UsageError as error:
        raise click.UsageError(str(error), ctx) from None


class _WithExample(click.Command):
    """A command whose help opens with examples, lines to copy."""

    def __init__(self, *args: Any, example: str | tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then Click's help."""
        lines = [self.example] if isinstance(self.example, str) else self.example
        formatter.write("Example: " + "\n         ".join(lines) + "\n\n")
        super().format_help(ctx, formatter)


class Command(_WithExample):
    """A command with examples, and a hint to print if it is interrupted."""

    def __init__(self, *args: Any, resume: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.resume = resume

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; point out that an unknown option is a command."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-")
            if name in getattr(ctx.parent and ctx.parent.command, "commands", {}):
                message = f"{error.message} 'bitextmine {name}' is a command of its own."
                raise click.NoSuchOption(error.option_name, message, ctx=ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        if ctx.params.get("output") == "-" and not _stdout_is_open():  # better now than after the work
            raise BitextmineError(_NO_STDOUT)
        with usage_errors(ctx):
            return super().invoke(ctx)


class Group(_WithExample, click.Group):
    """A group of commands with examples."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in pipeline order, not alphabetically."""
        return list(self.commands)


Group.group_class = Group


class Program(Group):
    """The outermost group: turns exceptions into a message on standard error and an exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the command line; --help and --version print here."""
        with _errors_as_messages():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        _log_to_stderr()
        with _errors_as_messages(
            lambda: getattr(self.commands.get(ctx.invoked_subcommand or ""), "resume", "")
        ):
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()  # a closed pipe or full disk can still be reported here
            return result


@click.group(
    cls=Program,
    example="bitextmine mine --src en --tgt fr",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Tab completion for bash (for zsh and fish: zsh_source, fish_source):
eval "$(_BITEXTMINE_COMPLETE=bash_source bitextmine)\"""",
)
@click.version_option(__version__, prog_name="bitextmine", message="%(prog)s %(version)s")
def program() -> None:
    """Find translated sentence pairs in monolingual text, and clean parallel corpora.

    A corpus is a text file with one sentence per line; its last suffix is its language: corpus.fr,
    corpus.fr.gz (or .bz2, .xz, .zst). "-" stands for standard input or output.
    """


@contextlib.contextmanager
def _errors_as_messages(hint: Callable[[], str] = str) -> Iterator[None]:
    """Print a message for each expected exception and raise Click's Exit instead; bugs keep their traceback."""
    try:
        yield
    except BitextmineError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        resume = hint()
        if any(arg.startswith(("-o", "--output")) for arg in sys.argv):
            resume = resume.removeprefix("with -o, ")
        _say(f"bitextmine: interrupted{f'; {resume}' if resume else ''}")
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except BrokenPipeError:
        _drop_stdout()
        raise click.exceptions.Exit(_CLOSED_PIPE) from None
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "bitextmine":
            raise
        _fail(f"the Python package {error.name!r} is missing; reinstall bitextmine with pip")
    except EOFError as error:  # Click would print "Aborted!"
        _fail(f"unexpected end of input: {error}")
    except OSError as error:
        _fail(_describe(error))
    except Exception as error:
        if not _out_of_memory(error):
            raise
        _fail(
            f"out of memory ({str(error).splitlines()[0] if str(error) else type(error).__name__}); try smaller "
            "batches (--batch-tokens, of train --batch) or smaller corpora"
        )


def hold_standard_streams() -> None:
    """Reopen standard streams that were closed (``>&-``) when the process started.

    Otherwise the next opened file would get the descriptor, and printed text would end up in a corpus or an output.
    Standard input stays None, writing to standard output fails with EBADF, and standard error is discarded.
    """
    for fd, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)  # gets fd, the lowest free number
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 (open until the process ends)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _stdout_is_open() -> bool:
    import fcntl

    try:
        return fcntl.fcntl(1, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:
        return False


def _describe(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.EBADF and not where:
        return _NO_STDOUT
    from bitextmine.files.atomic import FULL_DISK  # here: --help loads nothing but this package

    if error.errno in FULL_DISK:
        reason = error.strerror or "no space left"
        return f"{where}cannot write: {reason}; free some space and run the same command again"
    return f"{where}{error.strerror or error}"


def _out_of_memory(error: Exception) -> bool:
    text = str(error)  # torch's errors are recognised by name and text, without importing it
    if isinstance(error, RuntimeError) and ("can't allocate memory" in text or "not enough memory" in text):
        return True
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _fail(message: str) -> NoReturn:
    _say(f"bitextmine: error: {message}")
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _drop_stdout()
    raise click.exceptions.Exit(1) from None


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # standard error may be closed too
        click.echo(line, err=True)


def _drop_stdout() -> None:
    """Discard buffered output, or the interpreter would complain at shutdown."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _log_to_stderr() -> None:
    logger = logging.getLogger("bitextmine")
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("bitextmine: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
