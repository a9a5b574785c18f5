"""Language identification, thousands of texts at a time.

The model is py3langid's (the extra ``languages``); its automaton runs over a block of texts side by side.
"""

import re
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from bitextmine.compiled import library
from bitextmine.errors import MissingPackage, explained
from bitextmine.languages.codes import UNDETERMINED, same_code
from bitextmine.languages.romanize import fold_lookalikes

# Read of each text; more does not improve the guess.
CHARACTERS = 240
# Texts walked side by side: few enough that their states stay in the processor's cache.
BLOCK = 2048
# Characters that may need normalising: all but Latin letters without combining marks, and common punctuation.
_OTHER = re.compile("[^\0-\u02ff\u2010-\u2027]")


def is_installed() -> bool:
    """Return True if py3langid is installed."""
    import importlib.util

    return importlib.util.find_spec("py3langid") is not None


class Languages:
    """py3langid's naive Bayes model over byte sequences; languages are named by the codes of the table.

    The probabilities are py3langid's own (``norm_probs=True``: softmax of scores divided by the square root of the
    text's bytes) to float32 rounding, about ten times as fast.

    Args:
        what: the use of the model, for the error.

    Raises:
        MissingPackage: py3langid is not installed.
    """

    def __init__(self, what: str = "telling languages") -> None:
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError:
            raise MissingPackage(f"{what} needs the package py3langid", "languages") from None
        model = _read(LanguageIdentifier, MODEL_FILE)
        self._next, self._row, self._output, self._weights, self._prior, codes = model
        self._labels: list[str] = codes
        # A language written in two scripts has two classes; the second counts for the first.
        first: dict[str, int] = {}
        self._twins = [
            (first[label], i) for i, label in enumerate(self._labels) if first.setdefault(label, i) != i
        ]
        self.codes = frozenset(self._labels)
        self._kept: dict[tuple[int, ...], np.ndarray] = {}

    def code(self, language: str) -> str | None:
        """Return the model's code of a language (``fr`` for ``fr-CA`` and ``fra``), or None if it is unknown."""
        code = same_code(language)
        return code if code in self.codes else None

    def guess(self, texts: Sequence[str]) -> list[str]:
        """Return the most probable language of each text, "und" for a text without letters."""
        guesses: list[str] = []
        for scores, lettered in self._scores(texts, range(len(self._labels))):
            best = scores.argmax(axis=1)
            guesses += [
                self._labels[i] if has_letters else UNDETERMINED
                for i, has_letters in zip(best.tolist(), lettered.tolist(), strict=True)
            ]
        return guesses

    def share(self, texts: Sequence[str], language: str, other: str | None = None) -> np.ndarray:
        """Return P(language) / (P(language) + P(other)) of each text, (n,) float32; 0.5 for a text without letters.

        Without ``other`` it is the most probable other language: above 0.5 if the language is the best guess.
        """
        asked = [i for i, label in enumerate(self._labels) if other is None or label in (language, other)]
        own = asked.index(self._labels.index(language))
        parts = []
        for scores, lettered in self._scores(texts, asked):
            mine = scores[:, own].copy()
            if other is None:
                scores[:, own] = -np.inf
            rival = scores.max(axis=1) if other is None else scores[:, asked.index(self._labels.index(other))]
            # exp overflows to infinity for a hopeless text, and its share is then 0 as it should be.
            with np.errstate(over="ignore"):
                share = 1 / (1 + np.exp(rival - mine))
            parts.append(np.where(lettered, share, np.float32(0.5)))
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)

    def _scores(self, texts: Sequence[str], asked: Sequence[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield log probabilities (n, asked), up to a constant per text, and the texts with letters, by block."""
        whole = len(asked) == len(self._labels)
        weights = self._weights if whole else self._columns(tuple(asked))
        prior = self._prior[asked]
        twins = [(asked.index(code), asked.index(twin)) for code, twin in self._twins if code in asked]
        for start in range(0, len(texts), BLOCK):
            samples = [_sample(text) for text in texts[start : start + BLOCK]]
            lettered = np.array([s[:1].isalpha() or any(map(str.isalpha, s)) for s in samples], dtype=bool)
            raw = [sample.encode("utf-8", "surrogatepass") for sample in samples]
            sizes = np.fromiter(map(len, raw), np.int64, len(raw))
            scores = self._sums(np.frombuffer(b"".join(raw), dtype=np.uint8), sizes, weights)
            found = scores[:, 0] != 0  # the weights are negative
            scores[found] += prior
            scores *= (1 / np.sqrt(np.maximum(sizes, 1))).astype(np.float32)[:, None]
            for code, twin in twins:
                scores[:, code] = np.logaddexp(scores[:, code], scores[:, twin])
                scores[:, twin] = -np.inf
            yield scores, lettered

    def _columns(self, asked: tuple[int, ...]) -> np.ndarray:
        """Return the weights of some classes, (features, asked), remembered for two selections, as copying is slow."""
        if asked not in self._kept:
            self._kept = dict([*self._kept.items()][-1:])
            self._kept[asked] = np.ascontiguousarray(self._weights[:, asked])
        return self._kept[asked]

    def _sums(self, letters: np.ndarray, sizes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the sum over the features of each text of weight * log(1 + count), (n, classes) float32.

        letters: the bytes of all texts, one after another; sizes: (n,) bytes of each; weights: (features, classes).
        """
        logs = np.log1p(np.arange(sizes.max(initial=0) + 1, dtype=np.float32))
        sums = np.zeros((len(sizes), weights.shape[1]), dtype=np.float32)
        if compiled := library("languages"):
            model = self._next, self._row, self._output, weights, *weights.shape, logs
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            if not compiled.language_scores(*model, letters, offsets, len(sizes), sums):
                raise MemoryError
            return sums
        begin, features, counts = self._counts(letters, sizes)
        order, live = _longest_first(np.diff(begin))
        for nth, count in enumerate(live):  # of the features of a text, one after another, as in C
            at = begin[order[:count]] + nth
            sums[:count] += logs[counts[at], None] * weights[features[at]]
        sums[order] = sums.copy()
        return sums

    def _counts(self, letters: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where each text begins among its features (n + 1,), and all features, in order, and their counts."""
        order, live = _longest_first(sizes)
        place = (np.cumsum(sizes) - sizes)[order]
        state, features = np.zeros(len(sizes), dtype=np.int64), [self._output[:0]]
        for count in live:
            state = self._next.take(self._row.take(state[:count]) * 256 + letters.take(place[:count]))
            features.append(self._output.take(state))
            place += 1
        # A key is the number of the text times that of all features, plus the feature; of a block, it fits in 31 bits.
        begin = np.arange(len(sizes) + 1, dtype=np.int32) * np.int32(len(self._weights))
        text = begin[order]
        keys = np.concatenate([text[:0], *(text[:count] for count in live)])
        numbers = np.concatenate(features)
        keys, counts = np.unique((keys + numbers)[numbers >= 0], return_counts=True)
        return np.searchsorted(keys, begin), keys % len(self._weights), counts


def _longest_first(sizes: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return an order of texts by falling size, and how many are longer than each number below the largest."""
    order = np.argsort(-sizes, kind="stable")
    live = np.searchsorted(-sizes[order], -np.arange(int(sizes.max(initial=0))), side="left")
    return order, live.tolist()


@cache
def _read(kind: Any, file: str) -> tuple[Any, ...]:
    """Return automaton, weights of its features (features, classes), prior and codes; unpacking takes half a second."""
    with explained(f"{tempfile.gettempdir()}: cannot unpack the model of py3langid", "; free some space"):
        model: Any = kind.from_model_file(file, norm_probs=True)
    return (
        np.asarray(model.tk_nextmove, dtype=np.uint32),
        np.asarray(model.tk_row, dtype=np.int32),
        np.asarray(model.tk_output, dtype=np.int32),
        np.asarray(model.nb_ptc, dtype=np.float32),
        np.asarray(model.nb_pc, dtype=np.float32),
        [same_code(str(label)) for label in model.nb_classes],
    )


def _sample(text: str) -> str:
    """Return the part of a text that is read, prepared as py3langid does."""
    text = text.strip()[:CHARACTERS]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    if text.isupper():
        text = text.lower()
    if text.isascii() or not _OTHER.search(text):
        return text
    return fold_lookalikes(unicodedata.normalize("NFC", text))
