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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import staging

# Here an object appears when all of it is there, and renaming is copying.
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "hf"}
_AT_ONCE = 1 << 23  # bytes asked for at a time
_DRIVERS = {
    **dict.fromkeys(("s3", "s3a", "gs", "gcs"), "pip install 'bitextmine[storage]'"),
    "hdfs": "pip install 'bitextmine[parquet]', beside Hadoop's libhdfs",
}

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
T = TypeVar("T")


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
    def _scheme(self) -> str:
        return self.url.partition(":")[0].lower()

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

    @property
    def parent(self) -> Remote:
        """Return the folder."""
        return Remote(self.url.rstrip("/").rpartition("/")[0])

    def with_name(self, name: str) -> Remote:
        """Return the path beside this one with another name."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> Remote:
        """Return the path with another suffix."""
        return self.with_name(Path(self.name).with_suffix(suffix).name)

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url.rstrip('/')}/{name}")

    def exists(self) -> bool:
        """Return True if there is a file or folder."""
        return bool(self._ask("look there", lambda fs, path: fs.exists(path)))

    def is_file(self) -> bool:
        """Return True for a file."""
        return bool(self._ask("look there", lambda fs, path: fs.isfile(path)))

    def is_dir(self) -> bool:
        """Return True for a folder."""
        return bool(self._ask("look there", lambda fs, path: fs.isdir(path)))

    def size(self) -> int:
        """Return the size in bytes."""
        return int(self._ask("read", lambda fs, path: fs.size(path)))

    def iterdir(self) -> Iterator[Remote]:
        """Yield the contents of this folder."""
        for path in self._ask("list", lambda fs, path: fs.ls(path, detail=False)):
            if name := str(path).rstrip("/").rpartition("/")[2]:
                yield self / name

    def open(self) -> Any:
        """Open the file to read its bytes, with seek and tell."""
        return self._ask("read", lambda fs, path: fs.open(path, "rb", block_size=_AT_ONCE))

    @contextlib.contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Yield a binary file that is sent when the block ends; after an exception nothing is.

        Until then it is in the folder for temporary files ($TMPDIR). If it cannot be sent it stays there, and the
        error names it: no work is lost.
        """
        digest = hashlib.sha256(self.url.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        path = Path(tempfile.gettempdir(), f"bitextmine-{digest}-{self.name[-80:]}")
        with staging(path, "sending") as (temporary, file):
            yield file
            file.flush()
            try:
                self._ask("write", lambda fs, path: _send(fs, path, temporary, self._scheme))
            except BitextmineError as e:
                kept = temporary.with_name(temporary.name.removeprefix(".").removesuffix(".sending"))
                temporary.replace(kept)
                raise BitextmineError(f"{e}; what was to be written is kept in {kept}") from None

    def check_writable(self) -> None:
        """Raise BitextmineError for problems visible without writing: no driver, no bucket, a folder there."""
        if self.url.endswith("/") or not self.name or (self._scheme not in _OBJECT_STORES and self.is_dir()):
            raise BitextmineError(f"{self}: cannot write: it is a directory; name a file")
        self._check_bucket()

    # --- how it is asked ---

    def _ask(self, what: str, ask: Callable[[Any, str], T]) -> T:
        """Return the driver's answer; what: read, write, list, look there."""
        with self.explained(what):
            return ask(*self._driver())

    @contextlib.contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Turn the errors of a driver into sentences."""
        try:
            yield
        except BitextmineError:
            raise
        except Exception as e:  # each driver has errors of its own
            raise self._error(e, what) from None

    def _driver(self) -> tuple[Any, str]:
        scheme = self._scheme
        try:
            from fsspec.core import url_to_fs

            fs, path = url_to_fs(f"{scheme}{self.url[len(scheme) :]}")
        except ImportError as e:
            how = _DRIVERS.get(scheme, f"its driver ({str(e).splitlines()[0]})")
            raise BitextmineError(f"{self}: {scheme}:// needs a driver; install it with {how}") from None
        except ValueError as e:
            if "rotocol not known" in str(e):
                raise BitextmineError(f"{self}: no storage is known by {scheme}://; check the name") from None
            raise
        fs.invalidate_cache()  # of listings, which other processes make stale
        return fs, path

    def _check_bucket(self) -> None:
        """Raise BitextmineError if an object store has no such bucket."""

        def check(fs: Any, path: str) -> None:
            bucket = path.strip("/").partition("/")[0]
            with contextlib.suppress(PermissionError):  # one may write into what one may not look at
                try:
                    fs.info(bucket)
                except FileNotFoundError:
                    raise BitextmineError(
                        f"{self}: there is no bucket '{bucket}', or not for these credentials; check its name"
                    ) from None

        if self._scheme in _OBJECT_STORES:
            self._ask("look there", check)

    def _error(self, e: Exception, what: str) -> BitextmineError:
        if isinstance(e, FileNotFoundError):
            try:
                self._check_bucket()
            except BitextmineError as missing:
                return missing
            return BitextmineError(f"{self}: no such file; check the bucket and the name")
        if isinstance(e, PermissionError):
            reason = "permission denied; check the credentials, and what they allow"
        else:
            message = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
            reason = next(filter(None, message.splitlines()), type(e).__name__)
        return BitextmineError(f"{self}: cannot {what}: {reason}")


AnyPath = Path | Remote


def _send(fs: Any, path: str, source: Path, scheme: str) -> None:
    if scheme in _OBJECT_STORES:
        fs.put_file(str(source), path)
        return
    folder, _, name = path.rpartition("/")
    staged = f"{folder}/.{name}.sending"
    if folder:
        fs.makedirs(folder, exist_ok=True)
    try:
        fs.put_file(str(source), staged)
        fs.mv(staged, path)
    except BaseException:
        with contextlib.suppress(Exception):
            fs.rm_file(staged)
        raise


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
    if isinstance(path, Remote):
        with path.explained("read"), path.open() as file:
            yield file
    else:
        with open(path, "rb", buffering=0) as file:
            yield file


def local_path(path: str | os.PathLike[str], why: str) -> Path:
    """Return a Path; raise BitextmineError for a URL. why: the file and why it must be local, for the message."""
    path = to_path(path)
    if isinstance(path, Remote):
        raise BitextmineError(f"{path}: {why}; copy it to this machine first")
    return path
