"""A training run at some step: what it is made of, how it learns, and the state that it goes on from."""

from __future__ import annotations

import dataclasses
import logging
import math
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from bitextmine.encoder.columns.lengths import piece_characters
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.ngrams import Ngrams
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.training.cache import PairCache
from bitextmine.training.forward import sentence_vectors
from bitextmine.training.frequencies import piece_frequencies
from bitextmine.training.hard import with_hard_negatives
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.objectives.registry import make_objectives
from bitextmine.training.objectives.teaching import Distil
from bitextmine.training.optimizer import falling, layer_parameters, make_optimizer, rate_share, set_rates
from bitextmine.training.parallel import ALONE, World
from bitextmine.training.recipe import Recipe
from bitextmine.training.runlog import Tally
from bitextmine.training.sampling import Batch, Sampler, hash_seed, with_ngrams
from bitextmine.training.spelling import commonest_ngrams, piece_ngrams, spell
from bitextmine.training.splits import split_table
from bitextmine.training.start import Start
from bitextmine.training.teacher.lessons import Lessons
from bitextmine.training.validation import SMALLEST_POOL, is_measured, validate
from bitextmine.training.vocabulary import content_pieces

__all__ = ["NotFinite", "Run", "compile_layers"]

log = logging.getLogger(__name__)

LOG_EVERY = 50
TURNED = 500  # lines of each corpus that a map from student to teacher begins with
LESSONS = 7  # makes the order of what is taught another one than that of the batches
VALID_EVERY = 500
NOT_FINITE = (
    "training stops. Try a lower train.learning_rate and train.embedding_learning_rate, or a higher "
    "train.temperature"
)


class NotFinite(BitextmineError):
    """A loss or a weight is NaN or infinite."""


class Run:
    """A training run at some step: the model, its optimiser, and what it has seen."""

    def __init__(
        self,
        recipe: Recipe,
        caches: list[PairCache],
        tokenizer: Tokenizer,
        world: World = ALONE,
        start: Start | None = None,
        lessons: Lessons | None = None,
        pieces_taught: np.ndarray | None = None,
    ) -> None:
        m, t = recipe.model, recipe.train
        self.recipe, self.caches, self.world, self.lessons = recipe, caches, world, lessons
        languages = tuple(sorted({lang for cache in caches for lang in cache.corpus.langs}))
        pieces = tokenizer.pieces()
        shared = piece_ngrams(pieces) if m.spelling else None
        if start is not None:
            self.ngram_names = list(start.ngrams)
        else:
            self.ngram_names = (
                commonest_ngrams(caches, pieces, shared[0], m.ngrams) if shared and m.ngrams else []
            )
            if len(self.ngram_names) < m.ngrams:
                log.info(
                    "%d n-grams instead of %d: the corpora have no more", len(self.ngram_names), m.ngrams
                )
        torch.manual_seed(t.seed)
        self.model = (
            self._fresh(languages, pieces) if start is None else self._started(start, languages, pieces)
        )
        if m.length_share:
            self.model.length_share_in_training = t.length_share_in_training or m.length_share
        if shared:
            spell(self.model, *shared, self.ngram_names, keep=start is not None)
        self.model.to(self.world.device).train()
        self.objectives = make_objectives(
            recipe, self.model, content_pieces(tokenizer), lessons.dim if lessons else 0, pieces_taught
        ).to(self.world.device)
        for head in self.objectives.heads:
            head.start_at(piece_frequencies(caches, tokenizer.vocab_size))
        self.optimizer = make_optimizer(self.model, self.objectives, t)
        self.learned = [*self.model.parameters(), *self.objectives.parameters()]
        # Where nothing is learned but what the teacher teaches, its pairs are all there is.
        self.only_taught = all(OBJECTIVES[name].taught for name in t.objective)
        per_pass, size = sum(len(cache.train) for cache in caches), t.batch
        if self.only_taught and lessons:
            per_pass, size = len(lessons), recipe.teacher.batch
        self.untaught = t.steps or max(1, math.ceil(t.epochs * per_pass / size))
        taught = math.ceil(recipe.teacher.epochs * per_pass / size) if lessons else 0
        self.steps = self.untaught + taught
        splits = split_table(tokenizer) if t.piece_splits else None
        self.ngrams = Ngrams(self.ngram_names, pieces) if self.ngram_names else None
        split_steps = round(self.untaught * (1 - t.piece_splits_end))
        self.sampler = Sampler(caches, recipe, splits, split_steps, self.ngrams)
        self.lesson_sampler = None
        self.taught_from = self.untaught if taught else 0
        if lessons:
            settings = dataclasses.replace(
                recipe,
                train=dataclasses.replace(
                    t, batch=recipe.teacher.batch, seed=hash_seed(t.seed, LESSONS), hard_negatives=0.0
                ),
            )
            split_lessons = split_steps - self.taught_from
            self.lesson_sampler = Sampler(lessons.corpora, settings, splits, split_lessons, self.ngrams)
            if start is not None:
                self._turn(lessons)
        self.step = self.pairs = 0
        self.scores: dict[str, float] = {}
        self.best: dict[str, Any] = {}  # with train.patience: step, pairs, scores and weights of the best P@1
        self.waited = 0  # measurements since then
        self.tally = Tally()
        if t.patience and not any(is_measured(cache) for cache in caches):
            raise BitextmineError(
                f"recipe: train.patience: no corpus has the {SMALLEST_POOL} held-out pairs that P@1 is measured on; "
                "leave it at 0, or raise data.valid_pairs (at most a twentieth of a corpus is held out)"
            )
        fewest = min(min(len(cache.train), t.batch) for cache in caches)
        if lessons:
            fewest = min(fewest, *(min(len(one.train), recipe.teacher.batch) for one in lessons.corpora))
        if fewest < self.world.size:
            raise BitextmineError(
                f"recipe: train.batch: a batch of {fewest} pairs cannot be shared by {self.world.size} processes"
            )
        if t.compile and m.layers:
            compile_layers(self.model)

    def _fresh(self, languages: Sequence[str], pieces: Sequence[str]) -> SentenceModel:
        """A model that knows nothing yet."""
        m = self.recipe.model
        config = EncoderConfig(
            len(pieces),
            m.dim,
            m.layers,
            m.heads,
            m.ffn,
            m.dropout,
            m.max_pieces,
            tuple(languages),
            len(self.ngram_names),
            m.length_share,
            m.order_columns,
            m.order_weight if m.order_columns else 0.0,
            m.bottleneck,
            m.recurrent,
        )
        model = SentenceModel(config)
        model.initialise(m.initial_std)
        if m.length_share:
            model.characters.copy_(torch.from_numpy(piece_characters(pieces, len(self.ngram_names))))
        return model

    def _started(self, start: Start, languages: Sequence[str], pieces: Sequence[str]) -> SentenceModel:
        """A model that knows what another encoder does."""
        model = SentenceModel(start.grown_config(len(pieces), languages, self.recipe.model.dropout))
        start.load_into(model, pieces)
        return model

    def _turn(self, lessons: Lessons) -> None:
        """Where the student's vectors, which say something already, are brought to the teacher's by a map, has that
        begin well: by what both make of some lines of each corpus."""
        maps = [part for part in self.objectives.parts.values() if isinstance(part, Distil) and part.map]
        if not maps:
            return
        self.model.eval()
        sides: list[list[torch.Tensor]] = [[], []]
        for taught in lessons.corpora:
            some = np.arange(min(len(taught.train), TURNED))
            drawn = taught.train.take(some, self.recipe.model.max_pieces)
            assert drawn.teacher is not None
            for pieces, teacher in zip((drawn.src, drawn.tgt), drawn.teacher, strict=True):
                seen = with_ngrams(pieces, self.ngrams, self.recipe.model.max_pieces)
                with torch.no_grad():
                    found = sentence_vectors(self.model, seen, self.recipe.train.batch_tokens)
                sides[0].append(unit_vectors(found))
                sides[1].append(torch.from_numpy(teacher).to(found.device))
        for part in maps:
            part.turn(torch.cat(sides[0]), torch.cat(sides[1]))
        self.model.train()

    @property
    def done(self) -> bool:
        """Whether all steps are done, or there is no more patience."""
        patience = self.recipe.train.patience
        return self.step >= self.steps or bool(patience and self.waited >= patience)

    def state(self) -> dict[str, Any]:
        """All that `restore` needs, as tensors and plain values."""
        return {
            "step": self.step,
            "pairs": self.pairs,
            "scores": self.scores,
            "model": self.model.state_dict(),
            "objectives": self.objectives.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "waited": self.waited,
            "ngrams": self.ngram_names,
            "tally": self.tally.state(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Goes to where `state` was; BitextmineError for one of other training data."""
        if saved.get("ngrams", []) != self.ngram_names:
            raise BitextmineError(
                "the checkpoint is of other training data: its n-grams are not those of the corpora as they are now; "
                "train into another folder, or remove this one's work/checkpoint.pt"
            )
        self.step, self.pairs, self.scores = saved["step"], saved["pairs"], saved["scores"]
        self.model.load_state_dict(saved["model"])
        self.objectives.load_state_dict(saved["objectives"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.best, self.waited = saved["best"], saved["waited"]
        self.tally = Tally(saved.get("tally"))
        self.sampler.skip(self.step)
        if self.lesson_sampler:
            self.lesson_sampler.skip(max(0, self.step - self.taught_from))

    def entries(self) -> Iterator[dict[str, Any]]:
        """Trains to the end, a step per item; the items of every LOG_EVERY steps and of every measurement of
        P@1 carry the log's fields, "loss" among them."""
        t = self.recipe.train
        every = t.valid_every or VALID_EVERY
        if not t.valid_every and not t.patience:
            every = min(every, max(1, self.steps // 10))
        self.tally.started = time.monotonic()
        with ThreadPoolExecutor(1, thread_name_prefix="batches") as ahead:
            pending = ahead.submit(self.draw, self.step)
            while not self.done:
                batch, lesson = pending.result()
                if self.step + 1 < self.steps:
                    pending = ahead.submit(self.draw, self.step + 1)
                if batch is not None:
                    batch = with_hard_negatives(self.model, batch, t, self.world)
                share = self._rate()
                before = self.pairs
                losses = self.learn(batch, share, lesson)
                self.tally.add(losses, self.pairs - before)
                entry: dict[str, Any] = {"step": self.step}
                last = self.step == self.steps
                measure = last or self.step % every == 0
                if measure or self.step % LOG_EVERY == 0:
                    entry |= {
                        **self.tally.means(),
                        "learning_rate": share * t.learning_rate,
                        "embedding_learning_rate": share * t.embedding_learning_rate,
                    }
                    if measure:
                        self._measure()
                        entry["p_at_1"] = self.scores
                    self.tally = Tally()
                yield entry

    def _rate(self) -> float:
        """The learning rate of the next step, as a share of the peak."""
        t = self.recipe.train
        if self.step < self.untaught:
            return rate_share(self.step, self.untaught, t)
        done = (self.step - self.untaught) / (self.steps - self.untaught)
        return falling(self.recipe.teacher.rate, t.floor, done)

    def draw(self, step: int) -> tuple[Batch | None, Batch | None]:
        """The batch of a step, and what the teacher teaches on in it; None where nothing is learned of either."""
        batch = None if self.only_taught else self.sampler.draw(step)
        lesson = step - self.taught_from
        return batch, self.lesson_sampler.draw(lesson) if self.lesson_sampler and lesson >= 0 else None

    def keep_best(self) -> None:
        """With train.patience: goes back to the weights of the best P@1."""
        if self.best:
            self.model.load_state_dict(self.best["model"])
            self.step, self.pairs, self.scores = (self.best[key] for key in ("step", "pairs", "scores"))

    def check_weights(self) -> None:
        """Raises BitextmineError when a weight is no longer finite: such weights must not become a checkpoint."""
        if not all(bool(torch.isfinite(weight).all()) for weight in self.learned):
            raise NotFinite(f"step {self.step}: weights are no longer finite; {NOT_FINITE}")

    def _measure(self) -> None:
        # By the first process for all: they must agree on when to stop.
        measured = validate(self.model, self.caches, self.recipe, self.ngrams) if self.world.first else None
        self.scores = self.world.tell(measured)
        if not self.recipe.train.patience:
            return
        if not self.best or self.scores["mean"] > self.best["scores"]["mean"]:
            weights = {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
            self.best = {"step": self.step, "pairs": self.pairs, "scores": self.scores, "model": weights}
            self.waited = 0
        else:
            self.waited += 1

    def learn(self, batch: Batch | None, share: float, lesson: Batch | None = None) -> dict[str, float]:
        """One step at ``share`` of the peak learning rates; the loss and its parts."""
        t = self.recipe.train
        # Dropout by step and process, so that a run resumes without the generators' states.
        torch.manual_seed(hash_seed(t.seed, self.step, self.world.rank))
        set_rates(self.optimizer, share)
        self.optimizer.zero_grad(set_to_none=True)
        parts = self.objectives(self.model, batch, self.step, self.world, lesson)
        weights = self.objectives.weights
        total = torch.stack([weights[name] * part for name, part in parts.items()]).sum()
        values = torch.stack([total, *parts.values()]).detach()
        self.world.add_up([values])
        losses = dict(zip(["loss", *parts], values.tolist(), strict=True))
        if not math.isfinite(losses["loss"]):
            raise NotFinite(f"step {self.step + 1}: the loss is {losses['loss']} ({losses}); {NOT_FINITE}")
        total.backward()
        if self.world.size > 1:
            for parameter in self.learned:  # what a share has no gradient for, another may have
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            self.world.add_up(parameter.grad for parameter in self.learned if parameter.grad is not None)
        if t.clip and (rest := layer_parameters(self.model, self.objectives)):
            torch.nn.utils.clip_grad_norm_(rest, t.clip)
        self.optimizer.step()
        self.step += 1
        # A lesson is of pairs that are trained on anyway.
        self.pairs += len(batch) if batch is not None else len(lesson) if lesson is not None else 0
        return losses


def compile_layers(model: SentenceModel) -> None:
    """Has torch compile the layers on their first use, once for all lengths; the weights keep their names.

    Raises BitextmineError when the CPU's layers would need a C++ compiler that is not there.
    """
    if model.device.type == "cpu" and not shutil.which(os.environ.get("CXX", "g++")):
        raise BitextmineError(
            "recipe: train.compile: no C++ compiler found (g++, or $CXX); leave it at false"
        )
    # Batches with and without a mask would each be compiled for, and torch gives up after eight kinds of batch.
    model.always_masked = True
    for layer in model.layers:
        layer.compile(dynamic=True)
