"""A registry in one file: read member by member without unpacking, and refused if it is ambiguous."""

from __future__ import annotations

import stat
import struct
import zlib
from threading import Lock
from typing import TYPE_CHECKING
from weakref import finalize

from dragoman_api.errors import IndexInvalidError, RegistryError
from dragoman_registry.files import NotPlainError, open_plain
from dragoman_registry.names import plain_name

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path
    from zipfile import ZipFile, ZipInfo

CHUNK = 256 * 1024
MAX_ENTRIES = 2_000_000
"""Maximum members of a bundle: room for 100,000 drivers."""
_DAMAGE = (zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError)


class BundleSource:
    """A registry in one file."""

    def __init__(self, file: Path) -> None:
        """Set the file; the first read opens it and reads its directory."""
        self.file = file
        self._archive: ZipFile | None = None
        self._turn = Lock()

    def chunks(self, path: str) -> Generator[bytes]:
        """Read a member of the archive, which holds each file once, under its plain name.

        Raises:
            IndexInvalidError: There is no such member.
            RegistryError: The file cannot be read (code ``registry-unreachable``), or it is incomplete or ambiguous
                (code ``bundle-damaged``).
        """
        from zipfile import BadZipFile

        try:
            with self._open().open(plain_name(path)) as member:
                while chunk := member.read(CHUNK):
                    yield chunk
        except KeyError as error:
            raise IndexInvalidError(f"{path} is missing from {self.file}", details={"path": path}) from error
        except (BadZipFile, NotPlainError, *_DAMAGE) as error:
            raise self._damaged(getattr(error, "strerror", None) or error) from error
        except OSError as error:
            text = f"{self.file} cannot be read: {error.strerror or error}"
            hint, details = "dragoman registry list", {"url": str(self.file)}
            raise RegistryError(text, code="registry-unreachable", hint=hint, details=details) from error

    def _open(self) -> ZipFile:
        from zipfile import ZipFile

        with self._turn:
            if self._archive is None:
                file = open_plain(self.file)
                finalize(self, file.close)
                archive = ZipFile(file)
                self._check(archive.infolist())
                self._archive = archive
            return self._archive

    def _check(self, members: list[ZipInfo]) -> None:
        """Raise RegistryError for members that are ambiguous or too large."""
        from zipfile import ZIP_DEFLATED, ZIP_STORED

        if len(members) > MAX_ENTRIES:
            raise self._damaged(f"it has {len(members)} members; {MAX_ENTRIES} are allowed")
        seen = set[str]()
        for info in members:
            name = info.orig_filename
            parts = name.removesuffix("/").split("/")
            if {"", ".", ".."}.intersection(parts) or any(character in name for character in "\\:\0"):
                raise self._damaged(f"{name[:200]!r} is not a path in a registry")
            if name in seen:
                raise self._damaged(f"it has {name[:200]!r} twice")
            if (kind := stat.S_IFMT(info.external_attr >> 16)) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise self._damaged(f"{name[:200]!r} is not a regular file (its mode is {kind:o})")
            # With other methods zipfile unpacks a whole chunk, however few bytes are requested.
            if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise self._damaged(f"{name[:200]!r} has the unsupported compression method {info.compress_type}")
            seen.add(name)

    def _damaged(self, reason: object) -> RegistryError:
        text = f"{self.file} is not a complete bundle: {reason}"
        hint = "copy it again, or make it again: dragoman registry mirror SOURCE --bundle FILE.zip"
        return RegistryError(text, code="bundle-damaged", hint=hint, details={"path": str(self.file)})
