"""The commands one after the other, as a person runs them: files in a folder, pipes, the lines of the README."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import lzma
import os
import pty
import re
import shlex
import struct
import subprocess
import termios

import numpy as np
import pytest
import zstandard

ROW = re.compile(r"-?\d+\.\d+\t[^\t]+\t[^\t]+")


@pytest.fixture
def shell(bitextmine, tiny_model, tmp_path):
    """Run a line of shell in the test's folder, with `bitextmine` on the path and the tiny model as default."""

    def run(line: str, **env: str) -> str:
        bin_folder = tmp_path / ".bin"
        if not bin_folder.exists():
            bin_folder.mkdir()
            script = bin_folder / "bitextmine"
            script.write_text(f'#!/bin/sh\nexec {shlex.join(bitextmine.argv)} "$@"\n')
            script.chmod(0o755)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=tmp_path,
            env=bitextmine.environment(
                {"PATH": f"{bin_folder}:{os.environ['PATH']}", "BITEXTMINE_MODEL": str(tiny_model), **env}
            ),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    return run


def texts(tsv: str) -> list[tuple[str, ...]]:
    return [tuple(row.split("\t")[-2:]) for row in tsv.splitlines()]


def scores(tsv: str) -> list[float]:
    return [float(row.split("\t")[0]) for row in tsv.splitlines()]


# --- the two lines of the card ---------------------------------------------------------------------------


def test_both_lines_verbatim(shell, parallel_text, tmp_path):
    true = parallel_text(tmp_path, 200, extra=50)
    assert shell("bitextmine embed corpus.fr") == ""
    vectors = np.load(tmp_path / "corpus.fr.npy")
    assert vectors.dtype == np.float16
    assert vectors.shape[0] == 250
    assert np.allclose(np.linalg.norm(vectors.astype(np.float32), axis=1), 1, atol=1e-3)
    assert json.loads((tmp_path / "corpus.fr.json").read_text())["rows"] == 250

    mined = shell("bitextmine mine --src en --tgt fr")
    assert all(ROW.fullmatch(row) for row in mined.splitlines())
    assert scores(mined) == sorted(scores(mined), reverse=True)
    found = set(texts(mined))
    assert len(found & set(true)) >= 0.3 * len(true), (
        "a strict cut by default, but most pairs are far above it"
    )
    assert len(found & set(true)) >= 0.95 * len(found)
    assert (tmp_path / "corpus.en.npy").exists(), "mine embeds what is missing"


def test_both_lines_with_the_default_encoder(bitextmine, root, tmp_path):
    (tmp_path / "corpus.en").write_text(
        "Good morning.\nThe train to Paris leaves at noon.\nI do not eat meat.\n"
    )
    (tmp_path / "corpus.fr").write_text(
        "Je ne mange pas de viande.\nBonjour.\nLe train pour Paris part à midi.\n"
    )
    bitextmine("embed", "corpus.fr", cwd=tmp_path)
    found = texts(bitextmine("mine", "--src", "en", "--tgt", "fr", "--threshold", "none", cwd=tmp_path).out)
    assert ("The train to Paris leaves at noon.", "Le train pour Paris part à midi.") in found
    assert ("I do not eat meat.", "Je ne mange pas de viande.") in found


def test_rescored_pairs(bitextmine, root, tmp_path):
    for name in ("sample.en", "sample.fr"):
        (tmp_path / name).write_bytes((root / "mine" / "samples" / name).read_bytes())
    text = (root / "mine" / "samples" / "gold.en-fr.tsv").read_text()
    gold = {tuple(row.split()) for row in text.splitlines()}
    mine = ("mine", "--src", "en", "--tgt", "fr", "--ids", "--rescore")
    result = bitextmine(*mine, "--threshold", "0", cwd=tmp_path)
    rows = [row.split("\t") for row in result.out.splitlines()]
    assert [float(row[0]) for row in rows] == sorted((float(row[0]) for row in rows), reverse=True)
    assert min(float(row[0]) for row in rows) >= 0
    correct = sum((row[1], row[2]) in gold for row in rows)
    assert correct > 0.95 * len(rows) and correct > 0.9 * len(gold), (
        "above 0 a pair is more likely true than not"
    )
    assert "|scorer:" in result.err
    estimated = bitextmine(*mine, cwd=tmp_path)
    assert "about 1% of the" in estimated.err
    kept = [row.split("\t") for row in estimated.out.splitlines()]
    assert sum((row[1], row[2]) in gold for row in kept) > 0.9 * len(gold)
    matched = bitextmine(*mine, "--threshold", "none", "--retrieval", "matching", cwd=tmp_path)
    assert all(float(row.split("\t")[0]) > 0 for row in matched.out.splitlines()), "0 is worth nothing"


def test_log_odds_are_the_default_and_margins_can_be_had(bitextmine, root, tmp_path):
    for name in ("sample.en", "sample.fr"):
        (tmp_path / name).write_bytes((root / "mine" / "samples" / name).read_bytes())
    mine = ("mine", "--src", "en", "--tgt", "fr", "--threshold", "none")
    usual = bitextmine(*mine, "-o", "usual.tsv", cwd=tmp_path)
    assert "|scorer:" in usual.err
    details = json.loads((tmp_path / "usual.tsv.json").read_text())
    assert 0.2 < details["log_odds"]["share_of_pairs"] < 0.9
    assert bitextmine(*mine, "--rescore", cwd=tmp_path).out == (tmp_path / "usual.tsv").read_text()
    for margins in (("--no-rescore",), ("--margin", "distance"), ("-k", "1")):
        plain = bitextmine(*mine, *margins, cwd=tmp_path)
        assert "|scorer:" not in plain.err
        assert 0 <= float(plain.out.split("\t", 1)[0]) < 4, "a margin"


def test_rescored_retrieval(bitextmine, root, tmp_path):
    samples = root / "mine" / "samples"
    en, fr = ((samples / f"sample.{lang}").read_text().splitlines() for lang in ("en", "fr"))
    gold = [map(int, row.split()) for row in (samples / "gold.en-fr.tsv").read_text().splitlines()]
    rows = ["en\tfr", *(f"{en[i - 1]}\t{fr[j - 1]}" for i, j in gold)]
    (tmp_path / "queries.tsv").write_text("".join(f"{row}\n" for row in rows))
    evaluate = ("evaluate", "retrieval", "--queries", "queries.tsv", "--rescore")
    head, *found = bitextmine(*evaluate, cwd=tmp_path).out.splitlines()
    assert head.split() == ["P@1", "queries", "pool", "cosine", "ratio-4", "csls-10", "rescored-4"]
    for row in found[:2]:
        assert float(row.split()[-3]) > 95, row
    assert "|scorer:" in found[-1]
    refused = bitextmine(
        "evaluate", "retrieval", "--src-file", "a.en", "--tgt-file", "b.fr", "--rescore", code=2
    )
    assert "--rescore goes with --queries" in refused.err


def test_rescoring_needs_vectors_of_pieces(bitextmine, parallel_text, tmp_path):
    import torch

    from bitextmine.encoder.config import EncoderConfig
    from bitextmine.encoder.folder import TOKENIZER, packaged, save_folder
    from bitextmine.encoder.model import SentenceModel
    from bitextmine.encoder.tokenizer import Tokenizer

    parallel_text(tmp_path, 20)
    tokenizer = packaged("default") / TOKENIZER
    torch.manual_seed(0)
    model = SentenceModel(EncoderConfig(Tokenizer(tokenizer).vocab_size, 8, layers=1, heads=2, ffn=8))
    save_folder(tmp_path / "layers", model, tokenizer)
    mine = ("mine", "--src", "en", "--tgt", "fr", "--model", "layers", "--rescore")
    message = bitextmine.fails(*mine, cwd=tmp_path)
    assert "has no vectors of pieces to compare, as --rescore would: it has layers" in message
    assert not list(tmp_path.glob("*.npy")), "before the work"


# --- embed -----------------------------------------------------------------------------------------------


def test_embed_row_i_is_line_i(shell, tmp_path):
    lines = [
        "",
        "Le maire achète une carte.",
        "\t",
        "La mairie\u2028fin",
        "Le maire achète une carte.\r",
        "a\tb",
        "fin",
    ]
    (tmp_path / "corpus.fr").write_bytes("\n".join(lines).encode())
    shell("bitextmine embed corpus.fr")
    vectors = np.load(tmp_path / "corpus.fr.npy")
    assert len(vectors) == len(lines) == 7
    assert not vectors[0].any()
    assert (vectors[1] == vectors[4]).all()
    assert np.isfinite(vectors).all()


def test_compressed_corpora_embed_the_same(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 50)
    text = (tmp_path / "corpus.fr").read_bytes()
    (tmp_path / "a.fr.gz").write_bytes(gzip.compress(text))
    (tmp_path / "b.fr.xz").write_bytes(lzma.compress(text))
    (tmp_path / "c.fr.zst").write_bytes(zstandard.ZstdCompressor().compress(text))
    shell("bitextmine embed corpus.fr a.fr.gz b.fr.xz c.fr.zst")
    plain = (tmp_path / "corpus.fr.npy").read_bytes()
    assert all((tmp_path / f"{name}.fr.npy").read_bytes() == plain for name in "abc")


def test_embed_reads_standard_input(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 50)
    shell(
        "bitextmine embed corpus.fr && head -20 corpus.fr | bitextmine embed - --lang fr --out first.fr.npy"
    )
    assert (np.load(tmp_path / "first.fr.npy") == np.load(tmp_path / "corpus.fr.npy")[:20]).all()


def test_embed_does_not_do_again_what_is_fresh(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 50)
    shell("bitextmine embed corpus.fr corpus.en")
    before = {p.name: p.stat().st_ino for p in tmp_path.glob("*.npy")}
    assert set(before) == {"corpus.en.npy", "corpus.fr.npy"}
    shell("touch corpus.fr && bitextmine embed corpus.fr corpus.en")
    assert {p.name: p.stat().st_ino for p in tmp_path.glob("*.npy")} == before
    data = (tmp_path / "corpus.fr.npy").read_bytes()
    shell("bitextmine embed --force corpus.fr")
    assert (tmp_path / "corpus.fr.npy").stat().st_ino != before["corpus.fr.npy"]
    assert (tmp_path / "corpus.fr.npy").read_bytes() == data


# --- mine ------------------------------------------------------------------------------------------------


def test_mine_to_a_file_with_its_manifest(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 60, extra=10)
    printed = shell("bitextmine mine --src en --tgt fr")
    assert shell("bitextmine mine --src en --tgt fr -o out.tsv") == ""
    assert (tmp_path / "out.tsv").read_text() == printed
    manifest = json.loads((tmp_path / "out.tsv.json").read_text())
    assert manifest["pairs"] == len(printed.splitlines())
    for part in ("k:4", "margin:ratio", "retrieval:max", "version:"):
        assert part in manifest["signature"]
    shell("bitextmine mine --src en --tgt fr -o out.tsv.gz")
    assert gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()).decode() == printed


def test_mine_prints_its_signature_on_standard_error(bitextmine, tiny_model, parallel_text, tmp_path):
    parallel_text(tmp_path, 40)
    result = bitextmine("mine", "--src", "en", "--tgt", "fr", "--model", tiny_model, cwd=tmp_path)
    assert "margin:ratio" in result.err
    assert "margin:ratio" not in result.out
    assert "\r" not in result.err, "progress bars are for terminals"


def test_mine_from_compressed_corpora_elsewhere(shell, parallel_text, tmp_path):
    folder = tmp_path / "some where"
    folder.mkdir()
    parallel_text(folder, 60)
    plain = shell("bitextmine mine --dir 'some where' --src en --tgt fr")
    shell("cd 'some where' && gzip corpus.en && xz corpus.fr && rm *.npy *.json")
    assert shell("bitextmine mine --dir 'some where' --src en --tgt fr") == plain


def test_mine_the_other_way_round(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 60)
    there = shell("bitextmine mine --src en --tgt fr --threshold none")
    back = shell("bitextmine mine --src fr --tgt en --threshold none")
    assert {(fr, en) for en, fr in texts(there)} == set(texts(back))


@pytest.mark.parametrize(("margin", "retrieval"), [("distance", "intersect"), ("absolute", "forward")])
def test_margins_and_retrievals(shell, parallel_text, tmp_path, margin, retrieval):
    true = parallel_text(tmp_path, 60, extra=10)
    options = f"--margin {margin} --retrieval {retrieval} --threshold none"
    mined = shell(f"bitextmine mine --src en --tgt fr {options}")
    assert len(set(texts(mined)) & set(true)) >= 40
    assert scores(mined) == sorted(scores(mined), reverse=True)
    assert len(mined.splitlines()) == 70 or retrieval == "intersect"


def test_a_threshold_cuts(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 60, extra=30)
    everything = shell("bitextmine mine --src en --tgt fr --threshold none")
    cut = sorted(scores(everything))[len(scores(everything)) // 2]
    some = shell(f"bitextmine mine --src en --tgt fr --threshold {cut}")
    assert 0 < len(some.splitlines()) < len(everything.splitlines())
    assert everything.startswith(some)
    assert min(scores(some)) >= cut


def test_a_tab_in_a_sentence_becomes_a_space(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 40)
    text = (tmp_path / "corpus.fr").read_text().replace(" de ", "\tde ")
    assert "\t" in text
    (tmp_path / "corpus.fr").write_text(text)
    mined = shell("bitextmine mine --src en --tgt fr --threshold none")
    assert all(row.count("\t") == 2 for row in mined.splitlines())


def test_repeated_lines(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 40)
    for lang in ("en", "fr"):
        path = tmp_path / f"corpus.{lang}"
        path.write_text(path.read_text() * 2)
    first = shell("bitextmine mine --src en --tgt fr --threshold none --ids")
    every = shell("bitextmine mine --src en --tgt fr --threshold none --ids --duplicates all")
    assert all(int(n) <= 40 for row in first.splitlines() for n in row.split("\t")[1:3])
    assert len(every.splitlines()) == 2 * len(first.splitlines())
    assert set(texts(every)) == set(texts(first))


def test_output_is_utf8_in_any_locale(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 40)
    mined = shell("bitextmine mine --src en --tgt fr --threshold none")
    assert any("é" in row for row in mined.splitlines())
    again = shell(
        "bitextmine mine --src en --tgt fr --threshold none", LC_ALL="C", PYTHONIOENCODING="latin-1"
    )
    assert again == mined


def test_a_run_repeats_byte_for_byte(shell, parallel_text, tmp_path):
    parallel_text(tmp_path, 500, extra=100)
    line = "bitextmine mine --src en --tgt fr --threshold none --ids"
    first = shell(line)
    assert shell(f"rm *.npy && {line}") == first


def test_pipes(shell, parallel_text, tmp_path):
    """A shell pipeline: the best half, without scores, as two aligned files."""
    true = parallel_text(tmp_path, 40)
    shell("bitextmine mine --src en --tgt fr --threshold none | head -n 20 | cut -f 2,3 > best.tsv")
    shell("cut -f 1 best.tsv > best.en; cut -f 2 best.tsv > best.fr")
    best = [(tmp_path / f"best.{lang}").read_text().splitlines() for lang in ("en", "fr")]
    assert [len(side) for side in best] == [20, 20]
    assert len(set(zip(*best, strict=True)) & set(true)) >= 15


# --- index -----------------------------------------------------------------------------------------------


def test_index_then_mine(shell, parallel_text, tmp_path):
    true = parallel_text(tmp_path, 300, extra=50)
    exact = shell("bitextmine mine --src en --tgt fr --threshold none")
    shell("bitextmine index corpus.fr --type flat && bitextmine index corpus.en --type flat")
    assert (tmp_path / "corpus.fr.faiss").exists()
    assert "recall" in (tmp_path / "corpus.fr.faiss.json").read_text()
    indexed = shell("bitextmine mine --src en --tgt fr --threshold none --search index")
    assert set(texts(indexed)) == set(texts(exact))
    assert len(set(texts(indexed)) & set(true)) >= 200

    whole = (tmp_path / "corpus.fr.faiss").read_bytes()
    (tmp_path / "corpus.fr.faiss").write_bytes(whole[: len(whole) // 2])
    assert shell("bitextmine mine --src en --tgt fr --threshold none --search index") == indexed


@pytest.mark.parametrize("kind", ["hnsw", "PCA16,Flat"])
def test_kinds_of_index(shell, parallel_text, tmp_path, kind):
    parallel_text(tmp_path, 1000)
    shell(f"bitextmine index corpus.fr --type {kind}")
    assert (tmp_path / "corpus.fr.faiss").exists()


def test_index_of_an_unknown_type(bitextmine, tiny_model, parallel_text, tmp_path):
    parallel_text(tmp_path, 50)
    result = bitextmine(
        "index", "corpus.fr", "--type", "NoSuchIndex", "--model", tiny_model, cwd=tmp_path, code=2
    )
    assert "--type NoSuchIndex" in result.err
    assert not list(tmp_path.glob("*.faiss*"))


# --- evaluate --------------------------------------------------------------------------------------------


@pytest.fixture
def gold(parallel_text, tmp_path) -> list[tuple[str, str]]:
    """corpus.en, corpus.fr and gold.tsv in the test's folder."""
    true = parallel_text(tmp_path, 200, extra=100)
    en, fr = ((tmp_path / f"corpus.{lang}").read_text().splitlines() for lang in ("en", "fr"))
    rows = (f"{en.index(e) + 1}\t{fr.index(f) + 1}\n" for e, f in true)
    (tmp_path / "gold.tsv").write_text("".join(rows))
    return true


def test_evaluate_mining(shell, gold, tmp_path):
    shell("bitextmine mine --src en --tgt fr --ids --threshold none -o mined.tsv")
    report = shell("bitextmine evaluate mining mined.tsv --gold gold.tsv")
    for word in ("precision", "recall", "F1", "95%", "task:mining"):
        assert word in report
    f1 = re.search(r"^F1 (\d+\.\d+)", report, re.M)
    assert f1 is not None
    assert float(f1[1]) > 80
    piped = shell(
        "bitextmine mine --src en --tgt fr --ids --threshold none | bitextmine evaluate mining - --gold gold.tsv"
    )
    assert piped == report


def test_evaluate_mining_in_other_forms(shell, gold):
    shell("bitextmine mine --src en --tgt fr --ids --threshold none -o mined.tsv")
    args = "mined.tsv --gold gold.tsv --src-file corpus.en --tgt-file corpus.fr"
    rows = [row.split("\t") for row in shell(f"bitextmine evaluate mining {args} --format tsv").splitlines()]
    assert len({len(row) for row in rows}) == 1
    whole = json.loads(shell(f"bitextmine evaluate mining {args} --format json"))
    assert 0.8 < whole["f1"] <= 1
    assert whole["low"] <= whole["f1"] <= whole["high"]
    assert whole["gold"] == 200


def test_evaluate_retrieval(shell, sentence_pairs, tmp_path):
    held_out = sentence_pairs[-700:]
    (tmp_path / "queries.tsv").write_text("en\tfr\n" + "".join(f"{e}\t{f}\n" for e, f in held_out[:200]))
    for side, lang in enumerate(("en", "fr")):
        (tmp_path / f"distractors.{lang}").write_text("".join(f"{pair[side]}\n" for pair in held_out[200:]))
    report = shell("bitextmine evaluate retrieval --queries queries.tsv")
    assert "P@1" in report


# --- info ------------------------------------------------------------------------------------------------


def test_info(shell, tiny_model, parallel_text, tmp_path):
    parallel_text(tmp_path, 60)
    shell("bitextmine mine --src en --tgt fr -o out.tsv && bitextmine index corpus.fr --type flat")
    corpus = shell("bitextmine info corpus.fr")
    assert "lines: 60" in corpus
    assert "language: fr" in corpus
    assert "rows: 60" in shell("bitextmine info corpus.fr.npy")
    assert "margin:ratio" in shell("bitextmine info out.tsv")
    assert "recall" in shell("bitextmine info corpus.fr.faiss")
    assert "32" in shell(f"bitextmine info {tiny_model}")


def test_info_of_nothing(bitextmine, tmp_path):
    assert "nosuch" in bitextmine.fails("info", "nosuch", cwd=tmp_path)


# --- a terminal ------------------------------------------------------------------------------------------


def test_progress_shows_on_a_terminal_only_there(bitextmine, tiny_model, sentence_pairs, tmp_path):
    with open(tmp_path / "corpus.fr", "w") as corpus:
        corpus.writelines(f"{i} {pair[1]}\n" for i in range(4) for pair in sentence_pairs)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    child = bitextmine.start(
        "embed", "corpus.fr", "--model", tiny_model, cwd=tmp_path, stderr=slave, stdout=subprocess.PIPE
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while block := os.read(master, 65536):
            shown += block
    out, _ = child.communicate()
    os.close(master)
    assert child.returncode == 0
    assert out == b""
    assert b"%" in shown
    assert b"lines" in shown


def test_a_report_never_replaces_its_pairs(bitextmine, tmp_path):
    (tmp_path / "pairs.tsv").write_text("1.5\ta\tb\n")
    result = bitextmine("report", "pairs.tsv", "-o", "./pairs.tsv", cwd=tmp_path, code=2)
    assert "is the input itself" in result.err
    assert (tmp_path / "pairs.tsv").read_text() == "1.5\ta\tb\n"
    twice = bitextmine("report", "pairs.tsv", "-o", "x", "--png", "x", cwd=tmp_path, code=2)
    assert "name another file" in twice.err


def test_a_report_is_called_what_it_is(bitextmine, tmp_path):
    (tmp_path / "pairs.tsv").write_text("1.5\ta\tb\n")
    (tmp_path / "corpus.de").write_text("Guten Tag.\n")
    for args, hint in (
        (("-o", "corpus.de"), "-o corpus.de: call it FILE.html"),
        (("--png", "corpus.de"), "FILE.png"),
    ):
        assert hint in bitextmine("report", "pairs.tsv", *args, cwd=tmp_path, code=2).err
    assert (tmp_path / "corpus.de").read_text() == "Guten Tag.\n"


def test_vectors_that_are_not_the_manifests_are_made_again(bitextmine, parallel_text, tiny_model, tmp_path):
    parallel_text(tmp_path, 30)
    mine = ("mine", "--src", "en", "--tgt", "fr", "--model", tiny_model, "--threshold", "none")
    first = bitextmine(*mine, cwd=tmp_path)
    (tmp_path / "corpus.fr.npy").write_bytes((tmp_path / "corpus.en.npy").read_bytes())
    again = bitextmine(*mine, cwd=tmp_path)
    assert again.out == first.out
    assert "embedding again" in again.err


def test_more_neighbours_than_lines_are_all_lines(bitextmine, parallel_text, tiny_model, tmp_path):
    parallel_text(tmp_path, 30)
    mine = ("mine", "--src", "en", "--tgt", "fr", "--model", tiny_model, "--threshold", "none")
    assert (
        bitextmine(*mine, "-k", "30", cwd=tmp_path).out
        == bitextmine(*mine, "-k", "100000000", cwd=tmp_path).out
    )
