"""An encoder from its name or its folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bitextmine.device import device_name
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.folder import PACKAGED, WEIGHTS, folder_hash, read_folder, resolve
from bitextmine.encoder.foreign import read_foreign
from bitextmine.encoder.hub import hub_name
from bitextmine.encoder.precomputed import PRECOMPUTED, Precomputed
from bitextmine.encoder.protocols import Network
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.weights import read_weights
from bitextmine.errors import UsageError

__all__ = ["as_encoder", "load_encoder"]


def load_encoder(
    model: str | os.PathLike[str] = "default", device: str = "auto", *, precision: str = "auto"
) -> Encoder:
    """An encoder by the name of a packaged one, from a model folder, from a folder of sentence-transformers or LASER,
    or by its name on the hub (ORG/NAME, ORG/NAME@REVISION; `hub`), ready on ``device`` (auto, cpu, cuda, cuda:N).

    "precomputed" stands for vectors that another tool made of corpora, taken in by ``embed --vectors``.
    An encoder of the hub has ORG/NAME for its name, and ORG/NAME@COMMIT for its hash, which signatures show.

    ``precision`` is that of the matrix products in a model with layers: auto (the fastest that the device has
    instructions for), float32, bfloat16, float16.

    Raises UsageError for what is no name, BitextmineError that names the file or the value
    that is wrong.
    """
    if not isinstance(model, (str, os.PathLike)) or not os.fspath(model):  # "" would be the folder one is in
        raise UsageError(f"model: expected an encoder's name or folder, found {model!r}")
    if os.fspath(model) == PRECOMPUTED:
        nothing = Precomputed()
        return Encoder(nothing, nothing, name=PRECOMPUTED, hash=PRECOMPUTED, max_pieces=1)
    on_hub = None if os.fspath(model) in PACKAGED else hub_name(model)
    folder = resolve(model)
    name = Path(folder).resolve().name if on_hub is None else on_hub[0]
    # A commit says what the files are; the folder in the cache may hold some that others asked for.
    hub_hash = None if on_hub is None else f"{name}@{folder.name}"
    foreign = read_foreign(folder)
    if foreign is not None:
        place = device_name(device) if foreign.heavy else "cpu"
        return Encoder(
            foreign.network(place, precision),
            foreign.tokenizer,
            name=name,
            hash=hub_hash or foreign.hash(),
            max_pieces=foreign.max_pieces,
        )
    config, tokenizer = read_folder(folder)
    return Encoder(
        _network(config, read_weights(config, folder / WEIGHTS), device, precision),
        tokenizer,
        name=name,
        hash=hub_hash or folder_hash(folder),
        max_pieces=config.max_pieces,
        languages=config.languages,
        folder=folder,
    )


def as_encoder(model: str | os.PathLike[str] | Encoder, device: str = "auto") -> Encoder:
    """An encoder as it is, anything else by `load_encoder`.

    Raises what that raises, and UsageError for what is neither an encoder nor a name.
    """
    if isinstance(model, (str, os.PathLike)):
        return load_encoder(model, device)
    if not hasattr(model, "encode_pieces"):  # anything that works like an Encoder will do
        raise UsageError(f"model: expected an encoder, or the name or folder of one, found {model!r}")
    return model


def _network(config: EncoderConfig, state: Mapping[str, np.ndarray], device: str, precision: str) -> Network:
    # A sum of piece vectors takes less time than the words take to look up: a GPU would wait for text.
    place = device_name(device if config.layers or device != "auto" else "cpu")
    if place == "cpu" and not config.layers:
        return PieceSums(state, config)
    from bitextmine.encoder.transformer import Transformer

    return Transformer(config, state, place, precision)
