"""Objectives that learn from pairs with a teacher's vectors.

All read finished unit vectors, and all are means over the batch, whatever its size. A teacher that reads one language
gives both sentences of a pair the vector of that one (Reimers & Gurevych 2020).
"""

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.model import unit_vectors
from bitextmine.training.objectives.registry import Objective, Views


class Taught(Objective):
    """An objective over pairs with a teacher's vectors."""

    def _loss(self, views: Views) -> Tensor:
        student = unit_vectors(views.gather(views.vectors))
        teacher = torch.from_numpy(np.concatenate(list(views.teacher))).to(student.device)
        return views.shared(self._compare(student, teacher, views.keys))

    def _compare(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        """Return a scalar from student (2n, d) and teacher (2n, e), unit rows, sources first, and keys (2, n)."""
        raise NotImplementedError


class Structure(Taught):
    """The cosines of all sentences, whatever their language, become the teacher's.

    Similarity-preserving distillation (Tung & Mori 2019), on plain cosines.
    """

    def _compare(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        return cosine_error(student, student, teacher)


def cosine_error(a: Tensor, b: Tensor, teacher: Tensor) -> Tensor:
    """Return the mean over i and j of (cos(teacher_i, teacher_j) - cos(a_i, b_j))^2, of unit rows (n, d).

    The n x n matrices are avoided: the sum of the squares of U U' is that of U' U, which is small.
    """
    squares = ((a.T @ a) * (b.T @ b)).sum()
    products = ((a.T @ teacher) * (b.T @ teacher)).sum()
    constant = (teacher.T @ teacher).square().sum()
    return (squares - 2 * products + constant) / len(a) ** 2
