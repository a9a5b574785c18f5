"""Loading an encoder by its name or its folder."""

from __future__ import annotations

import dataclasses
import os
from functools import lru_cache, partial

from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.folder import PACKAGED, WEIGHTS, checked_hash, read_folder, resolve
from bitextmine.encoder.foreign import read_foreign
from bitextmine.encoder.hub import hub_name
from bitextmine.encoder.precomputed import PRECOMPUTED, Precomputed
from bitextmine.encoder.protocols import Network
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.weights import read_weights
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.run import Run


def load_encoder(
    model: str | os.PathLike[str] = "default", device: str | Run = "auto", *, precision: str = "auto"
) -> Encoder:
    """Load an encoder.

    Args:
        model: the name of a packaged encoder; a model folder, or one of sentence-transformers or LASER; ORG/NAME or
            ORG/NAME@REVISION on the Hugging Face hub; or "precomputed", for vectors that another tool made and
            ``embed --vectors`` takes in.
        device: auto, cpu, cuda, cuda:N; or a `Run`, whose threads and batch_tokens then hold as well.
        precision: of the matrix products in a model with layers: auto (the fastest for which the device has
            instructions), float32, bfloat16, float16.

    Raises:
        UsageError: ``model`` or ``device`` is no name.
        BitextmineError: a file or a value is missing or wrong; the message names it.
    """
    run = device if isinstance(device, Run) else Run(device=device)
    if not isinstance(model, (str, os.PathLike)) or not os.fspath(model):  # "" would be the current folder
        raise UsageError(f"model: expected an encoder's name or folder, found {model!r}")
    text = os.fspath(model)
    if text == PRECOMPUTED:
        nothing = Precomputed()
        return Encoder(nothing, nothing, name=PRECOMPUTED, hash=PRECOMPUTED, max_pieces=1)
    on_hub = None if text in PACKAGED else hub_name(model)
    folder = resolve(model)
    name, known, again = folder.resolve().name, None, str(folder.absolute())
    if on_hub is not None:
        # A commit says what the files are; the folder in the cache may lack some that are not read here.
        name = on_hub[0]
        known = again = f"{name}@{folder.name}"
    load_again = partial(_load_again, again, run, precision)
    foreign = read_foreign(folder)
    if foreign is not None:
        here = dataclasses.replace(run, device=run.device_name if foreign.heavy else "cpu")
        return Encoder(
            foreign.network(here, precision),
            foreign.tokenizer,
            name=name,
            hash=known or foreign.hash(),
            max_pieces=foreign.max_pieces,
            run=run,
            again=load_again,
        )
    config, tokenizer = read_folder(folder)
    weights = read_weights(config, folder / WEIGHTS)
    own = checked_hash(folder)
    # By default a GPU gets no sums: they take less time than looking up the words, and it would wait for text.
    place = run.device_name if config.layers or run.device != "auto" else "cpu"
    here = dataclasses.replace(run, device=place)
    network: Network
    if config.layers:
        from bitextmine.encoder.transformer import Transformer

        network = Transformer(config, weights, here, precision)
    elif place == "cpu":
        network = PieceSums(weights, config)
    else:
        from bitextmine.encoder.device_sums import DeviceSums

        network = DeviceSums(config, weights, here, precision)
    return Encoder(
        network,
        tokenizer,
        name=name,
        hash=known or own,
        max_pieces=config.max_pieces,
        languages=config.languages,
        pairs=config.pairs,
        folder=folder,
        run=run,
        again=load_again,
    )


def as_encoder(model: str | os.PathLike[str] | Encoder, device: str | Run = "auto") -> Encoder:
    """Return an encoder as it is, anything else through `load_encoder`; raises UsageError for neither."""
    if isinstance(model, (str, os.PathLike)):
        return load_encoder(model, device)
    if not hasattr(model, "encode_pieces"):  # anything that works like an Encoder will do
        raise UsageError(f"model: expected an encoder, or the name or folder of one, found {model!r}")
    return model


@lru_cache(maxsize=2)
def _load_again(model: str, run: Run, precision: str, hash: str) -> Encoder:
    """Load a pickled encoder; once per process, as a Pool unpickles it for each chunk of work."""
    encoder = load_encoder(model, run, precision=precision)
    if encoder.hash != hash:
        raise BitextmineError(
            f"{model}: the pickled encoder has hash {hash}, but the folder has {encoder.hash}"
        )
    return encoder
