"""A wheel as an archive: read within bounds, and refused if two programs could find different files in it.

A zip file describes its files three times: before each file, after it, and in a directory at the end. pip and this
host read the directory, uv reads from the beginning; no rule says which is right if they differ.
"""

from __future__ import annotations

import stat
import struct
import unicodedata
import zipfile
import zlib
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

CHUNK = 64 * 1024
MAX_TEXT = 1 << 20
"""Maximum bytes of METADATA, WHEEL and similar files."""
MAX_DIRECTORY = 16 << 20
"""Maximum bytes of the directory at the end, which is read as a whole."""

_END, _ENTRY, _LOCAL = struct.Struct("<4s4H2LH"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s5H3L2H")
_DESCRIBED, _UTF8 = 1 << 3, 1 << 11
_DEFLATED = 8
# ZIP64 repeats the sizes; Info-ZIP's Unicode path repeats the name.
_EXTRA = {0x0001: "sizes", 0x7075: "name"}


def folded(path: str) -> str:
    """Return the form in which names collide on systems that fold case or compose characters."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


class Archive:
    """An open wheel, read within bounds.

    Attributes:
        entries: All entries of its directory.
        members: Its files, without folder entries.
        names: Names of its entries, exactly as written.
    """

    def __init__(self, path: Path) -> None:
        """Open a wheel.

        Raises:
            NotAWheel: It is not a zip file, or its directory is damaged.
        """
        try:
            self._zip = zipfile.ZipFile(path)
            self._file = path.open("rb")
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise NotAWheel(str(error)) from error
        self.entries = self._zip.infolist()
        self.members = [info for info in self.entries if not is_folder(info)]
        self.names = [info.orig_filename for info in self.entries]

    def close(self) -> None:
        """Close the file."""
        self._zip.close()
        self._file.close()

    def chunks(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Unpack one member piece by piece.

        Raises:
            NotAWheel: It is damaged, encrypted, or uses a compression method whose output cannot be bounded.
        """
        if info.flag_bits & 0x1:
            raise NotAWheel(f"{info.orig_filename} is encrypted")
        # Only the output of these two methods can be bounded while reading.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotAWheel(f"{info.orig_filename} has the unsupported compression method {info.compress_type}")
        try:
            yield from self._unpacked(info)
        except (zlib.error, OSError, EOFError, ValueError, struct.error) as error:
            raise NotAWheel(f"{info.orig_filename}: {error}") from error

    def _unpacked(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Unpack to the last byte: zipfile stops at the declared size and ignores the rest."""
        self._file.seek(info.header_offset + 26)
        name, extra = struct.unpack("<2H", self._file.read(4))
        position, left = info.header_offset + 30 + name + extra, info.compress_size
        engine = zlib.decompressobj(-zlib.MAX_WBITS) if info.compress_type == zipfile.ZIP_DEFLATED else None
        crc, size, packed = 0, 0, b""
        while not (engine and engine.eof):
            if not packed:
                self._file.seek(position)
                packed = self._file.read(min(CHUNK, left))
                position, left = position + len(packed), left - len(packed)
            if engine is None:
                data, packed = packed, b""
            else:
                data = engine.decompress(packed, CHUNK)
                packed = engine.unconsumed_tail
            if not data and not packed:
                break
            crc, size = zlib.crc32(data, crc), size + len(data)
            yield data
        if (engine and not engine.eof) or left or (engine and engine.unused_data):
            raise NotAWheel("it does not end where the directory says")
        if size != info.file_size or crc != info.CRC:
            raise NotAWheel("its size or checksum differs from the directory's")

    def find(self, name: str) -> zipfile.ZipInfo | None:
        """Find a member by its exact name."""
        return next((info for info in self.members if info.orig_filename == name), None)

    def read(self, info: zipfile.ZipInfo, *, limit: int = MAX_TEXT) -> bytes:
        """Unpack one small member. Raises NotAWheel if it is larger than `limit`, or as `chunks`."""
        data = bytearray()
        for chunk in self.chunks(info):
            data += chunk
            if len(data) > limit:
                raise NotAWheel(f"{info.orig_filename} is larger than {limit} bytes")
        return bytes(data)


def is_folder(info: zipfile.ZipInfo) -> bool:
    """Check whether an entry is a plain folder."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    return info.orig_filename.endswith("/") and kind in (0, stat.S_IFDIR)


def is_plain(info: zipfile.ZipInfo) -> bool:
    """Check whether an entry is a plain file."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    return kind in (0, stat.S_IFREG) and not info.orig_filename.endswith("/")


def installed_path(name: str) -> str:
    """Return a member's path after installation: files of both library schemes go to the top.

    >>> installed_path("demo-1.0.data/purelib/demo/x.py")
    'demo/x.py'
    """
    top, _, rest = name.partition("/")
    scheme, _, inner = rest.partition("/")
    return inner if top.endswith(".data") and scheme in ("purelib", "platlib") and inner else name


class NotAWheel(ValueError):  # noqa: N818 - the name says what is wrong
    """The bytes are not a readable wheel; the message says why."""


class _Description(NamedTuple):
    """The description of one file, in the directory or before the file."""

    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int


class Directory(NamedTuple):
    """The fields of an archive's end record."""

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


def _entries(data: bytes) -> Iterator[tuple[int, _Description]]:
    at = 0
    while at < len(data):
        mark, _, _, flags, method, _, _, crc, packed, size, name, extra, comment, _, _, _, offset = _ENTRY.unpack_from(
            data, at
        )
        if mark != b"PK\1\2":
            raise ValueError("the directory has an unknown record")
        at += _ENTRY.size
        entry = _Description(data[at : at + name], flags, method, crc, packed, size)
        _check_extra(data[at + name : at + name + extra])
        at += name + extra + comment
        yield offset, entry


def _local(file: BinaryIO, entry: _Description, label: str) -> Generator[str, None, int]:
    """Read the descriptions before and after a file; return the bytes that they and the file take."""
    head = file.read(_LOCAL.size)
    mark, _, flags, method, _, _, crc, packed, size, name, extra = _LOCAL.unpack(head)
    if mark != b"PK\3\4":
        raise ValueError(f"{label!r} is not where the directory says")
    local = _Description(file.read(name), flags, method, crc, packed, size)
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
