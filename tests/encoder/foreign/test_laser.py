"""Folders of LASER: a tiny one made on the spot, against torch's LSTM on one sentence at a time."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder.foreign.laser import END, UNKNOWN
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError

LINES = [
    "The doctor buys a red bicycle.",
    "",
    "Le médecin achète",
    "  ",
    "every student",
    "a",
    "漢字",
    "Every  STUDENT",
    "two umbrellas " * 30,
]
WIDTH, HIDDEN, LAYERS = 5, 6, 2


def weights(rows):
    rng = np.random.default_rng(1)
    shapes = torch.nn.LSTM(WIDTH, HIDDEN, LAYERS, bidirectional=True).state_dict()
    made = {f"lstm.{name}": rng.standard_normal(tensor.shape) for name, tensor in shapes.items()}
    made["embed_tokens.weight"] = rng.standard_normal((rows, WIDTH))
    return {name: array.astype(np.float32) for name, array in made.items()}


@pytest.fixture
def make(tiny_tokenizer, tmp_path):
    """Makes a folder with laser2.spm and laser2.safetensors; every seventh piece is not in the dictionary."""

    def write(metadata=True, content=None, said=None):
        folder = tmp_path / "laser"
        folder.mkdir(exist_ok=True)
        shutil.copy(tiny_tokenizer, folder / "laser2.spm")
        found = dictionary(folder)
        save_file(
            content or weights(4 + len(found)),
            folder / "laser2.safetensors",
            {"dictionary": said or json.dumps(found)} if metadata else None,
        )
        return folder

    return write


def dictionary(folder):
    names = [name for i, name in enumerate(Tokenizer(folder / "laser2.spm").pieces()) if i % 7]
    return {name: row for row, name in enumerate(reversed(names), start=4)}


def oracle(rows, content):
    """The unit vector of a sentence, given as rows of the embedding with the end."""
    state = {name: torch.from_numpy(array) for name, array in content.items()}
    lstm = torch.nn.LSTM(WIDTH, HIDDEN, LAYERS, bidirectional=True)
    lstm.load_state_dict({name: state[f"lstm.{name}"] for name in lstm.state_dict()})
    with torch.no_grad():
        vector = lstm(state["embed_tokens.weight"][rows])[0].amax(0).numpy()
    return vector / np.linalg.norm(vector)


def rows_of(line, folder):
    names = Tokenizer(folder / "laser2.spm")
    known = dictionary(folder)
    return [known.get(names.pieces()[i], UNKNOWN) for i in names.encode([line.lower()])[0].ids] + [END]


def test_vectors_are_those_of_torch(make):
    folder = make()
    content = weights(4 + len(dictionary(folder)))
    rows = {line: rows_of(line, folder) for line in LINES if line.strip()}
    assert any(UNKNOWN in ids for ids in rows.values())
    encoder = load_encoder(folder, "cpu")
    wanted = np.array(
        [oracle(rows[line], content) if line in rows else np.zeros(2 * HIDDEN) for line in LINES]
    )
    assert (encoder.name, encoder.dim) == ("laser", 2 * HIDDEN)
    np.testing.assert_allclose(encoder.encode(LINES), wanted, atol=1e-6)
    for tokens in (1, 40):  # whatever else is in the batch, and how much padding
        np.testing.assert_allclose(encoder.encode(LINES, batch_tokens=tokens), wanted, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(LINES[5:6]), wanted[5:6], atol=1e-6)


def test_typography_is_made_plain(make):
    encoder = load_encoder(make())
    one, other = encoder.encode(["« L’été », dit-il… – “Non”", '" L\'été ", dit-il... - "Non"'])
    assert (one == other).all()


def test_long_lines_are_cut(make):
    encoder = load_encoder(make())
    pieces, cut = encoder.tokenizer.encode(LINES, 10)
    assert (pieces.lengths <= 10).all()
    assert cut == (encoder.tokenizer.encode(LINES)[0].lengths > 10).sum() > 1
    ends = pieces.ids[pieces.offsets[1:][pieces.lengths > 0] - 1]
    assert (ends == END).all()


def without(name):
    return lambda content: content.__delitem__(name)


def nan(content):
    content["lstm.bias_ih_l1"][3] = np.nan


def narrow(content):
    content["lstm.weight_ih_l1"] = content["lstm.weight_ih_l1"][:, :-1].copy()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("embed_tokens.weight"), "no matrix 'embed_tokens.weight'"),
        (without("lstm.weight_hh_l0"), "not the weights of LASER's LSTM.*lstm.weight_hh_l0"),
        (nan, "'lstm.bias_ih_l1' holds NaN"),
        (narrow, r"weight_ih_l1: .*\[24, 11\].*\[24, 12\]"),
    ],
)
def test_weights_that_are_not_laser(make, change, said):
    content = weights(4 + len(dictionary(make())))
    change(content)
    with pytest.raises(BitextmineError, match=said):
        load_encoder(make(content=content))


def test_a_pickle_is_not_read(make):
    folder = make()
    (folder / "laser2.safetensors").unlink()
    (folder / "laser2.pt").write_bytes(b"\x80\x04.")
    with pytest.raises(BitextmineError, match=r"found none; a pickle .* is not read: convert it"):
        load_encoder(folder)


def test_a_dictionary_that_does_not_fit(make):
    rows = len(dictionary(make()))
    with pytest.raises(BitextmineError, match=rf"is row {rows}, but the embedding has {rows} rows"):
        load_encoder(make(content=weights(rows)))


def test_impossible_dictionaries(make):
    rows = ("1e400", "NaN", "9" * 5000, "1.5", "-1")
    for said in (*(f'{{"a": {row}}}' for row in rows), '{"a":' * 100_000 + "1"):
        with pytest.raises(BitextmineError, match=r"laser2\.safetensors: the dictionary"):
            load_encoder(make(said=said))


def test_a_checkpoint_is_converted_as_the_readme_says(make, root, monkeypatch):
    readme = (root / "train" / "README.md").read_text(encoding="utf-8")
    lines = readme[readme.index("    import json, torch\n") :].partition("\n\n")[0].splitlines()
    folder = make()
    content = weights(4 + len(dictionary(folder)))
    wanted = load_encoder(folder)
    (folder / "laser2.safetensors").unlink()
    checkpoint = {
        "params": {"num_embeddings": 4, "bidirectional": True},
        "dictionary": dictionary(folder),
        "model": {name: torch.from_numpy(array) for name, array in content.items()},
    }
    torch.save(checkpoint, folder / "laser2.pt")
    monkeypatch.chdir(folder)
    exec("\n".join(line.removeprefix("    ") for line in lines), {})
    (folder / "laser2.pt").unlink()
    found: Encoder = load_encoder(folder)
    assert (found.encode(LINES) == wanted.encode(LINES)).all()
