"""The encoder that a training continues from: its weights as parameters of the model to train."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from bitextmine.encoder.columns import piece_characters
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import WEIGHTS, folder_hash, read_folder, read_ngrams
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import CHARACTERS, PIECES, SCALE, piece_vectors, read_weights
from bitextmine.training.recipe import Recipe
from bitextmine.training.recipe.load import shaped, start_encoder

# Training pairs from which a language that is added to an encoder counts as known: with 2,000 it finds three in five
# translations, with 20,000 nine in ten (train/new-language.md).
ENOUGH_PAIRS = 5_000

# Root mean square of the entries of piece vectors as training leaves them. Without layers only directions matter, but
# learning rates depend on the scale, and `encoder reduce` leaves another one.
USUAL_SIZE = 0.125


@dataclasses.dataclass(frozen=True)
class Start:
    """An encoder to continue from; hash is its `folder_hash`."""

    name: str
    folder: Path
    config: EncoderConfig
    tokenizer: Tokenizer
    ngrams: tuple[str, ...]
    hash: str

    def grown_config(self, vocab_size: int, pairs: Mapping[str, int], dropout: float) -> EncoderConfig:
        """Return the configuration of the model that continues from it with ``vocab_size`` pieces.

        pairs: those to train on by language, which is known if the encoder knew it, or from ENOUGH_PAIRS.
        """
        total = {
            lang: self.config.pairs.get(lang, 0) + pairs.get(lang, 0)
            for lang in sorted({*self.config.pairs, *pairs})
        }
        known = {lang for lang, count in total.items() if count >= ENOUGH_PAIRS}
        return dataclasses.replace(
            self.config,
            vocab_size=vocab_size,
            languages=tuple(sorted({*self.config.languages, *known})),
            pairs=total,
            dropout=dropout,
        )

    def load_into(self, model: SentenceModel, pieces: Sequence[str]) -> None:
        """Load the encoder's weights into a model of `grown_config`, whose vocabulary ``pieces`` starts with its own.

        A new piece gets the sum of the vectors of the pieces and n-grams that the encoder cuts it into (with layers
        their mean). Vectors of a model without layers are scaled to USUAL_SIZE by a power of two, which changes no
        direction.
        """
        state = dict(read_weights(self.config, self.folder / WEIGHTS))
        old = piece_vectors(state)
        state.pop(SCALE, None)
        known = self.config.vocab_size
        new = [piece.replace("▁", " ") for piece in pieces[known:]]
        vectors = np.concatenate([old[:known], self._cut_up(new, old), old[known:]])
        if not self.config.layers:
            size = float(np.sqrt(np.square(vectors[:known], dtype=np.float64).mean()))
            if size > 0:
                vectors = vectors * np.float32(2.0 ** round(np.log2(USUAL_SIZE / size)))
        state[PIECES] = vectors
        if self.config.length_share:
            state[CHARACTERS] = np.concatenate(
                [state[CHARACTERS][:known], piece_characters(pieces[known:]), state[CHARACTERS][known:]]
            )
        model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in state.items()})

    def _cut_up(self, texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
        """Return (texts, d) float32, the encoder's vectors of new pieces."""
        found = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
        # A piece from inside a word is encoded as a word of its own, which is close enough to start from.
        plain, _ = self.tokenizer.encode([text.lstrip(" ") for text in texts])
        for i, (a, b) in enumerate(zip(plain.offsets[:-1], plain.offsets[1:], strict=True)):
            if b > a:
                found[i] = vectors[plain.ids[a:b]].sum(axis=0)
                if self.config.layers:
                    found[i] /= b - a
        return found


def open_start(recipe: Recipe) -> Start | None:
    """Return the encoder of model.start_from, if any; BitextmineError if it is damaged or of another shape."""
    if not recipe.model.start_from:
        return None
    folder, config = start_encoder(recipe)
    shaped(recipe, config, recipe.model.start_from)
    _, tokenizer = read_folder(folder)
    ngrams = tuple(read_ngrams(folder, config.ngrams))
    return Start(recipe.model.start_from, folder, config, tokenizer, ngrams, folder_hash(folder))
