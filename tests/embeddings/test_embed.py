"""Corpus to embedding: row i is line i, reruns do nothing, broken runs end in the same bytes."""

import logging

import numpy as np
import pytest

from bitextmine.embeddings.embed import corpus_pieces, embed_corpus
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.store import open_embedding
from bitextmine.encoder import load_encoder
from bitextmine.files.corpus import Corpus
from bitextmine.files.source import line_digest

LINES = [f"the cat number {i % 37} sat on mat {i - i % 5}" if i % 11 else "" for i in range(500)]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.fr"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def model(make_folder, tmp_path):
    return make_folder(tmp_path / "model", 1)


def test_a_text_that_changes_meanwhile_is_embedded_as_it_was(corpus, model, tmp_path):
    encoder = load_encoder(model)
    whole = embed_corpus(corpus, encoder, options=EmbedOptions(out=tmp_path / "whole.npy")).read_bytes()
    text = Corpus(corpus)
    assert len(text) == len(LINES)
    corpus.write_text("another text\n")
    assert embed_corpus(text, encoder).read_bytes() == whole
    assert list(text.lines()) == LINES


@pytest.mark.parametrize("in_memory", [1 << 20, 100])
@pytest.mark.parametrize("given", ["file", "lines"])
def test_a_corpus_gives_its_lines_in_any_order(corpus, monkeypatch, in_memory, given):
    monkeypatch.setattr("bitextmine.files.corpus.IN_MEMORY", in_memory)
    lines = [f"line {i} \u00e9\u2028" * (i % 3) for i in range(9000)]
    corpus.write_text("\ufeff" + "\r\n".join(lines) + "\r\n", encoding="utf-8", newline="")
    text = Corpus(corpus if given == "file" else lines)
    assert (len(text), text.sha256) == (9000, line_digest(lines))
    assert list(text.lines()) == lines and list(text.lines(8000)) == lines[8000:]
    wanted = np.array([8999, 3, 3, 50, 0])
    assert list(text.take(wanted)) == [lines[i] for i in wanted]
    assert list(text.take(wanted[:0])) == []
    with pytest.raises(IndexError, match="9,000 lines, asked for 9,001"):
        list(text.take(np.array([9000])))


def test_pieces_are_kept_or_made(corpus, model, monkeypatch):
    encoder = load_encoder(model)
    expected, _ = encoder.tokenizer.encode(LINES, encoder.max_pieces)
    monkeypatch.setattr("bitextmine.files.corpus.IN_MEMORY", 100)
    monkeypatch.setattr(encoder.network, "slow", False, raising=False)
    kept = Corpus(corpus)
    embed_corpus(kept, encoder, options=EmbedOptions(chunk_lines=64, keep_pieces=True))
    monkeypatch.setattr(encoder.tokenizer, "encode", encoder.tokenizer.encode)
    for text in (kept, Corpus(corpus), Corpus(LINES)):
        pieces = corpus_pieces(text, encoder)
        np.testing.assert_array_equal(pieces.ids, expected.ids)
        np.testing.assert_array_equal(pieces.offsets, expected.offsets)


def test_a_line_that_comes_again_has_the_row_it_had(corpus, model, monkeypatch):
    encoder = load_encoder(model, "cpu")
    corpus.write_text("\n".join(LINES * 3 + ["new"]) + "\n")
    encoded = 0
    encode = encoder.encode_pieces

    def counting(pieces, **kwargs):
        nonlocal encoded
        encoded += len(pieces)
        return encode(pieces, **kwargs)

    monkeypatch.setattr(encoder, "encode_pieces", counting)
    vectors, _ = open_embedding(embed_corpus(corpus, encoder, options=EmbedOptions(chunk_lines=128)))
    assert encoded == len(set(LINES)) + 1
    assert (vectors[:500] == vectors[500:1000]).all() and (vectors[:500] == vectors[1000:1500]).all()
    np.testing.assert_allclose(vectors, encoder.encode(LINES * 3 + ["new"]), atol=2e-3)


def test_lines_that_are_cut_are_counted(corpus, model, tmp_path, caplog):
    corpus.write_text("short\n" + "word " * 600 + "\n")
    with caplog.at_level(logging.WARNING):
        embed_corpus(corpus, load_encoder(model))
    assert "longer than 50 pieces, and cut: at least 1 of 2 lines" in caplog.text
