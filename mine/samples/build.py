"""Assemble the sample corpora and their gold files out of source/.

Each corpus holds one side of every row of source/parallel-*.tsv and the sentences of source/alone.LANG*.txt,
which have no translation anywhere, in a random order of its own. The order depends on the seed and the
language only, so the same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import random
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
        if header != ["subject", *LANGUAGES]:
            raise SystemExit(
                f"{path}: line 1: expected subject {' '.join(LANGUAGES)}, found {' '.join(header)}"
            )
        for number, cells in enumerate(body, start=2):
            if len(cells) != len(header) or not all(cells):
                raise SystemExit(
                    f"{path}: line {number}: expected {len(header)} filled columns, found {len(cells)}"
                )
            rows.append(dict(zip(header, cells, strict=True)))
    if not rows:
        raise SystemExit(f"{source}: no parallel-*.tsv with a row in it")
    return rows


def read_alone(source: Path, lang: str) -> list[str]:
    """Return the sentences of one language that have no translation."""
    return [line for path in sorted(source.glob(f"alone.{lang}*.txt")) for line in _lines(path)]


def build(source: Path, out: Path, seed: int) -> list[Path]:
    """Write sample.LANG and gold.SRC-TGT.tsv into out; returns their paths."""
    rows = read_parallel(source)
    texts: dict[Path, str] = {}
    line_of: dict[str, list[int]] = {}  # per language: line number, from 1, of each row of the parallel files
    for lang in LANGUAGES:
        sentences = [row[lang] for row in rows] + read_alone(source, lang)
        order = list(range(len(sentences)))
        random.Random(f"{seed} {lang}").shuffle(order)
        texts[out / f"sample.{lang}"] = "".join(f"{sentences[i]}\n" for i in order)
        place = {i: number for number, i in enumerate(order, start=1)}
        line_of[lang] = [place[i] for i in range(len(rows))]
    for src, tgt in PAIRS:
        gold = sorted(zip(line_of[src], line_of[tgt], strict=True))
        texts[out / f"gold.{src}-{tgt}.tsv"] = "".join(f"{s}\t{t}\n" for s, t in gold)
    out.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_bytes(text.encode("utf-8"))
    return list(texts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Write sample.{en,de,es,fr,it} and the ten gold.SRC-TGT.tsv out of source/.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--source", type=Path, default=HERE / "source", help="folder of parallel-*.tsv and alone.*.txt"
    )
    parser.add_argument(
        "--out", type=Path, default=HERE, help="folder for the files; existing ones are replaced"
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help="of the line orders; the committed files have the default"
    )
    args = parser.parse_args()
    for path in build(args.source, args.out, args.seed):
        print(path, file=sys.stderr)


if __name__ == "__main__":
    main()
