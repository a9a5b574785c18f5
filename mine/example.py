# %% [markdown]
# Mining, scoring and measuring from Python, on the sample corpora. Open this file as a notebook (Jupyter with jupytext,
# VS Code, PyCharm), or run it:
#
#     python mine/example.py precision.png
#
# The picture goes to the file that is named; in a notebook it goes to precision.png. It needs matplotlib
# (`pip install matplotlib`).

# %%
import argparse
import sys
from pathlib import Path

import pandas

import bitextmine

try:
    from matplotlib.figure import Figure
except ImportError:
    sys.exit("mine/example.py needs matplotlib: pip install matplotlib")

samples = Path(__file__).parent / "samples" if "__file__" in globals() else Path("mine/samples")
parser = argparse.ArgumentParser(description="Mine, score and measure the sample corpora.")
parser.add_argument(
    "picture", nargs="?", default="precision.png", help="of the plot (default: precision.png)"
)
picture = parser.parse_args([] if "ipykernel" in sys.modules else None).picture

# %% [markdown]
# Two corpora. Half of the lines of each have a translation in the other, at another position.

# %%
english = (samples / "sample.en").read_text(encoding="utf-8").splitlines()
french = (samples / "sample.fr").read_text(encoding="utf-8").splitlines()
print(f"{len(english)} English lines, {len(french)} French lines")

# %% [markdown]
# Mine them. Lists of lines leave no file behind; with paths the embeddings would be kept beside the corpora.
# `threshold="none"` keeps every candidate, so that we can look at thresholds below.

# %%
encoder = bitextmine.load_encoder("default")
found = bitextmine.mine(english, french, src_lang="en", tgt_lang="fr", model=encoder, threshold="none")
frame = found.to_frame()
print(frame[["score", "src", "tgt"]].head(5).to_string(index=False, max_colwidth=60, float_format="%.2f"))
print(found.signature)

# %% [markdown]
# Columns that help to judge a pair, beside it: the agreement of numbers, words that were not translated, and all in
# one probability.

# %%
scored = frame.join(bitextmine.score(frame, src_lang="en", tgt_lang="fr", model=encoder))
print(scored[["score", "cosine", "numbers", "copy", "quality"]].describe().round(2).to_string())

# %% [markdown]
# The true pairs are known here, so we can see what each threshold gives: the share of right pairs among those kept
# (precision), and the share of the true pairs that are kept (recall).

# %%
gold = pandas.read_csv(samples / "gold.en-fr.tsv", sep="\t", names=["src_line", "tgt_line"])
right = frame.merge(gold, how="left", indicator=True)["_merge"] == "both"
precision = right.expanding().mean()  # the best pair comes first
recall = right.cumsum() / len(gold)

automatic = bitextmine.mine(english, french, src_lang="en", tgt_lang="fr", model=encoder)
threshold = automatic.threshold
print(*automatic.notes, sep="\n")
above = frame["score"] >= threshold
print(
    f"in truth, above {threshold:.2f}: precision {right[above].mean():.1%}, recall {right[above].sum() / len(gold):.1%}"
)

# %%
figure = Figure(figsize=(7, 4), layout="constrained")
axes = figure.subplots()
axes.plot(frame["score"], precision, label="precision")
axes.plot(frame["score"], recall, label="recall")
axes.axvline(threshold, color="grey", linestyle=":", label="threshold auto")
axes.set(xlabel="threshold (log odds)", ylim=(0, 1.02), title="Sample corpora, English and French")
axes.legend(loc="lower left")
figure.savefig(picture)
print(f"{picture}: precision and recall against the threshold")

# %% [markdown]
# A file of pairs is cleaned by rules, as `bitextmine filter` does. In a notebook a result shows itself.

# %%
kept = bitextmine.filter(automatic.to_frame(), src_lang="en", tgt_lang="fr", model=encoder)
print(kept, {reason: count for reason, count in kept.counts.items() if count})
