"""`bitextmine adapt`: a barely trained encoder is adapted to made-up sentences."""

import json
import random
import shutil
import signal

import pytest

from bitextmine.encoder.folder import SCORER
from bitextmine.shipped import shipped_folder

pytestmark = pytest.mark.timeout(1800)  # many processes

MODEL = ("config.json", "model.safetensors", "tokenizer.model", "adapt.jsonl")
# One thread gives the same bytes in every run.
ALONE = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def piles(parallel_text, tmp_path_factory):
    """corpus.en and corpus.fr, with 900 translations and 180 other lines on each side, and gold.tsv."""
    folder = tmp_path_factory.mktemp("piles")
    pairs = parallel_text(folder, 900, 180)
    lines = {
        lang: (folder / f"corpus.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "fr")
    }
    gold = (f"{lines['en'].index(en) + 1}\t{lines['fr'].index(fr) + 1}\n" for en, fr in pairs)
    (folder / "gold.tsv").write_text("".join(gold))
    return folder


def rounds_of(folder):
    return [json.loads(line) for line in (folder / "adapt.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def weak_model(bitextmine, tiny_model, tmp_path_factory):
    """An encoder that finds most of the made-up pairs."""
    folder = tmp_path_factory.mktemp("weak") / "model"
    pairs = tiny_model.parent / "pairs.en-fr.tsv"
    size = ("--dim", "32", "--vocabulary", "180", "--epochs", "2", "--batch", "128")
    bitextmine("train", "--pairs", pairs, "--out", folder, *size)
    shutil.copy(shipped_folder("europe5") / SCORER, folder)
    return folder


@pytest.fixture(scope="module")
def adapted(bitextmine, piles, weak_model):
    """A complete run: its folder, standard error and options."""
    args = ["corpus.en", "corpus.fr", "--model", weak_model, "--rounds", "2"]
    args += ["--error-rate", "0.2"]  # the made-up sentences are too similar for good estimates
    result = bitextmine("adapt", *args, "--out", "model", cwd=piles, env=ALONE)
    return piles / "model", result.err, args


def test_adapted_encoder(bitextmine, piles, weak_model, adapted):
    folder, said, _ = adapted
    rounds = rounds_of(folder)
    assert [entry["round"] for entry in rounds] == list(range(len(rounds)))
    low, high = rounds[0]["precision_interval"]
    assert rounds[0]["pairs"] >= 200 and 0 <= low <= rounds[0]["estimated_precision"] <= high <= 100
    assert rounds[1]["better"] and rounds[1]["p_at_1_half"] > rounds[0]["p_at_1_half"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "for en, fr, adapted" in card and "corpus.en x corpus.fr" in card
    for entry in rounds:
        assert f"| {entry['round']} |" in card and f"| {entry['p_at_1']} | {entry['p_at_1_half']} |" in card
    assert f"| {low} to {high} |" in card and "round-0" not in card
    assert "round: 1; " in said and "better: yes" in said
    assert not (folder / "work").exists()
    assert (folder / SCORER).read_bytes() == (weak_model / SCORER).read_bytes()
    assert not list(piles.glob("*.npy"))  # embeddings beside the corpora belong to the first encoder
    found = []
    for model in (weak_model, folder):
        out = bitextmine("mine", "--src", "en", "--tgt", "fr", "--ids", "--model", model, cwd=piles).out
        found.append({tuple(line.split("\t")[1:3]) for line in out.splitlines()})
    gold = {tuple(line.split("\t")) for line in (piles / "gold.tsv").read_text().splitlines()}
    assert len(found[1] & gold) > len(found[0] & gold)


def test_killed_in_any_round(bitextmine, piles, adapted, tmp_path):
    whole, _, args = adapted
    for folder, count in (  # touches of a file there
        ("work/round-1/encoder/work", 3),  # in training, at its checkpoint
        ("", 9),  # the log, or the model's files
    ):
        run = ("adapt", *args, "--out", "killed")
        died = bitextmine.dies(
            tmp_path / "hooks", count, *run, folder=f"killed/{folder}", cwd=piles, env=ALONE
        )
        assert died.code == -signal.SIGKILL, folder
    other = bitextmine.fails("adapt", *args, "--error-rate", "0.1", "--out", "killed", cwd=piles)
    assert "another encoder or other options" in other
    bitextmine("adapt", *args, "--out", "killed", cwd=piles, env=ALONE)
    for name in MODEL:
        assert (piles / "killed" / name).read_bytes() == (whole / name).read_bytes(), name
    assert not (piles / "killed" / "work").exists()


def test_text_without_pairs(bitextmine, sentence_pairs, tmp_path, weak_model):
    """Two corpora that are no translations of each other."""
    rng = random.Random(4)
    for lang, side, part in (("en", 0, sentence_pairs[6000:7000]), ("fr", 1, sentence_pairs[8000:9000])):
        lines = [" ".join(rng.sample(pair[side].split(), len(pair[side].split()))) for pair in part]
        (tmp_path / f"corpus.{lang}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    message = bitextmine.fails(
        "adapt", "corpus.en", "corpus.fr", "--model", weak_model, "--out", "model", cwd=tmp_path
    )
    assert "corpus.en x corpus.fr" in message or "was not shown to be better" in message, message
    assert "no model is written" in message
    assert not (tmp_path / "model" / "config.json").exists()
    assert not (tmp_path / "model" / "work").exists()
    assert rounds_of(tmp_path / "model")[0]["round"] == 0


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["few/few.en", "corpus.fr"], 1, ["few.en has 20 different lines"]),
        (["few/same.en", "corpus.fr"], 1, ["same.en has 1 "]),
        (["nosuch.en", "corpus.fr"], 1, ["nosuch.en: no such file; check the path"]),
        (["few", "corpus.fr"], 1, ["few: is a directory"]),
        (["corpus.en", "corpus"], 1, ["corpus: no language", "(or corpus.fr.gz)\n"]),
        (["corpus.en", "corpus.fr", "--out", "taken"], 1, ["taken: the folder is not empty"]),
        (["corpus.en", "corpus.en"], 2, ["both in 'en'"]),
        (["corpus.en", "corpus.fr", "--error-rate", "0"], 2, ["--error-rate"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input(bm, piles, tmp_path, args, code, words):
    for name in ("corpus.en", "corpus.fr"):
        (tmp_path / name).write_bytes((piles / name).read_bytes())
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "few.en").write_text("".join(f"Line {i}.\n" for i in range(20)))
    (tmp_path / "few" / "same.en").write_text("The same line.\n" * 300)
    (tmp_path / "taken" / "work").mkdir(parents=True)
    (tmp_path / "taken" / "work" / "journal").write_text('{"journal": 1, "job": "train", "identity": {}}\n')
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    out = [] if "--out" in args else ["--out", "model"]
    message = bm("adapt", *args, *out, code=code).err
    assert "Traceback" not in message and all(word in message for word in words), message
    assert not (tmp_path / "model" / "config.json").exists()
    assert not (tmp_path / "model" / "work").exists()
