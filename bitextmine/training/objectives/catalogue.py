"""Declare the objectives for recipes. Nothing heavy is imported: a bad recipe need not wait for torch.

A new objective is a class in a module of this folder (see `registry.Objective`), an entry here, and a word about it in
recipe/template.toml.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Declared:
    """An objective: the place of its class, and its requirements.

    Attributes:
        module: has the class, a subclass of `registry.Objective` (mcl_bool: MclBool).
        needs_layers: why it cannot work without transformer layers; "" if it can.
        cosines: it reads only finished vectors, as spelling, order_columns and length_share require.
        taught: it learns from pairs with a teacher's vectors; pieces: from a teacher's piece vectors.
        edits: it learns from changed copies of the sentences.
    """

    module: str
    needs_layers: str = ""
    cosines: bool = False
    taught: bool = False
    pieces: bool = False
    edits: bool = False


_TAUGHT = Declared("teaching", cosines=True, taught=True)
OBJECTIVES = {
    "contrastive": Declared("sentence", cosines=True),
    "edited": Declared("sentence", cosines=True, edits=True),
    "mlm": Declared("generative", needs_layers="without layers no state knows its neighbours"),
    **dict.fromkeys(("smlm", "xtr", "ugt"), Declared("generative")),
    **dict.fromkeys(("align", "sim"), Declared("sentence")),
    "distil": _TAUGHT,
    "embedding": Declared("teaching", pieces=True),
    **dict.fromkeys(("mcl", "mcl_bool", "mcl_ce", "structure"), _TAUGHT),
}
