"""Words remembered against SentencePiece on whole lines, compiled against plain."""

from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bitextmine import compiled
from bitextmine.encoder import tokenizer as words
from bitextmine.encoder.folder import TOKENIZER
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.shipped import shipped_folder

from .test_pieces import lists

PACKAGED = shipped_folder("europe5") / TOKENIZER

some = st.one_of(
    st.text(max_size=30), st.text(alphabet=" \t\n\r\u00a0\u0301\u0308aéœß.1漢한ﬁ\u200b\u2581²", max_size=40)
)


@pytest.fixture(scope="module", params=["compiled", "plain"])
def tokenizer(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "plain":
            patch.setenv("BITEXTMINE_COMPILED", "off")
        elif compiled.library("encoder") is None:
            pytest.skip("not compiled")
        return Tokenizer(PACKAGED)


@pytest.fixture(scope="module")
def processor():
    return sentencepiece.SentencePieceProcessor(model_file=str(PACKAGED))


def score(processor, ids):
    unknown = min(processor.get_score(i) for i in range(processor.get_piece_size())) - 10
    return sum(processor.get_score(i) if i else unknown for i in ids)


@given(st.lists(some, max_size=6))
@example(["a  b ", "", " ", "\n", "a\u00a0b", " \u0301a", "x" * 500])
@settings(max_examples=300)
def test_words_are_cut_as_in_the_line(tokenizer, processor, found):
    pieces, _ = tokenizer.encode(found)
    for line, got in zip(found, lists(pieces), strict=True):
        if "\ud800" <= max(line, default="") <= "\udfff":
            continue
        expected = processor.encode(line)
        if got != expected:  # allowed only for a tie, as between the pieces a, aa and aa, a
            assert "".join(processor.decode(got).split()) == "".join(processor.decode(expected).split())
            assert score(processor, got) == pytest.approx(score(processor, expected), abs=1e-3)


def test_a_sample_of_real_sentences_is_cut_as_sentencepiece_does(tokenizer, processor):
    lines = [
        line
        for path in sorted(Path(__file__).parents[2].glob("mine/samples/*.??"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert len(lines) > 1000
    found = lists(tokenizer.encode(lines)[0])
    same = sum(a == b for a, b in zip(found, processor.encode(lines), strict=True))
    assert same >= len(lines) * 0.999


def test_cutting_counts_the_lines_that_were_longer(tokenizer):
    lines = ["a b c d e f", "a b c", "", "a b c d"]
    whole = lists(tokenizer.encode(lines)[0])
    pieces, cut = tokenizer.encode(lines, 3)
    assert lists(pieces) == [ids[:3] for ids in whole]
    assert cut == 2


def test_a_huge_line_is_cut(tokenizer):
    pieces, cut = tokenizer.encode(["word " * 10_000, " " * 10_000, "hello there"], 5)
    assert cut == 1 and pieces.lengths[0] == 5 and pieces.lengths[1] == 0 < pieces.lengths[2]


def test_any_number_of_blanks_may_stand_before_a_line(tokenizer):
    line = "Hello, how are you today?"
    padded, plain = lists(tokenizer.encode([" " * 100_000 + line, line], 200)[0])
    assert padded == plain and plain


def test_surrogates_are_replaced(tokenizer):
    pieces, _ = tokenizer.encode(["ok", "bad \ud800 end"])
    assert pieces.lengths.min() > 0


def test_forgetting_does_not_change_what_is_found(monkeypatch):
    lines = [[f"word{i * 7 % 100} and {i}" for i in range(start, start + 40)] for start in range(0, 400, 40)]
    expected = [lists(Tokenizer(PACKAGED).encode(part)[0]) for part in lines]
    monkeypatch.setattr(words, "MAX_WORDS", 50)
    tokenizer = Tokenizer(PACKAGED)
    assert [lists(tokenizer.encode(part)[0]) for part in lines] == expected
    assert tokenizer._words is not None and len(tokenizer._words) < 200


def test_a_vocabulary_whose_pieces_cross_spaces_is_asked_for_whole_lines(tmp_path):
    path = tmp_path / "tokenizer.model"
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["new york is big", "new york is far", "new york is new"] * 50),
            model_writer=file,
            vocab_size=40,
            hard_vocab_limit=False,
            split_by_whitespace=False,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            minloglevel=2,
        )
    tokenizer = Tokenizer(path)
    plain = sentencepiece.SentencePieceProcessor(model_file=str(path))
    assert tokenizer._words is None
    assert lists(tokenizer.encode(["new york is big", ""])[0]) == [plain.encode("new york is big"), []]
    assert np.array_equal(tokenizer.encode([])[0].offsets, [0])


def test_greek_and_cyrillic_words_get_the_pieces_of_their_latin_spelling():
    plain, latin = Tokenizer(PACKAGED), Tokenizer(PACKAGED, transliterate=True)
    found, _ = latin.encode(["«Обама» он в Вашингтоне", "Livingston"])
    expected, _ = plain.encode(["«obama» он в vashingtone", "Livingston"])
    assert lists(found) == lists(expected)
