"""Exported encoders, loaded by the real libraries: the same vectors."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.extra_columns import piece_characters
from bitextmine.encoder.folder import write_folder
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import CHARACTERS, weight_shapes
from bitextmine.errors import BitextmineError
from bitextmine.exporting import export_encoder

from .encoder.conftest import tiny_tokenizer

__all__ = ["tiny_tokenizer"]

LINES = [
    "The doctor buys a red bicycle in the harbour.",
    "Le  médecin achète un vélo rouge\u00a0dans le port,   avant midi.  ",
    "ﬁve Ⅳ ½ — “quoted” naïve CAFÉ",
    "an old map " * 60,
    "日本 x 語",
    "",
    "  ",
]
COLUMNS = {"order_columns": 16, "order_weight": 0.6, "length_share": 0.12, "repeat_damping": 0.5}

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
    print(second.max_seq_length, second.get_embedding_dimension())
"""


@pytest.fixture
def made(tiny_tokenizer, tmp_path):
    """A model folder with random weights."""

    def make(name="model", dtype="int8", **settings):
        tokenizer = Tokenizer(tiny_tokenizer)
        config = EncoderConfig(
            tokenizer.vocab_size, **{"dim": 56, "heads": 4, "ffn": 64, "max_pieces": 40, **settings}
        )
        rng = np.random.default_rng(7)
        weights = {
            name: rng.normal(0, 0.4, shape).astype(np.float32)
            for name, shape in weight_shapes(config).items()
        }
        if config.length_share:
            weights[CHARACTERS] = piece_characters(tokenizer.pieces(), config.ngrams)
        ngrams = ["▁le", "ach", "bicy"][: config.ngrams]
        write_folder(tmp_path / name, config, weights, tiny_tokenizer, ngrams=ngrams, dtype=dtype)
        return tmp_path / name

    return make


def test_any_encoder_is_a_module_of_sentence_transformers(made, tmp_path):
    pytest.importorskip("sentence_transformers")
    columns = made("columns", layers=0, ngrams=3, dtype="int4", **COLUMNS)
    models = ["europe5", columns, made("layers", layers=2)]
    folders = [(tmp_path / f"out{i}", tmp_path / f"again{i}") for i in range(len(models))]
    for model, (out, _) in zip(models, folders, strict=True):
        export_encoder(model, out)
    done = subprocess.run(
        [sys.executable, "-c", MODULE],
        input=json.dumps([folders, LINES], default=str).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr.decode()
    for model, (out, again), line in zip(models, folders, done.stdout.decode().splitlines(), strict=True):
        encoder = load_encoder(model, "cpu")
        for vectors in np.load(out / "vectors.npy"):
            np.testing.assert_allclose(vectors, encoder.encode(LINES), atol=1e-6)
        assert line == f"{encoder.max_pieces} {encoder.dim}"
        # Both folders are model folders of ours, too.
        assert load_encoder(out).hash == load_encoder(again).hash == encoder.hash


def test_the_card_is_one_of_the_hub(made, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    folder = made(layers=0, languages=("en", "fr"))
    (folder / "README.md").write_text("# A model\n\nIts text.\n")
    result = {"task": "BitextMining", "dataset": "MTEB NTREX", "config": "deu-eng", "metric": "accuracy"}
    (folder / "results.json").write_text(json.dumps([result | {"value": 0.9}]))
    out = export_encoder(folder, tmp_path / "out")
    card = hub.ModelCard.load(out / "README.md")
    assert card.data.language == ["en", "fr"] and "bitext-mining" in card.data.tags
    assert card.data.license is None and "Its text." in card.text
    (shown,) = card.data.eval_results
    assert (shown.dataset_config, shown.metric_value) == ("deu-eng", 0.9)
    (folder / "results.json").write_text("[1]")
    with pytest.raises(BitextmineError, match="not a list of results"):
        export_encoder(folder, tmp_path / "broken")
    assert not (tmp_path / "broken").exists()
    again = export_encoder(out, tmp_path / "again")
    assert (again / "README.md").read_text().count("## Use") == 1
    packaged = export_encoder("europe5", tmp_path / "own")
    assert hub.ModelCard.load(packaged / "README.md").data.license == "mit"


def test_the_command(bitextmine, made, tmp_path):
    made(layers=0)
    (tmp_path / "file").touch()
    assert bitextmine("export", "model", "out", cwd=tmp_path).out == "out\n"
    assert (tmp_path / "out" / "modules.json").is_file()
    assert "the folder is not empty" in bitextmine.fails("export", "model", "out", cwd=tmp_path)
    bitextmine("export", "model", "out", "--force", cwd=tmp_path)
    assert "a file is there" in bitextmine.fails("export", "model", "file", cwd=tmp_path)
