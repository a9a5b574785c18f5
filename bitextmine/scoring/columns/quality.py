"""The probability that a pair is a translation to learn from, by a small network over the other columns.

Three networks of one hidden layer each, which tell right pairs and kinds of wrong ones apart: one for encoders whose
piece vectors can be compared (`piece_features`), one for all others, and one for languages that the encoder does not
know. The first gets the results of a fourth, which judges names. `mine/fit_quality.py` fits them to pairs of many
languages that are right or spoilt by rule, and puts them into the encoder's folder; an encoder without a file of its
own gets the second and third of the default encoder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.encoder.deletions import DELETIONS, Deletions, PieceTable, deletions
from bitextmine.encoder.folder import QUALITY, file_digest
from bitextmine.encoder.ngrams import SPACE
from bitextmine.encoder.pieces import PieceRows, Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import check_finite, read_arrays
from bitextmine.errors import BitextmineError
from bitextmine.languages.codes import STOPS, UNSPACED_LETTER, same_code
from bitextmine.mining.piece_features import FEATURES, PieceFeatures, Sentences, sums
from bitextmine.mining.scorer import ScorerNetwork
from bitextmine.scoring.columns import evidence
from bitextmine.scoring.columns.names import NAME_DIRECTIONS, NAME_INPUTS, Names, context, spelled
from bitextmine.shipped import shipped_folder

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

# Inputs of all networks; that for unknown languages does without the first ENCODER_INPUTS.
ENCODER_INPUTS = 3
INPUTS = (
    *("similarity", "log margin", "no margin", "length", "longer target", "numbers", "copy"),
    *("lang", "half lang", "languages stated", *evidence.NAMES),
)
# The network `pieces` also gets the cosine. Of each side: the lowest cosine of a name and of a negating word with its
# counterpart; the distance of the name most unlike the other side's words; the number of such names; by the network
# `words`, the highest log odds that a name lacks a counterpart, and the sum of the probabilities. Of both sides: the
# higher cosine, and the lower distance, log odds and sum. Then the negations of each side, and the difference; how well
# the sentences of each side match (`_sentence_inputs`); the features of all pieces; what the pair would gain without
# some of its words (`deletions`); the logarithm of the ratio of the weights of both sides (`Networks.weights`), and its
# absolute value.
SIDE_INPUTS = 6
BOTH_INPUTS = 4
NEGATION_INPUTS = 4
SENTENCE_INPUTS = 4
PIECE_INPUTS = (
    1 + 2 * SIDE_INPUTS + BOTH_INPUTS + NEGATION_INPUTS + 2 * SENTENCE_INPUTS + FEATURES + DELETIONS + 2
)
NAME_STEPS = 16  # of a unit of log odds, in `Networks.names`
WEIGHT_STEPS = 32  # of a unit of the logarithm, in `Networks.weights`
WEIGHT_SMOOTH = 2.0  # added to the weight of a text
_SURE = 0.85  # cosine of a name that was translated, however it is spelled
_APART = 0.5  # distance of a name without a counterpart
_HIGHEST_BY_TEXTS = 0.5  # above the limits of the presets
_MOST = 3.0  # of any count
_MOST_DIFFERENCE = 1.5
_MOST_ODDS = 6.0  # of a name without a counterpart
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_ROWS = 64  # multiplied at once
_MATCHED = 0.45  # mean cosine of the pieces of a sentence that the other side has

# The types and sizes of the tables of `Networks`; -1: any.
_TABLES: dict[str, tuple[Any, ...]] = {
    "negation": (np.int32, -1, 3),
    "names": (np.int8, -1),
    "directions": (np.float32, NAME_DIRECTIONS, -1),
    "weights": (np.int8, -1),
    "languages": (np.int32, -1, 3),
}

# Names and technical terms are rightly copied, up to this share of the words.
COPIED = 0.5

# The cosine of a clean pair depends on language and subject (an earlier encoder: median 0.56 for German Europarl, 0.84
# for French manuals), its margin hardly does (1.5 and 1.9). This line maps margin to cosine on familiar text.
_SLOPE, _SHIFT, _HIGHEST = 0.6, -0.1, 1.6


def similarity(cosine: NDArray[np.float64], ratio: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return max(cosine, 0, 0.6 min(ratio, 1.6) - 0.1), (n,); `ratio` is the ratio margin (None: too few neighbours).

    A pair that stands out from its neighbourhood is good even if cosines are low there; one that does not may still
    have near copies around it.
    """
    cosine = np.maximum(cosine, 0.0)
    return cosine if ratio is None else np.maximum(cosine, _SLOPE * np.minimum(ratio, _HIGHEST) + _SHIFT)


@dataclass(frozen=True)
class KindNetwork(ScorerNetwork):
    """A network whose outputs are the logits of right pairs and of kinds of wrong ones.

    The log odds of a right pair are those of a softmax, times line[0], plus line[1]. Shapes: out (kinds, h), constant
    (kinds,), the right pairs first, line (2,).
    """

    line: NDArray

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray], network: str, features: int) -> KindNetwork:
        """Return a network of so many features from the tensors of a file; ValueError if it is another."""
        found = cls(*(arrays.get(f"{network}.{field.name}", np.zeros(0)) for field in fields(cls)))
        units, kinds = found.bias.size, found.constant.size
        wanted = (units, features), (units,), (kinds, units), (kinds,), (features,), (features,), (2,)
        if any(getattr(found, f.name).shape != shape for f, shape in zip(fields(cls), wanted, strict=True)):
            raise ValueError(f"{network}: not a network of {features} features")
        return found

    def score(self, hidden: NDArray) -> NDArray[np.float64]:
        """Return (n,) log odds from the whole input (n, h) of the hidden layer."""
        logits = np.empty((len(hidden), len(self.constant)))
        weights = self.out.T.astype(np.float64)
        for start in range(0, len(hidden), _ROWS):  # small products, which BLAS does not spread over threads
            part = slice(start, start + _ROWS)
            np.matmul(np.tanh(hidden[part] + self.bias), weights, out=logits[part])
        logits += self.constant
        highest = logits[:, 1:].max(axis=1)
        others = highest + np.log(np.exp(logits[:, 1:] - highest[:, None]).sum(axis=1))
        found: NDArray[np.float64] = (logits[:, 0] - others) * self.line[0] + self.line[1]
        return found


@dataclass(frozen=True)
class Networks:
    """The networks of a file: `plain` takes INPUTS, `pieces` PIECE_INPUTS more; they return log odds.

    `texts` takes INPUTS without those of the encoder, for pairs in languages that it does not know. `words` takes
    NAME_INPUTS, and returns the log odds that a name has a counterpart.

    `negation` is int32 (m, 3): a language (`language_number`), a piece, and for how many thousandths of a negating word
    of English it counts; in English, beyond those words themselves.
    `names` is int8 (pieces,): the log odds that a capitalised word keeps its spelling in a translation are the mean
    of those of its pieces, in sixteenths.
    `directions` is float32 (NAME_DIRECTIONS, d): those in which the vectors of names differ most.
    `weights` is int8 (pieces,): the logarithms, in steps of 1/32, of factors of `usual_weights`, with which the two
    sides of a translation weigh the same.
    `languages` is int32 (l, 3): a language, and in thousandths what is added to the logarithm of the weight of its
    texts, and to the log odds of its pairs by the network `pieces`, so that about as many right pairs of each language
    pass.
    """

    texts: KindNetwork
    plain: KindNetwork
    pieces: KindNetwork
    words: KindNetwork
    negation: NDArray[np.int32]
    names: NDArray[np.int8]
    directions: NDArray[np.float32]
    weights: NDArray[np.int8]
    languages: NDArray[np.int32]

    @classmethod
    def read(cls, path: Path) -> Networks:
        """Read a safetensors file; BitextmineError if it holds no networks of this version."""
        arrays = read_arrays(path)
        count = len(INPUTS)
        wanted = {"texts": count - ENCODER_INPUTS, "plain": count}
        wanted |= {"pieces": count + PIECE_INPUTS, "words": NAME_INPUTS}
        tables: dict[str, Any] = {
            field.name: arrays.pop(field.name, None) for field in fields(cls) if field.name not in wanted
        }
        check_finite(arrays, path)
        try:
            networks: dict[str, Any] = {
                name: KindNetwork.of(arrays, name, inputs) for name, inputs in wanted.items()
            }
        except ValueError as e:
            raise BitextmineError(
                f"{path}: not the networks of the column quality ({e}); fit them again"
            ) from None
        for name, table in tables.items():
            kind, *shape = _TABLES[name]
            if table is None or table.dtype != kind or not _fits(table.shape, shape):
                raise BitextmineError(f"{path}: no table '{name}' of this version; fit it again")
        return cls(**networks, **tables)


def _fits(found: tuple[int, ...], wanted: Sequence[int]) -> bool:
    return len(found) == len(wanted) and all(b in (-1, a) for a, b in zip(found, wanted, strict=True))


def language_number(code: str) -> int:
    """Return a number for a code, by which the tables of `Networks` name a language."""
    return int.from_bytes(same_code(code).encode(), "big")


def usual_weights(names: Sequence[str], norms: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the geometric means (pieces,) of the characters and the norm of each piece, 0 for n-grams.

    Args:
        names: of the pieces in the vocabulary.
        norms: of all pieces, n-grams included, float32 (pieces,).
    """
    usual = np.zeros(len(norms))
    characters = np.fromiter(map(len, names), np.float64, len(names))
    usual[: len(names)] = np.sqrt(characters * norms[: len(names)] / max(norms.mean(), 1e-12))
    return usual


@dataclass(frozen=True)
class Matched:
    """Words and pieces of both sides, and the cosine of each piece with the most similar one of the other side.

    `features` are those of `PieceFeatures`, (n, FEATURES).
    """

    words: tuple[evidence.Words, evidence.Words]
    pieces: tuple[Pieces, Pieces]
    best: tuple[NDArray[np.float32], NDArray[np.float32]]
    features: NDArray[np.float32]
    deletions: Deletions


class Quality:
    """The networks for an encoder, and the comparison of its pieces."""

    def __init__(self, encoder: Encoder, tables: Mapping[str, Any] | None = None) -> None:
        self._encoder = encoder
        self._tables = tables  # of `Networks`, instead of those in the file, and `words`
        self._negating: dict[str, NDArray[np.float64]] = {}
        folder: Path | None = getattr(encoder, "folder", None)
        own = None if folder is None else folder / QUALITY
        self.by_pieces = bool(own and own.exists()) and isinstance(
            getattr(encoder, "network", None), PieceRows
        )
        self._file = own if self.by_pieces and own is not None else shipped_folder("default") / QUALITY

    @cached_property
    def _networks(self) -> Networks:
        return Networks.read(self._file)

    @property
    def digest(self) -> str:
        """Return the first 16 digits of the SHA-256 of the networks' file; BitextmineError if that is damaged."""
        _ = self._networks  # raises
        return file_digest(self._file).hex()[:16]

    @cached_property
    def _pieces(self) -> PieceFeatures:
        return PieceFeatures(*self._encoder.piece_rows())

    def piece_inputs(
        self,
        matched: Matched,
        cosine: NDArray[np.float64],
        langs: tuple[str, str],
        negations: tuple[NDArray[np.int64] | None, NDArray[np.int64] | None],
    ) -> NDArray[np.float64]:
        """Return (n, PIECE_INPUTS) of n pairs; `negations` are those of `PairTexts`."""
        pieces, best = matched.pieces, matched.best
        words = []
        negating = ("", "") if any(side is None for side in negations) else langs
        for side, code in enumerate(negating):
            inputs, names = self.marked_words(matched, side, code)
            if len(names.row):
                row, network = names.row, self._of_names
                doubt = np.clip(-network.score(network.drive(names.signs)), -_MOST_ODDS, _MOST_ODDS)
                np.maximum.at(inputs[:, 2], row, names.apart)
                np.add.at(inputs[:, 3], row, names.apart > _APART)
                np.maximum.at(inputs[:, 4], row, doubt)
                np.add.at(inputs[:, 5], row, 1 / (1 + np.exp(-doubt)))
            inputs[:, [3, 5]] = np.minimum(inputs[:, [3, 5]], _MOST)
            words.append(inputs)
        lower = np.minimum(*words)
        both = (np.maximum(words[0][:, 0], words[1][:, 0]), *lower[:, [2, 4, 5]].T)
        no = [np.zeros(len(cosine)), np.zeros(len(cosine))]
        if all(langs):
            for side, code in enumerate(langs):
                no[side] = sums(self.negating(code)[pieces[side].ids], pieces[side])
                if same_code(code) == "en" and (words_of := negations[side]) is not None:
                    no[side] += words_of
        apart = np.clip(no[0] - no[1], -_MOST_DIFFERENCE, _MOST_DIFFERENCE)
        negation = (*np.minimum(no, _MOST), apart, np.abs(apart))
        sentences = [self._sentence_inputs(*side) for side in zip(pieces, best, strict=True)]
        ratio = np.subtract(
            *(self._log_weight(*side) for side in zip(pieces[::-1], langs[::-1], strict=True))
        )
        return np.column_stack(
            [
                *(cosine, *words, *both, *negation, *sentences, matched.features),
                *(matched.deletions.features, ratio, np.abs(ratio)),
            ]
        )

    def matched(self, words: tuple[evidence.Words, evidence.Words], pieces: tuple[Pieces, Pieces]) -> Matched:
        """Return how well n pairs of texts match."""
        src, tgt = pieces
        best = np.empty(len(src.ids), dtype=np.float32), np.empty(len(tgt.ids), dtype=np.float32)
        every = [Sentences(side, np.arange(len(side))) for side in (src, tgt)]
        features = self._pieces.features(every[0], every[1], best)
        return Matched(words, pieces, best, features, deletions(pieces, self.piece_table))

    def marked_words(self, matched: Matched, side: int, code: str) -> tuple[NDArray[np.float64], Names]:
        """Return the inputs (n, SIDE_INPUTS) of a side, without the network's part, and the names to give to it.

        code: the language of the negating words; "" for none.
        """
        own, other, best = matched.words[side], matched.words[1 - side], matched.best[side]
        (row, kind, place), begin, end = self._words(
            matched.pieces[side], evidence.marked_words(own, code), own.numbers.lengths
        )
        real = self._spell[matched.pieces[side].ids]
        count, total = (
            np.concatenate([[0.0], np.cumsum(each, dtype=np.float64)]) for each in (real, best * real)
        )
        cosine = (total[end] - total[begin]) / np.maximum(count[end] - count[begin], 1)
        inputs = np.zeros((len(own.texts), SIDE_INPUTS))
        inputs[:, :2], inputs[:, 4] = 1, -_MOST_ODDS
        np.minimum.at(inputs, (row, kind), cosine)
        unsure = np.flatnonzero((kind == 0) & (cosine < _SURE))
        words, apart, same = spelled(own.texts, other.texts, row[unsure], place[unsure])
        lacked = np.flatnonzero(apart)  # the others are there, letter by letter
        some = unsure[lacked]
        row, begin, end = row[some], begin[some], end[some]
        odds, lowest, count, vectors = self._of_pieces(matched, side, begin, end)
        deleted = matched.deletions
        in_context = deleted.words[side][deleted.word_of[side][begin]]
        means = (
            sums(values.astype(np.float64), pieces) / np.maximum(pieces.lengths, 1)
            for values, pieces in zip(matched.best, matched.pieces, strict=True)
        )
        signs = (
            *(cosine[some], lowest, odds, apart[lacked], np.log1p(count), same[lacked]),
            *in_context.T[:3],
            np.log(in_context[:, 3] + 1e-3),
            *context(own, other, row, place[some]),
            *[mean[row] for mean in means][:: 1 - 2 * side],
            *deleted.features[row, -2:].T,
            *vectors.T,
        )
        return inputs, Names(row, [words[i] for i in lacked], np.stack(signs, axis=1))

    def _of_pieces(
        self, matched: Matched, side: int, begin: NDArray[np.int64], end: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.float32]]:
        """Return signs of words (n,) from their pieces, `begin` to `end` of all those of a side.

        The log odds that each keeps its spelling, the lowest cosine with the other side, the number of pieces, and the
        components (n, NAME_DIRECTIONS) of its vector.
        """
        ids = matched.pieces[side].ids
        at = Pieces(np.arange(len(ids)), np.stack([begin, end], axis=1).ravel()).take(
            2 * np.arange(len(begin))
        )
        lowest = np.ones(len(at))
        values = np.where(self._spell[ids[at.ids]], matched.best[side][at.ids], 1)
        np.minimum.at(lowest, np.repeat(np.arange(len(at)), at.lengths), values)
        # Not the marks around the word, which the other side has, too.
        words = Pieces(ids[at.ids], at.offsets).keep(~self._marks[ids[at.ids]])
        odds = sums(self._names[words.ids], words) / np.maximum(words.lengths, 1)
        return odds, lowest, words.lengths, self._directed(words)

    def _directed(self, words: Pieces) -> NDArray[np.float32]:
        """Return the components (n, NAME_DIRECTIONS) of the vectors of words in the directions of names."""
        rows, scale, *_ = self.piece_table
        ids, at = np.unique(words.ids, return_inverse=True)
        each = np.empty((len(ids), NAME_DIRECTIONS), dtype=np.float32)
        directions = self._of_own_pieces("directions").T
        for start in range(0, len(ids), _ROWS):
            some = ids[start : start + _ROWS]
            np.matmul(scale[some, None] * rows[some], directions, out=each[start : start + _ROWS])
        found = np.zeros((len(words), NAME_DIRECTIONS), dtype=np.float32)
        full = words.lengths > 0
        if full.any():
            found[full] = np.add.reduceat(each[at], words.offsets[:-1][full])
        return found

    @cached_property
    def _of_names(self) -> KindNetwork:
        return self._networks.words if self._tables is None else self._tables["words"]

    @cached_property
    def piece_table(self) -> PieceTable:
        """Return the vectors of pieces by the mean norm, and the pieces that begin a word of any script."""
        rows, norms = self._encoder.piece_rows()
        scale = (norms / max(float(norms.mean()), 1e-12) * self._pieces.inverse).astype(np.float32)
        begins, names = self._begins.copy(), self._tokenizer.names()
        begins[: len(names)] |= [UNSPACED_LETTER.search(name) is not None for name in names]
        return PieceTable(rows, scale, begins, self._marks)

    def _table(self, name: str) -> NDArray[Any]:
        table: NDArray[Any] = getattr(self._networks, name) if self._tables is None else self._tables[name]
        return table

    def _of_language(self, code: str, column: int) -> float:
        """Return a column of `Networks.languages`, 0 for a language that it has not."""
        numbers, *values = self._table("languages").T
        return float(values[column][numbers == language_number(code)].sum()) / 1000 if code else 0.0

    def _log_weight(self, pieces: Pieces, code: str) -> NDArray[np.float64]:
        """Return the logarithms (n,) of the weights of n texts in a language, "" if it is not stated."""
        total = sums(self._weights[pieces.ids], pieces)
        return np.log(total * np.exp(self._of_language(code, 0)) + WEIGHT_SMOOTH)

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        table = self._of_own_pieces("weights")
        usual = usual_weights(self._tokenizer.names(), self._encoder.piece_rows()[1])
        return usual * np.exp(table / WEIGHT_STEPS)

    def _of_own_pieces(self, name: str) -> NDArray[Any]:
        """Return a table (pieces,) or (m, d); BitextmineError if it is that of another encoder."""
        table, rows = self._table(name), self._encoder.piece_rows()[0]
        own, what = (len(rows), "pieces") if table.ndim == 1 else (rows.shape[1], "dimensions")
        if table.shape[-1] != own:
            raise BitextmineError(
                f"{self._file}: {name} of {table.shape[-1]:,} {what}, but the encoder has {own:,}"
            )
        return table

    def negating(self, code: str) -> NDArray[np.float64]:
        """Return the negations that each piece of the vocabulary counts for in a language, (pieces,)."""
        if code not in self._negating:
            weight_of = np.zeros(len(self._encoder.piece_rows()[0]))
            numbers, pieces, weights = self._table("negation").T
            own = (numbers == language_number(code)) & (pieces < len(weight_of))
            weight_of[pieces[own]] = weights[own] / 1000
            self._negating[code] = weight_of
        return self._negating[code]

    def _sentence_inputs(self, pieces: Pieces, best: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return (n, SENTENCE_INPUTS) of one side: signs of a sentence that the other side lacks.

        The lowest mean of `best` over a sentence, that less the mean over the text, and the logarithms of the weight
        that the worst sentence loses and of the number of sentences. Means are weighted by the norms of the pieces;
        sentences of one piece, as in a list's number, do not count.

        Args:
            pieces: n texts.
            best: the cosine of each piece with the most similar one of the other side.
        """
        ends, norms = self._ends
        word = ~ends[pieces.ids]
        weight = norms[pieces.ids] * word
        matched = weight * np.maximum(best, 0)
        begins = np.zeros(len(word), dtype=bool)
        begins[pieces.offsets[:-1][pieces.lengths > 0]] = True
        begins[1:] |= word[1:] & ~word[:-1]
        sentences = Pieces(pieces.ids, np.append(np.flatnonzero(begins), len(begins)))
        text = np.repeat(np.arange(len(pieces)), pieces.lengths)[begins]
        overall, each = (sums(matched, of) / np.maximum(sums(weight, of), 1e-9) for of in (pieces, sentences))
        long = sums(word.astype(np.float64), sentences) > 1
        lowest, lost = overall.copy(), np.zeros(len(pieces))
        np.minimum.at(lowest, text[long], each[long])
        np.maximum.at(lost, text[long], (sums(weight, sentences) * np.maximum(_MATCHED - each, 0))[long])
        count = np.bincount(text[long], minlength=len(pieces))
        return np.stack([lowest, lowest - overall, np.log1p(lost), np.log1p(count)], axis=1)

    @property
    def _tokenizer(self) -> Tokenizer:
        tokenizer = self._encoder.tokenizer
        assert isinstance(tokenizer, Tokenizer)
        return tokenizer

    @cached_property
    def _ends(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return flags of the pieces that end a sentence, and the norms of all pieces by their mean, (pieces,)."""
        norms = self._encoder.piece_rows()[1].astype(np.float64)
        ends = np.zeros(len(norms), dtype=bool)
        names = [name.lstrip(SPACE) for name in self._tokenizer.names()]
        ends[: len(names)] = [name != "" and not name.strip(STOPS) for name in names]
        return ends, norms / max(norms.mean(), 1e-12)

    @cached_property
    def _begins(self) -> NDArray[np.bool_]:
        """Return flags of the pieces that begin a word, (pieces,), False for n-grams."""
        begins = np.zeros(len(self._names), dtype=bool)
        names = self._tokenizer.names()
        begins[: len(names)] = [name.startswith(SPACE) for name in names]
        return begins

    @cached_property
    def _marks(self) -> NDArray[np.bool_]:
        """Return flags of the pieces without letters and digits, (pieces,), False for n-grams."""
        marks = np.zeros(len(self._names), dtype=bool)
        names = self._tokenizer.names()
        marks[: len(names)] = [_LETTER_OR_DIGIT.search(name) is None for name in names]
        return marks

    @cached_property
    def _spell(self) -> NDArray[np.bool_]:
        """Return flags of the pieces that spell words: neither marks nor n-grams, (pieces,)."""
        return ~self._marks & (np.arange(len(self._marks)) < len(self._tokenizer.names()))

    @cached_property
    def _names(self) -> NDArray[np.float64]:
        """Return `Networks.names` in log odds."""
        return self._of_own_pieces("names") / NAME_STEPS

    def _words(
        self, pieces: Pieces, where: NDArray[np.int64], words: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return those of the words marked in n texts that are found again, and where the pieces of each begin and end.

        Args:
            pieces: n texts.
            where: the text, kind (0 a name, 1 a negating word) and place of each (3, m).
            words: the number of words of each text (n,).
        """
        begins = self._begins[pieces.ids]
        begun = np.concatenate([[0], np.cumsum(begins)])
        first = begun[pieces.offsets]  # the number of each text's first word; the last: of all words
        # Another number of words: the text was cut, or normalisation changed the spaces.
        where = where[:, (np.diff(first) == words)[where[0]]]
        word = first[where[0]] + where[2]
        starts = np.append(np.flatnonzero(begins), len(begins))
        # Pieces before the beginning of a text's first word count as its own.
        begin = np.where(where[2] > 0, starts[word], pieces.offsets[where[0]])
        return where, begin, np.minimum(starts[word + 1], pieces.offsets[where[0] + 1])

    def probabilities(
        self,
        inputs: NDArray[np.float64],
        more: NDArray[np.float64] | None,
        langs: tuple[str, str] = ("", ""),
        *,
        known: bool = True,
    ) -> NDArray[np.float64]:
        """Return the probabilities (n,) of pairs with INPUTS (n, m), and PIECE_INPUTS if `by_pieces`.

        Unless `known`, only the texts count, as the encoder does not know their languages; a wrong translation can
        look right then, so there is a highest probability.
        """
        network, shift = self._networks.plain, 0.0
        if not known:
            inputs, network = inputs[:, ENCODER_INPUTS:], self._networks.texts
        elif more is not None:
            inputs, network = np.concatenate([inputs, more], axis=1), self._networks.pieces
            shift = sum(self._of_language(code, 1) for code in langs)
        odds = network.score(network.drive(inputs)) + shift
        result = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
        return result if known else np.minimum(result, _HIGHEST_BY_TEXTS)
