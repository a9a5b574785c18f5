"""Corpora by name: what language one is in, and which one of a folder is meant."""

from pathlib import Path

import pytest

from bitextmine.errors import BitextmineError
from bitextmine.files.corpus import corpus_language, find_corpus
from bitextmine.files.source import Location


@pytest.mark.parametrize(
    "stem", ["corpus.fr", "a/b.c/c.fr", "v7.fr-en.fr", "c.2024.zh-Hans", "c.pt_BR", "c.fra_Latn"]
)
def test_a_name_tells_the_language(stem):
    for path in (stem, f"{stem}.gz", f"{stem}.zst", f"{stem}.XZ"):
        assert Location(path).stem == Path(stem)
        assert corpus_language(path) == stem.rpartition(".")[2]
        assert corpus_language(path, "xx") == "xx"


@pytest.mark.parametrize(
    "path", ["corpus", "corpus.gz", "corpus.txt", "corpus.txt.gz", ".fr", "a.fr/corpus", "c.v2", "-"]
)
def test_a_name_without_a_language_asks_for_one(path):
    with pytest.raises(BitextmineError, match="--lang"):
        corpus_language(path)
    assert corpus_language(path, "fr") == "fr"


def touch(folder, *names):
    for name in names:
        (folder / name).write_bytes(b"")


def test_the_one_corpus_of_a_language_is_found(tmp_path):
    names = "c.en c.fr.gz c.en.npy c.en.json c.en.faiss c.en.npy.part .c.fr.12.tmp README.md"
    touch(tmp_path, *names.split())
    (tmp_path / "folder.en").mkdir()
    assert find_corpus(tmp_path, "en").path == tmp_path / "c.en"
    assert find_corpus(str(tmp_path), "fr").path == tmp_path / "c.fr.gz"
    with pytest.raises(BitextmineError, match=r"no corpus in language 'de' .*languages seen there: en, fr"):
        find_corpus(tmp_path, "de")


def test_one_of_several_corpora_is_chosen_by_name(tmp_path):
    touch(tmp_path, "a.fr", "b.fr.gz", "b.c.fr")
    words = r"3 corpora in language 'fr': a\.fr, b\.c\.fr, b\.fr\.gz; .*--name a"
    with pytest.raises(BitextmineError, match=words):
        find_corpus(tmp_path, "fr")
    assert find_corpus(tmp_path, "fr", "b").path.name == "b.fr.gz"
    assert find_corpus(tmp_path, "fr", "b.fr").path.name == "b.fr.gz"
    assert find_corpus(tmp_path, "fr", "b.c").path.name == "b.c.fr"
    with pytest.raises(BitextmineError, match=r"no corpus 'x' in language 'fr'; .* a, b, b\.c"):
        find_corpus(tmp_path, "fr", "x")
    touch(tmp_path, "b.fr")
    with pytest.raises(
        BitextmineError, match=r"2 corpora .*: b\.fr, b\.fr\.gz; .*give both corpora as files"
    ):
        find_corpus(tmp_path, "fr", "b")


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(BitextmineError, match=r"nowhere.*No such file.*--dir"):
        find_corpus(tmp_path / "nowhere", "fr")
    touch(tmp_path, "a.fr")
    with pytest.raises(BitextmineError, match="Not a directory"):
        find_corpus(tmp_path / "a.fr", "fr")


@pytest.mark.parametrize("code", ["fr", "FR", "fra", "fr-FR", "fr_CA"])
def test_another_code_of_the_same_language_finds_it(tmp_path, code):
    touch(tmp_path, "c.en", "c.fr")
    assert find_corpus(tmp_path, code).path == tmp_path / "c.fr"
    touch(tmp_path, "d.fr-CH")
    assert find_corpus(tmp_path, "fr-CH").path == tmp_path / "d.fr-CH", "the very code comes first"
    assert find_corpus(tmp_path, "fr").path == tmp_path / "c.fr"
