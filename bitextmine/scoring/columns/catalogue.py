"""The columns of `score` by name, the sentence pairs that they are computed from, and requests for some of them."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import UsageError
from bitextmine.languages.clean import readable
from bitextmine.languages.codes import same_code, script_code, usual_length
from bitextmine.languages.identify import Languages, is_installed
from bitextmine.mining.dedup import line_key
from bitextmine.scoring.columns.evidence import Vocabulary, Words, evidence, negations
from bitextmine.scoring.columns.numbers import agreement, number_counts
from bitextmine.scoring.columns.words import common, count_of, distinct
from bitextmine.scoring.options import WINDOW
from bitextmine.shipped import SHIPPED, languages_of

# `filter` and `report` use columns of texts alone, and do not wait for encoders to be loaded.
if TYPE_CHECKING:
    from bitextmine.encoder import Encoder
    from bitextmine.encoder.pieces import Pieces
    from bitextmine.scoring.columns.neighbourhood import Around, Neighbourhood, PairVectors
    from bitextmine.scoring.columns.quality import Quality

# The texts on each side that a margin, or a median of lengths, needs to mean anything.
LEAST_AROUND = 64
# Added to both lengths before their logarithms are compared, so that short texts may differ more.
SMOOTH = 10
_SURELY_NOT = 1e-6  # the least probability that log odds are taken of
_LEAST_CUT = 40  # characters of a text whose halves have identifiable languages
_NO_LETTERS = bytes(c for c in range(128) if chr(c) not in string.ascii_letters)
_BLANK = b" \t\n\v\f\r"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """A column: its name, its function, and its needs.

    Attributes:
        is_text: the cells are text, not numbers.
        encoder, neighbours: it needs an encoder, or neighbourhoods of vectors.
        second: it needs a second encoder, too.
        languages: it needs the languages that the sides should be in.
        identifies: it identifies languages.
        better_with_languages: it uses the languages if they are stated.
    """

    name: str
    compute: Callable[[PairTexts], Any]
    is_text: bool = False
    encoder: bool = False
    neighbours: bool = False
    second: bool = False
    languages: bool = False
    identifies: bool = False
    better_with_languages: bool = False


@dataclass(frozen=True)
class Request:
    """Columns to compute.

    Attributes:
        names: columns of the catalogue.
        langs: the languages that the sides should be in, both or neither ("").
        margin, k, window: the margin, over the `k` nearest among the last `window` pairs.
        batch_tokens: subword pieces encoded together.
        second: there is a second encoder.
    """

    names: tuple[str, ...] = ()
    langs: tuple[str, str] = ("", "")
    margin: str = "ratio"
    k: int = 4
    window: int = WINDOW
    batch_tokens: int | None = None
    second: bool = False

    def checked(self) -> Request:
        """Return the request with codes that the language identifier knows, before the first row is read.

        Raises:
            BitextmineError: the language identifier is needed and missing.
            UsageError: one language without the other, or one that cannot be identified; a column without its encoder.
        """
        src, tgt = self.langs
        if bool(src) != bool(tgt):
            given, missing = ("--src", "--tgt") if src else ("--tgt", "--src")
            raise UsageError(f"{given} requires {missing}: give both languages, or neither")
        if self.uses("languages") and not src:
            raise UsageError(
                "the column lang needs both languages: pass --src and --tgt, as in --src en --tgt fr"
            )
        if not self.second and (needy := [name for name in self.names if COLUMNS[name].second]):
            raise UsageError(f"the column {needy[0]} needs a second encoder: pass --second")
        if src and self.uses("languages", "better_with_languages"):
            return replace(self, langs=(_known(src), _known(tgt)))
        if self.uses("identifies"):
            identifier()
        return self

    def uses(self, *needs: str) -> bool:
        """Return True if any column has one of these needs (attributes of `Column`)."""
        return any(getattr(COLUMNS[name], need) for name in self.names for need in needs)


def _known(language: str) -> str:
    # The identifier knows these; it is loaded beside the encoder.
    ours = same_code(language) in languages_of(SHIPPED[-1]) and is_installed()
    code = same_code(language) if ours else identifier().code(language)
    if code is None:
        raise UsageError(
            f"unsupported language code '{language}'; supported: {', '.join(sorted(identifier().codes))}"
        )
    return code


@dataclass
class Tools:
    """What the columns of a request are computed with.

    Attributes:
        encoder, second: the encoders; None if no column needs them.
    """

    request: Request = Request()
    encoder: Encoder | None = None
    second: Encoder | None = None
    _vocabulary: Vocabulary = field(default_factory=Vocabulary, repr=False, compare=False, kw_only=True)

    @cached_property
    def of_second(self) -> Tools | None:
        """Return the tools with the second encoder in place of the first; None without one."""
        return None if self.second is None else Tools(self.request, self.second, _vocabulary=self._vocabulary)

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """Return the pairs of the stream so far."""
        from bitextmine.scoring.columns.neighbourhood import Neighbourhood

        return Neighbourhood(self.request.k, self.request.window)

    @cached_property
    def quality(self) -> Quality:
        """Return the networks of the column quality for the encoder."""
        from bitextmine.scoring.columns.quality import Quality

        assert self.encoder is not None
        return Quality(self.encoder)

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the words of the stream, or an empty vocabulary if they have become too many."""
        if self._vocabulary.is_full:
            self._vocabulary = Vocabulary()
        return self._vocabulary

    @cached_property
    def compares_pieces(self) -> bool:
        """Return True if the column quality compares pieces, which are then also encoded."""
        return "quality" in self.request.names and self.quality.by_pieces

    @cached_property
    def knows_languages(self) -> bool:
        """Return False if the encoder states languages without one of these two."""
        from bitextmine.encoder.familiar import knows

        assert self.encoder is not None
        return all(knows(self.encoder, lang) for lang in self.request.langs)


@cache
def identifier() -> Languages:
    """Return the language identifier, loaded once; BitextmineError if it is not installed."""
    return Languages()


class PairTexts:
    """Sentence pairs and their columns, each computed once.

    Texts are seen as `mine` sees them, without markup (`languages.clean.readable`). Blocks of a stream must come in
    order: their neighbourhoods include the pairs before them.

    Args:
        src, tgt: n texts each.
        tools: what the columns are computed with.
        is_readable: the texts are without markup already.
    """

    def __init__(
        self, src: Sequence[str], tgt: Sequence[str], tools: Tools, *, is_readable: bool = False
    ) -> None:
        self.src, self.tgt = (src, tgt) if is_readable else (readable(src), readable(tgt))
        self.tools, self.langs = tools, tools.request.langs
        self._columns: dict[str, Any] = {}
        self._first: PairTexts | None = None  # the same pairs with the first of two encoders

    def take(self, rows: Sequence[int]) -> PairTexts:
        """Return some of the pairs; their columns are computed anew."""
        src, tgt = ([side[row] for row in rows] for side in (self.src, self.tgt))
        return PairTexts(src, tgt, self.tools, is_readable=True)

    def __len__(self) -> int:
        return len(self.src)

    def column(self, name: str) -> Any:
        """Return the values (n,): float64, or a list of str for a column of text."""
        if name not in self._columns:
            column = COLUMNS[name]
            if self._first is not None and not column.encoder:
                self._columns[name] = self._first.column(name)
            else:
                self._columns[name] = column.compute(self)
        return self._columns[name]

    @cached_property
    def lengths(self) -> tuple[Floats, Floats]:
        """Return the characters of both sides (n,), without blanks at the ends."""
        src, tgt = (
            np.array([len(text.strip()) for text in side], np.float64) for side in (self.src, self.tgt)
        )
        return src, tgt

    @cached_property
    def vectors(self) -> PairVectors:
        """Return the unit vectors of both sides, (n, d) each."""
        encoder, tokens = self.tools.encoder, self.tools.request.batch_tokens
        assert encoder is not None
        if self.tools.compares_pieces:
            src, tgt = (encoder.encode_pieces(side, batch_tokens=tokens) for side in self.pieces)
            return src.astype(np.float32, copy=False), tgt.astype(np.float32, copy=False)
        return (encoder.encode(self.src, batch_tokens=tokens), encoder.encode(self.tgt, batch_tokens=tokens))

    @cached_property
    def pieces(self) -> tuple[Pieces, Pieces]:
        """Return the pieces of both sides, as the encoder has them."""
        encoder = self.tools.encoder
        assert encoder is not None
        src, tgt = (
            encoder.tokenizer.encode(texts, encoder.max_pieces, encoder.run.thread_count)[0]
            for texts in (self.src, self.tgt)
        )
        return src, tgt

    @cached_property
    def around(self) -> Around:
        """Return the neighbourhoods of the pairs."""
        return self.tools.neighbourhood.around(self.src, self.tgt, self.vectors)

    @cached_property
    def second(self) -> PairTexts:
        """Return the pairs as the second encoder sees them."""
        assert self.tools.of_second is not None
        again = PairTexts(self.src, self.tgt, self.tools.of_second, is_readable=True)
        again._first = self
        return again

    @cached_property
    def words(self) -> tuple[Words, Words]:
        """Return the words of both sides."""
        vocabulary = self.tools.vocabulary
        return vocabulary.read(self.src), vocabulary.read(self.tgt)

    @cached_property
    def number_counts(self) -> NDArray[np.int64]:
        """Return the counts (n, 3) of matched, lone and clashing numbers."""
        counts = [number_counts(src, tgt, self.langs) for src, tgt in zip(self.src, self.tgt, strict=True)]
        return np.array(counts, dtype=np.int64).reshape(-1, 3)

    @cached_property
    def negations(self) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Return the number of negating words of the texts of each side (n,), None where no words are known."""
        src, tgt = map(negations, self.words, self.langs)
        return src, tgt

    def each(self, function: Callable[[str, str], float]) -> Floats:
        """Return a function of two texts for every pair."""
        return np.fromiter(map(function, self.src, self.tgt), dtype=np.float64, count=len(self))

    def inputs(self) -> Floats:
        """Return the INPUTS (n, m) of the networks of the column quality."""
        from bitextmine.scoring.columns.quality import COPIED, similarity

        stated, ones = all(self.langs), np.ones(len(self))
        ratio = _margin(self, "ratio") if self.around.size >= LEAST_AROUND else None
        length = np.clip(_length(self), -2, 2)
        columns = [
            similarity(self.column("cosine"), ratio),
            0 * ones if ratio is None else np.log(np.clip(ratio, 0.2, 4)),
            ones if ratio is None else 0 * ones,
            np.abs(length),
            length,
            self.column("numbers"),
            np.maximum(0, self.column("copy") - COPIED),
            np.minimum(1, 2 * self.column("lang")) if stated else ones,
            np.minimum(1, 2 * _half_lang(self)) if stated else ones,
            ones * stated,
        ]
        signs = evidence(*self.words, self.negations, self.number_counts)
        return np.concatenate([np.stack(columns, axis=1), signs], axis=1)

    def piece_inputs(self) -> Floats:
        """Return the PIECE_INPUTS (n, m) of the network of the column quality that compares pieces."""
        quality = self.tools.quality
        matched = quality.matched(self.words, self.pieces)
        return quality.piece_inputs(matched, self.column("cosine"), self.langs, self.negations)


def letters(text: str) -> float:
    """Return the share of letters among the bytes that are not blank; bytes beyond ASCII count as letters."""
    raw = text.encode("utf-8", "surrogatepass")
    visible = len(raw.translate(None, _BLANK))
    return len(raw.translate(None, _NO_LETTERS)) / visible if visible else 0.0


def _length_ratio(pairs: PairTexts) -> Floats:
    """Return the ratio of the longer to the shorter side in characters; inf if one is empty, 1 if both are."""
    shorter, longer = np.minimum(*pairs.lengths), np.maximum(*pairs.lengths)
    return np.divide(longer, shorter, out=np.where(longer > 0, np.inf, 1.0), where=shorter > 0)


def _copy(pairs: PairTexts) -> Floats:
    """Return the share of common words among the distinct words of the side that has more of them.

    A letter is a word in scripts without spaces. Case, digits and punctuation do not count; without words equal texts
    have 1, others 0. Names and technical terms are rightly copied: only a value near 1 in a longer pair means that
    nothing was translated.
    """
    letters = [distinct(side.letters) for side in pairs.words]
    most = np.maximum(*(count_of(side, len(pairs)) for side in letters))
    found: Floats = common(letters[0], letters[1], len(pairs)) / np.maximum(most, 1)
    for row in np.flatnonzero(most == 0).tolist():
        found[row] = pairs.src[row].strip() == pairs.tgt[row].strip() != ""
    return found


def pair_script(src: str, tgt: str) -> str:
    """Return the ISO 15924 code of the script of both sides, such as Latn, or both codes if they differ: Latn-Cyrl."""
    first, second = script_code(src), script_code(tgt)
    return first if first == second else f"{first}-{second}"


def pair_hash(src: str, tgt: str, level: str) -> int:
    """Return 64 bits that equal pairs share, the same in every run; `level` is that of `dedup.line_key`."""
    text = f"{line_key(src, level)}\t{line_key(tgt, level)}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def pair_key(src: str, tgt: str) -> str:
    """Return 16 hexadecimal digits shared by pairs that differ in case, digits, punctuation and blanks alone."""
    return f"{pair_hash(src, tgt, 'near'):016x}"


def _cosine(pairs: PairTexts) -> Floats:
    return np.einsum("ij,ij->i", *pairs.vectors, dtype=np.float64)


def _margin(pairs: PairTexts, kind: str | None = None) -> Floats:
    from bitextmine.mining.margin import margin

    around = pairs.around
    return margin(pairs.column("cosine"), around.src, around.tgt, kind or pairs.tools.request.margin)


def _lang(pairs: PairTexts) -> Floats:
    src, tgt = map(identifier().share, (pairs.src, pairs.tgt), pairs.langs)
    return np.minimum(src, tgt).astype(np.float64)


def _half_lang(pairs: PairTexts) -> Floats:
    """Return how far each half of both sides is in its own language and not in the other's, the least of four."""
    least = np.ones(len(pairs))
    for texts, own, other in ((pairs.src, *pairs.langs), (pairs.tgt, *pairs.langs[::-1])):
        halves = list(map(_halves, texts))
        distinct = list(dict.fromkeys(half for both in halves for half in both))
        share = dict(zip(distinct, identifier().share(distinct, own, other).tolist(), strict=True))
        least = np.minimum(least, [min(share[first], share[second]) for first, second in halves])
    return least


def _halves(text: str) -> tuple[str, str]:
    """Return a text cut at the space nearest to its middle; a short one twice."""
    middle = text.find(" ", len(text) // 2)
    return (text, text) if len(text) < _LEAST_CUT else (text[:middle], text[middle:])


def log_lengths(pairs: PairTexts, usual: float = 1.0) -> Floats:
    """Return the logarithm of target over source length, against the usual ratio."""
    src, tgt = pairs.lengths
    return np.log((tgt + SMOOTH) / (src * usual + SMOOTH))


def _length(pairs: PairTexts) -> Floats:
    """Return `log_lengths`, against the ratio usual for the languages or in the block."""
    usual = usual_length(*pairs.langs)
    if usual is None and len(pairs) >= LEAST_AROUND:
        src, tgt = pairs.lengths
        usual = float(np.median(tgt / np.maximum(src, 1)))
    return log_lengths(pairs, 1.0 if usual is None else usual)


def _quality(pairs: PairTexts) -> Floats:
    """Return the probabilities by the networks; of two encoders that of the mean of their log odds."""
    own = _own_quality(pairs)
    if pairs.tools.second is None:
        return own
    both = (np.clip(p, _SURELY_NOT, 1 - _SURELY_NOT) for p in (own, _own_quality(pairs.second)))
    odds = sum(np.log(p) - np.log1p(-p) for p in both) / 2
    return np.where(own > 0, 1 / (1 + np.exp(-odds)), 0.0)


def _own_quality(pairs: PairTexts) -> Floats:
    quality, known = pairs.tools.quality, pairs.tools.knows_languages
    more = pairs.piece_inputs() if known and quality.by_pieces else None
    p = quality.probabilities(pairs.inputs(), more, pairs.langs, known=known)
    return np.where(np.minimum(*pairs.lengths) > 0, p, 0.0)  # the networks never saw an empty side


COLUMNS = {
    column.name: column
    for column in (
        Column("cosine", _cosine, encoder=True),
        Column("margin", _margin, encoder=True, neighbours=True),
        Column("cosine2", lambda pairs: pairs.second.column("cosine"), encoder=True, second=True),
        Column(
            "margin2", lambda pairs: pairs.second.column("margin"), encoder=True, neighbours=True, second=True
        ),
        Column("length_ratio", _length_ratio),
        Column("numbers", lambda pairs: agreement(pairs.number_counts)),
        Column("copy", _copy),
        Column("lang", _lang, languages=True, identifies=True),
        Column("quality", _quality, encoder=True, neighbours=True, better_with_languages=True),
        Column("shorter", lambda pairs: np.minimum(*pairs.lengths)),
        Column("longer", lambda pairs: np.maximum(*pairs.lengths)),
        Column("loops", lambda pairs: np.maximum(*(side.loops for side in pairs.words))),
        Column("letters", lambda pairs: pairs.each(lambda s, t: min(letters(s), letters(t)))),
        Column("src_lang", lambda pairs: identifier().guess(pairs.src), is_text=True, identifies=True),
        Column("tgt_lang", lambda pairs: identifier().guess(pairs.tgt), is_text=True, identifies=True),
        Column("script", lambda pairs: list(map(pair_script, pairs.src, pairs.tgt)), is_text=True),
        Column("key", lambda pairs: list(map(pair_key, pairs.src, pairs.tgt)), is_text=True),
    )
}
