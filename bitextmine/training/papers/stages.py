"""Multi-stage distillation: the trainings that a recipe with [distil] stands for.

After Ding et al. 2022, "Multi-stage Distillation Framework for Cross-Lingual Semantic Similarity Matching": a teacher
teaches a large assistant (Eq. 2), the student's piece vectors are aligned with the assistant's (Eq. 3), the assistant
teaches the student (Eq. 4), and the teacher teaches it with contrast (Eq. 5 to 9). Each stage is an ordinary recipe
that starts from the result of the one before.
"""

import dataclasses
from pathlib import Path

import numpy as np

from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, write_folder
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import BOTTLENECK, PIECES, SCALE, piece_vectors, read_weights
from bitextmine.run import Run
from bitextmine.training.data.cache import open_caches
from bitextmine.training.data.sampling import piece_frequencies
from bitextmine.training.recipe.keys import Distillation, Recipe
from bitextmine.training.reducing import principal_axes

FOLDERS = {1: "1-assistant", 2: "2-pieces", 3: "3-student", 4: "4-contrast"}
OBJECTIVES = {1: "distil", 2: "embedding", 3: "distil", 4: "distil"}
CONTRAST = {"soft": {"mcl": 1.0}, "bool": {"mcl_bool": 1.0}, "ce": {"mcl_ce": 1.0}, "none": {}}


@dataclasses.dataclass(frozen=True)
class Planned:
    """A training of a command.

    Attributes:
        title: its name in messages, if there are several.
        assistant: the folder of the encoder whose student it starts from (`make_student`).
    """

    recipe: Recipe
    out: Path
    title: str = ""
    assistant: Path | None = None


def stages(recipe: Recipe, out: Path) -> list[Planned]:
    """Return the trainings of a recipe with distil.epochs.

    The last is into ``out``, those before it into folders in ``out/work/stages``, with their weights in float32.
    """
    plan, folders = recipe.distil, (out / "work" / "stages").absolute()
    assistant = folders / FOLDERS[1]
    whole = dataclasses.replace(recipe.model, bottleneck=0, recurrent=0)
    asked = dataclasses.replace(recipe.model, layers=plan.layers or recipe.model.layers)
    numbers = [n for n, epochs in enumerate(plan.epochs, 1) if epochs and (n != 2 or asked.bottleneck)]
    cache = recipe.data.cache or str((out / "work" / "cache").absolute())
    recipe = dataclasses.replace(recipe, data=dataclasses.replace(recipe.data, cache=cache))
    student = next((n for n in numbers if n > 1), 0)  # the stage that begins with it
    planned: list[Planned] = []
    before = Path()
    for number in numbers:
        last = number == numbers[-1]
        if number == student:
            before = folders / "student" if asked != whole else assistant
        contrast = CONTRAST[plan.contrast] if number == 4 else {}
        teacher = recipe.teacher
        if number in (2, 3):
            teacher = dataclasses.replace(teacher, model=str(assistant), languages=())
        start, storage = str(before) if number > 1 else "", asked.storage if last else "float32"
        model = dataclasses.replace(whole if number == 1 else asked, start_from=start, storage=storage)
        objective, epochs = {OBJECTIVES[number]: 1.0, **contrast}, plan.epochs[number - 1]
        train = dataclasses.replace(recipe.train, objective=objective, epochs=epochs)
        own = plan if last else Distillation()  # later stages must not change the digests of earlier ones
        made = dataclasses.replace(recipe, model=model, train=train, teacher=teacher, distil=own)
        before = out if last else folders / FOLDERS[number]
        of = assistant if number == student and asked != whole else None
        planned.append(Planned(made, before, f"stage {number} of distillation", of))
    return planned


def make_student(recipe: Recipe, assistant: Path, work: Path, run: Run) -> None:
    """Write the student that a recipe starts from: an assistant's first layers, and smaller piece vectors.

    Bottleneck and piece vectors have the least squared error, each piece weighted by its frequency (the principal axes
    of the vectors' second moments).
    """
    m, (config, _) = recipe.model, read_folder(assistant)
    weights = dict(read_weights(config, assistant / WEIGHTS))
    vectors = piece_vectors(weights)
    weights.pop(SCALE, None)
    if m.bottleneck:
        tokenizer = Tokenizer(assistant / TOKENIZER, m.transliterate)
        caches = open_caches(work / "cache", recipe, tokenizer, run)
        frequencies = piece_frequencies(caches, tokenizer.vocab_size)
        wide = vectors.astype(np.float64)
        axes = principal_axes(wide.T @ (wide * frequencies[:, None]), m.bottleneck)
        vectors, weights[BOTTLENECK] = vectors @ axes, axes
    weights[PIECES] = vectors
    made = dataclasses.replace(config, layers=m.layers, bottleneck=m.bottleneck, recurrent=m.recurrent)
    dropped = tuple(f"layers.{i}." for i in range(made.own_layers, config.layers))
    kept = {name: array for name, array in weights.items() if not name.startswith(dropped)}
    folder = Path(m.start_from)
    folder.mkdir(parents=True, exist_ok=True)
    write_folder(folder, made, kept, assistant / TOKENIZER, dtype="float32")
