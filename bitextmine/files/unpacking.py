"""Decompress .gz, .bz2, .xz and .zst in bounded steps.

The readers of Python's bz2 and lzma and of zstandard take some truncated or damaged files for complete ones.
"""

import bz2
import lzma
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Any

from bitextmine.errors import BitextmineError

KINDS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
MAGIC = {".gz": b"\x1f\x8b\x08", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\0", ".zst": b"\x28\xb5\x2f\xfd"}
_LATENCY = 1 << 12  # bytes after which a decompressor has noticed damage

PACKED_BYTES = 1 << 14  # compressed bytes taken at a time
UNPACKED_BYTES = 1 << 18
# A zstd decompressor hands back all that its input expands to; 4 bytes may be a block of 128 KiB, these 16 MiB.
ZSTD_BYTES = 1 << 9


def unpack(
    packed_blocks: Iterator[bytes], name: str, suffix: str, *, salvage: bool = False
) -> Iterator[bytes]:
    """Yield the content of a compressed file in blocks of bounded size, however much a byte expands to.

    All members are read, and the end of the last one is required. The file has this name in messages, and this
    compression suffix. With `salvage` an empty block stands for what is lost, and the next member is looked for.

    Raises:
        BitextmineError: an empty, damaged or truncated archive.
    """
    kind = KINDS[suffix]
    member: _Member | None = None
    # The last members: if the memory of each goes back to the system at once, small ones take a fifth longer.
    alive: deque[_Member] = deque(maxlen=3)
    waiting = b""  # read already, but belongs to the next member
    recent = b""  # the bytes before, of the same member
    total = 0
    while packed := waiting or next(packed_blocks, b""):
        total += len(packed) - len(waiting)
        waiting = b""
        if member is None or member.rest is not None:
            if suffix != ".zst":  # padding with zero bytes between or after members is allowed
                packed = packed.lstrip(b"\0")
                if not packed:
                    continue
            member = _member(suffix)
            alive.append(member)
        try:
            yield from filter(None, member.blocks(packed))
        except member.damage as e:
            if not salvage:
                raise BitextmineError(
                    f"{name}: not valid {kind} data ({e}); it is damaged or misnamed, check it with '{kind} -t'"
                ) from None
            yield b""
            waiting, member, recent = _next_member(recent + packed, packed_blocks, MAGIC[suffix]), None, b""
            continue
        recent = (recent + packed)[-_LATENCY:] if salvage else b""
        if member.rest is not None:
            waiting, recent = member.rest, b""
    if total == 0:
        raise BitextmineError(f"{name}: an empty file, which is no {kind} archive; fetch or make it again")
    if member is None or member.rest is not None:
        return
    if not salvage:
        raise BitextmineError(
            f"{name}: truncated {kind} file: its {total:,} bytes stop in the middle of the data; "
            "fetch or make it again"
        )
    yield b""


def _next_member(packed: bytes, blocks: Iterator[bytes], magic: bytes) -> bytes:
    """Return the bytes from the next beginning of a member on, behind the first byte; b"" if there is none."""
    packed = packed[1:]
    while (at := packed.find(magic)) < 0:
        if not (more := next(blocks, b"")):
            return b""
        packed = packed[1 - len(magic) :] + more
    return packed[at:]


class _Member:
    """One compressed member of a file, by the decompressor of bzip2 or xz, which have the same interface.

    Attributes:
        damage: the exception for damaged data.
        rest: the bytes after the end, once it has been read.
    """

    def __init__(self, decompressor: Any, damage: type[Exception]) -> None:
        self._from, self.damage = decompressor, damage
        self.rest: bytes | None = None

    def blocks(self, packed: bytes) -> Iterator[bytes]:
        """Yield the expansion of these compressed bytes, in blocks of bounded size."""
        yield self._from.decompress(packed, UNPACKED_BYTES)
        while not (self._from.eof or self._from.needs_input):
            yield self._from.decompress(b"", UNPACKED_BYTES)
        if self._from.eof:
            self.rest = self._from.unused_data


class _Gzip(_Member):
    def blocks(self, packed: bytes) -> Iterator[bytes]:
        block = b""
        # A full block may have left something behind, though all of the input has been taken.
        while not self._from.eof and (packed or len(block) == UNPACKED_BYTES):
            block = self._from.decompress(packed, UNPACKED_BYTES)
            packed = self._from.unconsumed_tail
            yield block
        if self._from.eof:
            self.rest = self._from.unused_data


class _Zstd(_Member):
    def blocks(self, packed: bytes) -> Iterator[bytes]:
        for at in range(0, len(packed), ZSTD_BYTES):
            if block := self._from.decompress(packed[at : at + ZSTD_BYTES]):
                yield block
            if self._from.eof:
                self.rest = self._from.unused_data + packed[at + ZSTD_BYTES :]
                return


def _member(suffix: str) -> _Member:
    if suffix == ".gz":
        return _Gzip(zlib.decompressobj(wbits=31), zlib.error)
    if suffix == ".bz2":
        return _Member(bz2.BZ2Decompressor(), OSError)
    if suffix == ".xz":
        return _Member(lzma.LZMADecompressor(), lzma.LZMAError)
    import zstandard

    # 2 GiB, so that files of 'zstd --long=31' open too; only as much is taken as a frame asks for.
    return _Zstd(zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj(), zstandard.ZstdError)
