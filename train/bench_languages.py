"""What the language filter drops by mistake and what it catches, by data.language_share, and how fast it is.

Example: python train/bench_languages.py FOLDER-OF-THE-CORPORA

Columns in their own language should stay; columns given out as another language should go. Rates are per processor
second, of the same texts: bitextmine.languages.identify against py3langid's own `rank`.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from bitextmine.files.lines import iter_lines
from bitextmine.languages.identify import Languages

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
# A corpus, which of its columns, and the language that it is said to be in.
OWN = (
    ("europarl.en-fr", 0, "en"),
    ("europarl.en-fr", 1, "fr"),
    ("europarl.en-it", 1, "it"),
    ("tatoeba.en-fr", 0, "en"),
    ("tatoeba.en-fr", 1, "fr"),
    ("tatoeba.en-de", 1, "de"),
    ("business.en-fr", 0, "en"),
    ("business.en-fr", 1, "fr"),
    ("docs.en-fr", 1, "fr"),
    ("devdocs.en-es", 1, "es"),
)
FOREIGN = (
    ("europarl.en-it", 1, "fr"),
    ("tatoeba.en-de", 1, "fr"),
    ("tatoeba.en-fr", 0, "fr"),
    ("business.en-it", 1, "es"),
    ("business.en-de", 1, "fr"),
    ("docs.en-es", 1, "fr"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors and speed of the language filter.")
    parser.add_argument("folder", type=Path, help="the folder of NAME.en-XX.tsv.zst")
    parser.add_argument(
        "--lines", type=int, default=6000, help="of each column, after the first 20,000 (6000)"
    )
    options = parser.parse_args()
    known = Languages()
    spent = texts = 0.0
    column: list[str] = []
    print("| column | said to be | " + " | ".join(f"below {share}" for share in SHARES) + " |")
    print("|---|---|" + "---|" * len(SHARES))
    for kind, cases in (("right", OWN), ("wrong", FOREIGN)):
        for name, number, language in cases:
            lines = islice(iter_lines(options.folder / f"{name}.tsv.zst"), 20_000, 20_000 + options.lines)
            column = [line.split("\t")[number] for line in lines]
            begin = time.process_time()
            found = known.share(column, language)
            spent += time.process_time() - begin
            texts += len(column)
            rates = " | ".join(f"{100 * (found < share).mean():.2f}" for share in SHARES)
            print(f"| {name}, {number + 1} | {language} ({kind}) | {rates} |")
    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    begin = time.process_time()
    for text in column[:1000]:
        model.rank(text[:240])
    own = 1000 / (time.process_time() - begin)
    print(f"\n{texts / spent:,.0f} texts a processor second; py3langid one by one: {own:,.0f}")


if __name__ == "__main__":
    main()
