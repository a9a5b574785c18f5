"""A SentencePiece vocabulary as a tokenizer.json of the tokenizers library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError

SPACE = "\u2581"


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
    known = {protocol.ModelProto.SentencePiece.NORMAL, unknown}
    if not unigram or not usual or set(kinds) != known or kinds.count(unknown) != 1:
        raise BitextmineError(
            f"{model}: not a plain unigram vocabulary, as vocabulary.type 'unigram' makes them: the tokenizers library "
            "would cut text in other ways"
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
