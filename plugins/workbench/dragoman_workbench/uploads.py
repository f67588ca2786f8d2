"""Files that the browser sends to be imported: in a private folder, bounded, and gone when nobody needs them."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

MAX_BYTES = 4_000_000_000
"""Maximum size of a file, in bytes."""

MAX_UPLOADS = 8
"""Files that are kept; a further one replaces the oldest that no import needs."""

SPARE_BYTES = 256 << 20
"""Bytes of the disk that stay free."""

HELD: set[Path] = set()
"""The files and folders with its number that this process needs."""

_ENDING = re.compile(r"(?:\.[A-Za-z0-9]{1,10}){0,2}\Z")


class ReceivedFile:
    """A file that was received.

    Attributes:
        name: The name that it has for a person.
        path: Where it lies; its name has the same ending.
        needed: An import reads it, or can go on reading it.
        whole: All of it has arrived.
        spent: It was imported, and only what the import wrote is left.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        ending = _ENDING.search(name)
        self.path = folder / f"rows{ending[0] if ending else ''}"
        self.needed = False
        self.whole = self.spent = False

    @property
    def undo(self) -> Path:
        """The file of changes that take an import back."""
        return self.folder / "undo.ndjson"

    def spend(self) -> None:
        """Delete the file, which was imported; what the import wrote stays."""
        self.path.unlink(missing_ok=True)
        self.spent = True

    def clear(self) -> None:
        """Delete what an import wrote beside the file."""
        for path in self.folder.iterdir():
            if path != self.path:
                path.unlink(missing_ok=True)


class ReceivedFiles:
    """The files that were received."""

    def __init__(self, folder: Path) -> None:
        """Begin without files; the folders of workbenches that have ended are deleted.

        Args:
            folder: The private folder of the workbenches of this user.
        """
        remove_ended(folder, "uploads-*")
        self._folder = folder / f"uploads-{os.getpid()}"
        HELD.add(self._folder)
        self._files: dict[str, ReceivedFile] = {}

    def find(self, number: str) -> ReceivedFile:
        """Return a file. Raises ConfigurationError if it is gone."""
        upload = self._files.get(number)
        if upload is None or not upload.whole:
            raise ConfigurationError("this file is gone", hint="choose it again", code="not-found")
        return upload

    async def receive(self, name: str, size: int, chunks: AsyncIterator[bytes]) -> str:
        """Keep a file, and return what stands for it.

        Args:
            name: Its name, which decides nothing but its format.
            size: Its size in bytes.
            chunks: Its bytes.

        Raises:
            ConfigurationError: It is too large (code ``upload-too-large``), the disk is full, or it ended early.
        """
        if size > MAX_BYTES:
            raise ConfigurationError(
                f"the file has {size:,} bytes, and the page takes {MAX_BYTES:,} at most",
                hint="import it on the command line: dragoman import",
                code="upload-too-large",
            )
        await run_sync(self._make_room, size)
        number = secrets.token_urlsafe(16)
        upload = ReceivedFile(name, self._folder / number)
        self._files[number] = upload
        try:
            await run_sync(upload.folder.mkdir, 0o700)
            await self._write(upload.path, size, chunks)
            upload.whole = True
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "the disk is full" if full else error.strerror or str(error)
            raise ConfigurationError(
                f"the file was not kept: {reason}", hint="free some space" if full else ""
            ) from error
        finally:
            if not upload.whole:
                with anyio.CancelScope(shield=True):
                    await self.discard(number)
        return number

    async def reserve(self, name: str) -> str:
        """Make a place for what an import writes whose rows come from no file, and return what stands for it."""
        number = secrets.token_urlsafe(16)
        place = ReceivedFile(name, self._folder / number)
        self._files[number] = place
        await run_sync(lambda: place.folder.mkdir(0o700, parents=True))
        place.path = place.folder / "rows"
        place.whole = place.spent = True
        return number

    async def _write(self, path: Path, size: int, chunks: AsyncIterator[bytes]) -> None:
        left = size
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    break
                await run_sync(file.write, chunk)
        if left:
            raise ConfigurationError("the file did not arrive as it was announced", hint="choose it again")

    def _make_room(self, size: int) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        while len(unspent := [number for number, upload in self._files.items() if not upload.spent]) >= MAX_UPLOADS:
            idle = next(
                (number for number in unspent if self._files[number].whole and not self._files[number].needed), ""
            )
            if not idle:
                text = f"{MAX_UPLOADS} files are being imported"
                raise ConfigurationError(text, hint="wait for one, or cancel it", code="too-many")
            self._delete(idle)
        if (free := shutil.disk_usage(self._folder).free - SPARE_BYTES) < size:
            text = f"the file has {size:,} bytes, and the disk of {self._folder} has room for {max(0, free):,}"
            raise ConfigurationError(text, hint="free some space, or import it on the command line", code="disk-full")

    async def discard(self, number: str) -> None:
        """Delete a file and what its import wrote; nothing happens if it is gone."""
        await run_sync(self._delete, number)

    def _delete(self, number: str) -> None:
        if (upload := self._files.pop(number, None)) is not None:
            shutil.rmtree(upload.folder, ignore_errors=True)

    def remove(self) -> None:
        """Delete all files."""
        self._files.clear()
        HELD.discard(self._folder)
        with suppress(OSError):
            shutil.rmtree(self._folder, ignore_errors=True)


def remove_ended(folder: Path, pattern: str) -> None:
    """Delete the files and folders of a pattern whose names end with the number of a process that has ended.

    Raises:
        OSError: One cannot be deleted.
    """
    for path in folder.glob(pattern):
        if is_left(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def is_left(path: Path) -> bool:
    """Whether a file, whose name ends with the number of the process that made it, was left by one that has ended.

    A process may have the number of one before it, always so in a container; it holds only what it says it holds.
    """
    process = path.stem.rpartition("-")[2]
    return path not in HELD and (process == str(os.getpid()) or not _runs(process))


def _runs(process: str) -> bool:
    """Return whether a process runs, judged by its number; True if in doubt."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except OSError:
        return True
    return True
