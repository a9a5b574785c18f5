"""Declare the objectives for recipes. Nothing heavy is imported: a bad recipe need not wait for torch.

A new objective is a class in a module of this folder (see `registry.Objective`), an entry here, and a word about it in
recipe/template.toml.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Declared:
    """An objective: the place of its class, and its requirements.

    Attributes:
        module, cls: a subclass of `registry.Objective`.
        needs_layers: why it cannot work without transformer layers; "" if it can.
        cosines: it reads only finished vectors, as spelling, order_columns and length_share require.
        taught: it learns from pairs with a teacher's vectors; pieces: from a teacher's piece vectors.
        edits: it learns from changed copies of the sentences.
    """

    module: str
    cls: str
    needs_layers: str = ""
    cosines: bool = False
    taught: bool = False
    pieces: bool = False
    edits: bool = False


def _taught(cls: str) -> Declared:
    return Declared("teaching", cls, cosines=True, taught=True)


OBJECTIVES = {
    "contrastive": Declared("sentence", "Contrastive", cosines=True),
    "edited": Declared("sentence", "Edited", cosines=True, edits=True),
    "mlm": Declared("generative", "Mlm", needs_layers="without layers no state knows its neighbours"),
    "smlm": Declared("generative", "Smlm"),
    "xtr": Declared("generative", "Xtr"),
    "ugt": Declared("generative", "Ugt"),
    "align": Declared("sentence", "Align"),
    "sim": Declared("sentence", "Sim"),
    "distil": _taught("Distil"),
    "embedding": Declared("teaching", "Embedding", pieces=True),
    "mcl": _taught("Mcl"),
    "mcl_bool": _taught("MclBool"),
    "mcl_ce": _taught("MclCe"),
    "structure": _taught("Structure"),
}
