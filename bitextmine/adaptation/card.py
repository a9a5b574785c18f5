"""The model card of an adapted encoder: its origin and the figures of each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bitextmine.adaptation.options import AdaptOptions
from bitextmine.adaptation.piles import Piles
from bitextmine.encoder.config import EncoderConfig
from bitextmine.signature import signature

COLUMNS = {
    "round": "round",
    "pairs": "pairs mined",
    "estimated_precision": "of these right, estimated",
    "p_at_1": "P@1 on pairs held out",
    "p_at_1_half": "with half of their words",
}


def adapted_card(
    config: EncoderConfig,
    start: tuple[str, str],
    piles: Sequence[Piles],
    options: AdaptOptions,
    rounds: Sequence[Mapping[str, Any]],
    best: int,
    *,
    scorer: bool,
) -> str:
    """Return the card as Markdown.

    Args:
        config: of the encoder of round ``best``.
        start: name and hash of the first encoder.
        piles: the corpora.
        options: of the run.
        rounds: the entries of adapt.jsonl.
        best: the round whose encoder this is.
        scorer: the folder has the first encoder's scorer, too.
    """
    name, digest = start
    lines = [
        f"# A bitextmine encoder for {', '.join(config.languages)}, adapted",
        "",
        f"{name} (hash {digest}), trained further by `bitextmine adapt` on the pairs that it finds in plain text: "
        f"{'; '.join(map(str, piles))}. No known pairs were used; the estimates are the encoder's own. This is the "
        f"encoder of round {best}; round 0 is {name}."
        + (f" `scorer.safetensors` is that of {name}, which was not fitted again." if scorer else ""),
        "",
        f"| {' | '.join(COLUMNS.values())} |",
        f"|{'---|' * len(COLUMNS)}",
    ]
    for entry in rounds:
        cells = (entry.get(key, "") for key in COLUMNS)
        lines.append(
            f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else str(cell) for cell in cells)} |"
        )
    made = signature(
        model=digest,
        corpora=len(piles),
        error_rate=options.error_rate,
        k=options.k,
        seed=options.seed,
        round=best,
    )
    lines += [
        "",
        "Figures are in %. `adapt.jsonl` has them all, `recipe.json` how a round trains.",
        "",
        f"Signature: `{made}`",
        "",
    ]
    return "\n".join(lines)
