"""The encoder that a training continues from: its weights as parameters of the model to train."""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import WEIGHTS, folder_hash, read_folder, read_ngrams
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.weights import PIECES, SCALE, piece_vectors, read_weights
from bitextmine.training.recipe import Recipe
from bitextmine.training.recipe.load import start_encoder

# Training pairs from which a language that is added to an encoder counts as known: with 2,000 it finds three in five
# translations, with 20,000 nine in ten (train/new-language.md).
ENOUGH_PAIRS = 5_000

# Root mean square of the entries of piece vectors as training leaves them. Without layers only directions matter, but
# learning rates depend on the scale, and a reduction leaves another one.
USUAL_SIZE = 0.125


@dataclasses.dataclass(frozen=True)
class Start:
    """An encoder to continue from; hash is its `folder_hash`."""

    name: str
    folder: Path
    config: EncoderConfig
    ngrams: tuple[str, ...]
    hash: str

    def continued(self, pairs: Mapping[str, int], dropout: float) -> EncoderConfig:
        """Return the configuration of the model that continues from it.

        pairs: those to train on by language, which is known if the encoder knew it, or from ENOUGH_PAIRS.
        """
        total = dict(sorted((Counter(self.config.pairs) + Counter(pairs)).items()))
        known = {lang for lang, count in total.items() if count >= ENOUGH_PAIRS}
        languages = tuple(sorted({*self.config.languages, *known}))
        return dataclasses.replace(self.config, languages=languages, pairs=total, dropout=dropout)

    def load_into(self, model: SentenceModel) -> None:
        """Load the encoder's weights into a model.

        Vectors of a model without layers are scaled to USUAL_SIZE by a power of two, which changes no direction.
        """
        state = dict(read_weights(self.config, self.folder / WEIGHTS))
        vectors = piece_vectors(state)
        state.pop(SCALE, None)
        if not self.config.layers:
            pieces = vectors[: self.config.vocab_size]  # without n-grams
            size = float(np.sqrt(np.square(pieces, dtype=np.float64).mean()))
            if size > 0:
                vectors = vectors * np.float32(2.0 ** round(np.log2(USUAL_SIZE / size)))
        state[PIECES] = vectors
        model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in state.items()})


def open_start(recipe: Recipe) -> Start | None:
    """Return the encoder of model.start_from, if any; BitextmineError if it is damaged."""
    if not recipe.model.start_from:
        return None
    folder, config = start_encoder(recipe)
    read_folder(folder)  # refuses a damaged vocabulary
    ngrams = tuple(read_ngrams(folder, config.ngrams))
    return Start(recipe.model.start_from, folder, config, ngrams, folder_hash(folder))
