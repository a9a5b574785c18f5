"""The form of an encoder for similarity: what its vectors are, how it is named, and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import bitextmine as package
from bitextmine.encoder import load_encoder
from bitextmine.encoder.folder import folder_hash, read_folder
from bitextmine.encoder.forms import AXES, FACTORS, SIMILARITY, split_form
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import PIECES, piece_vectors, read_weights
from bitextmine.errors import BitextmineError
from bitextmine.mining.scorer import open_scoring

Make = Callable[..., Path]

LINES = ["the old map", "la vieille carte", "a", "", "the vote will take place tomorrow", "the old map"]


def turned(folder: Path, seed: int = 5, **arrays: np.ndarray) -> dict[str, np.ndarray]:
    """Gives the model in ``folder`` a form for similarity, of random axes and factors."""
    config, _ = read_folder(folder)
    rng = np.random.default_rng(seed)
    made = {
        AXES: rng.standard_normal((config.piece_dim, config.piece_dim)),
        FACTORS: rng.uniform(0.1, 3, config.rows),
    }
    made |= arrays
    half = {name: array.astype(np.float16) for name, array in made.items()}
    save_file(half, folder / SIMILARITY)
    return half


def slow_vectors(folder: Path, lines: list[str], made: dict[str, np.ndarray]) -> np.ndarray:
    """Sums of the pieces' vectors, each times its factor, turned, brought to length 1."""
    config, _ = read_folder(folder)
    vectors = piece_vectors(read_weights(config, folder / "model.safetensors")).astype(np.float64)
    tokenizer = Tokenizer(folder / "tokenizer.model")
    found = []
    for line in lines:
        total = np.zeros(config.piece_dim)
        for piece in tokenizer.encode([line], config.max_pieces)[0].ids:
            total = total + float(made[FACTORS][piece]) * vectors[piece]
        row = total @ made[AXES].astype(np.float64)
        length = np.linalg.norm(row)
        found.append(row / length if length else row)
    return np.array(found)


@pytest.fixture
def folder(make_folder: Make, tmp_path: Path) -> Path:
    return make_folder(tmp_path / "model", 0, 32)


def test_its_vectors_are_the_weighed_and_turned_sums_of_the_pieces(folder: Path) -> None:
    made = turned(folder)
    found = load_encoder(f"{folder}:similarity").encode(LINES)
    expected = slow_vectors(folder, LINES, made)
    assert (np.einsum("ij,ij->i", found, expected)[[0, 1, 2, 4, 5]] > 0.9995).all()  # in int8
    assert not found[3].any()
    np.testing.assert_array_equal(found[0], found[5])
    plain = load_encoder(folder).encode(LINES)
    assert np.abs(plain @ plain.T - found @ found.T).max() > 0.1


def test_its_vectors_do_not_depend_on_how_the_processor_multiplies() -> None:
    code = (
        "import hashlib; from bitextmine import load_encoder; n = load_encoder('europe5-fast:similarity').network; "
        "print(hashlib.sha256(n.values.tobytes() + n.scale.tobytes()).hexdigest())"
    )
    ways = [{"OPENBLAS_NUM_THREADS": "1"}, {"OPENBLAS_NUM_THREADS": "2"}, {"OPENBLAS_CORETYPE": "Prescott"}]
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **way},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for way in ways
    }
    assert len(found) == 1


def test_one_encoder_leads_to_the_other_and_both_have_names_and_hashes(folder: Path) -> None:
    before = load_encoder(folder)
    turned(folder)
    plain, named = load_encoder(folder), load_encoder(f"{folder}:similarity")
    asked = load_encoder(f"{folder}:translation")
    led = plain.for_similarity()
    np.testing.assert_array_equal(led.encode(LINES), named.encode(LINES))
    np.testing.assert_array_equal(plain.encode(LINES), before.encode(LINES))
    np.testing.assert_array_equal(plain.encode(LINES), asked.encode(LINES))
    assert before.hash == plain.hash == asked.hash == folder_hash(folder)
    assert led.hash == named.hash != plain.hash
    assert [e.form for e in (plain, asked, named, led)] == ["", "translation", "similarity", "similarity"]
    assert named.name == "model:similarity"
    assert named.for_similarity() is named
    assert (before.has_similarity, plain.has_similarity) == (False, True)
    turned(folder, seed=6)
    assert load_encoder(f"{folder}:similarity").hash != named.hash
    assert load_encoder(folder).hash == plain.hash


def test_columns_for_order_and_length_are_left_out(tmp_path: Path) -> None:
    plain, similar = load_encoder("europe5"), load_encoder("europe5:similarity")
    config = plain.network.config  # type: ignore[attr-defined]
    assert config.order_columns
    assert config.length_share
    assert (plain.dim, similar.dim) == (config.dim, config.piece_dim)
    there, back = similar.encode(["A dog bites a man.", "A man bites a dog."])
    assert there @ back == pytest.approx(1, abs=1e-4)  # by order alone they differ


def test_the_shipped_ones_tell_what_is_alike_across_languages() -> None:
    lines = ["A woman is cutting an onion.", "Un homme joue de la guitare.", "Eine Frau schneidet Gemüse."]
    for name in ("europe5", "europe5-fast"):
        cosines = load_encoder(f"{name}:similarity").encode(lines)
        alike = cosines @ cosines.T
        assert alike[0, 2] > alike[0, 1] + 0.2
        assert alike[0, 2] > alike[1, 2] + 0.2


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("europe5", ("europe5", "")),
        ("europe5:similarity", ("europe5", "similarity")),
        ("org/name@v1:translation", ("org/name@v1", "translation")),
        ("a:b", ("a:b", "")),
        (":similarity", (":similarity", "")),
        ("a:similarity:similarity", ("a:similarity", "similarity")),
    ],
)
def test_the_form_is_the_end_of_the_name(model: str, expected: tuple[str, str]) -> None:
    assert split_form(model) == expected


def test_a_folder_that_is_called_so_wins(make_folder: Make, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "my:similarity", 0)
    assert split_form(folder) == (folder, "")
    assert load_encoder(folder).form == ""


def test_it_is_not_rescored_by_a_scorer_of_the_other_form(folder: Path) -> None:
    assert open_scoring(load_encoder("europe5"), "europe5") is not None
    assert open_scoring(load_encoder("europe5:similarity"), "europe5:similarity") is None


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({AXES: np.zeros((32, 0))}, "are of another encoder"),
        ({AXES: np.zeros((5, 5))}, "are of another encoder: this one has 120 vectors of 32 numbers"),
        ({FACTORS: np.ones(3)}, "are of another encoder"),
        ({FACTORS: np.full(120, np.nan)}, "holds NaN or infinite values"),
        ({"more": np.ones(3)}, "expected axes and factors, found axes, factors, more"),
    ],
)
def test_a_file_that_does_not_go_with_the_encoder(folder: Path, arrays: dict[str, Any], said: str) -> None:
    turned(folder, **arrays)
    with pytest.raises(BitextmineError, match=said):
        load_encoder(f"{folder}:similarity")
    load_encoder(folder)


def test_an_encoder_without_one_says_how_to_make_it(bitextmine: Any, folder: Path, make_folder: Make) -> None:
    said = bitextmine.fails("info", f"{folder}:similarity")
    assert "no form for similarity" in said
    assert "fit-similarity" in said
    with pytest.raises(BitextmineError, match="no form for similarity"):
        load_encoder(folder).for_similarity()
    (folder / SIMILARITY).write_bytes(b"no tensors")
    assert "not a readable safetensors file" in bitextmine.fails("info", f"{folder}:similarity")


def test_where_an_encoder_is_taken_as_it_lies_in_its_folder(bitextmine: Any, tmp_path: Path) -> None:
    said = bitextmine.fails("encoder", "reduce", "europe5:similarity", "x", "--out", "y", cwd=tmp_path)
    assert "name europe5" in said
    said = bitextmine.fails("embed", "x.en", "--model", "europe5:similarty", cwd=tmp_path)
    assert "a form of an encoder is MODEL:similarity or MODEL:translation" in said


def test_info_embed_and_evaluate_take_its_name(bitextmine: Any, tmp_path: Path) -> None:
    (tmp_path / "corpus.en").write_text("A dog barks.\nIt is late.\n", encoding="utf-8")
    assert "forms: translation, similarity" in bitextmine("info", "europe5").out
    told = bitextmine("info", "europe5:similarity").out
    assert "name: europe5:similarity" in told
    assert "form: similarity" in told
    bitextmine("embed", "corpus.en", "--model", "europe5:similarity", cwd=tmp_path)
    manifest = json.loads((tmp_path / "corpus.en.json").read_text(encoding="utf-8"))
    similar = load_encoder("europe5:similarity")
    assert similar.hash in json.dumps(manifest)
    vectors = np.load(tmp_path / "corpus.en.npy").astype(np.float32)
    np.testing.assert_allclose(vectors, similar.encode(["A dog barks.", "It is late."]), atol=1e-3)
    (tmp_path / "sts.en.tsv").write_text(
        "A dog barks.\tA dog is barking.\t5\nIt is late.\tA cat.\t0\nNo.\tYes.\t2\n"
    )
    shown = {
        model: bitextmine("evaluate", "sts", "sts.en.tsv", "--model", model, cwd=tmp_path).out
        for model in ("europe5", "europe5:similarity", "europe5:translation")
    }
    assert shown["europe5"] == shown["europe5:similarity"]
    assert f"model:{similar.hash}|form:similarity" in shown["europe5"]
    plain = load_encoder("europe5")
    assert f"model:{plain.hash}|form:translation" in shown["europe5:translation"]
    # In Python an encoder is measured as it is.
    for encoder in (plain, plain.for_similarity()):
        signature = package.evaluate_sts(tmp_path / "sts.en.tsv", model=encoder).signature
        assert f"model:{encoder.hash}|" in signature


def test_a_model_written_anew_has_none(folder: Path, save_anew: Callable[[Path], None]) -> None:
    turned(folder)
    save_anew(folder)
    assert not (folder / SIMILARITY).exists()


@pytest.fixture
def save_anew() -> Callable[[Path], None]:
    from bitextmine.encoder.folder import write_folder

    def save(folder: Path) -> None:
        config, _ = read_folder(folder)
        weights = {PIECES: piece_vectors(read_weights(config, folder / "model.safetensors"))}
        write_folder(folder, config, weights, folder / "tokenizer.model")

    return save
