"""Texts with their vectors: in files and in memory alike."""

import numpy as np
import pytest

from bitextmine.embeddings.embed import embed_corpus
from bitextmine.embeddings.store import VectorFile
from bitextmine.encoder import load_encoder
from bitextmine.errors import UsageError
from bitextmine.files.corpus import Corpus
from bitextmine.mining.neighbours import find_neighbours
from bitextmine.mining.options import SearchWay
from bitextmine.mining.sides import load_side
from bitextmine.run import Run


def test_an_embedding_larger_than_the_memory_is_mined_from_its_file(tmp_path):
    """By exact search and through indexes, with the same pairs."""
    for lang, word in (("en", "line"), ("fr", "ligne")):
        (tmp_path / f"c.{lang}").write_text("".join(f"{word} {i} {i * i}\n" for i in range(300)))
    corpora = [Corpus(tmp_path / f"c.{lang}") for lang in ("en", "fr")]
    encoder = load_encoder("europe5", "cpu")
    embeddings = [embed_corpus(corpus, encoder) for corpus in corpora]
    whole, parts = (
        [load_side(c, npy, in_memory=most) for c, npy in zip(corpora, embeddings, strict=True)]
        for most in (1 << 20, 1)
    )
    assert all(isinstance(side.vectors, VectorFile) for side in parts)
    wanted, _ = find_neighbours(whole, 4, SearchWay.AUTO, Run())
    for search in (SearchWay.EXACT, SearchWay.INDEX):
        found, _ = find_neighbours(parts, 4, search, Run(memory=1 << 26))
        assert np.array_equal(found.fwd_sim, wanted.fwd_sim), search


def test_an_index_wants_files():
    text = Corpus(["a"], name="lines")
    side = load_side(text, np.ones((1, 4), np.float16))
    with pytest.raises(UsageError, match="corpora in files"):
        find_neighbours((side, side), 1, SearchWay.INDEX, Run())
    found, how = find_neighbours((side, side), 1, SearchWay.AUTO, Run())
    assert (how, found.fwd_id.tolist(), found.bwd_sim.tolist()) == ("exact", [[0]], [[4.0]])
