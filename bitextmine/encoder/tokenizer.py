"""Tokenising with SentencePiece, in batches; each distinct word is cut into pieces once, and then looked up."""

import ctypes
import itertools
import os
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import sentencepiece

from bitextmine import compiled
from bitextmine.encoder.ngrams import SPACE, Ngrams
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.languages.romanize import romanize, transliterate

# Characters tokenised per piece wanted: a line of a megabyte then costs no more than a long sentence. A piece spans 16
# characters at most.
CHARACTERS_PER_PIECE = 64

# Words that the model is given in Latin letters: none, Greek and Cyrillic ones, or those of all scripts that have one.
Latin = bool | Literal["all"]

# In a model file: the name of the normalisation rules, followed by the rules. None of these rules reads across a space,
# and a line feed becomes one.
KNOWN_RULES = re.compile(rb"\n(?:\x08nmt_nfkc|\x0bnmt_nfkc_cf)\x12")


def speller(latin: Latin) -> Callable[[str], str]:
    """Return the function that spells a text as the model is given it."""
    return romanize if latin == "all" else transliterate if latin else str


class Tokenizer:
    """Cuts lines into pieces with a SentencePiece model, which also normalises and folds case.

    With ``transliterate`` the model is given Greek and Cyrillic words of four letters or more in Latin letters
    (`romanize.transliterate`), so that names and shared roots have the same pieces in all scripts; with "all" also
    words of other scripts, with one form of letters that look alike (`romanize`).

    By default a model's pieces end at spaces. A line's pieces are then those of its words, and each word is cut once
    and remembered: ten times as fast. SentencePiece's result for the whole line differs only where two ways to cut a
    word are equally likely to the last bit of a float32 sum (2 of 120,000 lines of Europarl).

    Raises:
        BitextmineError: the file is missing or is no SentencePiece model.
    """

    def __init__(self, path: str | os.PathLike[str], transliterate: Latin = False) -> None:
        self.path = Path(path)
        self.transliterate = transliterate
        if not self.path.is_file():
            raise BitextmineError(f"{self.path}: no such file: a model folder needs its tokenizer.model")
        self._model = sentencepiece.SentencePieceProcessor()
        try:
            self._model.LoadFromFile(str(self.path))
            self._names: list[str] = self._model.id_to_piece(list(range(self.vocab_size)))
        except (RuntimeError, OSError, UnicodeDecodeError) as e:
            raise BitextmineError(f"{self.path}: not a SentencePiece model, or a damaged one ({e})") from e
        self.ngrams: Ngrams | None = None
        self._words = Words() if self._is_by_words(self._names) else None

    @property
    def vocab_size(self) -> int:
        """Number of pieces in the vocabulary, without n-grams."""
        return int(self._model.get_piece_size())

    def names(self) -> list[str]:
        """Return the vocabulary as the model names it, piece i for id i."""
        return self._names.copy()

    def pieces(self) -> list[str]:
        """Return the vocabulary, piece i for id i; the unknown piece is an empty string."""
        names = self.names()
        names[self._model.unk_id()] = ""
        return names

    def scores(self) -> list[float]:
        """Return each piece's log-probability in a unigram vocabulary (in a BPE one: its negative rank)."""
        return [self._model.get_score(i) for i in range(self.vocab_size)]

    def add_ngrams(self, ngrams: Sequence[str]) -> None:
        """Give words of several pieces n-grams as well; raises BitextmineError as `Ngrams` does."""
        self.ngrams = Ngrams(ngrams, self.pieces())
        self._words = None if self._words is None else Words()  # drop words cut without n-grams

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Return the pieces of each line, cut to ``max_pieces``, and the number of lines cut.

        Runs on ``threads`` threads of its own, without the interpreter's lock.
        """
        if max_pieces is None:
            return self._encode(lines, np.iinfo(np.int64).max, threads)
        limit = max_pieces * CHARACTERS_PER_PIECE
        # Blanks have no pieces, and so would a line that begins with that many.
        lines = [line if len(line) <= limit else line.lstrip()[:limit] for line in lines]
        return self._encode(lines, max_pieces, threads)

    def _encode(self, lines: Sequence[str], most: int, threads: int) -> tuple[Pieces, int]:
        if not lines:
            return Pieces.from_lists([]), 0
        try:
            if self._words is None:
                return self._cut(lines, threads).first(most)
            text = "\n".join(lines)
            if text.count("\n") >= len(lines):  # not from a file, then
                text = "\n".join(line.replace("\n", " ") for line in lines)
            return self._words.encode(text, len(lines), most, partial(self._cut, threads=threads))
        except UnicodeEncodeError:
            # A lone surrogate, possible only in text made in Python, has no UTF-8.
            clean = [line.encode("utf-8", "replace").decode("utf-8") for line in lines]
            return self._encode(clean, most, threads)

    def _cut(self, texts: Sequence[str], threads: int = 1) -> Pieces:
        """Return the pieces of each text, and their n-grams, from SentencePiece."""
        spelled = map(speller(self.transliterate), texts)
        pieces = Pieces.from_lists(self._model.encode(list(spelled), num_threads=threads))
        return pieces if self.ngrams is None else self.ngrams.extend(pieces)

    def _is_by_words(self, names: Sequence[str]) -> bool:
        """Return True if a line can be cut word by word, with the same pieces.

        No piece continues after a space, a space alone is a piece (so that two unknown words stay two), and blanks are
        dropped and added as usual.
        """
        if not KNOWN_RULES.search(self._model.serialized_model_proto()):
            return False
        if any(SPACE in name[1:] for name in names) or SPACE not in names:
            return False
        parts = self._model.encode(["ab", "Abc,", "1"])
        return bool(self._model.encode("  ab Abc,   1 ") == [*parts[0], *parts[1], *parts[2]])


# --- by words ---

# Words remembered before the table begins anew: about 50 MB. (200,000 sentences of parliament hold 150,000 words.)
MAX_WORDS = 1 << 19


class Words:
    """Pieces of lines by way of their words, the parts between spaces; each distinct word is cut once.

    A table numbers the words; `scan` of a text yields the number of each word, where the words of each line end, and
    the new words in the order of their numbers. `pieces` puts together the pieces of each line. A call may be
    interrupted anywhere, by Ctrl-C or for lack of memory: words and their pieces become known together, in one
    assignment, and the next scan forgets whatever else the table holds. One thread at a time works on a text.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = _nothing()

    def __len__(self) -> int:
        return len(self._state[1])

    def encode(
        self, text: str, lines: int, most: int, cut: Callable[[list[str]], Pieces]
    ) -> tuple[Pieces, int]:
        """Return the first ``most`` pieces of each line of a text, and the number of lines that had more.

        text: ``lines`` lines, joined by line feeds; cut: returns the pieces of new words. Raises UnicodeEncodeError for
        a lone surrogate.
        """
        if text.count("\n") != lines - 1:
            raise ValueError(f"{lines} lines expected, found {text.count(chr(10)) + 1}")
        with self._lock:
            if len(self) > MAX_WORDS:
                self._state = _nothing()
            table, known = self._state
            number, ends, fresh = table.scan(text, lines, len(known))
            if fresh:
                new = cut(fresh)
                if len(new) != len(fresh):
                    raise ValueError(f"{len(fresh)} words were cut, but there are pieces of {len(new)}")
                # By hand: `Pieces.join` adds up all the lengths again.
                offsets = np.concatenate([known.offsets, known.offsets[-1] + new.offsets[1:]])
                known = Pieces(np.concatenate([known.ids, new.ids]), offsets)
                self._state = table, known
        return table.pieces(number, ends, known, most)


class CompiledTable:
    """The words of a text by number, in C; raises MemoryError as it fills."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._table = library.words_new()
        if not self._table:
            raise MemoryError("no room for a table of words")
        weakref.finalize(self, library.words_free, self._table)

    def scan(self, text: str, lines: int, known: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Return the number of each word, the end of each line's words, and the words from number ``known`` on."""
        number, ends, places, raw = self._scan(text, lines, known)
        at = places.tolist()
        fresh = [raw[begin : begin + size].decode() for begin, size in zip(at[::2], at[1::2], strict=True)]
        return number, ends, fresh

    def numbers(self, text: str, lines: int, known: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first two of `scan`; the words are those of the table if their number is below ``known``."""
        return self._scan(text, lines, known)[:2]

    def _scan(self, text: str, lines: int, known: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, bytes]:
        raw = text.encode()
        room = raw.count(b" ") + lines
        number, ends = np.empty(room, dtype=np.int32), np.empty(lines, dtype=np.int64)
        places = np.empty(2 * room, dtype=np.int64)
        there = np.frombuffer(raw, dtype=np.uint8)
        fresh = self._library.words_scan(self._table, known, there, len(raw), number, ends, places)
        if fresh == -2:
            raise ValueError(f"{known} words cannot be known to a table of {self.count()}")
        if fresh < 0:
            raise MemoryError(f"no room for a table of {self.count()} words")
        return number, ends, places[: 2 * fresh], raw

    def count(self) -> int:
        """Return the number of words in the table."""
        return int(self._library.words_count(self._table))

    def pieces(self, number: np.ndarray, ends: np.ndarray, known: Pieces, most: int) -> tuple[Pieces, int]:
        """Return each line's pieces, ``most`` at most, and the number of lines that had more."""
        offsets = np.empty(len(ends) + 1, dtype=np.int64)
        given = (number, ends, len(ends), known.ids, known.offsets, most, offsets)
        cut = self._library.words_pieces(*given, None)
        ids = np.empty(int(offsets[-1]), dtype=np.int32)
        self._library.words_pieces(*given, ids)
        return Pieces(ids, offsets), cut


class PlainTable(dict[str, int]):
    """The same in Python: a dictionary that numbers its keys as they come."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def scan(self, text: str, lines: int, known: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Return the same as `CompiledTable.scan`."""
        text.encode()  # a lone surrogate is an error there as well
        if known > len(self):
            raise ValueError(f"{known} words cannot be known to a table of {len(self)}")
        while len(self) > known:
            self.popitem()  # the last one that came
        split = [list(filter(None, line.split(" "))) for line in text.split("\n")]
        ends = np.cumsum(np.fromiter(map(len, split), dtype=np.int64, count=lines))
        words = itertools.chain.from_iterable(split)
        number = np.fromiter(map(self.__getitem__, words), dtype=np.int32, count=int(ends[-1]))
        fresh = list(itertools.islice(reversed(self), len(self) - known))
        return number, ends, fresh[::-1]

    def numbers(self, text: str, lines: int, known: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the same as `CompiledTable.numbers`."""
        return self.scan(text, lines, known)[:2]

    def pieces(self, number: np.ndarray, ends: np.ndarray, known: Pieces, most: int) -> tuple[Pieces, int]:
        """Return the same as `CompiledTable.pieces`."""
        words = known.take(number)
        offsets = words.offsets[np.concatenate([np.zeros(1, dtype=np.int64), ends])]
        return Pieces(words.ids, offsets).first(most)


def word_table() -> CompiledTable | PlainTable:
    """Return an empty table of words."""
    library = compiled.library("encoder")
    return PlainTable() if library is None else CompiledTable(library)


def _nothing() -> tuple[CompiledTable | PlainTable, Pieces]:
    """Return an empty table and the pieces of known words, of word i in row i."""
    return word_table(), Pieces.from_lists([])
