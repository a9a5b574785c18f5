"""Train an encoder: from a recipe to a model folder."""

import dataclasses
import logging
from pathlib import Path

from bitextmine.run import Run
from bitextmine.system import keep_freed_memory
from bitextmine.training.data.pairs import find_corpora
from bitextmine.training.job import Job, Planned, work_folder
from bitextmine.training.outputs import check_model_output
from bitextmine.training.papers.stages import stages
from bitextmine.training.parallel import join_world
from bitextmine.training.recipe import Recipe, check_objectives

log = logging.getLogger(__name__)


def train(recipe: Recipe, out: Path, run: Run | None = None, *, force: bool = False) -> Path:
    """Train an encoder into the folder ``out`` and return it.

    The folder gets config.json, model.safetensors, tokenizer.model, README.md (the model card), recipe.json and
    log.jsonl.

    Calling this again with the same recipe resumes a killed run at its last checkpoint; on one CPU with the same
    number of threads it ends in the same weights, and the same log except for the pairs per second, as an unbroken
    run. ``out/work`` holds the token cache and the checkpoint, and may be removed afterwards. Under torchrun the
    processes share the work of each step, and only the first one writes; they must see the same files.

    ``force`` overwrites a finished model without its checkpoint, a checkpoint of another recipe, and files of other
    programs.

    Raises:
        BitextmineError: the recipe, the corpora or the disk are at fault, the checkpoint is of another recipe, or the
            loss is no longer finite (the last good checkpoint stays).
    """
    run = run or Run()
    recipe = find_corpora(dataclasses.replace(recipe, max_line=run.max_line))
    planned = stages(recipe, out) if recipe.distil.epochs else [Planned(recipe, out)]
    for plan in planned:
        check_objectives(plan.recipe)
    check_model_output(out, force)
    keep_freed_memory()  # each step takes what the last one freed
    with join_world(run.device) as world, work_folder(out, world):
        for plan in planned:
            if plan.title:
                log.info("%s", plan.title)
            world.wait()  # until the first process has written the training before
            with work_folder(plan.out, world) as work:
                Job(plan, work, world, run, force).train(last=plan is planned[-1])
    return out
