"""Declare the objectives for recipes. Nothing heavy is imported: a bad recipe need not wait for torch.

A new objective is a class in a module of this folder (see `registry.Objective`), an entry here, and a word about it in
recipe/template.toml.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Requirements:
    """An objective: the place of its class, and its requirements.

    Attributes:
        module: has the class, a subclass of `registry.Objective` (mcl_bool: MclBool).
        cosines: it reads only finished vectors, as spelling, order_columns and length_share require.
        teacher: it learns from a teacher; taught: from pairs with the teacher's vectors.
        edits: it learns from changed copies of the sentences.
    """

    module: str
    cosines: bool = False
    teacher: bool = False
    taught: bool = False
    edits: bool = False


_MAO, _DING = "papers.mao2021", "papers.ding2022"
OBJECTIVES = {
    "contrastive": Requirements("objectives.cosines", cosines=True),
    "edited": Requirements("objectives.cosines", cosines=True, edits=True),
    "structure": Requirements("objectives.cosines", cosines=True, teacher=True, taught=True),
    # Of the two papers:
    **dict.fromkeys(("smlm", "xtr", "ugt", "align", "sim"), Requirements(_MAO)),
    "embedding": Requirements(_DING, teacher=True),
    **dict.fromkeys(
        ("distil", "mcl", "mcl_bool", "mcl_ce"), Requirements(_DING, cosines=True, teacher=True, taught=True)
    ),
}
