"""Signatures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine import __version__
from bitextmine.errors import BitextmineError
from bitextmine.signature import parse_signature, signature


def test_a_signature_looks_like_sacrebleus():
    text = signature(k=4, margin="ratio", threshold=1.06, seed=None, dedup=True, index=False, version="0.1.0")
    assert text == "k:4|margin:ratio|threshold:1.06|seed:none|dedup:yes|index:no|version:0.1.0"
    numbers = signature(k=np.int64(4), t=np.float64(0.1), u=np.bool_(True))
    assert numbers == f"k:4|t:0.1|u:yes|version:{__version__}"


@given(st.dictionaries(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True), st.text(st.characters())))
def test_any_value_comes_back(parts):
    text = signature(**parts)
    assert parse_signature(text) == {**parts, "version": parts.get("version", __version__)}
    assert parse_signature(f"  {text}\n") == parse_signature(text)
    assert text.isascii()
    assert len(text.split()) == 1


@pytest.mark.parametrize("text", ["", "k", "k:4|", "k:4||m:x", "k:4|k:5", ":4", "a b:4"])
def test_what_is_no_signature_is_refused(text):
    with pytest.raises(BitextmineError, match="not a signature"):
        parse_signature(text)


def test_a_key_is_a_word():
    with pytest.raises(ValueError, match=r"'a\|b'"):
        signature(**{"a|b": 1})
