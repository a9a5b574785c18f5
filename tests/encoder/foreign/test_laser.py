"""Folders of LASER: a tiny one made on the spot, against LSTM's equations in NumPy."""

import json
import shutil

import numpy as np
import pytest

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


def weights(rows, layers=LAYERS, ways=("", "_reverse")):
    rng = np.random.default_rng(1)
    made = {"embed_tokens.weight": rng.standard_normal((rows, WIDTH))}
    width = WIDTH
    for layer in range(layers):
        for way in ways:
            made[f"lstm.weight_ih_l{layer}{way}"] = rng.standard_normal((4 * HIDDEN, width))
            made[f"lstm.weight_hh_l{layer}{way}"] = rng.standard_normal((4 * HIDDEN, HIDDEN))
            made[f"lstm.bias_ih_l{layer}{way}"] = rng.standard_normal(4 * HIDDEN)
            made[f"lstm.bias_hh_l{layer}{way}"] = rng.standard_normal(4 * HIDDEN)
        width = HIDDEN * len(ways)
    return {name: array.astype(np.float32) for name, array in made.items()}


@pytest.fixture
def make(tiny_tokenizer, tmp_path):
    """Makes a folder with laser2.spm and laser2.safetensors; every seventh piece is not in the dictionary."""
    from safetensors.numpy import save_file

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


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one_way(inputs, state, name):
    """(n, width) -> (n, hidden): input, forget, cell and output gate, one step after the other."""
    h, c, out = np.zeros(HIDDEN), np.zeros(HIDDEN), []
    for x in inputs:
        gates = state[f"weight_ih_{name}"] @ x + state[f"bias_ih_{name}"]
        i, f, g, o = np.split(gates + state[f"weight_hh_{name}"] @ h + state[f"bias_hh_{name}"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.array(out)


def oracle(rows, content):
    """The unit vector of a sentence, given as rows of the embedding with the end."""
    state = {name.removeprefix("lstm."): array.astype(np.float64) for name, array in content.items()}
    states = state["embed_tokens.weight"][rows]
    for layer in range(LAYERS):
        there = one_way(states, state, f"l{layer}")
        back = one_way(states[::-1], state, f"l{layer}_reverse")[::-1]
        states = np.concatenate([there, back], axis=1)
    vector = states.max(axis=0)
    return vector / np.linalg.norm(vector)


def rows_of(line, folder):
    names = Tokenizer(folder / "laser2.spm")
    known = dictionary(folder)
    return [known.get(names.pieces()[i], UNKNOWN) for i in names.encode([line.lower()])[0].ids] + [END]


def expected(folder, content):
    for line in LINES:
        yield oracle(rows_of(line, folder), content) if line.strip() else np.zeros(2 * HIDDEN)


def test_vectors_are_those_of_the_equations(make):
    folder = make()
    content = weights(4 + len(dictionary(folder)))
    assert any(UNKNOWN in rows_of(line, folder) for line in LINES)
    encoder = load_encoder(folder, "cpu")
    wanted = np.array(list(expected(folder, content)))
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


@pytest.mark.parametrize(
    "said",
    [f'{{"a": {row}}}' for row in ("1e400", "NaN", "9" * 400, "9" * 5000, "1.5")] + ['{"a":' * 100_000 + "1"],
    ids=["infinity", "nan", "400 digits", "5000 digits", "fraction", "nested"],
)
def test_impossible_dictionaries(make, said):
    with pytest.raises(BitextmineError, match=r"laser2\.safetensors: the dictionary"):
        load_encoder(make(said=said))


def test_a_checkpoint_is_converted_as_the_readme_says(make, root, monkeypatch):
    import torch

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
