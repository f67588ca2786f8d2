"""The layout of a zip file: whatever would let two programs find different files in one archive is refused.

A zip file is described three times: before each file, behind it, and in a directory at the end. pip and this host read
the directory, uv reads from the beginning; nothing says who is right where they differ.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

MAX_DIRECTORY = 16 << 20
"""Bytes of the directory at the end, which is read as a whole."""

_END, _ENTRY, _LOCAL = struct.Struct("<4s4H2LH"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s5H3L2H")
_DESCRIBED, _UTF8 = 1 << 3, 1 << 11
_DEFLATED = 8
# ZIP64 gives sizes a second time, Info-ZIP's Unicode path gives the name a second time.
_EXTRA = {0x0001: "sizes", 0x7075: "a name"}


class NotAWheel(ValueError):  # noqa: N818 - it is the name of the fault
    """The bytes are no readable wheel; the message says why."""


class _Told(NamedTuple):
    """What is told of one file, here and there."""

    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int


class Directory(NamedTuple):
    """What the end of an archive says.

    Attributes:
        files: How many there are.
        size: Bytes of the directory.
        offset: Where it begins.
    """

    files: int
    size: int
    offset: int


def find_directory(path: Path) -> tuple[Directory, list[str]]:
    """Read the end of an archive.

    Returns:
        What it says, and why another program may find another end.

    Raises:
        NotAWheel: There is no end, or it promises more than anybody should read.
    """
    with path.open("rb") as file:
        length = file.seek(0, 2)
        file.seek(max(0, length - _END.size - 0xFFFF))
        tail = file.read()
    at = tail.rfind(b"PK\5\6", 0, len(tail) - _END.size + 4)
    if at < 0:
        raise NotAWheel("no directory is at its end")
    _, disk, first, here, count, size, offset, comment = _END.unpack_from(tail, at)
    if size > MAX_DIRECTORY:
        raise NotAWheel(f"its directory is larger than {MAX_DIRECTORY} bytes")
    faults = []
    if at + _END.size != len(tail) or comment:
        faults.append("something stands behind its end")
    if disk or first or here != count:
        faults.append("it is a part of several")
    if 0xFFFF in (here, count) or 0xFFFFFFFF in (size, offset) or b"PK\6\7" in tail[max(0, at - 20) : at]:
        faults.append("it has a second end, as ZIP64 does, which no wheel needs")
    elif offset + size != length - len(tail) + at:
        faults.append("its directory is not where its end says")
    return Directory(count, size, offset), faults


def ambiguities(path: Path, directory: Directory) -> Iterator[str]:
    """Compare everything that is told of each file, and account for every byte before the directory."""
    with path.open("rb") as file:
        file.seek(directory.offset)
        data = file.read(directory.size)
        try:
            entries = sorted(_entries(data))
            if len(entries) != directory.files:
                yield f"its end counts {directory.files} files, its directory {len(entries)}"
            position = 0
            for offset, entry in entries:
                shown = entry.name.decode(errors="replace")
                if offset != position:
                    yield f"{shown!r} {'overlaps another file' if offset < position else 'follows hidden bytes'}"
                file.seek(offset)
                position = offset + (yield from _local(file, entry, shown))
            if position != directory.offset:
                yield "hidden bytes stand before its directory"
        except (struct.error, ValueError) as error:
            yield f"its parts do not fit each other: {error}"


def _entries(data: bytes) -> Iterator[tuple[int, _Told]]:
    at = 0
    while at < len(data):
        mark, _, _, flags, method, _, _, crc, packed, size, name, extra, comment, _, _, _, offset = _ENTRY.unpack_from(
            data, at
        )
        if mark != b"PK\1\2":
            raise ValueError("there is something else in the directory")
        at += _ENTRY.size
        entry = _Told(data[at : at + name], flags, method, crc, packed, size)
        _check_extra(data[at + name : at + name + extra])
        at += name + extra + comment
        yield offset, entry


def _local(file: BinaryIO, entry: _Told, shown: str) -> Generator[str, None, int]:
    """Read what stands around a file; the value is how many bytes all of it takes."""
    head = file.read(_LOCAL.size)
    mark, _, flags, method, _, _, crc, packed, size, name, extra = _LOCAL.unpack(head)
    if mark != b"PK\3\4":
        raise ValueError(f"{shown!r} is not where the directory says")
    local = _Told(file.read(name), flags, method, crc, packed, size)
    _check_extra(file.read(extra))
    behind = 0
    if flags & _DESCRIBED:
        file.seek(entry.packed, 1)
        told = file.read(16)
        behind = 16 if told.startswith(b"PK\7\x08") else 12
        crc, packed, size = struct.unpack("<3L", told[behind - 12 : behind])
        local = local._replace(crc=crc, packed=packed, size=size)
        if method != _DEFLATED:
            yield f"{shown!r} does not say where it ends"
    if local != entry:
        differs = ", ".join(key for key in entry._fields if getattr(local, key) != getattr(entry, key))
        yield f"{shown!r} has another {differs} before the file than in the directory"
    if not entry.name.isascii() and not entry.flags & _UTF8:
        yield f"{shown!r} does not say how its name is written"
    return int(_LOCAL.size + name + extra + entry.packed + behind)


def _check_extra(data: bytes) -> None:
    while data:
        kind, size = struct.unpack_from("<2H", data)
        if kind in _EXTRA:
            raise ValueError(f"{_EXTRA[kind]} told a second time")
        if len(data) < 4 + size:
            raise ValueError("an extra field is cut")
        data = data[4 + size :]
