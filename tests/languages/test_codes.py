"""The form of a language's code."""

from __future__ import annotations

import pytest

from bitextmine.languages.codes import is_code, is_short_code, same_code


@pytest.mark.parametrize("code", ["fr", "fra", "pt-BR", "zh_Hans"])
def test_codes(code):
    assert is_code(code)
    assert is_short_code(code)


@pytest.mark.parametrize("text", ["", "f", "fr ", "../fr", "fr-", "one two", "français"])
def test_what_has_not_the_form(text):
    assert not is_code(text)
    assert not is_short_code(text)


@pytest.mark.parametrize("word", ["text", "Note", "sentence", "FR"])
def test_a_word_is_no_short_code(word):
    assert is_code(word)
    assert not is_short_code(word)


@pytest.mark.parametrize("code", ["fr", "FR", "fr-FR", "fr_CA", "fra", "fre", "FRA"])
def test_codes_of_one_language(code):
    assert same_code(code) == "fr"


@pytest.mark.parametrize(
    ("code", "same"), [("pt-BR", "pt"), ("deu", "de"), ("zh_Hans", "zh"), ("xyz", "xyz")]
)
def test_codes_of_others(code, same):
    assert same_code(code) == same
