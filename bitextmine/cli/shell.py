"""How the program meets the shell: help that opens with a line to copy, messages, exit codes, closed pipes.

A standard stream that was closed at the start (``>&-``) is never another file by accident: `hold_standard_streams`.

Exit codes: 0 done, 1 an error with a message, 2 wrong usage (Click's own), 130 interrupted (Ctrl-C),
141 the reader of standard output went away (as for `cat big | head`).
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, NoReturn

import click

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.urls import is_remote

_INTERRUPTED = 130
_CLOSED_PIPE = 141
_TOO_LARGE = 1 << 63  # for what counts and adds in 64 bits
_NO_STDOUT = (
    "standard output is closed; send it somewhere (> FILE), or name an output file if the command takes one"
)


class Command(click.Command):
    """A command whose help opens with `example`, a line to copy.

    `resume` says, for whoever interrupts it, what the same command does when it is run again. `remote`: the parameters
    that may name files in shared storage, by URL; the others are of this machine.
    """

    def __init__(
        self, *args: Any, example: str, resume: str = "", remote: Collection[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.example = example
        self.resume = resume
        self.remote = remote

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        for param in self.params:  # no text may be empty: an unset variable in a script would be one
            value = ctx.params.get(param.name or "")
            if value != param.default and ("" in value if isinstance(value, tuple) else value == ""):
                raise click.BadParameter("it is empty.", ctx, param)
            if isinstance(value, int) and abs(value) >= _TOO_LARGE:
                raise click.BadParameter("the number is too large.", ctx, param)
            values = value if isinstance(value, tuple) else (value,)
            if param.name not in self.remote and any(map(is_remote, values)):
                raise click.BadParameter(
                    f"{next(filter(is_remote, values))}: this is read and written on this machine only, not at a URL.",
                    ctx,
                    param,
                )
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.params.get("output") == "-" and not _stdout_is_open():  # or it would be found after the work
            raise BitextmineError(_NO_STDOUT)
        try:
            return super().invoke(ctx)
        except UsageError as error:
            raise click.UsageError(str(error), ctx) from None

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"Example: {self.example}\n\n")
        super().format_help(ctx, formatter)


class Group(click.Group):
    """A group of commands whose help opens with `example`, a line to copy."""

    command_class = Command

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"Example: {self.example}\n\n")
        super().format_help(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of the pipeline, not of the alphabet


Group.group_class = Group


class Program(Group):
    """The outermost group: turns what a command raises into a message on standard error and an exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _told():  # --help and --version answer from here
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        _log_to_stderr()
        with _told(lambda: _resume_hint(self, ctx)):
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a closed pipe or a full disk can still be reported
            return result


@contextlib.contextmanager
def _told(hint: Callable[[], str] = str) -> Iterator[None]:
    """Tells a person of what is raised, and raises Click's Exit with its code instead; bugs keep their traceback.

    hint: what the same command does when it is run again after an interrupt; asked for then.
    """
    try:
        yield
    except BitextmineError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        resume = hint()
        _say(f"bitextmine: interrupted{f'; {resume}' if resume else ''}")
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except BrokenPipeError:
        _drop_stdout()
        raise click.exceptions.Exit(_CLOSED_PIPE) from None
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "bitextmine":
            raise
        _fail(f"the Python package {error.name!r} is missing; install bitextmine with pip to get it")
    except EOFError as error:  # Click would make an "Aborted!" of it
        _fail(f"input ended too early: {error}")
    except OSError as error:
        _fail(_describe(error))
    except Exception as error:
        if not _out_of_memory(error):
            raise
        _fail(
            f"out of memory ({str(error).splitlines()[0] if str(error) else type(error).__name__}); smaller "
            "batches (--batch-tokens) or smaller corpora need less"
        )


def hold_standard_streams() -> None:
    """Takes the places of the standard streams that were closed when the process began.

    Otherwise the next files to be opened would get their descriptors, and what is printed would go into a corpus or an
    output. Standard input stays None; standard output exists and fails with EBADF when it is written to; what goes to
    standard error is lost.
    """
    for fd, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)  # gets the lowest free number, which is fd
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 (for as long as the process runs)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _stdout_is_open() -> bool:
    """Whether standard output can be written to: what `hold_standard_streams` puts in its place cannot."""
    import fcntl

    try:
        return fcntl.fcntl(1, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:
        return False


def _resume_hint(program: click.Group, ctx: click.Context) -> str:
    command: click.Command | None = program.commands.get(ctx.invoked_subcommand or "")
    return getattr(command, "resume", "")


def _describe(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.EBADF and not where:
        return _NO_STDOUT
    from bitextmine.files.atomic import FULL_DISK  # here: --help loads nothing but this room

    if error.errno in FULL_DISK:
        reason = error.strerror or "no space left"
        return f"{where}cannot write: {reason}; free some space and run the same command again"
    return f"{where}{error.strerror or error}"


def _out_of_memory(error: Exception) -> bool:
    """Whether Python, NumPy or torch (by name: it need not be imported here) ran out of memory."""
    text = str(error)
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (
            isinstance(error, RuntimeError)
            and ("can't allocate memory" in text or "not enough memory" in text)
        )
    )


def _fail(message: str) -> NoReturn:
    _say(f"bitextmine: error: {message}")
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        _drop_stdout()
    raise click.exceptions.Exit(1) from None


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # standard error may be closed as well
        click.echo(line, err=True)


def _drop_stdout() -> None:
    """Send what is still buffered for standard output nowhere, or the interpreter complains as it shuts down."""
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
