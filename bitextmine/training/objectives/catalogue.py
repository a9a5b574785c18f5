"""What objectives there are, as recipes see them. Nothing heavy is imported: a bad recipe need not wait for torch.

A new objective is a class in a module of this folder (see `protocol`), and an entry here: recipes, their checks and
what `bitextmine train --print-recipe` says follow from that.
"""

from __future__ import annotations

import dataclasses

__all__ = ["OBJECTIVES", "Declared", "objectives_in_words"]


@dataclasses.dataclass(frozen=True)
class Declared:
    """An objective: where its class is, and what it asks of a recipe.

    module, cls: a class of `protocol.Objective`, in the module of that name in this folder.
    doc: what it minimises; those of one doc are named together.
    needs_layers: why it can do nothing without transformer layers; "" where it can.
    cosines: it reads finished vectors, and nothing else of a sentence. Only then may a model have
    spelling, order_columns or a length_share, which are no part of the vectors that other objectives read.
    negatives: the other pairs of a batch are its negatives, so that there can be hard ones.
    taught: it is over pairs that a teacher's vectors are known of, and needs one. pieces: it needs a teacher's piece
    vectors.
    """

    module: str
    cls: str
    doc: str
    needs_layers: str = ""
    cosines: bool = False
    negatives: bool = False
    taught: bool = False
    pieces: bool = False


PIECES = "predict pieces"
PAPER = "the paper's sentence losses"
MCL = "cosines with other translations as the teacher's, as 1 and 0, or by cross-entropy"
STRUCTURE = "cosines of all sentences as the teacher's, by squares, divergence or correlation"


def taught(cls: str, doc: str) -> Declared:
    """An objective of `teaching`."""
    return Declared("teaching", cls, doc, cosines=True, taught=True)


OBJECTIVES = {
    "contrastive": Declared(
        "contrastive",
        "Contrastive",
        "the translation among the batch's sentences, by cosine",
        cosines=True,
        negatives=True,
    ),
    "mlm": Declared("generative", "Mlm", PIECES, needs_layers="without layers no state knows its neighbours"),
    "smlm": Declared("generative", "Smlm", PIECES),
    "xtr": Declared("generative", "Xtr", PIECES),
    "ugt": Declared("generative", "Ugt", PIECES),
    "align": Declared("sentence", "Align", PAPER),
    "sim": Declared("sentence", "Sim", PAPER),
    "distil": taught("Distil", "the teacher's vectors"),
    "embedding": Declared(
        "teaching", "Embedding", "a teacher's piece vectors (of the same vocabulary)", pieces=True
    ),
    "mcl": taught("Mcl", MCL),
    "mcl_bool": taught("MclBool", MCL),
    "mcl_ce": taught("MclCe", MCL),
    "structure": taught("Structure", STRUCTURE),
    "structure_kl": taught("StructureKl", STRUCTURE),
    "structure_correlation": taught("StructureCorrelation", STRUCTURE),
}


def objectives_in_words() -> str:
    """All of them: "contrastive: the translation ...; mlm, smlm: predict pieces (mlm only with layers); ..."."""
    said = []
    for doc in dict.fromkeys(declared.doc for declared in OBJECTIVES.values()):
        names = [name for name, declared in OBJECTIVES.items() if declared.doc == doc]
        layered = [name for name in names if OBJECTIVES[name].needs_layers]
        said.append(
            f"{', '.join(names)}: {doc}" + (f" ({', '.join(layered)} only with layers)" if layered else "")
        )
    return "; ".join(said)
