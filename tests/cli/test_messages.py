"""Errors name what is wrong, once, without a traceback."""

import contextlib
import os
import pty
import struct
import subprocess
import sys

import pytest

import bitextmine as api
from bitextmine.errors import BitextmineError
from bitextmine.mining.dedup import line_key


@pytest.mark.parametrize("name", ["x.jsonl", "x.tsv"])
def test_a_run_that_fails_leaves_no_parquet_file(bitextmine, tmp_path, name):
    (tmp_path / "x.jsonl").write_text("[1]\n")
    (tmp_path / "x.tsv").write_bytes("a\tb\n".encode("utf-16"))
    options = ("--columns", "length_ratio", "--src", "en", "--tgt", "fr", "-o", "o.parquet")
    err = bitextmine("score", name, *options, cwd=tmp_path, code=1).err
    assert err.startswith("bitextmine: error: ") and err.count("\n") == 1
    assert not (tmp_path / "o.parquet").exists()


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
@pytest.mark.parametrize(
    "call",
    [
        lambda name: api.report(name, "r.html"),
        api.evaluate_sts,
        api.split,
        lambda name: api.mine(name, "a.fr"),
    ],
)
def test_names_that_no_file_has(call, name):
    with pytest.raises(BitextmineError, match="not the name of a file"):
        call(name)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("score x.tsv -o x{lang}", "-o x{lang}: nothing takes the place of {lang}"),
        (
            "filter x.tsv --rejected x.{lang}.tsv",
            "--rejected x.{lang}.tsv: nothing takes the place of {lang}",
        ),
        ("align x.en x.fr -o x{lang}.tsv", "nothing takes the place of {lang}"),
        ("mine x.en x.fr -o x{lang}.tsv", "nothing takes the place of {lang}"),
        ("mine x.en x.fr --name x", "--name is for corpora that are looked up"),
        ("mine x.en x.fr --dir x", "--dir is for corpora that are looked up"),
        ("score x.tsv --src en --tgt xx", "--tgt: 'xx' is not a language code"),
        ("mine --src zz --tgt fr", "--src: 'zz' is not a language code"),
        ("split x.en --lang qq", "--lang: 'qq' is not a language code"),
    ],
)
def test_options_that_mean_nothing(bitextmine, tmp_path, args, message):
    for name in ("x.tsv", "x.en", "x.fr"):
        (tmp_path / name).write_text("one\tune\n")
    before = sorted(tmp_path.iterdir())
    assert message in " ".join(bitextmine(*args.split(), cwd=tmp_path, code=2).err.split())
    assert sorted(tmp_path.iterdir()) == before


def test_an_option_that_is_a_command(bitextmine):
    err = bitextmine("mine", "--report", "r.html", code=2).err
    assert "No such option" in err and "'bitextmine report' is a command of its own" in err


def test_more_threads_than_there_can_be(bitextmine, tmp_path):
    (tmp_path / "x.tsv").write_text("one\tune\n")
    script = "from bitextmine.cli.program import main; main()"
    run = [sys.executable, "-c", script, "score", "x.tsv", "--columns", "cosine"]
    done = subprocess.run(
        run, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "100000"}, capture_output=True
    )
    assert done.returncode == 0, done.stderr


def test_a_terminal_without_a_width_shows_progress():
    import fcntl
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
    script = (
        "from bitextmine.console import progress\nwith progress(10, 'work', show=True) as bar: bar.update(10)"
    )
    env = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    subprocess.run([sys.executable, "-c", script], stdin=follower, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # the end, for a terminal
        while more := os.read(leader, 10_000):
            shown += more
    os.close(leader)
    assert b"work: 100%" in shown


NEAR = [
    ("كِتَابٌ جَدِيدٌ", "كتاب جديد"),  # vowel marks
    ("كـــتاب", "كتاب"),  # tatweel
    ("كتابي یک", "کتابی يك"),  # Persian and Arabic ye, kaf
    ("Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
    ("İstanbul", "istanbul"),
    ("ISPARTA", "ısparta"),
    ("Раураl", "Paypal"),  # Cyrillic letters
    ("sınır", "sinir "),
]


@pytest.mark.parametrize(("one", "other"), NEAR)
def test_near_copies(one, other):
    assert line_key(one, "near") == line_key(other, "near")
    assert line_key(one, "exact") != line_key(other, "exact")


@pytest.mark.parametrize(("one", "other"), [("кот", "код"), ("ان", "ام"), ("νερό", "μερό")])
def test_other_words_are_no_near_copies(one, other):
    assert line_key(one, "near") != line_key(other, "near")
