"""Sums of piece vectors: against float64, and compiled against plain, to the bit."""

import numpy as np
import pytest

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.extra_columns import COLUMNS
from bitextmine.encoder.network import DeviceSums
from bitextmine.encoder.pieces import PieceRows, Pieces
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.weights import CHARACTERS, PIECES, SCALE, quantize_rows
from bitextmine.run import Run

VOCABULARY = 70


def weights(dim, kind):
    table = np.random.default_rng(dim).standard_normal((VOCABULARY, dim)).astype(np.float32)
    table[5] = -table[4]  # two pieces that cancel out
    if kind == "float32":
        return {PIECES: table}
    values, scale = quantize_rows(table)
    return {PIECES: values, SCALE: scale}


def some_pieces():
    rng = np.random.default_rng(1)
    found = [rng.integers(0, VOCABULARY, n).tolist() for n in rng.integers(0, 40, 3000)]
    return Pieces.from_lists([[], [4, 5], [3], *found, []])


@pytest.mark.parametrize("kind", ["int8", "float32"])
@pytest.mark.parametrize("dim", [1, 7, 16, 24, 256])
def test_unit_sums(dim, kind, monkeypatch):
    state, pieces = weights(dim, kind), some_pieces()
    table = state[PIECES].astype(np.float64) * state.get(SCALE, np.ones(VOCABULARY))[:, None]
    totals = np.stack([table[pieces.ids[a:b]].sum(0) for a, b in zip(pieces.offsets, pieces.offsets[1:])])  # noqa: B905
    length = np.linalg.norm(totals, axis=1, keepdims=True)
    some = length[:, 0] > 1e-3
    found = PieceSums(state).vectors(pieces)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[some], totals[some] / length[some], atol=2e-4 if dim == 1 else 2e-5)
    assert not found[[0, 1, -1]].any(), "no pieces, or pieces that cancel out"
    monkeypatch.setenv("BITEXTMINE_COMPILED", "off")
    assert PieceSums(state).vectors(pieces).tobytes() == found.tobytes()


@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_repeated_pieces_count_less(kind, monkeypatch):
    state, pieces = weights(24, kind), Pieces.from_lists([[3, 9, 3, 3], [7] * 90 + [8], [4, 5], []])
    config = EncoderConfig(VOCABULARY, 32, layers=0, order_columns=8, order_weight=0.5, repeat_damping=0.4)
    a, b, many, one = (state[PIECES] * state.get(SCALE, np.ones(VOCABULARY))[:, None])[[3, 9, 7, 8]]
    sums = PieceSums(state, config)
    found = sums.parts(pieces).sums[:2, :24]
    np.testing.assert_allclose(found, [3**0.6 * a + b, 90 * 64**-0.4 * many + one], rtol=1e-4)
    vectors = sums.vectors(pieces)
    monkeypatch.setenv("BITEXTMINE_COMPILED", "off")
    assert PieceSums(state, config).vectors(pieces).tobytes() == vectors.tobytes()


def test_company_does_not_change_a_bit():
    sums, pieces = PieceSums(weights(48, "int8")), some_pieces()
    whole = sums.vectors(pieces)
    rows = np.array([700, 3, 3, 12])
    assert sums.vectors(pieces.take(rows)).tobytes() == whole[rows].tobytes()
    assert sums.vectors(Pieces.from_lists([])).shape == (0, 48)


@pytest.mark.parametrize("bad", [-1, VOCABULARY])
def test_a_piece_out_of_range_never_reaches_c(bad):
    with pytest.raises(ValueError, match=r"0\.\.69"):
        PieceSums(weights(8, "int8")).vectors(Pieces.from_lists([[1, bad]]))


@pytest.mark.parametrize("kind", ["int8", "float32"])
@pytest.mark.parametrize(("order", "share", "damping"), [(0, 0.0, 0.0), (4, 0.0, 0.5), (4, 0.2, 0.0)])
@pytest.mark.parametrize("batch_tokens", [50, None])
def test_sums_in_torch_agree(kind, order, share, damping, batch_tokens):
    """The path of --device cuda, here on the CPU."""
    state, pieces = weights(24, kind), some_pieces().take(np.arange(200))
    dim = 24 + order + (COLUMNS if share else 0)
    columns = {"order_columns": order, "order_weight": order / 8, "length_share": share}
    config = EncoderConfig(VOCABULARY, dim, layers=0, repeat_damping=damping, **columns)
    if share:
        state[CHARACTERS] = np.random.default_rng(2).integers(0, 9, VOCABULARY).astype(np.uint8)
    sums = DeviceSums(config, state, Run(device="cpu"))
    expected = PieceSums(state, config)
    found = sums.vectors(pieces, batch_tokens)
    assert found.dtype == np.float32
    some = np.setdiff1d(np.arange(len(pieces)), [1])  # cancels out but for rounding, if order counts
    np.testing.assert_allclose(found[some], expected.vectors(pieces)[some], atol=3e-6)
    assert not found[0].any()
    assert isinstance(sums, PieceRows) and sums.facts == expected.facts
