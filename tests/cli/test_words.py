"""What the commands say of what they did, by the real command: few things, nothing, the same thing twice."""

from __future__ import annotations

import gzip

import pytest


@pytest.fixture
def folder(tmp_path):
    """corpus.fr and corpus.en, three lines each, and two gold pairs."""
    (tmp_path / "corpus.en").write_text("Good morning.\nIt is raining.\nI do not eat meat.\n")
    (tmp_path / "corpus.fr").write_text("Je ne mange pas de viande.\nBonjour.\nIl pleut.\n")
    (tmp_path / "gold.tsv").write_text("1\t2\n3\t1\n")
    (tmp_path / "one.fr").write_text("Bonjour.\n")
    return tmp_path


def test_embed_says_what_it_did_in_one_line(bitextmine, folder):
    result = bitextmine("embed", "corpus.fr", "one.fr", cwd=folder)
    assert result.out == ""
    assert result.err.splitlines() == [
        "bitextmine: corpus.fr.npy: 3 lines embedded (model europe5)",
        "bitextmine: one.fr.npy: 1 line embedded (model europe5)",
    ]
    assert bitextmine("embed", "one.fr", cwd=folder).err.splitlines() == [
        "bitextmine: one.fr.npy: up to date (1 line, model europe5)"
    ]


def test_index_of_one_line_speaks_of_one(bitextmine, folder):
    err = bitextmine("index", "one.fr", "--type", "flat", cwd=folder).err
    assert "1 distinct vector of 480 numbers" in err
    assert "for 1 row " in err
    assert "100.00% of the best" in err
    assert "of the 4 best" not in err
    err = bitextmine("index", "corpus.fr", "--type", "flat", cwd=folder).err
    assert "of the 3 best" in err


def test_one_pair_is_one_pair(bitextmine, folder):
    (folder / "one.en").write_text("Good morning.\n")
    args = ["--src-file", "one.en", "--tgt-file", "one.fr"]
    assert "\n1 pair\n" in bitextmine("mine", *args, cwd=folder).err
    (folder / "pair.tsv").write_text("Good morning.\tBonjour.\n")
    said = bitextmine("report", "pair.tsv", "-o", "pair.html", cwd=folder)
    assert (said.out, said.err) == ("", "pair.html: a report on 1 pair\n")
    assert bitextmine("score", "pair.tsv", "--columns", "copy", cwd=folder).err.startswith(
        "1 row scored: copy\n"
    )


def test_mined_pairs_that_are_none(bitextmine, folder):
    (folder / "nothing.tsv").write_text("")
    result = bitextmine("evaluate", "mining", "nothing.tsv", "--gold", "gold.tsv", cwd=folder)
    assert "there is no mined pair" in result.out
    (folder / "wrong.tsv").write_text("1.5\t1\t1\ta\tb\n")
    result = bitextmine("evaluate", "mining", "wrong.tsv", "--gold", "gold.tsv", cwd=folder)
    assert "no mined pair is gold" in result.out
    (folder / "right.tsv").write_text("1.5\t1\t2\ta\tb\n")
    result = bitextmine("evaluate", "mining", "right.tsv", "--gold", "gold.tsv", cwd=folder)
    assert "no mined pair" not in result.out


def test_info_of_what_is_not_there_names_all_it_could_be(bitextmine, folder):
    for name in ("missing", "./default"):
        message = bitextmine.fails("info", name, cwd=folder)
        assert f"{name}: no such file or folder, nor an encoder of the package (default, " in message
    assert "corpus.de: no such file" in bitextmine.fails("info", "corpus.de", cwd=folder)


def test_info_reads_standard_input(bitextmine, folder):
    result = bitextmine("info", "-", cwd=folder, stdin=b"One.\n\nTwo.\n")
    facts = dict(line.split(": ") for line in result.out.splitlines())
    assert (facts["what"], facts["lines"], facts["blank lines"]) == ("corpus", "3", "1")
    assert f"text sha256: {facts['text sha256']}" in bitextmine("info", "-", stdin=b"One.\n\nTwo.\n").out


def test_a_corpus_and_its_compressed_copy(bitextmine, folder):
    """The plain one is taken where they are the same, and none where they are not."""
    (folder / "one.fr").unlink()
    args = ["mine", "--src", "en", "--tgt", "fr", "--threshold", "none"]
    text = (folder / "corpus.fr").read_bytes()
    (folder / "corpus.fr.gz").write_bytes(gzip.compress(text))
    mined = bitextmine(*args, cwd=folder).out
    assert len(mined.splitlines()) == 3
    (folder / "corpus.fr.gz").write_bytes(gzip.compress(text + b"Une ligne de plus.\n"))
    message = bitextmine.fails(*args, cwd=folder)
    assert "corpus.fr, corpus.fr.gz" in message
    assert "different texts" in message
    chosen = bitextmine("mine", "--src", "en", "--tgt-file", "corpus.fr", "--threshold", "none", cwd=folder)
    assert chosen.out == mined
    (folder / "corpus.fr").unlink()
    assert len(bitextmine(*args, cwd=folder).out.splitlines()) == 3
