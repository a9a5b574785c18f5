"""Language identification on short lines: the share of lines given their own language, by language and identifier.

    python mine/bench_identify.py --data FOLDER --with eld --with lingua

FOLDER holds ntrex/ntrex.XX.txt.zst, everyday/ and everyday20/. News: three words in a row out of each of 500
sentences; everyday: 500 sentences of two to four words, in the languages that have any. Three letters count as a word
where no spaces separate words. py3langid is measured always, others where asked for: eld, heliport, pycld2, lingua
(the package lingua-language-detector). The last table has the lines in their own language that fall below a threshold
of the column lang.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from harness import parser, table

from bitextmine.encoder.folder import CONFIG
from bitextmine.files.json_toml import read_json
from bitextmine.files.source import iter_lines
from bitextmine.languages.codes import language, same_code
from bitextmine.languages.identify import Languages
from bitextmine.shipped import shipped_folder

LANGS = read_json(shipped_folder("world56") / CONFIG)["languages"]
LINES = 500
LETTERS = 3  # of a word, without spaces
Guess = Callable[[list[str]], list[str]]


def words(text: str, lang: str) -> list[str]:
    row = language(lang)
    if row is None or row.spaces:
        return text.split()
    return [text[i : i + LETTERS] for i in range(0, len(text), LETTERS)]


def news(folder: Path, lang: str, rng: random.Random) -> list[str]:
    """Return three words in a row of each long sentence."""
    rows = (words(line, lang) for line in iter_lines(folder / f"ntrex/ntrex.{lang}.txt.zst"))
    joiner = " " if language(lang).spaces else ""
    cuts = [joiner.join(row[(at := rng.randrange(len(row) - 2)) : at + 3]) for row in rows if len(row) > 5]
    return rng.sample(cuts, LINES)


def everyday(folder: Path, lang: str, rng: random.Random) -> list[str]:
    """Return sentences of two to four words; none where there are no sentences of the language."""
    other = "de" if lang == "en" else lang
    for path in folder.glob(f"everyday*/*.en-{other}.tsv.zst"):
        texts = (row.split("\t")[lang != "en"] for row in list(iter_lines(path))[1:])
        short = [text for text in texts if 2 <= len(words(text, lang)) <= 4]
        return rng.sample(short, min(LINES, len(short)))
    return []


def identifier(name: str) -> Guess:
    """Return a function that names the languages of lines."""
    if name == "py3langid":
        return Languages().guess
    if name == "eld":
        from eld import LanguageDetector

        detector = LanguageDetector()
        return lambda lines: [detector.detect(line).language or "und" for line in lines]
    if name == "heliport":
        from heliport import Identifier

        heliport = Identifier()
        return lambda lines: [str(heliport.identify(line))[:3] for line in lines]
    if name == "pycld2":
        import pycld2

        return lambda lines: [pycld2.detect(line.encode(), bestEffort=True)[2][0][1] for line in lines]
    from lingua import LanguageDetectorBuilder

    lingua = LanguageDetectorBuilder.from_all_languages().build()
    guessed = lingua.detect_languages_in_parallel_of
    return lambda lines: [it.iso_code_639_1.name.lower() if it else "und" for it in guessed(lines)]


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--data", type=Path, required=True, help="folder of the benchmarks")
    libraries = ("eld", "heliport", "pycld2", "lingua")
    command.add_argument("--with", action="append", default=[], dest="others", choices=libraries)
    args = command.parse_args()
    rng = random.Random(1)
    texts = {
        kind.__name__: {lang: lines for lang in LANGS if (lines := kind(args.data, lang, rng))}
        for kind in (news, everyday)
    }
    right: dict[str, dict[str, float]] = {}
    micros: list[object] = []
    for name in ("py3langid", *args.others):
        guess = identifier(name)
        for kind, sides in texts.items():
            begin = time.process_time()
            guessed = {lang: [same_code(code) for code in guess(lines)] for lang, lines in sides.items()}
            micros.append(1e6 * (time.process_time() - begin) / sum(map(len, sides.values())))
            right[f"{name}, {kind}"] = {
                lang: 100 * codes.count(lang) / len(codes) for lang, codes in guessed.items()
            }

    def rows() -> Iterator[list[object]]:
        for lang in LANGS:
            yield [lang, *(column.get(lang) for column in right.values())]
        yield ["mean", *(float(np.mean([*column.values()])) for column in right.values())]
        yield ["µs a line", *micros]

    table(["", *right], rows(), digits=1)
    print("\nlines in their own language that fall below a threshold of the column lang, %\n")
    known = Languages()
    limits = (0.05, 0.1, 0.2, 0.35, 0.5)

    def below() -> Iterator[list[object]]:
        for kind, sides in texts.items():
            shares = [known.share(lines, lang) for lang, lines in sides.items()]
            yield [kind, *(100 * float(np.mean([(share < x).mean() for share in shares])) for x in limits)]

    table(["", *map(str, limits)], below(), digits=1)


if __name__ == "__main__":
    main()
