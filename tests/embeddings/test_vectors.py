"""Vectors of other tools as embeddings: .npy of any floats, and what does not fit."""

import numpy as np
import pytest

from bitextmine.embeddings import vectors as module
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.store import open_embedding, short_hash
from bitextmine.errors import BitextmineError
from bitextmine.run import Run

LINES = ["one", "", "two", "  ", "three", "four", "five"]
MADE = np.random.default_rng(1).normal(size=(len(LINES), 6)) * 3


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.en"
    path.write_text("\n".join(LINES) + "\n")
    return path


def adopt_vectors(corpus, vectors, **options):
    return module.adopt_vectors(corpus, vectors, Run(), EmbedOptions(**options))


def write(path, array):
    np.save(path, array)
    return path


def wanted(array):
    units = array / np.linalg.norm(array, axis=1, keepdims=True)
    return np.array([row if line.strip() else 0 * row for line, row in zip(LINES, units, strict=True)])


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "F order"])
@pytest.mark.parametrize("block", [2, 4096])
def test_rows_are_brought_to_length_1(kind, block, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ROWS", block)
    array = np.asfortranarray(MADE) if kind == "F order" else MADE.astype(kind)
    npy = adopt_vectors(corpus, write(tmp_path / "v.npy", array))
    found, manifest = open_embedding(npy)
    assert npy == tmp_path / "corpus.en.npy"
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, wanted(array.astype(float)), atol=1e-3)
    assert (manifest.model, manifest.model_hash, manifest.lang) == ("precomputed", "precomputed", "en")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (MADE.astype("f4").tobytes(), "not a plain .npy file"),
        (b"", "not a plain .npy file"),
        (MADE[:6], "6 rows, but the text has 7 lines"),
        (MADE.astype(int), "holds int64 numbers of shape (7, 6)"),
        (MADE.ravel(), "of shape (42,)"),
        (b"\x93NUMPY\x01\x00", "not a plain .npy file"),
        (np.array([[object()]], dtype=object), "not a plain .npy file"),
        (np.where(np.arange(7)[:, None] == 4, np.nan, MADE), "row 5 holds NaN"),
        (np.zeros_like(MADE), "every number is zero"),
    ],
)
def test_what_does_not_fit_is_an_error(array, message, corpus, tmp_path):
    path = tmp_path / "vectors"
    if isinstance(array, bytes):
        path.write_bytes(array)
    else:
        with path.open("wb") as file:
            np.save(file, array)
    with pytest.raises(BitextmineError) as raised:
        adopt_vectors(corpus, path)
    assert message in str(raised.value) and "pickle" not in str(raised.value)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["corpus.en", "vectors"]


def test_lines_with_zero_vectors_are_counted(corpus, tmp_path, caplog):
    lost = int(np.flatnonzero([line.strip() for line in LINES])[0])
    adopt_vectors(corpus, write(tmp_path / "v.npy", np.where(np.arange(7)[:, None] == lost, 0, MADE)))
    assert "the vectors of 1 line are zero" in caplog.text


def test_names_of_files_and_folders(corpus, tmp_path):
    write(tmp_path / "v.npy", MADE)
    with pytest.raises(BitextmineError, match=r"nodir/a\.npy: .*no folder"):
        adopt_vectors(corpus, tmp_path / "v.npy", out=tmp_path / "nodir" / "a.npy")
    assert [short_hash(name) for name in ("precomputed", "74f365b63d49e86b")] == ["precomputed", "74f365b6"]
    assert "/" not in short_hash("org/name@0123")


def test_files_of_others_in_the_place_are_not_written_over(corpus, tmp_path):
    write(tmp_path / "v.npy", MADE)
    place = write(tmp_path / "corpus.en.npy", np.arange(3))
    before = place.read_bytes()
    with pytest.raises(BitextmineError, match=r"corpus\.en\.npy"):
        adopt_vectors(corpus, tmp_path / "v.npy")
    assert place.read_bytes() == before
    with pytest.raises(BitextmineError, match="is the embedding itself"):
        adopt_vectors(corpus, place)
    adopt_vectors(corpus, tmp_path / "v.npy", force=True)
    assert open_embedding(place)[0].shape == MADE.shape


def test_mining_with_the_vectors_of_another_tool(bitextmine, tmp_path):
    """Two corpora whose vectors say that line i goes with line n - 1 - i."""
    n = 60
    rng = np.random.default_rng(5)
    made = rng.normal(size=(n, 16)).astype("f4")
    (tmp_path / "c.en").write_text("".join(f"english number {i}\n" for i in range(n)))
    (tmp_path / "c.fr").write_text("".join(f"numéro français {i}\n" for i in range(n)), encoding="utf-8")
    np.save(tmp_path / "en.npy", (made + rng.normal(0, 0.05, made.shape)).astype("f2"))
    np.save(tmp_path / "fr.npy", made[::-1])
    run = lambda *args: bitextmine(*args, cwd=tmp_path)  # noqa: E731
    run("embed", "c.en", "--vectors", "en.npy")
    run("embed", "c.fr", "--vectors", "fr.npy")
    mine = ("mine", "--src", "en", "--tgt", "fr", "--model", "precomputed")
    mined = run(*mine, "--ids", "--threshold", "none")
    pairs = {tuple(map(int, line.split("\t")[1:3])) for line in mined.out.splitlines()}
    assert pairs == {(i, n + 1 - i) for i in range(1, n + 1)}
    assert "|model:precomputed|" in mined.err
    with (tmp_path / "c.en").open("a") as file:
        file.write("one more\n")
    said = bitextmine.fails(*mine, cwd=tmp_path)
    assert "c.en: --model precomputed encodes nothing" in said
    assert not list(tmp_path.glob("*.part*"))
    said = bitextmine.fails("embed", "c.en", "--vectors", "en.npy", cwd=tmp_path)
    assert "60 rows, but the text has 61 lines" in said
    assert "--vectors" in bitextmine("embed", "c.en", "c.fr", "--vectors", "a", code=2, cwd=tmp_path).err
