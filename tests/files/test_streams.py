"""Files and archives that are missing, cut short or damaged; outputs that appear complete or not at all."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from bitextmine.errors import BitextmineError
from bitextmine.files.output import Destination
from bitextmine.files.source import Source

from .helpers import PACK

BODY = b"".join(b"line number %d\n" % i for i in range(20_000))
packed = pytest.mark.parametrize("suffix", list(PACK)[1:])


def read(path):
    return b"".join(Source.of(path).blocks())


@packed
def test_all_members_are_read(tmp_path, suffix):
    path = tmp_path / f"c.fr{suffix}"
    path.write_bytes(PACK[suffix](BODY) + PACK[suffix](b"") + PACK[suffix](b"more\n"))
    assert read(path) == BODY + b"more\n"


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_padding_with_zero_bytes_is_no_damage(tmp_path, suffix):
    path = tmp_path / f"c.fr{suffix}"
    path.write_bytes(PACK[suffix](BODY) + bytes(512) + PACK[suffix](b"more\n") + bytes(100_000))
    assert read(path) == BODY + b"more\n"


def test_zstd_skippable_frames_and_long_windows(tmp_path):
    path = tmp_path / "c.fr.zst"
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"note!"
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=28, enable_ldm=True)
    long = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(skippable + PACK[".zst"](b"a\n") + skippable + long.compress(BODY) + long.flush())
    assert read(path) == b"a\n" + BODY


@packed
def test_a_truncated_archive_is_refused_wherever_it_is_cut(tmp_path, suffix):
    path = tmp_path / f"c.fr{suffix}"
    whole = PACK[suffix](b"".join(b"line %d\n" % i for i in range(40)))
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(BitextmineError, match=rf"c\.fr\{suffix}: truncated .* its {cut} bytes"):
            read(path)
        path.write_bytes(whole + whole[:cut])  # in the second member
        with pytest.raises(BitextmineError, match="truncated"):
            read(path)
    path.write_bytes(b"")
    with pytest.raises(BitextmineError, match="an empty file"):
        read(path)


@packed
def test_a_damaged_archive_is_refused(tmp_path, suffix):
    path = tmp_path / f"c.fr{suffix}"
    for data in (b"plain text\n", PACK[suffix](BODY) + b"garbage"):
        path.write_bytes(data)
        with pytest.raises(BitextmineError, match=rf"c\.fr\{suffix}: not valid"):
            read(path)
    if suffix != ".zst":  # without a checksum, zstd cannot tell
        whole = bytearray(PACK[suffix](BODY))
        whole[len(whole) // 2] ^= 0xFF
        path.write_bytes(whole)
        with pytest.raises(BitextmineError):
            read(path)


def test_a_missing_file_is_named_and_another_suffix_proposed(tmp_path):
    path = tmp_path / "c.fr"
    (tmp_path / "c.fr.gz").write_bytes(b"")
    with pytest.raises(BitextmineError, match=r"c\.fr: no such file; did you mean c\.fr\.gz\?"):
        read(path)


def test_a_folder_and_an_unreadable_file_are_named(tmp_path, monkeypatch):
    with pytest.raises(BitextmineError, match="is a directory"):
        read(tmp_path)
    path = tmp_path / "c.fr"
    path.write_bytes(b"a\n")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads everything

        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(BitextmineError, match=r"c\.fr: cannot read: Permission denied"):
        read(path)


@pytest.mark.parametrize("suffix", PACK)
def test_an_output_appears_only_when_complete(tmp_path, suffix):
    path = tmp_path / f"out.tsv{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), Destination.of(path).open() as file:
        file.write(BODY)
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    with Destination.of(path).open() as file:
        file.write(BODY)
        assert path.read_bytes() == b"old"
        file.write(b"end\n")
    assert read(path) == BODY + b"end\n"
    assert list(tmp_path.iterdir()) == [path]


def test_links_that_lead_nowhere_stay(tmp_path):
    for name, leads, problem in (
        ("loop", "loop", "Too many levels"),
        ("out", "gone/x", "there is no folder .*gone"),
    ):
        (tmp_path / name).symlink_to(leads)
        with pytest.raises(BitextmineError, match=problem):
            Destination.of(tmp_path / name).check()
    with pytest.raises(BitextmineError, match="Too many levels"), Destination.of(tmp_path / "loop").open():
        pass
    assert (tmp_path / "loop").readlink() == Path("loop")


def test_an_output_keeps_links_and_permissions(tmp_path):
    target, link = tmp_path / "target.tsv", tmp_path / "link.tsv"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to("target.tsv")
    with Destination.of(link).open() as file:
        file.write(b"new\n")
    assert link.is_symlink()
    assert target.read_bytes() == b"new\n"
    assert target.stat().st_mode & 0o777 == 0o640


def test_devices_and_pipes_are_written_in_place(tmp_path):
    with Destination.of(os.devnull).open() as file:
        file.write(b"gone\n")
    assert not Path(os.devnull).is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as cat:
        with Destination.of(pipe).open() as file:
            file.write(b"through\n")
        assert cat.communicate()[0] == b"through\n"
    assert pipe.is_fifo()


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, suffix):
    path = tmp_path / f"out.tsv{suffix}"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with (
            pytest.raises(BitextmineError, match=r"out\.tsv.*: cannot write: File too large"),
            Destination.of(path).open() as file,
        ):
            file.write(os.urandom(200_000).hex().encode())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "fd"), [("/dev/stdout", "stdout"), ("/dev/stderr", "stderr")])
def test_standard_streams_by_name_append_where_the_shell_says_so(tmp_path, name, fd):
    log = tmp_path / "log"
    log.write_bytes(b"old\n")
    script = (
        "from bitextmine.files.output import Destination\n"
        f"with Destination('{name}').open() as f: f.write(b'new\\n')"
    )
    with log.open("ab") as file:
        subprocess.run([sys.executable, "-c", script], check=True, **{fd: file})
    assert log.read_bytes() == b"old\nnew\n"


def test_a_folder_that_takes_no_files_is_told_with_the_remedy(tmp_path, monkeypatch):
    place = tmp_path / "out.tsv"

    def told(*remedy):
        with pytest.raises(BitextmineError) as raised:
            Destination.of(place).check(*remedy)
        return str(raised.value).partition(": cannot write: ")[2]

    monkeypatch.setattr(os, "access", lambda *args: False)
    assert told() == f"permission denied in {tmp_path}; name another place"
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert told("use --cache") == f"read-only file system in {tmp_path}; use --cache"
    with pytest.raises(BitextmineError, match=r"no file can be made in /proc; name another place"):
        Destination("/proc/x.tsv").open().__enter__()
