"""Kill parts of a Ray cluster in the middle of `bitextmine mine`, and say what was done again, and what came out.

Example:  python index/bench_faults.py --lines 20000
          python index/bench_faults.py corpus.en.zst corpus.fr.zst --lines 20000

Nodes of one processor each are started on this machine. For each fault both corpora are embedded and mined in a fresh
folder by `mine --ray` (for a search through indexes they are embedded and indexed before). Something is killed when so
many tiles are finished; the same command is given again where the driver died. Then `cmp` compares pairs, manifests and
embeddings with those of the plain command. Without corpora the text is made up. The table is Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from _nodes import Nodes, started

from bitextmine.files.lines import iter_lines

STORE = 80 << 20
TILES = "corpus.en-corpus.fr.search.tiles"
FILES = ("pairs.tsv", "pairs.tsv.json", "corpus.en.npy", "corpus.en.json", "corpus.fr.npy", "corpus.fr.json")
WORDS = (
    "The doctor=Le médecin|My sister=Ma sœur|A tall man=Un grand homme|The old teacher=Le vieux professeur|"
    "Our neighbour=Notre voisin|The captain=Le capitaine|This child=Cet enfant|The queen=La reine",
    "bought=a acheté|sold=a vendu|found=a trouvé|washed=a lavé|lost=a perdu|painted=a peint|broke=a cassé|saw=a vu",
    "red bicycles=vélos rouges|old maps=vieilles cartes|green apples=pommes vertes|silver spoons=cuillères en argent|"
    "wooden boats=bateaux en bois|winter coats=manteaux d'hiver|blue vases=vases bleus|candles=bougies",
    "in the harbour=dans le port|at the market=au marché|before noon=avant midi|every Sunday=chaque dimanche|"
    "after the storm=après la tempête|near the station=près de la gare|on the roof=sur le toit|in May=en mai",
)


def made_up(count: int) -> list[tuple[str, str]]:
    """So many sentences and their translations, no two alike."""
    parts = [[entry.split("=") for entry in words.split("|")] for words in WORDS]
    rng = random.Random(1)
    found: dict[tuple[str, str], None] = {}
    while len(found) < count:
        who, did, what, where = (rng.choice(part) for part in parts)
        number = rng.randrange(2, 1000)
        en, fr = (f"{who[side]} {did[side]} {number} {what[side]} {where[side]}." for side in (0, 1))
        found[en, fr] = None
    return list(found)


@dataclass
class Run:
    """A command that runs in a folder, and what becomes of it. story: what was done to it; said: its log."""

    folder: Path
    command: list[str]
    nodes: Nodes
    kept: int = 0
    said: str = ""
    story: list[str] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        """Starts it, also again."""
        self._process = subprocess.Popen(
            self.command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def tiles(self) -> list[Path]:
        """Return the files of the finished tiles."""
        return [path for path in (self.folder / TILES).glob("*.npz") if ".lists." not in path.name]

    def until(self, true: Callable[[], object]) -> None:
        """Waits for it; the script ends if the command does."""
        while not true():
            if self.process.poll() is not None:
                sys.exit(f"the command ended too early:\n{self.process.communicate()[1]}")
            time.sleep(0.005)

    def until_tiles(self, count: int) -> int:
        """Until so many tiles are finished; how many there are by then."""
        self.until(lambda: len(self.tiles()) >= count)
        return len(self.tiles())

    def end(self, code: int = 0) -> None:
        """Waits for its end, with this exit code."""
        _, said = self.process.communicate()
        if self.process.returncode != code:
            sys.exit(f"exit code {self.process.returncode}, not {code}:\n{said}")
        self.said += said

    def stopped(self, code: int) -> None:
        """Wait until the killed command and its workers have ended; count the tiles that are left."""
        self.end(code)
        while self.nodes.workers():
            time.sleep(0.05)
        self.kept = len(self.tiles())
        self.said = ""

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Stop the command while the block runs."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        yield
        self.process.send_signal(signal.SIGCONT)


def nothing(run: Run) -> None:
    run.story.append("nothing")


def worker(run: Run) -> None:
    count = run.until_tiles(10)
    while not (found := run.nodes.workers()):  # between two tasks
        time.sleep(0.01)
    os.kill(found[0], signal.SIGKILL)
    run.story.append(f"a worker (kill -9) after {count} tiles")


def node(run: Run) -> None:
    count = run.until_tiles(40)
    run.nodes.remove()
    run.story.append(f"a node removed after {count} tiles")
    run.nodes.add()
    run.story.append(f"one added after {len(run.tiles())}")


def interrupted(run: Run) -> None:
    count = run.until_tiles(60)
    run.process.send_signal(signal.SIGINT)
    run.stopped(130)
    run.story.append(f"Ctrl-C after {count} tiles")
    run.begin()


def driver(run: Run) -> None:
    count = run.until_tiles(100)
    run.process.kill()
    run.stopped(-signal.SIGKILL)
    run.story.append(f"the driver (kill -9) after {count} tiles")
    run.begin()


def both(run: Run) -> None:
    worker(run)
    driver(run)


def shard(run: Run) -> None:
    for lang in ("en", "fr"):
        folder = run.folder / f"corpus.{lang}.npy.shards"
        run.until(lambda folder=folder: list(folder.glob("*-*.npz")))  # type: ignore[misc]
        with run.held():
            found = sorted(folder.glob("*-*.npz"))
            if found and lang == "en":
                found[0].unlink()
            elif found:
                found[0].write_bytes(found[0].read_bytes()[:-7])
            done = "" if found else "not "
        run.story.append(f"a shard of corpus.{lang} {done}{'deleted' if lang == 'en' else 'cut short'}")


def tile(run: Run) -> None:
    run.until_tiles(30)
    with run.held():
        found = sorted(run.tiles(), key=lambda path: path.stat().st_mtime_ns)
        found[-1].unlink()
        found[-2].write_bytes(b"no tile")
    run.story.append(f"a tile deleted, another one damaged, after {len(found)}")


@contextlib.contextmanager
def full_store(nodes: Nodes) -> Iterator[str]:
    """Another program takes nine tenths of the object stores."""
    import ray

    ray.init(nodes.address, log_to_driver=False)
    try:
        block = bytes(STORE // 20)
        held = [ray.put(block) for _ in range(18)]
        yield f"the object store filled to {100 * len(held) // 20}% by another program"
    finally:
        ray.shutdown()


@contextlib.contextmanager
def as_it_is(nodes: Nodes) -> Iterator[str]:
    yield ""


FAULTS: list[tuple[str, Callable[[Run], None], Callable[[Nodes], contextlib.AbstractContextManager[str]]]] = [
    ("exact", nothing, as_it_is),
    ("exact", worker, as_it_is),
    ("exact", node, as_it_is),
    ("exact", interrupted, as_it_is),
    ("exact", driver, as_it_is),
    ("exact", nothing, full_store),
    ("exact", shard, as_it_is),
    ("exact", tile, as_it_is),
    ("index", nothing, as_it_is),
    ("index", worker, as_it_is),
    ("index", both, as_it_is),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="*", type=Path, metavar="SRC TGT", help="English, French")
    parser.add_argument("--lines", type=int, default=20_000, metavar="N", help="of each (default: 20,000)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="nodes (default: 2)")
    parser.add_argument("--rows", type=int, metavar="N", help="--ray-rows (default: a 16th of the lines)")
    names = list(dict.fromkeys(f"{way}-{fault.__name__}" for way, fault, _ in FAULTS))
    parser.add_argument("--only", metavar="NAME", choices=names, help=f"just that fault: {', '.join(names)}")
    args = parser.parse_args()
    if len(args.corpora) not in (0, 2):
        parser.error("two corpora, or none")
    rows = args.rows or -(-args.lines // 16)
    with tempfile.TemporaryDirectory() as name:
        texts = Path(name, "texts")
        texts.mkdir()
        write_texts(texts, args.corpora, args.lines)
        indexed = copied(texts, Path(name, "indexed"))
        make = ["index", "corpus.en", "corpus.fr", "--type", "ivf"]
        subprocess.run(
            [sys.executable, "-m", "bitextmine", *make], cwd=indexed, check=True, capture_output=True
        )
        begun = {"exact": texts, "index": indexed}
        plain = {way: copied(folder, Path(name, f"plain-{way}")) for way, folder in begun.items()}
        for way, folder in plain.items():
            subprocess.run(command(way), cwd=folder, check=True, capture_output=True)
        print(
            "| search | killed, and when | tiles needed | found finished | made | begun again | workers lost | seconds "
            "| cmp |\n|---|---|---:|---:|---:|---:|---:|---:|---|",
            flush=True,
        )
        for number, (way, fault, around) in enumerate(FAULTS):
            if args.only in (None, f"{way}-{fault.__name__}"):
                with started(args.workers, STORE) as nodes, around(nodes) as before:
                    folder = copied(begun[way], Path(name, str(number)))
                    options = ["--ray", nodes.address, "--ray-rows", str(rows)]
                    begin = time.perf_counter()
                    run = Run(folder, [*command(way), *options], nodes)
                    run.begin()
                    fault(run)
                    run.end()
                    print(row(run, way, before, time.perf_counter() - begin, plain[way]), flush=True)


def write_texts(folder: Path, corpora: list[Path], count: int) -> None:
    """corpus.en and corpus.fr, in orders of their own where they are made up."""
    if corpora:
        sides = [list(itertools.islice(iter_lines(corpus), count)) for corpus in corpora]
    else:
        sides = [list(side) for side in zip(*made_up(count), strict=True)]
        random.Random(2).shuffle(sides[1])
    for lang, lines in zip(("en", "fr"), sides, strict=True):
        (folder / f"corpus.{lang}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def copied(what: Path, folder: Path) -> Path:
    """Copy a folder."""
    return Path(shutil.copytree(what, folder))


def command(way: str) -> list[str]:
    mine = ["mine", "--src", "en", "--tgt", "fr", "--search", way, "-o", "pairs.tsv"]
    return [sys.executable, "-m", "bitextmine", *mine]


def row(run: Run, way: str, before: str, seconds: float, plain: Path) -> str:
    """Return a row of the table."""
    needed = found = again = lost = 0
    for line in run.said.splitlines():
        if searched := re.search(r"search: .*?([\d,]+) tiles?, (\d+) of them found finished; ", line):
            needed += int(searched[1].replace(",", ""))
            found += int(searched[2])
        if "by" in line and (gone := re.search(r"(\d+) workers? lost", line)):
            lost += int(gone[1])
        if "by" in line and (more := re.search(r"(\d+) tasks? done again", line)):
            again += int(more[1])
    if run.kept and found != run.kept:
        sys.exit(f"{run.kept} tiles were there, {found} were found:\n{run.said}")
    differ = [
        file for file in FILES if subprocess.run(["cmp", "-s", plain / file, run.folder / file]).returncode
    ]
    story = ", ".join(each for each in (before, *run.story) if each and each != "nothing") or "nothing"
    cells = [needed, found, needed - found, again, lost, f"{seconds:.0f}"]
    same = "differ: " + ", ".join(differ) if differ else "same"
    return f"| {way} | {story} | {' | '.join(map(str, cells))} | {same} |"


if __name__ == "__main__":
    main()
