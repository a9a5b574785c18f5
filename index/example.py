# %% [markdown]
# Vectors and nearest neighbours from Python, on the sample corpora. Open this file as a notebook (Jupyter with
# jupytext, VS Code, PyCharm), or run it:
#
#     python index/example.py

# %%
from pathlib import Path

import bitextmine

samples = Path(__file__).parent.parent / "mine/samples" if "__file__" in globals() else Path("mine/samples")
english = (samples / "sample.en").read_text(encoding="utf-8").splitlines()
french = (samples / "sample.fr").read_text(encoding="utf-8").splitlines()

# %% [markdown]
# A vector of length 1 per sentence: the product of two is their cosine.

# %%
encoder = bitextmine.load_encoder("default")
src, tgt = encoder.encode(english), encoder.encode(french)
print(src.shape, src.dtype)

# %% [markdown]
# The four nearest sentences in both directions, exactly.

# %%
near = bitextmine.knn(src, tgt, k=4)
print(english[0])
for row, cosine in zip(near.fwd_id[0], near.fwd_sim[0], strict=True):
    print(f"    {cosine:.2f}  {french[row]}")

# %% [markdown]
# How often is the nearest one the translation, by cosine and by margins? The pairs are known.

# %%
gold = [tuple(map(int, line.split("\t"))) for line in (samples / "gold.en-fr.tsv").read_text().splitlines()]
pools = {"en": [english[a - 1] for a, _ in gold], "fr": [french[b - 1] for _, b in gold]}
print(bitextmine.evaluate_retrieval(pools, model=encoder).to_table())
