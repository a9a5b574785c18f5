"""Sentences a second of `embed_corpus` against sentence-transformers' encode() running the same weights.

Example:  python index/bench_sentence_transformers.py corpus.en.zst --lang en --model 2x512 --lines 2000

Both run in this process, one after the other, as often as asked, and the ratio is that of each pair of runs. Ours goes
from the text file to the finished .npy; theirs gets the lines in memory and keeps the vectors there. The same
tokeniser, the same pieces and the same weights: the model's own padded and masked pass for training, in float32,
wrapped as a module, with sentence-transformers' mean pooling and normalisation behind it.

--model LAYERSxDIM makes an encoder with random weights, as the time does not depend on what they are. --model FOLDER
of sentence-transformers is loaded by both as it is.
Needs `pip install sentence-transformers`.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sentence_transformers
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import InputModule, Normalize
from sentence_transformers.sentence_transformer.modules import Pooling

from bitextmine.embeddings.embed import EmbedOptions, embed_corpus
from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, packaged, read_folder, resolve, save_folder
from bitextmine.encoder.foreign import foreign_kind
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import PIECES, SCALE, read_weights, restore_rows
from bitextmine.files.corpus import corpus_language
from bitextmine.files.lines import iter_lines


class Wrapped(InputModule):
    """Our tokeniser and our layers as sentence-transformers wants them: padded, with a mask."""

    def __init__(self, model: SentenceModel, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer

    def preprocess(self, inputs: list[str], prompt: str | None = None, **_: Any) -> dict[str, torch.Tensor]:
        pieces, _cut = self.tokenizer.encode(inputs, self.model.config.max_pieces)
        lengths = torch.from_numpy(pieces.lengths)
        inside = torch.arange(max(1, int(lengths.max())))[None, :] < lengths[:, None]
        ids = torch.zeros(inside.shape, dtype=torch.long)
        ids[inside] = torch.from_numpy(pieces.ids).long()
        return {"input_ids": ids, "attention_mask": inside.long()}

    def forward(self, features: dict[str, torch.Tensor], **_: Any) -> dict[str, torch.Tensor]:
        inside = features["attention_mask"].bool()
        features["token_embeddings"] = self.model.states(features["input_ids"], inside)
        return features

    def get_embedding_dimension(self) -> int:
        return self.model.config.dim

    def save(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError


def random_folder(layers: int, dim: int, folder: Path) -> Path:
    """Write a model folder with random weights and the vocabulary of the packaged encoder."""
    tokenizer = packaged("default") / TOKENIZER
    config = EncoderConfig(
        Tokenizer(tokenizer).vocab_size, dim, layers, heads=dim // 64, ffn=2 * dim, max_pieces=200
    )
    torch.manual_seed(0)
    model = SentenceModel(config)
    model.initialise(0.05)
    save_folder(folder, model, tokenizer)
    return folder


def wrapped(folder: Path) -> SentenceTransformer:
    if foreign_kind(folder) == "sentence_transformers":
        return SentenceTransformer(str(folder), device="cpu")
    config, tokenizer = read_folder(folder)
    if config.piece_dim != config.dim:
        raise SystemExit(
            f"{folder}: has columns for order or length, which sentence-transformers cannot make"
        )
    weights = read_weights(config, folder / WEIGHTS)
    if (scale := weights.pop(SCALE, None)) is not None:
        weights[PIECES] = restore_rows(weights[PIECES], scale)
    model = SentenceModel(config)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    modules = [Wrapped(model.eval(), tokenizer), Pooling(config.dim), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu")


def seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="one sentence per line, plain or .gz, .xz, .zst")
    parser.add_argument("--lang", help="its language (default: the last suffix)")
    parser.add_argument("--lines", type=int, default=2000, help="only so many from the start")
    parser.add_argument("--model", default="2x512", help="a model folder, or LAYERSxDIM")
    parser.add_argument("--precision", default="auto", help="ours: auto, float32, bfloat16")
    parser.add_argument(
        "--batch", type=int, default=32, help="theirs: sentences per batch (their default: 32)"
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    lang = corpus_language(args.corpus, args.lang)
    lines = list(itertools.islice(iter_lines(args.corpus), args.lines))

    with tempfile.TemporaryDirectory() as name:
        text = Path(name, f"corpus.{lang}")
        text.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
        if Path(args.model).is_dir():
            folder = resolve(args.model)
        else:
            layers, dim = map(int, args.model.split("x"))
            folder = random_folder(layers, dim, Path(name, "model"))
        encoder = load_encoder(folder, "cpu", precision=args.precision)
        theirs = wrapped(folder)
        vectors: np.ndarray = np.empty(0)

        def ours() -> None:
            embed_corpus(text, encoder, options=EmbedOptions(force=True))

        def other() -> None:
            nonlocal vectors
            vectors = theirs.encode(lines, batch_size=args.batch)

        pieces = encoder.tokenize(lines)[0].lengths.mean()
        ours(), other()  # warms up
        pairs = [(seconds(ours), seconds(other)) for _ in range(args.repeats)]
        cosine = (np.load(f"{text}.npy").astype(np.float32) * vectors).sum(1)[np.any(vectors, axis=1)]

    fast, slow = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{len(lines):,} lines of {pieces:.0f} pieces, model {args.model}, {args.threads} threads")
    print(
        f"{'bitextmine':34}{len(lines) / fast:8,.0f} sentences/s ({encoder.network.precision}, file to .npy)"
    )
    version = sentence_transformers.__version__
    print(
        f"{f'sentence-transformers {version}':34}{len(lines) / slow:8,.0f} sentences/s (float32, batch {args.batch})"
    )
    ratios = sorted(b / a for a, b in pairs)
    print(
        f"{'ratio, median of the pairs':34}{statistics.median(ratios):8.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )
    print(f"{'cosine to theirs, least':34}{cosine.min():8.5f}")


if __name__ == "__main__":
    main()
