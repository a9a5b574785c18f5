"""Options of files of pairs that several commands share; nothing heavy is imported here."""

from dataclasses import dataclass
from typing import Annotated, Any

from bitextmine.declarations import Opt, Options
from bitextmine.errors import UsageError
from bitextmine.files.formats.names import COMPRESSING, OUTPUT_SUFFIXES


def output(help: str, metavar: str = "FILE", *, remote: bool = True) -> Opt:
    """Declare -o; the default is standard output."""
    return Opt("-o --output", help, metavar=metavar, default="standard output", remote=remote)


StreamOutput = Annotated[
    str, output(f"Output file: {OUTPUT_SUFFIXES}, or two with NAME.{{lang}}; add {COMPRESSING} to compress.")
]
Normalize = Annotated[
    bool,
    Opt("--normalize", "Remove markup, mojibake, control characters and runs of spaces from the output."),
]


def _column(flag: str, name: str) -> Opt:
    how = f"{name} column: a position from 1, or a name in the header."
    return Opt(flag, how, metavar="COL", default="detect")


@dataclass(frozen=True)
class PairColumns(Options):
    """The columns of a file of pairs."""

    score_col: Annotated[str | None, _column("--score-col", "Score")] = None
    scol: Annotated[str | None, _column("--scol", "Source")] = None
    tcol: Annotated[str | None, Opt("--tcol", "Target column, likewise.", metavar="COL")] = None
    header: Annotated[
        bool | None,
        Opt("--header/--no-header", "Take the first line as column names, or as data.", default="detect"),
    ] = None

    @property
    def columns(self) -> Any:
        """Return the `Columns` of the file."""
        from bitextmine.files.formats.layout import Columns

        return Columns(self.score_col, self.scol, self.tcol, self.header)


def pairs_file(paths: tuple[str, ...]) -> Any:
    """Return a file of pairs: a path (by default standard input), or two as `TwoFiles`."""
    from bitextmine.files.source import TwoFiles

    if len(paths) > 2:
        raise UsageError("expected a file of pairs, or two: sources and targets")
    return TwoFiles.join(*paths) if len(paths) == 2 else paths[0] if paths else "-"
