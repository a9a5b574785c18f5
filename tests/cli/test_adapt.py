"""`bitextmine adapt`, by the real command, on made-up sentences that a hardly trained encoder is adapted to."""

from __future__ import annotations

import json
import random
import shutil
import signal
from pathlib import Path

import pytest

from bitextmine.encoder.folder import SCORER, packaged

pytestmark = pytest.mark.timeout(1800)  # many processes, however busy the machine

MODEL = ("config.json", "model.safetensors", "tokenizer.model", "adapt.jsonl")
# One thread: the same bytes whatever else runs.
ALONE = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def piles(parallel_text, tmp_path_factory):
    """corpus.en and corpus.fr, 1,500 translations and 300 lines without one on each side, and gold.tsv."""
    folder = tmp_path_factory.mktemp("piles")
    pairs = parallel_text(folder, 1500, 300)
    lines = {
        lang: (folder / f"corpus.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "fr")
    }
    gold = (f"{lines['en'].index(en) + 1}\t{lines['fr'].index(fr) + 1}\n" for en, fr in pairs)
    (folder / "gold.tsv").write_text("".join(gold))
    return folder


def rounds_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "adapt.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def weak_model(bitextmine, tiny_model, tmp_path_factory):
    """An encoder that finds most of the made-up pairs, and could be better."""
    folder = tmp_path_factory.mktemp("weak") / "model"
    pairs = tiny_model.parent / "pairs.en-fr.tsv"
    size = ("--dim", "32", "--vocabulary", "180", "--epochs", "2", "--batch", "128")
    bitextmine("train", "--pairs", pairs, "--out", folder, *size)
    shutil.copy(packaged("europe5") / SCORER, folder)
    return folder


@pytest.fixture(scope="module")
def adapted(bitextmine, piles, weak_model):
    """A run from end to end: its folder, what it said, and its options."""
    args = ["--src", "en", "--tgt", "fr", "--model", weak_model, "--rounds", "2", "--gold", "gold.tsv"]
    args += ["--error-rate", "0.2"]  # the made-up sentences are so alike that the estimates are poor
    result = bitextmine("adapt", *args, "--out", "model", cwd=piles, env=ALONE)
    return piles / "model", result.err, args


def test_the_encoder_gets_better_and_can_be_used(bitextmine, piles, weak_model, adapted):
    folder, said, _ = adapted
    rounds = rounds_of(folder)
    assert [entry["round"] for entry in rounds] == list(range(len(rounds)))
    assert rounds[0]["pairs"] >= 200 and 0 < rounds[0]["estimated_precision"] <= 100
    assert rounds[1]["better"] and rounds[1]["p_at_1_half"] > rounds[0]["p_at_1_half"]
    # The true figures rise with the estimate.
    for name in ("en-fr", "fr-en"):
        assert rounds[1]["gold_p_at_1"][name] > rounds[0]["gold_p_at_1"][name] + 1
    assert "round 1: P@1 of" in said and "gold: P@1" in said
    assert not (folder / "work").exists()
    assert (folder / SCORER).read_bytes() == (weak_model / SCORER).read_bytes()
    assert not list(piles.glob("*.npy"))  # what lies beside the corpora is of the user's own encoder
    found = []
    for model in (weak_model, folder):
        out = bitextmine("mine", "--src", "en", "--tgt", "fr", "--ids", "--model", model, cwd=piles).out
        found.append({tuple(line.split("\t")[1:3]) for line in out.splitlines()})
    gold = {tuple(line.split("\t")) for line in (piles / "gold.tsv").read_text().splitlines()}
    assert len(found[1] & gold) > len(found[0] & gold)


def test_killed_in_any_round_it_goes_on_and_ends_in_the_same_bytes(bitextmine, piles, adapted, tmp_path):
    whole, _, args = adapted
    for folder, count in (  # touches of a file there
        ("work", 2),  # before anything
        ("work/embeddings", 3),
        ("work/round-0", 4),  # pairs that were mined
        ("work/round-1/encoder/work", 3),  # in training, at its checkpoint
        ("work/round-1", 2),  # its figures
        ("", 9),  # the log, or the model's files
    ):
        run = ("adapt", *args, "--out", "killed")
        died = bitextmine.dies(
            tmp_path / "hooks", count, *run, folder=f"killed/{folder}", cwd=piles, env=ALONE
        )
        assert died.code == -signal.SIGKILL, folder
    bitextmine("adapt", *args, "--out", "killed", cwd=piles, env=ALONE)
    for name in MODEL:
        assert (piles / "killed" / name).read_bytes() == (whole / name).read_bytes(), name
    assert not (piles / "killed" / "work").exists()


def test_text_without_pairs_leaves_the_encoder_alone(bitextmine, sentence_pairs, tmp_path, weak_model):
    """Two piles none of which translates the other."""
    rng = random.Random(4)
    for lang, side, part in (("en", 0, sentence_pairs[6000:7000]), ("fr", 1, sentence_pairs[8000:9000])):
        lines = [" ".join(rng.sample(pair[side].split(), len(pair[side].split()))) for pair in part]
        (tmp_path / f"corpus.{lang}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    message = bitextmine.fails(
        "adapt", "--src", "en", "--tgt", "fr", "--model", weak_model, "--out", "model", cwd=tmp_path
    )
    assert "corpus.en x corpus.fr" in message or "was not shown to be better" in message, message
    assert "no model is written" in message
    assert not (tmp_path / "model" / "config.json").exists()
    assert not (tmp_path / "model" / "work").exists()
    assert rounds_of(tmp_path / "model")[0]["round"] == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--src", "en", "--tgt", "de"], ["no corpus in language 'de'"]),
        (["--src-file", "corpus.en", "--tgt-file", "nosuch.fr"], ["nosuch.fr", "no such file"]),
        (["--src", "en", "--tgt", "fr", "--model", "nosuch"], ["nosuch", "no such model folder"]),
        (["--src", "en", "--tgt", "fr", "--gold", "nosuch.tsv"], ["nosuch.tsv"]),
        (
            ["--src-file", "few/few.en", "--tgt-file", "corpus.fr"],
            ["few.en has 20 lines", "keep the encoder"],
        ),
        (
            ["--src-file", "few/same.en", "--tgt-file", "corpus.fr"],
            ["same.en has 1 different line,", "keep the encoder"],
        ),
        (
            ["--src", "en", "--tgt", "fr", "--gold", "far.tsv"],
            ["line number 9,999", "corpus.fr has 1,800 lines"],
        ),
        (["--src", "en", "--tgt", "fr", "--out", "taken"], ["taken", "not empty"]),
        (["--src", "en", "--tgt", "fr", "--out", "corpus.en"], ["a file is there"]),
    ],
)
def test_errors(bitextmine, piles, tmp_path, args, words):
    for name in ("corpus.en", "corpus.fr"):
        (tmp_path / name).write_bytes((piles / name).read_bytes())
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "few.en").write_text("".join(f"Line {i}.\n" for i in range(20)))
    (tmp_path / "few" / "same.en").write_text("The same line.\n" * 300)
    (tmp_path / "far.tsv").write_text("1\t9999\n")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    out = [] if "--out" in args else ["--out", "model"]
    message = bitextmine.fails("adapt", *args, *out, cwd=tmp_path)
    assert all(word in message for word in words), message
    assert not (tmp_path / "model" / "config.json").exists()
    assert not (tmp_path / "model" / "work").exists()


def test_a_folder_of_somebody_else_stays_as_it_is(bitextmine, piles, tmp_path):
    """Where corpora are refused, a folder 'work' is not one of ours yet."""
    for name in ("corpus.en", "corpus.fr"):
        (tmp_path / name).write_text("A line.\n" * 20)
    notes = tmp_path / "model" / "work" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    bitextmine.fails("adapt", "--src", "en", "--tgt", "fr", "--out", "model", cwd=tmp_path)
    assert notes.read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--src", "en"], ["--src and --tgt"]),
        (["--src", "en", "--tgt", "en"], ["two languages", "same language"]),
        (["--src-file", "corpus.en"], ["--tgt-file 0 times"]),
        (["--src", "en", "--tgt", "fr", "--error-rate", "0"], ["--error-rate"]),
        (["--src", "en", "--tgt", "fr", "--rounds", "0"], ["--rounds"]),
        (["--src", "en", "--tgt", "fr", "-k", "1"], ["x>=2"]),
        (["--src", "en", "--tgt", "fr", "--gold", "a", "--gold", "b"], ["--gold is given 2 times for 1"]),
    ],
)
def test_options_that_cannot_be(bitextmine, piles, args, words):
    said = bitextmine("adapt", *args, "--out", "none", code=2, cwd=piles).err
    assert any(word in said for word in words), said
    assert not (piles / "none").exists()


def test_another_adaptation_is_not_mixed_in(bitextmine, piles, weak_model, tmp_path):
    """What a killed run left is not taken for that of other options."""
    args = ["adapt", "--src", "en", "--tgt", "fr", "--model", weak_model, "--out", tmp_path / "model"]
    died = bitextmine.dies(
        tmp_path / "hooks", 1, *args, "--error-rate", "0.2", folder=tmp_path / "model/work/round-1", cwd=piles
    )
    assert died.code == -signal.SIGKILL and (tmp_path / "model/work/round-0/mined.json").exists()
    message = bitextmine.fails(*args, "--error-rate", "0.1", cwd=piles)
    assert "another encoder or other options" in message


def test_a_corpus_may_change_until_something_is_mined(bitextmine, piles, weak_model, tmp_path):
    """Killed while it embeds: with another line in one corpus the same command goes on, and embeds only that."""
    for name in ("corpus.en", "corpus.fr"):
        (tmp_path / name).write_bytes((piles / name).read_bytes())
    args = ["adapt", "--src", "en", "--tgt", "fr", "--model", weak_model, "--out", "model", "--rounds", "1"]
    args += ["--error-rate", "0.2"]
    died = bitextmine.dies(tmp_path / "hooks", 1, *args, folder="model/work/round-0", cwd=tmp_path)
    assert died.code == -signal.SIGKILL
    with (tmp_path / "corpus.fr").open("a", encoding="utf-8") as file:
        file.write("Une ligne de plus.\n")
    result = bitextmine(*args, cwd=tmp_path, code=None)
    assert "an adaptation of other" not in result.err and "0.en.npy: up to date" in result.err
    assert rounds_of(tmp_path / "model")[0]["pairs"] >= 200


def test_the_card_tells_what_it_is_made_of(adapted, weak_model):
    folder, _, _ = adapted
    card = (folder / "README.md").read_text(encoding="utf-8")
    rounds = rounds_of(folder)
    assert "for en, fr, adapted" in card and "corpus.en x corpus.fr" in card
    for entry in rounds:
        assert f"| {entry['round']} |" in card and f"| {entry['p_at_1']} | {entry['p_at_1_half']} |" in card
    assert "round-0" not in card, "a file of the work folder, which is gone"
