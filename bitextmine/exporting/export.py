"""Exporting an encoder to a format of another library."""

import os
import shutil
from pathlib import Path

from bitextmine.arguments import a_path
from bitextmine.declarations import declare
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, resolve
from bitextmine.encoder.foreign import foreign_kind
from bitextmine.encoder.weights import read_weights
from bitextmine.errors import BitextmineError
from bitextmine.exporting import Target


def export_encoder(
    model: str | os.PathLike[str], out: str | os.PathLike[str], *, to: Target, force: bool = False
) -> Path:
    """Write an encoder as a folder for another library.

    sentence-transformers needs bitextmine to load it. ONNX Runtime has no n-grams.

    Args:
        model: a packaged encoder's name, a folder or a name on the hub.
        out: the folder to write, which is returned.
        to: "sentence-transformers" or "onnx" (model.onnx and tokenizer.json).
        force: write into a folder that is not empty.

    Raises:
        UsageError: another format.
        BitextmineError: the encoder is not bitextmine's, or the other library cannot express it; the folder is taken;
            a library is missing.
    """
    to = declare("to", Target).check(to)
    folder = resolve(model)
    out = Path(a_path("out", out))
    if foreign_kind(folder) is not None:
        raise BitextmineError(f"{model}: was not made by bitextmine; export it with the library that made it")
    config, _ = read_folder(folder)
    if config.ngrams and to == "onnx":
        raise BitextmineError(
            f"{model}: has {config.ngrams} n-grams, which reach across the pieces of a word, and no tokenizer of ONNX "
            "Runtime makes those: use --to sentence-transformers, or train with model.ngrams 0"
        )
    if config.transliterate and to == "onnx":
        raise BitextmineError(
            f"{model}: spells Greek and Cyrillic in Latin letters, which no tokenizer of ONNX Runtime does: use --to "
            "sentence-transformers, or train with model.transliterate false"
        )
    made = not out.exists()
    if not made and not out.is_dir():
        raise BitextmineError(f"{out}: a file is there; name a folder to export to")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not force and any(out.iterdir()):
            raise BitextmineError(f"{out}: the folder is not empty; name another one, or pass --force")
        if to == "onnx":
            from bitextmine.exporting.onnx import write_graph, write_tokenizer

            write_graph(config, read_weights(config, folder / WEIGHTS), out / "model.onnx")
            write_tokenizer(folder / TOKENIZER, out / "tokenizer.json", max_pieces=config.max_pieces)
        else:
            from bitextmine.exporting.sentence_transformers import write_sentence_transformers

            write_sentence_transformers(folder, config, out)
        shutil.copyfile(folder / TOKENIZER, out / TOKENIZER)
    except (OSError, BitextmineError) as e:
        if made:
            shutil.rmtree(out, ignore_errors=True)
        if isinstance(e, BitextmineError):
            raise
        raise BitextmineError(f"{out}: cannot write: {e.strerror or e}") from None
    return out
