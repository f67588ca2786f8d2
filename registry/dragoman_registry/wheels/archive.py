"""A wheel as an archive: its members, read within bounds."""

from __future__ import annotations

import stat
import struct
import unicodedata
import zipfile
import zlib
from typing import TYPE_CHECKING

from .zip_structure import NotAWheel as NotAWheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 64 * 1024
MAX_TEXT = 1 << 20
"""Maximum bytes of METADATA, WHEEL and similar files."""


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
