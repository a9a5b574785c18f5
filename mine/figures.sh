#!/usr/bin/env bash
# Run the benchmarks behind the first table of train/quality.md and print their reports: PY=python mine/figures.sh FOLDER
#
# FOLDER holds the public benchmarks:
#   retrieval/     queries.tsv.zst, distractors.LANG.txt.zst     Europarl, 2,000 queries among up to 200,000 sentences
#   mining.en-fr/  corpus.en.zst, corpus.fr.zst, gold.tsv        10,000 pairs hidden in 2 x 60,000 sentences
#   news/          queries.tsv.zst                               WMT tests of 2009
#   everyday/      queries.en-LANG.tsv.zst                       Tatoeba
#   sts/           stsb.LANG.dev.csv                             the multilingual STS benchmark
# PEERS="use=PYTHON e5=PYTHON" also measures other encoders (train/bench_peers.py says what these need).
set -euo pipefail

data=${1:?"give the folder of the benchmarks: make figures DATA=FOLDER"}
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PY:-python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bitextmine() { "$python" -m bitextmine "$@"; }

echo "# $(git -C "$root" describe --always --dirty 2>/dev/null || true), $(bitextmine --version), $(grep -m 1 -o 'model name.*' /proc/cpuinfo || uname -m)"

peers=()
for peer in ${PEERS:-}; do peers+=(--peer "$peer"); done
printf '\n## Errors in news and everyday text, sentences per second\n'
"$python" "$root/train/bench_peers.py" --model europe5 --model world56 "${peers[@]}" \
    "$data"/news/queries.tsv.zst "$data"/everyday/queries.en-{de,es,fr,it}.tsv.zst

for model in europe5 world56; do
    printf '\n## %s: P@1 on Europarl\n' "$model"
    bitextmine evaluate retrieval --queries "$data/retrieval/queries.tsv.zst" --distractors "$data/retrieval" \
        --pairs en-fr,fr-en,en-it,it-en,de-en,es-en --model "$model"
    for more in --rescore --no-rescore; do
        printf '\n## %s: mining en-fr, %s\n' "$model" "$more"
        bitextmine mine "$data"/mining.en-fr/corpus.{en,fr}.zst --ids --threshold none $more --model "$model" \
            --cache "$work" -o "$work/mined.tsv"
        bitextmine evaluate mining "$work/mined.tsv" --gold "$data/mining.en-fr/gold.tsv"
    done
    printf '\n## %s: similarity\n' "$model"
    bitextmine evaluate sts "$data"/sts/stsb.{en,de,es,fr,it}.dev.csv --pairs en-de,en-es,en-fr,en-it --model "$model"
done
