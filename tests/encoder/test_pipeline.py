"""Corpus to embedding: row i is line i, reruns do nothing, broken runs end in the same bytes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bitextmine.encoder import embed_corpus, load_encoder
from bitextmine.errors import BitextmineError
from bitextmine.store import open_embedding

Make = Callable[..., Path]

LINES = [f"the cat number {i % 37} sat on mat {i}" if i % 11 else "" for i in range(500)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.fr"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def model(make_folder: Make, tmp_path: Path) -> Path:
    return make_folder(tmp_path / "model", 1)


def test_row_i_is_line_i(corpus: Path, model: Path) -> None:
    encoder = load_encoder(model)
    vectors, manifest = open_embedding(embed_corpus(corpus, encoder, chunk_lines=64))
    assert vectors.dtype == np.float16 and vectors.shape == (500, 16)
    np.testing.assert_allclose(vectors, encoder.encode(LINES), atol=1e-3)
    assert not vectors[0].any(), "line 1 is empty"
    assert (manifest.lang, manifest.corpus, manifest.model_hash) == ("fr", "corpus.fr", encoder.hash)


def test_a_fresh_embedding_is_left_alone_and_a_stale_one_made_anew(
    corpus: Path, model: Path, make_folder: Make, tmp_path: Path
) -> None:
    encoder = load_encoder(model)
    npy = embed_corpus(corpus, encoder)
    made = npy.stat().st_mtime_ns
    corpus.touch()
    assert embed_corpus(corpus, encoder).stat().st_mtime_ns == made, "freshness is content, not time"
    corpus.write_text(corpus.read_text() + "one more\n")
    embed_corpus(corpus, encoder)
    assert open_embedding(npy)[0].shape == (501, 16)
    other = load_encoder(make_folder(tmp_path / "other", 0, dim=8))
    embed_corpus(corpus, other)
    assert open_embedding(npy)[1].model_hash == other.hash


class Broken(Exception):
    pass


@pytest.mark.parametrize("chunks_done", [0, 1, 3, 7])
def test_a_broken_run_goes_on_and_ends_in_the_same_bytes(
    corpus: Path, model: Path, tmp_path: Path, chunks_done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(model)
    whole = embed_corpus(corpus, encoder, out=tmp_path / "whole.npy", chunk_lines=64).read_bytes()
    calls = 0
    encode = encoder.encode_pieces

    def breaking(*args, **kwargs):  # type: ignore[no-untyped-def]
        nonlocal calls
        calls += 1
        if calls > chunks_done:
            raise Broken
        return encode(*args, **kwargs)

    monkeypatch.setattr("bitextmine.writer.SYNC_SECONDS", 0.0)
    with monkeypatch.context() as m:
        m.setattr(encoder, "encode_pieces", breaking)
        with pytest.raises(Broken):
            embed_corpus(corpus, encoder, out=tmp_path / "part.npy", chunk_lines=64)
    assert not (tmp_path / "part.npy").exists()
    assert embed_corpus(corpus, encoder, out=tmp_path / "part.npy", chunk_lines=64).read_bytes() == whole


def test_cut_lines_are_counted(corpus: Path, model: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus.write_text("short\n" + "word " * 600 + "\n")
    with caplog.at_level(logging.WARNING):
        embed_corpus(corpus, load_encoder(model))
    assert "1 of 2 lines were longer than 50 pieces" in caplog.text


def test_a_text_that_changes_meanwhile_is_noticed(
    corpus: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(model)
    encode = encoder.encode_pieces

    def changing(*args, **kwargs):  # type: ignore[no-untyped-def]
        corpus.write_text(corpus.read_text().replace("cat", "dog"))
        return encode(*args, **kwargs)

    monkeypatch.setattr(encoder, "encode_pieces", changing)
    from bitextmine.encoder import pipeline

    identity = pipeline.text_identity
    monkeypatch.setattr(pipeline, "text_identity", lambda path, errors: (identity(path, errors)[0], "0" * 64))
    with pytest.raises(BitextmineError, match="changed while"):
        embed_corpus(corpus, encoder, chunk_lines=64)


def test_an_empty_corpus_and_a_language_never_trained_on(
    corpus: Path, model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = load_encoder(model)
    empty = tmp_path / "empty.fr"
    empty.write_text("")
    with pytest.raises(BitextmineError, match="empty"):
        embed_corpus(empty, encoder)
    with caplog.at_level(logging.WARNING):
        embed_corpus(corpus, encoder, lang="ja", out=tmp_path / "x.npy")
    assert "not trained on 'ja'" in caplog.text
