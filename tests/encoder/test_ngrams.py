"""N-grams: those across the cuts of a word, in their places, wherever the text comes from."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import NGRAMS, folder_hash, read_folder
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.ngrams import LENGTHS, SPACE, Ngrams, folded, training_lengths
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer, Words
from bitextmine.encoder.weights import restore_rows
from bitextmine.errors import BitextmineError
from bitextmine.shipped import shipped_folder

from .conftest import save_folder

PACKAGED = shipped_folder("europe5") / "tokenizer.model"
PLAIN = Tokenizer(PACKAGED)
# Pieces with and without a space, accents, no letters at all, a letter that no n-gram has, the unknown piece ("").
PIECES = ["", *f"{SPACE} a b ab {SPACE}ab É , b, {SPACE}a - ß z ,a bab ﬁ".split()]
NGRAMS_ = [
    *("aba", "bab", "abab", "babab", "aab", "eab", "sse", "bae", "fia", "ass", "bass"),
    *(f"{SPACE}ab", f"{SPACE}aba", f"{SPACE}abab", f"{SPACE}ea", f"{SPACE}aab"),
]
SENTENCES = st.lists(st.lists(st.integers(0, len(PIECES) - 1), max_size=12), max_size=6)


def slow(sentence, pieces, ngrams):
    letters = set("".join(ngrams)) - {SPACE}
    characters = []  # (character, which piece of the sentence), None where nothing goes across
    for place, piece in enumerate(sentence):
        spelled = folded(pieces[piece])
        for c in spelled or [""]:
            if c == SPACE:
                characters.append(None)
            characters.append((c, place) if c == SPACE or c in letters else None)
    after: dict[int, list[int]] = {}
    for length in range(2, 7):
        for begin in range(len(characters) - length + 1):
            window = characters[begin : begin + length]
            if None in window or window[0][1] == window[-1][1]:
                continue
            text = "".join(c for c, _ in window)
            if text in ngrams:
                after.setdefault(window[-1][1], []).append(len(pieces) + ngrams.index(text))
    return [new for place, piece in enumerate(sentence) for new in (piece, *after.get(place, []))]


def test_twice_folded_is_once_folded():
    for c in map(chr, range(0x110000)):
        assert folded(folded(c)) == folded(c), hex(ord(c))


@given(SENTENCES)
def test_the_ngrams_across_the_cuts(found):
    before = Pieces.from_lists(found)
    after = Ngrams(NGRAMS_, PIECES).extend(before)
    assert after.ids.dtype == np.int32 and len(after) == len(found)
    for i, sentence in enumerate(found):
        got = after.ids[after.offsets[i] : after.offsets[i + 1]].tolist()
        assert got == slow(sentence, PIECES, NGRAMS_), [PIECES[p] for p in sentence]


def test_what_is_no_ngram():
    for bad in ("", "a b", "ab\t", f"ab{SPACE}c", f"{SPACE * 2}ab", "a", "abcdefg", "Abc", "éab", "12a"):
        with pytest.raises(BitextmineError, match="n-grams: 2: "):
            Ngrams(["abc", bad], ["ab", "c"])
    with pytest.raises(BitextmineError, match="'abc' is there twice"):
        Ngrams(["abc", "bcd", "abc"], ["ab", "c"])


@pytest.mark.parametrize(
    ("letter", "lengths"),
    [("a", (4, 5, 6)), ("中", (1, 2, 3)), ("の", (1, 2, 3)), ("ب", (3, 4, 5)), ("ไ", (3, 4, 5))],
)
def test_lengths_of_ngrams_by_script(letter, lengths):
    assert tuple(training_lengths(letter)) == lengths


def cut_up(word):
    """A word that the packaged vocabulary cuts, whichever that is: this one, or it as often as is needed in a row."""
    whole = word
    while PLAIN.encode([whole])[0].lengths[0] == 1:
        whole += word
    return whole


def across(word):
    """The n-grams of three and four characters that reach across the first cut of a word."""
    names = PLAIN.pieces()
    first, *rest = (folded(names[i]) for i in PLAIN.encode([word])[0].ids)
    cut, text = len(first), first + "".join(rest)
    return [text[i : i + n] for n in (3, 4) for i in range(max(0, cut - n + 1), min(cut, len(text) - n + 1))]


AMENDMENTS, VOTE, COLLAPSE, CARE, BREACH = map(
    cut_up, ("enmiendas", "votación", "zusammenbruch", "gesundheitsfürsorge", "infracción")
)


# All of words that the packaged vocabulary cuts up.
MANY = sorted(
    {
        folded(SPACE + word)[i : i + n]
        for word in (AMENDMENTS, VOTE, COLLAPSE, CARE, BREACH)
        for n in LENGTHS
        for i in range(len(word) - n + 2)
    }
)
# Some without spaces.
SCRIPTS = ["委员会今天通过了预算。会议", "本日、予算案を可決した。", "ประชุมจะดำเนินต่อ"]
WORDS = st.sampled_from(
    [AMENDMENTS, VOTE.upper(), f"{folded(VOTE)},", "la", COLLAPSE.capitalize(), "-", "ß", "x" * 40, *SCRIPTS]
)
LINES = st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=1, max_size=5)

# Across cuts, within pieces, and nowhere.
FEW = sorted({*across(AMENDMENTS), *across(VOTE), *across(COLLAPSE)[::2], "cion", "mie", "ensa", "rupt"})


def with_ngrams(ngrams):
    tokenizer = Tokenizer(PACKAGED)
    tokenizer.add_ngrams(ngrams)
    return tokenizer


@pytest.fixture(scope="module")
def tokenizers():
    by_words, by_lines = with_ngrams(FEW), with_ngrams(FEW)
    by_lines._words = None
    return by_words, by_lines


@given(LINES, st.integers(1, 30))
def test_by_words_or_whole_lines_a_line_has_the_same_pieces(tokenizers, lines, most):
    by_words, by_lines = tokenizers
    by_words._words = Words()  # that knows none of them yet
    for _ in range(2):
        fast, cut = by_words.encode(lines, most)
        slow, slow_cut = by_lines.encode(lines, most)
        assert (fast.ids == slow.ids).all() and (fast.offsets == slow.offsets).all() and cut == slow_cut


def test_a_model_with_ngrams_saved_and_read(tmp_path):
    ngrams = MANY
    torch.manual_seed(0)
    model = SentenceModel(EncoderConfig(PLAIN.vocab_size, 64, layers=0, ngrams=len(ngrams)))
    model.initialise()
    save_folder(tmp_path, model, PACKAGED, ngrams=ngrams, dtype="int4")
    encoder = load_encoder(tmp_path)
    lines = [f"las {AMENDMENTS} y la {VOTE}", "la", "", f"der {COLLAPSE.capitalize()} der {CARE}"]
    pieces, _ = with_ngrams(ngrams).encode(lines)
    of_ngrams = [(ids >= PLAIN.vocab_size).any() for ids in np.split(pieces.ids, pieces.offsets[1:-1])]
    assert of_ngrams == [True, False, False, True]
    table = model.embedding.weight.detach().numpy().astype(np.float64)
    rows = restore_rows(encoder.network.values, encoder.network.scale)
    for vector, ids in zip(encoder.encode(lines), np.split(pieces.ids, pieces.offsets[1:-1]), strict=True):
        total = rows[ids].sum(0)
        np.testing.assert_allclose(vector, total / max(1e-12, np.linalg.norm(total)), atol=1e-5)
    errors, squares = np.square(rows - table), np.square(table)
    size = PLAIN.vocab_size
    assert errors[:size].sum() < 0.03 * squares[:size].sum(), "four bits keep 97% of a normal variable"
    assert errors[size:].sum() < 0.15 * squares[size:].sum(), "two bits keep 85% of it"
    assert encoder.describe()["ngrams"] == len(ngrams)
    assert encoder.describe()["vocab_size"] == PLAIN.vocab_size

    before = folder_hash(tmp_path)
    (tmp_path / NGRAMS).write_text("".join(f"{ngram}\n" for ngram in ngrams[::-1]), encoding="utf-8")
    assert folder_hash(tmp_path) != before
    (tmp_path / NGRAMS).write_text("abc\n", encoding="utf-8")
    with pytest.raises(BitextmineError, match=r"ngrams\.txt: 1 n-grams, but config\.json says"):
        read_folder(tmp_path)
    (tmp_path / NGRAMS).unlink()
    with pytest.raises(BitextmineError, match=r"ngrams\.txt: cannot be read, but config\.json says ngrams"):
        read_folder(tmp_path)
