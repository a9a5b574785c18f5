"""Declare the objectives for recipes. Nothing heavy is imported: a bad recipe need not wait for torch.

A new objective is a class in a module of this folder (see `registry.Objective`) and an entry here; recipes, their
checks and `bitextmine train --print-recipe` follow from that.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Declared:
    """An objective: the place of its class, and its requirements.

    Attributes:
        module: module in this folder that has the class.
        cls: a subclass of `registry.Objective`.
        doc: what it minimises; objectives with the same text are described together.
        needs_layers: why it cannot work without transformer layers; "" if it can.
        cosines: it reads only finished vectors. Spelling, order_columns and length_share require that, as they are
            not part of the vectors that other objectives read.
        taught: it learns from pairs with a teacher's vectors.
        pieces: it learns from a teacher's piece vectors.
        edits: it learns from changed copies of the sentences.
    """

    module: str
    cls: str
    doc: str
    needs_layers: str = ""
    cosines: bool = False
    taught: bool = False
    pieces: bool = False
    edits: bool = False


PIECES = "predict pieces"
PAPER = "the paper's sentence losses"
MCL = "cosines with other translations like the teacher's, like 1 and 0, or by cross-entropy"
STRUCTURE = "cosines of all sentences like the teacher's, by squares, divergence or correlation"
RETRIEVAL = "the translation among the batch's sentences, by cosine"
EDITED = "the translation rather than a copy of it with another number, another word or a negation, by cosine"


def _taught(cls: str, doc: str) -> Declared:
    return Declared("teaching", cls, doc, cosines=True, taught=True)


OBJECTIVES = {
    "contrastive": Declared("sentence", "Contrastive", RETRIEVAL, cosines=True),
    "edited": Declared("sentence", "Edited", EDITED, cosines=True, edits=True),
    "mlm": Declared("generative", "Mlm", PIECES, needs_layers="without layers no state knows its neighbours"),
    "smlm": Declared("generative", "Smlm", PIECES),
    "xtr": Declared("generative", "Xtr", PIECES),
    "ugt": Declared("generative", "Ugt", PIECES),
    "align": Declared("sentence", "Align", PAPER),
    "sim": Declared("sentence", "Sim", PAPER),
    "distil": _taught("Distil", "the teacher's vectors"),
    "embedding": Declared(
        "teaching", "Embedding", "a teacher's piece vectors (of the same vocabulary)", pieces=True
    ),
    "mcl": _taught("Mcl", MCL),
    "mcl_bool": _taught("MclBool", MCL),
    "mcl_ce": _taught("MclCe", MCL),
    "structure": _taught("Structure", STRUCTURE),
    "structure_kl": _taught("StructureKl", STRUCTURE),
    "structure_correlation": _taught("StructureCorrelation", STRUCTURE),
}


def objectives_in_words() -> str:
    """Describe all of them: "contrastive: the translation ...; mlm, smlm: predict pieces (mlm only with layers)"."""
    said = []
    for doc in dict.fromkeys(declared.doc for declared in OBJECTIVES.values()):
        names = [name for name, declared in OBJECTIVES.items() if declared.doc == doc]
        layered = [name for name in names if OBJECTIVES[name].needs_layers]
        note = f" ({', '.join(layered)} only with layers)" if layered else ""
        said.append(f"{', '.join(names)}: {doc}{note}")
    return "; ".join(said)
