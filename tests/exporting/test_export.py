"""Exported encoders, loaded by the real libraries: the same vectors."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns import piece_characters
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import write_folder
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import CHARACTERS, PIECES, weight_shapes
from bitextmine.errors import BitextmineError
from bitextmine.exporting.export import export_encoder

LINES = [
    "The doctor buys a red bicycle in the harbour.",
    "Le  médecin achète un vélo rouge\u00a0dans le port,   avant midi.  ",
    "ﬁve Ⅳ ½ — “quoted” naïve CAFÉ",
    "an old map " * 60,
    "日本 x 語",
    "a",
]

# Run where nothing of bitextmine can be imported.
ONNX = """
import json, sys
sys.modules["bitextmine"] = None
import numpy as np, onnxruntime, tokenizers
folders, lines = json.load(sys.stdin)
for folder in folders:
    tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
    tokenizer.enable_padding()
    found = tokenizer.encode_batch(lines)
    session = onnxruntime.InferenceSession(folder + "/model.onnx", providers=["CPUExecutionProvider"])
    inputs = {"input_ids": [f.ids for f in found], "attention_mask": [f.attention_mask for f in found]}
    inputs = {k: np.array(v, dtype=np.int64) for k, v in inputs.items()}
    np.save(folder + "/vectors.npy", session.run(["sentence_embedding"], inputs)[0])
"""

COLUMNS = {
    "layers": 0,
    "dim": 56,
    "order_columns": 16,
    "order_weight": 0.6,
    "length_share": 0.12,
    "repeat_damping": 0.5,
}
MODELS = [
    {"layers": 0},
    {"layers": 2},
    {"layers": 0, "dtype": "int4"},
    {"layers": 4, "recurrent": 2, "bottleneck": 16},
]


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(BitextmineError, match="out: a file is there; name a folder"):
        export_encoder("europe5", tmp_path / "out", to="sentence-transformers")


def python(code, given):
    """Run code that reads JSON, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(given, default=str).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.fixture
def made(tiny_tokenizer, tmp_path):
    """A model folder with random weights."""

    def make(name="model", dtype="int8", **settings):
        tokenizer = Tokenizer(tiny_tokenizer)
        config = EncoderConfig(
            tokenizer.vocab_size, **{"dim": 48, "heads": 4, "ffn": 64, "max_pieces": 40, **settings}
        )
        rng = np.random.default_rng(7)
        weights = {
            name: rng.normal(0, 0.4, shape).astype(np.float32)
            for name, shape in weight_shapes(config).items()
        }
        if config.length_share:
            weights[CHARACTERS] = piece_characters(tokenizer.pieces(), config.ngrams)
        assert weights[PIECES].shape == (config.rows, config.stored_dim)
        ngrams = ["▁le", "ach", "bicy"][: config.ngrams]
        write_folder(tmp_path / name, config, weights, tiny_tokenizer, ngrams=ngrams, dtype=dtype)
        return tmp_path / name

    return make


def test_onnx_gives_the_same_vectors(made, tmp_path):
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    outs = {}
    for i, settings in enumerate([*MODELS, COLUMNS]):
        folder, out = made(f"model{i}", **settings), tmp_path / f"out{i}"
        assert export_encoder(folder, out, to="onnx") == out
        outs[out] = load_encoder(folder, "cpu", precision="float32").encode(LINES)
    python(ONNX, [list(outs), LINES])
    for out, wanted in outs.items():
        found = np.load(out / "vectors.npy")
        assert found.shape == wanted.shape
        assert found.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        assert ((found * wanted).sum(1) > 0.9999).all()


@pytest.mark.parametrize("layers", [0, 1])
def test_no_pieces_are_zeros_in_onnx(layers, made, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    out = export_encoder(
        made(layers=layers, **({} if layers else {"length_share": 0.1})), tmp_path / "out", to="onnx"
    )
    session = onnxruntime.InferenceSession(out / "model.onnx", providers=["CPUExecutionProvider"])
    ids, mask = np.array([[5, 6], [0, 0]]), np.array([[1, 1], [0, 0]])
    (found,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
    assert np.linalg.norm(found[0]) == pytest.approx(1, abs=1e-5)
    assert not found[1].any()


def test_onnx_has_no_ngrams(made, tmp_path):
    for model in (made(layers=0, ngrams=3), "europe5"):
        with pytest.raises(BitextmineError, match=r"n-grams.*use --to sentence-transformers"):
            export_encoder(model, tmp_path / "out", to="onnx")
    assert not (tmp_path / "out").exists()


MODULE = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
folders, lines = json.load(sys.stdin)
for out, again in folders:
    first = SentenceTransformer(out, device="cpu", trust_remote_code=True)
    vectors = first.encode(lines, batch_size=2)
    first.save(again)
    second = SentenceTransformer(again, device="cpu", local_files_only=True, trust_remote_code=True)
    np.save(out + "/vectors.npy", [vectors, second.encode(lines)])
    cosine = float(second.similarity(vectors[:1], vectors[:1]))
    print(second.max_seq_length, second.get_embedding_dimension(), cosine)
"""


def test_any_encoder_is_a_module_of_sentence_transformers(made, tmp_path):
    pytest.importorskip("sentence_transformers")
    columns, packed = {**COLUMNS, "ngrams": 3}, {"layers": 0, "ngrams": 3, "dtype": "int4"}
    models = ["europe5", made("columns", **columns), made("packed", **packed), made("layers", layers=2)]
    folders = []
    for i, model in enumerate(models):
        folders.append((tmp_path / f"out{i}", tmp_path / f"again{i}"))
        export_encoder(model, folders[-1][0], to="sentence-transformers")
    lines = [*LINES, "", "  "]
    printed = python(MODULE, [folders, lines])
    for model, (out, again), said in zip(models, folders, printed.splitlines(), strict=True):
        encoder = load_encoder(model, "cpu")
        for found in np.load(out / "vectors.npy"):
            np.testing.assert_allclose(found, encoder.encode(lines), atol=1e-6)
        longest, dim, cosine = said.split()
        assert (int(longest), int(dim)) == (encoder.max_pieces, encoder.dim)
        assert float(cosine) == pytest.approx(1)
        # Both folders are model folders of ours, too.
        assert load_encoder(out).hash == load_encoder(again).hash == encoder.hash


def test_the_card_is_one_of_the_hub(made, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    shown = {
        "task": "BitextMining",
        "dataset": "MTEB NTREX",
        "config": "deu-eng",
        "metric": "accuracy",
        "value": 0.9,
    }
    folder = made(layers=0, ngrams=3, languages=("en", "fr"))
    (folder / "README.md").write_text("# A model\n\nIts text.\n")
    (folder / "results.json").write_text(json.dumps([shown]))
    out = export_encoder(folder, tmp_path / "out", to="sentence-transformers")
    card = hub.ModelCard.load(out / "README.md")
    assert card.data.language == ["en", "fr"] and "bitext-mining" in card.data.tags
    assert card.data.license is None and "Its text." in card.text
    (result,) = card.data.eval_results
    assert (result.dataset_name, result.dataset_config, result.metric_value) == (
        "MTEB NTREX (deu-eng)",
        "deu-eng",
        0.9,
    )
    again = export_encoder(out, tmp_path / "again", to="sentence-transformers")
    assert (again / "README.md").read_text().count("## Use") == 1
    (folder / "results.json").write_text("[1]")
    with pytest.raises(BitextmineError, match="not a list of results"):
        export_encoder(folder, tmp_path / "broken", to="sentence-transformers")
    assert not (tmp_path / "broken").exists()
    packaged = export_encoder("europe5", tmp_path / "own", to="sentence-transformers")
    assert hub.ModelCard.load(packaged / "README.md").data.license == "mit"


def test_the_command(bitextmine, made, tmp_path):
    made(layers=0)
    run = ("export", "model", "out", "--to", "sentence-transformers")
    assert bitextmine(*run, cwd=tmp_path).out == "out\n"
    assert (tmp_path / "out" / "modules.json").is_file()
    assert "the folder is not empty" in bitextmine.fails(*run, cwd=tmp_path)
    bitextmine(*run, "--force", cwd=tmp_path)
    assert "n-grams" in bitextmine.fails("export", "europe5", "o", "--to", "onnx", cwd=tmp_path)
    assert "'tf'" in bitextmine("export", "model", "o", "--to", "tf", code=2, cwd=tmp_path).err
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text("import sys\nsys.modules['onnx'] = None\n")
    said = bitextmine.fails(
        "export", "model", "o", "--to", "onnx", cwd=tmp_path, env={"PYTHONPATH": str(hooks)}
    )
    assert "pip install 'bitextmine[onnx]'" in said
    assert not (tmp_path / "o").exists()
