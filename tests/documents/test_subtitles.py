"""Subtitles as text: files as programs write them, passages, times, hostile input."""

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine import split
from bitextmine.documents.kinds import NoDocument
from bitextmine.documents.subtitles import is_subtitles, passages, read_subtitles
from bitextmine.errors import BitextmineError

# Files as these programs write them, and the sentences in them, parted by |.
FILES = {
    "subtitle-edit.en.srt": "Where were you yesterday evening, my friend?|I stayed at home.|That is not true!|"
    "The door opens slowly... and I see Mr. Smith in room 42|[THUNDER]|♪ Oh, say can you see ♪",
    "vlc.de.srt": "Komm schon.|Nein!|Es ist -5 Grad – und dunkel.|Zimmer 7",
    "aegisub.en.ass": "Where were you yesterday evening, my friend?|I stayed at home, alone.|That is not true!|"
    "Oh, say can you see.|POLICE",
    "subtitle-edit.en.ssa": "First, the bread.",
    "youtube.en.vtt": "welcome back to the channel|today we talk|about bread|really",
    "w3c.en.vtt": "We are in New York City, and it is late.|This is room 42|漢字 means <letters> & signs.",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "crlf"])
@pytest.mark.parametrize("name", FILES)
def test_files_as_programs_write_them(tmp_path, name, encoding):
    text = (Path(__file__).parent / "subtitles" / name).read_text()
    expected = FILES[name].split("|")
    raw = text.replace("\n", "\r\n").encode("utf-8-sig") if encoding == "crlf" else text.encode(encoding)
    (tmp_path / name).write_bytes(raw)
    assert [sentence.text for sentence in split(tmp_path / name)] == expected
    if encoding not in ("utf-16", "utf-32"):  # recognised in a file of text
        (tmp_path / "film.en.txt").write_bytes(raw)
        assert [sentence.text for sentence in split(tmp_path / "film.en.txt")] == expected


@pytest.mark.parametrize(
    ("lang", "encoding", "text"),
    [
        ("fr", "cp1252", "Où êtes-vous, mon cœur ?"),
        ("pl", "cp1250", "Gdzie jesteś, źle ci?"),
        ("sr", "cp1251", "Где си, пријатељу?"),
        ("el", "cp1253", "Πού ήσουν χθες;"),
        ("tr", "cp1254", "Dün neredeydin, şimdi iyi mi?"),
        ("ar", "cp1256", "أين كنت أمس؟"),
        ("th", "cp874", "เมื่อวานคุณอยู่ที่ไหน"),
        ("zh", "gb18030", "你昨天在哪里？"),
        ("zh-TW", "big5", "你昨天在哪裡？"),
        ("ja", "cp932", "昨日はどこにいたの？"),
    ],
)
def test_old_encodings_by_language(tmp_path, caplog, lang, encoding, text):
    path = tmp_path / f"film.{lang}.srt"
    path.write_bytes(f"1\r\n00:00:01,000 --> 00:00:03,000\r\n{text}\r\n".encode(encoding))
    assert [sentence.text for sentence in split(path)] == [text]
    assert f"read as {encoding}, by its language, {lang}" in caplog.text


def test_what_is_no_subtitles(tmp_path):
    (tmp_path / "film.ru.srt").write_bytes(b"1\n00:00:01,000 --> 00:00:02,000\n\x98\n")
    (tmp_path / "film.en.srt").write_text("Only text.\n")
    (tmp_path / "bad.en.ass").write_text("[Events]\nDialogue: 0,soon,0:00:01.00,Default,,0,0,0,,Hello.\n")
    for name, problem in (
        ("film.ru.srt", "neither UTF-8 nor cp1251"),
        ("film.en.srt", "no cues"),
        ("bad.en.ass", "Failed to parse timestamp"),
    ):
        with pytest.raises(BitextmineError, match=problem):
            list(split(tmp_path / name))
    with pytest.raises(NoDocument, match="no subtitles have"):
        read_subtitles((bytes(1 << 20) for _ in range(99)), "en", "film")
    for head in ("1. First\n00:00:01 --> 2", "At 00:01:02,000 --> he came", "WEBVTTX", "--> 00:00:01,000"):
        assert not is_subtitles(head)
    (tmp_path / "log.en").write_text("At 00:01:02,000 --> 00:01:03,000 he came.\n")
    assert [sentence.text for sentence in split(tmp_path / "log.en")] == [
        "At 00:01:02,000 --> 00:01:03,000 he came."
    ]
    (tmp_path / "raw.en.txt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n")
    assert len(list(split(tmp_path / "raw.en.txt", kind="text"))) > 1


def srt(*cues):
    """Make a file of texts with the seconds when they begin and end."""
    stamp = "00:{:02.0f}:{:02.0f},{:03.0f}".format
    times = [[stamp(t // 60, t % 60 // 1, t % 1 * 1000) for t in cue[:2]] for cue in cues]
    return "".join(
        f"{n}\n{begin} --> {end}\n{cue[2]}\n\n"
        for n, ((begin, end), cue) in enumerate(zip(times, cues, strict=True), 1)
    )


@pytest.mark.parametrize(
    ("cues", "expected"),
    [
        # A sentence goes on in lower case, after a comma, and before a capital without a pause, as nouns in German.
        ([(1, 2, "Ich habe das"), (2.1, 3, "Haus."), (3, 4, "Du?")], ["Ich habe das Haus.", "Du?"]),
        ([(1, 2, "When I came,"), (4, 5, "Tom left."), (6, 7, "Yes.")], ["When I came, Tom left.", "Yes."]),
        ([(1, 2, "Ich habe das"), (4, 5, "Haus!"), (6, 7, "Ja.")], ["Ich habe das", "Haus!", "Ja."]),
        # Titles and verses; captions without marks.
        (
            [(n, n + 1, f"Line {n}" + "." * (n > 7)) for n in range(1, 14)],
            [f"Line {n}" + "." * (n > 7) for n in range(1, 14)],
        ),
        ([(n, n + 1, f"line {n}") for n in range(1, 6)], [f"line {n}" for n in range(1, 6)]),
        ([(1, 2, "你在哪里"), (2, 3, "我在家"), (3, 4, "什么\n真的")], ["你在哪里", "我在家", "什么真的"]),
        # Speakers.
        ([(1, 2, "-Hi.\n-Hello."), (2, 3, "Who are you?")], ["Hi.", "Hello.", "Who are you?"]),
        ([(1, 2, "— Да, — сказал он.\n— Нет")], ["Да, — сказал он.", "Нет"]),
        ([(1, 2, ">> GO ON. >> STOP."), (2, 3, "-5 IS COLD.")], ["GO ON.", "STOP.", "-5 IS COLD."]),
        ([(1, 2, "(SIGHS)\nWell."), (2, 3, "I came (by\nbus).")], ["(SIGHS)", "Well.", "I came (by bus)."]),
        # The same words twice are two cues.
        ([(1, 2, "No!"), (2, 3, "No!"), (3, 4, "Yes.")], ["No!", "No!", "Yes."]),
    ],
)
def test_passages(cues, expected):
    found = [line for passage in passages(srt(*cues), "film") for line, _ in passage.sentences("en")]
    assert found == expected


def test_times_of_sentences():
    cues = (10, 14, "One two. Three"), (15, 16, "four. <b>Five</b> &amp; six."), (20, 21, "- A.\n- B.")
    found = {
        line: times for passage in passages(srt(*cues), "film") for line, times in passage.sentences("en")
    }
    assert found["One two."] == pytest.approx((10, 10 + 4 * 8 / 14))
    assert found["Three four."] == pytest.approx((10 + 4 * 9 / 14, 15 + 5 / 17))
    assert found["Five & six."] == pytest.approx((15 + 6 / 17, 16))
    assert found["A."] == pytest.approx((20, 20.5)) and found["B."] == pytest.approx((20.5, 21))


def test_times_without_leading_zeros():
    cues = (
        "0:0:1.5 --> 0:0:3.0\n<v Anna Berg>Good morning.</v>",
        "a1/17-0\n0:1:7.9 --> 1:0:0.25 line:0\nShall we?",
    )
    found = passages("WEBVTT\n\n" + "\n\n".join(cues), "teams")
    timed = {line: times for passage in found for line, times in passage.sentences("en")}
    assert timed["Good morning."] == (1.5, 3.0)
    assert timed["Shall we?"] == pytest.approx((67.9, 3600.25))
    assert is_subtitles("0:0:1.5 --> 0:0:3.0\nGood morning.")


@given(st.lists(st.text(st.sampled_from("aB .!-–…[]♪\n<{}0>"), max_size=12), max_size=8))
def test_letters_and_their_times_keep_their_order(texts):
    cues = [(3 * n, 3 * n + 2, text) for n, text in enumerate(texts)]
    try:
        found = passages(srt(*cues), "film")
    except NoDocument:
        found = []
    timed = [sentence for passage in found for sentence in passage.sentences("en")]
    begins, ends = np.array([times for _, times in timed]).reshape(-1, 2).T
    assert (begins <= ends + 1e-9).all() and (np.diff(begins) >= -1e-9).all()
    assert all(line for line, _ in timed)


_MARKUP = ["<", "<a", "<i ", "{", "{\\", "{y:", "<rt>", "&#"]
_TEXT = ["- ", ". - ", ">> ", "...", "[", "00:", "\n", " \n", "\n1", "00:00:01.000 "]


@pytest.mark.parametrize("piece", [*_MARKUP, *_TEXT, "<00:00:01.000"])
@pytest.mark.parametrize("form", ["srt", "vtt", "ass"])
def test_time_is_linear(piece, form):
    heads = {
        "srt": "1\n00:00:01,000 --> 00:00:02,000\nA",
        "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nA",
        "ass": "[Events]\nDialogue: 0,0:00:01.00,0:00:03.50,Default,,0,0,0,,A",
    }
    text = f"{heads[form]}{piece * (300_000 // len(piece))}b\n"
    started = time.process_time()
    assert is_subtitles(text) or form == "ass"
    assert [line for passage in passages(text, "film") for line, _ in passage.sentences("en")]
    assert time.process_time() - started < 5
