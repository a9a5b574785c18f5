#!/usr/bin/env bash
# Mines the sample corpora in five language pairs: the best pairs, precision, recall, F1, P@1 and the time taken.
# PY is the Python that bitextmine is installed for (default: python3), BITEXTMINE_MODEL the encoder.
set -euo pipefail

samples=$(cd "$(dirname "${BASH_SOURCE[0]}")/samples" && pwd)
python=$(command -v "${PY:-python3}")
case $python in /*) ;; *) python=$PWD/$python ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What a person would type, shown and then run; notes about progress stay out of the way.
run() {
    printf '\n$ bitextmine %s\n' "$*"
    "$python" -m bitextmine "$@" 2>"$work/notes" || { cat "$work/notes" >&2; exit 1; }
}

# Vectors go beside their corpora: work on a copy, so that the checkout stays as it is. The queries are the
# sentences that all five files share, the distractors those that have no translation.
cp "$samples"/sample.* "$samples"/gold.*.tsv "$work"
awk 'FNR > 1 || NR == 1' "$samples"/source/parallel-*.tsv | cut -f 2- >"$work/queries.tsv"
for lang in de en es fr it; do
    cat "$samples/source/alone.$lang"*.txt >"$work/distractors.$lang.txt"
done
cd "$work"
SECONDS=0

run embed sample.de sample.en sample.es sample.fr sample.it
for pair in en-fr en-de en-es en-it de-it; do
    src=${pair%-*} tgt=${pair#*-}
    run mine --src "$src" --tgt "$tgt" --threshold none --ids -o "mined.$pair.tsv"
    head -n 4 "mined.$pair.tsv" | cut -f 1,4,5
    run evaluate mining "mined.$pair.tsv" --gold "gold.$pair.tsv"
done
run evaluate retrieval --queries queries.tsv --distractors .

printf '\nFive corpora of %d sentences, from text to all of the above: %d seconds.\n' \
    "$(wc -l <sample.en)" "$SECONDS"
