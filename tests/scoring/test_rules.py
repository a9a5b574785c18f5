"""Presets and rule sets."""

import pytest

from bitextmine.scoring.columns.catalogue import COLUMNS
from bitextmine.scoring.options import PRESETS
from bitextmine.scoring.rules import Rule, choose_rules, load_preset


@pytest.mark.parametrize("name", PRESETS)
def test_presets_speak_of_columns_that_there_are(name):
    rules = load_preset(name)
    assert rules.rules
    for rule in rules.rules:
        assert rule.column in COLUMNS
        assert not COLUMNS[rule.column].is_text
    needs_encoder = [rule.column for rule in rules.rules if COLUMNS[rule.column].encoder]
    assert bool(needs_encoder) == (name != "cheap")


def test_strict_is_mild_and_stricter():
    mild, strict = (
        {(r.kind, r.column): r.value for r in load_preset(name).rules} for name in ("mild", "strict")
    )
    assert mild.keys() == strict.keys()
    for (kind, column), value in mild.items():
        assert (strict[kind, column] > value) if kind == "min" else (strict[kind, column] < value), column


def test_what_is_chosen_when(tmp_path):
    assert choose_rules(None, None, {}, None) == load_preset("mild")
    assert choose_rules(None, None, {"min": [("cosine", 0.5)]}, None).rules == (Rule("min", "cosine", 0.5),)
    assert choose_rules(None, None, {}, "near").rules == ()
    assert choose_rules("none", None, {}, None).rules == ()

    changed = choose_rules("strict", None, {"min": [("lang", 0.5), ("x", 1)]}, "none")
    strict = load_preset("strict")
    assert [r for r in changed.rules if r.column not in ("lang", "x")] == [
        r for r in strict.rules if r.column != "lang"
    ]
    assert Rule("min", "lang", 0.5) in changed.rules  # in place of the preset's
    assert changed.rules[-1] == Rule("min", "x", 1.0)
    assert changed.duplicates == "none"

    (tmp_path / "own.toml").write_text('if_present = ["y"]\n[max]\ny = 3\n[min]\ncosine = 0.2\n')
    both = choose_rules("mild", tmp_path / "own.toml", {"max": [("y", 4)]}, None)
    assert Rule("min", "cosine", 0.2) in both.rules
    assert Rule("max", "y", 4.0) in both.rules
    assert both.if_present == {"lang"}  # a rule that is asked for by an option is not optional
    assert both.duplicates == "exact"
