"""The training run: from a recipe to a model folder."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from bitextmine.console import counted, progress
from bitextmine.encoder.folder import CONFIG, TOKENIZER, folder_hash, write_folder
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import cannot_write, locked_folder, replacing
from bitextmine.system import keep_freed_memory
from bitextmine.training.cache import open_caches
from bitextmine.training.card import model_card
from bitextmine.training.checkpoint import load_checkpoint, save_checkpoint
from bitextmine.training.finishing import finished_model
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.objectives.check import check_objectives
from bitextmine.training.outputs import RECIPE, check_training_output
from bitextmine.training.pairs import check_corpora, find_corpora
from bitextmine.training.parallel import World, join_world
from bitextmine.training.plot import plot_log
from bitextmine.training.recipe import Recipe, check_recipe
from bitextmine.training.run import NotFinite, Run
from bitextmine.training.runlog import cut_log
from bitextmine.training.stages import Stage, check_assistant, stages, write_student
from bitextmine.training.start import open_start
from bitextmine.training.teacher.lessons import open_lessons
from bitextmine.training.teacher.source import open_teacher, teacher_pieces
from bitextmine.training.validation import SMALLEST_POOL, is_measured
from bitextmine.training.vocabulary import open_vocabulary

__all__ = ["train"]

log = logging.getLogger(__name__)

FEW_STEPS = 100


def train(
    recipe: Recipe, out: Path, *, device: str = "auto", force: bool = False, show_progress: bool | None = None
) -> Path:
    """Trains an encoder into the folder ``out`` and returns it: config.json, model.safetensors,
    tokenizer.model, README.md (the model card), recipe.json, log.jsonl and, with matplotlib, training.png.

    With model.start_from training goes on from that encoder: from its vectors, its vocabulary (grown by up to
    vocabulary.grow pieces) and its n-grams. With teacher.model it also learns from that encoder, by those objectives
    that are taught; the teacher's vectors are computed before, and kept with the token cache. With distil.epochs it is
    the trainings that `stages` makes of the recipe, one by one; those before the last lie in ``out/work/stages``.

    A run that was killed is taken up at its last checkpoint by calling this again with the same recipe; on one
    CPU with the same number of threads it then ends in the same weights as an unbroken run, and its log says the same
    but for the pairs per second. ``out/work`` holds the token cache and the checkpoint, and may be removed afterwards.

    Under torchrun the processes share the work of each step; ``train.batch`` is that of all of them, and only the first
    one writes. They must see the same files.

    What lies in ``out`` and is not of this training (a finished model without its checkpoint, a checkpoint of another
    recipe, files of other programs by the names above) is written over with ``force`` only.

    Raises BitextmineError for whatever is wrong with recipe, corpora, disk or a checkpoint of another recipe,
    and when the loss is no longer finite (the last good checkpoint, where there is one, stays).
    """
    check_recipe(recipe)
    planned = stages(recipe, out, out / "work") if recipe.distil.epochs else []
    for each in [stage.recipe for stage in planned] or [recipe]:
        check_objectives(each)
    if recipe.distil.assistant:
        check_assistant(recipe, recipe.path(recipe.distil.assistant))
    find_corpora(recipe)
    check_training_output(out, force)
    keep_freed_memory()  # a step frees what the next one takes again
    with join_world(device) as world, _work_folder(out, world) as work:
        if not planned:
            return _train(recipe, out, work, world, force, show_progress)
        return _train_stages(planned, work, world, force, show_progress)


def _train_stages(
    planned: Sequence[Stage], work: Path, world: World, force: bool, show_progress: bool | None
) -> Path:
    """Trains one stage after another, but for those that are finished; returns the folder of the last."""
    for stage in planned[:-1]:
        world.wait()  # for what the first process wrote
        log.info("stage %d of distillation", stage.number)
        with _work_folder(stage.out, world) as its_own:
            _train(stage.recipe, stage.out, its_own, world, force, show_progress, stage.made_of, once=True)
    last = planned[-1]
    world.wait()
    log.info("stage %d of distillation", last.number)
    return _train(last.recipe, last.out, work, world, force, show_progress, last.made_of)


@contextlib.contextmanager
def _work_folder(out: Path, world: World) -> Iterator[Path]:
    """The folder of the token cache and the checkpoint, which no other training uses meanwhile. A training that fails
    before it wrote anything leaves no folder."""
    work = out / "work"
    made = [folder for folder in (work, out) if world.first and not folder.exists()]
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = locked_folder(work, wait=False) if world.first else contextlib.nullcontext()
        with contextlib.ExitStack() as held:
            held.enter_context(lock)
            entered = held.pop_all()
    except BlockingIOError:
        raise BitextmineError(
            f"{out}: another process trains into this folder; wait for it, or name another"
        ) from None
    except OSError as e:
        raise BitextmineError(f"{out}: cannot make the folder: {e.strerror}") from None
    try:
        with entered:
            yield work
    except BitextmineError:
        with contextlib.suppress(OSError):  # something is in it
            for folder in made:
                folder.rmdir()
        raise


def _train(
    recipe: Recipe,
    out: Path,
    work: Path,
    world: World,
    force: bool,
    show_progress: bool | None,
    made_of: Path | None = None,
    *,
    once: bool = False,
) -> Path:
    """Trains a recipe. made_of: the assistant that its start is first to be made of; once: not again where it is
    finished."""
    if made_of is not None:
        if world.first:
            _make_student(recipe, made_of, work, show_progress)
        world.wait()
    start = open_start(recipe)
    teacher = open_teacher(recipe, str(world.device))
    digest = recipe.digest() if start is None else start.digest(recipe)
    digest = digest if teacher is None else teacher.digest(digest)
    done, checkpoint = work / "finished", work / "checkpoint.pt"
    if once and done.exists() and done.read_text(encoding="utf-8") == digest and (out / CONFIG).exists():
        return out
    # Before anything is written: a checkpoint of another recipe is refused, and what lies here stays whole.
    try:
        saved = load_checkpoint(checkpoint, digest)
    except BitextmineError:
        if not force:
            raise
        saved = None
        checkpoint.unlink(missing_ok=True)
    if world.first:
        check_corpora(recipe)
    else:
        world.wait()  # for what the first process makes: this one will find it made
    tokenizer = open_vocabulary(recipe, work, start)
    caches = open_caches(work / "cache", recipe, tokenizer, show_progress=show_progress)
    asked = [OBJECTIVES[name] for name in recipe.train.objective]
    lessons = pieces_taught = None
    if teacher is not None and any(declared.pieces for declared in asked):
        pieces_taught = teacher_pieces(teacher, tokenizer, recipe.model.dim)
    taught = any(declared.taught for declared in asked)
    if teacher is not None and taught:
        lessons = open_lessons(
            work / "cache", recipe, caches, tokenizer, teacher, show_progress=show_progress
        )
    if world.first:
        world.wait()
    run = Run(recipe, caches, tokenizer, world, start, lessons, pieces_taught)
    if saved is not None:
        run.restore(saved)
        log.info("%s: resuming after step %d of %d", checkpoint, run.step, run.steps)
    elif world.first:
        warn_of_little(run)
    world.wait()  # until all have read the checkpoint
    if not world.first:
        for _ in run.entries():
            pass
        return out
    try:
        with replacing(out / RECIPE) as file:
            file.write(f"{json.dumps(recipe.to_json(), indent=1)}\n".encode())
        cut_log(out / "log.jsonl", run.step or -1)
        with (out / "log.jsonl").open("a", encoding="utf-8") as log_file:
            if not run.step:
                corpora = [{"corpus": c.corpus.name, **c.counts, "sentences cut": c.cut} for c in caches]
                log_file.write(json.dumps({"step": 0, "corpora": corpora}) + "\n")
                log_file.flush()
            _follow(run, log_file, checkpoint, digest, show_progress)
        run.keep_best()
        config, weights = finished_model(run, show_progress=show_progress)
        card = model_card(recipe, caches, run.step, run.pairs, run.scores, start, lessons)
        write_folder(
            out,
            config,
            weights,
            tokenizer.path,
            ngrams=run.ngram_names,
            dtype=recipe.model.storage,
            card=card,
        )
        plot_log(out / "log.jsonl", out / "training.png")
        if once:
            with replacing(done) as file:
                file.write(digest.encode())
    except NotFinite as e:
        raise BitextmineError(f"{e}{'. The last good checkpoint stays' * checkpoint.exists()}") from None
    except OSError as e:
        kept = ". The last checkpoint is kept" if checkpoint.exists() else ""
        raise BitextmineError(f"{cannot_write(e, out)}{kept}") from e
    ngrams = f", {len(run.ngram_names)} n-grams" if recipe.model.ngrams else ""
    log.info("%s: a model of %d pieces%s and %d dimensions", out, tokenizer.vocab_size, ngrams, config.dim)
    return out


def _make_student(recipe: Recipe, assistant: Path, work: Path, show_progress: bool | None) -> None:
    """Makes the student that a recipe starts from, where it is not there or of another assistant."""
    m = recipe.model
    folder = Path(m.start_from)
    note = folder / "made_of"
    digest = (
        f"{folder_hash(assistant)} {m.layers} {m.recurrent} {m.bottleneck} "
        f"{recipe.digest() if m.bottleneck else ''}"
    )
    if note.exists() and note.read_text(encoding="utf-8") == digest:
        return
    tokenizer = Tokenizer(assistant / TOKENIZER)
    caches = (
        open_caches(work / "cache", recipe, tokenizer, show_progress=show_progress) if m.bottleneck else []
    )
    folder.mkdir(parents=True, exist_ok=True)
    note.unlink(missing_ok=True)
    write_student(assistant, m, caches, tokenizer, folder)
    with replacing(note) as file:
        file.write(digest.encode())


def warn_of_little(run: Run) -> None:
    """Warns of a run too short to learn much, unless the recipe says how many steps, and of one that cannot be
    measured."""
    t, pairs = run.recipe.train, sum(len(cache.train) for cache in run.caches)
    if run.untaught < FEW_STEPS and not t.steps:
        log.warning(
            "only %s (%s, train.batch %d, train.epochs %g), in which an encoder learns little: give more pairs, or "
            "lower --batch or raise --epochs",
            counted(run.untaught, "step"),
            counted(pairs, "pair"),
            t.batch,
            t.epochs,
        )
    if run.recipe.data.valid_pairs and not any(map(is_measured, run.caches)):
        log.warning(
            "P@1 is not measured: no corpus has %d held-out pairs (at most data.valid_pairs and a twentieth of a "
            "corpus are held out): give one of %s pairs or more",
            SMALLEST_POOL,
            f"{20 * SMALLEST_POOL:,}",
        )


def _follow(run: Run, log_file: TextIO, checkpoint: Path, digest: str, show_progress: bool | None) -> None:
    """Trains to the end, with log, progress bar and checkpoints."""
    last_saved = time.monotonic()
    with progress(run.steps, "train", "steps", show_progress) as bar:
        bar.update(run.step)
        for entry in run.entries():
            bar.update(1)
            if entry.get("loss") is not None:
                log_file.write(json.dumps(entry) + "\n")
                log_file.flush()
                said = f"loss {entry['loss']:.3f}"
                if "mean" in run.scores:
                    said += f", P@1 {run.scores['mean']:.1f}"
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
