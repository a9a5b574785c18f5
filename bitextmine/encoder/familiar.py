"""Warnings of text in languages that an encoder was not trained on, by its code and its script."""

import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from bitextmine.encoder.encoder import Encoder
from bitextmine.languages.codes import code_problem, count_scripts, is_stated, same_code, scripts_of
from bitextmine.shipped import SHIPPED, languages_of

log = logging.getLogger(__name__)

SAMPLE = 1000  # lines: enough for shares of a fifth
_CHARACTERS = 120  # of each
_MUCH = 0.2  # of a sample
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

    A fifth of the letters in an unknown script is too much.
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
    letters = count_scripts(lines, _CHARACTERS)
    scripts = frozenset().union(*map(scripts_of, known))
    foreign = Counter({name: count for name, count in letters.items() if name not in scripts})
    if foreign.total() <= _MUCH * letters.total():
        return None
    names = [name for name, _ in foreign.most_common(3)]
    shown = ", ".join(names) + (" and others" if len(foreign) > len(names) else "")
    share = 100 * foreign.total() / letters.total()
    script = f"{share:.0f}% of the letters in a sample are {shown}"
    return f"{script}, which {trained} (only on {stated}): expect poor vectors"


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
