"""Makes the form for similarity of an encoder without layers (`encoder.forms`): axes, and a factor for each piece.

The axes are those of a partial whitening: principal ones, each divided by the spread of sentences along it to a power
(Su et al. 2021, "Whitening sentence representations for better semantics and faster retrieval", uncentred). The factors
are learned of a teacher: in a batch of sentence pairs a sentence's softmax over the others, of either language, is to
be the teacher's. There are few of them beside the vectors, which stay as they are, so that minutes are enough.
"""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bitextmine.console import counted, progress
from bitextmine.encoder.forms import AXES, FACTORS
from bitextmine.encoder.model import unit_vectors
from bitextmine.encoder.ngrams import Ngrams
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.recipe import Similarity
from bitextmine.training.reducing import principal_axes
from bitextmine.training.sampling import with_ngrams
from bitextmine.training.teacher.lessons import Lessons

__all__ = ["SimilarityFit", "agreement_loss", "check_lessons", "fit_form"]

log = logging.getLogger(__name__)

# Lines that the axes are found with, and lines kept out of what is learned, to see what it is worth.
AXES_LINES, HELD_OUT = 20_000, 1_000
BLOCK = 2_000
LEAST = 100
WARMUP = 0.2


@dataclasses.dataclass(frozen=True)
class SimilarityFit:
    """arrays: AXES (d, d) and FACTORS (rows,) float32, as `encoder.forms` has them. lines: pairs learned from;
    before, after: of ``held_out`` other pairs, how alike the teacher finds a sentence and the one of the others that is
    nearest across languages (the mean cosine), by the vectors as they are and by this form of them."""

    arrays: dict[str, NDArray[np.float32]]
    lines: int
    held_out: int
    before: float
    after: float


def fit_form(
    vectors: NDArray[np.float32],
    lessons: Lessons,
    ngrams: Ngrams | None,
    max_pieces: int,
    plan: Similarity,
    *,
    seed: int = 1,
    show_progress: bool | None = None,
) -> SimilarityFit:
    """vectors (rows, d): of the pieces, then of the n-grams of an encoder, without its columns for order and length.

    A batch has no more pairs than there are. Raises BitextmineError for fewer than LEAST pairs, and for a loss that is
    no number and factors that are too large to keep.
    """
    check_lessons(lessons)
    drawing = _Drawing(lessons, ngrams, max_pieces)
    order = np.random.default_rng([seed, 0]).permutation(len(lessons))
    held_out, learned = np.split(order, [min(HELD_OUT, len(order) // 10)])
    batch = min(plan.batch, len(learned))
    axes = _axes(vectors, drawing, learned[:AXES_LINES], plan.whiten)
    turned = torch.from_numpy(vectors @ axes)
    log_factors = torch.zeros(len(vectors), requires_grad=True)
    # A teacher's cosines spread otherwise than a student's.
    log_scale = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.Adam([log_factors, log_scale], plan.learning_rate, betas=(0.9, 0.98))
    with progress(plan.steps, "similarity", "steps", show_progress) as bar:
        for step in range(plan.steps):
            done = (step + 1) / plan.steps
            for group in optimizer.param_groups:
                group["lr"] = plan.learning_rate * min(1.0, done / WARMUP) * (1 - step / plan.steps)
            rows = np.random.default_rng([seed, step + 1]).choice(len(learned), batch, replace=False)
            src, tgt, teacher = drawing.take(np.sort(learned[rows]))
            a, b = (_units(turned, side, log_factors) for side in (src, tgt))
            loss = agreement_loss(a, b, torch.from_numpy(teacher), plan.temperature, log_scale.exp())
            if not torch.isfinite(loss):
                raise BitextmineError(
                    f"similarity: the loss is {loss.item()} at step {step + 1}; try a lower similarity.learning_rate"
                )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            bar.update(1)
            bar.set_postfix_str(f"loss {loss.item():.4f}")
    factors = log_factors.detach()
    if not np.isfinite(factors.exp().numpy().astype(np.float16)).all():
        raise BitextmineError(
            "similarity: factors grew beyond all bounds; try a lower similarity.learning_rate"
        )
    none = torch.zeros(len(vectors))
    src, tgt, teacher = drawing.take(np.sort(held_out))
    wanted = torch.from_numpy(teacher)
    before, after = (
        _nearest(_units(table, src, by), _units(table, tgt, by), wanted)
        for table, by in ((torch.from_numpy(vectors), none), (turned, factors))
    )
    log.info(
        "similarity: %s's cosine of a sentence with the nearest one is %.3f, %.3f before (%d pairs held out)",
        lessons.teacher.name,
        after,
        before,
        len(held_out),
    )
    if after <= before:
        log.warning(
            "similarity: nothing is gained by it; give more pairs (teacher.lines), another teacher, or a lower "
            "similarity.whiten"
        )
    return SimilarityFit(
        {AXES: axes, FACTORS: factors.exp().numpy()}, len(learned), len(held_out), before, after
    )


def check_lessons(lessons: Lessons) -> None:
    """Raises BitextmineError where a teacher teaches on too little for a form for similarity."""
    if len(lessons) < LEAST:
        raise BitextmineError(
            f"recipe: similarity.steps: the teacher teaches on {counted(len(lessons), 'pair')}, and a form for "
            f"similarity needs {LEAST} or more; give more pairs, or set similarity.steps to 0"
        )


def agreement_loss(
    src: Tensor, tgt: Tensor, teacher: Tensor, temperature: float, scale: Tensor | float = 1.0
) -> Tensor:
    """The mean over i, and over the four choices of sides a and b, of the Kullback-Leibler divergence of softmax over
    j != i of scale cos(a_i, b_j) / temperature from that of cos(teacher_i, teacher_j) / temperature.

    src, tgt (n, d), teacher (n, e): unit rows. A sentence and its own translation are left out: that they belong
    together is what the other form of the encoder tells.
    """
    own = torch.eye(len(src), dtype=torch.bool)
    low = torch.finfo(torch.float32).min
    wanted = (teacher @ teacher.T / temperature).masked_fill(own, low).log_softmax(1)
    share = wanted.exp()
    total = torch.zeros(())
    for a, b in ((src, src), (tgt, tgt), (src, tgt), (tgt, src)):
        found = (scale * (a @ b.T) / temperature).masked_fill(own, low).log_softmax(1)
        total = total + (share * (wanted - found)).masked_fill(own, 0).sum(1).mean()
    return total / 4


class _Drawing:
    """The lines of all lessons under numbers of their own, from 0 on."""

    def __init__(self, lessons: Lessons, ngrams: Ngrams | None, max_pieces: int) -> None:
        self._corpora = [taught.train for taught in lessons.corpora]
        self._starts = np.cumsum([0, *map(len, self._corpora)])
        self._ngrams, self._max_pieces = ngrams, max_pieces

    def take(self, lines: NDArray[np.int64]) -> tuple[Pieces, Pieces, NDArray[np.float32]]:
        """Of ``lines`` (n,), increasing: sources, targets, and the teacher's vectors (n, e) of the sources."""
        parts: list[TokenPairs] = []
        ends = np.searchsorted(lines, self._starts)
        for corpus, start, begin, end in zip(
            self._corpora, self._starts[:-1], ends[:-1], ends[1:], strict=True
        ):
            if end > begin:
                parts.append(corpus.take(lines[begin:end] - start, self._max_pieces))
        src, tgt = (
            with_ngrams(Pieces.join(side), self._ngrams, self._max_pieces)
            for side in ([part.src for part in parts], [part.tgt for part in parts])
        )
        teacher = [part.teacher[0] for part in parts if part.teacher is not None]
        return src, tgt, np.concatenate(teacher)


def _axes(
    vectors: NDArray[np.float32], drawing: _Drawing, lines: NDArray[np.int64], whiten: float
) -> NDArray[np.float32]:
    """(d, d): `principal_axes` of the sentences of some lines, scaled."""
    table, none = torch.from_numpy(vectors), torch.zeros(len(vectors))
    dim = vectors.shape[1]
    moments = np.zeros((dim, dim))
    for begin in range(0, len(lines), BLOCK):
        for side in drawing.take(np.sort(lines[begin : begin + BLOCK]))[:2]:
            units = _units(table, side, none)
            moments += (units.T @ units).numpy().astype(np.float64)
    return principal_axes(moments, dim, whiten)[0]


def _units(table: Tensor, pieces: Pieces, log_factors: Tensor) -> Tensor:
    """(n, d) unit rows of n sentences: the sums of their pieces' vectors in ``table``, each times its factor."""
    ids = torch.from_numpy(pieces.ids.astype(np.int64))
    offsets = torch.from_numpy(np.ascontiguousarray(pieces.offsets[:-1], dtype=np.int64))
    return unit_vectors(
        functional.embedding_bag(ids, table, offsets, mode="sum", per_sample_weights=log_factors.exp()[ids])
    )


def _nearest(src: Tensor, tgt: Tensor, teacher: Tensor) -> float:
    """The mean over i of cos(teacher_i, teacher_j), where j != i is the one whose tgt_j is nearest to src_i."""
    own = torch.eye(len(src), dtype=torch.bool)
    found = (src @ tgt.T).masked_fill(own, -torch.inf).argmax(1)
    return float((teacher * teacher[found]).sum(1).mean())
