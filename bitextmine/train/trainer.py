"""The training run: from a recipe to a model folder."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.device import pick_device
from bitextmine.encoder.folder import TOKENIZER, save_folder
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.progress import progress
from bitextmine.train.cache import PairCache, open_cache
from bitextmine.train.card import model_card
from bitextmine.train.checkpoint import load_checkpoint, save_checkpoint
from bitextmine.train.objectives import check_objectives, make_objectives
from bitextmine.train.optimizer import layer_parameters, make_optimizer, rate_share, set_rates
from bitextmine.train.recipe import Recipe
from bitextmine.train.sampling import Batch, Sampler
from bitextmine.train.validation import validate
from bitextmine.train.vocabulary import content_pieces, sample_lines, train_vocabulary

__all__ = ["train"]

log = logging.getLogger(__name__)

LOG_EVERY = 50


def train(recipe: Recipe, out: Path, *, device: str = "auto", show_progress: bool | None = None) -> Path:
    """Trains an encoder into the folder ``out`` and returns it: config.json, model.safetensors,
    tokenizer.model, README.md (the model card), recipe.json and log.jsonl.

    A run that was killed is taken up at its last checkpoint by calling this again with the same recipe; on one
    CPU with the same number of threads it then ends in the same weights as an unbroken run. ``out/work`` holds
    the token cache and the checkpoint, and may be removed afterwards.

    Raises BitextmineError for whatever is wrong with recipe, corpora, disk or a checkpoint of another recipe,
    and when the loss is no longer finite (the last good checkpoint stays).
    """
    recipe.check()
    check_objectives(recipe)
    place = pick_device(device)
    work = out / "work"
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BitextmineError(f"{out}: cannot make the folder: {e.strerror}") from None
    disable = None if show_progress is None else not show_progress
    digest = recipe.digest()
    checkpoint = work / "checkpoint.pt"
    # Before anything is written: a checkpoint of another recipe is refused, and what lies here stays whole.
    saved = load_checkpoint(checkpoint, digest)
    tokenizer = _tokenizer(recipe, work)
    caches = _caches(recipe, work, tokenizer, disable)
    run = Run(recipe, caches, tokenizer, place)
    if saved is not None:
        run.restore(saved)
        log.info("%s: resuming after step %d of %d", checkpoint, run.step, run.steps)
    (out / "recipe.json").write_text(json.dumps(recipe.to_json(), indent=1) + "\n", encoding="utf-8")
    log_path = out / "log.jsonl"
    _cut_log(log_path, run.step)
    last_saved = time.monotonic()
    with (
        log_path.open("a", encoding="utf-8") as log_file,
        progress(run.steps, "train", "steps", disable) as bar,
    ):
        bar.update(run.step)
        for entry in run.entries():
            bar.update(1)
            if entry.get("loss") is not None:
                log_file.write(json.dumps(entry) + "\n")
                log_file.flush()
                bar.set_postfix_str(
                    f"loss {entry['loss']:.3f}, P@1 {run.scores.get('mean', float('nan')):.1f}"
                )
            if time.monotonic() - last_saved > recipe.train.checkpoint_seconds or run.step == run.steps:
                save_checkpoint(checkpoint, {"recipe": digest, **run.state()})
                last_saved = time.monotonic()
    card = model_card(recipe, caches, run.steps, run.pairs, run.scores)
    save_folder(out, run.model, tokenizer.path, card=card)
    log.info("%s: a model of %d pieces and %d dimensions", out, tokenizer.vocab_size, recipe.model.dim)
    return out


class Run:
    """A training run at some step: the model, its optimiser, and what it has seen."""

    def __init__(
        self, recipe: Recipe, caches: list[PairCache], tokenizer: Tokenizer, device: torch.device
    ) -> None:
        m = recipe.model
        self.recipe, self.caches, self.device = recipe, caches, device
        languages = tuple(sorted({lang for cache in caches for lang in cache.corpus.langs}))
        config = EncoderConfig(
            tokenizer.vocab_size, m.dim, m.layers, m.heads, m.ffn, m.dropout, m.max_pieces, languages
        )
        torch.manual_seed(recipe.train.seed)
        self.model = SentenceModel(config)
        self.model.initialise(m.initial_std)
        self.model.to(device).train()
        self.objectives = make_objectives(recipe, self.model, content_pieces(tokenizer)).to(device)
        self.optimizer = make_optimizer(self.model, self.objectives, recipe.train)
        self.sampler = Sampler(caches, recipe)
        per_pass = sum(len(cache.train) for cache in caches)
        self.steps = recipe.train.steps or max(
            1, math.ceil(recipe.train.epochs * per_pass / recipe.train.batch)
        )
        self.step = self.pairs = 0
        self.scores: dict[str, float] = {}

    def state(self) -> dict[str, Any]:
        return {
            "step": self.step, "pairs": self.pairs, "scores": self.scores, "model": self.model.state_dict(),
            "objectives": self.objectives.state_dict(),
            "optimizer": self.optimizer.state_dict(), "rng": torch.get_rng_state(),
        }  # fmt: skip

    def restore(self, saved: dict[str, Any]) -> None:
        self.step, self.pairs, self.scores = saved["step"], saved["pairs"], saved["scores"]
        self.model.load_state_dict(saved["model"])
        self.objectives.load_state_dict(saved["objectives"])
        self.optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"])
        self.sampler.skip(self.step)

    def entries(self) -> Iterator[dict[str, Any]]:
        """Trains to the end, a step per item; the items of every LOG_EVERY steps and of every measurement of
        P@1 carry the log's fields, "loss" among them."""
        t = self.recipe.train
        tally = Tally()
        with ThreadPoolExecutor(1, thread_name_prefix="batches") as ahead:
            pending = ahead.submit(self.sampler.draw, self.step)
            while self.step < self.steps:
                batch = pending.result()
                if self.step + 1 < self.steps:
                    pending = ahead.submit(self.sampler.draw, self.step + 1)
                share = rate_share(self.step, self.steps, t)
                losses = self._learn(batch, share)
                tally.add(losses, len(batch))
                entry: dict[str, Any] = {"step": self.step}
                last = self.step == self.steps
                measure = last or self.step % t.valid_every == 0
                if last or measure or self.step % LOG_EVERY == 0:
                    entry |= {**tally.means(), "rate_share": share}
                    if measure:
                        self.scores = entry["p_at_1"] = validate(self.model, self.caches, self.recipe)
                    tally = Tally()
                yield entry

    def _learn(self, batch: Batch, share: float) -> dict[str, float]:
        """One step at ``share`` of the peak learning rates; the loss and its parts."""
        t = self.recipe.train
        set_rates(self.optimizer, share)
        self.optimizer.zero_grad(set_to_none=True)
        parts = self.objectives(self.model, batch, self.step)
        total = sum((self.objectives.weights[name] * part for name, part in parts.items()), torch.zeros(()))
        losses = {name: float(part.detach()) for name, part in {"loss": total, **parts}.items()}
        if not math.isfinite(losses["loss"]):
            raise BitextmineError(
                f"step {self.step + 1}: the loss is {losses['loss']} ({losses}); training stops, and the last good "
                "checkpoint stays. Try a lower train.learning_rate or a higher train.temperature"
            )
        total.backward()
        if t.clip and (rest := layer_parameters(self.model, self.objectives)):
            torch.nn.utils.clip_grad_norm_(rest, t.clip)
        self.optimizer.step()
        self.step += 1
        self.pairs += len(batch)
        return losses


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
    caches = []
    with progress(None, "tokenise", "pairs", disable) as bar:
        for corpus in recipe.data.corpora:
            cache = open_cache(work / "cache", recipe, corpus, tokenizer, bar.update)
            c = cache.counts
            log.info(
                "%s: %d pairs read, %d kept (%d too short, %d of too different lengths, %d copied)", corpus.name,
                c["read"], c["kept"], c["too short"], c["lengths too different"], c["copied"],
            )  # fmt: skip
            if not len(cache.train):
                raise BitextmineError(
                    f"{corpus.name}: no pair is left to train on after holding out {len(cache.valid)}"
                )
            caches.append(cache)
    return caches


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
