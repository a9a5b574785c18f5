"""Signs in the texts of a pair: loops, copied runs, names, negations."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.languages.codes import UNSPACED_LETTER, letters_of
from bitextmine.languages.romanize import latin
from bitextmine.scoring.columns.catalogue import PairTexts, Request, Tools
from bitextmine.scoring.columns.evidence import (
    NAMES,
    Vocabulary,
    evidence,
    marked_words,
    negations,
    spellings,
    unlike,
)

WORDS = st.lists(st.sampled_from("abcde"), max_size=14)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("The cat sat on the mat and the dog on the rug.", 0),
        ("no no no no", 0.75),
        ("Can you not help us? Help us? Us?", 0.25),
        ("He said he said he said he said so.", 0.67),
        ("Tea and cake for all of us " * 4, 0.75),
        ("我们 我们我们我们我们", 0.8),
        ("यह किताब यह किताब यह किताब अच्छी", 4 / 7),
        ("", 0),
    ],
)
def test_loops(text, share):
    assert loops(text) == pytest.approx(share, abs=0.01)


@given(WORDS, st.integers(3, 6))
def test_a_phrase_that_comes_again_and_again_is_a_loop(phrase, times):
    if 2 <= len(phrase) <= 12:
        assert loops(" ".join(phrase * times)) >= 1 - 1 / times - 1e-9


@pytest.mark.parametrize(
    ("src", "tgt", "count"),
    [
        ("This room does not get much sun.", "Esta habitación no get much sun.", 2),
        ("This room does not get much sun.", "Esta habitación no recibe mucho sol.", 0),
        ("He met Jake Lacy there.", "Allí conoció a Jake Lacy.", 0),  # names are rightly copied
        ("chapter 3 4", "chapitre 3 4", 0),
        ("", "", 0),
    ],
)
def test_pairs_of_words_left_in_the_other_language(src, tgt, count):
    assert signs(src, tgt)["copied pairs of words"] == count


@pytest.mark.parametrize(
    ("src", "tgt", "apart"),
    [
        ("The treaty that Obama signed", "Le traité que Merkel a signé", 1),
        ("The treaty that Obama signed", "Le traité qu'a signé Obama", 0),
        ("The treaty that Obama signed", "Договор, который Обама подписал", 0),
        ("Yesterday Anna met Peter and Paula", "Gestern traf Bruno den Emil und Xaver", 3),
        ("the treaty was signed", "Der Vertrag von Rom wurde unterzeichnet", 0),
    ],
)
def test_names_that_the_other_side_lacks(src, tgt, apart):
    assert signs(src, tgt)["names"] == apart


@pytest.mark.parametrize(
    ("name", "words", "lowest", "highest"),
    [
        ("Obama", ["и", "Обама,"], 0, 0),
        ("Kowalski", ["Kowalskiego"], 0.1, 0.4),
        ("Kowalski", ["Lindgren", "schrieb"], 0.9, 1.3),
        ("Livingston", ["قال", "ليفينغستون"], 0, 0.3),
        ("Livingston", ["قال", "كوالسكي"], 0.8, 1.3),
        ("Livingston", ["ლივინგსტონი"], 0, 0.3),
        ("Kowalski", [], 1.3, 1.3),
        ("--", ["", "..."], 0, 0),
    ],
)
def test_names_are_compared_by_their_pairs_of_letters(name, words, lowest, highest):
    assert lowest <= unlike(name, words) <= highest


@pytest.mark.parametrize(
    ("name", "word", "alike"), [("Furyk", "Ферика", True), ("Furyk", "Forika", False), ("Lee", "Лия", False)]
)
def test_consonants_of_two_scripts_make_names_alike(name, word, alike):
    by_letters = unlike(name, [word])
    assert unlike(name, [word], sounds=True) == (pytest.approx(0.195) if alike else by_letters)
    assert by_letters > 0.6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Победа «Ливингстона» над Rangers в лиге", ["Победа", "«Ливингстона»", "Rangers"]),
        ("she went to paris", ["she", "went", "to", "paris"]),
        ("ლივინგსტონი Rangers ქალაქია", ["ლივინგსტონი", "Rangers", "ქალაქია"]),
        ("我们在リビングストン用 Linux", ["リビングストン", "Linux"]),
    ],
)
def test_words_that_may_spell_a_name(text, words):
    assert spellings(text) == words


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Er sagte: „Ja.“ Dann ging er.", 2),
        ("یہ ہے۔ وہ ہے۔", 2),
        ("Τι κάνεις; Καλά.", 2),
        ("Ինչպե՞ս ես: Լավ եմ։", 2),
        ("هل؟ نعم.", 2),
        ("你好。我来了！", 2),
        ("Wait ... what?! Yes.", 3),
        ("One: two; three", 1),
        ("", 1),
    ],
)
def test_sentences_are_counted_by_their_ends(text, sentences):
    one = signs("One.", text, "", "")
    assert one["more sentences in the target"] == pytest.approx(np.log(sentences))
    assert one["only the source ends"] == (not text or text[-1] == "e")


def test_wide_brackets_are_brackets():
    assert signs("Berlin (Germany) [1]", "柏林（德国）［1］")["brackets"] == 0
    assert signs("Berlin (Germany)", "柏林")["brackets"] == 2


@pytest.mark.parametrize(
    ("text", "code", "count"),
    [
        ("It isn't so, and I do not know.", "en", 2),
        ("It isn’t.", "en", 1),
        ("Another note.", "en", 0),
        ("Je n'en sais rien", "fr", 2),
        ("मुझे नहीं पता।", "hi", 1),
        ("पानी ठंडा है।", "hi", 0),
        ("न यह, न वह", "hi", 2),
        ("Das ist keine Antwort.", "de-AT", 1),
        ("இது தேவை இல்லை", "ta", 1),
        ("No.", "xx", None),
        ("No.", "", None),
        ("我不知道。", "zh", None),
        ("모르지 않는다.", "ko", None),
    ],
)
def test_negations(text, code, count):
    assert negations(Vocabulary().read([text]), code) == (None if count is None else [count])


@pytest.mark.parametrize(("lang", "found"), [("fr", 1), ("zh", 0), ("", 0)])
def test_negation_counts_if_it_is_known_in_both_languages(lang, found):
    assert signs("I do not know.", "Qui sait ?", "en", lang)["negated source"] == found


def signs(src, tgt, *langs):
    pairs = PairTexts([src], [tgt], Tools(Request(langs=langs or ("", ""))))
    return dict(zip(NAMES, evidence(*pairs.words, pairs.negations, pairs.number_counts)[0], strict=True))


def loops(text):
    return PairTexts([text], [""], Tools()).column("loops")[0]


@given(st.text(max_size=60), st.text(max_size=60))
def test_exchanged_sides_have_exchanged_signs(src, tgt):
    there, back = signs(src, tgt, "en", "fr"), signs(tgt, src, "fr", "en")
    for one, other in (
        ("source loops", "target loops"),
        ("more sentences in the target", "fewer sentences in the target"),
        ("only the source ends", "only the target ends"),
        ("more stops inside the source", "more stops inside the target"),
        ("only the source begins small", "only the target begins small"),
        ("negated source", "negated target"),
        *[(name, name) for name in ("both loop", "copied run", "copied words", "brackets", "names")],
    ):
        assert there[one] == pytest.approx(back[other])


def test_signs_of_words_out_of_order():
    right, shuffled = "The cat saw no one else.", "saw else. the Cat one no."
    some = signs(right, shuffled, "en", "fr")
    assert some["more stops inside the target"] == 1
    assert some["more stops inside the source"] == 0
    assert some["only the target begins small"] == 1
    assert signs(right, "кот никого не видел")["only the target begins small"] == 1
    assert not any(
        signs(right, "猫", "", "")[f"only the {side} begins small"] for side in ("source", "target")
    )


TEXTS = st.lists(
    st.sampled_from(
        ["not", "Can’t", "N'est", "no", "cannot", "knot", "Paris", "«Rome»", "end.", "İno", "x-No"]
    ),
    max_size=9,
)


@given(st.lists(TEXTS, max_size=3), st.sampled_from(["en", "fr", "ro", "hi", ""]))
def test_places_are_those_of_the_words_taken_one_by_one(texts, code):
    vocabulary, lines, marked = Vocabulary(), [" ".join(words) for words in texts], []
    counts = [negations(vocabulary.read(words), code) for words in texts]
    for row, words in enumerate(texts):
        stripped = [word.lstrip("«") for word in words]
        names = [
            at
            for at in range(1, len(words))
            if len(stripped[at]) > 2 and stripped[at][0].isupper() and words[at - 1][-1] != "."
        ]
        marked += [(0, row, at) for at in names]
        if counts[row] is not None:
            marked += [(1, row, at) for at in np.flatnonzero(counts[row])]
    found = marked_words(vocabulary.read(lines), code)
    assert [(kind, row, at) for row, kind, at in found.T.tolist()] == sorted(marked)
    total = negations(vocabulary.read([*lines, "\ud800"]), code)
    assert (total is None) == (code == "")
    assert total is None or total.tolist() == [*(each.sum() for each in counts), 0]


PAIR_WORDS = "the The cat cat. Cat, (the İno Ino Paris PARIS, l’homme 我们。 我 们 ไป नहीं न. ’ a a b b"
PAIRS = st.lists(st.sampled_from(PAIR_WORDS.split(" ")), max_size=12).map(" ".join)


def lowered(text):
    return text.replace("İ", "i").lower()


def words_of(text):
    return re.findall(r"[\w\u0900-\u0957]+(?:['’-]\w+)*", lowered(text))


def units_of(text):
    return list("".join(words_of(text))) if UNSPACED_LETTER.search(text) else words_of(text)


def copied_run(a, b):
    """Return the length of the longest common run of four tokens or more; 0 with less than three in common."""
    runs = [
        n
        for n in range(4, len(a) + 1)
        for i in range(len(a) - n + 1)
        for j in range(len(b))
        if a[i : i + n] == b[j : j + n]
    ]
    return max(runs, default=0) if len(set(a) & set(b)) >= 3 else 0


def copied_pairs(src, tgt):
    both = set(pairwise(words_of(src))) & set(pairwise(words_of(tgt)))
    return sum(a.isalpha() and f"{a} {b}" in src and f"{a} {b}" in tgt for a, b in both)


def names_apart(src, tgt):
    """Return the fewest names that one side has and the other lacks, by their first four letters."""
    names = [
        {
            word.lstrip("(")
            for before, word in pairwise(text.split(" "))
            if re.search(r"[\w,]$", before)
            and len(re.findall(r"\w", word)) > 2
            and word.lstrip("(")[0].isupper()
        }
        for text in (src, tgt)
    ]
    starts = [{latin(word)[:4] for word in words_of(text)} for text in (src, tgt)]
    missing = [
        sum(latin(lowered(re.match(r"[\w’-]+", name)[0]))[:4] not in there for name in set(own))
        for own, there in zip(names, starts[::-1], strict=True)
    ]
    return min(3, *missing)


def copied(src, tgt):
    a, b = (set(letters_of(text.casefold())) for text in (src, tgt))
    return len(a & b) / max(len(a), len(b)) if a or b else float(src.strip() == tgt.strip() != "")


@given(st.lists(st.tuples(PAIRS, PAIRS), max_size=4))
def test_signs_of_many_pairs_are_those_of_each(pairs):
    src, tgt = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    many = PairTexts(src, tgt, Tools())
    rows = evidence(*many.words, many.negations, many.number_counts)
    assert rows.shape == (len(pairs), len(NAMES))
    for row, copy, a, b in zip(rows, many.column("copy"), src, tgt, strict=True):
        found, units = dict(zip(NAMES, row, strict=True)), [units_of(a), units_of(b)]
        first, second = map(loops, (a, b))
        assert found["source loops"] - found["target loops"] == pytest.approx(first - second)
        assert found["both loop"] == min(first, second)
        run = copied_run(*units)
        assert found["copied words"] == math.log1p(run)
        assert found["copied run"] == run / max(1, min(map(len, units)))
        assert found["copied pairs of words"] == min(3, copied_pairs(a, b))
        assert found["names"] == names_apart(a, b)
        assert copy == copied(a, b)


@given(WORDS, WORDS)
def test_copied_runs_are_the_longest_common_ones(a, b):
    assert signs(" ".join(a), " ".join(b))["copied words"] == math.log1p(copied_run(a, b))


@given(WORDS)
def test_loops_are_those_of_all_periods(tokens):
    most = int(tokens[-2:-1] == tokens[-1:])  # a word twice at the end
    for period in range(1, min(12, len(tokens) // 2) + 1):
        run = 0
        for one, other in zip(tokens, tokens[period:], strict=False):
            run = run + 1 if one == other else 0
            if run >= max(period, 2):
                most = max(most, run)
    assert loops(" ".join(tokens)) == (most / len(tokens) if len(tokens) >= 4 else 0)
