"""Options of an exact search, none of which changes the answer, and of an index."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from bitextmine.arguments import matching
from bitextmine.declarations import Kind, Opt, Options

SEARCH_MEMORY = Opt(
    "--memory",
    "Memory limit for exact search, e.g. 500M or 2G; too small a limit is an error.",
    default="half of the free memory",
)


class Engine(StrEnum):
    """The implementation; AUTO is the fastest for the device."""

    AUTO = "auto"
    COMPILED = "compiled"  # C, on the CPU
    TORCH = "torch"  # CPU or GPU


class Arithmetic(StrEnum):
    """The arithmetic of torch's first products; that of the compiled engine is int8.

    Its error is bounded, and pairs that may be among the k best by that bound are computed again exactly, so that a
    narrow one is fast and loses nothing.
    """

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"


@dataclass(frozen=True)
class SearchOptions:
    """How an exact search is done; the answer is the same, byte for byte, for all of them.

    Attributes:
        device: "cpu" or a torch device: "cuda", "cuda:1".
        memory: bytes of the computer's memory (not a GPU's) that the search may take besides arrays given to it: the
            answer, 12 bytes per row and neighbour (twice that, and 32 bytes a row, where rows repeat), blocks of both
            sides at work, and caches. Default: half of what is free.
        threads: default the processors available, or OMP_NUM_THREADS.
        block_rows: most rows of x compared at a time.
        engine, arithmetic, instruction_set: for tests and measurements; by default the fastest here.
        names: of both sides, for messages.
    """

    device: str = "cpu"
    memory: int | None = None
    threads: int | None = None
    block_rows: int | None = None
    engine: Engine = Engine.AUTO
    arithmetic: Arithmetic | None = None
    instruction_set: str | None = None
    names: tuple[str, str] = ("source vectors", "target vectors")


INDEX_KINDS = ("auto", "flat", "ivf")
IndexType = Annotated[
    str,
    Kind(
        f"{'|'.join(INDEX_KINDS)}|FACTORY",
        matching(  # FAISS factory strings all contain a capital letter
            rf"(?i:{'|'.join(INDEX_KINDS)})|(?=[^A-Z]*[A-Z])[\w,.:()+\[\]-]+",
            f"{', '.join(INDEX_KINDS)} or a factory string such as IVF1024,SQ8",
        ),
    ),
]


@dataclass(frozen=True)
class IndexOptions(Options):
    """How an index is built; the kinds are those of `faiss_index.factory_string`."""

    kind: Annotated[
        IndexType,
        Opt(
            "--type",
            "Kind of index, or a FAISS factory string such as IVF1024,SQ8; auto: flat up to 250,000 lines, else ivf.",
        ),
    ] = "auto"
    force: Annotated[
        bool, Opt("--force", "Build again even if up to date, and overwrite files of other programs.")
    ] = False
