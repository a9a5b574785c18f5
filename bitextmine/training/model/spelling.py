"""Piece vectors with spelling: in training each is a vector of its own plus twice the mean of its n-grams' vectors.

Pieces with similar spelling (amendement, emendamento; kommission, commission) then share part of their vectors across
languages, and rare pieces improve on their random start (Bojanowski et al. 2017, "Enriching word vectors with subword
information"). When training ends the sums are taken once: the finished model has one vector per piece. The most
frequent n-grams may be kept as pieces (`Ngrams`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bitextmine.encoder.model import PieceVectors, SentenceModel
from bitextmine.encoder.ngrams import BARE, SPACE, Ngrams, folded, is_word, skeleton, training_lengths
from bitextmine.encoder.pieces import Pieces
from bitextmine.languages.romanize import CONSONANTS, LATIN
from bitextmine.training.data.cache import PairCache
from bitextmine.training.data.sampling import sample_pieces

# An n-gram in fewer pieces connects none.
FEWEST_PIECES = 2
# Weights, relative to a piece's own vector, of the mean of its n-grams, and of an n-gram that is a piece itself.
MEAN_WEIGHT = 2.0
ACROSS_WEIGHT = 0.25


def spellings(piece: str) -> list[str]:
    """Return the distinct n-grams of a piece and, if it is longer, the whole piece, without case and accents.

    Those of its spelling in Latin letters are among them.
    """
    ngrams: dict[str, None] = {}
    plain = folded(piece)
    for spelled in dict.fromkeys((plain, plain.translate(LATIN))):
        for end in range(1, len(spelled) + 1):
            lengths: Iterable[int] = training_lengths(spelled[end - 1])
            if end == len(spelled) > max(lengths):
                lengths = (*lengths, end)
            for length in lengths:
                ngram = spelled[max(0, end - length) : end]
                if length <= end and is_word(ngram.removeprefix(SPACE)):
                    ngrams[ngram] = None
    return list(ngrams)


def piece_ngrams(pieces: Sequence[str]) -> tuple[list[str], Pieces]:
    """Return the n-grams shared by at least FEWEST_PIECES pieces, sorted, and the numbers of each piece's n-grams."""
    each = [spellings(piece) for piece in pieces]
    counts = Counter(ngram for ngrams in each for ngram in ngrams)
    names = sorted(ngram for ngram, count in counts.items() if count >= FEWEST_PIECES)
    number = {ngram: i for i, ngram in enumerate(names)}
    return names, Pieces.from_lists([[number[n] for n in ngrams if n in number] for ngrams in each])


def commonest_ngrams(
    caches: Sequence[PairCache], pieces: Sequence[str], shared: Sequence[str], count: int
) -> list[str]:
    """Return the ``count`` n-grams that most often cross the cuts of words in the training text, most frequent first.

    They are chosen from those that pieces share (``shared``, from `piece_ngrams`) and that have one of their
    `training_lengths`.
    """
    names = [name for name in shared if len(name) > 1 and len(name) in training_lengths(name[-1])]
    return _commonest(caches, pieces, names, count)


def commonest_skeletons(caches: Sequence[PairCache], pieces: Sequence[str], count: int) -> list[str]:
    """Return the same of n-grams of consonants (`skeleton`)."""
    counts = Counter[str]()
    for piece in pieces:
        bare = skeleton(piece)
        counts.update({bare[i : i + n] for n in BARE for i in range(len(bare) - n + 1)})
    shared = (name for name, times in counts.items() if times >= FEWEST_PIECES)
    names = sorted(name for name in shared if CONSONANTS.issuperset(name.removeprefix(SPACE)))
    return _commonest(caches, pieces, names, count)


def _commonest(
    caches: Sequence[PairCache], pieces: Sequence[str], names: Sequence[str], count: int
) -> list[str]:
    ngrams = Ngrams(names, pieces)
    total = np.zeros(len(names))
    for sides, weight in sample_pieces(caches):
        for side in sides:
            ids = ngrams.extend(side).ids
            total += weight * np.bincount(ids[ids >= len(pieces)] - len(pieces), minlength=len(names))
    order = np.argsort(-total, kind="stable")[:count]
    return [names[i] for i in order if total[i] > 0]


def _distinct(ids: Tensor, count: int) -> Tensor:
    """Return the distinct ids, all below ``count``, increasing."""
    here = torch.zeros(count, dtype=torch.bool, device=ids.device)
    here[ids] = True
    return here.nonzero()[:, 0]


class _Means(torch.autograd.Function):
    """Means of bags of rows; the gradient is sparse, with each row once."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:
        ctx.save_for_backward(ids, offsets)
        ctx.shape = table.shape
        return functional.embedding_bag(ids, table, offsets, mode="mean", include_last_offset=True)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        ids, offsets = ctx.saved_tensors
        lengths = offsets.diff()
        # The same sums the other way round: to each row the gradients of its bags, each divided by the bag's length.
        ids, order = ids.sort(stable=True)
        bags = torch.arange(len(lengths), device=ids.device).repeat_interleave(lengths)[order]
        rows, counts = ids.unique_consecutive(return_counts=True)
        sums = functional.embedding_bag(
            bags,
            grads[0].contiguous(),
            functional.pad(counts.cumsum(0), (1, 0)),
            mode="sum",
            include_last_offset=True,
            per_sample_weights=lengths.to(grads[0].dtype).reciprocal()[bags],
        )
        return torch.sparse_coo_tensor(rows[None], sums, ctx.shape, check_invariants=False), None, None


class SpelledVectors(nn.Module):
    """Replaces a model's piece vectors in training. Parameters: own (pieces, d), ngrams (n-grams, d)."""

    ids: Tensor
    offsets: Tensor
    # Called with a parameter and its rows (distinct) before these are read in training: `RowAdamW.catch_up`.
    catch_up: Callable[[nn.Parameter, Tensor], None] | None = None

    def __init__(
        self, vectors: PieceVectors, names: Sequence[str], lists: Pieces, across: Sequence[str]
    ) -> None:
        """Start from the vectors of pieces and of the n-grams ``across``; names, lists: of `piece_ngrams`."""
        super().__init__()
        # Those across come first, so that n-gram g is row g of the parameter and row len(pieces) + g of the table.
        order = [*across, *sorted(set(names) - set(across))]
        row = {name: i for i, name in enumerate(order)}
        place = np.array([row[name] for name in names], dtype=np.int64)
        self.register_buffer("ids", torch.from_numpy(place[lists.ids]), persistent=False)
        self.register_buffer("offsets", torch.from_numpy(lists.offsets), persistent=False)
        self.pieces, self.table_rows = len(lists), len(lists) + len(across)
        weight = vectors.weight.detach()
        self.own = nn.Parameter(weight[: self.pieces].clone())
        self.ngrams = nn.Parameter(weight.new_empty(len(order), weight.shape[1]))
        with torch.no_grad():
            self.ngrams.normal_(0.0, float(weight.std()) if len(order) else 0.0)

    def rows(self, wanted: Tensor) -> Tensor:
        """Return the vectors (m, d) of pieces and n-grams ``wanted`` (m,) int64, increasing."""
        pieces = wanted[: int((wanted < self.pieces).sum())]
        starts = self.offsets[pieces]
        lengths = self.offsets[pieces + 1] - starts
        offsets = functional.pad(lengths.cumsum(0), (1, 0))
        shift = (starts - offsets[:-1]).repeat_interleave(lengths)
        ids = self.ids[torch.arange(int(offsets[-1]), device=wanted.device) + shift]
        # N-grams across cuts are bags of one, so that the large table gets a single gradient, not a sum of two.
        across = wanted[len(pieces) :] - self.pieces
        ids = torch.cat([ids, across])
        if self.training and self.catch_up is not None:
            self.catch_up(self.own, pieces)
            self.catch_up(self.ngrams, _distinct(ids, len(self.ngrams)))
        offsets = torch.cat([offsets, offsets[-1] + torch.arange(1, len(across) + 1, device=wanted.device)])
        means: Tensor = _Means.apply(self.ngrams, ids, offsets)  # type: ignore[no-untyped-call]
        own = functional.embedding(pieces, self.own, sparse=True)
        return torch.cat([own + MEAN_WEIGHT * means[: len(pieces)], ACROSS_WEIGHT * means[len(pieces) :]])

    def gathered(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Gather as `PieceVectors.gathered` does; each vector needed is computed once."""
        wanted = _distinct(ids, self.table_rows)
        place = torch.zeros(self.table_rows, dtype=torch.int64, device=ids.device)
        place[wanted] = torch.arange(len(wanted), device=ids.device)
        return place[ids], self.rows(wanted)

    def table(self) -> Tensor:
        """Return the vectors of the finished model, (pieces + n-grams across, d)."""
        return self.rows(torch.arange(self.table_rows, device=self.own.device)).detach()


def finished(model: SentenceModel) -> SentenceModel:
    """Return the model with one vector per piece, as it is saved."""
    if not isinstance(model.embedding, SpelledVectors):
        return model
    plain = SentenceModel(model.config)
    with torch.no_grad():
        plain.embedding.weight.copy_(model.embedding.table())
        if model.config.length_share:
            plain.characters.copy_(model.characters)
    return plain
