"""Zero-shot classification: the classifier against slow oracles, the protocol on documents in five languages."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine.encoder import load_encoder
from bitextmine.errors import BitextmineError
from bitextmine.evaluation.classification import _tenth_of_each, evaluate_classification, fit, read_labelled
from bitextmine.files.source import Source

LANGS = ("de", "es", "fr", "it")


@pytest.fixture(scope="module")
def topics(root):
    return root / "mine" / "samples" / "topics"


def cost(weights, x, y, l2):
    """Slow and plain: one document after another."""
    total = 0.0
    for row, label in zip(x, y, strict=True):
        scores = [float(w[:-1] @ row + w[-1]) for w in weights]
        total -= scores[label] - np.log(np.sum(np.exp(scores)))
    return total / len(x) + l2 / 2 * float((weights[:, :-1] ** 2).sum())


def test_the_classifier_is_at_the_minimum():
    classes, l2, rng = 4, 0.1, np.random.default_rng(1)
    x, y = rng.normal(size=(40, 3)), rng.integers(0, classes, 40)
    weights = fit(x, y, classes, l2)
    least = cost(weights, x, y, l2)
    for _ in range(30):  # in every direction it goes up
        assert cost(weights + 1e-3 * rng.normal(size=weights.shape), x, y, l2) > least - 1e-10
    np.testing.assert_allclose(fit(x, y, classes, l2, weights + 1)[:, :-1], weights[:, :-1], atol=1e-3)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=200), st.integers(0, 100))
def test_a_tenth_of_every_label_is_held_out(found, seed):
    labels = np.array(found)
    rows = _tenth_of_each(labels, np.random.default_rng(seed))
    assert len(set(rows.tolist())) == len(rows)
    for label, count in zip(*np.unique(labels, return_counts=True), strict=True):
        assert (labels[rows] == label).sum() == max(1, count // 10)


def test_topics_learnt_in_english_are_told_in_other_languages(topics):
    encoder = load_encoder("europe5", "cpu")
    tests = [topics / f"test.{lang}" for lang in LANGS]
    report = evaluate_classification(topics / "train.en", tests, model=encoder)
    assert report.labels == ("cooking", "money", "sport", "weather")
    assert [r.test for r in report.results] == [f"test.{lang}" for lang in LANGS]
    for r in report.results:
        assert r.accuracy > 0.7 and r.largest == 0.25 and r.documents == 20
        assert len(r.runs) == 5
        assert (r.accuracy, r.std) == pytest.approx((np.mean(r.runs), np.std(r.runs, ddof=1)))
        assert r.low <= r.accuracy <= r.high
    again = evaluate_classification(topics / "train.en", tests, model=encoder)
    assert again == report, "the same words in, the same numbers out"
    for part in (f"model:{encoder.hash}", "train:48", "labels:4", "dev:held-out", "runs:5", "seed:1"):
        assert part in report.signature.split("|")
    one = evaluate_classification(topics / "train.en", tests[:1], dev=topics / "train.en", model=encoder)
    assert "dev:48" in one.signature.split("|")


@given(st.binary(max_size=200))
@settings(max_examples=60)
def test_any_bytes_are_documents_or_an_error_with_a_line(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("d") / "x.en"
    path.write_bytes(data)
    try:
        labels, texts = read_labelled(Source(str(path), "replace"))
    except BitextmineError as e:
        assert str(path) in str(e)
        assert "line " in str(e) or "empty" in str(e)
    else:
        assert len(labels) == len(texts) > 0
        assert all(label == label.strip() != "" for label in labels)


@pytest.mark.parametrize(
    ("train", "test", "words"),
    [
        ("a\tx\nb y\n", "a\tx\n", ["train.en: line 2", "'b y'"]),
        ("a\tx\na\ty\n", "a\tx\n", ["train.en", "one label, 'a'"]),
        ("a\tx\na\ty\nb\tz\n", "a\tx\n", ["train.en", "one document with the label 'b'"]),
        ("a\tx\na\ty\nb\tz\nb\tw\n", "a\tx\nc\tx\n", ["test.fr: line 2", "'c'", "a, b"]),
    ],
)
def test_files_that_are_wrong(bitextmine, tmp_path, train, test, words):
    (tmp_path / "train.en").write_text(train)
    (tmp_path / "test.fr").write_text(test)
    message = bitextmine.fails(
        "evaluate", "classification", "--train", "train.en", "--test", "test.fr", cwd=tmp_path
    )
    assert all(word in message for word in words), message


def test_by_the_command(bitextmine, topics):
    args = ["evaluate", "classification", "--train", "train.en", "--test", "test.de", "--test", "test.fr"]
    table = bitextmine(*args, cwd=topics).out
    assert "trained on 48 documents of train.en with 4 labels" in table
    assert table.splitlines()[-1].startswith("task:classification|model:")
    found = json.loads(bitextmine(*args, "--format", "json", cwd=topics).out)
    assert found["kind"] == "classification evaluation"
    assert [len(r["runs"]) for r in found["results"]] == [5, 5]
