"""The options of score and filter; nothing heavy is imported here, as ``--help`` is made of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Annotated, Any, Literal

from bitextmine.arguments import key_value
from bitextmine.declarations import Kind, Opt, Options, Path, one_of_names
from bitextmine.errors import UsageError
from bitextmine.files.formats.layout import Columns
from bitextmine.files.options import Normalize
from bitextmine.languages.codes import LanguageCode
from bitextmine.mining.options import Dedup, Margin, MarginOption, Neighbours
from bitextmine.shipped import Model, Second

MEANINGS = {
    "cosine": "cosine of the two sentence vectors",
    "margin": "this cosine compared with the cosines to the nearest neighbours",
    "cosine2": "cosine of the vectors of a second encoder (--second)",
    "margin2": "its margin",
    "length_ratio": "characters of the longer side divided by those of the shorter",
    "numbers": "agreement of the numbers, 0 to 1 (1: all agree, or there are none)",
    "copy": "share of words that both sides have, 0 to 1 (1: nothing is translated)",
    "lang": "probability of --src and --tgt against the likeliest other language, 0 to 1; the worse side",
    "quality": "probability of a complete and correct translation, from all evidence",
    "shorter": "characters of the shorter side",
    "longer": "characters of the longer side",
    "loops": "share of a side that repeats the words just before, 0 to 1; the worse side",
    "letters": "share of letters, 0 to 1; the worse side",
    "src_lang": "language identified in the source",
    "tgt_lang": "language identified in the target",
    "script": "script of both sides by ISO 15924, such as Latn, or of each if they differ: Latn-Cyrl",
    "key": "hash shared by pairs that differ only in case, digits and punctuation",
}
DUPLICATES = tuple(level.value for level in Dedup)

_FOLDER = resources.files("bitextmine.scoring") / "presets"
PRESETS = tuple(
    sorted(file.name.removesuffix(".toml") for file in _FOLDER.iterdir() if file.name.endswith(".toml"))
)


def default_columns(languages: bool, second: bool = False) -> tuple[str, ...]:
    """Return the columns that `score` adds by default; the presets of `filter` rest on these."""
    again = ("cosine2", "margin2") if second else ()
    basic = ("cosine", "margin", *again, "length_ratio", "numbers", "copy")
    return (*basic, "lang", "quality") if languages else (*basic, "quality")


def preset_text(name: str) -> str:
    """Return the TOML of a preset."""
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")


# Rows scored together, and the pairs among which a margin's neighbours are searched. A constant, so that a score does
# not depend on the speed of a pipe.
WINDOW = 4096


def a_limit(value: Any) -> float:
    """Return the limit of a rule; raise UsageError for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise UsageError(f"expected a number, found {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise UsageError("the number has too many digits") from None


def column_limit(value: Any) -> tuple[str, float]:
    """Return the parts of COL=X, X a number."""
    column, limit = key_value(value)
    return column, a_limit(limit)


def column_names(value: Any) -> tuple[str, ...]:
    """Return names of columns, in text separated by commas or in a sequence."""
    if not isinstance(value, Sequence) and not hasattr(value, "tolist"):
        raise UsageError(f"expected names of columns, found {value!r}")
    names = tuple(str(name).strip() for name in (value.split(",") if isinstance(value, str) else value))
    if unknown := [name for name in names if name not in MEANINGS]:
        raise UsageError(f"no column is called '{unknown[0]}'; there are {', '.join(MEANINGS)}")
    if len(set(names)) < len(names):
        raise UsageError(f"a column is named twice in {','.join(names)}")
    return names


ColumnNames = Annotated[tuple[str, ...] | None, Kind("NAME,...", column_names, "str | Sequence[str]")]
Limits = tuple[Annotated[Any, Kind("COL=X", column_limit)], ...]


@dataclass(frozen=True)
class ScoreOptions(Options):
    """What to compute, and where the pairs are.

    `where` names the columns of source and target; with ``header=False`` no header is written, either.
    """

    columns: Annotated[
        ColumnNames,
        Opt(
            "--columns",
            "Columns to add, in this order.",
            default=f"{', '.join(default_columns(languages=False))}; with lang before quality if --src and --tgt are "
            "given",
        ),
    ] = None
    score_only: Annotated[
        bool,
        Opt(
            "--score-only",
            "Print only the added columns, for 'paste', with a header only if the input has one.",
        ),
    ] = False
    src: Annotated[
        LanguageCode, Opt("--src", "Expected language of the sources; also its name in the output.")
    ] = ""
    tgt: Annotated[LanguageCode, Opt("--tgt", "Expected language of the targets, likewise.")] = ""
    where: Columns = field(default_factory=Columns)
    normalize: Normalize = False
    strict: Annotated[
        bool, Opt("--strict", "Stop at a malformed row instead of leaving its scores empty.")
    ] = False
    model: Model = "auto"
    second: Annotated[
        Second,
        Opt(
            "--second",
            "A second encoder, any that --model takes: adds cosine2 and margin2, and quality uses both encoders.",
        ),
    ] = None
    k: Neighbours = 4
    margin: MarginOption = Margin.RATIO
    window: Annotated[
        int,
        Opt("--window", "Number of consecutive pairs in which the margin's neighbours are searched.", ge=1),
    ] = WINDOW


@dataclass(frozen=True)
class RuleOptions(Options):
    """The rules of a filter on the command line; `rules.choose_rules` makes them."""

    preset: Annotated[
        Annotated[str, one_of_names((*PRESETS, "none"))] | None,
        Opt("--preset", "Ready-made rules; cheap needs no scores.", default="mild, unless rules are given"),
    ] = None
    rules: Annotated[
        Path | None, Opt("--rules", "Further rules, applied after the preset.", metavar="RULES.toml")
    ] = None
    min: Annotated[Limits, Opt("--min", "Keep rows with COL >= X.")] = ()
    max: Annotated[Limits, Opt("--max", "Keep rows with COL <= X.")] = ()
    equal: Annotated[
        tuple[Annotated[Any, Kind("COL=TEXT", key_value)], ...],
        Opt("--equal", "Keep rows with COL equal to TEXT."),
    ] = ()
    duplicates: Annotated[
        Literal["exact", "near", "none"] | None,
        Opt(
            "--duplicates",
            f"Keep only the first of equal pairs. near: {Dedup.NEAR.meaning}.",
            default="set by the preset, or none",
        ),
    ] = None


@dataclass(frozen=True)
class FilterOptions(Options):
    """Where the pairs are (`where`, and `columns` of a file without a header), and what to report."""

    explain: Annotated[
        int, Opt("--explain", "Show N pairs just outside and just inside each rule.", ge=0)
    ] = 0
    columns: Annotated[
        ColumnNames,
        Opt("--columns", "Names of the last columns if there is no header, as passed to 'score'."),
    ] = None
    where: Columns = field(default_factory=Columns)
    src: Annotated[
        LanguageCode,
        Opt("--src", "Source language, for the output, and for rules on lang if the column is missing."),
    ] = ""
    tgt: Annotated[LanguageCode, Opt("--tgt", "Target language, likewise.")] = ""
