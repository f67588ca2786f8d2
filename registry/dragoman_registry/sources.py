"""Reads a registry's files from a folder or a static web server, through one small interface."""

from __future__ import annotations

import shlex
import stat
import struct
import zlib
from contextlib import closing
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from weakref import finalize

from dragoman_api.errors import IndexInvalidError, RegistryError
from dragoman_registry.files import NotPlainError, open_plain
from dragoman_registry.names import plain_name

if TYPE_CHECKING:
    from collections.abc import Generator
    from urllib.parse import SplitResult
    from zipfile import ZipFile, ZipInfo

STALL = 10.0
"""Maximum seconds of silence from a web server."""
DEADLINE = 300.0
"""Maximum seconds for one file, from the lookup of the server's name to the last byte."""

_WEB = ("http", "https")
CHUNK = 256 * 1024
MAX_ENTRIES = 2_000_000
"""Maximum members of a bundle: room for 100,000 drivers."""
_DAMAGE = (zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError)


class Source(Protocol):
    """A location with the files of a registry."""

    def chunks(self, path: str) -> Generator[bytes]:
        """Read the file at `path`, relative to the registry's root, piece by piece.

        Raises:
            IndexInvalidError: There is no such file.
            RegistryError: The location cannot be reached (code ``registry-unreachable``).
        """
        ...


def on_the_web(location: str) -> bool:
    """Check whether a location is on a web server, in any spelling of its address."""
    parts = _parts(location)
    return parts is not None and parts.scheme in _WEB


def _parts(location: str) -> SplitResult | None:
    """Split a location, an address or a path, into its parts; a path has an empty scheme. None for any other text."""
    from urllib.parse import urlsplit

    try:
        parts, _ = urlsplit(location), urlsplit(location).port
    except ValueError:
        return None
    return None if "\0" in location or (len(parts.scheme) > 1 and parts.scheme not in (*_WEB, "file")) else parts


def open_source(location: str) -> Source:
    """Choose the source for a path, a ``file:`` URL or an ``http(s):`` URL; reads fail for any other text."""
    parts = _parts(location)
    if parts is None:
        return NoSource(repr(location))
    if parts.scheme in _WEB:
        if "@" in parts.netloc or parts.query or parts.fragment:
            # These parts may be secret, and every message would repeat them.
            return NoSource(f"an address at {parts.hostname} with a user, a password, a query or a fragment")
        return WebSource(location)
    if parts.scheme == "file":
        from urllib.request import url2pathname

        return _local(Path(url2pathname(parts.path)))
    return _local(Path(location).expanduser())


def _local(path: Path) -> Source:
    return BundleSource(path) if path.suffix == ".zip" else FolderSource(path)


def read(source: Source, path: str, *, limit: int) -> bytes:
    """Read a whole file of at most `limit` bytes."""
    data = bytearray()
    with closing(iter_chunks(source, path)) as chunks:
        for chunk in chunks:
            data += chunk
            if len(data) > limit:
                raise IndexInvalidError(f"{path} is larger than {limit} bytes", details={"path": path})
    return bytes(data)


def iter_chunks(source: Source, path: str) -> Generator[bytes]:
    """Read a file piece by piece; refuse a path that leaves the registry."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or ":" in path:
        raise IndexInvalidError(f"{path!r} is outside the registry", details={"path": path})
    return source.chunks(path)


def _unreadable(path: Path, reason: object) -> RegistryError:
    text, hint = f"{path} cannot be read: {reason}", "dragoman registry list"
    return RegistryError(text, code="registry-unreachable", hint=hint, details={"url": str(path)})


def is_missing(error: RegistryError) -> bool:
    """Return whether a file is missing, or may be: object stores that hide their lists answer 403 for it."""
    return isinstance(error, IndexInvalidError) or error.details.get("status") == 403


class NoSource:
    """An invalid location of a registry."""

    def __init__(self, location: str) -> None:
        self.shown = location

    def chunks(self, path: str) -> Generator[bytes]:
        """Raise RegistryError for every path."""
        raise RegistryError(
            f"{self.shown} cannot be the location of a registry",
            code="registry-unreachable",
            hint="use a folder, file:///FOLDER or https://HOST:PORT/PATH; your own proxy can add credentials",
        )


class FolderSource:
    """A registry on a disk or a stick."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def chunks(self, path: str) -> Generator[bytes]:
        """Read a file of the folder."""
        full = self.root / path
        try:
            if not self.root.is_dir():
                raise _unreadable(self.root, "there is no such folder")
            with open_plain(full) as file:
                while chunk := file.read(CHUNK):
                    yield chunk
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise self._invalid(path, "is missing from the registry") from error
        except NotPlainError as error:
            raise self._invalid(path, "is not a regular file") from error
        except OSError as error:
            raise _unreadable(full, error.strerror or error) from error

    def _invalid(self, path: str, reason: str) -> IndexInvalidError:
        hint = f"dragoman registry verify {shlex.quote(str(self.root))}"
        return IndexInvalidError(f"{self.root / path} {reason}", hint=hint, details={"path": path})


class WebSource:
    """A registry on a static web server."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")

    def chunks(self, path: str) -> Generator[bytes]:
        """Read a file with one GET request, unless something other than the file came."""
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.parse import quote

        from .http_requests import get, judge, judge_beginning, of_status, unreachable

        url = f"{self.root}/{quote(path)}"
        try:
            with get(url, silence=STALL, seconds=DEADLINE) as response:
                judge(url, response.status, response.headers)
                received, length = 0, response.headers["Content-Length"]
                while chunk := response.read1(CHUNK):
                    if not received:
                        judge_beginning(url, path, chunk, response.headers)
                    received += len(chunk)
                    yield chunk
                if length and received != int(length):
                    raise unreachable(url, f"the answer ended after {received} of {length} bytes")
        except HTTPError as error:
            with closing(error):
                raise of_status(url, path, error) from error
        except URLError as error:
            raise unreachable(url, error.reason) from error
        except (OSError, HTTPException, ValueError) as error:
            raise unreachable(url, str(error) or type(error).__name__) from error


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
            raise _unreadable(self.file, error.strerror or error) from error

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
