"""Bad input, by the real command: a clear message (or what the documentation says), and nothing lost."""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import json
import lzma
import os
import resource
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import zstandard

COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}


@pytest.fixture
def embed(bitextmine, tiny_model, tmp_path):
    """`bitextmine embed ... --model tiny`, in the test's folder."""

    def run(*args, code: int | None = 0, **kwargs):
        return bitextmine("embed", *args, "--model", tiny_model, cwd=tmp_path, code=code, **kwargs)

    return run


@pytest.fixture
def embed_fails(bitextmine, tiny_model, tmp_path):
    def run(*args, **kwargs) -> str:
        message = bitextmine.fails("embed", *args, "--model", tiny_model, cwd=tmp_path, **kwargs)
        assert not list(tmp_path.glob("*.npy")), "an error must not leave a finished embedding"
        return message

    return run


@pytest.fixture
def mine(bitextmine, tiny_model, tmp_path):
    def run(*args, code: int | None = 0, **kwargs):
        return bitextmine(
            "mine",
            "--src",
            "en",
            "--tgt",
            "fr",
            *args,
            "--model",
            tiny_model,
            cwd=tmp_path,
            code=code,
            **kwargs,
        )

    return run


@pytest.fixture
def mine_fails(bitextmine, tiny_model, tmp_path):
    def run(*args, **kwargs) -> str:
        return bitextmine.fails(
            "mine", "--src", "en", "--tgt", "fr", *args, "--model", tiny_model, cwd=tmp_path, **kwargs
        )

    return run


# --- files that are missing, empty, unreadable -----------------------------------------------------------


def test_missing_file(embed_fails):
    assert "corpus.fr: no such file" in embed_fails("corpus.fr")


def test_a_folder_instead_of_a_file(embed_fails, tmp_path):
    (tmp_path / "corpus.fr").mkdir()
    assert "corpus.fr: is a directory" in embed_fails("corpus.fr")


def without_override() -> None:
    """For `preexec_fn`: root, too, may then read only what the file's mode allows (Linux; elsewhere no change)."""
    with contextlib.suppress(OSError, AttributeError):
        prctl = ctypes.CDLL(None).prctl
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def test_unreadable_file(embed_fails, tmp_path):
    (tmp_path / "corpus.fr").write_text("Bonjour.\n")
    (tmp_path / "corpus.fr").chmod(0)
    if not subprocess.call(
        ["cat", tmp_path / "corpus.fr"], preexec_fn=without_override, stderr=subprocess.DEVNULL
    ):
        pytest.skip("this user may read everything")
    assert "corpus.fr: permission denied" in embed_fails("corpus.fr", preexec_fn=without_override)


def test_empty_file(embed_fails, mine_fails, parallel_text, tmp_path):
    parallel_text(tmp_path, 5)
    (tmp_path / "corpus.fr").write_bytes(b"")
    assert "corpus.fr: empty" in embed_fails("corpus.fr")
    assert "corpus.fr" in mine_fails()


def test_missing_folder_to_mine(bitextmine):
    assert "/nonexistent" in bitextmine.fails("mine", "--src", "en", "--tgt", "fr", "--dir", "/nonexistent")


# --- languages -------------------------------------------------------------------------------------------


def test_a_name_without_a_language(embed_fails, embed, tmp_path):
    (tmp_path / "corpus.txt").write_text("Bonjour.\n")
    message = embed_fails("corpus.txt")
    assert "corpus.txt" in message
    assert "--lang" in message
    embed("corpus.txt", "--lang", "fr")
    assert np.load(tmp_path / "corpus.txt.npy").shape[0] == 1


def test_a_language_that_is_not_there(bitextmine, parallel_text, tmp_path):
    parallel_text(tmp_path, 5)
    message = bitextmine.fails("mine", "--src", "en", "--tgt", "eo", cwd=tmp_path)
    assert "'eo'" in message
    assert "en, fr" in message


def test_two_corpora_of_one_language(mine_fails, mine, parallel_text, tmp_path):
    parallel_text(tmp_path, 20)
    parallel_text(tmp_path, 5, name="other")
    message = mine_fails()
    assert "corpus.en" in message
    assert "other.en" in message
    assert "--name" in message
    assert 0 < len(mine("--name", "other", "--threshold", "none").out.splitlines()) <= 5


# --- broken text -----------------------------------------------------------------------------------------


def test_invalid_utf8(embed_fails, embed, tmp_path):
    (tmp_path / "corpus.fr").write_bytes("Bonjour.\nUne lettre à la poste.\n".encode() + b"caf\xe9\nFin.\n")
    message = embed_fails("corpus.fr")
    assert "corpus.fr: line 3: " in message
    assert "0xe9" in message
    assert "--errors replace" in message
    embed("corpus.fr", "--errors", "replace")
    assert np.load(tmp_path / "corpus.fr.npy").shape[0] == 4


@pytest.mark.parametrize("kind", COMPRESS)
def test_truncated_archive(embed_fails, tmp_path, sentence_pairs, kind):
    text = "".join(f"{fr}\n" for _, fr in sentence_pairs[:2000]).encode()
    packed = COMPRESS[kind](text)
    (tmp_path / f"corpus.fr.{kind}").write_bytes(packed[: len(packed) // 2])
    message = embed_fails(f"corpus.fr.{kind}")
    assert f"corpus.fr.{kind}: truncated" in message


@pytest.mark.parametrize("kind", ["gz"])
def test_an_archive_that_is_none(embed_fails, tmp_path, kind):
    (tmp_path / f"corpus.fr.{kind}").write_text("Bonjour.\n")
    assert f"corpus.fr.{kind}: not valid" in embed_fails(f"corpus.fr.{kind}")


def test_a_line_of_one_megabyte(embed, mine, parallel_text, sentence_pairs, tmp_path):
    pairs = parallel_text(tmp_path, 20)
    long = " ".join(fr for _, fr in sentence_pairs)[:1_000_000]
    with open(tmp_path / "corpus.fr", "a", encoding="utf-8") as corpus:
        corpus.write(f"{long}\n" + "x" * 1_000_000 + "\nFin.\n")
    embed("corpus.fr")
    vectors = np.load(tmp_path / "corpus.fr.npy")
    assert vectors.shape[0] == 23
    assert np.isfinite(vectors).all()
    found = {tuple(row.split("\t")[1:]) for row in mine("--threshold", "none").out.splitlines()}
    assert len(found & set(pairs)) >= 15


# --- embeddings that do not fit --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mined_folder(bitextmine, tiny_model, parallel_text, tmp_path_factory) -> tuple[Path, str]:
    """Two corpora of 35 lines with their embeddings, and what mining them prints."""
    folder = tmp_path_factory.mktemp("mined")
    parallel_text(folder, 30, extra=5)
    return folder, bitextmine("mine", "--src", "en", "--tgt", "fr", "--model", tiny_model, cwd=folder).out


@pytest.fixture
def mined(mined_folder, tmp_path) -> str:
    """A copy of that folder as the test's own; what mining it prints."""
    folder, printed = mined_folder
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return printed


def test_fresh_embeddings_are_used_again(mined, mine, tmp_path):
    before = (tmp_path / "corpus.fr.npy").stat()
    os.utime(tmp_path / "corpus.fr")  # a time stamp is no news
    assert mine().out == mined
    after = (tmp_path / "corpus.fr.npy").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_rows_that_do_not_match_the_text(mined, mine, tmp_path):
    """Stale: mine says so and embeds again."""
    with open(tmp_path / "corpus.fr", "a") as corpus:
        corpus.write("Une ligne de plus.\n")
    result = mine()
    assert np.load(tmp_path / "corpus.fr.npy").shape[0] == 36
    assert "corpus.fr" in result.err
    assert "the text changed" in result.err


def test_another_text_of_the_same_length(mined, mine, tmp_path):
    lines = (tmp_path / "corpus.fr").read_text().splitlines(keepends=True)
    (tmp_path / "corpus.fr").write_text("".join(reversed(lines)))
    result = mine()
    assert "the text changed" in result.err
    assert {row.split("\t")[2] for row in result.out.splitlines()} == {
        row.split("\t")[2] for row in mined.splitlines()
    }


def test_an_embedding_of_another_model(mined, mine, bitextmine, other_model, tmp_path):
    tiny = (tmp_path / "corpus.fr.npy").read_bytes()
    embedded = bitextmine("embed", "corpus.fr", "--model", other_model, cwd=tmp_path)
    assert "another model" in embedded.err
    assert (tmp_path / "corpus.fr.npy").read_bytes() == tiny, "both lie side by side"
    (other,) = tmp_path.glob("corpus.fr.*.npy")
    assert other.read_bytes() != tiny
    assert mine().out == mined


def test_a_truncated_embedding(mined, mine, tmp_path):
    whole = (tmp_path / "corpus.fr.npy").read_bytes()
    (tmp_path / "corpus.fr.npy").write_bytes(whole[: len(whole) // 2])
    result = mine()
    assert "corpus.fr.npy" in result.err
    assert "truncated" in result.err
    assert (tmp_path / "corpus.fr.npy").read_bytes() == whole
    assert result.out == mined


def test_an_embedding_of_another_dimension(mined, mine, tmp_path):
    """Swapped by hand under its manifest: the two disagree, mine says so and embeds again."""
    whole = (tmp_path / "corpus.fr.npy").read_bytes()
    np.save(tmp_path / "corpus.fr.npy", np.zeros((35, 7), dtype=np.float16))
    result = mine()
    assert "35 rows of 7" in result.err
    assert (tmp_path / "corpus.fr.npy").read_bytes() == whole
    assert result.out == mined


def test_an_embedding_without_its_manifest(mined, mine, tmp_path):
    (tmp_path / "corpus.fr.json").unlink()
    result = mine()
    assert "corpus.fr.json" in result.err
    assert result.out == mined


@pytest.mark.parametrize("damage", ["truncated", "not numpy", "another dimension"])
def test_info_and_index_refuse_a_broken_embedding(mined, bitextmine, tmp_path, damage):
    path = tmp_path / "corpus.fr.npy"
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "not numpy":
        path.write_text("hello")
    else:
        np.save(path, np.zeros((35, 7), dtype=np.float16))
    for command in ("info", "index") if damage == "truncated" else ("info",):
        assert "corpus.fr.npy" in bitextmine.fails(command, "corpus.fr.npy", cwd=tmp_path)


# --- models ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.model"])
@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_model_folder_with_a_missing_or_wrong_file(bitextmine, tiny_model, tmp_path, name, damage):
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    if damage == "missing":
        (model / name).unlink()
    else:
        data = (model / name).read_bytes()
        (model / name).write_bytes(data[: len(data) // 2])
    (tmp_path / "corpus.fr").write_text("Bonjour.\n")
    message = bitextmine.fails("embed", "corpus.fr", "--model", model, cwd=tmp_path)
    assert name in message
    assert not (tmp_path / "corpus.fr.npy").exists()


def test_no_such_model(bitextmine, tmp_path):
    (tmp_path / "corpus.fr").write_text("Bonjour.\n")
    message = bitextmine.fails("embed", "corpus.fr", "--model", "nosuch", cwd=tmp_path)
    assert "nosuch" in message


def test_files_of_two_models(bitextmine, tiny_model, other_model, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    shutil.copy(other_model / "model.safetensors", model)
    (tmp_path / "corpus.fr").write_text("Bonjour.\n")
    assert "model.safetensors" in bitextmine.fails("embed", "corpus.fr", "--model", model, cwd=tmp_path)


# --- full disks ------------------------------------------------------------------------------------------


def limit_file_size(limit: int):
    """For `preexec_fn`: no file of this process may grow beyond `limit` bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def test_no_room_for_the_embedding(embed, embed_fails, parallel_text, tmp_path):
    parallel_text(tmp_path, 1000)
    message = embed_fails("corpus.fr", preexec_fn=limit_file_size(40_000))
    assert "corpus.fr.npy" in message
    assert "64,128 bytes" in message  # 1,000 rows of 32 float16 numbers, and the header
    embed("corpus.fr")
    assert np.load(tmp_path / "corpus.fr.npy").shape == (1000, 32)


def test_no_room_for_the_pairs(mine, mine_fails, parallel_text, tmp_path):
    parallel_text(tmp_path, 1000)
    plain = ("--threshold", "none", "--no-clean")  # the identifier of languages unpacks its model into a file
    whole = mine(*plain).out
    (tmp_path / "out.tsv").write_text("earlier\n")
    message = mine_fails(*plain, "-o", "out.tsv", preexec_fn=limit_file_size(20_000))
    assert "out.tsv" in message
    assert (tmp_path / "out.tsv").read_text() == "earlier\n"
    mine(*plain, "-o", "out.tsv")
    assert (tmp_path / "out.tsv").read_text() == whole
    assert not list(tmp_path.glob(".*"))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and not subprocess.call(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], stderr=subprocess.DEVNULL
    )
    if not mounted:
        pytest.skip("mounting needs root")
    yield disk
    subprocess.check_call(["umount", disk])


def test_a_full_disk(bitextmine, tiny_model, parallel_text, small_disk):
    parallel_text(small_disk, 2000)  # two texts of about 100 kB; the two embeddings need 128 kB each
    message = bitextmine.fails("embed", "corpus.fr", "corpus.en", "--model", tiny_model, cwd=small_disk)
    assert "128,128 bytes" in message
    assert not (small_disk / "corpus.en.npy").exists()
    subprocess.check_call(["mount", "-o", "remount,size=8m", small_disk])
    bitextmine("mine", "--src", "en", "--tgt", "fr", "--model", tiny_model, "-o", "out.tsv", cwd=small_disk)
    assert len((small_disk / "out.tsv").read_text().splitlines()) > 100


# --- killed ----------------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def die_at(bitextmine, hooks: Path, count: int, args: list[str], cwd: Path) -> bool:
    """Whether a command was killed (-9) at its count-th touch of a file in cwd: False when it ended before."""
    died = bitextmine.dies(hooks, count, *args, cwd=cwd)
    assert died.code in (0, -signal.SIGKILL)
    return bool(died.code)


def test_killed_at_any_moment(bitextmine, tiny_model, sentence_pairs, tmp_path):
    """Killed again and again, a bit later each time; the run that is left alone ends with the same bytes."""
    lines = [pair for _ in range(5) for pair in sentence_pairs]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        for side, lang in enumerate(("en", "fr")):
            text = "".join(f"{i} {pair[side]}\n" for i, pair in enumerate(lines))
            (folder / f"corpus.{lang}").write_text(text)
    args = ["embed", "corpus.en", "corpus.fr", "--model", str(tiny_model)]
    bitextmine(*args, cwd=whole)

    kills = 0
    for count in range(1, 60, 2):
        alive = not die_at(bitextmine, tmp_path / "hooks", count, args, killed)
        kills += not alive
        for lang in ("en", "fr"):  # what has its final name is whole
            manifest = killed / f"corpus.{lang}.json"
            if manifest.exists():
                assert json.loads(manifest.read_text())["rows"] == len(lines)
        if alive:
            break
    assert kills >= 3
    bitextmine(*args, cwd=killed)
    assert contents(killed) == contents(whole)


def test_mine_killed_at_any_moment(bitextmine, tiny_model, parallel_text, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        parallel_text(folder, 5000, extra=1000)
    args = ["mine", "--src", "en", "--tgt", "fr", "--model", str(tiny_model), "-o", "out.tsv"]
    bitextmine(*args, cwd=whole)

    kills = 0
    for count in range(1, 100, 4):
        alive = not die_at(bitextmine, tmp_path / "hooks", count, args, killed)
        kills += not alive
        if (killed / "out.tsv").exists():  # never a part of it
            assert (killed / "out.tsv").read_bytes() == (whole / "out.tsv").read_bytes()
        if alive:
            break
    assert kills >= 3
    bitextmine(*args, cwd=killed)
    assert contents(killed) == contents(whole)


def test_interrupted(bitextmine, tiny_model, sentence_pairs, tmp_path):
    with open(tmp_path / "corpus.fr", "w") as corpus:
        corpus.writelines(f"{i} {pair[1]}\n" for i in range(20) for pair in sentence_pairs)
    args = ["embed", "corpus.fr", "--model", str(tiny_model)]
    stopped = bitextmine.dies(tmp_path / "hooks", 3, *args, of=signal.SIGINT, cwd=tmp_path)
    assert (stopped.code, stopped.out) == (130, "")
    assert "Traceback" not in stopped.err
    assert "interrupted" in stopped.err
    assert "goes on" in stopped.err
    assert not (tmp_path / "corpus.fr.npy").exists()


# --- closed pipes ----------------------------------------------------------------------------------------


@pytest.fixture
def ready(bitextmine, tiny_model, parallel_text, tmp_path) -> list[str]:
    """The command that mines a folder where everything is embedded."""
    parallel_text(tmp_path, 3000)
    bitextmine("embed", "corpus.en", "corpus.fr", "--model", tiny_model, cwd=tmp_path)
    return [*bitextmine.argv, *f"mine --src en --tgt fr --model {tiny_model} --threshold none".split()]


def test_head(ready, tmp_path):
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(ready)} 2>errors | head -1; echo ${{PIPESTATUS[0]}}"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    row, status = done.stdout.decode().splitlines()
    assert len(row.split("\t")) == 3
    assert int(status) in (0, 141)  # 0: all of it went into the pipe before head left
    quiet((tmp_path / "errors").read_text())


def test_nobody_reads(ready, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(ready, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert done.returncode == 141
    quiet(done.stderr.decode())


def quiet(errors: str) -> None:
    assert not [w for w in ("Traceback", "error", "roken pipe", "Exception ignored") if w in errors], errors
