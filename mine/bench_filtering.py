"""How well the presets and the column quality tell right pairs from fifteen kinds of noise, and how fast they do it.

    python mine/bench_filtering.py noise DATA --model europe20 --langs pl,fi,ru      tables for mine/quality.md
    python mine/bench_filtering.py noise DATA --half odd                    the half that thresholds are chosen on
    python mine/bench_filtering.py noise DATA --peers                       other tools on the same rows
    python mine/bench_filtering.py speed DATA            rows per second and memory of score and filter
    python mine/bench_filtering.py seen                  the same of the table that finds duplicates, 100 million pairs

DATA is a folder of real text: bench/ (NTREX, FLORES, Europarl, news, everyday sentences; no encoder was trained on it)
and for `speed` train/*.tsv.zst. noise.py makes the noise, by other rules than those that fit_quality.py fits on.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from harness import parser, table
from noise import RULES, Stream, noisy_rows

from bitextmine.files.source import iter_lines
from bitextmine.scoring.filter import filter_rows
from bitextmine.scoring.rules import load_preset
from bitextmine.scoring.score import ScoreOptions, score

COLUMNS = "cosine,margin,length_ratio,numbers,copy,lang,quality"
FIRST = ("de", "es", "fr", "it")
Row = tuple[str, str, str]  # source, target, kind


# --- streams of right and spoilt pairs -------------------------------------------------------------------


def bench_pairs(bench: Path, lang: str, half: int) -> list[tuple[str, str]]:
    """Return English pairs of every second line of the benchmarks, from number `half` on."""
    sides = [
        [list(iter_lines(bench / place.format(code))) for code in ("en", lang)]
        for place in ("ntrex/ntrex.{}.txt.zst", "flores/devtest.{}.txt.zst")
    ]
    pairs = [pair for en, other in sides for pair in list(zip(en, other, strict=True))[half::2]]
    tables = [f"everyday20/everyday.en-{lang}.tsv.zst"]
    if lang in FIRST:
        tables = ["retrieval/queries.tsv.zst", "news/queries.tsv.zst", f"everyday/queries.en-{lang}.tsv.zst"]
    for path in tables:
        rows = [line.split("\t") for line in iter_lines(bench / path)]
        at = [rows[0].index(code) for code in ("en", lang)]
        pairs += [(row[at[0]], row[at[1]]) for row in rows[1:][half::2]]
    return [(en, other) for en, other in pairs if en.strip() and other.strip()]


def noisy_stream(data: Path, lang: str, half: int) -> list[Row]:
    """Return rows of a language with English, about half of them right."""
    pairs = bench_pairs(data / "bench", lang, half)
    elsewhere = [
        text
        for code in (*FIRST, "pl", "ru")
        if code != lang
        for text in list(iter_lines(data / f"bench/ntrex/ntrex.{code}.txt.zst"))[half::20]
    ]
    stream = Stream(pairs, ("en", lang), False, elsewhere)
    return noisy_rows(stream, len(pairs) // 2, len(pairs) // 2 // len(RULES))


# --- measurements ----------------------------------------------------------------------------------------


def scored(rows: Sequence[Row], lang: str, model: str, folder: Path) -> dict[str, np.ndarray]:
    """Return the columns of a stream, by `bitextmine score`, which leaves them in folder/scored.tsv."""
    plain, out = folder / "plain.tsv", folder / "scored.tsv"
    lines = ["src\ttgt\tkind", *("\t".join(" ".join(cell.split()) for cell in row) for row in rows)]
    plain.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = score(plain, out, ScoreOptions(columns=COLUMNS, src="en", tgt=lang, model=model))
    cells = [line.split("\t")[3:] for line in iter_lines(out)][1:]
    return dict(zip(done.columns, np.array(cells, dtype=np.float64).T, strict=True))


def area(values: np.ndarray, clean: np.ndarray) -> float:
    """Area under the ROC curve: how often a clean pair scores higher than a noisy one, ties counting half."""
    from scipy.stats import rankdata

    rank = rankdata(values)
    n = int(clean.sum())
    return float((rank[clean].sum() - n * (n + 1) / 2) / (n * (len(clean) - n)))


def kept_by(preset: str, folder: Path) -> Counter[str]:
    """Return the rows of folder/scored.tsv that a preset keeps, by kind."""
    kept = folder / "kept.tsv"
    filter_rows(folder / "scored.tsv", kept, load_preset(preset))
    return Counter(line.split("\t")[2] for line in list(iter_lines(kept))[1:])


# --- peers -----------------------------------------------------------------------------------------------


def bicleaner_hardrules(rows: Sequence[Row], lang: str) -> list[bool]:
    """Return the rows that bicleaner-hardrules keeps, without its models of languages, which it would fetch."""
    import types

    for name in ("fastspell", "kenlm"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["fastspell"].FastSpell = object  # type: ignore[attr-defined]
    from hardrules.hardrules import Hardrules

    off = ("lm_filter", "porn_removal", "lang_ident")
    options = {f"disable_{name}": True for name in off} | {
        "disable_minimal_length": False,
        "run_all_rules": False,
    }
    rules = Hardrules(
        argparse.Namespace(source_lang="en", target_lang=lang, lm_threshold=0, rules_config=None, **options)
    )
    return [not rules.wrong_tu(src, tgt) for src, tgt, _ in rows]


def opusfilter(rows: Sequence[Row], lang: str) -> list[bool]:
    """Return the rows that OpusFilter keeps, with the filters and values of its documentation's example."""
    from opusfilter import filters
    from py3langid.langid import LanguageIdentifier

    from bitextmine.languages.scripts import scripts_of

    if not hasattr(LanguageIdentifier, "from_pickled_model"):  # the name before py3langid 0.4
        LanguageIdentifier.from_pickled_model = LanguageIdentifier.from_model_file
    scripts = [next(iter(scripts_of(code))) for code in ("en", lang)]
    chosen = [
        filters.LengthFilter(unit="word", min_length=1, max_length=100),
        filters.LengthRatioFilter(unit="word", threshold=3),
        filters.LongWordFilter(threshold=40),
        filters.HtmlTagFilter(),
        filters.CharacterScoreFilter(scripts=scripts, thresholds=[1, 1]),
        filters.LangidFilter(languages=["en", "no" if lang == "nb" else lang], thresholds=[0, 0]),
        filters.TerminalPunctuationFilter(threshold=-2),
        filters.NonZeroNumeralsFilter(threshold=0.5),
        filters.RepetitionFilter(),
    ]
    pairs = [(src, tgt) for src, tgt, _ in rows]
    return [all(kept) for kept in zip(*(list(each.decisions(pairs)) for each in chosen), strict=True)]


PEERS = {"bicleaner-hardrules": bicleaner_hardrules, "OpusFilter": opusfilter}


def report_peers(arguments: argparse.Namespace) -> None:
    """Print the rows of each kind that other tools keep, of all languages, and their speed."""
    streams = [
        (lang, noisy_stream(Path(arguments.data), lang, 1 if arguments.half == "even" else 0))
        for lang in arguments.langs.split(",")
    ]
    every = Counter(row[2] for _, rows in streams for row in rows)
    columns = []
    for peer in PEERS.values():
        begin, kept = time.process_time(), Counter[str]()
        for lang, rows in streams:
            kept += Counter(row[2] for row, keeps in zip(rows, peer(rows, lang), strict=True) if keeps)
        columns.append((kept, every.total() / (time.process_time() - begin)))
    table(["kind", "rows", *PEERS], kept_shares(every, [kept for kept, _ in columns]))
    print("rows per CPU second:", *(f"{rate:,.0f}" for _, rate in columns))


def kept_shares(every: Counter[str], counts: Iterable[Counter[str]]) -> Iterator[list[object]]:
    """Yield, for each kind, the rows and the share that is kept."""
    for kind in ("good", *RULES):
        yield [kind, every[kind], *(f"{100 * count[kind] / max(1, every[kind]):.1f}%" for count in counts)]


def report_noise(arguments: argparse.Namespace) -> None:
    """Print, for each kind, the rows that the presets keep of all languages, and areas; then the right rows kept."""
    langs = arguments.langs.split(",")
    every: Counter[str] = Counter()
    kept: dict[str, Counter[str]] = {"mild": Counter(), "strict": Counter()}
    areas: dict[str, list[list[float]]] = {kind: [] for kind in RULES}
    good = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for lang in langs:
            rows = noisy_stream(Path(arguments.data), lang, 1 if arguments.half == "even" else 0)
            columns = scored(rows, lang, arguments.model, folder)
            kinds = np.array([row[2] for row in rows])
            here = Counter(kinds.tolist())
            every += here
            shares = []
            for preset, count in kept.items():
                found = kept_by(preset, folder)
                count += found
                shares.append(100 * found["good"] / here["good"])
            good.append([f"en-{lang}", here["good"], *(f"{share:.1f}%" for share in shares)])
            for kind in areas:
                chosen = (kinds == "good") | (kinds == kind)
                if here[kind]:
                    clean = kinds[chosen] == "good"
                    areas[kind].append(
                        [area(columns[name][chosen], clean) for name in ("cosine", "margin", "quality")]
                    )
    means = {kind: [f"{x:.3f}" for x in np.mean(found, axis=0)] for kind, found in areas.items()}
    header = ["kind", "rows", "kept by mild", "by strict", "area: cosine", "margin", "quality"]
    table(header, ([*row, *means.get(str(row[0]), [""] * 3)] for row in kept_shares(every, kept.values())))
    print()
    table(["right pairs", "rows", "mild", "strict"], good)


def report_speed(arguments: argparse.Namespace) -> None:
    """Print the speed of each command on 100,000 and on many more rows, each in a process of its own.

    The columns are seconds of the clock and of processor time, rows per second of processor time (other work on the
    machine changes it little) and peak memory.
    """
    program = [sys.executable, "-m", "bitextmine"]
    sources = ("docs", "business", "devdocs", "laws")
    files = [Path(arguments.data) / f"train/{s}.en-fr.tsv.zst" for s in sources]
    languages = ("--src", "en", "--tgt", "fr")
    environment = {**os.environ, "BITEXTMINE_MODEL": arguments.model}

    def rows_of(folder: Path) -> Iterator[list[object]]:
        plain, done, parquet = (folder / file for file in ("plain.tsv", "scored.tsv", "scored.parquet"))
        for rows in sorted({100_000, arguments.rows}):
            with plain.open("w", encoding="utf-8") as out:
                lines = itertools.chain.from_iterable(map(iter_lines, itertools.cycle(files)))
                for i, line in enumerate(itertools.islice(lines, rows)):
                    # A text that comes round again is made another one.
                    out.write(line if i < 600_000 else line.replace("\t", f" {i}\t") + f" {i}")
                    out.write("\n")
            commands: list[tuple[list[object], Path, Path | None]] = [
                (["score", "--columns", "cosine"], plain, None),
                (["score"], plain, done),
                (["score", *languages], plain, None),
                (["filter", "--max", "length_ratio=2.5", "--min", "shorter=3"], plain, None),
                (["filter", "--preset", "cheap"], plain, None),
                (["filter", "--duplicates", "exact"], plain, None),
                (["filter", "--duplicates", "near"], plain, None),
                (["filter", "--preset", "mild", "--duplicates", "none"], done, None),
                (["filter", "--preset", "mild"], done, None),
                (["filter", "--preset", "mild", "-o", parquet], done, None),
                (["filter", parquet, "--preset", "strict"], parquet, None),
            ]
            for words, source, target in commands:
                label = " ".join(str(getattr(word, "name", word)) for word in words)
                if re.search(arguments.only, label):
                    seconds, usage = timed([*program, *map(str, words)], source, target, environment)
                    cpu = usage.ru_utime + usage.ru_stime
                    yield [label, rows, seconds, cpu, round(rows / cpu), usage.ru_maxrss >> 10]

    with tempfile.TemporaryDirectory() as name:
        header = ["command", "rows", "seconds", "CPU seconds", "rows per CPU second", "MiB"]
        table(header, rows_of(Path(name)), digits=1)


def timed(
    command: Sequence[str], source: Path, target: Path | None, environment: dict[str, str]
) -> tuple[float, resource.struct_rusage]:
    """Run a command from a file to a file, or to nowhere: seconds, and what it used."""
    with source.open("rb") as stdin, (target or Path(os.devnull)).open("wb") as stdout:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, env=environment)
        message = child.stderr.read() if child.stderr else b""
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
    if status:
        raise SystemExit(f"{command}: {message.decode()}")
    return seconds, usage


def report_seen(arguments: argparse.Namespace) -> None:
    """Measure the table that finds duplicates: fill it with distinct hashes, then look some of them up."""
    from bitextmine.scoring.seen import Seen

    rng = np.random.default_rng(1)
    seen = Seen()
    begin = time.process_time()
    new = 0
    for start in range(0, arguments.rows, 8192):
        new += int(
            seen.add(rng.integers(1, 1 << 63, min(8192, arguments.rows - start), dtype=np.uint64)).sum()
        )
    seconds = time.process_time() - begin
    again = int(seen.add(np.random.default_rng(1).integers(1, 1 << 63, 8192, dtype=np.uint64)).sum())
    print(
        f"{arguments.rows:,} hashes, {new:,} of them new, in {seconds:.0f} seconds of processor time; the table "
        f"takes {seen.bytes >> 20:,} MiB, the process {peak():,.0f} MiB at its most; asked for the first 8,192 "
        f"again: {again:,} new"
    )


def peak() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    command = parser(__doc__)
    commands = command.add_subparsers(required=True)
    noise = commands.add_parser("noise")
    noise.add_argument("data")
    noise.add_argument("--model", default="default")
    noise.add_argument("--langs", default="de,es,fr,it", help="target languages, of en")
    noise.add_argument("--half", choices=("odd", "even"), default="even", help="lines of the benchmarks")
    noise.add_argument(
        "--peers", action="store_true", help="bicleaner-hardrules and OpusFilter on the same rows"
    )
    noise.set_defaults(run=lambda a: report_peers(a) if a.peers else report_noise(a))
    speed = commands.add_parser("speed")
    speed.add_argument("data")
    speed.add_argument("--model", default="default")
    speed.add_argument("--rows", type=int, default=2_000_000)
    speed.add_argument(
        "--only", default="", metavar="REGEX", help="some commands; they rest on those before them"
    )
    speed.set_defaults(run=report_speed)
    seen = commands.add_parser("seen")
    seen.add_argument("--rows", type=int, default=100_000_000)
    seen.set_defaults(run=report_seen)
    arguments = command.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
