"""Assemble the sample corpora, their gold files and a corpus of good and bad pairs out of source/.

Each corpus holds one side of every row of source/parallel-*.tsv and the sentences of source/alone.LANG*.txt,
which have no translation anywhere, in a random order of its own. The order depends on the seed and the
language only, so the same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LANGUAGES = ("en", "de", "es", "fr", "it")
# English first, then the alphabet
PAIRS = tuple((src, tgt) for i, src in enumerate(LANGUAGES) for tgt in LANGUAGES[i + 1 :])
SEED = 1


def _lines(path: Path) -> list[str]:
    lines = path.read_bytes().decode("utf-8").split("\n")
    if lines.pop() or not all(lines):
        raise SystemExit(f"{path}: blank lines, or no line end at the end")
    return lines


def read_parallel(source: Path) -> list[dict[str, str]]:
    """Rows of all parallel-*.tsv: 'subject' and one sentence per language."""
    rows: list[dict[str, str]] = []
    for path in sorted(source.glob("parallel-*.tsv")):
        header, *body = (line.split("\t") for line in _lines(path))
        for number, cells in enumerate(body, start=2):
            if header != ["subject", *LANGUAGES] or len(cells) != len(header) or not all(cells):
                raise SystemExit(f"{path}: line {number}: needs subject {' '.join(LANGUAGES)}, all filled")
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


def read_alone(source: Path, lang: str) -> list[str]:
    """Return the sentences of one language that have no translation."""
    return [line for path in sorted(source.glob(f"alone.{lang}*.txt")) for line in _lines(path)]


def noisy(pairs: list[tuple[str, str]], german: list[str]) -> bytes:
    """Return the pairs and bad ones made of them, as in a crawl, in an order that mixes them."""
    every = [pairs[i::6] for i in range(6)]  # from 0: the first of six, the second...
    up = str.maketrans("0123456789", "1234567890")
    numbers = [(src, tgt.translate(up)) for src, tgt in pairs]
    rows = [
        *pairs,
        *((src, tgt) for (src, _), (_, tgt) in zip(every[5], every[0], strict=True)),  # shifted by a line
        *((src, src) for src, _ in every[0]),  # nothing translated
        *((src, tgt) for (src, _), tgt in zip(every[1], german, strict=False)),  # another language
        *((src, tgt.encode()[:41]) for src, tgt in every[2]),  # truncated, sometimes within a letter
        *(row for row in numbers if re.search("[0-9]", "".join(row))),  # every digit one higher
        *every[4],  # duplicates
        ("a line that lost its tab",),
        ("home", "about us", "contact"),
    ]
    lines = [b"\t".join(cell if isinstance(cell, bytes) else cell.encode() for cell in row) for row in rows]
    return b"".join(line + b"\n" for line in sorted(lines, key=lambda line: (line[3:9], line)))


def build(source: Path, out: Path) -> list[Path]:
    """Write sample.LANG, gold.SRC-TGT.tsv and noisy.en-fr.tsv into out; returns their paths."""
    rows = read_parallel(source)
    texts: dict[Path, str] = {}
    line_of: dict[str, list[int]] = {}  # per language: line number, from 1, of each row of the parallel files
    for lang in LANGUAGES:
        sentences = [row[lang] for row in rows] + read_alone(source, lang)
        order = list(range(len(sentences)))
        random.Random(f"{SEED} {lang}").shuffle(order)
        texts[out / f"sample.{lang}"] = "".join(f"{sentences[i]}\n" for i in order)
        place = {i: number for number, i in enumerate(order, start=1)}
        line_of[lang] = [place[i] for i in range(len(rows))]
    for src, tgt in PAIRS:
        gold = sorted(zip(line_of[src], line_of[tgt], strict=True))
        texts[out / f"gold.{src}-{tgt}.tsv"] = "".join(f"{s}\t{t}\n" for s, t in gold)
    corpora = {lang: texts[out / f"sample.{lang}"].splitlines() for lang in LANGUAGES}
    gold = [line.split("\t") for line in texts[out / "gold.en-fr.tsv"].splitlines()]
    pairs = [(corpora["en"][int(src) - 1], corpora["fr"][int(tgt) - 1]) for src, tgt in gold]
    files = {path: text.encode("utf-8") for path, text in texts.items()}
    files[out / "noisy.en-fr.tsv"] = noisy(pairs, corpora["de"])
    out.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        path.write_bytes(content)
    return list(files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the files (this one)")
    for path in build(HERE / "source", parser.parse_args().out):
        print(path, file=sys.stderr)


if __name__ == "__main__":
    main()
