"""Changed copies of sentences differ in one thing; joined pairs are translations of the same sentence."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.data.edits import Edits
from bitextmine.training.data.pairfile import PairFile, PairWriter, sentence_keys
from bitextmine.training.data.pivot import join_languages
from bitextmine.training.recipe import PairCorpus

VOCABULARY = [
    "",
    *["▁the", "▁house", "s", "▁not", "▁never", "▁19", "▁84", "7", "3", "▁winter", "▁is", ".", "▁nicht"],
]
EDITS = Edits(VOCABULARY)
NEGATING = {VOCABULARY.index(it) for it in ("▁not", "▁never")}


@given(
    st.lists(st.lists(st.integers(1, len(VOCABULARY) - 1), max_size=8), max_size=12),
    st.integers(0, 99),
    st.sampled_from(["en", "sw"]),
)
def test_a_copy_differs_in_one_number_one_word_or_one_negation(sentences, seed, lang):
    pieces = Pieces.from_lists(sentences)
    rows, copies = EDITS.edit(pieces, lang, np.random.default_rng(seed))
    assert len(rows) == len(copies) and (np.diff(rows) > 0).all()
    for row, begin, end in zip(rows, copies.offsets, copies.offsets[1:], strict=False):
        before, after = sentences[row], copies.ids[begin:end].tolist()
        if len(after) == len(before):
            changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
            assert len(changed) <= 1
            for a, b in changed:
                same_digits = EDITS.digits[a] >= 0 and EDITS.digits[a] == EDITS.digits[b]
                assert same_digits or (EDITS.word[a] and EDITS.word[b])
            continue
        long, short = (before, after) if len(before) > len(after) else (after, before)
        assert lang == "en" and len(long) == len(short) + 1
        gone = [i for i in range(len(long)) if long[:i] + long[i + 1 :] == short]
        assert any(long[i] in NEGATING for i in gone)


@pytest.fixture
def corpora(tmp_path):
    """English-German and Finnish-English pairs, and German-Finnish ones that are not to be joined."""

    def corpus(name, langs, pairs):
        src, tgt = (Pieces.from_lists([[pair[i]] for pair in pairs]) for i in (0, 1))
        paths = tmp_path / f"{name}.pieces", tmp_path / f"{name}.index"
        with paths[0].open("wb") as pieces, paths[1].open("wb") as index:
            writer = PairWriter(pieces, index, np.dtype(np.uint16))
            writer.write(src, tgt, np.stack([sentence_keys(src), sentence_keys(tgt)]))
        return SimpleNamespace(
            corpus=PairCorpus(langs, name, weight=2), train=PairFile(*paths, np.dtype(np.uint16))
        )

    # The German of English sentence i is 10,000 + i, the Finnish 20,000 + i.
    return [
        corpus("a", ("en", "de"), [(i, 10_000 + i) for i in range(1200)]),
        corpus("b", ("en", "de"), [(i, 10_000 + i) for i in range(2000, 2100)]),
        corpus("c", ("fi", "en"), [(20_000 + i, i) for i in range(400, 2050)]),
        corpus("d", ("de", "fi"), [(15_000 + i, 25_000 + i) for i in range(900)]),
    ]


def test_pairs_are_joined_over_all_corpora_by_the_sentences_they_share(corpora):
    (joined,) = join_languages(corpora, "en", 0.2)
    assert joined.corpus.langs == ("de", "fi")
    pairs = joined.train
    found = pairs.take(np.arange(len(pairs)))
    german, finnish = found.src.ids.tolist(), found.tgt.ids.tolist()
    assert sorted(german) == [10_000 + i for i in (*range(400, 1200), *range(2000, 2050))]
    assert [tgt - src for src, tgt in zip(german, finnish, strict=True)] == [10_000] * len(german)
    assert (found.keys[1] == sentence_keys(found.tgt)).all()
    some = pairs.take(np.array([7, 3]))
    assert some.src.ids.tolist() == [german[7], german[3]]
    drawn = len(pairs) * joined.corpus.weight
    direct = sum(len(one.train) * one.corpus.weight for one in corpora)
    assert drawn / (drawn + direct) == pytest.approx(0.2)
