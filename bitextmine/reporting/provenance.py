"""Where a file of pairs comes from: the manifest beside it, its signature, and the commands that repeat it."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import read_json
from bitextmine.files.storage import place
from bitextmine.languages.codes import is_code
from bitextmine.signature import parse_signature

__all__ = ["Provenance", "load_provenance"]


@dataclass
class Provenance:
    """What is known about a file of pairs.

    name: the file's; manifest: the name of its manifest, empty if there is none; content: the manifest;
    parts: of its signature; threshold: where the file was cut, None for nowhere or not known; notes: what the
    manifest says for people; problem: why a manifest was not used.
    """

    name: str
    manifest: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)
    signature: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    threshold: float | None = None
    notes: list[str] = field(default_factory=list)
    problem: str = ""

    def language(self, side: str) -> str:
        """The language of a side (src, tgt), empty if not known."""
        language = self.parts.get(side, "")
        return language if is_code(language) else ""

    def counts(self) -> list[dict[str, float]]:
        """What mining counted around its threshold: threshold, pairs, and perhaps false_positive_rate and
        precision.
        """
        counts = self.content.get("counts")
        rows = [r for r in counts if isinstance(r, Mapping)] if isinstance(counts, list) else []
        wanted = ("threshold", "pairs", "false_positive_rate", "precision")
        numbers = [{key: n for key in wanted if (n := _finite(row.get(key))) is not None} for row in rows]
        return [row for row in numbers if "threshold" in row and "pairs" in row][:50]

    def mine_command(self) -> str:
        """The command line that makes such a file again, empty when the signature is not that of mining."""
        p = self.parts
        if not {"src", "tgt", "k", "margin"} <= p.keys():
            return ""
        words = ["bitextmine", "mine", "--src", p["src"], "--tgt", p["tgt"], "-k", p["k"]]
        for part in ("margin", "retrieval", "threshold", "dedup", "duplicates", "search"):
            if part in p:
                words += [f"--{part}", p[part]]
        output = "-" if self.name == "<stdin>" else self.name
        return shlex.join([*words, "-o", output])


def load_provenance(
    path: str | os.PathLike[str], manifest: str | os.PathLike[str] | None = None
) -> Provenance:
    """Read the manifest of a mined file: the one given, else FILE.json beside the file.

    Raises BitextmineError when the one given is missing or is no manifest of pairs. One found beside the
    file is passed over in that case, with a note.
    """
    stdin = os.fspath(path) == "-"
    found = Provenance("<stdin>" if stdin else place(path).name)
    beside = place(manifest if manifest is not None else f"{os.fspath(path)}.json")
    if manifest is None and (stdin or not beside.is_file()):
        return found
    try:
        content = read_json(beside)
        if content.get("kind") != "bitext":
            raise BitextmineError(
                f"{beside}: describes a thing of kind {content.get('kind')!r}, not a file of pairs"
            )
        signature = content.get("signature")
        if not isinstance(signature, str):
            raise BitextmineError(f"{beside}: no signature in it; it does not come from 'bitextmine mine'")
        try:
            parts = parse_signature(signature)
        except BitextmineError as error:
            raise BitextmineError(f"{beside}: {error}") from None
    except BitextmineError as error:
        if manifest is not None:
            raise
        found.problem = f"The manifest beside the file was not used: {error}."
        return found
    found.manifest = beside.name
    found.content = content
    found.signature, found.parts = signature, parts
    cut = content.get("threshold")
    found.threshold = _finite(cut.get("value")) if isinstance(cut, Mapping) else None
    notes = content.get("notes")
    found.notes += [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    return found


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
