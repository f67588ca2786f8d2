"""Wheels as files: their names, their members, and the environment they must fit."""

from __future__ import annotations

import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from .layout import NotAWheel as NotAWheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 64 * 1024
_PORTABLE = re.compile(r"[A-Za-z0-9_.+!-]{1,255}")
MAX_TEXT = 1 << 20
"""Bytes of METADATA, WHEEL and the like at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The environment a driver must fit.

    Attributes:
        api: Version of `dragoman-api`.
        python: Version of Python.
        tags: Accepted wheel tags, best first.
    """

    api: str
    python: str
    tags: tuple[str, ...]

    @classmethod
    def here(cls) -> Host:
        """Describe this process."""
        import platform
        from importlib.metadata import version

        from packaging.tags import sys_tags

        tags = tuple(str(tag) for tag in sys_tags())
        return cls(api=version("dragoman-api"), python=platform.python_version(), tags=tags)


@dataclass(frozen=True, slots=True)
class WheelName:
    """What a wheel's file name says, and whether it says it in the one canonical spelling."""

    project: str
    version: str
    tags: frozenset[str]
    canonical: bool


def parse_name(file: str) -> WheelName:
    """Take a wheel's file name apart.

    Raises:
        NotAWheel: It is no wheel's name.
    """
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        project, version, _, tags = parse_wheel_filename(file)
    except InvalidWheelFilename as error:
        raise NotAWheel(str(error)) from error
    canonical = file.startswith(f"{project.replace('-', '_')}-{version}-") and bool(_PORTABLE.fullmatch(file))
    return WheelName(str(project), str(version), frozenset(str(tag) for tag in tags), canonical)


def rank(file: str, tags: tuple[str, ...]) -> int | None:
    """Give how well a wheel fits, 0 for best, None if it does not."""
    mine = parse_name(file).tags
    return next((index for index, tag in enumerate(tags) if tag in mine), None)


def folded(path: str) -> str:
    """Give the form in which two names are one file on systems that fold case or compose characters."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


class Archive:
    """An open wheel, read within bounds.

    Attributes:
        entries: Everything in its directory.
        members: Its files, without folder entries.
        names: Of its entries, exactly as they are written.
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
            NotAWheel: It is damaged, encrypted, or packed in a way that cannot be bounded.
        """
        if info.flag_bits & 0x1:
            raise NotAWheel(f"{info.orig_filename} is encrypted")
        # What these two methods unpack to can be bounded while it is read.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotAWheel(f"{info.orig_filename} is packed with method {info.compress_type}")
        try:
            yield from self._unpacked(info)
        except (zlib.error, OSError, EOFError, ValueError, struct.error) as error:
            raise NotAWheel(f"{info.orig_filename}: {error}") from error

    def _unpacked(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """Unpack to the last byte: zipfile stops at the promised size and looks at nothing behind it."""
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
            raise NotAWheel("it does not end where its directory says")
        if size != info.file_size or crc != info.CRC:
            raise NotAWheel("its size or checksum differs from its directory's")

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
    """Tell whether an entry is a plain folder."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    return info.orig_filename.endswith("/") and kind in (0, stat.S_IFDIR)


def is_plain(info: zipfile.ZipInfo) -> bool:
    """Tell whether an entry is a plain file."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    return kind in (0, stat.S_IFREG) and not info.orig_filename.endswith("/")


def installed_path(name: str) -> str:
    """Give where a member comes to lie: the files of both library schemes lie at the top.

    >>> installed_path("demo-1.0.data/purelib/demo/x.py")
    'demo/x.py'
    """
    top, _, rest = name.partition("/")
    scheme, _, inner = rest.partition("/")
    return inner if top.endswith(".data") and scheme in ("purelib", "platlib") and inner else name


@cache
def provided() -> dict[str, str]:
    """Give the top-level modules that the host brings for every driver: name → distribution.

    These are `dragoman-api` and its dependencies, at whatever versions are here.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    owners = dict.fromkeys(("dragoman", "dragoman_api", "dragoman_registry", "dragoman_worker"), "dragoman")
    todo, seen = ["dragoman-api"], set[str]()
    while todo:
        project = todo.pop()
        if project in seen:
            continue
        seen.add(project)
        owners.setdefault(project.replace("-", "_"), project)
        try:
            found = distribution(project)
        except PackageNotFoundError:
            continue  # a dependency for another platform
        for file in found.files or ():
            top = file.parts[0]
            if top.endswith((".py", ".so", ".pyd")) or (len(file.parts) > 1 and top.isidentifier()):
                owners.setdefault(top.partition(".")[0], project)
        for text in found.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(str(canonicalize_name(requirement.name)))
    return owners
