"""The objectives of Ding et al. 2022.

"Multi-stage Distillation Framework for Cross-Lingual Semantic Similarity Matching".
`Distil` is Eq. 2 (also 4 and 6), `Embedding` 3, `Mcl` 5, `MclBool` 8 and `MclCe` 9.
train/distil.py trains by them, stage by stage.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from bitextmine.encoder import Encoder
from bitextmine.encoder.folder import WEIGHTS, read_folder
from bitextmine.encoder.weights import BOTTLENECK, piece_vectors, read_weights
from bitextmine.errors import BitextmineError
from bitextmine.training.objectives.cosines import Taught, cosine_error, false_negatives
from bitextmine.training.objectives.registry import Objective, Setup, Views

TEMPERATURE = 0.05  # of Eq. 9


class Distil(Taught):
    """Eq. 2, 4 and 6: the student's vectors become the teacher's.

    The mean over n pairs of |t - s|^2, summed over both sides. If they differ in dimension, a linear map from the
    student's to the teacher's is learned beside the encoder; it starts out orthogonal.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        assert setup.teacher is not None
        dim, teacher_dim = setup.config.dim, setup.teacher.dim
        self.map = None if dim == teacher_dim else nn.Linear(dim, teacher_dim, bias=False)
        if self.map is not None:
            nn.init.orthogonal_(self.map.weight)

    def _compare(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        mapped = student if self.map is None else self.map(student)
        return 2 * (teacher - mapped).square().sum(1).mean()


class Embedding(Objective):
    """Eq. 3: the student's piece vectors, before its layers, become the teacher's.

    The mean over a sentence's pieces, summed over both sides, the mean over pairs.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        assert setup.teacher is not None
        self.table: Tensor
        table = teacher_pieces(setup.teacher, setup.pieces, setup.config.dim)
        self.register_buffer("table", torch.from_numpy(table), persistent=False)

    def _loss(self, views: Views) -> Tensor:
        pieces = views.sentences
        lengths = pieces.lengths
        share = np.repeat(1 / np.maximum(lengths, 1), lengths)
        ids, inverse = np.unique(pieces.ids, return_inverse=True)
        weights = torch.from_numpy(np.bincount(inverse, share).astype(np.float32)).to(self.table.device)
        rows = torch.from_numpy(ids.astype(np.int64)).to(self.table.device)
        error = (self.table[rows] - views.model.piece_states(rows)).square().sum(1)
        return weights @ error / len(views.batch)


class Mcl(Taught):
    """Eq. 5: the mean over i and j of (cos(teacher_i, teacher_j) - cos(src_i, tgt_j))^2."""

    def _compare(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        src, tgt = student.chunk(2)
        return cosine_error(src, tgt, teacher.chunk(2)[0])


class MclBool(Taught):
    """Eq. 8: `Mcl` with 1 instead of the teacher's cosine if i and j share a sentence, else 0."""

    def _compare(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        src, tgt = student.chunk(2)
        rows, columns = (torch.from_numpy(side).to(src.device) for side in false_negatives(keys))
        own = (src * tgt).sum(1).sum() + (src[rows] * tgt[columns]).sum()
        squares = ((src.T @ src) * (tgt.T @ tgt)).sum()
        return (squares - 2 * own + len(src) + len(rows)) / len(src) ** 2


class MclCe(Taught):
    """Eq. 9: the mean over i of - sum_j cos(teacher_i, teacher_j) log softmax_j(cos(src_i, tgt_j) / TEMPERATURE)."""

    def _compare(self, student: Tensor, teacher: Tensor, keys: np.ndarray) -> Tensor:
        src, tgt = student.chunk(2)
        weights = teacher[: len(src)] @ teacher[: len(src)].T
        return -(weights * (src @ tgt.T / TEMPERATURE).log_softmax(1)).sum(1).mean()


def teacher_pieces(teacher: Encoder, pieces: Sequence[str], dim: int) -> np.ndarray:
    """Return the teacher's piece vectors, before its layers, (V, dim) float32; BitextmineError without."""
    folder = teacher.folder
    if folder is None:
        raise BitextmineError(
            f"recipe: teacher.model: {teacher.name} has no piece vectors to learn from (embedding): only encoders of "
            "'bitextmine train' do"
        )
    config, theirs = read_folder(folder)
    differ = f"recipe: teacher.model: {folder}: teacher and student disagree: its"
    if theirs.pieces() != list(pieces):
        raise BitextmineError(
            f"{differ} vocabulary, of {config.vocab_size} pieces, is not the student's, of {len(pieces)}"
        )
    if config.piece_dim != dim:
        raise BitextmineError(f"{differ} pieces have {config.piece_dim} dimensions, the student's {dim}")
    weights = read_weights(config, folder / WEIGHTS)
    vectors = piece_vectors(weights)
    if config.bottleneck:
        vectors = vectors @ weights[BOTTLENECK].T
    return np.ascontiguousarray(vectors[: config.vocab_size])
