"""An encoder as a graph for ONNX Runtime, from padded pieces and their mask to unit vectors.

Opset 17. Piece vectors without layers stay int8 with a scale per row, as they are in the model folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.encoder.columns import LONGEST, STEPS, length_table, wave
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.weights import CHARACTERS, PIECES, SCALE, piece_vectors
from bitextmine.errors import BitextmineError

INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
OPSET = 17
TINY = 1e-12


def write_graph(config: EncoderConfig, weights: dict[str, np.ndarray], path: Path) -> None:
    """Write the graph; raises BitextmineError if the onnx library is missing.

    Inputs are input_ids and attention_mask, int64 (n, width); the output is sentence_embedding, float32 (n, dim), rows
    of length 1, or of zeros for no pieces.
    """
    try:
        import onnx
    except ImportError:
        raise BitextmineError(
            "export --to onnx needs the onnx library: pip install 'bitextmine[onnx]'"
        ) from None
    graph = _Graph()
    ids, mask = INPUTS
    there = graph.add("Unsqueeze", graph.add("Cast", mask, to=onnx.TensorProto.FLOAT), graph.of(-1))
    hidden = _vectors(graph, weights, ids, quantized=not config.layers)
    if config.layers:
        hidden = _layers(graph, config, weights, hidden, there)
    hidden = graph.add("Mul", hidden, there)
    sums = graph.add("ReduceSum", hidden, graph.of(1), keepdims=0)
    if config.order_columns:
        weight = _places(graph, config, mask)
        first = graph.add("Slice", hidden, graph.of(0), graph.of(config.order_columns), graph.of(2))
        weighted = graph.add("ReduceSum", graph.add("Mul", first, weight), graph.of(1), keepdims=0)
        sums = graph.add("Concat", sums, weighted, axis=1)
    length = graph.add("ReduceL2", sums, axes=[1], keepdims=1)
    some = graph.add("Cast", graph.add("Greater", length, graph.number(TINY)), to=onnx.TensorProto.FLOAT)
    units = graph.add("Mul", graph.add("Div", sums, graph.add("Max", length, graph.number(TINY))), some)
    if config.length_share:
        units = _with_length(graph, config, weights, units, some)
    graph.add("Identity", units, output=OUTPUT)

    helper = onnx.helper
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["n", "width"]) for name in INPUTS]
    output = helper.make_tensor_value_info(OUTPUT, onnx.TensorProto.FLOAT, ["n", config.dim])
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items()]
    nodes = [helper.make_node(kind, of, [to], **given) for kind, of, to, given in graph.nodes]
    model = helper.make_model(
        helper.make_graph(nodes, "bitextmine", inputs, [output], tensors),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="bitextmine",
        ir_version=8,
    )
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


class _Graph:
    """Nodes (operator, inputs, output, attributes) in order, and constants by name."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}

    def add(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        output = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append((kind, list(inputs), output, attributes))
        return output

    def constant(self, array: np.ndarray, name: str = "") -> str:
        """Add a constant and return its name."""
        name = name or f"constant_{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(array)
        return name

    def of(self, *whole: int) -> str:
        """Return a constant of whole numbers."""
        return self.constant(np.array(whole, dtype=np.int64))

    def number(self, value: float) -> str:
        """Return a constant float."""
        return self.constant(np.array(value, dtype=np.float32))


def _vectors(graph: _Graph, weights: dict[str, np.ndarray], ids: str, quantized: bool) -> str:
    """Return the pieces' vectors, (n, width, d) float32."""
    if not (quantized and SCALE in weights):
        return graph.add("Gather", graph.constant(piece_vectors(weights).astype(np.float32), PIECES), ids)
    levels = graph.add("Cast", graph.add("Gather", graph.constant(weights[PIECES], PIECES), ids), to=1)
    scales = graph.add("Gather", graph.constant(weights[SCALE].astype(np.float32), SCALE), ids)
    return graph.add("Mul", levels, graph.add("Unsqueeze", scales, graph.of(-1)))


def _places(graph: _Graph, config: EncoderConfig, mask: str) -> str:
    """Return the weight (n, width, 1) of each place in the columns for the order, as `columns.waves`."""
    length = graph.add("Max", graph.add("ReduceSum", mask, graph.of(1), keepdims=1), graph.of(1))
    place = graph.add("Sub", graph.add("CumSum", mask, graph.constant(np.array(1))), graph.of(1))
    odd = graph.add("Add", graph.add("Mul", place, graph.of(2)), graph.of(1))
    step = graph.add("Div", graph.add("Mul", odd, graph.of(STEPS)), graph.add("Mul", length, graph.of(2)))
    # Places of padding lie outside; their pieces have no vector.
    step = graph.add("Min", graph.add("Max", step, graph.of(0)), graph.of(STEPS - 1))
    table = graph.constant(wave() * np.float32(config.order_weight), "wave")
    return graph.add("Unsqueeze", graph.add("Gather", table, step), graph.of(-1))


def _with_length(
    graph: _Graph, config: EncoderConfig, weights: dict[str, np.ndarray], units: str, some: str
) -> str:
    """Append the columns for the length, as `model.with_length`."""
    ids, mask = INPUTS
    each = graph.add("Gather", graph.constant(weights[CHARACTERS].astype(np.int64), CHARACTERS), ids)
    total = graph.add("ReduceSum", graph.add("Mul", each, mask), graph.of(1), keepdims=0)
    total = graph.add("Min", total, graph.of(LONGEST))
    share = config.length_share
    columns = graph.add("Gather", graph.constant(length_table() * np.float32(share**0.5), "lengths"), total)
    scaled = graph.add("Mul", units, graph.number((1 - share) ** 0.5))
    return graph.add("Mul", graph.add("Concat", scaled, columns, axis=1), some)


def _layers(
    graph: _Graph, config: EncoderConfig, weights: dict[str, np.ndarray], hidden: str, there: str
) -> str:
    """Return the final states (n, width, dim), as `SentenceModel.states`."""
    heads, size = config.heads, config.dim // config.heads

    def linear(x: str, name: str) -> str:
        matrix = graph.constant(weights[f"{name}.weight"].T, f"{name}.weight")
        return graph.add(
            "Add", graph.add("MatMul", x, matrix), graph.constant(weights[f"{name}.bias"], f"{name}.bias")
        )

    def norm(x: str, name: str) -> str:
        scale, bias = (
            graph.constant(weights[f"{name}.{part}"], f"{name}.{part}") for part in ("weight", "bias")
        )
        return graph.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    def split(x: str, order: Sequence[int]) -> str:
        return graph.add("Transpose", graph.add("Reshape", x, graph.of(0, 0, heads, size)), perm=list(order))

    width = graph.add("Shape", INPUTS[0], start=1, end=2)
    positions = graph.constant(weights["positions.weight"], "positions.weight")
    hidden = graph.add("Add", hidden, graph.add("Slice", positions, graph.of(0), width, graph.of(0)))
    # 0 where a piece is, a large negative number where none is: (n, 1, 1, width).
    off = graph.add("Mul", graph.add("Sub", there, graph.number(1)), graph.number(1e9))
    off = graph.add("Unsqueeze", graph.add("Transpose", off, perm=[0, 2, 1]), graph.of(1))
    for i in range(config.layers):
        qkv = linear(norm(hidden, f"layers.{i}.attention_norm"), f"layers.{i}.qkv")
        parts = [
            graph.add("Slice", qkv, graph.of(j * config.dim), graph.of((j + 1) * config.dim), graph.of(2))
            for j in range(3)
        ]
        q, v = split(parts[0], (0, 2, 1, 3)), split(parts[2], (0, 2, 1, 3))
        products = graph.add("MatMul", q, split(parts[1], (0, 2, 3, 1)))
        scores = graph.add("Add", graph.add("Mul", products, graph.number(size**-0.5)), off)
        attended = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), v)
        joined = graph.add(
            "Reshape", graph.add("Transpose", attended, perm=[0, 2, 1, 3]), graph.of(0, 0, config.dim)
        )
        hidden = graph.add("Add", hidden, linear(joined, f"layers.{i}.out"))
        up = linear(norm(hidden, f"layers.{i}.ffn_norm"), f"layers.{i}.up")
        erf = graph.add("Erf", graph.add("Mul", up, graph.number(0.5**0.5)))
        gelu = graph.add(
            "Mul", graph.add("Mul", up, graph.number(0.5)), graph.add("Add", erf, graph.number(1))
        )
        hidden = graph.add("Add", hidden, linear(gelu, f"layers.{i}.down"))
    return norm(hidden, "norm")
