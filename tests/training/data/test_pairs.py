"""Corpora as they should be, and as people have them; the sample that a vocabulary is made of."""

import gzip
import os
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.blocks import Block, Outline
from bitextmine.files.formats.table import open_pairs
from bitextmine.training.data.cache import check_corpora, pair_chunks
from bitextmine.training.data.vocabulary import sample_lines
from bitextmine.training.recipe import Data, PairCorpus, Recipe

# No digits: a column of numbers is a score.
TEXT = st.text(st.characters(exclude_characters="\n\r\t\ufeff", exclude_categories=["Cs", "Nd"]), max_size=8)


def recipe_for(corpus, folder, errors="strict"):
    return Recipe(data=Data(corpora=(corpus,)), base=folder, errors=errors)


def read_all(recipe, corpus):
    return [pair for sides in pair_chunks(recipe, corpus, 1000) for pair in zip(*sides, strict=True)]


@given(st.lists(st.lists(TEXT, min_size=2, max_size=4), max_size=20), st.integers(1, 7))
def test_columns(tmp_path_factory, rows, size):
    folder = tmp_path_factory.mktemp("pairs")
    with gzip.open(folder / "p.tsv.gz", "wt", encoding="utf-8", newline="") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)
    corpus = PairCorpus(("en", "fr"), pairs="p.tsv.gz")
    chunks = list(pair_chunks(recipe_for(corpus, folder), corpus, size))
    assert [pair for src, tgt in chunks for pair in zip(src, tgt, strict=True)] == [
        tuple(r[:2]) for r in rows
    ]
    assert all(len(src) == size for src, _ in chunks[:-1])


def test_paired_files_give_what_the_tsv_gives(make_recipe, tmp_path, sentence_pairs):
    recipe = make_recipe()
    for side, lang in enumerate(("en", "fr")):
        (tmp_path / f"x.{lang}").write_text("".join(pair[side] + "\n" for pair in sentence_pairs[:1600]))
    paired = PairCorpus(("en", "fr"), src="x.en", tgt="x.fr")
    assert read_all(recipe, paired) == read_all(recipe, recipe.data.corpora[0])


@pytest.mark.parametrize("suffix", ["tsv.gz", "jsonl", "tmx"])
def test_every_format_of_pairs_is_read_alike(tmp_path, sentence_pairs, suffix):
    """Also with a header or a score in front, and with the languages the other way round."""
    outline = Outline(("score", "src", "tgt"), 1, 2, ("en", "fr"), header=True, floats=("score",))
    with open_pairs(tmp_path / f"p.{suffix}", outline) as out:
        out.write(Block(outline.names, [[1.5, *pair] for pair in sentence_pairs[:50]]), None, ())
    corpus = PairCorpus(("en", "fr"), pairs=f"p.{suffix}")
    assert read_all(recipe_for(corpus, tmp_path), corpus) == sentence_pairs[:50]
    if suffix != "tsv.gz":
        turned = PairCorpus(("fr", "en"), pairs=f"p.{suffix}")
        found = read_all(recipe_for(turned, tmp_path), turned)
        assert found == [(tgt, src) for src, tgt in sentence_pairs[:50]]


def test_what_is_wrong_with_a_file_is_told_with_its_name(tmp_path):
    corpus = PairCorpus(("en", "fr"), pairs="p.tsv")

    def message():
        with pytest.raises(BitextmineError) as e:
            check_corpora(recipe_for(corpus, tmp_path))
        return str(e.value)

    assert "p.tsv: no such file" in message()
    (tmp_path / "p.tsv").write_bytes(b"good\tbon\nbad \xff\tmauvais\n")
    assert "p.tsv: line 2: invalid UTF-8" in message()
    check_corpora(recipe_for(corpus, tmp_path, errors="replace"))
    (tmp_path / "p.tsv").write_text("good\tbon\n\nbad\tmauvais\n")
    assert "p.tsv: line 2: 1 columns, not 2; a pair is source, tab, target" in message()
    (tmp_path / "p.tsv").unlink()
    (tmp_path / "p.tsv").mkdir()
    assert "p.tsv: is a directory" in message()
    (tmp_path / "p.tsv").rmdir()
    os.mkfifo(tmp_path / "p.tsv")
    assert "p.tsv: not a regular file; a corpus is read more than once" in message()


def test_every_line_has_the_same_chance(make_recipe):
    found: Counter[int] = Counter()
    for seed in range(200):
        recipe = make_recipe(
            [f"{i}\tx" for i in range(50)], train__seed=seed, vocabulary__lines_per_language=10
        )
        lines = sample_lines(recipe)["en"]
        assert len(set(lines)) == 10
        found.update(map(int, lines))
    assert all(15 < found[i] < 75 for i in range(50)), "40 each, give or take chance"
    few = make_recipe(["a\tb", "c\td"], vocabulary__lines_per_language=10)
    assert sample_lines(few) == {"en": ["a", "c"], "fr": ["b", "d"]}
