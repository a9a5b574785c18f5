"""Accuracy on the public benchmarks of 56 languages: NTREX, FLORES, Tatoeba, everyday sentences.

    python train/bench_public.py --data FOLDER --model world56
    python train/bench_public.py --data FOLDER --model world56 --pairs train/language_pairs
    python train/bench_public.py --names train/names.tsv --model world56

FOLDER holds clones and folders as others publish them; what is missing is left out:

    git clone https://github.com/MicrosoftTranslator/NTREX FOLDER/NTREX       NTREX-128, 1,997 news sentences
    git clone https://github.com/facebookresearch/LASER FOLDER/LASER          Tatoeba tests, data/tatoeba/v1
    FOLDER/flores200_dataset                                                  FLORES-200, devtest/deu_Latn.devtest

    FOLDER/ntrex/ntrex.XX.txt[.zst], FOLDER/flores/devtest.XX.txt[.zst]       the same, by two-letter codes
    FOLDER/everyday20/everyday.en-XX.tsv[.zst], everyday/queries.en-XX.tsv    header, then pairs

Accuracy is MTEB's: the share of the sentences whose nearest one in the other language, by cosine, is the translation.
NTREX has the mean of both directions, as MTEB publishes it; Tatoeba is searched from the other language into English.
The error by margin is LASER's xsim: the highest ratio margin (k = 4) among the four nearest, mean of both directions.
Means are also of groups of languages: nineteen European languages, widespread ones, European and others with less text.
--names measures a table of names, a column per language, instead: each name is looked up among all of its column.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from bitextmine.encoder import Encoder, load_encoder
from bitextmine.files.source import iter_lines

sys.path.insert(0, str(Path(__file__).parents[1] / "mine"))
from harness import parser, table

K = 4
# Languages by group, each with LASER's and MTEB's name; NTREX and FLORES add a script, or have another name.
GROUPS = {
    "19 European": "de=deu es=spa fr=fra it=ita nl=nld sv=swe da=dan nb=nob fi=fin cs=ces pl=pol pt=por ru=rus:Cyrl "
    "tr=tur uk=ukr:Cyrl hu=hun ro=ron el=ell:Grek bg=bul:Cyrl",
    "group 1": "zh=cmn:zho_Hans:zho-CN ja=jpn:Jpan ko=kor:Hang ar=ara:arb_Arab:arb hi=hin:Deva vi=vie id=ind "
    "th=tha:Thai fa=pes:Arab:fas he=heb:Hebr",
    "group 2": "ca=cat gl=glg eu=eus sk=slk sl=slv hr=hrv sr=srp:Cyrl:srp-Cyrl mk=mkd:Cyrl sq=sqi:als_Latn et=est "
    "lv=lvs::lav lt=lit",
    "group 3": "bn=ben:Beng ta=tam:Taml te=tel:Telu ur=urd:Arab sw=swh::swa ms=zsm::msa tl=tgl::fil ka=kat:Geor "
    "hy=hye:Armn az=aze:azj_Latn:aze-Latn kk=kaz:Cyrl is=isl ga=gle af=afr",
}


def names_of(entry: str) -> dict[str, str]:
    """Return the names of a language in LASER, FLORES and NTREX: of "three[:Script or flores_Script[:ntrex]]"."""
    three, scripted, ntrex, *_ = f"{entry}::".split(":")
    if "_" not in scripted:
        scripted = f"{three}_{scripted or 'Latn'}"
    return {"three": three, "scripted": scripted, "ntrex": ntrex or three}


NAMES, GROUP = {}, {}
for _group, _entries in GROUPS.items():
    for _two, _names in (entry.split("=") for entry in _entries.split()):
        NAMES[_two], GROUP[_two] = names_of(_names), _group
# Where the sentences of a language may be, by its code, its three letters and those with a script.
PLACES = {
    "NTREX": ("ntrex/ntrex.{two}.txt*", "NTREX/NTREX-128/newstest2019-*.{ntrex}.txt"),
    "FLORES": ("flores/devtest.{two}.txt*", "flores200_dataset/devtest/{scripted}.devtest"),
}
# Choices were made by the other half.
HALVES = {"": slice(None), ", even lines": slice(1, None, 2)}
LASER = "LASER/data/tatoeba/v1/tatoeba.{three}-eng."

# Relatives side by side, for the map.
RELATED = (
    "en af nl de da nb sv is fr ca it es gl pt ro pl cs sk sl hr sr mk bg uk ru lt lv sq el hy hu fi et eu ga "
    "tr az kk ka fa ur hi bn te ta ar he sw id ms tl vi th zh ja ko"
)


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--data", type=Path, help="folder of the benchmarks")
    command.add_argument("--model", default="default", help="encoder, as for the other commands (default)")
    command.add_argument("--pairs", metavar="NAME", help="all pairs of languages, as NAME.tsv and NAME-*.svg")
    command.add_argument("--names", type=Path, help="measure a table of names instead")
    command.add_argument("--results", type=Path, help="MTEB's figures as results.json of a model folder")
    args = command.parse_args()
    if not (args.data or args.names):
        command.error("--data: the folder of the benchmarks is missing")
    encoder = load_encoder(args.model)
    if args.names:
        table(["", "cosine", "ratio margin"], names_across_scripts(args.names, encoder), digits=0)
        return
    columns = measure(args.data, encoder)
    print_table(columns)
    if args.results:
        write_results(columns, args.results)
    if args.pairs:
        every_pair(args.data, encoder, args.pairs)


def measure(data: Path, encoder: Encoder) -> dict[str, dict[str, float]]:
    """Return the columns of the table, each a figure per language that the encoder knows."""
    columns: dict[str, dict[str, float]] = {}
    known = {lang: NAMES[lang] for lang in NAMES if lang in (encoder.languages or NAMES)}

    def note(name: str, lang: str, found: np.ndarray, half: str = "") -> None:
        cosine, margin = rates(found)
        columns.setdefault(f"{name} accuracy{half}", {})[lang] = cosine
        columns.setdefault(f"{name} error by margin{half}", {})[lang] = 100 - margin

    for name in PLACES:
        sides = parallel(data, name)
        vectors = {lang: units(encoder, sides[lang]) for lang in sides if lang in {"en", *known}}
        for lang in filter(vectors.__contains__, known) if "en" in sides else ():
            found = hits(vectors["en"], vectors[lang])
            for half, which in HALVES.items():
                note(name, lang, found[..., which], half)
    for lang, names in known.items():
        test = LASER.format(**names)
        if (data / f"{test}eng").exists():
            src, tgt = (list(iter_lines(data / f"{test}{side}")) for side in (names["three"], "eng"))
            found = hits(units(encoder, src), units(encoder, tgt))
            note("Tatoeba", lang, found)
            columns["Tatoeba accuracy"][lang] = rates(found[:1])[0]
        for path in found_files(
            data, f"everyday20/everyday.en-{lang}.tsv*", f"everyday/queries.en-{lang}.tsv*"
        ):
            rows = [line.split("\t") for line in iter_lines(path)][1:]
            src, tgt = (units(encoder, [row[side] for row in rows]) for side in (0, 1))
            note("everyday", lang, hits(src, tgt))
    return columns


def names_across_scripts(path: Path, encoder: Encoder) -> Iterator[list[object]]:
    """Yield the accuracy of each language's names with those of the first column, mean of both directions."""
    langs, *rows = (line.split("\t") for line in iter_lines(path))
    first, *others = (units(encoder, list(names)) for names in zip(*rows, strict=True))
    for lang, other in zip(langs[1:], others, strict=True):
        yield [lang, *rates(hits(first, other))]


def write_results(columns: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Write the accuracies that MTEB knows as `bitextmine export` puts them into a model card."""
    results = [
        {"task": "BitextMining", "dataset": f"MTEB {task}", "config": f"{NAMES[lang]['three']}-eng",
         "metric": "accuracy", "value": round(value, 2)}
        for task, column in (("NTREXBitextMining", "NTREX accuracy"), ("Tatoeba", "Tatoeba accuracy"))
        for lang, value in columns.get(column, {}).items()
    ]  # fmt: skip
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def found_files(data: Path, *patterns: str) -> list[Path]:
    return [path for pattern in patterns for path in sorted(data.glob(pattern))][:1]


def parallel(data: Path, name: str) -> dict[str, list[str]]:
    """Return the lines of each language that a benchmark has; raise SystemExit if they are not parallel."""
    sides = {}
    for two, names in {"en": names_of("eng"), **NAMES}.items():
        for path in found_files(data, *(place.format(two=two, **names) for place in PLACES[name])):
            sides[two] = list(iter_lines(path))
    counts = {lang: len(lines) for lang, lines in sides.items()}
    if len(set(counts.values())) > 1:
        raise SystemExit(f"{data}: {name} is not parallel: {counts}")
    return sides


def units(encoder: Encoder, lines: list[str]) -> np.ndarray:
    rows = np.asarray(encoder.encode(lines), dtype=np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def hits(src: np.ndarray, tgt: np.ndarray) -> np.ndarray:
    """Return whether the translation comes first: (directions, by cosine and by ratio margin, sentences)."""
    cosines = src @ tgt.T
    # The nearest of each side, in no order; a pool of fewer than K sentences is searched whole.
    k = min(K, len(src))
    near = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
    back = np.argpartition(-cosines, k - 1, axis=0)[:k].T
    row = np.arange(len(src))[:, None]
    forward_cosines, backward_cosines = cosines[row, near], cosines[back, row]
    mean_src, mean_tgt = forward_cosines.mean(axis=1), backward_cosines.mean(axis=1)

    def first(candidates: np.ndarray, found: np.ndarray, own: np.ndarray, other: np.ndarray) -> np.ndarray:
        margins = found / ((own[:, None] + other[candidates]) / 2)
        best = np.stack([found.argmax(axis=1), margins.argmax(axis=1)])
        return candidates[row[:, 0], best] == row[:, 0]

    forward = first(near, forward_cosines, mean_src, mean_tgt)
    return np.stack([forward, first(back, backward_cosines, mean_tgt, mean_src)])


def rates(found: np.ndarray) -> list[float]:
    """Return the percentages by cosine and by ratio margin."""
    return (100 * found.mean(axis=(0, 2))).tolist()


def print_table(columns: Mapping[str, Mapping[str, float]]) -> None:
    def mean(column: Mapping[str, float], langs: list[str]) -> float | None:
        values = [column[lang] for lang in langs if lang in column]
        return float(np.mean(values)) if values else None

    groups = {lang: [lang] for lang in NAMES}
    groups |= {f"mean of {group}": [lang for lang in NAMES if GROUP[lang] == group] for group in GROUPS}
    rows = (
        [name, *(mean(c, langs) for c in columns.values())]
        for name, langs in {**groups, "mean": [*NAMES]}.items()
    )
    table(["", *columns], (row for row in rows if any(value is not None for value in row[1:])))


def every_pair(data: Path, encoder: Encoder, name: str) -> None:
    """Write and draw NTREX's accuracy of each pair of languages, mean of both directions; print what is said of all."""
    vectors = {lang: units(encoder, lines) for lang, lines in parallel(data, "NTREX").items()}
    rows = []
    for a, b in itertools.combinations(vectors, 2):
        rows.append((a, b, *rates(hits(vectors[a], vectors[b]))))
    lines = (f"{a}\t{b}\t{cosine:.2f}\t{margin:.2f}\n" for a, b, cosine, margin in rows)
    Path(f"{name}.tsv").write_text("language\tother\tcosine\tmargin\n" + "".join(lines), encoding="utf-8")
    cosine, margin = (np.mean([row[i] for row in rows]) for i in (2, 3))
    a, b, _, lowest = min(rows, key=lambda row: row[3])
    print(
        f"\nNTREX, {len(rows)} pairs of languages, accuracy by cosine {cosine:.2f}, by ratio margin {margin:.2f}; "
        f"lowest by margin: {a}-{b} {lowest:.2f}"
    )
    heat_map({(a, b): margin for a, b, _, margin in rows}, name)


def heat_map(margins: Mapping[tuple[str, str], float], stem: str) -> None:
    """Draw the pairs' accuracy by ratio margin, for light and for dark pages."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    names = sorted({lang for pair in margins for lang in pair}, key=RELATED.split().index)
    table = np.full((len(names), len(names)), np.nan)
    for pair, margin in margins.items():
        i, j = sorted(map(names.index, pair), reverse=True)
        table[i, j] = round(margin, 2)
    for theme, text in (("light", "#1f2328"), ("dark", "#e6edf3")):
        with matplotlib.rc_context(
            {"svg.hashsalt": "bitextmine", "svg.fonttype": "none", "text.color": text}
        ):
            side = max(5.6, len(names) / 6)
            drawn = Figure(figsize=(side + 0.65, side), layout="constrained")
            FigureCanvasSVG(drawn)
            axes = drawn.subplots()
            low = max(90.0, float(np.floor(np.nanmin(table))))
            image = axes.imshow(table, cmap="viridis", vmin=low, vmax=100)
            axes.set_xticks(range(len(names) - 1), names[:-1], fontsize=7)
            axes.set_yticks(range(1, len(names)), names[1:], fontsize=7)
            axes.set_ylim(len(names) - 0.5, 0.5)
            axes.set_xlim(-0.5, len(names) - 1.5)
            axes.tick_params(colors=text, length=0)
            for spine in axes.spines.values():
                spine.set_visible(False)
            bar = drawn.colorbar(image, ax=axes, shrink=0.6, pad=0.01)
            bar.ax.tick_params(colors=text, labelsize=7)
            bar.outline.set_visible(False)  # type: ignore[operator]
            drawn.savefig(f"{stem}-{theme}.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
