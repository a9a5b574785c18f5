"""Language identification on short lines: the share of lines given their own language, by identifier and language.

    python mine/bench_identify.py --data FOLDER --with eld --with lingua

FOLDER holds ntrex/ntrex.XX.txt.zst, everyday/ and everyday20/. News: three words in a row out of each of 500
sentences; everyday: 500 sentences of two to four words. py3langid is measured always, the others (eld, heliport,
lingua, pycld2: packages of these names, lingua-language-detector; a FastText model: its path) where asked for.
The last table has the lines in their own language that fall below a threshold of the column lang.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from harness import parser, table

from bitextmine.encoder.folder import CONFIG, packaged
from bitextmine.files.json_toml import read_json
from bitextmine.files.source import iter_lines
from bitextmine.languages.codes import same_code
from bitextmine.languages.identify import Languages

LANGS = read_json(packaged("world56") / CONFIG)["languages"]
FIRST = ("de", "es", "fr", "it")
LINES = 500
Guess = Callable[[list[str]], list[str]]


def news(folder: Path, lang: str, rng: random.Random) -> list[str]:
    """Return three words in a row of each long sentence."""
    rows = (line.split() for line in iter_lines(folder / f"ntrex/ntrex.{lang}.txt.zst"))
    found = [
        " ".join(words[(at := rng.randrange(len(words) - 2)) : at + 3]) for words in rows if len(words) > 5
    ]
    return rng.sample(found, LINES)


def everyday(folder: Path, lang: str, rng: random.Random) -> list[str]:
    """Return sentences of two to four words."""
    name = (
        f"queries.en-{lang}" if lang in FIRST else "queries.en-de" if lang == "en" else f"everyday.en-{lang}"
    )
    place = "everyday" if lang in (*FIRST, "en") else "everyday20"
    rows = list(iter_lines(folder / place / f"{name}.tsv.zst"))[1:]
    found = [text for row in rows if 2 <= len((text := row.split("\t")[lang != "en"]).split()) <= 4]
    return rng.sample(found, min(LINES, len(found)))


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
    if name == "lingua":
        from lingua import LanguageDetectorBuilder

        lingua = LanguageDetectorBuilder.from_all_languages().build()
        guessed = lingua.detect_languages_in_parallel_of
        return lambda lines: [it.iso_code_639_1.name.lower() if it else "und" for it in guessed(lines)]
    if name == "pycld2":
        import pycld2

        return lambda lines: [pycld2.detect(line.encode(), bestEffort=True)[2][0][1] for line in lines]
    import fasttext

    model = fasttext.load_model(name)
    return lambda lines: [model.predict(line)[0][0].removeprefix("__label__") for line in lines]


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--data", type=Path, required=True, help="folder of the benchmarks")
    command.add_argument("--with", action="append", default=[], dest="others", help="another identifier")
    args = command.parse_args()
    rng = random.Random(1)
    texts = {kind.__name__: {lang: kind(args.data, lang, rng) for lang in LANGS} for kind in (news, everyday)}

    def rows() -> Iterator[list[object]]:
        for name in ("py3langid", *args.others):
            guess = identifier(name)
            for kind, sides in texts.items():
                begin = time.process_time()
                guessed = {lang: guess(lines) for lang, lines in sides.items()}
                seconds = time.process_time() - begin
                right = [
                    100 * [same_code(code) for code in codes].count(lang) / len(codes)
                    for lang, codes in guessed.items()
                ]
                micros = 1e6 * seconds / sum(map(len, sides.values()))
                yield [kind, name, round(micros), *map(round, right), f"{np.mean(right):.1f}"]

    table(["", "identifier", "µs a line", *LANGS, "mean"], rows())
    print("\nlines in their own language that fall below a threshold of the column lang, %\n")
    known = Languages()
    limits = (0.05, 0.1, 0.2, 0.35, 0.5)
    shares = {
        kind: np.mean(
            [[(known.share(lines, lang) < x).mean() for x in limits] for lang, lines in sides.items()], axis=0
        )
        for kind, sides in texts.items()
    }
    table(
        ["", *map(str, limits)], ([kind, *(100 * share).tolist()] for kind, share in shares.items()), digits=1
    )


if __name__ == "__main__":
    main()
