"""Objectives that learn from a teacher: its vectors, or its cosines between the sentences of a batch.

`Distil`, `Mcl`, `MclBool` and `MclCe` are Eq. 2 (also 4 and 6), 5, 8 and 9 of "Multi-stage Distillation Framework for
Cross-Lingual Semantic Similarity Matching" (Ding et al. 2022). All read finished unit vectors, and all are means over
the batch, whatever its size. A teacher that reads one language gives both sentences of a pair the vector of that one
(Reimers & Gurevych 2020).

The n x n matrix of cosines is avoided where possible: the sum of the squares of U U' is that of U' U, which is small.
"""

import numpy as np
import torch
from torch import Tensor, nn

from bitextmine.encoder.model import unit_vectors
from bitextmine.training.objectives.registry import Objective, Setup, Views
from bitextmine.training.objectives.sentence import false_negatives

TEMPERATURE = 0.05


class Taught(Objective):
    """An objective over pairs with a teacher's vectors."""

    def _loss(self, views: Views) -> Tensor:
        student = unit_vectors(views.gather(views.vectors))
        teacher = torch.from_numpy(np.concatenate(list(views.teacher))).to(student.device)
        return views.shared(self._of(student, teacher, views.keys))

    def _of(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        """Return a scalar from student (2n, d) and teacher (2n, e), unit rows, sources first, and keys (2, n)."""
        raise NotImplementedError


class Distil(Taught):
    """Eq. 2, 4 and 6: the student's vectors become the teacher's.

    The mean over n pairs of |t - s|^2, summed over both sides. If they differ in dimension, a linear map from the
    student's to the teacher's is learned beside the encoder; it starts out orthogonal.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        dim, teacher_dim = setup.config.dim, setup.teacher_dim
        self.map = None if dim == teacher_dim else nn.Linear(dim, teacher_dim, bias=False)
        if self.map is not None:
            nn.init.orthogonal_(self.map.weight)

    def align(self, student: Tensor, teacher: Tensor) -> None:
        """Set the map to the orthogonal one that brings student (m, d) nearest to teacher (m, e).

        Schoenemann 1966, "A generalized solution of the orthogonal Procrustes problem".
        """
        if self.map is not None:
            left, _, right = torch.linalg.svd(teacher.T @ student, full_matrices=False)
            with torch.no_grad():
                self.map.weight.copy_(left @ right)

    def _of(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        found = student if self.map is None else self.map(student)
        return 2 * (teacher - found).square().sum(1).mean()


class Embedding(Objective):
    """Eq. 3: the student's piece vectors, before its layers, become the teacher's.

    The mean over a sentence's pieces, summed over both sides, the mean over pairs.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        table = setup.teacher_pieces
        if table is None:
            table = np.zeros((0, setup.config.piece_dim), dtype=np.float32)
        self.table: Tensor
        self.register_buffer("table", torch.from_numpy(table), persistent=False)

    def _loss(self, views: Views) -> Tensor:
        pieces = views.whole
        lengths = pieces.lengths
        share = np.repeat(1 / np.maximum(lengths, 1), lengths)
        ids, inverse = np.unique(pieces.ids, return_inverse=True)
        weights = torch.from_numpy(np.bincount(inverse, share).astype(np.float32)).to(self.table.device)
        found = torch.from_numpy(ids.astype(np.int64)).to(self.table.device)
        error = (self.table[found] - views.model.piece_states(found)).square().sum(1)
        return weights @ error / views.pairs


class Mcl(Taught):
    """Eq. 5: the mean over i and j of (cos(teacher_i, teacher_j) - cos(src_i, tgt_j))^2."""

    def _of(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        src, tgt = student.chunk(2)
        return cosine_error(src, tgt, teacher.chunk(2)[0])


class MclBool(Taught):
    """Eq. 8: `Mcl` with 1 instead of the teacher's cosine if i and j share a sentence, else 0."""

    def _of(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        src, tgt = student.chunk(2)
        rows, columns = (torch.from_numpy(side).to(src.device) for side in false_negatives(keys))
        own = (src * tgt).sum(1).sum() + (src[rows] * tgt[columns]).sum()
        squares = ((src.T @ src) * (tgt.T @ tgt)).sum()
        return (squares - 2 * own + len(src) + len(rows)) / len(src) ** 2


class MclCe(Taught):
    """Eq. 9: the mean over i of - sum_j cos(teacher_i, teacher_j) log softmax_j(cos(src_i, tgt_j) / TEMPERATURE)."""

    def _of(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        src, tgt = student.chunk(2)
        weights = teacher[: len(src)] @ teacher[: len(src)].T
        return -(weights * (src @ tgt.T / TEMPERATURE).log_softmax(1)).sum(1).mean()


class Structure(Taught):
    """The cosines of all sentences, whatever their language, become the teacher's.

    Similarity-preserving distillation (Tung & Mori 2019), on plain cosines.
    """

    def _of(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        return cosine_error(student, student, teacher)


def cosine_error(a: Tensor, b: Tensor, teacher: Tensor) -> Tensor:
    """Return the mean over i and j of (cos(teacher_i, teacher_j) - cos(a_i, b_j))^2, of unit rows (n, d)."""
    squares = ((a.T @ a) * (b.T @ b)).sum()
    products = ((a.T @ teacher) * (b.T @ teacher)).sum()
    constant = (teacher.T @ teacher).square().sum()
    return (squares - 2 * products + constant) / len(a) ** 2
