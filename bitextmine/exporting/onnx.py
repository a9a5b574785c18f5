"""An encoder for ONNX Runtime: a graph from padded pieces and their mask to unit vectors, and a tokenizer.json."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bitextmine.encoder.columns import STEPS, steps
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel, unit_vectors, with_length
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import PIECES, SCALE, piece_vectors
from bitextmine.errors import BitextmineError

INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
OPSET = 18
SPACE = "\u2581"


class PaddedModel(nn.Module):
    """A `SentenceModel` of padded pieces; without layers its piece vectors stay int8 with a scale per row."""

    def __init__(self, config: EncoderConfig, weights: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.config, self.model = config, SentenceModel(config)
        quantized = SCALE in weights and not config.layers
        rows = weights[PIECES] if quantized else piece_vectors(weights)
        state = {name: torch.from_numpy(array) for name, array in weights.items() if name != SCALE}
        self.model.load_state_dict({**state, PIECES: torch.from_numpy(piece_vectors(weights))})
        self.rows: Tensor
        self.scale: Tensor
        self.register_buffer("rows", torch.from_numpy(rows))
        self.register_buffer(
            "scale", torch.from_numpy(weights[SCALE] if quantized else np.ones(len(rows), "f4"))
        )

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return (n, dim) float32 of ids and mask, int64 (n, width): rows of length 1, or of zeros for no pieces."""
        config, model = self.config, self.model
        if config.layers:
            hidden = model.states(ids, mask.bool(), full=False)
        else:
            hidden = self.rows[ids].float() * self.scale[ids].float().unsqueeze(-1)
        hidden = hidden * mask.unsqueeze(-1)
        if config.repeat_damping:
            same = ((ids.unsqueeze(1) == ids.unsqueeze(2)) * mask.unsqueeze(1)).sum(2)
            table = model.repeat_table
            hidden = hidden * table[same.clamp(1, len(table)) - 1].unsqueeze(-1)
        sums = hidden.sum(1)
        if columns := config.order_columns:
            # Places of padding are those of the last piece; its pieces have no vector.
            step = steps(mask.cumsum(1) - 1, mask.sum(1, keepdim=True).clamp(min=1)).clamp(0, STEPS - 1)
            times = (model.wave[step] * config.order_weight).unsqueeze(-1)
            sums = torch.cat([sums, (hidden[:, :, :columns] * times).sum(1)], dim=1)
        units = unit_vectors(sums)
        if not config.length_share:
            return units
        characters = (model.characters[ids].long() * mask).sum(1)
        return with_length(units, characters, config.length_share, model.length_table)


def write_graph(config: EncoderConfig, weights: dict[str, np.ndarray], path: Path) -> None:
    """Write the graph of weights as `read_weights` returns them; BitextmineError if a library is missing.

    Inputs are input_ids and attention_mask, int64 (n, width); the output is sentence_embedding, float32 (n, dim).
    """
    try:
        import onnxscript  # noqa: F401 (torch's exporter needs it)
    except ImportError:
        raise BitextmineError("export needs onnx and onnxscript: pip install 'bitextmine[onnx]'") from None
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    shape = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    torch.onnx.export(
        PaddedModel(config, weights).eval(),
        tuple(torch.ones(2, 3, dtype=torch.int64) for _ in INPUTS),  # one tensor for both would be one input
        path,
        input_names=INPUTS,
        output_names=[OUTPUT],
        dynamic_shapes=(shape, shape),
        opset_version=OPSET,
        dynamo=True,
        external_data=False,
        verbose=False,
    )


def write_tokenizer(model: Path, path: Path, *, max_pieces: int) -> None:
    """Write a tokenizer.json that cuts text into the same pieces as a SentencePiece model, `max_pieces` at most.

    The library applies the rules of normalisation cluster by cluster, SentencePiece letter by letter: text with rare
    combining signs may be cut in another way.

    Raises:
        BitextmineError: the library is missing, or cannot express the vocabulary.
    """
    protocol: Any
    try:
        import tokenizers
        from sentencepiece import sentencepiece_model_pb2 as protocol
    except ImportError:
        raise BitextmineError(
            "export needs tokenizers and protobuf: pip install 'bitextmine[onnx]'"
        ) from None
    proto = protocol.ModelProto()
    try:
        proto.ParseFromString(model.read_bytes())
    except Exception as e:  # protobuf's own
        raise BitextmineError(f"{model}: not a readable SentencePiece model ({e})") from None
    rules, kinds = proto.normalizer_spec, [piece.type for piece in proto.pieces]
    usual = rules.add_dummy_prefix and rules.remove_extra_whitespaces and rules.escape_whitespaces
    unigram = proto.trainer_spec.model_type == proto.trainer_spec.UNIGRAM
    unknown = protocol.ModelProto.SentencePiece.UNKNOWN
    supported = {protocol.ModelProto.SentencePiece.NORMAL, unknown}
    if not unigram or not usual or set(kinds) != supported or kinds.count(unknown) != 1:
        raise BitextmineError(
            f"{model}: not a plain unigram vocabulary, as 'bitextmine train' makes them: the tokenizers library would "
            "cut text in other ways"
        )
    vocabulary = Tokenizer(model)
    pieces = list(zip(vocabulary.names(), vocabulary.scores(), strict=True))
    made = tokenizers.Tokenizer(
        tokenizers.models.Unigram(pieces, unk_id=kinds.index(unknown), byte_fallback=False)
    )
    normalizers = tokenizers.normalizers
    steps = [normalizers.Precompiled(rules.precompiled_charsmap)] if rules.precompiled_charsmap else []
    spaces = [normalizers.Replace(tokenizers.Regex(" {2,}"), " "), normalizers.Strip()]
    made.normalizer = normalizers.Sequence([*steps, *spaces])
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")
    made.decoder = tokenizers.decoders.Metaspace(SPACE, prepend_scheme="always")
    made.enable_truncation(max_pieces)
    made.save(str(path))
