# %% [markdown]
# Training, measuring and exporting an encoder from Python, on the sample corpora. Open this file as a notebook (Jupyter
# with jupytext, VS Code, PyCharm), or run it:
#
#     python train/example.py FOLDER
#
# The encoder goes to FOLDER/model. 264 pairs make no good encoder: with real text leave `settings` out.

# %%
import argparse
import sys
from pathlib import Path

import bitextmine

samples = Path(__file__).parent.parent / "mine/samples" if "__file__" in globals() else Path("mine/samples")
parser = argparse.ArgumentParser(description="Train, measure and export an encoder on the sample corpora.")
parser.add_argument(
    "folder", nargs="?", type=Path, default=Path("work"), help="of the results (default: work)"
)
folder = parser.parse_args([] if "ipykernel" in sys.modules else None).folder
folder.mkdir(exist_ok=True)

# %% [markdown]
# The known pairs as two files, as other tools have them.

# %%
english = (samples / "sample.en").read_text(encoding="utf-8").splitlines()
french = (samples / "sample.fr").read_text(encoding="utf-8").splitlines()
gold = [line.split("\t") for line in (samples / "gold.en-fr.tsv").read_text().splitlines()]
pairs = [(english[int(src) - 1], french[int(tgt) - 1]) for src, tgt in gold]
(folder / "pairs.en-fr.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")

# %% [markdown]
# Train. The keys of `settings` are those of a recipe: `bitextmine train --print-recipe` lists them.

# %%
settings = {
    "vocabulary.size": 500,
    "model.dim": 32,
    "train.epochs": 3,
    "train.batch": 64,
    "data.valid_pairs": 10,
}
model = bitextmine.train(folder / "model", pairs=folder / "pairs.en-fr.tsv", settings=settings)
encoder = bitextmine.load_encoder(model)
print(encoder)

# %% [markdown]
# How often is the nearest sentence the translation? Here of text that it was trained on.

# %%
sides = {"en": [src for src, _ in pairs], "fr": [tgt for _, tgt in pairs]}
vectors = {lang: encoder.encode(lines) for lang, lines in sides.items()}
found = bitextmine.knn(vectors["en"], vectors["fr"], k=1)
print(f"P@1 {(found.fwd_id[:, 0] == range(len(pairs))).mean():.2f}")

# %% [markdown]
# A folder for sentence-transformers, with a model card.

# %%
print(bitextmine.export(model, folder / "exported", force=True))
