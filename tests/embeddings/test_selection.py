"""Vectors of some lines: each is encoded once, whatever stops the run, and a bad encoder leaves what was there."""

import dataclasses
import shutil

import numpy as np
import pytest

from bitextmine.embeddings import selection
from bitextmine.embeddings.embed import embed_corpus
from bitextmine.embeddings.selection import SelectedVectors
from bitextmine.encoder import load_encoder
from bitextmine.errors import BitextmineError
from bitextmine.files.corpus import Corpus
from bitextmine.run import Run

LINES = [f"Sentence {'very ' * (i * 7 % 11)}number {i}." for i in range(60)]
RUN = Run("cpu")


class Network:
    """A network that encodes three lines at a time, and fails in the given call."""

    def __init__(self, network, fail=None):
        self._network, self.calls, self._fail = network, [], fail or (lambda call, found: found)
        self.chunk_lines = 3

    def __getattr__(self, name):
        return getattr(self._network, name)

    def vectors(self, pieces, batch_tokens=None):
        self.calls.append(len(pieces))
        return self._fail(len(self.calls), self._network.vectors(pieces, batch_tokens))


@pytest.fixture(scope="module")
def real():
    return load_encoder("europe5", "cpu")


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "c.en"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return lambda: Corpus(path)


def encoder_like(real, fail=None):
    return dataclasses.replace(real, network=Network(real.network, fail))


def vectors_of(corpus, encoder, lines, **options):
    with SelectedVectors(corpus, encoder, RUN, **options) as vectors:
        vectors.encode(lines)
        return vectors.take(lines)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("place", ["beside", "cache", "memory"])
def test_each_line_is_encoded_once_and_its_vector_is_that_of_the_encoder(real, corpus, tmp_path, place):
    encoder = encoder_like(real)
    cache = tmp_path / "cache" if place == "cache" else None
    text = Corpus(LINES, "en") if place == "memory" else corpus()
    asked = np.array([40, 3, 17, 3, 59, 0, 21])
    with SelectedVectors(text, encoder, RUN, cache) as vectors:
        assert vectors.missing(asked).tolist() == [0, 3, 17, 21, 40, 59]
        done = []
        vectors.encode(asked, done.append)
        vectors.encode(asked[:3])
        assert done == [3, 3]
        expected = real.encode([LINES[i] for i in asked]).astype(np.float16)
        assert np.array_equal(vectors.take(asked), expected)
        vectors.encode(np.array([3, 4]))
        with pytest.raises(ValueError, match="not encoded"):
            vectors.take(np.array([5]))
    assert encoder.network.calls == [3, 3, 1]
    if place == "memory":
        return
    before = content(cache or tmp_path)
    assert np.array_equal(vectors_of(corpus(), encoder, asked, cache=cache), expected)
    assert encoder.network.calls == [3, 3, 1] and content(cache or tmp_path) == before


def test_another_text_or_encoder_starts_afresh(real, corpus, tmp_path):
    vectors_of(corpus(), encoder_like(real), np.arange(9))
    (tmp_path / "c.en").write_text("".join(f"{line}\n" for line in LINES[::-1]))
    encoder = encoder_like(real)
    found = vectors_of(corpus(), encoder, np.arange(9))
    assert np.array_equal(found, real.encode(LINES[:-10:-1]).astype(np.float16))
    other = dataclasses.replace(encoder_like(real), hash="f" * 16)
    vectors_of(corpus(), other, np.arange(9))
    assert encoder.network.calls == other.network.calls == [3, 3, 3]


def test_a_whole_embedding_serves(real, corpus):
    embed_corpus(corpus(), real, RUN)
    encoder = encoder_like(real)
    asked = np.array([30, 2, 30])
    assert np.array_equal(
        vectors_of(corpus(), encoder, asked), real.encode([LINES[i] for i in asked]).astype(np.float16)
    )
    assert encoder.network.calls == []


def boom(call, found):
    if call == 3:
        raise RuntimeError("out of memory")
    return found


def with_nan(call, found):
    if call == 3:
        found[1, 5] = np.nan
    return found


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        (boom, "after 6 of 20 lines: RuntimeError: out of memory"),
        (with_nan, r"after 6 of 20 lines: the vector of line \d+ has NaN"),
        (
            lambda call, found: found[:, :7] if call == 3 else found,
            r"expected vectors of \d+ numbers for 3 lines",
        ),
    ],
)
def test_an_encoder_that_fails_keeps_the_lines_before(real, corpus, tmp_path, fail, message):
    asked = np.arange(5, 25)
    with pytest.raises(BitextmineError, match=message):
        vectors_of(corpus(), encoder_like(real, fail), asked)
    encoder = encoder_like(real)
    found = vectors_of(corpus(), encoder, asked)
    assert encoder.network.calls == [3, 3, 3, 3, 2], "the first six are kept"
    resumed = content(tmp_path)
    assert np.array_equal(found, real.encode(LINES[5:25]).astype(np.float16))
    for name in resumed.keys() - {"c.en"}:
        (tmp_path / name).unlink()
    vectors_of(corpus(), encoder_like(real), asked)
    assert content(tmp_path) == resumed, "as if nothing had stopped it"


@pytest.mark.parametrize("damage", ["cut rows", "other rows", "cut journal"])
def test_damage_costs_the_blocks_from_there_on(real, corpus, tmp_path, damage):
    asked = np.arange(12)
    expected = vectors_of(corpus(), encoder_like(real), asked)
    whole = content(tmp_path)
    (rows,) = tmp_path.glob("*.lines")
    if damage == "cut rows":
        rows.write_bytes(rows.read_bytes()[:-1])
    elif damage == "other rows":
        with open(rows, "r+b") as file:
            file.seek(-5, 2)
            file.write(b"x")
    else:
        (journal,) = tmp_path.glob("*.journal")
        journal.write_bytes(journal.read_bytes()[:-3])
    encoder = encoder_like(real)
    assert np.array_equal(vectors_of(corpus(), encoder, asked), expected)
    assert encoder.network.calls == [3] and content(tmp_path) == whole


def test_vectors_of_another_size_and_files_of_other_programs_are_refused(real, corpus, tmp_path):
    encoder = encoder_like(real)
    vectors_of(corpus(), encoder, np.arange(3))
    small = encoder_like(real)
    small.dim = 7
    with pytest.raises(
        BitextmineError, match=f"holds vectors of {real.dim} numbers, but the encoder makes 7"
    ):
        vectors_of(corpus(), small, np.arange(3))
    (rows,) = tmp_path.glob("*.lines")
    shutil.move(tmp_path / f"{rows.name}.journal", tmp_path / "elsewhere")
    before = content(tmp_path)
    with pytest.raises(BitextmineError, match="of another program"):
        vectors_of(corpus(), encoder, np.arange(3))
    assert content(tmp_path) == before


def test_another_process_that_writes_is_named(real, corpus):
    with (
        SelectedVectors(corpus(), encoder_like(real), RUN),
        pytest.raises(BitextmineError, match="another process"),
    ):
        vectors_of(corpus(), encoder_like(real), np.arange(3))


def test_lines_of_a_slow_encoder_are_recorded_more_often(real, corpus, monkeypatch):
    monkeypatch.setattr(selection, "_SLOW_BLOCK", 2)
    encoder = encoder_like(real)
    encoder.network.slow = True
    vectors_of(corpus(), encoder, np.arange(4))
    assert encoder.network.calls == [2, 2]


def test_lines_in_capitals_are_encoded_in_sentence_case(real):
    lines = ["THE TRAIN LEAVES AT NOON.", "NATO", "The train leaves at noon.", "ÄRGER IM BÜRO"]
    shown = ["The train leaves at noon.", "NATO", "The train leaves at noon.", "Ärger im büro"]
    found = vectors_of(Corpus(lines, "en"), real, np.arange(4))
    assert np.array_equal(found, real.encode(shown).astype(np.float16))
