"""What an encoder promises: unit rows, zero rows for empty lines, the same whatever the batch."""

import json
import pickle
import shutil

import numpy as np
import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.encoder import load_same
from bitextmine.encoder.folder import WEIGHTS, folder_hash, read_folder
from bitextmine.encoder.network import Transformer
from bitextmine.encoder.weights import TOP_SHARES, pack_rows, read_weights, unpack_rows
from bitextmine.errors import BitextmineError
from bitextmine.shipped import SHIPPED, shipped_folder

LINES = ["the cat sat on the mat", "", "le chat", "   ", "a " * 900, "le chat", "naïve café — 12,5 %", "\x00"]


@pytest.fixture(params=[0, 1, 2], ids=["mean", "1 layer", "2 layers"])
def folder(request, make_folder, tmp_path):
    return make_folder(tmp_path / "model", request.param)


def test_rows_are_unit_or_zero_and_never_nan(folder):
    vectors = load_encoder(folder, "cpu").encode(LINES)
    assert vectors.dtype == np.float32 and vectors.shape == (len(LINES), 16)
    assert np.isfinite(vectors).all()
    lengths = np.linalg.norm(vectors, axis=1)
    assert lengths[1] == lengths[3] == 0, "empty and blank lines get the zero row"
    np.testing.assert_allclose(lengths[[0, 2, 4, 5, 6]], 1, atol=1e-5)
    assert (vectors[2] == vectors[5]).all(), "the same line has the same vector"


def test_company_and_budget_do_not_change_a_vector(folder):
    encoder = load_encoder(folder)
    together = encoder.encode(LINES)
    for budget in (1, 60, 500):
        np.testing.assert_allclose(encoder.encode(LINES, batch_tokens=budget), together, atol=2e-6)
    for i, line in enumerate(LINES):
        np.testing.assert_allclose(encoder.encode([line])[0], together[i], atol=2e-6)


def test_out_of_memory_halves_the_batch(make_folder, tmp_path, monkeypatch):
    folder = make_folder(tmp_path / "model", 2)
    config, _ = read_folder(folder)
    network = Transformer(config, read_weights(config, folder / WEIGHTS))
    pieces, _, _ = load_encoder(folder).tokenize(LINES)
    expected = network.vectors(pieces)
    forward = network._forward
    room = 1

    def failing(ids, lengths):
        if len(lengths) > room:
            raise torch.OutOfMemoryError("planted")
        return forward(ids, lengths)

    monkeypatch.setattr(network, "_forward", failing)
    np.testing.assert_allclose(network.vectors(pieces), expected, atol=2e-6)
    room = 0
    with pytest.raises(BitextmineError, match="no room for one sentence of 50 pieces"):
        network.vectors(pieces)
    assert len(pieces) == 7, "of eight lines two are the same"


@pytest.mark.parametrize("dim", [128, 100, 8])
@pytest.mark.parametrize("bits", [4, 2])
def test_a_few_bits_are_the_nearest_levels_of_the_best_scale(bits, dim):
    """The oracle tries every scale that the format offers on every group by itself."""
    rng = np.random.default_rng(0)
    weight = (rng.standard_normal((40, dim)) * np.logspace(-3, 2, 40)[:, None]).astype(np.float32)
    weight[7], weight[8, 3] = 0, 40
    levels = list(range(-7, 8)) if bits == 4 else [-3, -1, 1, 3]
    packed, scales = pack_rows(weight, bits)
    assert (packed.dtype, packed.shape, scales.dtype, scales.shape) == (
        np.uint8,
        (40, dim * bits // 8),
        np.float16,
        (40, -(-dim // 64)),
    )
    restored = unpack_rows(packed, scales, bits)
    assert not restored[7].any()
    for row in range(40):
        for group in range(-(-dim // 64)):
            numbers = weight[row, 64 * group : 64 * group + 64].astype(np.float64)
            found = restored[row, 64 * group : 64 * group + 64].astype(np.float64)
            errors = []
            for share in TOP_SHARES[bits]:
                scale = float(np.float16(abs(numbers).max() * share / levels[-1]))
                errors.append(sum(min((x - level * scale) ** 2 for level in levels) for x in numbers))
            assert ((numbers - found) ** 2).sum() == pytest.approx(min(errors), rel=1e-3, abs=1e-12)
    with pytest.raises(BitextmineError, match=f"multiple of {8 // bits} numbers, found 99"):
        pack_rows(np.zeros((3, 99)), bits)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_packaged_encoders_find_translations(name):
    encoder = load_encoder(name)
    en = ["The council adopted the budget.", "My sister plays the piano.", "It rained all night long."]
    others = {"fr": ["Le conseil a adopté le budget.", "Ma sœur joue du piano.", "Il a plu toute la nuit."]}
    if name == "world56":
        others["ru"] = ["Совет принял бюджет.", "Моя сестра играет на пианино.", "Всю ночь шёл дождь."]
        others["zh"] = ["理事会通过了预算。", "我妹妹弹钢琴。", "雨下了一整夜。"]
        others["ar"] = ["اعتمد المجلس الميزانية.", "أختي تعزف على البيانو.", "هطل المطر طوال الليل."]
    assert set(encoder.languages) >= {"en", *others}
    for lines in others.values():
        assert (encoder.encode(en) @ encoder.encode(lines).T).argmax(1).tolist() == [0, 1, 2]


def test_the_packaged_encoders_are_small():
    sizes = {name: sum(f.stat().st_size for f in shipped_folder(name).iterdir()) for name in SHIPPED}
    assert sizes["europe5"] < 20_000_000
    assert sum(sizes.values()) < 103_000_000  # and 95 MB in a wheel, which is compressed


def test_hash_follows_content(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert folder_hash(copy) == folder_hash(folder)
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert folder_hash(copy) != folder_hash(folder)


def damage_a_piece(folder):
    path = folder / "tokenizer.model"
    path.write_bytes(path.read_bytes().replace("\u2581".encode(), b"\xe2\xff\x81"))


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: (f / "config.json").unlink(), "config.json: no such file"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 99), "not a readable safetensors"),
        (damage_a_piece, "not a SentencePiece model, or a damaged one"),
        (lambda f: (f / "config.json").write_text("{"), "not valid JSON"),
        (lambda f: change_config(f, dim=24), "has shape"),
        (lambda f: change_config(f, vocab_size=7), "but config.json says vocab_size 7"),
        (lambda f: change_config(f, languages=[5]), "languages"),
        (lambda f: change_config(f, colour="red"), "unknown key 'colour'"),
        (lambda f: change_config(f, format=99), "format 99"),
        (lambda f: change_config(f, kind="cake"), "not a bitextmine encoder"),
    ],
)
def test_damaged_folder_names_the_file(make_folder, tmp_path, damage, said):
    folder = make_folder(tmp_path / "model", 1)
    damage(folder)
    with pytest.raises(BitextmineError, match="model") as e:
        load_encoder(folder)
    assert said in str(e.value)


def test_a_pickle_is_not_loaded_from_a_folder_that_changed(make_folder, tmp_path):
    content = pickle.dumps(load_encoder(make_folder(tmp_path / "model", 0)))
    assert len(content) < 1000
    assert pickle.loads(content) is pickle.loads(content)
    make_folder(tmp_path / "model", 1)
    load_same.cache_clear()
    with pytest.raises(BitextmineError, match="expected the encoder of hash"):
        pickle.loads(content)
    with pytest.raises(pickle.PicklingError, match="load_encoder did not make it"):
        pickle.dumps(load_encoder("precomputed"))
