"""Lines that are far too long: packed bombs are refused in little memory, by every command that reads lines."""

import json
import random
import subprocess
import sys

import pytest
import zstandard

from bitextmine.files.formats.tsv import TextRows
from bitextmine.files.source import Source

from .helpers import PACK

MIB = 1 << 20
BOMB = 600 * MIB  # of the letter x

# Runs a command and prints the peak memory of its process (resource.ru_maxrss, in KiB on Linux), its exit code and
# its standard error as JSON.
_MEASURED = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << (0 if sys.platform == "darwin" else 10)
print(json.dumps([peak, done.returncode, done.stderr.decode()]))
"""


def write_bomb(path, first=b"one\tun\n", size=BOMB):
    """A short line, then one of `size` bytes, in members of a mebibyte."""
    pack = PACK[path.suffix]
    path.write_bytes(pack(first) + pack(b"x" * MIB) * (size // MIB))
    assert path.stat().st_size < 3 * MIB
    return path


@pytest.mark.parametrize(("command", "suffix"), [("filter", ".gz"), ("info", ".xz"), ("report", ".zst")])
def test_a_packed_bomb_is_refused_with_its_line_in_little_memory(bitextmine, tmp_path, command, suffix):
    bomb = write_bomb(tmp_path / f"corpus.fr{suffix}")
    options = {"filter": ["-o", tmp_path / "out.tsv"], "info": [], "report": ["-o", tmp_path / "out.html"]}
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *bitextmine.argv, command, bomb, *options[command]],
        capture_output=True,
        check=True,
        env=bitextmine.environment(),
    )
    peak, code, err = json.loads(done.stdout)
    assert code == 1 and "Traceback" not in err
    assert f"{bomb}: line 2: longer than 10,485,760 bytes" in err and "--max-line" in err
    assert peak < BOMB / 2  # Python with its packages takes some 100 MiB, two copies of the line 1,200
    assert list(tmp_path.iterdir()) == [bomb]


def test_max_line_sets_where_it_ends(bitextmine, tmp_path):
    path = tmp_path / "corpus.fr.zst"
    text = b"a\n" * 300 + b"b" * 2048 + b"\n" + b"c" * 2049 + b"\nd\n"
    path.write_bytes(zstandard.ZstdCompressor().compress(text))
    assert "line 302: longer than 2,048 bytes" in bitextmine.fails("info", path, "--max-line", "2K")
    assert "303" in bitextmine("info", path, "--max-line", "3K").out
    assert "--max-line" in bitextmine("info", path, "--max-line", "2000", code=2).err
    # A last line without a line feed is no exception.
    message = bitextmine.fails("info", "-", "--max-line", "2K", stdin=b"a\nb\n" + b"c" * 2049)
    assert "<stdin>: line 3: longer than 2,048 bytes" in message


def test_rows_that_are_long_come_in_smaller_blocks_however_a_file_is_cut(tmp_path, monkeypatch):
    rng = random.Random(1)
    rows = [f"{'a' * rng.randrange(30)}\t{'b' * rng.randrange(30)}" for _ in range(500)]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    monkeypatch.setattr("bitextmine.files.formats.tsv.HEAD_BYTES", 100)
    seen = []
    for block_bytes in (7, 64, 100_000):
        monkeypatch.setattr("bitextmine.files.source.BLOCK_BYTES", block_bytes)
        blocks = list(TextRows(Source.of(path)).blocks(10, 200))
        lines = [line.decode() for block in blocks for line in block.lines()]
        assert lines == rows
        assert [block.start for block in blocks][:2] == [1, 1 + len(blocks[0])]
        for block in blocks[:-1]:
            assert len(block) == 10 or sum(map(len, block.lines())) >= 200
            assert sum(map(len, block.lines()[:-1])) < 200
        seen.append([len(block) for block in blocks])
    assert seen[0] == seen[1] == seen[2]
    assert max(seen[0]) == 10 > min(seen[0])
    assert {len(block) for block in TextRows(Source.of(path)).blocks(10)} == {10}
