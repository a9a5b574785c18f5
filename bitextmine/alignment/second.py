"""A second, larger encoder judges the links in doubt.

The costs of the last search tell how likely each step is (`marginals`). Those that are neither sure nor hopeless are
judged again: the second encoder embeds the text of their runs of sentences, and its distance (see `costs`) takes a
share of the place of the first one. It is scaled to have the same mean over these steps, weighted by how likely they
are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.lattice import Lattice, marginals
from bitextmine.alignment.windows import Floats, Windows
from bitextmine.embeddings.selection import SelectedVectors
from bitextmine.encoder.encoder import Encoder
from bitextmine.files.corpus import Corpus
from bitextmine.languages.codes import join_sentences
from bitextmine.run import Run

_SURE = 0.01  # the probability of a step that is hopeless; and what a sure one lacks to 1
_SHARE = 0.5  # of the distance that is the second encoder's


@dataclass
class SecondJudge:
    """A second encoder, its resources, and the number of runs of sentences that it embedded."""

    encoder: Encoder
    run: Run
    runs: int = 0
    _lock: Lock = field(default_factory=Lock)

    def blended(self, lattice: Lattice, distances: Floats, src: Windows, tgt: Windows, name: str) -> Floats:
        """Return the distances of all steps of a lattice, those in doubt by both encoders.

        Args:
            lattice: the costs by the first encoder.
            distances: (n + m + 1, width, kinds), by the first encoder.
            src: the source document.
            tgt: the target document.
            name: of the documents, for errors.

        Raises:
            BitextmineError: the encoder fails.
        """
        likely = marginals(lattice)
        doubt = np.nonzero((likely > _SURE) & (likely < 1 - _SURE))
        if not len(doubt[0]):
            return distances
        band, steps = lattice.band, np.array(lattice.steps)[doubt[2]]
        y = band.low[doubt[0]] + doubt[1]
        starts = np.stack([doubt[0] - y, y], axis=1)
        sides = []
        for side, windows in enumerate((src, tgt)):
            runs, own = np.unique(
                np.stack([starts[:, side], steps[:, side]], axis=1), axis=0, return_inverse=True
            )
            texts = [join_sentences(windows.lines[start : start + size]) for start, size in runs.tolist()]
            sides.append((self._vectors(texts, f"{name}, {('source', 'target')[side]}"), own.ravel()))
        (x, i), (z, j) = sides
        far = (1 - x @ z.mean(axis=0))[i] + (1 - z @ x.mean(axis=0))[j]
        again = 2 * (1 - np.einsum("ij,ij->i", x[i], z[j])) / np.maximum(far, 1e-3)
        first, weight = distances[doubt], likely[doubt]
        again *= (weight @ first) / max(float(weight @ again), 1e-9)
        out = distances.copy()
        out[doubt] = (1 - _SHARE) * first + _SHARE * again
        return out

    def _vectors(self, texts: list[str], name: str) -> NDArray[np.float32]:
        """Return the vectors (n, d) of texts, one document at a time."""
        rows = np.arange(len(texts))
        with self._lock, SelectedVectors(Corpus(texts, "und", name=name), self.encoder, self.run) as kept:
            kept.encode(rows)
            self.runs += len(rows)
            return kept.take(rows).astype(np.float32)
