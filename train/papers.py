"""Train the objectives of Mao et al. (2021) and the stages of Ding et al. (2022) at a small scale: train/papers.md.

    python train/papers.py objectives --data CORPORA --bench BENCHMARKS --out papers
    python train/papers.py distillation --data CORPORA --bench BENCHMARKS --out papers --teacher MINILM

Every row is a call of `bitextmine train` into OUT/NAME; rows that are there are measured, not trained again.

CORPORA holds NAME.en-LANG.tsv.zst, BENCHMARKS retrieval/ and sts/ (as for `evaluate`). MINILM is all-MiniLM-L6-v2: a
folder, or its name on the Hub. The assistant of Ding et al. starts from the piece vectors of --start, turned towards
the space of the teacher, below layers that do nothing yet.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from harness import bitextmine, parser, table

# Mao et al., Table 6 and Table 4: P@1 en-fr, fr-en of 2,000 queries among 200,000 Europarl sentences.
PAPER = {
    "contrastive": "",  # its vocabulary serves all
    "mlm": "19.6 / 25.4",
    "smlm": "85.0 / 85.3",
    "xtr": "89.5 / 90.8",
    "ugt": "89.8 / 90.6",
    "ugt+align+sim": "90.2 / 90.8",
}
TEXT = ("laws", "business", "devdocs", "docs", "tatoeba")
SMALL = {
    "model.dim": 64, "model.heads": 4, "model.ffn": 128, "model.dropout": 0, "model.max_pieces": 64,
    "model.initial_std": 0.01, "train.batch_tokens": 4096, "train.warmup": 0.1, "train.schedule": "cosine",
    "train.floor": 0.02, "train.valid_every": 1_000_000, "data.valid_pairs": 200, "data.language_filter": False,
}  # fmt: skip

# Ding et al., Table 2: Spearman x 100 across languages, of XLM-R students of SBERT-paraphrases.
STUDENTS = {
    "student": ({"model.bottleneck": 128, "model.recurrent": 3}, "79.4"),
    "no bottleneck": ({"model.recurrent": 3}, "83.2"),
    "all six layers": ({"model.bottleneck": 128}, "82.8"),
    "no recurrence": ({"model.bottleneck": 128, "distil.layers": 3}, "71.7"),
    "no contrast": ({"model.bottleneck": 128, "model.recurrent": 3, "distil.contrast": "none"}, "78.5"),
    "Bool": ({"model.bottleneck": 128, "model.recurrent": 3, "distil.contrast": "bool"}, "79.0"),
    "CE": ({"model.bottleneck": 128, "model.recurrent": 3, "distil.contrast": "ce"}, "78.9"),
}
SHAPE = {"layers": 6, "dim": 384, "heads": 6, "ffn": 768, "max_pieces": 128}
STAGES = (20_000, 4_000, 6_000, 5_000)  # pairs


def train(folder: Path, recipe: str | None, pairs: list[Path], settings: Mapping[str, object]) -> None:
    """Run `bitextmine train`, unless the folder has a finished model."""
    if (folder / "config.json").exists():
        return
    command = ["train", *([recipe] if recipe else []), "--out", str(folder)]
    for path in pairs:
        command += ["--pairs", str(path)]
    for key, value in settings.items():
        command += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    bitextmine(*command)


def objectives(args: argparse.Namespace) -> None:
    pairs = [args.data / f"{name}.en-fr.tsv.zst" for name in TEXT]
    cache = {"data.cache": str((args.out / "cache").resolve())}
    first = args.out / "contrastive-0"  # makes the vocabulary of all

    def rows() -> Iterator[list[object]]:
        for name in PAPER:
            weights = ", ".join(
                f"{part} = {2.0 if part in ('align', 'sim') else 1.0}" for part in name.split("+")
            )
            row: list[object] = [name, PAPER[name]]
            for layers in (0, 2):
                if name == "mlm" and not layers:
                    row += [None, None, None]  # needs layers
                    continue
                settings = {
                    **SMALL, **cache, "model.layers": layers, "train.objective": f"{{ {weights} }}",
                    "train.batch": 64, "train.steps": args.pairs * (1 if layers else 4) // 64,
                    "train.learning_rate": 1e-3,
                    "train.embedding_learning_rate": 6e-3 if name == "contrastive" else 2e-2,
                    **({"vocabulary.tokenizer": str(first.resolve() / "tokenizer.model")} if first.exists() else
                       {"vocabulary.size": 8_000, "vocabulary.fold_case": True}),
                }  # fmt: skip
                folder = args.out / f"{name}-{layers}"
                train(folder, "paper-bilingual", pairs, settings)
                last = json.loads((folder / "log.jsonl").read_text(encoding="utf-8").splitlines()[-1])
                row.append(last["p_at_1"]["mean"])
                if not layers:
                    row += retrieval(folder)
            yield row

    def retrieval(folder: Path) -> list[object]:
        bench = args.bench / "retrieval"
        _, out = bitextmine(
            "evaluate", "retrieval", "--queries", bench / "queries.tsv.zst", "--distractors", bench,
            "--pairs", "en-fr,fr-en", "--model", folder, "--format", "json",
        )  # fmt: skip
        results = json.loads(out)["results"]
        return [
            " / ".join(f"{100 * r['p_at_1']:.1f}" for r in results if r["measure"].startswith(measure))
            for measure in ("cosine", "ratio")
        ]

    header = ["objective", "the paper", "held-out", "cosine", "ratio margin", "2 layers: held-out"]
    table(header, rows(), digits=1)


def distillation(args: argparse.Namespace) -> None:
    langs = ("de", "es", "fr", "it")
    pairs = [args.data / f"tatoeba.en-{lang}.tsv.zst" for lang in langs]
    start = args.out / "start"
    if not (start / "config.json").exists():
        make_start(args.start, args.teacher, pairs, start)
    epochs = [args.scale * stage / args.lines for stage in STAGES]
    common = {
        "model.dropout": 0, "model.storage": "float32", "train.batch": 128, "train.batch_tokens": 4096,
        "train.autocast": "bfloat16", "train.piece_dropout": 0.05, "train.learning_rate": 1e-3,
        "train.embedding_learning_rate": 2e-3, "train.warmup": 0.1, "data.valid_pairs": 0,
        "data.cache": str((args.out / "cache").resolve()), "teacher.model": args.teacher,
        "teacher.languages": ["en"], "teacher.lines": args.lines, "teacher.batch": 128,
    }  # fmt: skip
    assistant = args.out / "assistant"
    files = [args.bench / f"sts/stsb.{lang}.dev.csv" for lang in ("en", *langs)]

    def rows() -> Iterator[list[object]]:
        train(
            assistant,
            None,
            pairs,
            {**common, "distil.assistant": str(start), "distil.epochs": [epochs[0], 0, 0, 0]},
        )
        yield ["assistant", "83.7", *measure(assistant)]
        for name, (settings, paper) in STUDENTS.items():
            folder = args.out / name.replace(" ", "-")
            taught = {"distil.assistant": str(assistant), "distil.epochs": [0, *epochs[1:]]}
            train(folder, None, pairs, {**common, **taught, **settings})
            yield [name, paper, *measure(folder)]

    def measure(folder: Path) -> list[object]:
        across = ",".join(f"en-{lang}" for lang in langs)
        report = json.loads(
            bitextmine("evaluate", "sts", *files, "--pairs", across, "--model", folder, "--format", "json")[1]
        )
        means = {mean["languages"]: 100 * mean["spearman"] for mean in report["means"]}
        return [means["across"], means["within"], *parameters(folder)]

    header = ["", "the paper, across languages", "across", "within", "embedding, million", "layers, million"]
    table(header, rows(), digits=1)


def parameters(folder: Path) -> tuple[float, float]:
    """Return the millions of numbers outside and inside the layers."""
    from safetensors.numpy import load_file

    sizes = {name: array.size / 1e6 for name, array in load_file(folder / "model.safetensors").items()}
    layers = sum(size for name, size in sizes.items() if "layer" in name)
    return sum(sizes.values()) - layers, layers


def make_start(start: str, teacher: str, pairs: list[Path], folder: Path) -> None:
    """Write an assistant that computes the sum of the pieces of a sentence.

    Of the numbers of a state the first two are a constant, 2 sqrt(dim) long; the rest, which add up to 0, are a piece's
    vector. What layer norms divide by then hardly depends on the piece, so that the mean over the pieces keeps their
    lengths. The last matrices of the layers are zero. The vectors are turned to where the teacher has the sentences.
    """
    import torch

    from bitextmine.encoder import load_encoder
    from bitextmine.encoder.config import EncoderConfig
    from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, resolve, save_folder
    from bitextmine.encoder.model import SentenceModel
    from bitextmine.encoder.tokenizer import Tokenizer
    from bitextmine.encoder.weights import piece_vectors, read_weights
    from bitextmine.files.lines import iter_lines

    source, silent, dim = resolve(start), 2, SHAPE["dim"]
    config, _ = read_folder(source)
    tokenizer = Tokenizer(source / TOKENIZER)
    pieces = piece_vectors(dict(read_weights(config, source / WEIGHTS)))[: config.vocab_size]
    free = np.eye(dim, dim - silent, -silent) - np.pad(
        np.full((dim - silent, dim - silent), 1 / (dim - silent)), ((silent, 0), (0, 0))
    )
    free = np.linalg.svd(free, full_matrices=False)[0][:, : dim - silent - 1]
    lines = [
        line.split("\t") for path in pairs for _, line in zip(range(1000), iter_lines(path), strict=False)
    ]
    wanted = np.asarray(load_encoder(teacher).encode([src for src, _ in lines]), dtype=np.float64) @ free
    products, squares, count = np.zeros((pieces.shape[1], free.shape[1])), 0.0, 0
    for texts in zip(*lines, strict=True):
        ids, _ = tokenizer.encode(list(texts))
        sums = np.add.reduceat(np.vstack([pieces[ids.ids], np.zeros((1, pieces.shape[1]))]), ids.offsets[:-1])
        sums[ids.lengths == 0] = 0
        products += (sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)).T @ wanted
        squares, count = squares + float(np.square(pieces[ids.ids]).sum()), count + len(ids.ids)
    left, _, right = np.linalg.svd(products, full_matrices=False)
    vectors = pieces @ (left @ right) @ free.T * np.sqrt(dim * count / squares)
    torch.manual_seed(1)
    languages = ("de", "en", "es", "fr", "it")
    model = SentenceModel(EncoderConfig(config.vocab_size, dropout=0.0, languages=languages, **SHAPE))
    with torch.no_grad():
        model.embedding.weight.copy_(torch.from_numpy(vectors))
        model.positions.weight.zero_()
        model.positions.weight[:, 0], model.positions.weight[:, 1] = (2 * dim) ** 0.5, -((2 * dim) ** 0.5)
        for layer in model.layers:
            for part in (layer.out, layer.down):
                part.weight.zero_()
                part.bias.zero_()
            layer.attention_norm.weight[:silent] = layer.ffn_norm.weight[:silent] = 0
        model.norm.weight[:silent] = 0
    save_folder(folder, model, source / TOKENIZER, dtype="float32")


def main() -> None:
    command = parser(__doc__)
    command.add_argument("paper", choices=["objectives", "distillation"])
    command.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    command.add_argument("--bench", type=Path, required=True, help="folder of the benchmarks")
    command.add_argument("--out", type=Path, required=True, help="folder of the trained encoders")
    command.add_argument(
        "--pairs",
        type=int,
        default=25_600,
        help="objectives: pairs per row; without layers four times as many (25,600)",
    )
    command.add_argument("--teacher", default="sentence-transformers/all-MiniLM-L6-v2")
    command.add_argument(
        "--start", default="europe5", help="distillation: a sum of subword vectors (europe5)"
    )
    command.add_argument(
        "--lines", type=int, default=20_000, help="distillation: pairs that the teacher reads (20,000)"
    )
    command.add_argument(
        "--scale", type=float, default=1.0, help="distillation: times the pairs of each stage (1)"
    )
    args = command.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    {"objectives": objectives, "distillation": distillation}[args.paper](args)


if __name__ == "__main__":
    main()
