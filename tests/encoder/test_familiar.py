"""When an encoder does not know the language of a text."""

from types import SimpleNamespace

import numpy as np
import pytest

from bitextmine.encoder.familiar import sampled, unfamiliar

ENCODER = SimpleNamespace(name="small", languages=("en", "fr"), pairs={"en": 900, "fr": 500, "et": 400})
ENGLISH = [
    "The old sailor sells a wooden boat behind the church.",
    "Our mayor never washes the silver spoon.",
]
RUSSIAN = ["Старый моряк продаёт деревянную лодку за церковью."]


@pytest.mark.parametrize("code", ["fr", "FR", "fra", "fre", "fr-FR", "fr_CA", "", "und"])
def test_codes_of_what_it_knows(code):
    assert unfamiliar(ENCODER, code, ENGLISH) is None


def test_a_code_of_what_it_does_not_know():
    assert "was not trained on 'zh' (only on en, fr)" in unfamiliar(ENCODER, "zh", ENGLISH)
    assert "'jp' is not a language code" in unfamiliar(ENCODER, "jp", ENGLISH)
    assert "only 400 pairs of 'et'" in unfamiliar(ENCODER, "et", ENGLISH)
    assert "use --model world56" in unfamiliar(ENCODER, "no", ENGLISH)


def test_letters_of_another_script():
    assert unfamiliar(ENCODER, "en", [*ENGLISH, *RUSSIAN]).startswith(
        "36% of the letters in a sample are Cyrillic"
    )
    assert unfamiliar(ENCODER, "en", [*ENGLISH * 5, *RUSSIAN]) is None
    assert unfamiliar(SimpleNamespace(name="x", languages=("en", "sr"), pairs={}), "en", RUSSIAN) is None


def test_an_encoder_that_states_nothing_knows_everything():
    assert unfamiliar(SimpleNamespace(name="any", languages=(), pairs={}), "pl", RUSSIAN) is None


def test_a_sample_is_spread_over_the_lines():
    assert sampled(map(str, range(10_000_000)), 20_000)[:3] == ["0", "32", "64"]
    assert sampled(["one"]) == ["one"]
    for lines in (300, 1000, 1001, 3900, 20_000, 10_000_000):
        found = list(map(int, sampled(map(str, range(lines)))))
        assert len(found) == lines if lines <= 1000 else 500 <= len(found) <= 1000
        assert len(set(np.diff(found))) == 1 and min(lines, 20_000) - found[-1] <= found[1]
