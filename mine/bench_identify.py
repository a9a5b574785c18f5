"""Language identification on short lines: the share of lines given their own language, by identifier and language.

Example:  python mine/bench_identify.py --data FOLDER --with eld --with lingua

FOLDER holds ntrex/ntrex.XX.txt.zst, everyday/ and everyday20/. News: three words in a row out of each of 500
sentences; everyday: 500 sentences of two to four words. py3langid is measured always, the others (eld, heliport,
langid, lingua, pycld2: packages of these names, lingua-language-detector; a FastText model: its path) where asked for.
The last table has the lines in their own language that fall below a threshold of the column lang.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bitextmine.encoder.folder import CONFIG, packaged
from bitextmine.files.jsonfile import read_json
from bitextmine.files.lines import iter_lines
from bitextmine.languages.identify import Languages

LANGS = read_json(packaged("europe20") / CONFIG)["languages"]
FIRST = ("de", "es", "fr", "it")
LINES = 500
Guess = Callable[[list[str]], list[str]]


def news(folder: Path, lang: str, rng: random.Random) -> list[str]:
    """Return three words in a row of each long sentence."""
    rows = (line.split() for line in iter_lines(folder / f"ntrex/ntrex.{lang}.txt.zst", "strict"))
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
    rows = list(iter_lines(folder / place / f"{name}.tsv.zst", "strict"))[1:]
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
    if name == "langid":
        import langid

        return lambda lines: [langid.classify(line)[0] for line in lines]
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the benchmarks")
    parser.add_argument("--with", action="append", default=[], dest="others", help="another identifier")
    args = parser.parse_args()
    from bitextmine.languages.codes import same_code

    rng = random.Random(1)
    texts = {kind.__name__: {lang: kind(args.data, lang, rng) for lang in LANGS} for kind in (news, everyday)}
    print(f"| | identifier | µs a line | {' | '.join(LANGS)} | mean | most often |\n{'|---' * 25}|")
    for name in ("py3langid", *args.others):
        guess = identifier(name)
        for kind, sides in texts.items():
            began, right, wrong = time.process_time(), {}, Counter[str]()
            for lang, lines in sides.items():
                found = [same_code(code) for code in guess(lines)]
                right[lang] = 100 * found.count(lang) / len(lines)
                wrong.update({f"{lang} as {it}": n for it, n in Counter(found).items() if it != lang})
            spent = 1e6 * (time.process_time() - began) / sum(map(len, sides.values()))
            shown = " | ".join(f"{share:.0f}" for share in right.values())
            often = ", ".join(it for it, _ in wrong.most_common(4))
            print(f"| {kind} | {name} | {spent:.0f} | {shown} | {np.mean([*right.values()]):.1f} | {often} |")
    known = Languages()
    print("\n| lang below | " + " | ".join(texts) + " |\n|---|---|---|")
    for threshold in (0.05, 0.1, 0.2, 0.35, 0.5):
        lost = [
            np.mean([100 * (known.share(lines, lang) < threshold).mean() for lang, lines in sides.items()])
            for sides in texts.values()
        ]
        print(f"| {threshold} | " + " | ".join(f"{share:.1f}" for share in lost) + " |")


if __name__ == "__main__":
    main()
