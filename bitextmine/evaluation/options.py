"""The options of retrieval; nothing heavy is imported here, as ``--help`` is made of them."""

from dataclasses import dataclass
from typing import Annotated

from bitextmine.declarations import Opt, Options
from bitextmine.errors import UsageError
from bitextmine.shipped import Second


@dataclass(frozen=True)
class RankingOptions(Options):
    """Measures that sentences are ranked by."""

    k: Annotated[int, Opt("-k", "Neighbours for the ratio margin.", ge=1)] = 4
    rescore: Annotated[
        bool, Opt("--rescore", "Also rerank the nearest with the scorer of 'mine --rescore'.")
    ] = False
    second: Annotated[
        Second,
        Opt(
            "--second",
            "Also rerank them by the margin of a second encoder, any that --model takes: alone, and added to that of "
            "the first (with --rescore, of its log odds).",
        ),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rescore and self.k == 1:
            raise UsageError(
                "rescore with k=1 (--rescore -k 1): the scorer needs margins, and one neighbour gives none; use k >= 2"
            )
