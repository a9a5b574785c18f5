"""Strict and lax F1 of sentence alignment on real documents and on synthetic ones.

    python mine/bench_alignment.py real FOLDER [--peers FOLDER]
    python mine/bench_alignment.py quality laws.de-fr-it.tsv news.tsv [--peers FOLDER]
    python mine/bench_alignment.py documents laws.de-fr-it.tsv news.tsv

`real` aligns documents NAME.LANG of a folder that have a gold alignment NAME.L1-L2.gold in Vecalign's format.

The others make documents from parallel rows, tab-separated under a header of languages; a first column "document"
tells where documents end, else each 100 rows are one. Sentences are split at
punctuation on one side, neighbours joined on one side, sentences and long stretches left out, foreign sentences
inserted, and a block moved elsewhere, whose sentences count as left out. `quality` takes the second half of each file.

--peers is a folder of Python packages with sentalign (which holds Vecalign's own program) and galechurch: they align
the same documents, Vecalign with our vectors. Prints Markdown tables.
"""

from __future__ import annotations

import importlib
import itertools
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
from harness import parser, table
from peers import peer_encoder

from bitextmine.alignment.aligner import Aligner
from bitextmine.alignment.documents import match_documents
from bitextmine.alignment.evidence import PieceEvidence
from bitextmine.alignment.second import SecondJudge
from bitextmine.alignment.windows import Windows, make_windows
from bitextmine.encoder import Encoder, load_encoder
from bitextmine.evaluation.alignment import Pair, read_alignments, score_alignments
from bitextmine.files.source import iter_lines
from bitextmine.languages.codes import join_sentences
from bitextmine.run import Run

SIZES = 5
NEWS_ROWS = 100
SEED = 1
Row = dict[str, str]


@dataclass(frozen=True)
class Rates:
    """Shares of rows: split in two, joined with the next, left out, followed by a foreign one, all on one side; and
    the length of a block that is moved, and of a stretch that is left out on one side, as shares of the document."""

    split: float = 0.06
    join: float = 0.08
    drop: float = 0.04
    insert: float = 0.02
    moved: float = 0.0
    gap: float = 0.0


CONDITIONS = {
    "splits, joins, drops, insertions": Rates(),
    "the same, twice and more": Rates(0.15, 0.15, 0.1, 0.05),
    "and a block of a tenth moved": Rates(moved=0.1),
    "and a stretch of 15% left out": Rates(gap=0.15),
}


@dataclass(frozen=True)
class Made:
    """Two documents and their gold alignment."""

    src: list[str]
    tgt: list[str]
    gold: list[Pair]


def read_documents(path: Path) -> list[list[Row]]:
    header, *lines = (line.split("\t") for line in iter_lines(path))
    rows = [dict(zip(header, cells, strict=True)) for cells in lines]
    if header[0] != "document":
        return [rows[i : i + NEWS_ROWS] for i in range(0, len(rows) - NEWS_ROWS // 2, NEWS_ROWS)]
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["document"], []).append(row)
    return list(found.values())


def cut(text: str, rng: random.Random) -> list[str]:
    """Cut a sentence in two at punctuation in its middle part, if there is any."""
    spots = [m.end() for m in re.finditer(r"[.;:,!?،؛؟।] (?=\S)|[。；：，！？、](?=\S)", text)]
    # Thai separates clauses by spaces and has no punctuation.
    spots = spots or [m.end() for m in re.finditer(r"(?<=[\u0e01-\u0e4e]) (?=[\u0e01-\u0e4e])", text)]
    good = [at for at in spots if 0.2 * len(text) < at < 0.8 * len(text)]
    strong = [at for at in good if text[:at].rstrip()[-1] in ".;:!?؛؟।。；：！？"]
    if not good:
        return [text]
    at = rng.choice(strong or good)
    return [text[:at].strip(), text[at:].strip()]


def make(
    rows: Sequence[Row], a: str, b: str, rates: Rates, foreign: Sequence[Row], rng: random.Random
) -> Made:
    units: list[tuple[list[str], list[str]]] = []
    for row in rows:
        unit = ([row[a]], [row[b]])
        for side in unit:
            if rng.random() < rates.split:
                side[:] = cut(side[0], rng)
        if units and rng.random() < rates.join and all(len(s) == 1 for s in (*units[-1], *unit)):
            joined = rng.randrange(2)
            units[-1][joined][0] = join_sentences((units[-1][joined][0], unit[joined][0]))
            units[-1][1 - joined].extend(unit[1 - joined])
        else:
            units.append(unit)
    out: list[tuple[list[str], list[str]]] = []
    gap = int(len(units) * rates.gap)
    start, without = rng.randrange(max(1, len(units) - gap)), rng.randrange(2)
    for i, unit in enumerate(units):
        if start <= i < start + gap:
            out += one_sided(unit[1 - without], 1 - without)
        elif rng.random() < rates.drop:
            side = rng.randrange(2)
            out += one_sided(unit[side], side)
        else:
            out.append(unit)
        if rng.random() < rates.insert:
            side = rng.randrange(2)
            row = rng.choice(foreign)
            out += one_sided([row.get((a, b)[side]) or next(iter(row.values()))], side)
    return moved(out, int(len(out) * rates.moved), rng)


def one_sided(lines: list[str], side: int) -> list[tuple[list[str], list[str]]]:
    return [([], [line]) if side else ([line], []) for line in lines]


def moved(units: Sequence[tuple[list[str], list[str]]], length: int, rng: random.Random) -> Made:
    """Return the documents of the units, with the target side of a block of them moved."""
    start = rng.randrange(max(1, len(units) - 2 * length))
    rest = [i for i in range(len(units)) if not start <= i < start + length]
    at = rng.randrange(start, len(rest) + 1)
    order = rest[:at] + list(range(start, start + length)) + rest[at:]
    tgt_of: dict[int, tuple[int, ...]] = {}
    src: list[str] = []
    tgt: list[str] = []
    for i in order:
        tgt_of[i] = tuple(range(len(tgt), len(tgt) + len(units[i][1])))
        tgt += units[i][1]
    gold: list[Pair] = []
    for i, (lines, _) in enumerate(units):
        src_of = tuple(range(len(src), len(src) + len(lines)))
        src += lines
        if start <= i < start + length:
            gold += [*(((x,), ()) for x in src_of), *(((), (y,)) for y in tgt_of[i])]
        else:
            gold.append((src_of, tgt_of[i]))
    return Made(src, tgt, gold)


# --- aligners ----------------------------------------------------------------------------------------------

Method = Callable[[Made, Windows, Windows], list[Pair]]


def ours(encoder: Encoder, second: Encoder | None = None) -> Method:
    again = None if second is None else SecondJudge(second, Run())
    aligner = Aligner(evidence=PieceEvidence.of(encoder), second=again)
    return lambda made, src, tgt: [(link.src, link.tgt) for link in aligner.align(src, tgt)]


def vecalign(peer: object, pad: np.ndarray) -> Method:
    """Run Vecalign's program with its defaults on our vectors of windows."""

    def overlaps(side: Windows) -> np.ndarray:
        out = np.tile(pad.astype(np.float32), (SIZES, len(side), 1))
        for size in range(1, min(SIZES, len(side)) + 1):
            out[size - 1, size - 1 :] = side.vectors(size, 0, len(side) - size + 1)
        return out

    def run(made: Made, src: Windows, tgt: Windows) -> list[Pair]:
        np.random.seed(42)
        stack = peer.vecalign(
            vecs0=overlaps(src), vecs1=overlaps(tgt), final_alignment_types=peer.make_alignment_types(SIZES + 1),
            del_percentile_frac=0.2, width_over2=ceil((SIZES + 1) / 2) + 5, max_size_full_dp=300,
            costs_sample_size=20_000, num_samps_for_norm=100,
        )  # fmt: skip
        return [(tuple(map(int, s)), tuple(map(int, t))) for s, t in stack[0]["final_alignments"]]

    return run


def gale_church(peer: object) -> Method:
    def run(made: Made, src: Windows, tgt: Windows) -> list[Pair]:
        found = peer.align(made.src, made.tgt, max_block_size=10**9)
        return [
            (tuple(range(b.source_start, b.source_end)), tuple(range(b.target_start, b.target_end)))
            for b in found.beads
        ]

    return run


# --- tables ------------------------------------------------------------------------------------------------


def read_gold(folder: Path) -> Iterator[tuple[str, Made]]:
    """Yield the names and languages, and the documents, of a folder."""
    for path in sorted(folder.glob("*.gold")):
        name, langs, _ = path.name.rsplit(".", 2)
        src, tgt = (list(iter_lines(path.with_name(f"{name}.{lang}"))) for lang in langs.split("-"))
        yield f"{name}, {langs}", Made(src, tgt, read_alignments(path)[0])


def synthetic(paths: Sequence[Path]) -> Iterator[tuple[str, list[Made]]]:
    """Yield the documents made of each file under each condition."""
    files = [read_documents(path) for path in paths]
    for number, (path, documents) in enumerate(zip(paths, files, strict=True)):
        chosen = [some for some in documents[len(documents) // 2 :] if len(some) > 20]
        foreign = [row for document in files[number - 1][:3] for row in document]
        pairs = language_pairs(documents)
        for name, rates in CONDITIONS.items():
            rng = random.Random(SEED)
            made = [make(some, a, b, rates, foreign, rng) for some in chosen for a, b in pairs]
            yield f"{path.name.split('.')[0]}: {name}", made


def compare(
    groups: Iterable[tuple[str, list[Made]]], encoder: Encoder, aligners: dict[str, Method]
) -> Iterator[list[object]]:
    """Yield a row for each group of documents, and one for all."""
    golds: list[list[Pair]] = []
    found: dict[str, list[list[Pair]]] = {name: [] for name in aligners}
    for name, made in groups:
        windows = make_windows(encoder, [lines for m in made for lines in (m.src, m.tgt)], SIZES)
        each = list(zip(made, windows[::2], windows[1::2], strict=True))
        golds += [m.gold for m in made]
        for key, aligner in aligners.items():
            found[key] += [aligner(*some) for some in each]
        own = golds[-len(made) :]
        yield [name, sum(map(len, own)), *(scores(links[-len(made) :], own) for links in found.values())]
    yield ["all", sum(map(len, golds)), *(scores(links, golds) for links in found.values())]


def scores(found: Sequence[list[Pair]], golds: Sequence[list[Pair]]) -> str:
    """Return strict F1 with its interval, and lax F1, in percent."""
    report = score_alignments(found, golds)
    low, high = 100 * report.strict.low, 100 * report.strict.high
    return f"{100 * report.strict.f1:.1f} [{low:.1f}, {high:.1f}] / {100 * report.lax.f1:.1f}"


def language_pairs(documents: Sequence[Sequence[Row]]) -> list[tuple[str, str]]:
    return list(itertools.combinations((name for name in documents[0][0] if name != "document"), 2))


def matching(paths: Sequence[Path], encoder: Encoder) -> Iterator[list[object]]:
    """Match the documents of each file and pair of languages, shuffled, a tenth of them without a partner."""
    for path in paths:
        documents = read_documents(path)
        if "document" not in documents[0][0]:
            documents = [some[i : i + 25] for some in documents for i in range(0, len(some) - 12, 25)]
        for a, b in language_pairs(documents):
            rng = random.Random(SEED)
            made = [make(some, a, b, Rates(), documents[0], rng) for some in documents]
            there = rng.sample(range(len(made)), len(made) - len(made) // 10)
            src = make_windows(encoder, [m.src for m in made], 1)
            tgt = make_windows(encoder, [made[i].tgt for i in there], 1)
            found = match_documents(src, tgt)
            right = sum(there[j] == i for i, j in found)
            yield [path.name.split(".")[0], f"{a}-{b}", len(src), len(tgt), len(found), right]


def main() -> None:
    command = parser(__doc__)
    command.add_argument("what", choices=["real", "quality", "documents"])
    command.add_argument("files", nargs="+", type=Path)
    command.add_argument("--model", default="default")
    command.add_argument("--second", metavar="NAME[=PYTHON]", help="also with this second encoder (peers.py)")
    command.add_argument("--peers", metavar="FOLDER")
    args = command.parse_args()
    encoder = load_encoder(args.model)
    aligners = {"bitextmine": ours(encoder)}
    if args.second:
        aligners["with second"] = ours(encoder, load_encoder(peer_encoder(args.second)[1]))
    if args.peers:
        sys.path.append(args.peers)
        pad = encoder.encode(["PAD"])[0]
        aligners["Vecalign"] = vecalign(importlib.import_module("sentalign.dp_utils"), pad)
        aligners["Gale-Church"] = gale_church(importlib.import_module("galechurch"))
    if args.what == "documents":
        header = ["documents", "languages", "source", "with a partner", "found", "correct"]
        table(header, matching(args.files, encoder))
        return
    real = ((name, [made]) for name, made in read_gold(args.files[0]))
    groups = real if args.what == "real" else synthetic(args.files)
    header = ["documents", "links", *(f"{name}, strict / lax" for name in aligners)]
    table(header, compare(groups, encoder, aligners))


if __name__ == "__main__":
    main()
