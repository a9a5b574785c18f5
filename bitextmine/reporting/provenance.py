"""The provenance of a file of pairs: the manifest beside it and its signature."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.files.json_toml import read_json
from bitextmine.files.source import Source
from bitextmine.files.storage import to_path
from bitextmine.languages.codes import is_code
from bitextmine.signature import parse_signature

_MOST = 50  # notes and parts of a signature that a page shows
_LINES = {
    "lines": "lines",
    "mined_lines": "mined",
    "repeated": "repeated",
    "empty_or_unknown": "empty or unknown to the model",
}
_RULES = {"gold": "tuned by mining on gold pairs", "given": "given to mining"}
_ESTIMATED = {"fpr": "a false-positive rate", "precision": "an estimated precision"}


@dataclass
class Provenance:
    """The origin of a file of pairs.

    Attributes:
        name, manifest: the names of the file and of its manifest, the latter empty without one.
        content: the manifest.
        signature, parts: its signature.
        threshold: the score where mining cut the file; None: not cut, or not known.
        threshold_by: the rule that chose it, for people.
        notes: remarks for people in the manifest.
        problem: the reason why a manifest was not used.
    """

    name: str
    manifest: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)
    signature: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    threshold: float | None = None
    threshold_by: str = "from the manifest"
    notes: list[str] = field(default_factory=list)
    problem: str = ""

    def language(self, side: str) -> str:
        """Return the language of a side (src, tgt), empty if not known."""
        language = self.parts.get(side, "")
        return language if is_code(language) else ""

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the parts of the signature, then the lines of both corpora, as the manifest has them."""
        for key, value in list(self.parts.items())[:_MOST]:
            yield "false-positive rate" if key == "fpr" else key.replace("_", " "), value
        rows = self.content.get("rows")
        for side, title in (("src", "Source corpus"), ("tgt", "Target corpus")):
            facts = rows.get(side) if isinstance(rows, dict) else None
            if isinstance(facts, dict):
                counts = (
                    f"{facts[key]:,} {_LINES[key]}" for key in _LINES if isinstance(facts.get(key), int)
                )
                yield title, f"{facts.get('corpus', '')}: {', '.join(counts)}"


def load_provenance(source: Source, manifest: str | os.PathLike[str] | None = None) -> Provenance:
    """Read the manifest of a mined file: the given one, else FILE.json beside the file.

    Raises:
        BitextmineError: the given manifest is missing or describes no pairs. One found beside the file is skipped in
            that case, with a note.
    """
    origin = Provenance(str(source) if source.is_standard else source.path.name)
    beside = to_path(manifest if manifest is not None else f"{source.text}.json")
    if manifest is None and (source.is_standard or not beside.is_file()):
        return origin
    try:
        content = read_json(beside)
        signature = content.get("signature")
        if content.get("kind") != "bitext" or not isinstance(signature, str):
            raise BitextmineError(f"{beside}: describes {content.get('kind')!r}, not a file of mined pairs")
        try:
            origin.parts = parse_signature(signature)
        except BitextmineError as error:
            raise BitextmineError(f"{beside}: {error}") from None
    except BitextmineError as error:
        if manifest is not None:
            raise
        origin.problem = f"The manifest beside the file was not used: {error}."
        return origin
    origin.manifest, origin.content, origin.signature = beside.name, content, signature
    cut = content.get("threshold")
    origin.threshold = _finite(cut.get("value")) if isinstance(cut, Mapping) else None
    rule = origin.parts.get("threshold_by", "")
    kind, _, number = rule.partition("-")
    if kind in _ESTIMATED:
        origin.threshold_by = f"set by mining for {_ESTIMATED[kind]} of {number}"
    elif rule[:1] == "f" and rule[1:2].isdigit():
        origin.threshold_by = f"set by mining for the best expected {rule.upper()}"
    else:
        origin.threshold_by = _RULES.get(rule, origin.threshold_by)
    notes = content.get("notes")
    origin.notes = (
        [note for note in notes if isinstance(note, str)][:_MOST] if isinstance(notes, list) else []
    )
    return origin


def _finite(value: object) -> float | None:
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
