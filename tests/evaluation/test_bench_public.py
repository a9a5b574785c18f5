"""The benchmarks of public figures and beside other encoders, on small files laid out as they expect them."""

import json
import subprocess
import sys


def test_plain_clones_are_measured(root, tmp_path):
    samples = root / "mine/samples"
    lines = {
        lang: (samples / f"sample.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "fr")
    }
    gold = [
        tuple(map(int, line.split("\t"))) for line in (samples / "gold.en-fr.tsv").read_text().splitlines()
    ]
    sides = {
        "eng": [lines["en"][src - 1] for src, _ in gold],
        "fra": [lines["fr"][tgt - 1] for _, tgt in gold],
    }
    sides["fra"][0] = sides["fra"][1]  # one wrong pair
    names = {
        "NTREX/NTREX-128/newstest2019-src.eng.txt": "eng",
        "NTREX/NTREX-128/newstest2019-ref.fra.txt": "fra",
        "NTREX/NTREX-128/newstest2019-ref.fra-CA.txt": "eng",
        "flores200_dataset/devtest/eng_Latn.devtest": "eng",
        "flores200_dataset/devtest/fra_Latn.devtest": "fra",
        "LASER/data/tatoeba/v1/tatoeba.fra-eng.eng": "eng",
        "LASER/data/tatoeba/v1/tatoeba.fra-eng.fra": "fra",
    }
    for name, side in names.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in sides[side]), encoding="utf-8")
    script = [sys.executable, root / "train/bench_public.py", "--data", tmp_path, "--model", "europe5"]
    done = subprocess.run(
        [*script, "--results", tmp_path / "results.json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    header, _, french, *_ = done.stdout.splitlines()
    found = dict(zip(header.split(" | ")[1:], french.removesuffix(" |").split(" | ")[1:], strict=True))
    for benchmark in ("NTREX", "FLORES", "Tatoeba"):
        name = next(name for name in found if name.startswith(f"{benchmark} accuracy"))
        assert 95 < float(found[name]) < 100
    results = json.loads((tmp_path / "results.json").read_text())
    assert [(r["dataset"], r["config"]) for r in results] == [
        ("MTEB NTREXBitextMining", "fra-eng"),
        ("MTEB Tatoeba", "fra-eng"),
    ]
    (tmp_path / "NTREX/NTREX-128/newstest2019-ref.fra.txt").write_text("une ligne\n")
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert "NTREX is not parallel" in done.stderr


def test_errors_beside_other_encoders(root, tmp_path):
    """Of 40 rows one has the translation of another: one error in each direction, by cosine and by ratio margin."""
    rows = [
        line.split("\t") for line in (root / "mine/samples/source/parallel-1.tsv").read_text().splitlines()
    ]
    pairs = [(row[1], row[4]) for row in rows if row[1] != "en"][:40]
    pairs[0] = (pairs[0][0], pairs[1][1])
    queries = tmp_path / "queries.tsv"
    queries.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in [("en", "fr"), *pairs]), encoding="utf-8")
    script = [sys.executable, root / "train/bench_peers.py", queries]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| en-fr | 40 | 2.50 / 2.50 |" in done.stdout
