"""Exporting an encoder: is it one that can be, and into what."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bitextmine.arguments import a_path, one_of
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, resolve
from bitextmine.encoder.foreign import read_foreign
from bitextmine.encoder.weights import read_weights, unrolled
from bitextmine.errors import BitextmineError
from bitextmine.exporting.forms import FORMS, ONNX

__all__ = ["export_encoder"]

OWN = "bitextmine.load_encoder(...) itself takes the arguments of sentence-transformers, and so goes into MTEB as it is"


def export_encoder(
    model: str | os.PathLike[str], out: str | os.PathLike[str], *, to: str, force: bool = False
) -> Path:
    """Writes an encoder as a folder for another library, which then needs no bitextmine; returns the folder.

    to: "sentence-transformers" (modules of its own alone), or "onnx" (model.onnx with inputs input_ids and
    attention_mask, output sentence_embedding; tokenizer.json). force: write into a folder that is not empty.

    Raises UsageError for another form, and BitextmineError for an encoder that was not made by bitextmine, for one that
    the other library cannot express (the message says what), for a folder that is taken, and without the libraries.
    """
    one_of("to", to, FORMS)
    folder = resolve(model)
    out = Path(a_path("out", out))
    if read_foreign(folder) is not None:
        raise BitextmineError(f"{model}: was not made by bitextmine; export it with the library that made it")
    config, _ = read_folder(folder)
    config, weights = unrolled(config, read_weights(config, folder / WEIGHTS))
    if config.ngrams:
        raise BitextmineError(
            f"{model}: has {config.ngrams} n-grams, which reach across the pieces of a word, and no tokenizer of "
            f"{to} makes those: an encoder trained with model.ngrams 0 can be exported; {OWN}"
        )
    columns = {"order_columns": config.order_columns, "length_share": config.length_share}
    beyond = [f"{name} {value}" for name, value in columns.items() if value]
    if beyond and to != ONNX:
        raise BitextmineError(
            f"{model}: has {' and '.join(beyond)}, and no module of sentence-transformers makes such columns: use --to "
            f"onnx, or train with {' and '.join(f'model.{name.split()[0]} 0' for name in beyond)}; {OWN}"
        )
    made = not out.exists()
    _make_folder(out, force)
    try:
        if to == ONNX:
            from bitextmine.exporting.onnx_graph import write_graph
            from bitextmine.exporting.tokenizer_json import write_tokenizer

            write_graph(config, weights, out / "model.onnx")
            write_tokenizer(
                folder / TOKENIZER, out / "tokenizer.json", max_pieces=config.max_pieces, pad=False
            )
        else:
            from bitextmine.exporting.sentence_transformers import write_sentence_transformers

            write_sentence_transformers(config, weights, folder / TOKENIZER, out)
        shutil.copyfile(folder / TOKENIZER, out / TOKENIZER)
    except (OSError, BitextmineError) as e:
        if made:
            shutil.rmtree(out, ignore_errors=True)
        if isinstance(e, BitextmineError):
            raise
        raise BitextmineError(f"{out}: cannot write: {e.strerror or e}") from None
    return out


def _make_folder(out: Path, force: bool) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        taken = not force and any(out.iterdir())
    except OSError as e:
        raise BitextmineError(f"{out}: cannot make this folder: {e.strerror or e}") from None
    if taken:
        raise BitextmineError(f"{out}: there is something in it; name another folder, or give --force")
