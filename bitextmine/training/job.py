"""Train an encoder: from a recipe to a model folder; a killed run resumes at its last checkpoint."""

import contextlib
import dataclasses
import errno
import hashlib
import json
import logging
import time
from pathlib import Path
from typing import Any

import torch

from bitextmine.console import counted, markdown
from bitextmine.device import pick_device
from bitextmine.encoder.folder import CONFIG, TOKENIZER, write_folder
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import cannot_write, replacing
from bitextmine.files.journal import Journal, JournalBusyError, read_head
from bitextmine.run import Run
from bitextmine.signature import signature
from bitextmine.system import keep_freed_memory
from bitextmine.training.data.cache import DROPPED, check_corpora, open_caches
from bitextmine.training.data.vocabulary import check_unknown, open_vocabulary, unknown_shares
from bitextmine.training.model.start import open_start
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.recipe import Recipe, check_objectives, resolve_corpora
from bitextmine.training.reducing import finished_model
from bitextmine.training.steps import SMALLEST_POOL, NotFinite, TrainingRun
from bitextmine.training.teacher import open_lessons, open_teacher

log = logging.getLogger(__name__)

# What a training writes besides the model itself.
CARD, RECIPE, LOG = "README.md", "recipe.json", "log.jsonl"
CHECKPOINT = "checkpoint.pt"  # in the folder work
FEW_STEPS = 100


def train(recipe: Recipe, out: Path, run: Run | None = None, *, force: bool = False) -> Path:
    """Train an encoder into the folder ``out`` and return it.

    Calling this again with the same recipe resumes a killed run at its last checkpoint; on one CPU with the same
    number of threads it ends in the same weights, and the same log except for the pairs per second, as an unbroken
    run. ``out/work`` holds the token cache and the checkpoint, and may be removed afterwards. ``force`` overwrites
    a finished model without its checkpoint, a checkpoint of another recipe, and files of other programs.

    Raises:
        BitextmineError: the recipe, the corpora or the disk are at fault, the checkpoint is of another recipe, or the
            loss is no longer finite (the last good checkpoint stays).
    """
    run = run or Run()
    recipe = resolve_corpora(dataclasses.replace(recipe, max_line=run.max_line, errors=run.errors))
    check_objectives(recipe)
    _check_folder(out, force)
    keep_freed_memory()  # each step takes what the last one freed
    Job(recipe, out, run, force).train()
    return out


def _check_folder(out: Path, force: bool) -> None:
    """Refuse a model folder that holds files, unless they are of an interrupted training, or with ``force``."""
    try:
        if out.exists() and not out.is_dir():
            raise BitextmineError(f"{out}: a file is there; name a folder for the encoder")
        work = out / "work"  # a finished model without its checkpoint would be overwritten
        begun = work.is_dir() and ((work / CHECKPOINT).exists() or not (out / CONFIG).exists())
        if not force and not begun and out.is_dir() and any(out.iterdir()):
            raise BitextmineError(
                f"{out}: the folder is not empty; name another one, or pass --force to overwrite the model in it"
            )
    except OSError as e:
        raise cannot_write(e, out) from None


@dataclasses.dataclass
class Job:
    """A training on its way to a model; the encoders that it starts from and learns from are opened first."""

    recipe: Recipe
    out: Path
    run: Run
    force: bool

    def __post_init__(self) -> None:
        self.work = self.out / "work"
        self.checkpoint = self.work / CHECKPOINT
        self.device = pick_device(self.run.device)
        self.start, self.teacher = open_start(self.recipe), open_teacher(self.recipe, str(self.device))

    def train(self) -> None:
        """Train to the end, and write the model."""
        try:
            self.work.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise cannot_write(e, self.out) from None
        try:
            with self._open_journal() as journal:
                try:
                    check_corpora(self.recipe)
                    self._finish(self._prepare(journal), journal)
                except BitextmineError:
                    self._tidy(journal)
                    raise
        except JournalBusyError:
            raise BitextmineError(
                f"{self.out}: another process trains into this folder; wait for it, or name another"
            ) from None

    def _tidy(self, journal: Journal) -> None:
        """Remove the files and folders of a training that has recorded nothing; any that hold other files stay."""
        if not len(journal):
            (self.work / TOKENIZER).unlink(missing_ok=True)
            journal.remove()
            for folder in (self.work / "cache", self.work, self.out):
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def _open_journal(self) -> Journal:
        """Return the journal, named after the recipe and both encoders; another training's checkpoint is an error."""
        digest = self.recipe.digest()
        for encoder in (self.start, self.teacher):
            if encoder is not None:
                digest = hashlib.sha256(f"{digest} {encoder.hash}".encode()).hexdigest()[:16]
        path, identity = self.work / "journal", {"recipe": digest}
        head = read_head(path)
        if self.checkpoint.exists() and (head is None or head.identity != identity):
            if not self.force:
                raise BitextmineError(
                    f"{self.checkpoint}: a checkpoint of another recipe; train into another --out, or give --force to "
                    "train from the start"
                )
            self.checkpoint.unlink()  # before the journal says otherwise
        return Journal(path, "train", identity)

    def _prepare(self, journal: Journal) -> TrainingRun:
        """Return the training at its last checkpoint, or before the first step."""
        recipe, start, teacher, cache = self.recipe, self.start, self.teacher, self.work / "cache"
        saved = load_checkpoint(self.checkpoint) if self.checkpoint.exists() else None
        tokenizer = open_vocabulary(recipe, self.work, start, journal)
        try:
            caches = open_caches(cache, recipe, tokenizer, self.run)
        except BitextmineError:
            if saved is None:
                journal.truncate(0)  # other pairs need another vocabulary
            raise
        if start is not None and saved is None:
            check_unknown(start, unknown_shares(caches, tokenizer))
        lessons = []
        if teacher is not None and any(OBJECTIVES[name].taught for name in recipe.train.objective):
            lessons = open_lessons(cache, recipe, caches, tokenizer, teacher, self.run)
        training = TrainingRun(recipe, caches, tokenizer, self.device, start, teacher, lessons)
        if saved is not None:
            training.restore(saved)
            log.info("%s: resuming after step %d of %d", self.checkpoint, training.step, training.steps)
        else:
            _warn_of_little(training)
        return training

    def _finish(self, training: TrainingRun, journal: Journal) -> None:
        try:
            self._follow(training, journal)
            self._write_model(training)
        except NotFinite as e:
            raise BitextmineError(
                f"{e}{'. The last good checkpoint stays' * self.checkpoint.exists()}"
            ) from None
        except OSError as e:
            kept = ". The last checkpoint is kept" * self.checkpoint.exists()
            raise BitextmineError(f"{cannot_write(e, self.out)}{kept}") from e

    def _follow(self, training: TrainingRun, journal: Journal) -> None:
        """Train with log, progress bar and checkpoints."""
        with replacing(self.out / RECIPE) as file:
            file.write(f"{json.dumps(self.recipe.to_json(), indent=1)}\n".encode())
        _cut_log(self.out / LOG, training.step or -1)
        last_saved = time.monotonic()
        with (
            (self.out / LOG).open("a", encoding="utf-8", buffering=1) as log_file,
            self.run.progress(training.steps, "train", "steps") as bar,
        ):
            if not training.step:
                counts = (
                    {"corpus": c.corpus.name, **c.counts, "sentences cut": c.cut} for c in training.caches
                )
                print(json.dumps({"step": 0, "corpora": list(counts)}), file=log_file)
            bar.update(training.step)
            for entry in training.entries():
                bar.update(1)
                if "loss" in entry:
                    print(json.dumps(entry), file=log_file)
                    measured = f", P@1 {training.scores['mean']:.1f}" if "mean" in training.scores else ""
                    progress = f"loss {entry['loss']:.3f}{measured}"
                    bar.set_postfix_str(progress)
                    if bar.disable and "p_at_1" in entry:
                        steps, rate = f"step {training.step} of {training.steps}", entry["pairs_per_second"]
                        log.info("%s: %s, %.0f pairs/s", steps, progress, rate)
                waited = time.monotonic() - last_saved > self.recipe.train.checkpoint_seconds
                if waited or training.step == training.steps:
                    training.check_weights()
                    save_checkpoint(self.checkpoint, training.state())
                    journal.append({"checkpoint": CHECKPOINT, "step": training.step})
                    last_saved = time.monotonic()

    def _write_model(self, training: TrainingRun) -> None:
        ngrams, storage, tokenizer = training.ngram_names, self.recipe.model.storage, training.tokenizer
        config, weights = finished_model(training, self.run)
        with replacing(self.out / CARD) as file:
            file.write(model_card(training).encode())
        write_folder(self.out, config, weights, tokenizer.path, ngrams=ngrams, dtype=storage)
        size = f"{tokenizer.vocab_size} pieces" + (f", {len(ngrams)} n-grams" if ngrams else "")
        log.info("%s: a model of %s and %d dimensions", self.out, size, config.dim)


# --- the log -------------------------------------------------------------------------------------------------


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a log.jsonl up to the first that is not complete."""
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
            entry["step"] + 0
        except (ValueError, KeyError, TypeError):
            break
        entries.append(entry)
    return entries


def _cut_log(path: Path, step: int) -> None:
    """Drop entries that a killed run logged after its checkpoint of ``step``. OSError passes through."""
    if path.exists():
        kept = [entry for entry in read_log(path) if entry["step"] <= step]
        with replacing(path) as file:
            file.write("".join(f"{json.dumps(entry)}\n" for entry in kept).encode())


# --- checkpoints ---------------------------------------------------------------------------------------------


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Save tensors and plain values atomically."""
    try:
        with replacing(path) as file:
            torch.save(content, file)
    except (
        OSError,
        RuntimeError,
    ) as e:  # torch reports a failed write as a RuntimeError of its archive writer
        problem = e if isinstance(e, OSError) else OSError(errno.ENOSPC, "the disk is full")
        raise cannot_write(problem, path) from e


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Load a checkpoint; only tensors and plain values are unpickled. BitextmineError for a damaged file."""
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as e:  # a damaged archive may raise anything
        raise BitextmineError(
            f"{path}: not a readable checkpoint ({e}); remove it to train from the start"
        ) from e


# --- messages and the card -----------------------------------------------------------------------------------


def _warn_of_little(training: TrainingRun) -> None:
    """Warn if a run is too short to learn much (unless train.steps asks for that), and if P@1 cannot be measured."""
    t, pairs = training.recipe.train, sum(len(cache.train) for cache in training.caches)
    if training.untaught < FEW_STEPS and not t.steps:
        size = f"{counted(pairs, 'pair')}, train.batch {t.batch}, train.epochs {t.epochs:g}"
        log.warning(
            "only %s (%s), in which an encoder learns little: give more pairs, or lower --batch or raise --epochs",
            counted(training.untaught, "step"),
            size,
        )
    largest = max(len(cache.valid) for cache in training.caches)
    if training.recipe.data.valid_pairs and largest < SMALLEST_POOL:
        log.warning(
            "P@1 is not measured: no corpus has %d held-out pairs (at most data.valid_pairs and a twentieth of a "
            "corpus are held out): give one of %s pairs or more",
            SMALLEST_POOL,
            f"{20 * SMALLEST_POOL:,}",
        )


def model_card(training: TrainingRun) -> str:
    """Return the card as Markdown: kind and size, data with the held-out P@1, recipe, signature."""
    recipe, m, t = training.recipe, training.recipe.model, training.recipe.train
    caches, start, teacher = training.caches, training.start, training.teacher
    kind = f"{m.layers} transformer layer{'s' * (m.layers > 1)}" if m.layers else "mean of subword vectors"
    made = (
        f"{kind}, {recipe.reduce.dim or m.dim} dimensions, trained on {training.pairs:,} pairs in "
        f"{training.step:,} steps (a pair counts each time it is seen)"
    )
    if start:
        made += f", continuing from the encoder {start.folder.name} (hash {start.hash})"
    if training.lessons and teacher:
        pairs = sum(len(source.train) for source in training.lessons)
        made += f", taught by {teacher.name} (hash {teacher.hash}) on {pairs:,} pairs"
    dropped = [why for why in DROPPED if any(cache.counts[why] for cache in caches)]
    rows = []
    for cache in caches:
        score = training.scores.get(cache.corpus.name)
        shown = "-" if score is None else f"{score:.1f} of {len(cache.valid):,}"
        counts = [f"{cache.counts[key]:,}" for key in ("read", "kept", *dropped)]
        rows.append([cache.corpus.name, "-".join(cache.corpus.langs), *counts, shown])
    header = ["training text", "languages", "pairs read", "kept", *dropped, "P@1 on held-out pairs"]
    how = {"objective": "+".join(sorted(t.objective)), "batch": t.batch, "steps": training.step}
    how |= {"temperature": t.temperature, "seed": t.seed}
    signed = signature(recipe=recipe.digest(), layers=m.layers, dim=m.dim, **how)
    lines = [
        f"# A bitextmine encoder for {', '.join(training.model.config.languages)}\n\n{made}.\n\n## Data\n",
        markdown(header, rows),
        "\n## Recipe\n\nSettings that are not at their defaults; `recipe.json` has every key.\n",
        f"```json\n{json.dumps(recipe.named().settings(), indent=1)}\n```\n\nSignature: `{signed}`\n",
    ]
    return "\n".join(lines)
