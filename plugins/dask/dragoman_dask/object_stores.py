"""Object stores and file servers that fsspec knows, such as S3. A file appears there only when it is complete."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.from_thread

from dragoman.extending import is_url
from dragoman_api.errors import ConfigurationError, DragomanError, ExportError
from dragoman_api.installation import packages_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BROKEN = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)  # what is left of a URL's beginning in a path
_DRIVE = re.compile(r"/[a-z]:/", re.IGNORECASE)
_QUERY = re.compile(r"(\w://[^\s?\"']*)\?[^\s\"']*")  # it may be a signature
_READ = 4_000
"""Maximum characters of an error's text that are read: an object store can answer with any number."""
_USER = re.compile(r"://[^/\s@]*@")

_OBJECTS = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "memory"})
"""Protocols of object stores without folders, where one request writes a whole object."""

_FOLDERS = ("file", "local")

PIECE = 8 << 20
"""The number of bytes that are read from a file and sent at a time."""

_HINT = (
    "check the address, that the object store is there, and that you can write to it; "
    "credentials come from the environment and the configuration of the backend"
)


def parse_target(to: Path | str) -> Path | ObjectStore:
    """Return the path or the object store that a target names.

    Raises:
        ConfigurationError: It is a URL that holds a password or options, or the package for it is missing.
    """
    if isinstance(to, Path):
        if to.parts and _BROKEN.fullmatch(to.parts[0]):
            hint = "pass the URL as text: a path keeps only one of its slashes"
            raise ConfigurationError(f"{to} is no path, but what is left of a URL", hint=hint)
        return to
    if not is_url(to):
        return Path(to)
    protocol, rest = to.split("://", 1)
    protocol, _, chain = protocol.lower().partition("::")
    chained = chain or "::" in rest
    if "@" in (user := rest.partition("/")[0]) and ":" in user.rpartition("@")[0]:
        hint = "omit it: each backend of fsspec reads credentials from the environment and its own configuration"
        raise ConfigurationError(f"the URL of a {protocol}:// target holds a password", hint=hint)
    if "?" in rest or chained or not rest.strip("/"):
        hint = f"name a place in the object store: {protocol}://BUCKET/FOLDER/"
        raise ConfigurationError(
            f"a {protocol}:// target is one place, without options or further addresses", hint=hint
        )
    if protocol in _FOLDERS:
        return Path(rest.removeprefix("/") if _DRIVE.match(rest) else rest)
    return ObjectStore(protocol, rest.rstrip("/"))


class ObjectStore:
    """One folder or prefix in an object store. Every method blocks on the network.

    Attributes:
        protocol: The protocol of the URL, such as ``s3``.
        url: The URL of the folder.
    """

    def __init__(self, protocol: str, path: str) -> None:
        """Load the backend of fsspec for the protocol.

        Raises:
            ConfigurationError: The protocol is unknown, or its backend is not installed.
        """
        self.protocol, self.url = protocol, f"{protocol}://{path}"
        from fsspec.core import url_to_fs

        try:
            self._files, self._root = url_to_fs(self.url)
        except ImportError as error:
            package = error.__cause__.name if isinstance(error.__cause__, ImportError) else None
            raise _missing(protocol, package or protocol) from error
        except ValueError as error:
            hint = "use a folder, s3://, gs://, or another protocol of fsspec"
            raise ConfigurationError(
                f"no object store is known by {protocol}://: {_shown(error)}", hint=hint
            ) from error
        except Exception as error:
            raise ConfigurationError(f"{self.url} cannot be reached: {_shown(error)}", hint=_HINT) from error

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Convert every error of the block to ExportError: backends have error classes of their own."""
        try:
            yield
        except (DragomanError, FileExistsError, FileNotFoundError):
            raise
        except Exception as error:
            raise ExportError(f"{self.url} cannot be read or written: {_shown(error)}", hint=_HINT) from error

    def split(self) -> tuple[ObjectStore, str]:
        """Return the folder that holds this place, and the name of the place in it.

        Raises:
            ConfigurationError: The place is a whole bucket.
        """
        parent, _, name = self.url.partition("://")[2].rpartition("/")
        if not parent:
            raise ConfigurationError(f"{self.url} names no file", hint=f"name one: {self.url}/FILE")
        return ObjectStore(self.protocol, parent), name

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}" if name else self._root

    def names(self) -> list[str]:
        """Return the sorted names of the files and folders here; none if there are none.

        Raises:
            ExportError: The place cannot be listed, or is a single file.
        """
        root = self._root.strip("/")
        names = set()
        with self.guarding():
            self._files.invalidate_cache()
            try:
                entries = self._files.ls(self._root, detail=True)
            except FileNotFoundError:
                return []
        for entry in entries:
            path = str(entry["name"]).strip("/")
            if path != root:
                names.add(path.rpartition("/")[2])
            elif entry.get("type") == "file" and not str(entry["name"]).endswith("/") and len(entries) == 1:
                raise ExportError(f"{self.url} is a file", hint="name a folder for an export in parts")
        return sorted(names)

    def read(self, name: str, *, limit: int) -> bytes:
        """Return the bytes of a file.

        Raises:
            FileNotFoundError: There is no such file.
            ExportError: The file cannot be read, or is longer than `limit` bytes.
        """
        data = self._start(name, limit + 1)
        if len(data) > limit:
            raise ExportError(f"{self.url}/{name} has more than {limit:,} bytes", hint="choose another folder")
        return data

    def _start(self, name: str, limit: int) -> bytes:
        with self.guarding():
            data: bytes = self._files.cat_file(self._path(name), start=0, end=limit)
            return data

    def read_pieces(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a file, piece by piece. Raises FileNotFoundError or ExportError."""
        with self.guarding(), self._files.open(self._path(name), "rb", block_size=PIECE) as file:
            while piece := file.read(PIECE):
                stop_if_cancelled()
                yield piece

    def size(self, name: str) -> int:
        """Return the size of a file in bytes; -1 if there is none."""
        try:
            with self.guarding():
                self._files.invalidate_cache()
                return int(self._files.info(self._path(name))["size"])
        except FileNotFoundError:
            return -1

    def mark(self, name: str) -> str:
        """Return a mark that changes when a file is written again, without reading it; empty where there is none."""
        try:
            with self.guarding():
                self._files.invalidate_cache()
                return str(self._files.checksum(self._path(name)))
        except (FileNotFoundError, ExportError):
            return ""

    def write(self, name: str, data: bytes) -> None:
        """Replace a small file. Raises ExportError."""
        with self._making_folder():
            self._files.pipe_file(self._path(name), data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a small file, which must not exist yet.

        Returns:
            Whether the object store refuses to replace a file. Where it does not, two processes may both succeed.

        Raises:
            FileExistsError: The file exists.
            ExportError: The file cannot be written.
        """
        path = self._path(name)
        for attempt in range(2):  # the second has to be refused
            try:
                with self._making_folder():
                    self._files.pipe_file(path, data, mode="create")
            except (FileExistsError, ExportError) as error:
                if isinstance(error.__cause__, TypeError):  # a backend without this mode
                    if not attempt and self.size(name) >= 0:
                        raise FileExistsError(path) from None
                    self.write(name, data)
                    continue
                # A backend repeats a request whose answer was lost, and some have other errors for "it is there".
                with suppress(FileNotFoundError):
                    if self._start(name, len(data) + 1) != data:
                        raise FileExistsError(path) from None
                    return True
                raise
        return False

    @contextmanager
    def _making_folder(self) -> Iterator[None]:
        """Convert errors of writing to ExportError; where there are folders, make the folder first."""
        with self.guarding():
            if self.protocol not in _OBJECTS:
                self._files.makedirs(self._root, exist_ok=True)
            try:
                yield
            except FileNotFoundError as error:
                raise ExportError(f"{self.url} cannot be written: {_shown(error)}", hint=_HINT) from error

    def put(self, file: Path, name: str, *, confirm: Callable[[], object] = lambda: None) -> None:
        """Upload a file, which appears only when it is complete; a failed or cancelled upload leaves nothing.

        Args:
            file: The path of the local file.
            name: The file's name in the object store.
            confirm: Called before the file appears; an error that it raises prevents that.

        Raises:
            ExportError: The file cannot be read, or not written in the object store.
        """
        path = self._path(name)
        with file.open("rb") as source, self._making_folder():
            if self.protocol in _OBJECTS and (self.protocol == "memory" or file.stat().st_size <= PIECE):
                confirm()
                self._files.pipe_file(path, source.read())
                return
            upload = self._files.open(path, "wb", block_size=PIECE, autocommit=False)
            try:
                while piece := source.read(PIECE):
                    stop_if_cancelled()
                    upload.write(piece)
                upload.close()
                confirm()
                upload.commit()
            except BaseException:
                with suppress(Exception):
                    upload.discard()
                with suppress(AttributeError):  # some backends compute it, and complete nothing
                    upload.closed = True  # or it would be completed when it is collected
                raise

    def remove(self, name: str) -> None:
        """Remove a file if it exists. Raises ExportError."""
        with self.guarding(), suppress(FileNotFoundError):
            self._files.rm_file(self._path(name))

    def abort_uploads(self, names: set[str]) -> None:
        """End the unfinished uploads of these files that a killed process left, if the object store can list them."""
        listed = getattr(self._files, "list_multipart_uploads", None)
        if listed is None:
            return
        with suppress(Exception):  # not every account may list them; the object store removes them by its own rules
            bucket, _, _ = self._files.split_path(self._root)
            keys = {self._files.split_path(self._path(name))[1] for name in names}
            for upload in listed(bucket):
                if upload["Key"] in keys:
                    self._files.abort_mpu(bucket, upload["Key"], upload["UploadId"])


def _missing(protocol: str, package: str) -> ConfigurationError:
    requirement = "dragoman-dask[s3]" if protocol in ("s3", "s3a") else package
    return packages_missing(f"{protocol}:// needs the package {package}", requirement)


def _shown(error: BaseException) -> str:
    """Return an error's text without the parts of URLs that could be credentials."""
    text = str(error)
    if len(text) > _READ:  # the words at its end may be cut: their beginning could be a credential
        text = text[:_READ].rpartition(" ")[0]
    text = " ".join(text.split()) or type(error).__name__
    return _USER.sub("://…@", _QUERY.sub(r"\1?…", text))[:500]


def stop_if_cancelled() -> None:
    """Raise the cancellation of the task that waits for this thread, if it is cancelled."""
    with suppress(RuntimeError):  # in a thread that no task waits for
        anyio.from_thread.check_cancelled()
