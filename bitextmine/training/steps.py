"""A training at some step: model, objectives, optimiser, and the state that it resumes from."""

import contextlib
import dataclasses
import logging
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.extra_columns import piece_characters
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.ngrams import Ngrams
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.system import ahead
from bitextmine.training.data.cache import PairCache
from bitextmine.training.data.edits import Edits
from bitextmine.training.data.pairfile import TokenPairs
from bitextmine.training.data.pivot import join_languages
from bitextmine.training.data.sampling import PairSource, Phases, Sampler, hash_seed, split_table, with_ngrams
from bitextmine.training.model.forward import sentence_vectors
from bitextmine.training.model.rows import RowAdamW
from bitextmine.training.model.spelling import (
    SpelledVectors,
    commonest_ngrams,
    commonest_skeletons,
    piece_ngrams,
)
from bitextmine.training.model.start import Start
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.objectives.registry import Objectives, Setup
from bitextmine.training.recipe import Recipe, Training

log = logging.getLogger(__name__)

CPU = torch.device("cpu")
LOG_EVERY = 50
VALID_EVERY = 500
SMALLEST_POOL = 50  # P@1 among fewer pairs means nothing
CLIP = 1.0  # of the gradient norm of the layers
TAUGHT_RATE = 0.15  # share of the peak learning rates at which a teacher starts
LESSONS = 7  # gives taught pairs another order than the batches
NOT_FINITE = (
    "training stops. Try a lower train.learning_rate and train.embedding_learning_rate, or a higher "
    "train.temperature"
)


class NotFinite(BitextmineError):
    """A loss or a weight is NaN or infinite."""


class TrainingRun:
    """A training at some step: the model, its optimiser, and the number of pairs seen."""

    # The plain part of a checkpoint.
    KEPT = ("step", "pairs", "scores", "losses")

    def __init__(
        self,
        recipe: Recipe,
        caches: list[PairCache],
        tokenizer: Tokenizer,
        device: torch.device = CPU,
        start: Start | None = None,
        teacher: Encoder | None = None,
        lessons: Sequence[PairSource] = (),
    ) -> None:
        pieces = tokenizer.pieces()
        self.recipe, self.caches, self.tokenizer, self.device = recipe, caches, tokenizer, device
        self.start, self.teacher, self.lessons = start, teacher, lessons
        self.model, self.ngram_names = _make_model(recipe, caches, pieces, start)
        self.model.to(self.device).train()
        self.ngrams = Ngrams(self.ngram_names, pieces) if self.ngram_names else None
        setup = Setup(recipe.train, self.model.config, pieces, caches, teacher)
        self.objectives = Objectives(setup).to(self.device)
        self.optimizer = make_optimizer(self.model, self.objectives, recipe.train)
        if isinstance(self.model.embedding, SpelledVectors):
            self.model.embedding.catch_up = self.optimizer.catch_up
        self.learned = [*self.model.parameters(), *self.objectives.parameters()]
        self._plan_steps()
        self._make_samplers()
        self.step = self.pairs = 0
        self.scores: dict[str, float] = {}
        self.ends: list[torch.Tensor] = []  # with train.cycles: the sum of the weights at the ends of cycles
        self.losses: list[dict[str, float]] = []  # of the steps since the last entry of the log

    def _plan_steps(self) -> None:
        t, teacher = self.recipe.train, self.recipe.teacher
        # If the teacher's pairs are all that is learned from, they make up the passes.
        self.only_taught = all(OBJECTIVES[name].taught for name in t.objective)
        size, sources = (teacher.batch, self.lessons) if self.only_taught else (t.batch, self.caches)
        per_pass = sum(len(source.train) for source in sources)
        self.untaught = t.steps or max(1, math.ceil(t.epochs * per_pass / size))
        taught = math.ceil(teacher.epochs * per_pass / size) if self.lessons else 0
        self.taught_from = self.untaught if taught else 0
        self.steps = self.untaught + taught
        self.cycle = math.ceil(self.untaught / t.cycles)
        if self.cycle * (t.cycles - 1) >= self.untaught:
            raise BitextmineError(
                f"recipe: train.cycles: {self.untaught} steps have no {t.cycles} equal parts"
            )

    def _make_samplers(self) -> None:
        recipe, t = self.recipe, self.recipe.train
        splits = split_table(self.tokenizer) if t.piece_splits else None
        split = round(self.cycle * (1 - t.piece_splits_end))  # steps of each cycle
        split_steps = frozenset(step for step in range(self.untaught) if step % self.cycle < split)
        edited = any(OBJECTIVES[name].edits for name in t.objective)
        edits = Edits(self.tokenizer.pieces()) if edited else None
        drawn: list[PairCache | PairSource] = [*self.caches]
        for lang, share in recipe.data.pivot.items():
            drawn += join_languages(self.caches, lang, share)
        phases = Phases(split_steps, easy=round(self.untaught * t.hard_from))
        self.sampler = Sampler(drawn, recipe, splits, phases, self.ngrams, edits)
        self.lesson_sampler = None
        if self.lessons:
            own = dataclasses.replace(t, batch=recipe.teacher.batch, seed=hash_seed(t.seed, LESSONS))
            late = Phases(frozenset(step - self.taught_from for step in split_steps))
            settings = dataclasses.replace(recipe, train=own)
            self.lesson_sampler = Sampler(self.lessons, settings, splits, late, self.ngrams)

    # --- state -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the content of a checkpoint, for `restore`: tensors and plain values."""
        parts = {name: getattr(self, name).state_dict() for name in ("model", "objectives", "optimizer")}
        plain = {name: getattr(self, name) for name in self.KEPT}
        return {**plain, **parts, "ngrams": self.ngram_names, "ends": self.ends}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go to a `state`; BitextmineError if it comes from other training data."""
        if saved["ngrams"] != self.ngram_names:
            raise BitextmineError(
                "the checkpoint is of other training data: its n-grams are not those of the corpora as they are now; "
                "train into another folder, or remove this one's work/checkpoint.pt"
            )
        for name in self.KEPT:
            setattr(self, name, saved[name])
        for name in ("model", "objectives", "optimizer"):
            getattr(self, name).load_state_dict(saved[name])
        self.ends = [end.to(self.device) for end in saved["ends"]]
        self.sampler.skip(self.step)
        if self.lesson_sampler:
            self.lesson_sampler.skip(max(0, self.step - self.taught_from))

    def check_weights(self) -> None:
        """Raise NotFinite if a weight is not finite: such weights must not become a checkpoint."""
        if not all(bool(torch.isfinite(weight).all()) for weight in self.learned):
            raise NotFinite(f"step {self.step}: weights are no longer finite; {NOT_FINITE}")

    # --- steps -----------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[dict[str, Any]]:
        """Train to the end, yielding one item per step.

        The items of every LOG_EVERY steps and of each measurement of P@1 hold the log's fields, "loss" among them.
        """
        t = self.recipe.train
        every = t.valid_every or min(VALID_EVERY, max(1, self.steps // 10))
        started, before = time.monotonic(), self.pairs
        with contextlib.closing(ahead(map(self.draw, range(self.step, self.steps)))) as drawn:
            for batch, lesson in drawn:
                share = self._rate()
                self.losses.append(self.learn(batch, share, lesson))
                entry: dict[str, Any] = {"step": self.step}
                measure = self.step == self.steps or self.step % every == 0
                if measure or self.step % LOG_EVERY == 0:
                    for name in dict.fromkeys(name for losses in self.losses for name in losses):
                        entry[name] = sum(losses.get(name, 0.0) for losses in self.losses) / len(self.losses)
                    seconds = max(1e-9, time.monotonic() - started)
                    entry["pairs_per_second"] = round((self.pairs - before) / seconds, 1)
                    for name in ("learning_rate", "embedding_learning_rate"):
                        entry[name] = share * getattr(t, name)
                    if measure:
                        self.optimizer.catch_up_all()
                        self.scores = validate(self.model, self.caches, self.recipe, self.ngrams)
                        entry["p_at_1"] = self.scores
                    self.losses, started, before = [], time.monotonic(), self.pairs
                yield entry

    def draw(self, step: int) -> tuple[TokenPairs | None, TokenPairs | None]:
        """Return a step's batch and the taught pairs; None where no objective learns from them."""
        batch = None if self.only_taught else self.sampler.draw(step)
        lesson = step - self.taught_from
        return batch, self.lesson_sampler.draw(lesson) if self.lesson_sampler and lesson >= 0 else None

    def learn(
        self, batch: TokenPairs | None, share: float, lesson: TokenPairs | None = None
    ) -> dict[str, float]:
        """Take one step at ``share`` of the peak learning rates; return the loss and its parts."""
        t = self.recipe.train
        # Dropout depends on the step, so that a run resumes without the generators' states.
        torch.manual_seed(hash_seed(t.seed, self.step, 0))
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * share
        self.optimizer.zero_grad(set_to_none=True)
        parts = self.objectives(self.model, batch, self.step, lesson)
        weights = self.objectives.weights
        total = torch.stack([weights[name] * part for name, part in parts.items()]).sum()
        values = torch.stack([total, *parts.values()]).detach()
        losses = dict(zip(["loss", *parts], values.tolist(), strict=True))
        if not math.isfinite(losses["loss"]):
            raise NotFinite(f"step {self.step + 1}: the loss is {losses['loss']} ({losses}); {NOT_FINITE}")
        total.backward()
        if rest := layer_parameters(self.model, self.objectives):
            torch.nn.utils.clip_grad_norm_(rest, CLIP)
        self.optimizer.step()
        self.step += 1
        if t.cycles > 1 and self.step <= self.untaught:
            self._end_cycle()
        # Taught pairs are trained on anyway.
        self.pairs += len(batch) if batch is not None else len(lesson) if lesson is not None else 0
        return losses

    def _rate(self) -> float:
        """Return the next step's learning rate as a share of the peak."""
        t = self.recipe.train
        if self.step < self.untaught:
            begun = self.step // self.cycle * self.cycle
            return rate_share(self.step - begun, min(self.cycle, self.untaught - begun), t)
        done = (self.step - self.untaught) / (self.steps - self.untaught)
        return falling(TAUGHT_RATE, t.floor, done)

    @torch.no_grad()
    def _end_cycle(self) -> None:
        """Add the weights at the end of a cycle to those before; after the last cycle, take their mean.

        The mean of weights from the ends of several cycles of the learning rate generalises better than each of them
        (Izmailov et al. 2018, "Averaging weights leads to wider optima").
        """
        if self.step % self.cycle and self.step < self.untaught:
            return
        self.optimizer.catch_up_all()
        self.ends = self.ends or [torch.zeros_like(weight) for weight in self.learned]
        for total, weight in zip(self.ends, self.learned, strict=True):
            total += weight
        if self.step == self.untaught:
            for total, weight in zip(self.ends, self.learned, strict=True):
                weight.copy_(total / self.recipe.train.cycles)
            self.ends = []


# --- the model -----------------------------------------------------------------------------------------------


def _make_model(
    recipe: Recipe, caches: list[PairCache], pieces: Sequence[str], start: Start | None
) -> tuple[SentenceModel, list[str]]:
    """Return the model before the first step, and the names of its n-grams."""
    m, t = recipe.model, recipe.train
    count = Counter[str]()  # pairs to train on by language
    for cache in caches:
        count.update(dict.fromkeys(cache.corpus.langs, len(cache.train)))
    pairs = dict(sorted(count.items()))
    torch.manual_seed(t.seed)
    if start is not None:
        ngrams = list(start.ngrams)
        model = SentenceModel(start.continued(pairs, m.dropout))
        start.load_into(model)
    else:
        ngrams = []
        names, lists = piece_ngrams(pieces) if m.spelling else ([], Pieces.from_lists([]))
        if m.ngrams:
            ngrams = commonest_ngrams(caches, pieces, names, m.ngrams)
            if len(ngrams) < m.ngrams:
                log.info("%d n-grams instead of %d: the corpora have no more", len(ngrams), m.ngrams)
        if m.skeletons:
            ngrams += commonest_skeletons(caches, pieces, m.skeletons)
        config = m.config(len(pieces), ngrams=len(ngrams), languages=tuple(pairs), pairs=pairs)
        model = SentenceModel(config)
        model.initialise(m.initial_std)
        if m.length_share:
            model.characters.copy_(torch.from_numpy(piece_characters(pieces, len(ngrams))))
        if m.spelling:  # it has all that a model without layers needs
            model.embedding = SpelledVectors(model.embedding, names, lists, ngrams)  # type: ignore[assignment]
    if m.length_share:
        model.length_share_in_training = t.length_share_in_training or m.length_share
    return model, ngrams


# --- validation ----------------------------------------------------------------------------------------------


def validate(
    model: SentenceModel, caches: Sequence[PairCache], recipe: Recipe, ngrams: Ngrams | None = None
) -> dict[str, float]:
    """Return P@1 in per cent by cosine, mean of both directions, per corpus and as their "mean".

    The pool is a corpus's held-out pairs; corpora with fewer than SMALLEST_POOL are left out. No dropout meanwhile.
    """
    was_training = model.training
    model.eval()
    scores: dict[str, float] = {}
    with torch.inference_mode():
        for cache in (cache for cache in caches if len(cache.valid) >= SMALLEST_POOL):
            pairs = cache.valid.take(np.arange(len(cache.valid)), recipe.model.max_pieces)
            seen = (with_ngrams(side, ngrams, recipe.model.max_pieces) for side in (pairs.src, pairs.tgt))
            src, tgt = (unit_vectors(sentence_vectors(model, side)) for side in seen)
            similar = src @ tgt.T
            keys = torch.from_numpy(pairs.keys.astype(np.int64)).to(similar.device)
            right = torch.arange(len(pairs), device=similar.device)
            # Another row with the same sentence is as right as the row's own.
            hits = [
                ((best == right) | (key[best] == key)).float().mean().item()
                for best, key in ((similar.argmax(1), keys[1]), (similar.argmax(0), keys[0]))
            ]
            scores[cache.corpus.name] = 50 * (hits[0] + hits[1])
    if scores:
        scores["mean"] = sum(scores.values()) / len(scores)
    model.train(was_training)
    return scores


def layer_parameters(model: SentenceModel, objectives: nn.Module) -> list[nn.Parameter]:
    """Return all learned parameters except the piece vectors; shared ones come once."""
    rest = [p for name, p in model.named_parameters() if not name.startswith("embedding.")]
    return rest + list(objectives.parameters())


def make_optimizer(model: SentenceModel, objectives: nn.Module, training: Training) -> RowAdamW:
    """Return Adam without weight decay; piece vectors have a learning rate of their own."""
    pieces = {"params": list(model.embedding.parameters()), "peak": training.embedding_learning_rate}
    layers = {"params": layer_parameters(model, objectives), "peak": training.learning_rate}
    groups = [group for group in (pieces, layers) if group["params"]]
    return RowAdamW(groups, lr=training.learning_rate, weight_decay=0.0, fused=True)


def rate_share(step: int, steps: int, training: Training) -> float:
    """Return the learning rate at ``step`` (from 0) as a share of the peak: linear warm-up, then the schedule.

    cosine (half a period) and linear reach the floor with the last step.
    """
    warmup = max(1, round(training.warmup * steps))
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    if training.schedule == "cosine":
        return falling(1.0, training.floor, progress)
    return training.floor + (1 - training.floor) * (1 - progress)


def falling(top: float, floor: float, progress: float) -> float:
    """Fall from `top` to `floor` as half a period of a cosine while `progress` goes from 0 to 1."""
    return floor + (top - floor) * 0.5 * (1 + math.cos(math.pi * progress))
