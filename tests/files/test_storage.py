"""Shared storage: what is read there and written there, by fsspec's own memory and local file systems."""

import uuid
from pathlib import Path
from typing import Any

import pytest

fsspec = pytest.importorskip("fsspec")

from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

from bitextmine.errors import BitextmineError, UsageError  # noqa: E402
from bitextmine.files.corpus import corpus_language, find_corpus  # noqa: E402
from bitextmine.files.formats.table import open_table  # noqa: E402
from bitextmine.files.json_toml import read_json  # noqa: E402
from bitextmine.files.output import Destination, Made, is_ours, keep_apart  # noqa: E402
from bitextmine.files.source import Location, Source  # noqa: E402
from bitextmine.files.storage import Remote  # noqa: E402

LINES = [f"Zeile {i} ä\u2028 x" for i in range(3000)]
TEXT = "".join(f"{line}\n" for line in LINES)
SUFFIXES = ["", ".gz", ".bz2", ".xz", ".zst"]


def read_lines(path):
    return list(Source.of(path).lines())


class Broken(MemoryFileSystem):
    """Fails in the way that is set: in the middle of a file that is read, or of one that is written."""

    protocol = "broken"
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012
    error: Exception | None = None

    @classmethod
    def _strip_protocol(cls, path):
        return MemoryFileSystem._strip_protocol(path.replace("broken://", "memory://"))

    def _open(self, path, mode="rb", **kwargs):
        opened = super()._open(path, mode=mode, **kwargs)
        if mode == "rb" and Broken.error is not None:
            whole = opened.getvalue()

            def read(size=-1):
                if opened.tell():
                    raise Broken.error
                opened.seek(len(whole) // 2)
                return whole[: len(whole) // 2]

            opened.read = read
        return opened

    def put_file(self, lpath, rpath, **kwargs):
        if Broken.error is not None:
            self.pipe_file(rpath, Path(lpath).read_bytes()[:7])
            raise Broken.error
        super().put_file(lpath, rpath, **kwargs)


fsspec.register_implementation("broken", Broken)
fsspec.register_implementation("undriven", "no_such_module_here.FileSystem")


@pytest.fixture
def broken():
    yield Broken
    Broken.error = None
    Broken.store.clear()


@pytest.fixture(params=["memory", "file"])
def folder(request, tmp_path):
    """The URL of a folder that is not there yet."""
    return f"memory://{uuid.uuid4()}/a b" if request.param == "memory" else f"file://{tmp_path}/a b"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A folder of its own for what is made before it is sent."""
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(made))
    return made


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_what_a_file_here_would_hold(folder, suffix, tmp_path, temporary):
    here, there = tmp_path / f"corpus.de{suffix}", f"{folder}/corpus.de{suffix}"
    for output in (here, there):
        with Destination.of(output).open() as out:
            out.write(TEXT.encode())
    with fsspec.open(there, "rb") as file:
        assert file.read() == here.read_bytes()
    assert read_lines(there) == LINES
    assert read_lines(Remote(there)) == LINES
    assert b"".join(Source(there).blocks()) == TEXT.encode()
    assert corpus_language(there) == "de"
    assert [remote.name for remote in Remote(folder).iterdir()] == [f"corpus.de{suffix}"]
    assert list(temporary.iterdir()) == []


def test_after_an_error_nothing_is_sent_and_what_was_there_stays(folder, temporary):
    there = f"{folder}/corpus.de"
    for _ in range(2):
        with pytest.raises(KeyError), Destination.of(there).open() as out:
            out.write(b"half")
            raise KeyError
        assert not Remote(there).exists()
    with Destination.of(there).open() as out:
        out.write(b"whole\n")
    assert read_lines(there) == ["whole"]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError("Access Denied"), "permission denied; check the credentials"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (RuntimeError("quota exceeded\nrequest 42"), "quota exceeded"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_what_cannot_be_sent_is_kept_and_is_not_there_by_halves(broken, temporary, error, told):
    with Destination.of("broken://bucket/corpus.de").open() as out:
        out.write(b"before\n")
    broken.error = error
    with pytest.raises(BitextmineError) as raised, Destination.of("broken://bucket/corpus.de").open() as out:
        out.write(TEXT.encode())
    (kept,) = temporary.iterdir()
    assert str(raised.value).startswith("broken://bucket/corpus.de: cannot write: ")
    assert told in str(raised.value)
    assert str(raised.value).endswith(f"what was to be written is kept in {kept}")
    assert "\n" not in str(raised.value)
    assert kept.read_text(encoding="utf-8") == TEXT
    broken.error = None
    assert read_lines("broken://bucket/corpus.de") == ["before"]
    assert [remote.name for remote in Remote("broken://bucket").iterdir()] == ["corpus.de"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_storage_that_fails_while_it_is_read_is_told_of(broken, suffix):
    with Destination.of(f"broken://bucket/corpus.de{suffix}").open() as out:
        out.write(TEXT.encode())
    broken.error = ConnectionResetError("reset by peer")
    words = rf"^broken://bucket/corpus\.de{suffix}: cannot read: reset by peer$"
    with pytest.raises(BitextmineError, match=words):
        read_lines(f"broken://bucket/corpus.de{suffix}")


def test_files_that_are_not_there(folder):
    with pytest.raises(BitextmineError, match=r"no\.de: no such file; check the bucket and the name"):
        read_lines(f"{folder}/no.de")
    with pytest.raises(BitextmineError, match=r"no\.jsonl: no such file"):
        open_table(f"{folder}/no.jsonl")
    with pytest.raises(BitextmineError, match=r"no\.json: no such file"):
        read_json(f"{folder}/no.json")
    assert not is_ours(Remote(f"{folder}/no.json"), Made.PAIRS)
    with Destination.of(f"{folder}/x.json").open() as out:
        out.write(b'{"kind": "bitext"}')
    assert is_ours(Remote(f"{folder}/x.json"), Made.PAIRS)
    assert not is_ours(Remote(f"{folder}/x.json"), Made.INDEX)
    with pytest.raises(BitextmineError, match=r"/: cannot write: it is a directory; name a file"):
        Destination(f"{folder}/").check()


def test_storage_that_nobody_knows_and_a_driver_that_is_missing():
    with pytest.raises(BitextmineError, match=r"^nosuch://x/y: cannot read: Protocol not known: nosuch"):
        read_lines("nosuch://x/y")
    for ask in (lambda: read_lines("undriven://x/y"), Destination("undriven://x/y").check):
        with pytest.raises(BitextmineError, match=r"undriven:// needs a driver; install it with"):
            ask()


def test_corpora_are_found_by_language(folder):
    for name in ("news.en", "news.fr.zst", "books.fr"):
        with Destination.of(f"{folder}/{name}").open() as out:
            out.write(TEXT.encode())
    with pytest.raises(BitextmineError, match="cannot write: it is a directory"):
        Destination(folder).check()
    assert find_corpus(folder, "en").path == Remote(f"{folder}/news.en")
    assert find_corpus(folder, "fr", "news").path == Remote(f"{folder}/news.fr.zst")
    with pytest.raises(BitextmineError, match=r"2 corpora in language 'fr': books\.fr, news\.fr\.zst"):
        find_corpus(folder, "fr")
    with pytest.raises(BitextmineError, match="languages seen there: en, fr"):
        find_corpus(folder, "de")


def test_an_output_does_not_replace_its_input(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    for source, output in (
        ("s3://b/pairs.tsv", "s3://b/pairs.tsv"),
        (f"file://{tmp_path}/pairs.tsv", f"{tmp_path}/pairs.tsv"),
        (f"{tmp_path}/pairs.tsv", f"file://{tmp_path}/pairs.tsv"),
    ):
        with pytest.raises(UsageError, match="is the input itself"):
            keep_apart(Source(source), {"-o": Destination(output)})
    outputs = {"-o": Destination("s3://b/other.tsv"), "--rejected": Destination("s3://c/pairs.tsv")}
    keep_apart(Source("s3://b/pairs.tsv"), outputs)
    assert Location("s3://b//x").identity != Location("s3://b/x").identity, (
        "keys of an object store are just text"
    )
