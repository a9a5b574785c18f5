"""Rules that a pair must pass, from options, TOML files and presets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.json_toml import parse_toml, read_toml
from bitextmine.scoring.options import DUPLICATES, PRESETS, a_limit, preset_text

KINDS = ("min", "max", "equal")
_SIGNS = {"min": ">=", "max": "<=", "equal": "="}


@dataclass(frozen=True)
class Rule:
    """A rule: the value in a column (a name, or a number from 1) is at least, at most or equal to `value`.

    A pair without a value there never passes.
    """

    kind: str
    column: str
    value: float | str

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, str) else f"{self.value:g}"
        return f"{self.column} {_SIGNS[self.kind]} {value}"

    def met(self, values: Any) -> Any:
        """Return flags of the numbers (n,) that pass; for one number, True or False."""
        return values >= self.value if self.kind == "min" else values <= self.value


@dataclass(frozen=True)
class RuleSet:
    """Rules in the order of testing.

    Attributes:
        duplicates: the pairs of which only the first is kept: "exact", "near", or "none".
        if_present: columns whose rules are skipped if the input lacks them (languages are identified if stated).
    """

    rules: tuple[Rule, ...] = ()
    duplicates: str = "none"
    if_present: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return ",".join(str(rule).replace(" ", "") for rule in self.rules) or "none"

    def changed(self, rules: Iterable[Rule] = (), duplicates: str | None = None) -> RuleSet:
        """Return the rules with others added; a rule replaces one of its kind on its column."""
        merged = {(rule.kind, rule.column): rule for rule in self.rules}
        merged.update({(rule.kind, rule.column): rule for rule in rules})
        return RuleSet(
            tuple(merged.values()),
            self.duplicates if duplicates is None else _checked(duplicates, "duplicates"),
            self.if_present - {rule.column for rule in rules},
        )


def make_rule(kind: str, column: str, value: Any, where: str = "") -> Rule:
    """Return a rule; BitextmineError, which begins with `where`, if the value is no number."""
    if kind == "equal":
        return Rule(kind, column, str(value))
    try:
        return Rule(kind, column, a_limit(value))
    except UsageError as error:
        raise BitextmineError(f"{where}{kind} {column}: {error}") from None


def load_rules(path: str | os.PathLike[str]) -> RuleSet:
    """Read a TOML file with tables [min], [max] and [equal] of column = value.

    Beside them stand duplicates = "exact|near|none" and if_present = [columns]. BitextmineError for anything else.
    """
    return _rules(read_toml(path), str(path))


def load_preset(name: str) -> RuleSet:
    """Return the rules of a preset; BitextmineError for an unknown name."""
    _checked(name, "preset", (*PRESETS, "none"))
    return _rules(parse_toml(preset_text(name)), f"preset {name}")


def choose_rules(
    preset: str | None,
    own: str | os.PathLike[str] | RuleSet | None,
    limits: Mapping[str, Iterable[tuple[str, Any]]],
    duplicates: str | None,
) -> RuleSet:
    """Return the rules of a preset, own ones or their file, and single ones (kind -> pairs of column and value).

    Later ones replace earlier ones. The default preset is "mild" if there are no other rules; "none" is no preset.
    """
    single = [make_rule(kind, column, value) for kind, pairs in limits.items() for column, value in pairs]
    if preset is None and own is None and not single:
        # Removing duplicates alone is a task of its own.
        preset = "mild" if duplicates is None else "none"
    chosen = RuleSet() if preset in (None, "none") else load_preset(str(preset))
    if own is not None:
        more = own if isinstance(own, RuleSet) else load_rules(own)
        chosen = chosen.changed(more.rules, more.duplicates if more.duplicates != "none" else None)
        chosen = replace(chosen, if_present=chosen.if_present | more.if_present)
    return chosen.changed(single, duplicates)


def _rules(content: Mapping[str, Any], where: str) -> RuleSet:
    rules: list[Rule] = []
    duplicates = "none"
    if_present: list[str] = []
    for key, value in content.items():
        if key in KINDS and isinstance(value, dict):
            rules += [make_rule(key, column, limit, f"{where}: ") for column, limit in value.items()]
        elif key == "duplicates":
            duplicates = _checked(value, f"{where}: duplicates")
        elif key == "if_present" and isinstance(value, list) and all(isinstance(v, str) for v in value):
            if_present = value
        else:
            raise BitextmineError(
                f"{where}: '{key}' is not understood; expected column = value in [min], [max] or [equal], "
                'duplicates = "exact" and if_present = ["column"]'
            )
    return RuleSet(tuple(rules), duplicates, frozenset(if_present))


def _checked(value: Any, what: str, choices: tuple[str, ...] = DUPLICATES) -> str:
    if value not in choices:
        raise BitextmineError(f"{what}: unknown choice {value!r}; choose one of {', '.join(choices)}")
    return str(value)
