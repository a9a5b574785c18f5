"""Languages told many at a time, against py3langid telling them one by one."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.languages import identify as languages

TEXTS = [
    "The committee meets on Thursday.",
    "Le comité se réunit jeudi.",
    "Der Ausschuss tagt am Donnerstag.",
    "La comisión se reúne el jueves.",
    "Комитет соберётся в четверг.",
    "委員会は木曜日に開かれる。",
    "TOUT EN CAPITALES",
    "  blank  ",
    "a\u0301 combining",
    "x" * 500,
    "tab\tand\x00zero",
    "Састанак је у четвртак",
    "Sastanak je u četvrtak",
]


@pytest.fixture(scope="module")
def known():
    pytest.importorskip("py3langid")
    return languages.Languages()


def oracle(texts):
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    return [dict(model.rank(languages._sample(text))) for text in texts]


def test_the_probabilities_are_py3langids(known, monkeypatch):
    monkeypatch.setattr(languages, "BLOCK", 5)
    ranked = oracle(TEXTS)
    assert known.guess(TEXTS) == [max(found, key=found.__getitem__) for found in ranked]
    for language in ("fr", "en", "sr", "ja"):
        shares = known.share(TEXTS, language)
        for share, found in zip(shares, ranked, strict=True):
            own, other = found[language], max(p for code, p in found.items() if code != language)
            assert share == pytest.approx(own / (own + other), abs=2e-4)


@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_text(known, texts):
    guesses = known.guess(texts)
    shares = known.share(texts, "fr")
    assert len(guesses) == len(shares) == len(texts) and np.isfinite(shares).all()
    for text, guess, share in zip(texts, guesses, shares.tolist(), strict=True):
        assert 0 <= share <= 1
        if not any(map(str.isalpha, languages._sample(text))):
            assert (guess, share) == ("und", 0.5)
        elif guess == "fr":
            assert share >= 0.5


@given(st.lists(st.text(max_size=40) | st.sampled_from(TEXTS), max_size=20), st.sampled_from([2, 142]))
def test_sums_of_features_have_the_same_bits_in_c_and_numpy(known, texts, classes):
    from py3langid.langid import visit_counts

    raw = [text.encode("utf-8", "surrogatepass") for text in texts]
    weights = np.ascontiguousarray(known._weights[:, :classes])
    expected = np.zeros((len(texts), classes), dtype=np.float32)
    for sums, text in zip(expected, raw, strict=True):
        found = visit_counts(known._next, known._row * 256, known._output, text) or {}
        for feature, count in sorted(found.items()):
            sums += np.log1p(np.float32(count)) * weights[feature]
    letters, sizes = (
        np.frombuffer(b"".join(raw), dtype=np.uint8),
        np.array([len(text) for text in raw], np.int64),
    )
    assert known._sums(letters, sizes, weights).tobytes() == expected.tobytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(languages, "library", lambda name: None)
        assert known._sums(letters, sizes, weights).tobytes() == expected.tobytes()


def test_codes(known, monkeypatch):
    assert [known.code(x) for x in ("fr", "fr-CA", "PT_br", "xx")] == ["fr", "fr", "pt", None]
    assert languages.is_installed()
    for name in ("py3langid", "py3langid.langid"):
        monkeypatch.setitem(sys.modules, name, None)
    assert not languages.is_installed()
    with pytest.raises(BitextmineError, match=r"a test needs .*pip install 'py3langid>="):
        languages.Languages("a test")
