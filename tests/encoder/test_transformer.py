"""The forward pass for inference against that of training, which pads and masks; start-up without torch."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from bitextmine.encoder import network as networks
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.network import Transformer, pick_precision
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import weight_shapes

from .conftest import unrolled


def some_pieces(vocabulary, seed=0):
    rng = np.random.default_rng(seed)
    lengths = [*rng.integers(0, 30, 60), 0, 1, 1, 30]
    return Pieces.from_lists([rng.integers(0, vocabulary, n).tolist() for n in lengths])


SMALL = {"bottleneck": 12, "recurrent": 2}


def make(layers, dim=32, **smaller):
    torch.manual_seed(layers)
    config = EncoderConfig(90, dim, layers, heads=4, ffn=48, max_pieces=30, **smaller)
    model = SentenceModel(config).eval()
    model.initialise(0.3)
    return model


def network(model, precision):
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    return Transformer(model.config, weights, precision=precision)


def oracle(model, pieces):
    ids, offsets = torch.from_numpy(pieces.ids).long(), torch.from_numpy(pieces.offsets)
    with torch.inference_mode():
        return unit_vectors(model(ids, offsets)).numpy()


@pytest.mark.parametrize(("layers", "smaller"), [(1, {}), (3, {}), (4, SMALL), (3, {"bottleneck": 5})])
@pytest.mark.parametrize("batch_tokens", [1, 50, 100_000])
def test_agrees_with_the_padded_pass(layers, smaller, batch_tokens):
    model, pieces = make(layers, **smaller), some_pieces(90)
    vectors = network(model, "float32").vectors(pieces, batch_tokens)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, oracle(model, pieces), atol=3e-6)
    assert not vectors[pieces.lengths == 0].any()


def test_attention_in_parts_gives_the_same(monkeypatch):
    """As on a GPU, where it fails above 65,535 sentences of one length."""
    model, pieces = make(2), some_pieces(90)
    whole = network(model, "float32").vectors(pieces)
    monkeypatch.setattr(networks, "MOST_ROWS", 3)
    np.testing.assert_allclose(network(model, "float32").vectors(pieces), whole, atol=3e-6)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_low_precision_stays_close(precision):
    model, pieces = make(2), some_pieces(90)
    vectors = network(model, precision).vectors(pieces)
    cosine = (vectors * oracle(model, pieces)).sum(1)[pieces.lengths > 0]
    assert cosine.min() > 0.999


def test_the_same_batch_gives_the_same_bits_on_any_number_of_threads():
    model, pieces = make(2), some_pieces(90)
    before = torch.get_num_threads()
    try:
        for precision in ("float32", pick_precision("cpu")):
            found = []
            for threads in (1, 2, 5):
                torch.set_num_threads(threads)
                found.append(network(model, precision).vectors(pieces, 64).tobytes())
                assert torch.get_num_threads() == threads, "other work keeps its threads"
            assert len(set(found)) == 1
    finally:
        torch.set_num_threads(before)


def test_a_failure_in_a_thread_is_told_and_the_next_call_works(monkeypatch):
    net, pieces = network(make(1), "float32"), some_pieces(90)
    expected = net.vectors(pieces, 50)
    with monkeypatch.context() as m:
        m.setattr(net, "_forward", lambda ids, lengths: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            net.vectors(pieces, 50)
    assert net.vectors(pieces, 50).tobytes() == expected.tobytes()


@pytest.mark.parametrize("smaller", [{"recurrent": 1}, {"recurrent": 2}, {"bottleneck": 12}, SMALL], ids=str)
def test_unrolled_a_smaller_model_is_the_same(smaller):
    """The first layers again and again are as many layers of those weights, and the vectors of pieces the product of
    the smaller ones with the matrix."""
    model, pieces = make(4, **smaller), some_pieces(90)
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    config, weights = unrolled(model.config, state)
    assert (config.bottleneck, config.recurrent) == (0, 0)
    assert {name: array.shape for name, array in weights.items()} == weight_shapes(config)
    larger = SentenceModel(config).eval()
    larger.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    np.testing.assert_allclose(oracle(model, pieces), oracle(larger, pieces), atol=3e-6)
    each = {name: sum(p.numel() for p in m.parameters()) for name, m in (("small", model), ("large", larger))}
    saved = 90 * (32 - 12) - 12 * 32 if "bottleneck" in smaller else 0
    layer = sum(p.numel() for p in model.layers[0].parameters())
    saved += (4 - smaller["recurrent"]) * layer if "recurrent" in smaller else 0
    assert each["large"] - each["small"] == saved
    assert network(model, "float32").facts["parameters"] == each["small"]


def test_an_encoder_without_layers_starts_without_torch():
    code = (
        "import sys; from bitextmine.encoder import load_encoder; e = load_encoder(); "
        "assert e.encode(['hello', '']).shape == (2, e.dim); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
