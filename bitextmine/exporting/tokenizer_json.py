"""Our vocabulary as a tokenizer.json, which the tokenizers library, transformers and sentence-transformers read."""

from __future__ import annotations

from pathlib import Path

from bitextmine.errors import BitextmineError
from bitextmine.exporting.spm import read_sentencepiece

__all__ = ["PAD", "write_tokenizer"]

PAD = "<pad>"
SPACE = "\u2581"


def write_tokenizer(model: Path, path: Path, *, max_pieces: int, pad: bool) -> None:
    """Writes the SentencePiece model as a tokenizer.json that makes the same pieces of text, `max_pieces` at most.

    pad: piece 0 is padding, and each piece's number is one more than in the model.

    The library applies the rules of normalisation cluster by cluster where SentencePiece goes letter by letter: text
    with rare combining signs may be cut in another way. Raises BitextmineError for a vocabulary that it cannot have,
    and without the library.
    """
    try:
        from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    except ImportError:
        raise BitextmineError(
            "export needs the tokenizers library: pip install 'bitextmine[transformers]'"
        ) from None
    vocabulary = read_sentencepiece(model)
    pieces = [(PAD, 0.0), *vocabulary.pieces] if pad else list(vocabulary.pieces)
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocabulary.unknown + pad, byte_fallback=False))
    steps = [normalizers.Precompiled(vocabulary.rules)] if vocabulary.rules else []
    spaces = [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence([*steps, *spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(SPACE, prepend_scheme="always")
    tokenizer.enable_truncation(max_pieces)
    tokenizer.save(str(path))
