"""Warnings of text in languages that an encoder was not trained on, from code, script and identification."""

import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from bitextmine.encoder.encoder import Encoder
from bitextmine.languages.codes import (
    UNDETERMINED,
    code_problem,
    count_scripts,
    is_stated,
    same_code,
    scripts_of,
)
from bitextmine.languages.identify import Languages, is_installed
from bitextmine.shipped import SHIPPED, languages_of

log = logging.getLogger(__name__)

# Lines sampled: enough for shares of a fifth, and done in a tenth of a second.
SAMPLE = 1000
_CHARACTERS = 120
_MUCH = 0.2  # of a sample
_LETTERS = 20  # shorter lines cannot be identified
_ASKED = 200  # lines; fewer are not worth loading the identifier, which takes a second
HOW_POOR = " (how poor, and what helps: train/new-language.md)"


def sampled(lines: Iterable[str], seen: int = 20 * SAMPLE) -> list[str]:
    """Sample the first ``seen`` lines evenly: all of up to SAMPLE lines, else SAMPLE / 2 to SAMPLE of them."""
    taken: list[str] = []
    step = 1
    for number, line in enumerate(itertools.islice(lines, seen)):
        if number % step == 0:
            taken.append(line)
            if len(taken) > SAMPLE:
                taken, step = taken[::2], 2 * step
    return taken


def knows(encoder: Encoder, lang: str) -> bool:
    """Return False for a language that the encoder was not trained on, by its own account."""
    known = {same_code(code) for code in encoder.languages}
    return not known or not is_stated(lang) or same_code(lang) in known


def unfamiliar(encoder: Encoder, lang: str, lines: Sequence[str]) -> str | None:
    """Return a warning about a sample of lines in ``lang`` (or ""); None also if the encoder states no languages.

    A fifth of the sample in an unknown script is too much; so is a fifth in unknown languages, if py3langid is
    installed and 200 lines are long enough.
    """
    known = {same_code(code) for code in encoder.languages}
    if not known:
        return None
    stated = ", ".join(encoder.languages)
    trained = f"the encoder '{encoder.name}' was not trained on"
    if not knows(encoder, lang):
        if few := encoder.pairs.get(lang):
            advice = _advice(lang, encoder.name)
            return f"the encoder '{encoder.name}' was trained on only {few:,} pairs of '{lang}': {advice}"
        return f"{trained} '{lang}' (only on {stated}): {_advice(lang, encoder.name)}"
    expect = f"which {trained} (only on {stated}): expect poor vectors"
    letters = count_scripts(lines, _CHARACTERS)
    scripts = frozenset().union(*map(scripts_of, known))
    foreign = Counter({name: count for name, count in letters.items() if name not in scripts})
    if foreign.total() > _MUCH * letters.total():
        share = 100 * foreign.total() / letters.total()
        return f"{share:.0f}% of the letters in a sample are {_first(foreign)}, {expect}"
    long = [line for line in lines if sum(map(str.isalpha, line[:_CHARACTERS])) >= _LETTERS]
    if len(long) < _ASKED or not is_installed():
        return None
    with contextlib.suppress(OSError):  # no room to unpack its model; a warning is not worth failing
        guesses = Counter(
            code for code in Languages().guess(long) if code not in known and code != UNDETERMINED
        )
        if guesses.total() > _MUCH * len(long):
            share = 100 * guesses.total() / len(long)
            return f"{share:.0f}% of the lines in a sample look like {_first(guesses)}, {expect}"
    return None


def _advice(lang: str, name: str) -> str:
    """Return the advice to correct a code, or to use a packaged encoder that knows the language, or that none does."""
    if problem := code_problem(lang):
        return problem
    for other in SHIPPED:
        if other != name and same_code(lang) in map(same_code, languages_of(other)):
            return f"use --model {other}, which was"
    return f"expect poor vectors{HOW_POOR}"


def warn_unfamiliar(encoder: Encoder, name: str, lang: str, lines: Sequence[str]) -> bool:
    """Log the warning of `unfamiliar`, if there is one, with the name of the text; return True if there is."""
    if (problem := unfamiliar(encoder, lang, lines)) is not None:
        log.warning("%s: %s", name, problem)
    return problem is not None


def _first(counts: Counter[str]) -> str:
    """Return the most frequent three."""
    names = [name for name, _ in counts.most_common(3)]
    return ", ".join(names) + (" and others" if len(counts) > len(names) else "")
