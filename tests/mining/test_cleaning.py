"""Which lines and pairs are left out before and after the search."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.files.corpus import Corpus
from bitextmine.languages.identify import is_installed
from bitextmine.mining import cleaning
from bitextmine.mining.cleaning import clean_sides, is_junk, near_copy
from bitextmine.mining.dedup import unique_lines
from bitextmine.mining.sides import Side

GERMAN = [
    "Der alte Kapitän verkaufte sein Boot, weil ihm der Weg zum Hafen zu weit geworden war.",
    "Niemand wusste, warum die Bibliothek an diesem Nachmittag schon so früh geschlossen hatte.",
    "Wir haben gestern den ganzen Abend über die neue Brücke und ihre Kosten gesprochen.",
]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("x", "no_letters"),
        ("1 2 3", "no_letters"),
        ("-----", "no_letters"),
        ("a b c", "no_letters"),
        ("A. B.", "no_letters"),
        ("好", "no_letters"),
        ("aaaaaaaaaaaaab", "repeated"),
        ("Chapter 1 ......................................", "repeated"),
        ("lorem lorem lorem ipsum lorem lorem", "repeated"),
        ("hahaha", None),
        ("No.", None),
        ("Je ne mange pas de viande.", None),
        ("我不吃肉。", None),
        ("The very, very old man had had a very good day.", None),
    ],
)
def test_junk(line, rule):
    assert is_junk(line) == rule


@given(
    st.lists(st.text(st.sampled_from("ab \u00a0\u2003\t\n\0é好\ud800"), max_size=120), max_size=9), st.data()
)
def test_words_weigh_in_lines_as_word_by_word(lines, data):
    samples = [
        data.draw(st.lists(st.sampled_from(["a b", "b é", "好 a\u2003a", "bb b"]), min_size=9))
        for _ in (0, 1)
    ]
    weights = cleaning._Weights(samples)
    counts = [Counter(word for line in some for word in set(line.split())) for some in samples]

    def of_word(word):
        one, other = (count[word] for count in counts)
        weight = math.log((one + 0.5) / (other + 0.5)) + math.log(len(samples[1]) / len(samples[0]))
        return min(3.0, max(-3.0, weight)) if one + other >= 5 else 0.0

    wanted = []
    for line in lines:
        begun, whole = (sum(map(of_word, part.split())) for part in (line[:80], line))
        wanted.append(whole if begun < 1 and len(line) > 80 else begun)
    np.testing.assert_allclose(weights.of(lines, 1.0), wanted, atol=1e-9)


@given(st.lists(st.text(max_size=99), min_size=1, max_size=9))
def test_lines_that_count_as_varied_are(lines):
    assert all(
        len(set(line[:80])) > 16 for line, mask in zip(lines, cleaning._varied(lines), strict=True) if mask
    )


@pytest.mark.parametrize(
    ("src", "tgt", "copy"),
    [
        ("Send the form to our office in Lyon today.", "Send the form to our OFFICE in Lyon tomorrow.", True),
        ("Send the form to our office in Lyon today.", "Envoyez le formulaire à Lyon aujourd'hui.", False),
        ("Paris 2004", "Paris 2004", False),  # too short to tell
        ("Paris 2004", "Paris 2008", True),  # no translation changes a number
        ("Page 3 of 1,009", "<li>page 8 of 1009</li>", True),
        ("1,000 francs", "1.000 francs", False),
        ("1. Paris", "Paris", False),
        ("Crossed a threshold", "  - Crossed a threshold", True),
        ("12. <b>Crossed&nbsp;a threshold</b>", "CROSSED A THRESHOLD!", True),
        ("Crossed a threshold", "Crossed a line", False),
        ("会议明天中午在北京举行。", "会议明天下午在北京举行。", True),
        ("会议明天中午在北京举行。", "会议明天中午在北京举行", True),
        ("北京大学", "北京大学", False),  # a name
        ("会议明天中午在北京举行。", "採決は明日の正午に行われます。", False),
        ("La casa de la playa es grande", "La casa della spiaggia è grande", False),
    ],
)
def test_near_copies(src, tgt, copy):
    assert near_copy(src, tgt) == copy


def sentences(words, n, seed):
    """Sentences of made-up words with a language's small ones between."""
    rng = random.Random(seed)
    small = words.split()
    return [
        " ".join(f"{rng.choice(small)} {''.join(rng.choices('bcdfglmnprstv', k=5))}o" for _ in range(5))
        for _ in range(n)
    ]


def cleaned(src, tgt, langs=("und", "und")):
    """Return the lines of both sides that go, the numbers of lines by rule, and if languages were identified."""
    texts = [Corpus(src, langs[0], name="src"), Corpus(tgt, langs[1], name="tgt")]
    sides = [Side(text, unique_lines(text.lines()), np.ones((len(text), 1), np.float16)) for text in texts]
    found, version = clean_sides(sides)
    gone = [
        {*old.unique.rows.tolist()} - {*new.unique.rows.tolist()}
        for old, new in zip(sides, found, strict=True)
    ]
    return gone, [side.cleaned for side in found], version.endswith("languages")


def test_what_words_tell_where_no_language_is_known():
    one, other = sentences("the of and to in", 1200, 1), sentences("le les des une dans", 1200, 2)
    third = sentences("der die und nicht ein", 30, 3)
    src = [*one, *other[:50], *third, "Madrid Berlin Roma"]
    tgt = [*other, *one[:60], *third, "Madrid Berlin Roma"]
    (gone_src, gone_tgt), counts, identified = cleaned(src, tgt)
    assert gone_src == set(range(1200, 1281)), "the other side's lines, what has no side, and what both have"
    assert gone_tgt == set(range(1200, 1291))
    assert not identified
    assert counts[0]["copy"] + counts[0]["language"] == 81
    assert sum(counts[1].values()) == 91


def test_boilerplate_is_counted_in_lines():
    src = [*sentences("the of and", 500, 1), *["All rights reserved."] * 101, *["Read more."] * 100]
    (gone, _), counts, _ = cleaned(src, sentences("le les des", 500, 2))
    assert gone == {500}
    assert counts[0]["boilerplate"] == 101


@pytest.mark.skipif(not is_installed(), reason="needs the extra languages")
def test_other_languages_by_the_identifier():
    import csv
    from pathlib import Path

    folder = Path(__file__).resolve().parents[2] / "mine" / "samples"
    en, fr = ((folder / f"sample.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "fr"))
    with open(folder / "gold.en-fr.tsv", encoding="utf-8", newline="") as file:
        gold = [tuple(map(int, row)) for row in csv.reader(file, delimiter="\t")]
    (gone_src, gone_tgt), _, identified = cleaned([*en, *GERMAN], [*fr, *GERMAN, *en[:40]], ("en", "fr-FR"))
    assert identified
    assert {len(en), len(en) + 1, len(en) + 2} <= gone_src
    assert set(range(len(fr), len(fr) + 3 + 40)) <= gone_tgt
    kept = [pair for pair in gold if pair[0] - 1 not in gone_src and pair[1] - 1 not in gone_tgt]
    assert len(kept) >= len(gold) - 42, "none but the 40 that have a copy, and few others"


@pytest.mark.skipif(not is_installed(), reason="needs the extra languages")
def test_short_lines_in_the_language_of_the_other_corpus():
    english = ["She sold the old boat because the harbour was far away.", "I did not do it.", "Good morning."]
    spanish = ["Nadie sabía por qué la biblioteca estaba cerrada.", "No lo hice.", "Buenos días."]
    src = [*english, "<b>Pero NO lo hice.</b>", "Pero no hace falta.", "Paris", "Ich weiß."]
    tgt = [*spanish, "What is this?", "París", "Internet", "Ich weiß es."]
    assert cleaned(src, tgt, ("en", "es"))[0] == [{3, 4}, {3}]
    assert cleaned(src, tgt, ("en", "und"))[0] == [set(), set()]


def test_equal_languages_are_not_told_apart():
    others = [*reversed(GERMAN), "Der Hund schläft."]
    _, _, identified = cleaned([*GERMAN, "Die Katze schläft."], others, ("de", "de-CH"))
    assert not identified


def test_lines_are_read_in_blocks(monkeypatch):
    one, other = sentences("the of and to in", 1200, 1), sentences("le les des une dans", 1200, 2)
    whole, *_ = cleaned([*one, *other[:50]], other)
    monkeypatch.setattr(cleaning, "_BLOCK", 7)
    assert cleaned([*one, *other[:50]], other)[0] == whole


@pytest.mark.skipif(not is_installed(), reason="needs the extra languages")
def test_a_corpus_of_another_language_than_its_code_is_not_emptied(caplog):
    english = [
        f"The boat number {i} was sold because the harbour had become too far away." for i in range(20)
    ]
    (gone, _), counts, _ = cleaned(GERMAN, english, ("it", "en"))
    assert not gone
    assert counts[0]["language"] == 0
    assert "src: almost none of this looks like 'it'" in caplog.text
