"""The training run: from a recipe to a model folder."""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

import torch

from bitextmine.console import progress
from bitextmine.encoder.columns.lengths import piece_characters
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import TOKENIZER, save_folder
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.ngrams import Ngrams
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.train.cache import PairCache, open_caches
from bitextmine.train.card import model_card
from bitextmine.train.checkpoint import load_checkpoint, save_checkpoint
from bitextmine.train.frequencies import piece_frequencies
from bitextmine.train.hard import with_hard_negatives
from bitextmine.train.objectives import check_objectives, make_objectives
from bitextmine.train.optimizer import layer_parameters, make_optimizer, rate_share, set_rates
from bitextmine.train.pairs import check_corpora
from bitextmine.train.parallel import World, join_world
from bitextmine.train.plot import plot_log
from bitextmine.train.recipe import Recipe
from bitextmine.train.sampling import Batch, Sampler, hash_seed
from bitextmine.train.spelling import commonest_ngrams, finished, piece_ngrams, spell
from bitextmine.train.splits import split_table
from bitextmine.train.validation import SMALLEST_POOL, is_measured, validate
from bitextmine.train.vocabulary import content_pieces, sample_lines, train_vocabulary

__all__ = ["train"]

log = logging.getLogger(__name__)

LOG_EVERY = 50
NOT_FINITE = (
    "training stops, and the last good checkpoint stays. Try a lower train.learning_rate and "
    "train.embedding_learning_rate, or a higher train.temperature"
)


def train(recipe: Recipe, out: Path, *, device: str = "auto", show_progress: bool | None = None) -> Path:
    """Trains an encoder into the folder ``out`` and returns it: config.json, model.safetensors,
    tokenizer.model, README.md (the model card), recipe.json, log.jsonl and, with matplotlib, training.png.

    A run that was killed is taken up at its last checkpoint by calling this again with the same recipe; on one
    CPU with the same number of threads it then ends in the same weights as an unbroken run. ``out/work`` holds
    the token cache and the checkpoint, and may be removed afterwards.

    Under torchrun the processes share the work of each step; ``train.batch`` is that of all of them, and only the first
    one writes. They must see the same files.

    Raises BitextmineError for whatever is wrong with recipe, corpora, disk or a checkpoint of another recipe,
    and when the loss is no longer finite (the last good checkpoint stays).
    """
    recipe.check()
    check_objectives(recipe)
    _check_corpora(recipe)
    with join_world(device) as world:
        return _train(recipe, out, world, None if show_progress is None else not show_progress)


def _train(recipe: Recipe, out: Path, world: World, disable: bool | None) -> Path:
    work = out / "work"
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BitextmineError(f"{out}: cannot make the folder: {e.strerror}") from None
    digest = recipe.digest()
    checkpoint = work / "checkpoint.pt"
    # Before anything is written: a checkpoint of another recipe is refused, and what lies here stays whole.
    saved = load_checkpoint(checkpoint, digest)
    if world.first:
        check_corpora(recipe)
    else:
        world.wait()  # for what the first process makes: this one will find it made
    tokenizer = _tokenizer(recipe, work)
    caches = _caches(recipe, work, tokenizer, disable)
    if world.first:
        world.wait()
    run = Run(recipe, caches, tokenizer, world)
    if saved is not None:
        run.restore(saved)
        log.info("%s: resuming after step %d of %d", checkpoint, run.step, run.steps)
    world.wait()  # until all have read the checkpoint
    if not world.first:
        for _ in run.entries():
            pass
        return out
    try:
        (out / "recipe.json").write_text(json.dumps(recipe.to_json(), indent=1) + "\n", encoding="utf-8")
        _cut_log(out / "log.jsonl", run.step or -1)
        with (out / "log.jsonl").open("a", encoding="utf-8") as log_file:
            if not run.step:
                corpora = [{"corpus": c.corpus.name, **c.counts, "sentences cut": c.cut} for c in caches]
                log_file.write(json.dumps({"step": 0, "corpora": corpora}) + "\n")
            _follow(run, log_file, checkpoint, digest, disable)
        run.keep_best()
        card = model_card(recipe, caches, run.step, run.pairs, run.scores)
        save_folder(
            out,
            finished(run.model),
            tokenizer.path,
            ngrams=run.ngram_names,
            dtype=recipe.model.storage,
            card=card,
        )
        plot_log(out / "log.jsonl", out / "training.png")
    except OSError as e:
        kept = " the last checkpoint is kept;" if checkpoint.exists() else ""
        raise BitextmineError(
            f"{e.filename or out}: cannot be written: {e.strerror or e};{kept} run the same command again once there "
            "is room"
        ) from e
    ngrams = f", {len(run.ngram_names)} n-grams" if recipe.model.ngrams else ""
    log.info(
        "%s: a model of %d pieces%s and %d dimensions", out, tokenizer.vocab_size, ngrams, recipe.model.dim
    )
    return out


def _follow(run: Run, log_file: TextIO, checkpoint: Path, digest: str, disable: bool | None) -> None:
    """Trains to the end, with log, progress bar and checkpoints."""
    last_saved = time.monotonic()
    with progress(run.steps, "train", "steps", disable) as bar:
        bar.update(run.step)
        for entry in run.entries():
            bar.update(1)
            if entry.get("loss") is not None:
                log_file.write(json.dumps(entry) + "\n")
                log_file.flush()
                said = f"loss {entry['loss']:.3f}, P@1 {run.scores.get('mean', float('nan')):.1f}"
                bar.set_postfix_str(said)
                if bar.disable and "p_at_1" in entry:
                    rate = entry["pairs_per_second"]
                    log.info("step %d of %d: %s, %.0f pairs/s", run.step, run.steps, said, rate)
            if run.done or time.monotonic() - last_saved > run.recipe.train.checkpoint_seconds:
                run.check_weights()
                save_checkpoint(checkpoint, {"recipe": digest, **run.state()})
                last_saved = time.monotonic()
    if run.step < run.steps:
        log.info(
            "stopped after step %d of %d: no better P@1 in %d measurements (train.patience)",
            run.step,
            run.steps,
            run.waited,
        )


class Run:
    """A training run at some step: the model, its optimiser, and what it has seen."""

    def __init__(
        self, recipe: Recipe, caches: list[PairCache], tokenizer: Tokenizer, world: World | None = None
    ) -> None:
        m, t = recipe.model, recipe.train
        self.recipe, self.caches, self.world = recipe, caches, world or World()
        languages = tuple(sorted({lang for cache in caches for lang in cache.corpus.langs}))
        pieces = tokenizer.pieces()
        shared = piece_ngrams(pieces) if m.spelling else None
        self.ngram_names = (
            commonest_ngrams(caches, pieces, shared[0], m.ngrams) if shared and m.ngrams else []
        )
        if len(self.ngram_names) < m.ngrams:
            log.info("%d n-grams instead of %d: the corpora have no more", len(self.ngram_names), m.ngrams)
        config = EncoderConfig(
            tokenizer.vocab_size,
            m.dim,
            m.layers,
            m.heads,
            m.ffn,
            m.dropout,
            m.max_pieces,
            languages,
            len(self.ngram_names),
            m.length_share,
        )
        torch.manual_seed(t.seed)
        self.model = SentenceModel(config)
        self.model.initialise(m.initial_std)
        if m.length_share:
            self.model.length_share_in_training = t.length_share_in_training or m.length_share
            self.model.characters.copy_(torch.from_numpy(piece_characters(pieces, len(self.ngram_names))))
        if shared:
            spell(self.model, *shared, self.ngram_names)
        self.model.to(self.world.device).train()
        self.objectives = make_objectives(recipe, self.model, content_pieces(tokenizer)).to(self.world.device)
        for head in self.objectives.heads:
            head.start_at(piece_frequencies(caches, tokenizer.vocab_size))
        self.optimizer = make_optimizer(self.model, self.objectives, t)
        self.learned = [*self.model.parameters(), *self.objectives.parameters()]
        per_pass = sum(len(cache.train) for cache in caches)
        self.steps = t.steps or max(1, math.ceil(t.epochs * per_pass / t.batch))
        splits = split_table(tokenizer) if t.piece_splits else None
        self.ngrams = Ngrams(self.ngram_names, pieces) if self.ngram_names else None
        self.sampler = Sampler(
            caches, recipe, splits, round(self.steps * (1 - t.piece_splits_end)), self.ngrams
        )
        self.step = self.pairs = 0
        self.scores: dict[str, float] = {}
        self.best: dict[str, Any] = {}  # with train.patience: step, pairs, scores and weights of the best P@1
        self.waited = 0  # measurements since then
        if t.patience and not any(is_measured(cache) for cache in caches):
            raise BitextmineError(
                f"recipe: train.patience: no corpus has the {SMALLEST_POOL} held-out pairs that P@1 is measured on; "
                "leave it at 0, or raise data.valid_pairs (at most a twentieth of a corpus is held out)"
            )
        fewest = min(min(len(cache.train), t.batch) for cache in caches)
        if fewest < self.world.size:
            raise BitextmineError(
                f"recipe: train.batch: a batch of {fewest} pairs cannot be shared by {self.world.size} processes"
            )
        if t.compile and m.layers:
            compile_layers(self.model)

    @property
    def done(self) -> bool:
        patience = self.recipe.train.patience
        return self.step >= self.steps or bool(patience and self.waited >= patience)

    def state(self) -> dict[str, Any]:
        return {
            "step": self.step, "pairs": self.pairs, "scores": self.scores, "model": self.model.state_dict(),
            "objectives": self.objectives.state_dict(), "optimizer": self.optimizer.state_dict(),
            "best": self.best, "waited": self.waited, "ngrams": self.ngram_names,
        }  # fmt: skip

    def restore(self, saved: dict[str, Any]) -> None:
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
        self.sampler.skip(self.step)

    def entries(self) -> Iterator[dict[str, Any]]:
        """Trains to the end, a step per item; the items of every LOG_EVERY steps and of every measurement of
        P@1 carry the log's fields, "loss" among them."""
        t = self.recipe.train
        tally = Tally()
        with ThreadPoolExecutor(1, thread_name_prefix="batches") as ahead:
            pending = ahead.submit(self.sampler.draw, self.step)
            while not self.done:
                batch = pending.result()
                if self.step + 1 < self.steps:
                    pending = ahead.submit(self.sampler.draw, self.step + 1)
                batch = with_hard_negatives(self.model, batch, t, self.world)
                share = rate_share(self.step, self.steps, t)
                losses = self._learn(batch, share)
                tally.add(losses, len(batch))
                entry: dict[str, Any] = {"step": self.step}
                last = self.step == self.steps
                measure = last or self.step % t.valid_every == 0
                if measure or self.step % LOG_EVERY == 0:
                    entry |= {
                        **tally.means(),
                        "learning_rate": share * t.learning_rate,
                        "embedding_learning_rate": share * t.embedding_learning_rate,
                    }
                    if measure:
                        self._measure()
                        entry["p_at_1"] = self.scores
                    tally = Tally()
                yield entry

    def keep_best(self) -> None:
        """With train.patience: goes back to the weights of the best P@1."""
        if self.best:
            self.model.load_state_dict(self.best["model"])
            self.step, self.pairs, self.scores = (self.best[key] for key in ("step", "pairs", "scores"))

    def check_weights(self) -> None:
        """Raises BitextmineError when a weight is no longer finite: such weights must not become a checkpoint."""
        if not all(bool(torch.isfinite(weight).all()) for weight in self.learned):
            raise BitextmineError(f"step {self.step}: weights are no longer finite; {NOT_FINITE}")

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

    def _learn(self, batch: Batch, share: float) -> dict[str, float]:
        """One step at ``share`` of the peak learning rates; the loss and its parts."""
        t = self.recipe.train
        # Dropout by step and process, so that a run resumes without the generators' states.
        torch.manual_seed(hash_seed(t.seed, self.step, self.world.rank))
        set_rates(self.optimizer, share)
        self.optimizer.zero_grad(set_to_none=True)
        parts = self.objectives(self.model, batch, self.step, self.world)
        weights = self.objectives.weights
        total = torch.stack([weights[name] * part for name, part in parts.items()]).sum()
        values = torch.stack([total, *parts.values()]).detach()
        self.world.add_up([values])
        losses = dict(zip(["loss", *parts], values.tolist(), strict=True))
        if not math.isfinite(losses["loss"]):
            raise BitextmineError(
                f"step {self.step + 1}: the loss is {losses['loss']} ({losses}); {NOT_FINITE}"
            )
        total.backward()
        if self.world.size > 1:
            for parameter in self.learned:  # what a share has no gradient for, another may have
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            self.world.add_up(parameter.grad for parameter in self.learned if parameter.grad is not None)
        if t.clip and (rest := layer_parameters(self.model, self.objectives)):
            torch.nn.utils.clip_grad_norm_(rest, t.clip)
        self.optimizer.step()
        self.step += 1
        self.pairs += len(batch)
        return losses


def compile_layers(model: SentenceModel) -> None:
    """Has torch compile the layers on their first use, once for all lengths; the weights keep their names.

    Raises BitextmineError when the CPU's layers would need a C++ compiler that is not there.
    """
    if model.device.type == "cpu" and not shutil.which(os.environ.get("CXX", "g++")):
        raise BitextmineError(
            "recipe: train.compile: no C++ compiler found (g++, or $CXX); leave it at false"
        )
    for layer in model.layers:
        layer.compile(dynamic=True)


class Tally:
    """Means over the steps since the last entry of the log."""

    def __init__(self) -> None:
        self.sums: dict[str, float] = {}
        self.steps = self.pairs = 0
        self.started = time.monotonic()

    def add(self, losses: dict[str, float], pairs: int) -> None:
        self.steps += 1
        self.pairs += pairs
        for name, value in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def means(self) -> dict[str, float]:
        rate = self.pairs / max(1e-9, time.monotonic() - self.started)
        return {name: value / self.steps for name, value in self.sums.items()} | {
            "pairs_per_second": round(rate, 1)
        }


def _check_corpora(recipe: Recipe) -> None:
    """Before hours of work on the others: every corpus must be there."""
    for corpus in recipe.data.corpora:
        for name in [corpus.pairs] if corpus.pairs else [corpus.src, corpus.tgt]:
            path = recipe.path(name)
            if not path.exists():
                raise BitextmineError(
                    f"{path}: no such file; the recipe's corpora are looked for in {recipe.path('.')}: --data FOLDER "
                    "names another folder, --pairs FILE other corpora"
                )


def _tokenizer(recipe: Recipe, work: Path) -> Tokenizer:
    """The run's vocabulary, in its work folder: a model that is already in the folder stays usable meanwhile."""
    path = work / TOKENIZER
    given = recipe.vocabulary.tokenizer
    if given:
        source = Tokenizer(recipe.path(given)).path
        if source.resolve() != path.resolve():
            path.write_bytes(source.read_bytes())
        return Tokenizer(path)
    # The note says for which recipe and data the vocabulary was made: another one must not use it.
    note = work / "vocabulary.json"
    made_for = json.dumps([recipe.digest(), [_stamp(recipe, c) for c in recipe.data.corpora]])
    if not (path.exists() and note.exists() and note.read_text(encoding="utf-8") == made_for):
        log.info("training a vocabulary of %d pieces", recipe.vocabulary.size)
        note.unlink(missing_ok=True)
        lines = sample_lines(recipe)
        train_vocabulary(recipe, path, (line for part in lines.values() for line in part))
        note.write_text(made_for, encoding="utf-8")
    return Tokenizer(path)


def _stamp(recipe: Recipe, corpus: Any) -> list[int]:
    names = [corpus.pairs] if corpus.pairs else [corpus.src, corpus.tgt]
    try:
        return [recipe.path(name).stat().st_size for name in names]
    except OSError as e:
        raise BitextmineError(f"{recipe.path(names[0])}: cannot be read: {e.strerror}") from None


def _caches(recipe: Recipe, work: Path, tokenizer: Tokenizer, disable: bool | None) -> list[PairCache]:
    show = None if disable is None else not disable
    return open_caches(work / "cache", recipe, tokenizer, show_progress=show)


def _cut_log(path: Path, step: int) -> None:
    """Drops what a killed run logged after the checkpoint it is taken up from."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            break
    path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
