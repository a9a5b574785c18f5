"""`Encoder.encode`, and an encoder as a model of sentence-transformers and MTEB."""

import numpy as np
import pytest

from bitextmine.encoder import load_encoder
from bitextmine.errors import BitextmineError, UsageError

LINES = ["La séance est levée.", "the sitting is closed", "", "x" * 300, "La séance est levée."]
ITERATOR = object()  # of LINES, a new one each time


@pytest.fixture(scope="module", params=["default", "2 layers"])
def encoder(request, make_folder, tmp_path_factory):
    if request.param == "default":
        return load_encoder()
    return load_encoder(make_folder(tmp_path_factory.mktemp("model"), 2), "cpu")


@pytest.fixture(scope="module")
def expected(encoder):
    return encoder.encode(LINES)


def test_a_string_gives_one_vector(encoder, expected):
    vector = encoder.encode(LINES[0])
    assert vector.shape == (encoder.dim,) and vector.dtype == np.float32
    np.testing.assert_allclose(vector, expected[0], atol=2e-6)
    assert encoder.encode([LINES[0]]).shape == (1, encoder.dim)
    assert not encoder.encode("").any()


@pytest.mark.parametrize(
    "given",
    [tuple(LINES), np.array(LINES), np.array(LINES, dtype=object), dict.fromkeys(LINES[:4]), ITERATOR],
    ids=["tuple", "array", "objects", "keys", "iterator"],
)
def test_sentences_come_in_any_collection(encoder, expected, given):
    found = encoder.encode(iter(LINES) if given is ITERATOR else given)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected[: len(found)], atol=2e-6)
    assert len(found) == (4 if isinstance(given, dict) else 5)


def test_what_is_no_sentence(encoder):
    for wrong in ([b"bytes"], [["a", "b"]], ["a", None], [1]):
        with pytest.raises(BitextmineError, match=r"sentence \d: expected a string"):
            encoder.encode(wrong)
    with pytest.raises(UsageError, match="expected a sentence or sentences, found None"):
        encoder.encode(None)
    with pytest.raises(UsageError, match=r"batch_tokens: expected a whole number, found 2.5"):
        encoder.encode(LINES, batch_tokens=2.5)


@pytest.fixture(scope="module")
def model(encoder):
    """The encoder as a model of sentence-transformers."""
    library = pytest.importorskip("sentence_transformers")
    from bitextmine.sentence_transformers import SentenceEncoder

    return library.SentenceTransformer(modules=[SentenceEncoder(encoder)], device="cpu")


def test_sentence_transformers_own_tools_take_an_encoder(model, expected):
    util = pytest.importorskip("sentence_transformers.util")
    np.testing.assert_allclose(model.encode(LINES, batch_size=2), expected, atol=2e-6)
    np.testing.assert_allclose(
        model.encode(["cat"], prompt="the "), model.encode(["the cat"], batch_size=1), atol=2e-6
    )
    queries = model.encode(["the sitting is closed"], convert_to_tensor=True)
    pool = model.encode(["ein Hund", "the sitting is closed", "une pomme"], convert_to_tensor=True)
    assert util.semantic_search(queries, pool, top_k=1)[0][0]["corpus_id"] == 1
    lines = ["the sitting is closed", "a red bicycle", "the sitting is closed now"]
    (score, *pair), *_ = util.paraphrase_mining(model, lines, batch_size=2, show_progress_bar=False)
    assert score > 0.5 and sorted(pair) == [0, 2]


def test_mteb_takes_an_encoder(model):
    mteb = pytest.importorskip("mteb")
    datasets = pytest.importorskip("datasets")
    task = mteb.get_task("STSBenchmark")
    lines = ["the sitting is closed", "a dog barks", "two umbrellas"]
    others = ["the sitting is closed", "a dog is barking", "fresh bread in the harbour"]
    columns = {"sentence1": lines, "sentence2": others, "score": [5.0, 4.0, 0.0]}
    task.dataset = datasets.DatasetDict({"test": datasets.Dataset.from_dict(columns)})
    task.data_loaded = True
    bitext = mteb.get_task("Tatoeba", languages=["deu"])
    sides = datasets.Dataset.from_dict({"sentence1": lines, "sentence2": lines})
    bitext.dataset = {"deu-eng": datasets.DatasetDict({"test": sides})}
    bitext.data_loaded = True
    found = mteb.evaluate(
        model, [task, bitext], cache=None, encode_kwargs={"batch_size": 2}, show_progress_bar=False
    )
    assert found.task_results[0].get_score() > 0.4
    assert found.task_results[1].get_score() == 1
