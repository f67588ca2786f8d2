"""Reading a registry's files: one small seam, over a folder or over a static web server."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from dragoman_api.errors import ConfigurationError, IndexInvalidError, RegistryError

if TYPE_CHECKING:
    from collections.abc import Generator
    from http.client import HTTPMessage
    from typing import IO
    from urllib.request import Request

CHUNK = 256 * 1024
STALL = 10.0
"""Seconds a web server may be silent."""
DEADLINE = 300.0
"""Seconds one file may take."""


class Source(Protocol):
    """A place with the files of a registry."""

    def chunks(self, path: str) -> Generator[bytes]:
        """Read the file at `path`, relative to the registry's root, piece by piece.

        Raises:
            IndexInvalidError: There is no such file.
            RegistryError: The place cannot be reached (code ``registry-unreachable``).
        """
        ...


def open_source(location: str) -> Source:
    """Choose the source for a path, a ``file:`` URL or an ``http(s):`` URL."""
    from urllib.parse import urlsplit

    parts = urlsplit(location)
    if parts.scheme in ("http", "https"):
        return WebSource(location)
    if parts.scheme == "file":
        from urllib.request import url2pathname

        return _local(Path(url2pathname(parts.path)))
    if len(parts.scheme) > 1:
        raise ConfigurationError(
            f"{location!r} is no place for a registry",
            hint="give a folder, or a URL that begins with file:, http: or https:",
        )
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
    """Read a file piece by piece; a path that leaves the registry is refused."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or ":" in path:
        raise IndexInvalidError(f"{path!r} would leave the registry", details={"path": path})
    return source.chunks(path)


def _unreachable(url: str, reason: object) -> RegistryError:
    return RegistryError(
        f"{url} cannot be read: {reason}",
        code="registry-unreachable",
        hint="dragoman registry list",
        details={"url": url},
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
                raise _unreachable(str(self.root), "there is no such folder")
            with full.open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            hint = f"dragoman registry verify {self.root}"
            message = f"{full} is missing from the registry"
            raise IndexInvalidError(message, hint=hint, details={"path": path}) from error
        except OSError as error:
            raise _unreachable(str(full), error.strerror or error) from error


class BundleSource:
    """A registry in one file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def chunks(self, path: str) -> Generator[bytes]:
        """Read a member of the archive."""
        import zlib
        from zipfile import BadZipFile, ZipFile

        try:
            with ZipFile(self.file) as archive, archive.open(path) as member:
                while chunk := member.read(CHUNK):
                    yield chunk
        except KeyError as error:
            raise IndexInvalidError(f"{path} is missing from {self.file}", details={"path": path}) from error
        except (OSError, BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise _unreachable(str(self.file), getattr(error, "strerror", None) or error) from error


class WebSource:
    """A registry behind a static web server."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")

    def chunks(self, path: str) -> Generator[bytes]:
        """Read a file with one GET request."""
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.parse import quote
        from urllib.request import build_opener

        url = f"{self.root}/{quote(path)}"
        end = time.monotonic() + DEADLINE
        try:
            with build_opener(_same_origin()).open(url, timeout=STALL) as response:
                received, length = 0, response.headers["Content-Length"]
                while chunk := response.read1(CHUNK):
                    if time.monotonic() > end:
                        raise _unreachable(url, f"not complete after {DEADLINE:.0f} s")
                    received += len(chunk)
                    yield chunk
                if length and received != int(length):
                    raise _unreachable(url, f"the answer ended after {received} of {length} bytes")
        except HTTPError as error:
            with error:
                if error.code in (404, 410):
                    message = f"{url} is missing from the registry (HTTP {error.code})"
                    raise IndexInvalidError(message, details={"path": path}) from error
                raise _unreachable(url, f"HTTP {error.code} {error.reason}") from error
        except URLError as error:
            raise _unreachable(url, error.reason) from error
        except (OSError, HTTPException, ValueError) as error:
            raise _unreachable(url, str(error) or type(error).__name__) from error


def _same_origin() -> type:
    """Build a handler that follows redirects within one host and never from HTTPS to HTTP."""
    from urllib.error import HTTPError
    from urllib.parse import urlsplit
    from urllib.request import HTTPRedirectHandler

    class SameOrigin(HTTPRedirectHandler):
        def redirect_request(  # noqa: PLR0913, RUF100 - the signature of the standard library
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
        ) -> Request | None:
            here, there = urlsplit(req.full_url), urlsplit(newurl)
            # Only configured registries are ever asked, so another host is an error and not a detour.
            if there.hostname != here.hostname or (here.scheme == "https") > (there.scheme == "https"):
                raise HTTPError(req.full_url, code, f"redirects to {newurl}, which is not allowed", headers, fp)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    return SameOrigin
