"""Train encoders with the objectives of Mao et al. (2021) at a small scale, for the table of train/papers.md.

    python train/papers.py --data CORPORA --bench BENCHMARKS --out papers

Every encoder is made by `bitextmine train paper-bilingual` in OUT/NAME-LAYERS, unless it is there already.
CORPORA holds NAME.en-fr.tsv.zst, BENCHMARKS retrieval/ as `evaluate retrieval` reads it.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness import bitextmine, parser, table

# Mao et al., Table 6 and Table 4: P@1 en-fr, fr-en of 2,000 queries among 200,000 Europarl sentences.
PAPER = {"contrastive": "", "smlm": "85.0 / 85.3"}
TEXT = ("laws", "business", "devdocs", "docs", "tatoeba")
SMALL = {
    "model.dim": 64, "model.heads": 4, "model.ffn": 128, "model.dropout": 0, "model.max_pieces": 64,
    "model.initial_std": 0.01, "train.warmup": 0.1, "train.schedule": "cosine",
    "train.floor": 0.02, "train.valid_every": 1_000_000, "data.valid_pairs": 200, "train.batch": 64,
    "train.learning_rate": 1e-3, "vocabulary.size": 8_000, "vocabulary.fold_case": "true",
}  # fmt: skip


def train(folder: Path, pairs: list[Path], settings: Mapping[str, object]) -> None:
    """Run `bitextmine train`, unless the folder has a finished model."""
    if not (folder / "config.json").exists():
        options = [("--pairs", str(path)) for path in pairs]
        options += [("--set", f"{key}={value}") for key, value in settings.items()]
        bitextmine("train", "paper-bilingual", "--out", folder, *itertools.chain(*options))


def rows(args: argparse.Namespace, pairs: list[Path]) -> Iterator[list[object]]:
    for name in PAPER:
        row: list[object] = [name, PAPER[name]]
        for layers in (0, 2):
            settings = {
                **SMALL, "data.cache": (args.out / "cache").resolve(), "model.layers": layers,
                "train.objective": f"{{ {name} = 1.0 }}", "train.steps": args.pairs * (1 if layers else 4) // 64,
                "train.embedding_learning_rate": 6e-3 if name == "contrastive" else 2e-2,
            }  # fmt: skip
            folder = args.out / f"{name}-{layers}"
            train(folder, pairs, settings)
            last = json.loads((folder / "log.jsonl").read_text(encoding="utf-8").splitlines()[-1])
            row.append(last["p_at_1"]["mean"])
            if not layers:
                row += retrieval(folder, args.bench / "retrieval")
        yield row


def retrieval(folder: Path, bench: Path) -> list[object]:
    """Return P@1 en-fr / fr-en, by cosine and by ratio margin."""
    _, out = bitextmine(
        "evaluate", "retrieval", "--queries", bench / "queries.tsv.zst", "--distractors", bench,
        "--pairs", "en-fr,fr-en", "--model", folder, "--format", "json",
    )  # fmt: skip
    results = json.loads(out)["results"]
    return [
        " / ".join(f"{100 * r['p_at_1']:.1f}" for r in results if r["measure"].startswith(measure))
        for measure in ("cosine", "ratio")
    ]


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    command.add_argument("--bench", type=Path, required=True, help="folder of the benchmarks")
    command.add_argument("--out", type=Path, required=True, help="folder of the trained encoders")
    command.add_argument(
        "--pairs", type=int, default=25_600, help="per row; without layers four times as many (25,600)"
    )
    args = command.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    pairs = [args.data / f"{name}.en-fr.tsv.zst" for name in TEXT]
    header = ["objective", "the paper", "held-out", "cosine", "ratio margin", "2 layers: held-out"]
    table(header, rows(args, pairs), digits=1)


if __name__ == "__main__":
    main()
