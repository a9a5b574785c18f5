"""Kill `bitextmine mine` with signal 9 at random moments, run it again to the end, and compare every byte.

Example:  python index/kills.py corpus.en.zst corpus.fr.zst --lines 60000 --kills 20

First a run that is left alone, which is timed. Then, for each kill, a fresh folder: one run is killed at a random
moment of that time (embedding, searching, writing), the same command is run again to its end, and what lies in the
folder is compared with what the undisturbed run left: output, embeddings, manifests, and no file more. --chain kills
several times in a row before the last run. The search saves what it has found every --save seconds (usually
every ten), so that there is something to go on from in a run this short.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bitextmine.files.corpus import corpus_language
from bitextmine.files.lines import iter_lines

SAVE_SOONER = """
from bitextmine.search import checkpoint
from bitextmine.search import fused
checkpoint.SAVE_SECONDS, checkpoint._SHARE = {seconds}, 0
fused._MOST_ROWS = {rows}
"""


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def phase(folder: Path, langs: list[str]) -> str:
    """Return the phase that a run had reached, by the files it left."""
    if not all((folder / f"corpus.{lang}.json").exists() for lang in langs):
        return "embedding"
    if (folder / "pairs.tsv").exists():
        return "all is written"
    if list(folder.glob(".pairs.tsv*")):
        return "writing"
    return "search" if list(folder.glob("*.search.part")) else "before the first save, or after the search"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("src", type=Path, help="one sentence per line, plain or .gz, .xz, .zst")
    parser.add_argument("tgt", type=Path)
    parser.add_argument("--src-lang", help="(default: the last suffix)")
    parser.add_argument("--tgt-lang", help="(default: the last suffix)")
    parser.add_argument("--lines", type=int, help="only so many from the start of each")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--chain", type=int, default=1, help="kills in a row before a run is left alone")
    parser.add_argument("--save", type=float, default=0.1, metavar="SECONDS")
    parser.add_argument("--block", type=int, default=2048, metavar="ROWS", help="compared between two saves")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    langs = [corpus_language(args.src, args.src_lang), corpus_language(args.tgt, args.tgt_lang)]
    texts = []
    for corpus in (args.src, args.tgt):
        lines = itertools.islice(iter_lines(corpus), args.lines)
        texts.append("".join(f"{line}\n" for line in lines).encode())

    with tempfile.TemporaryDirectory() as name:
        hooks = Path(name, "hooks")
        hooks.mkdir()
        (hooks / "sitecustomize.py").write_text(SAVE_SOONER.format(seconds=args.save, rows=args.block))
        environment = {**os.environ, "PYTHONPATH": str(hooks)}
        command = [
            sys.executable,
            "-m",
            "bitextmine",
            "mine",
            "--src",
            langs[0],
            "--tgt",
            langs[1],
            "-o",
            "pairs.tsv",
        ]

        def fresh(what: str) -> Path:
            folder = Path(name, what)
            folder.mkdir()
            for lang, text in zip(langs, texts, strict=True):
                (folder / f"corpus.{lang}").write_bytes(text)
            return folder

        def start(folder: Path) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )

        undisturbed = fresh("undisturbed")
        begin = time.monotonic()
        message = (child := start(undisturbed)).communicate()[1]
        whole = time.monotonic() - begin
        if child.returncode:
            sys.exit(message.decode())
        wanted = digests(undisturbed)
        print(f"undisturbed: {whole:.1f} s, {len(wanted)} files", flush=True)

        rng = random.Random(args.seed)
        identical = killed = 0
        for number in range(args.kills):
            folder = fresh(f"kill-{number}")
            story = []
            for _ in range(args.chain):
                child = start(folder)
                moment = rng.uniform(0, whole)
                try:
                    child.communicate(timeout=moment)
                except subprocess.TimeoutExpired:
                    child.send_signal(signal.SIGKILL)
                    child.communicate()
                killed += child.returncode == -signal.SIGKILL
                story.append(f"{moment:.2f} s ({phase(folder, langs)})")
            message = (child := start(folder)).communicate()[1].decode()
            found = {name: d for name, d in digests(folder).items() if not re.fullmatch(r"\..*\.tmp", name)}
            same = child.returncode == 0 and found == wanted
            identical += same
            went_on = re.search(r"search: (.* lines are done)|(resuming at line .*)", message)
            print(
                f"{number + 1:3}  killed at {', '.join(story):60}  {went_on[0] if went_on else 'from the start':50}  "
                f"{'identical' if same else 'DIFFERENT: ' + message}",
                flush=True,
            )
        print(f"{killed} kills, {identical} of {args.kills} runs identical in every byte")
        sys.exit(identical != args.kills)


if __name__ == "__main__":
    main()
