"""The form of a language's code."""

from __future__ import annotations

import pytest

from bitextmine.languages.codes import is_code, is_short_code


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
