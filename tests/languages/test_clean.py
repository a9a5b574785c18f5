"""Normalised text, and the view of it that encoders get."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder import load_encoder
from bitextmine.languages.clean import clean, readable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, a < b && c > d", "plain text, a < b && c > d"),
        ("<p>One<br/>two <b>th</b>ree</p>", "One two three"),
        ("&lt;p&gt;R&amp;D &amp;amp; more&nbsp;&#39;here&#x27;", "R&D & more 'here'"),
        ("<!-- no --><script>var a = '<p>';</script>Yes", "Yes"),
        ("copy <file> to <your name> & go", "copy <file> to <your name> & go"),
        ("il Ã©tait dâ€™accord", "il était d’accord"),
        ("\ufeffzero\u200bwidth\u00ad \x07bell", "zerowidth bell"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("cafe\u0301", "café"),
        ("oﬃce ﬁrst", "office first"),
        ("  a \t b\u00a0\u2028c ", "a b c"),
        ("Âge, château, Ålesund, Ãngel", "Âge, château, Ålesund, Ãngel"),
    ],
)
def test_clean(text, expected):
    assert clean(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "A palavra do dia é «MAÇÃ».",
        "O título é “IRMÃ” em maiúsculas, «AMANHû não.".replace("û", "Ã»"),
        "Sonuç: “HÂLÂ” geçerli. ‘KÂR’",
        "«CAFÉ» “FORÊT” «NOËL…» À L’ÉCOLE — “MÊ”",
        "“HÀ NỘI” «VÂ» (CHÚ Ý) “BÔ”",
        "A MANHÃ—E A IRMÃ—, VOILÀ—ET, ÇÂ—A",
        "MANHÃ–TARDE, IRMÃ’S, «AMANHûHOJE, PÅ…OG".replace("û", "Ã»"),
        "“ĐÓ LÀ ĐÂ”, “THƯÂ”",
        "AMANHÃ—É—OUTRO DIA, O QUE É… A IRMÃ–TIA",
        "KÃ–LN",
    ],
)
def test_capitals_before_marks_are_no_mojibake(text):
    assert clean(text) == text and readable([text]) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("KÃ–LN UND DÃœREN", "KÖLN UND DÜREN"),
        ("KÃ–LN, schÃ¶n", "KÖLN, schön"),
        ("LA CANCIÃ“N ESPAÃ‘OLA", "LA CANCIÓN ESPAÑOLA"),
        ("FRANÃ‡AIS, 10 Â°C", "FRANÇAIS, 10 °C"),
    ],
)
def test_capitals_are_repaired_beside_a_second_sign_of_mojibake(text, expected):
    assert clean(text) == expected and readable([text]) == [expected]


@pytest.mark.parametrize(
    "piece",
    ["<!--", "<style><script><!--", "<script ", "<a ", "</script   ", "&lt;", "Ã", "MÃ» ", "â€", "\u0301"],
)
def test_time_is_linear(piece):
    text = "Hello " + piece * (300_000 // len(piece))
    started = time.process_time()
    clean(text)
    readable([text])
    assert time.process_time() - started < 2  # seconds; a tenth of one each here


@given(st.text(st.sampled_from("aé&;<>/pb#39\u0301\u200b\x01 \u00a0Ãâ€"), max_size=40))
def test_clean_text_is_in_normal_form_and_unspaced(text):
    found = clean(text)
    assert found == unicodedata.normalize("NFC", found)
    assert found == " ".join(found.split())
    assert "\u200b" not in found and "\x01" not in found


def test_clean_lines_are_seen_as_they_are():
    lines = ["a < b & c", " two  spaces ", "cafe\u0301", "tab\tand\u00a0space", "Âge", ""]
    assert readable(lines) is lines


def test_dirty_lines_are_seen_without_markup():
    lines = [" as  it is ", "<p>Hello &amp; good\u200bbye", "dâ€™accord"]
    assert readable(lines) == [" as  it is ", "Hello & goodbye", "d’accord"]


def test_encoders_see_lines_without_markup():
    encoder = load_encoder("europe5")
    plain, dirty = (
        "The boats came before the storm & stayed.",
        "<p>The boats came before the storm &amp; stayed.</p>",
    )
    vectors = encoder.encode([plain, dirty])
    assert (vectors[0] == vectors[1]).all()
    pieces = encoder.tokenize([plain, dirty])[0]
    assert pieces.offsets[1] * 2 == pieces.offsets[2]
