"""Embeddings and manifests: what is read is right, or the message says what is wrong."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.embeddings.store import (
    Manifest,
    VectorFile,
    check_fresh,
    manifest_path,
    open_embedding,
    vectors_layout,
)
from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.errors import BitextmineError

ROWS, DIM = 5, 4
SETTINGS = {"batch_tokens": 4096, "max_pieces": [128, None]}


@pytest.fixture
def npy(tmp_path):
    path = tmp_path / "c.fr.npy"
    text = {"lang": "fr", "corpus": "c.fr.gz", "text_sha256": "a" * 64}
    with EmbeddingWriter(path, ROWS, DIM, {}) as writer:
        writer.write(0, np.eye(ROWS, DIM))
        writer.finish(Manifest(**text, model="small", model_hash="0123456789abcdef", settings=SETTINGS))
    return path


def test_a_file_that_is_truncated_while_it_is_read_is_an_error(npy):
    """A map of the file would end the process with SIGBUS."""
    vectors = VectorFile(npy)
    np.testing.assert_array_equal(vectors[1:4], np.eye(ROWS, DIM, dtype=np.float16)[1:4])
    np.testing.assert_array_equal(vectors[np.array([4, 0])], np.eye(ROWS, DIM, dtype=np.float16)[[4, 0]])
    with npy.open("r+b") as file:
        file.truncate(140)
    for rows in (slice(0, ROWS), np.array([0, 4])):
        with pytest.raises(BitextmineError, match=r"c\.fr\.npy: the vectors changed"):
            vectors[rows]
    with pytest.raises(BitextmineError, match=r"c\.fr\.npy: the vectors changed"):
        vectors.check()


def test_every_truncation_is_found(npy):
    whole = npy.read_bytes()
    for size in range(len(whole)):
        npy.write_bytes(whole[:size])
        with pytest.raises(BitextmineError, match=r"c\.fr\.npy: .*embed again"):
            open_embedding(npy)
    npy.write_bytes(whole + b"x")
    with pytest.raises(BitextmineError, match="damaged: it has 169 bytes"):
        open_embedding(npy)


@given(data=st.data())
def test_no_damage_to_a_header_goes_past_the_error_type(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("npy") / "c.npy"
    np.save(path, np.zeros((ROWS, DIM), np.float16))
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, 127))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw)
    try:
        (rows, dim), _ = vectors_layout(path)
    except BitextmineError:
        return
    assert rows * dim == ROWS * DIM


def test_other_arrays_are_refused(npy):
    half = np.zeros((5, 4), np.float16)
    others = half.astype("f4"), half.astype(">f2"), half.ravel(), half[None], np.asfortranarray(half)
    for array in (*others, np.array([[None]], dtype=object)):
        np.save(npy, array)
        with pytest.raises(BitextmineError, match=r"c\.fr\.npy: holds .* not float16 of shape \(rows, dim\)"):
            open_embedding(npy)


def test_what_is_not_there_is_named(tmp_path):
    npy = tmp_path / "c.npy"
    with pytest.raises(BitextmineError, match=r"c\.npy: no such embedding; run embed first"):
        open_embedding(npy)
    with EmbeddingWriter(npy, 2, 2, {}):
        pass
    with pytest.raises(BitextmineError, match="an interrupted run left a part"):
        open_embedding(npy)
    with pytest.raises(BitextmineError, match="directory"):
        open_embedding(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rows", 6, "5 rows of 4 numbers, but c.fr.json says 6 rows of 4"),
        ("dim", 8, "5 rows of 4 numbers, but c.fr.json says 5 rows of 8"),
        ("rows", "5", "Expected `int`, got `str` - at `$.rows`"),
        ("rows", -5, "Expected `int` >= 0 - at `$.rows`"),
        ("rows", True, "Expected `int`, got `bool` - at `$.rows`"),
        ("lang", 3, "Expected `str`, got `int` - at `$.lang`"),
        ("settings", [], "Expected `object`, got `array` - at `$.settings`"),
        ("kind", "index", "of kind 'index', not an embedding"),
    ],
)
def test_a_manifest_that_disagrees_is_refused(npy, key, value, message):
    path = manifest_path(npy)
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(BitextmineError) as error:
        open_embedding(npy)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "{}", '{"kind": "embedding"}', "\0", '{"a": ' * 100_000]
)
def test_a_manifest_that_is_none_is_refused(npy, text):
    manifest_path(npy).write_text(text)
    with pytest.raises(BitextmineError, match=r"c\.fr\.json: "):
        open_embedding(npy)
    manifest_path(npy).write_bytes(b"\xff")
    with pytest.raises(BitextmineError, match=r"c\.fr\.json: not valid JSON"):
        open_embedding(npy)


def test_freshness_in_words(npy, tmp_path):
    text, model = "a" * 64, "0123456789abcdef"
    assert check_fresh(npy, text, model) is None
    assert check_fresh(tmp_path / "other.npy", text, model) == "not embedded yet"
    assert check_fresh(npy, "b" * 64, model) == "the text changed"
    assert check_fresh(npy, text, "f" * 16) == f"made by another model ('small' {model}, not {'f' * 16})"
    npy.write_bytes(npy.read_bytes()[:-2])
    assert (check_fresh(npy, text, model) or "").startswith("unusable: ")
    manifest_path(npy).unlink()
    assert (check_fresh(npy, text, model) or "").startswith("unusable: ")


def test_vectors_that_are_not_the_manifests_are_made_again(npy):
    raw = bytearray(npy.read_bytes())
    raw[-1] ^= 1
    npy.write_bytes(raw)
    open_embedding(npy)  # not worth reading everything each time
    found = check_fresh(npy, "a" * 64, "0123456789abcdef")
    assert found == "its vectors do not match its manifest"
