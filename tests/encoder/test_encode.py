"""`Encoder.encode` called as code for sentence-transformers calls its models."""

import numpy as np
import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.errors import BitextmineError, UsageError

LINES = ["La séance est levée.", "the sitting is closed", "", "x" * 300, "La séance est levée."]
ITERATOR = object()  # of LINES, a new one each time


@pytest.fixture(scope="module", params=["default", "2 layers"])
def encoder(request, make_folder, tmp_path_factory):
    if request.param == "default":
        return load_encoder()
    return load_encoder(make_folder(tmp_path_factory.mktemp("model"), 2), "cpu", precision="float32")


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
    [
        tuple(LINES),
        np.array(LINES),
        np.array(LINES, dtype=object),
        dict.fromkeys(LINES[:4]),
        [{"text": LINES[:2]}, {"text": LINES[2:], "id": [3, 4, 5]}],
        ITERATOR,
    ],
    ids=["tuple", "array", "objects", "keys", "batches", "iterator"],
)
def test_sentences_come_in_any_collection(encoder, expected, given):
    found = encoder.encode(iter(LINES) if given is ITERATOR else given)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected[: len(found)], atol=2e-6)
    assert len(found) == (4 if isinstance(given, dict) else 5)


def test_no_sentences(encoder):
    assert encoder.encode([]).shape == (0, encoder.dim)
    assert encoder.encode([], convert_to_tensor=True).shape == (0, encoder.dim)


def test_what_is_no_sentence(encoder):
    for wrong in ([b"bytes"], [["a", "b"]], ["a", None], [1]):
        with pytest.raises(BitextmineError, match=r"sentence \d: expected a string"):
            encoder.encode(wrong)
    with pytest.raises(BitextmineError, match="output_value='token_embeddings'"):
        encoder.encode(LINES, output_value="token_embeddings")
    with pytest.raises(BitextmineError, match="precision='int8'"):
        encoder.encode(LINES, precision="int8")


def test_everything_that_callers_pass_besides(encoder, expected):
    besides = {
        "batch_size": 2,
        "show_progress_bar": True,
        "normalize_embeddings": True,
        "convert_to_numpy": True,
    }
    besides |= {"prompt": None, "prompt_name": "query", "task_name": "BUCC", "prompt_type": "query"}
    found = encoder.encode(LINES, **besides, device="cpu", chunk_size=3, pool=None, hf_split="test")
    assert found.tobytes() == expected.tobytes()
    assert encoder.encode(LINES, normalize_embeddings=False).tobytes() == expected.tobytes()
    lengths = np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(lengths[[0, 1, 3, 4]], 1, atol=1e-5)
    assert lengths[2] == 0
    for call in (encoder.encode_query, encoder.encode_document, encoder.encode_corpus):
        assert call(LINES, batch_size=1).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"normalise_embeddings": False}, TypeError, "'normalise_embeddings'"),
        ({"batch_size": 0}, UsageError, "batch_size must be at least 1, found 0"),
        ({"batch_tokens": 2.5}, UsageError, "batch_tokens: expected a whole number, found 2.5"),
        ({"sentences": None}, UsageError, "expected a sentence or sentences, found None"),
        ({"sentences": [{"foo": 1}]}, BitextmineError, "a batch with a list 'text'"),
        ({"sentences": [{"text": ["one"]}, "two"]}, BitextmineError, "found 'two'"),
    ],
)
def test_what_encode_refuses(encoder, given, error, message):
    with pytest.raises(error, match=message):
        encoder.encode(**{"sentences": LINES, **given})


def test_tensors(encoder, expected):
    tensor = encoder.encode(LINES, convert_to_tensor=True)
    assert isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float32
    assert tensor.device.type == encoder.device
    np.testing.assert_array_equal(tensor.numpy(), expected)
    assert encoder.encode("a", convert_to_tensor=True).shape == (encoder.dim,)
    rows = encoder.encode(LINES, convert_to_numpy=False)
    assert isinstance(rows, list) and len(rows) == 5
    np.testing.assert_array_equal(torch.stack(rows).numpy(), expected)
    assert isinstance(encoder.encode("a", convert_to_numpy=False), torch.Tensor)


def test_a_prompt_stands_before_each_sentence(encoder):
    found = encoder.encode(["the cat", " "], prompt="query: ")
    np.testing.assert_allclose(found[0], encoder.encode("query: the cat"), atol=2e-6)
    assert not found[1].any()


def test_similarity(encoder, expected):
    other = np.random.default_rng(0).standard_normal((3, encoder.dim)).astype(np.float32) * 5
    found = encoder.similarity(expected, other)
    wide = expected.astype(np.float64) @ (other / np.linalg.norm(other.astype(np.float64), axis=1)[:, None]).T
    assert found.shape == (5, 3) and found.dtype == np.float32
    np.testing.assert_allclose(found, wide, atol=1e-5)
    np.testing.assert_allclose(encoder.similarity_pairwise(expected[:3], other), np.diag(wide), atol=1e-5)
    assert encoder.similarity(expected[0], other).shape == (1, 3)
    tensors = encoder.similarity(torch.from_numpy(expected), other)
    assert isinstance(tensors, torch.Tensor)
    np.testing.assert_array_equal(tensors.numpy(), found)
    assert encoder.similarity_fn_name == "cosine"


def test_sentence_transformers_own_tools_take_the_vectors(encoder):
    util = pytest.importorskip("sentence_transformers.util")
    queries = encoder.encode(["the sitting is closed"], convert_to_tensor=True)
    pool = encoder.encode(["ein Hund", "the sitting is closed", "une pomme"], convert_to_tensor=True)
    assert util.semantic_search(queries, pool, top_k=1)[0][0]["corpus_id"] == 1
    lines = ["the sitting is closed", "a red bicycle", "the sitting is closed now"]
    (score, *pair), *_ = util.paraphrase_mining(encoder, lines, batch_size=2, show_progress_bar=False)
    assert score > 0.5 and sorted(pair) == [0, 2]


def test_mteb_takes_an_encoder_as_it_is(encoder):
    mteb = pytest.importorskip("mteb")
    datasets = pytest.importorskip("datasets")
    task = mteb.get_task("STSBenchmark")
    rows = [
        ("the sitting is closed", "the sitting is closed", 5.0),
        ("a dog barks", "a dog is barking", 4.0),
        ("two umbrellas", "fresh bread in the harbour", 0.0),
    ]
    columns = dict(zip(("sentence1", "sentence2", "score"), zip(*rows, strict=True), strict=True))
    task.dataset = datasets.DatasetDict({"test": datasets.Dataset.from_dict(columns)})
    task.data_loaded = True
    bitext = mteb.get_task("Tatoeba", languages=["deu"])
    sides = {"sentence1": ["the sitting is closed", "two umbrellas", "a red bicycle"]}
    sides["sentence2"] = sides["sentence1"]
    bitext.dataset = {"deu-eng": datasets.DatasetDict({"test": datasets.Dataset.from_dict(sides)})}
    bitext.data_loaded = True
    found = mteb.evaluate(
        encoder, [task, bitext], cache=None, encode_kwargs={"batch_size": 2}, show_progress_bar=False
    )
    assert found.task_results[0].get_score() > 0.4
    assert found.task_results[1].get_score() == 1
    assert encoder.name in found.model_name
