"""Wall time, peak memory and bytes written of `bitextmine mine`, from two text files to the pairs.

Example:  python index/bench_mine.py corpus.en.zst corpus.fr.zst --lines 60000,200000,1000000

Mines twice in a folder of its own: first from nothing, then with the embeddings already there. --options passes further
options on, as in --options '--memory 500M'.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import tempfile
from pathlib import Path

from _child import bitextmine

from bitextmine.files.corpus import corpus_language
from bitextmine.files.lines import iter_lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("src", type=Path, help="one sentence per line, plain or .gz, .xz, .zst")
    parser.add_argument("tgt", type=Path)
    parser.add_argument("--src-lang", help="(default: the last suffix)")
    parser.add_argument("--tgt-lang", help="(default: the last suffix)")
    parser.add_argument(
        "--lines", metavar="N,...", help="only so many from the start of each; several sizes in turn"
    )
    parser.add_argument("--model", default="default", help="name or folder")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--search", default="auto", choices=["auto", "exact", "index"])
    parser.add_argument(
        "--options", default="", help="further options of mine, as one word: '-k 8 --dedup near'"
    )
    parser.add_argument(
        "--once", action="store_true", help="only from nothing, not again with the embeddings there"
    )
    args = parser.parse_args()
    for lines in args.lines.split(",") if args.lines else [None]:
        measure(args, None if lines is None else int(lines))


def measure(args: argparse.Namespace, lines: int | None) -> None:
    model = str(Path(args.model).resolve()) if Path(args.model).exists() else args.model
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        langs, counts = [], []
        for corpus, lang in ((args.src, args.src_lang), (args.tgt, args.tgt_lang)):
            langs.append(corpus_language(corpus, lang))
            counts.append(0)
            with (folder / f"corpus.{langs[-1]}").open("w", encoding="utf-8", newline="\n") as out:
                for line in itertools.islice(iter_lines(corpus), lines):
                    out.write(line + "\n")
                    counts[-1] += 1
        command = ["mine", "--src", langs[0], "--tgt", langs[1], "--search", args.search, "-o", "pairs.tsv"]
        command += ["--model", model, "--device", args.device, *shlex.split(args.options)]
        costs = [("from nothing", bitextmine(command, folder))]
        if not args.once:
            costs.append(("embeddings there", bitextmine(command, folder)))
        pairs = sum(1 for _ in iter_lines(folder / "pairs.tsv"))
        text = sum((folder / f"corpus.{lang}").stat().st_size for lang in langs)
        left = sum(file.stat().st_size for file in folder.iterdir()) - text

    print(
        f"{counts[0]:,} x {counts[1]:,} lines, {text:,} bytes; {pairs:,} pairs; {left:,} bytes of files made"
    )
    for what, cost in costs:
        written = "" if cost.written is None else f"  {cost.written:,} bytes written"
        print(
            f"{what:20}{cost.seconds:8.1f} s  ({cost.processor_seconds:.1f} s of processor time)  "
            f"peak {cost.peak_mib:,.0f} MiB{written}",
            flush=True,
        )


if __name__ == "__main__":
    main()
