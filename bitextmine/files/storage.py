"""Files in shared storage by their URL: s3://bucket/corpus.fr.zst, gs://, hdfs://, any driver of fsspec.

Input is a stream. Output is made in a temporary file and sent when it is complete: in an object store an object
appears complete or not at all, in a file system the file is renamed at the end. Locks, memory maps and resumption
need a file system of this machine, so they do not go through here.

Credentials and endpoints are those of the drivers (~/.aws/credentials, AWS_ENDPOINT_URL, FSSPEC_S3_ANON=true):
https://filesystem-spec.readthedocs.io/en/latest/features.html#configuration
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path
from typing import Any, BinaryIO

from bitextmine.errors import BitextmineError, pip_install
from bitextmine.files.atomic import staging

# Here an object appears when all of it is there, and renaming is copying.
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "hf"}
_AT_ONCE = 1 << 23  # bytes asked for at a time
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_remote(path: object) -> bool:
    """Return True for a URL, such as s3://bucket/corpus.fr."""
    return isinstance(path, (str, os.PathLike)) and _URL.match(os.fsdecode(path)) is not None


@dataclass(frozen=True, order=True)
class Remote(os.PathLike[str]):
    """A file in shared storage, with the methods of `Path` that are needed; Path makes s3:/bucket of s3://bucket.

    Each method that looks there raises BitextmineError, with the URL and the reason, if it fails.
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """Return the last part of the URL."""
        return self.url.partition("://")[2].rstrip("/").rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """Return the last suffix of the name."""
        return Path(self.name).suffix

    @property
    def stem(self) -> str:
        """Return the name without its last suffix."""
        return Path(self.name).stem

    def with_name(self, name: str) -> Remote:
        """Return the path beside this one with another name."""
        return Remote(self.url.rstrip("/").rpartition("/")[0]) / name

    def with_suffix(self, suffix: str) -> Remote:
        """Return the path with another suffix."""
        return self.with_name(Path(self.name).with_suffix(suffix).name)

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url.rstrip('/')}/{name}")

    def _ask(self, method: str) -> bool:
        with self._driver("look there") as (fs, path):
            return bool(getattr(fs, method)(path))

    exists = partialmethod(_ask, "exists")
    is_file = partialmethod(_ask, "isfile")
    is_dir = partialmethod(_ask, "isdir")

    def iterdir(self) -> Iterator[Remote]:
        """Yield the contents of this folder."""
        with self._driver("list") as (fs, folder):
            for path in fs.ls(folder, detail=False):
                if name := str(path).rstrip("/").rpartition("/")[2]:
                    yield self / name

    def open(self) -> Any:
        """Open the file to read its bytes, with seek and tell."""
        with self._driver("read") as (fs, path):
            return fs.open(path, "rb", block_size=_AT_ONCE)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield the file to read its bytes; errors while it is read are sentences, too."""
        with self._driver("read") as (fs, path), fs.open(path, "rb", block_size=_AT_ONCE) as file:
            yield file

    @contextlib.contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Yield a binary file that is sent when the block ends; after an exception nothing is.

        Until then it is in the folder for temporary files ($TMPDIR). If it cannot be sent it stays there, and the
        error names it: no work is lost.
        """
        digest = hashlib.sha256(self.url.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        here = Path(tempfile.gettempdir(), f"bitextmine-{digest}-{self.name[-80:]}")
        with staging(here) as (temporary, file):
            yield file
            file.flush()
            try:
                self._send(temporary)
            except BitextmineError as e:
                temporary.replace(here)
                raise BitextmineError(f"{e}; what was to be written is kept in {here}") from None

    def _send(self, source: Path) -> None:
        with self._driver("write") as (fs, path):
            if self._scheme in _OBJECT_STORES:
                fs.put_file(str(source), path)
                return
            folder, _, name = path.rpartition("/")
            staged = f"{folder}/.{name}.sending"
            fs.makedirs(folder or "/", exist_ok=True)
            try:
                fs.put_file(str(source), staged)
                fs.mv(staged, path)
            except BaseException:
                with contextlib.suppress(Exception):
                    fs.rm_file(staged)
                raise

    def check_writable(self) -> None:
        """Raise BitextmineError for problems visible without writing: no driver, a folder there."""
        with self._driver("write") as (fs, path):
            folder = self._scheme not in _OBJECT_STORES and fs.isdir(path)
        if self.url.endswith("/") or not self.name or folder:
            raise BitextmineError(f"{self}: cannot write: it is a directory; name a file")

    @property
    def _scheme(self) -> str:
        return self.url.partition(":")[0].lower()

    @contextlib.contextmanager
    def _driver(self, what: str) -> Iterator[tuple[Any, str]]:
        """Yield a file system of fsspec and the path in it; its errors become sentences: cannot `what`."""
        scheme = self._scheme
        try:
            from fsspec.core import url_to_fs

            fs, path = url_to_fs(f"{scheme}{self.url[len(scheme) :]}")
            fs.invalidate_cache()  # of listings, which other processes make stale
            yield fs, path
        except BitextmineError:
            raise
        except ImportError as e:
            known = scheme in ("s3", "s3a", "gs", "gcs")
            how = pip_install("storage") if known else f"its package ({str(e).splitlines()[0]})"
            raise BitextmineError(f"{self}: {scheme}:// needs a driver; install it with {how}") from None
        except FileNotFoundError:
            raise BitextmineError(f"{self}: no such file; check the bucket and the name") from None
        except Exception as e:  # each driver has errors of its own
            message = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
            if isinstance(e, PermissionError):
                message = "permission denied; check the credentials, and what they allow"
            reason = next(filter(None, message.splitlines()), type(e).__name__)
            raise BitextmineError(f"{self}: cannot {what}: {reason}") from None


AnyPath = Path | Remote


def to_path(path: str | os.PathLike[str]) -> AnyPath:
    """Return a Path, or a Remote for a URL; BitextmineError for what no file system has as a name."""
    if isinstance(path, Remote):
        return path
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # half a pair of surrogates
        possible = False
    if not possible:
        raise BitextmineError(f"{os.fspath(path)!r}: not the name of a file")
    return Remote(os.fspath(path)) if is_remote(path) else Path(path)


@contextlib.contextmanager
def reading(path: AnyPath) -> Iterator[Any]:
    """Open a file to read bytes; OSError for one of this machine, for a URL BitextmineError, also while it is read."""
    with path.reading() if isinstance(path, Remote) else open(path, "rb", buffering=0) as file:
        yield file


def local_path(path: str | os.PathLike[str], why: str) -> Path:
    """Return a Path; raise BitextmineError for a URL. why: the file and why it must be local, for the message."""
    path = to_path(path)
    if isinstance(path, Remote):
        raise BitextmineError(f"{path}: {why}; copy it to this machine first")
    return path
