"""Sentences of paragraphs, in the languages of the table."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.documents.sentences import paragraphs, sentences

# Paragraphs with their languages, their sentences parted by |.
PARAGRAPHS = """
en Mr. Reed met Dr. Okafor at 9 a.m. on Friday.|They didn't talk.|It's strange, isn't it?|Perhaps.
en Who called?|"Nobody," said Ann.|"Go home.|I am busy."|J. R. Hale left.|See Fig. 4 and e.g. Sec. 2.
en It costs 4.50 euros.|300 people came.|(Nobody knew why.)|Version 2.0 is out!
en 1. Open the lid.|2. Pour in the water.
en "Good morning?" Harry asked.|"Yes!" I said.|"No!" cried Ann.|"Why?"|He said nothing.|"Go!"|Harry left.
en It is big.[12]|That is all.²|More.[citation needed]|Then a.b[3] came.|Pi is 3.14 or so.
en Chapter one . . . . . . . . . . 5
en Chapter one … … … 5
en He waited . . . .|Then he left.|Wait .NET came.
en "No."|She left.|He said "No."|Then the "U.S." Army came.
de Am 3. Mai kam Hr. Vogt, z. B. mit Frau Dr. Lenz, ins 19. Stockwerk.|Es regnete.|„Gehen wir?“, fragte er.
de „Halt!“ rief sie.|„Wer?“|Niemand sprach.
de Karl V. Habsburg war alt.|Das geschah ca. 1550, d. h. früh.|Äpfel, Birnen usw.|Alles war da.
fr M. Petit et Mme Roy sont là.|« Entrez ! »|Elle dit : « Non. »|Il part vers 8 h avec J.-P. Morel.
it Il sig. Rossi disse: «No.»|Poi uscì.
es ¿Dónde está el Sr. Vega?|¡Aquí!|La Dra. Ruiz vive en la Av. Sur, núm. 4.|Ya es tarde.
es Han vivido.|ellos no han comido nada.|Pesa aprox. cinco kilos.
ru Это было в 1920 г. в Москве.|Он жил на ул. Садовой, т. е. рядом.|«Пора!» — сказал А. П. Чехов.|Да.
pl Pan dr Nowak mieszka przy ul. Długiej.|Czy to XX w. był lepszy?|Tak, np. dla nas.
cs Bylo 5. května.|Pan Ing. Dvořák přišel, tj. pozdě.|Proč?
el Ο κ. Παππάς ήρθε.|Γιατί ήρθε;|Η κα. Νίκου έφυγε· ναι.
tr Dr. Kaya geldi.|Saat kaç?|Bkz. Şekil 2.
zh 他来了。|你好吗？|“很好！”|他说：“我们走吧。”|好。|天黑了。
zh 真的吗？！|“好。”他说。|他笑了。|他说：“好。”
ja 雨が降った。|「行こう。」|彼は帰った！|本当ですか？
ja 彼は「やめろ。」と言った。|「はい。」|でも帰った。|値は３．１４です。|（終わり。）
hi यह किताब है।|वह कहाँ है?|ठीक है।
ar هذا كتاب.|أين هو؟|لا أعرف.
am ይህ መጽሐፍ ነው።|እሱ የት ነው፧
hy Սա գիրք է:|Ժամը 10:30-ին, հետեւյալը: մեկ։
hy Սա գիրք է։|Նա այստեղ է։
hy Արի՛ այստեղ, Արամ՝ իմ եղբայր, ուր է։|Այո՝ եկավ։
ko “가자!”라고 그가 말했다.|“왜?”|고양이가 왔다.
fa «کجا؟» مادر پرسید.|«چرا؟»|او رفت.
ur ”کیوں؟“ احمد نے پوچھا۔|”نہیں!“|وہ چلا گیا۔
bn “কেন?” রহিম জিজ্ঞাসা করল।|“না!”|সে চলে গেল।
ta “ஏன்?” என்று குமார் கேட்டார்.|“இல்லை!”|அவர் போனார்.
ka „რატომ?“ ნინომ იკითხა.|„არა!“|ის წავიდა.
fi ”Miksi?” Harry kysyi.|”Ei!”|Hän vastasi heti.
vi “Tại sao?” Harry hỏi.|“Không!”|Anh nói nhỏ.
xx Aba ceda.|Efa gaho!
"""


@pytest.mark.parametrize(("lang", "marked"), [line.split(" ", 1) for line in PARAGRAPHS.strip().split("\n")])
def test_sentences_of_a_paragraph(lang, marked):
    expected = marked.split("|")
    joiner = "" if lang in ("zh", "ja") else " "
    assert sentences(joiner.join(expected), lang) == expected


@pytest.mark.parametrize(
    ("lang", "piece"),
    [
        *(("en", each) for each in (".", "A .", ".)", "1. ", "a. ", ".[1]", '! "? ', '?" The a', " »", "(.")),
        *(("ja", each) for each in ("。", "。”", '。"', "３．")),
    ],
)
def test_time_is_linear(lang, piece):
    text = f"A{piece * (300_000 // len(piece))}b"
    started = time.process_time()
    assert "".join("".join(sentences(text, lang)).split()) == "".join(text.split())
    assert time.process_time() - started < 2  # seconds; with the square it would be an hour


texts = st.text(st.sampled_from("aZ9 .?!…。！\"'«»()\u00a0\n다ß"), max_size=60)


@given(texts, st.sampled_from(["en", "de", "fr", "zh", "xx"]))
def test_nothing_is_lost_and_nothing_is_empty(text, lang):
    found = sentences(text, lang)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(part == part.strip() and part for part in found)


@given(st.lists(st.text(st.sampled_from("ab .日本")), max_size=12))
def test_paragraphs_keep_every_letter(lines):
    found = list(paragraphs(lines))
    assert "".join("".join(found).split()) == "".join("".join(lines).split())
    assert all(found)


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("colle-", "ague's hat", "colleague's hat"),
        ("colle\u2010", "ague's hat", "colleague's hat"),
        ("colle\u00ad", "ague's hat", "colleague's hat"),
        ("Taİ-", "pei", "Taİpei"),  # its lower case has a combining dot
        ("a well-", "known man", "a well-known man"),
        ("l'après-", "-midi vint", "l'après-midi vint"),
        ("in Baden-", "Baden", "in Baden-Baden"),
        ("the COVID-", "19 years", "the COVID-19 years"),
        ("Vor-", "und Nachteile", "Vor- und Nachteile"),
        ("pre-", "or post-war", "pre- or post-war"),
        ("and so on -", "perhaps", "and so on - perhaps"),
        ("Frau-", "en kamen", "Frauen kamen"),
        ("d'ad-", "mettre", "d'admettre"),
        ("one --", "- two", "one -- - two"),
    ],
)
def test_words_divided_between_lines_are_put_together(first, second, joined):
    fill = "It was a well-known, quite ordinary day of the week, as it seemed to be, and"
    text = [f"{fill} {first}", f"{second} {fill}", "went on."]
    assert list(paragraphs(text)) == [f"{fill} {joined} {fill} went on."]


@pytest.mark.parametrize(
    "divided",
    [
        *["state-of-the-|art", "http://a.org/the-|page.html", "mary-|ann@example.org", "--no-|rescore"],
        *["(X-|ray", "EU-|weite", "COVID-|related", "1990-|1995", "CO2-|neutral"],
        *["dit-|il,", "après-|midi", "celui-|ci", "vas-|y"],
    ],
)
def test_words_with_hyphens_keep_them(divided):
    fill = "It was a quite ordinary day of the week, as it seemed to all of us, and"
    first, second = divided.split("|")
    assert list(paragraphs([f"{fill} {first}", f"{second} {fill}"])) == [f"{fill} {first}{second} {fill}"]


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("in colle-", "agues", ["in colleagues"]),
        ("in pre-", "and", ["in pre- and"]),
        ("colle\u00ac", "agues", ["colleagues"]),
        ("Baden\u00ad", "Baden", ["BadenBaden"]),
        ("CO2\u00ac", "2", ["CO22"]),
        ("in Baden-", "Baden", ["in Baden-", "Baden"]),
        ("a \u00ac", "b", ["a \u00ac", "b"]),
        ("- a -", "b", ["- a -", "b"]),
    ],
)
def test_only_words_go_on_after_lines_that_end_early(first, second, joined):
    full = "The harbour was empty when the three boats came in, and nobody"
    assert list(paragraphs([full, "", first, second])) == [full, *joined]


@pytest.mark.parametrize(
    ("marks", "count"),
    [
        (("- ", "- "), 2),
        (("• ", "", "• "), 2),
        (("|", "|"), 2),
        (("", "9. ", "10. "), 3),
        (("", "--"), 2),
        (("", "- ", "* "), 1),
        (("", "1. ", "3. "), 1),
        (("", "1. ", "2) "), 1),
    ],
)
def test_items_of_lists_are_paragraphs(marks, count):
    fill = "It was a quite ordinary day of the week, as it seemed to all of us"
    lines = [mark if mark == "--" else mark + fill for mark in marks]
    found = list(paragraphs(lines))
    assert (len(found), " ".join(found)) == (count, " ".join(lines))


def test_wrapped_text_is_joined_and_ended_lines_are_not():
    wrapped = [
        "The harbour was empty when the three boats came in, and nobody",
        "stood on the pier to catch the ropes that the sailors threw as",
        "they had always done.",
        "",
        "Contents",
        "Harbours",
        "Boats",
    ]
    assert list(paragraphs(wrapped)) == [" ".join(wrapped[:3]), "Contents", "Harbours", "Boats"]
    contents = [
        "Chapter one . . . . . . . . . . 5",
        "Chapter two ............... xii",
        "The third chapter and",
    ]
    assert list(paragraphs(contents)) == contents
    long = ["x" * 200, "y" * 50, "z" * 150]
    assert list(paragraphs(long)) == long
    chinese = ["雨" * 40, "云" * 40, "风。"]
    assert list(paragraphs(chinese)) == ["".join(chinese)]
