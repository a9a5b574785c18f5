"""Train a small encoder in the four stages of Ding et al. (2022), for train/papers.md.

    python train/distil.py train/recipes/paper-distillation.toml --data FOLDER --out OUT

The teacher of the recipe teaches an assistant (Eq. 2); the student, the assistant with the bottleneck and the repeated
layers of the recipe, learns the output of the assistant's piece vectors (Eq. 3), then its sentence vectors (Eq. 4); at
last the teacher teaches the student, with contrast (Eq. 5, 8 or 9). Each stage is a training in a folder of OUT that
starts from the one before; OUT/4-contrast is the result. The same command resumes.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import bitextmine
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, write_folder
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import BOTTLENECK, PIECES, SCALE, piece_vectors, read_weights
from bitextmine.training.data.cache import open_caches
from bitextmine.training.data.sampling import piece_frequencies
from bitextmine.training.recipe import Recipe, load_recipe, resolve_corpora
from bitextmine.training.reducing import principal_axes

CONTRAST = {"soft": {"mcl": 1.0}, "bool": {"mcl_bool": 1.0}, "ce": {"mcl_ce": 1.0}, "none": {}}
STAGES = {"1-assistant": "distil", "2-pieces": "embedding", "3-student": "distil", "4-contrast": "distil"}


def distil(path: str, data: str | None, out: Path, epochs: list[float], contrast: str) -> None:
    """Run the stages but those of 0 epochs; finished ones are only written again."""
    recipe = load_recipe(path, folder=None if data is None else Path(data))
    rates = ("learning_rate", "embedding_learning_rate", "warmup")
    usual: dict[str, Any] = {f"train.{name}": getattr(recipe.train, name) for name in rates}
    usual["data.cache"] = str((out / "cache").absolute())
    assistant, start = out / "1-assistant", None
    stages = {name: passes for name, passes in zip(STAGES, epochs, strict=True) if passes}
    if not recipe.model.bottleneck:
        stages.pop("2-pieces", None)
    for name, passes in stages.items():
        folder = out / name
        settings = {**usual, "train.objective": {STAGES[name]: 1.0}, "train.epochs": passes}
        settings["model.storage"] = recipe.model.storage if name == [*stages][-1] else "float32"
        if name == "1-assistant":
            settings |= {"model.bottleneck": 0, "model.recurrent": 0}
        elif start == assistant:
            start = make_student(recipe, assistant, out)
        if name in ("2-pieces", "3-student"):
            settings |= {"teacher.model": str(assistant.absolute()), "teacher.languages": []}
        if name == "4-contrast":
            settings["train.objective"] |= CONTRAST[contrast]
        bitextmine.train(folder, path, data=data, start=start, settings=settings)
        start = folder


def make_student(recipe: Recipe, assistant: Path, out: Path) -> Path:
    """Write the assistant's first layers, and smaller piece vectors.

    Bottleneck and piece vectors have the least squared error, each piece weighted by its frequency (the principal axes
    of the vectors' second moments).
    """
    m, (config, _) = recipe.model, read_folder(assistant)
    weights = dict(read_weights(config, assistant / WEIGHTS))
    vectors = piece_vectors(weights)
    weights.pop(SCALE, None)
    if m.bottleneck:
        tokenizer = Tokenizer(assistant / TOKENIZER, m.transliterate)
        caches = open_caches(out / "cache", resolve_corpora(recipe), tokenizer)
        frequencies = piece_frequencies(caches, tokenizer.vocab_size)
        wide = vectors.astype(np.float64)
        axes = principal_axes(wide.T @ (wide * frequencies[:, None]), m.bottleneck)
        vectors, weights[BOTTLENECK] = vectors @ axes, axes
    weights[PIECES] = vectors
    made = dataclasses.replace(config, bottleneck=m.bottleneck, recurrent=m.recurrent)
    dropped = tuple(f"layers.{i}." for i in range(made.own_layers, config.layers))
    kept = {name: array for name, array in weights.items() if not name.startswith(dropped)}
    folder = out / "student"
    folder.mkdir(exist_ok=True)
    write_folder(folder, made, kept, assistant / TOKENIZER, dtype="float32")
    return folder


def main() -> None:
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("recipe", help="of the student")
    command.add_argument("--data", help="folder of the corpora")
    command.add_argument("--out", type=Path, required=True, help="folder of the stages")
    command.add_argument("--epochs", default="5,1,5,5", help="passes of each stage; 0 leaves one out")
    command.add_argument("--contrast", choices=CONTRAST, default="soft")
    args = command.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    distil(args.recipe, args.data, args.out, [float(each) for each in args.epochs.split(",")], args.contrast)


if __name__ == "__main__":
    main()
