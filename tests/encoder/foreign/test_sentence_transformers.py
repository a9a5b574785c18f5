"""Folders of sentence-transformers: tiny ones made on the spot, against the library itself."""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from bitextmine.encoder import load_encoder
from bitextmine.errors import BitextmineError
from bitextmine.info import describe

library = pytest.importorskip("sentence_transformers")
tokenizers = pytest.importorskip("tokenizers")

LINES = ["the cat sat on the mat", "", "Le chat", "   ", "word " * 60, "Le chat"]
LINES += ["naïve café — 12,5 %", "x" * 5000, "漢字"]
SOME = [i for i, line in enumerate(LINES) if line.strip()]
LONGEST = 30


def vocabulary(path):
    """A WordPiece tokenizer.json of a few hundred pieces."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=200, special_tokens=special)
    tokenizer.train_from_iterator([*LINES, "the dog and the cat sat in a café"] * 3, trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(path))
    return tokenizer


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_modules(folder, *modules):
    entries = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(modules)
    ]
    write(folder / "modules.json", entries)


@pytest.fixture
def static(tmp_path):
    folder = tmp_path / "static"
    folder.mkdir()
    size = vocabulary(folder / "tokenizer.json").get_vocab_size()
    table = np.random.default_rng(0).standard_normal((size, 24)).astype(np.float32)
    save_file({"embedding.weight": table}, folder / "model.safetensors")
    write_modules(folder, ("StaticEmbedding", ""), ("Normalize", "1_Normalize"))
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Two layers of BERT with mean pooling."""
    transformers = pytest.importorskip("transformers")
    import torch

    folder = tmp_path_factory.mktemp("bert")
    size = vocabulary(folder / "tokenizer.json").get_vocab_size()
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
        pad_token_id=0,
        initializer_range=0.3,
    )
    transformers.BertModel(config).save_pretrained(folder)
    write(folder / "sentence_bert_config.json", {"max_seq_length": LONGEST, "do_lower_case": False})
    write(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "model_max_length": LONGEST},
    )
    write(folder / "1_Pooling/config.json", {"embedding_dimension": 32, "pooling_mode": "mean"})
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
    return folder


@pytest.fixture
def folder(bert, tmp_path):
    """A copy of it to change."""
    return Path(shutil.copytree(bert, tmp_path / "bert"))


def oracle(folder, lines):
    """Lines through the library itself, one at a time."""
    model = library.SentenceTransformer(str(folder), device="cpu")
    return np.stack([model.encode(line, normalize_embeddings=True) for line in lines])


def check(folder):
    encoder = load_encoder(folder, "cpu")
    vectors = encoder.encode(LINES)
    assert vectors.shape == (len(LINES), encoder.dim) and not vectors[[1, 3]].any(), (
        "blank lines get the zero row"
    )
    np.testing.assert_allclose(vectors[SOME], oracle(folder, [LINES[i] for i in SOME]), atol=1e-5)
    for budget in (1, 40):
        np.testing.assert_allclose(encoder.encode(LINES, batch_tokens=budget), vectors, atol=1e-5)


def test_a_static_embedding(static):
    check(static)
    assert describe(static)["dim"] == "24"
    assert load_encoder(static).piece_rows()[0].shape[1] == 24


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_transformer(folder, pooling):
    write(folder / "1_Pooling/config.json", {"embedding_dimension": 32, "pooling_mode": pooling})
    encoder = load_encoder(folder, "cpu")
    assert (encoder.dim, encoder.max_pieces, encoder.name) == (32, LONGEST, "bert")
    check(folder)


def test_dense_layers(folder):
    """Twelve columns by a dense layer with a tanh."""
    rng = np.random.default_rng(0)
    weight, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((12, 32), (12,)))
    write(
        folder / "2_Dense/config.json",
        {"in_features": 32, "out_features": 12, "activation_function": "torch.nn.modules.activation.Tanh"},
    )
    save_file({"linear.weight": weight, "linear.bias": bias}, folder / "2_Dense/model.safetensors")
    write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"))
    assert load_encoder(folder).dim == 12
    check(folder)


def test_the_default_prompt_is_put_before_each_line(folder):
    plain = load_encoder(folder, "cpu").encode(["query: the cat", ""])
    write(
        folder / "config_sentence_transformers.json",
        {"prompts": {"query": "query: "}, "default_prompt_name": "query"},
    )
    prompted = load_encoder(folder, "cpu")
    np.testing.assert_allclose(prompted.encode(["the cat", ""]), plain, atol=1e-6)


def pickled(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({}))


def own_code(folder):
    (folder / "own.py").write_text("raise SystemExit('run')")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoModel": "own.Own", "AutoConfig": "own.Own"}}
    write(folder / "config.json", config)


def module_of_the_folder(folder):
    (folder / "own.py").write_text("raise SystemExit('run')")
    write(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "own.Transformer"}])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: (f / "modules.json").write_text("{"), "not the modules of"),
        (lambda f: write_modules(f, ("Transformer", "")), "Pooling"),
        (lambda f: write_modules(f, ("Transformer", ""), ("Pooling", "1_Pooling"), ("LSTM", "x")), "LSTM"),
        (module_of_the_folder, "own.Transformer"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "cannot load it"),
        (pickled, "pickles among them, are not read"),
        (own_code, "cannot load it"),
        (lambda f: write(f / "adapter_config.json", {"peft_type": "LORA"}), "adapters are not supported"),
        (
            lambda f: write(f / "sentence_bert_config.json", {"model_args": {"a": "x"}}),
            "model_args is not supported",
        ),
    ],
)
def test_damage_is_told(folder, damage, said):
    damage(folder)
    with pytest.raises(BitextmineError) as e:
        load_encoder(folder, "cpu")
    assert said in str(e.value) and "bert" in str(e.value)


def test_without_the_library_its_command_is_named(static, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(BitextmineError, match=r"pip install 'sentence-transformers>=6\.2'"):
        load_encoder(static)


def test_a_static_embedding_is_cut_where_its_tokenizer_says(static):
    line = "the cat sat on the mat and the dog in the café"
    before = load_encoder(static).encode(line)
    tokenizer = tokenizers.Tokenizer.from_file(str(static / "tokenizer.json"))
    tokenizer.enable_truncation(4)
    tokenizer.save(str(static / "tokenizer.json"))
    encoder = load_encoder(static)
    assert encoder.max_pieces == 4
    found = encoder.encode(line)
    assert found @ before < 0.99
    np.testing.assert_allclose(found, oracle(static, [line])[0], atol=1e-5)
