"""Checks the layout of a zip file, and refuses archives in which two programs could find different files.

A zip file describes its files three times: before each file, after it, and in a directory at the end. pip and this
host read the directory, uv reads from the beginning; no rule says which is right if they differ.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

MAX_DIRECTORY = 16 << 20
"""Maximum bytes of the directory at the end, which is read as a whole."""

_END, _ENTRY, _LOCAL = struct.Struct("<4s4H2LH"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s5H3L2H")
_DESCRIBED, _UTF8 = 1 << 3, 1 << 11
_DEFLATED = 8
# ZIP64 repeats the sizes; Info-ZIP's Unicode path repeats the name.
_EXTRA = {0x0001: "sizes", 0x7075: "name"}


class NotAWheel(ValueError):  # noqa: N818 - the name says what is wrong
    """The bytes are not a readable wheel; the message says why."""


class _Told(NamedTuple):
    """The description of one file, in the directory or before the file."""

    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int


class Directory(NamedTuple):
    """The fields of an archive's end record.

    Attributes:
        files: Number of files.
        size: Size of the directory in bytes.
        offset: Offset of the directory.
    """

    files: int
    size: int
    offset: int


def find_directory(path: Path) -> tuple[Directory, list[str]]:
    """Read the end of an archive.

    Returns:
        The end record, and the reasons why another program may find another end.

    Raises:
        NotAWheel: There is no end record, or its directory is too large to read.
    """
    with path.open("rb") as file:
        length = file.seek(0, 2)
        file.seek(max(0, length - _END.size - 0xFFFF))
        tail = file.read()
    at = tail.rfind(b"PK\5\6", 0, len(tail) - _END.size + 4)
    if at < 0:
        raise NotAWheel("it has no directory at its end")
    _, disk, first, disk_entries, count, size, offset, comment = _END.unpack_from(tail, at)
    if size > MAX_DIRECTORY:
        raise NotAWheel(f"its directory is larger than {MAX_DIRECTORY} bytes")
    faults = []
    if at + _END.size != len(tail) or comment:
        faults.append("data follows its end")
    if disk or first or disk_entries != count:
        faults.append("it is one of several parts")
    if 0xFFFF in (disk_entries, count) or 0xFFFFFFFF in (size, offset) or b"PK\6\7" in tail[max(0, at - 20) : at]:
        faults.append("it uses ZIP64, which no wheel needs")
    elif offset + size != length - len(tail) + at:
        faults.append("its directory is not where its end record says")
    return Directory(count, size, offset), faults


def ambiguities(path: Path, directory: Directory) -> Iterator[str]:
    """Compare all descriptions of each file, and account for every byte before the directory."""
    with path.open("rb") as file:
        file.seek(directory.offset)
        data = file.read(directory.size)
        try:
            entries = sorted(_entries(data))
            if len(entries) != directory.files:
                yield f"its end record counts {directory.files} files, its directory {len(entries)}"
            position = 0
            for offset, entry in entries:
                label = entry.name.decode(errors="replace")
                if offset != position:
                    yield f"{label!r} {'overlaps another file' if offset < position else 'follows hidden bytes'}"
                file.seek(offset)
                position = offset + (yield from _local(file, entry, label))
            if position != directory.offset:
                yield "hidden bytes precede its directory"
        except (struct.error, ValueError) as error:
            yield f"its records contradict each other: {error}"


def _entries(data: bytes) -> Iterator[tuple[int, _Told]]:
    at = 0
    while at < len(data):
        mark, _, _, flags, method, _, _, crc, packed, size, name, extra, comment, _, _, _, offset = _ENTRY.unpack_from(
            data, at
        )
        if mark != b"PK\1\2":
            raise ValueError("the directory has an unknown record")
        at += _ENTRY.size
        entry = _Told(data[at : at + name], flags, method, crc, packed, size)
        _check_extra(data[at + name : at + name + extra])
        at += name + extra + comment
        yield offset, entry


def _local(file: BinaryIO, entry: _Told, label: str) -> Generator[str, None, int]:
    """Read the descriptions before and after a file; return the bytes that they and the file take."""
    head = file.read(_LOCAL.size)
    mark, _, flags, method, _, _, crc, packed, size, name, extra = _LOCAL.unpack(head)
    if mark != b"PK\3\4":
        raise ValueError(f"{label!r} is not where the directory says")
    local = _Told(file.read(name), flags, method, crc, packed, size)
    _check_extra(file.read(extra))
    behind = 0
    if flags & _DESCRIBED:
        file.seek(entry.packed, 1)
        descriptor = file.read(16)
        behind = 16 if descriptor.startswith(b"PK\7\x08") else 12
        crc, packed, size = struct.unpack("<3L", descriptor[behind - 12 : behind])
        local = local._replace(crc=crc, packed=packed, size=size)
        if method != _DEFLATED:
            yield f"{label!r} does not state where it ends"
    if local != entry:
        differs = ", ".join(key for key in entry._fields if getattr(local, key) != getattr(entry, key))
        yield f"{label!r} has a different {differs} before the file than in the directory"
    if not entry.name.isascii() and not entry.flags & _UTF8:
        yield f"{label!r} does not state the encoding of its name"
    return int(_LOCAL.size + name + extra + entry.packed + behind)


def _check_extra(data: bytes) -> None:
    while data:
        kind, size = struct.unpack_from("<2H", data)
        if kind in _EXTRA:
            raise ValueError(f"an extra field repeats the {_EXTRA[kind]}")
        if len(data) < 4 + size:
            raise ValueError("an extra field is incomplete")
        data = data[4 + size :]
