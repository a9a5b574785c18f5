"""Objectives: modules that turn a step's views of a batch into losses, and their weighted sum in a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.training.forward import layer_precision, piece_states, sentence_vectors
from bitextmine.training.losses import Head
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.pairfile import TokenPairs
from bitextmine.training.parallel import ALONE, World
from bitextmine.training.recipe.keys import Recipe, Training
from bitextmine.training.sampling import drop_pieces


@dataclass
class Setup:
    """The settings that objectives are made from, and a head that they share.

    teacher_dim: dimensions of the teacher's vectors; teacher_pieces: (V, d) float32, its piece vectors, if needed;
    heads: one, once an objective has asked for it.
    """

    training: Training
    config: EncoderConfig
    teacher_dim: int = 0
    teacher_pieces: np.ndarray | None = None
    heads: tuple[Head, ...] = ()

    def head(self) -> Head:
        """Return the map from states to a distribution over pieces, made on first use."""
        if not self.heads:
            self.heads = (Head(self.config, self.training),)
        return self.heads[0]


class Objective(nn.Module):
    """An objective of a run; its parameters are learned beside the encoder. `catalogue` declares it for recipes."""

    def __init__(self, setup: Setup) -> None:
        super().__init__()

    def forward(self, views: Views) -> Tensor:
        """Return the loss of a step, a scalar with gradients; see `Views` for several processes."""
        return self._loss(views)

    def _loss(self, views: Views) -> Tensor:
        raise NotImplementedError


class Objectives(nn.Module):
    """A recipe's objectives and their weights; holds what they learn beside the model.

    content (V,) bool: the pieces worth predicting.
    """

    def __init__(self, recipe: Recipe, setup: Setup, content: np.ndarray) -> None:
        super().__init__()
        self.settings, self.content = recipe.train, content
        self.weights = dict(recipe.train.objective)
        self.parts = nn.ModuleDict({name: objective_class(name)(setup) for name in self.weights})
        self.heads = setup.heads

    def forward(
        self,
        model: SentenceModel,
        batch: TokenPairs | None,
        step: int,
        world: World = ALONE,
        lesson: TokenPairs | None = None,
    ) -> dict[str, Tensor]:
        """Return the loss of each objective, not weighted; of several processes each returns a part.

        ``batch`` is None if all objectives are taught, ``lesson`` (the taught pairs) while none is.
        """
        seen = {
            taught: Views(model, found, self.settings, self.content, step, world)
            for taught, found in ((False, batch), (True, lesson))
            if found is not None
        }
        return {
            name: part(found)
            for name, part in self.parts.items()
            if (found := seen.get(OBJECTIVES[name].taught))
            and (found.copies is not None or not OBJECTIVES[name].edits)
        }


def objective_class(name: str) -> type[Objective]:
    """Return the class that `catalogue` declares by that name."""
    module = import_module(f"{__package__}.{OBJECTIVES[name].module}")
    found: type[Objective] = getattr(module, name.title().replace("_", ""))
    return found


# The vocabulary's unknown piece serves as the mask. It is never in a target (targets come from unmasked sentences),
# unless the text itself has it.
MASK = 0


class OneMasked(NamedTuple):
    """A batch in which each pair has one piece masked, on a random side (Mao et al. 2021, section 3.2).

    side (n,): 0 source, 1 target; piece (n,) int64: the masked piece (-1: that side has none); pieces: 2n sentences,
    sources first; vectors (2n, d): their pooled states, not normalised.
    """

    side: np.ndarray
    piece: np.ndarray
    pieces: Pieces
    vectors: Tensor


class MaskedPieces(NamedTuple):
    """BERT-style masking: states (m, d) at the chosen positions, masked pieces (m,) int64, pairs row (m,) int64."""

    states: Tensor
    piece: np.ndarray
    row: np.ndarray


class EditedVectors(NamedTuple):
    """Vectors (m, d), not normalised, of changed copies of sentences ``rows`` (m,) of one side (0 or 1)."""

    side: int
    rows: np.ndarray
    vectors: Tensor


class Views:
    """A batch as the objectives of one step see it; views are encoded on first use.

    Of several processes each encodes its share of the pairs: ``batch``, ``whole`` (its sentences, sources first) and
    the views hold that share, ``pairs`` and ``keys`` (2, pairs) are of the whole step. A loss over single pairs is
    summed over the share and divided by ``pairs``; one over the batch takes `gather`ed vectors and goes through
    `shared`. The sum over the processes is then the loss.

    content (V,) bool marks the pieces worth predicting. Random choices come from the step's seed, with a stream per
    view, so that they depend neither on the objectives nor on the number of processes.
    """

    def __init__(
        self,
        model: SentenceModel,
        batch: TokenPairs,
        training: Training,
        content: np.ndarray,
        step: int,
        world: World = ALONE,
    ) -> None:
        self.model, self.training, self.content = model, training, content
        self.step, self.world = step, world
        self.pairs, self.keys = len(batch), batch.keys
        self._teacher, self.copies = batch.teacher, batch.edited
        self.precision = layer_precision(training.precision, world.device)
        self._all = Pieces.join([batch.src, batch.tgt])
        own = np.arange(self.pairs)[world.share(self.pairs)]
        self._own_pairs, self._own_rows = own, np.concatenate([own, own + self.pairs])
        if world.size > 1:
            batch = TokenPairs(batch.src.take(own), batch.tgt.take(own), batch.keys[:, own])
        self.batch = batch
        self.whole = self._own(self._all)

    @property
    def teacher(self) -> np.ndarray:
        """Return the teacher's vectors of the step's sentences, (2, pairs, d) float32 with unit rows."""
        assert self._teacher is not None, "only taught pairs have a teacher"
        return self._teacher

    def gather(self, vectors: Tensor) -> Tensor:
        """Return the vectors of the step's pairs (2 pairs, d) from this process's (2m, d), sources first."""
        if self.world.size == 1:
            return vectors
        m = len(self.batch)
        side_by_side = torch.cat([vectors[:m], vectors[m:]], dim=1)
        src, tgt = self.world.gather(side_by_side, self.pairs).chunk(2, dim=1)
        return torch.cat([src, tgt])

    def shared(self, loss: Tensor) -> Tensor:
        """Return this process's share of a loss that every process computes."""
        return loss / self.world.size

    def _own(self, pieces: Pieces) -> Pieces:
        return pieces if self.world.size == 1 else pieces.take(self._own_rows)

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.training.seed, self.step, stream])

    def _encode(self, pieces: Pieces) -> Tensor:
        t, model = self.training, self.model
        encode = partial(sentence_vectors, model, pieces, t.batch_tokens, self.precision)
        if self._teacher is None or not model.config.length_share:
            return encode()
        # The teacher's cosines are targets for those of the finished model.
        was = model.length_share_in_training
        model.length_share_in_training = model.config.length_share
        try:
            return encode()
        finally:
            model.length_share_in_training = was

    @cached_property
    def vectors(self) -> Tensor:
        """Return pooled states (2m, d) of the sentences with some pieces dropped, sources first; not normalised."""
        return self._encode(self._own(drop_pieces(self._all, self.training.piece_dropout, self._rng(1))))

    @cached_property
    def edited(self) -> EditedVectors:
        """Return pooled states of changed copies of the batch's sentences, with some pieces dropped."""
        found = self.copies
        assert found is not None, "the sampler makes copies for objectives that ask for them"
        copies = drop_pieces(found.pieces, self.training.piece_dropout, self._rng(4))
        own = np.flatnonzero(np.isin(found.rows, self._own_pairs))
        rows = np.searchsorted(self._own_pairs, found.rows[own])
        return EditedVectors(found.side, rows, self._encode(copies.take(own)))

    @cached_property
    def one_masked(self) -> OneMasked:
        """Return the batch with one piece of each pair masked."""
        side, position, piece = mask_one(self._all, self.content, self._rng(2))
        ids = self._all.ids.copy()
        ids[position[position >= 0]] = MASK
        pieces = self._own(Pieces(ids, self._all.offsets))
        return OneMasked(side[self._own_pairs], piece[self._own_pairs], pieces, self._encode(pieces))

    @cached_property
    def bert_masked(self) -> MaskedPieces:
        """Return the batch masked as BERT does."""
        ids, positions = mask_like_bert(self._all, self.content, self._rng(3))
        pieces = self._own(Pieces(ids, self._all.offsets))
        if self.world.size > 1:
            chosen = np.zeros(len(ids), dtype=np.int32)
            chosen[positions] = 1
            positions = np.flatnonzero(self._own(Pieces(chosen, self._all.offsets)).ids)
        states = piece_states(self.model, pieces, positions, self.training.batch_tokens, self.precision)
        row = np.searchsorted(self.whole.offsets, positions, side="right") - 1
        return MaskedPieces(states, self.whole.ids[positions].astype(np.int64), row % len(self.batch))


def mask_one(
    whole: Pieces, content: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose, for 2n sentences (sources first), a side per pair and a piece of that side's sentence.

    Each content piece of the sentence is equally likely; a sentence without any (punctuation only) offers all pieces.
    Returns side (n,) 0 or 1, position (n,) in whole.ids, piece (n,) int64; the last two are -1 for empty sentences.
    """
    n = len(whole) // 2
    side = rng.integers(0, 2, n)
    rows = np.arange(n) + n * side
    starts, ends = whole.offsets[rows], whole.offsets[rows + 1]
    counted = np.concatenate([[0], np.cumsum(content[whole.ids])])
    available = counted[ends] - counted[starts]
    draw = rng.random(n)
    # The j-th content piece of a sentence is where the running count first passes those before it by j + 1.
    wanted = counted[starts] + (draw * available).astype(np.int64) + 1
    by_content = np.searchsorted(counted, wanted, side="left") - 1
    by_any = starts + (draw * (ends - starts)).astype(np.int64)
    position = np.where(ends > starts, np.where(available > 0, by_content, by_any), -1)
    piece = np.where(position >= 0, whole.ids[np.maximum(position, 0)] if len(whole.ids) else -1, -1)
    return side, position, piece.astype(np.int64)


def mask_like_bert(
    whole: Pieces, content: np.ndarray, rng: np.random.Generator, share: float = 0.15
) -> tuple[np.ndarray, np.ndarray]:
    """Mask like BERT (Devlin et al. 2019); return the new ids and the chosen positions.

    Of 15% of the pieces 80% become MASK, 10% a random piece and 10% stay; each sentence with pieces has at least one.
    """
    chosen = rng.random(len(whole.ids)) < share
    starts = whole.offsets[:-1][whole.lengths > 0]
    if len(starts):
        lengths = whole.lengths[whole.lengths > 0]
        none = ~np.logical_or.reduceat(chosen, starts)
        chosen[(starts + (rng.random(len(starts)) * lengths).astype(np.int64))[none]] = True
    positions = np.flatnonzero(chosen)
    ids = whole.ids.copy()
    fate = rng.random(len(positions))
    ids[positions[fate < 0.8]] = MASK
    swapped = positions[(fate >= 0.8) & (fate < 0.9)]
    ids[swapped] = rng.integers(0, len(content), len(swapped))
    return ids, positions
