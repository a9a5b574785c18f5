"""Sentences a second of `bitextmine embed`, from the text file to the finished .npy.

Example:  python index/bench_embed.py corpus.en.zst --lang en --lines 60000 --repeats 3

The first lines of the corpus are written to a folder of their own, embedded as often as asked, and timed from the
start of the command to its end; a corpus of one line tells how much of that is starting up.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from pathlib import Path

from _child import bitextmine

from bitextmine.files.corpus import corpus_language
from bitextmine.files.lines import iter_lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="one sentence per line, plain or .gz, .xz, .zst")
    parser.add_argument("--lang", help="its language (default: the last suffix)")
    parser.add_argument("--lines", type=int, help="only so many from the start")
    parser.add_argument("--model", default="default", help="name or folder")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    lang = corpus_language(args.corpus, args.lang)
    model = str(Path(args.model).resolve()) if Path(args.model).exists() else args.model

    with tempfile.TemporaryDirectory() as folder:
        text, single = Path(folder, f"corpus.{lang}"), Path(folder, f"single.{lang}")
        lines = characters = 0
        with text.open("w", encoding="utf-8", newline="\n") as out:
            for line in itertools.islice(iter_lines(args.corpus), args.lines):
                out.write(line + "\n")
                lines, characters = lines + 1, characters + len(line)
        single.write_text("Hello.\n", encoding="utf-8")
        options = ["--model", model, "--device", args.device, "--force"]
        runs = [bitextmine(["embed", text.name, *options], text.parent) for _ in range(args.repeats)]
        start = [bitextmine(["embed", single.name, *options], text.parent) for _ in range(args.repeats)]
        size = Path(f"{text}.npy").stat().st_size

    whole = statistics.median(run.seconds for run in runs)
    empty = statistics.median(run.seconds for run in start)
    length = characters / max(1, lines)
    print(f"{lines:,} lines of {length:.0f} characters, model {args.model}, {size:,} bytes of vectors")
    print(f"{'seconds, each run':28}{', '.join(f'{run.seconds:.2f}' for run in runs)}")
    print(f"{'sentences a second':28}{lines / whole:,.0f} (median, start-up included)")
    if whole > empty:
        print(f"{'... once it has started':28}{lines / (whole - empty):,.0f} (start-up: {empty:.2f} s)")
    print(f"{'processor seconds':28}{statistics.median(run.processor_seconds for run in runs):.1f}")
    print(f"{'peak memory':28}{max(run.peak_mib for run in runs):,.0f} MiB")


if __name__ == "__main__":
    main()
