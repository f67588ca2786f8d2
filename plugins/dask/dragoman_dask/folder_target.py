"""The folder of an export in parts. A lock of the operating system, which ends with the process, claims it."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman.extending import files, unwritable
from dragoman_api.errors import ExportError

from .target import DONE, MANIFEST, MOST, OWN, PLAN, PROBE, PartsTarget

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from dragoman.extending import PartResult, Split

    from .target import PartsResult

_LOCK = f"{OWN}lock"
_CLAIM = 32  # characters of a claim


class FolderTarget(PartsTarget):
    """A folder that every process of the export reaches by the same path.

    Attributes:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = self.address = str(path)
        self._lock: int | None = None
        self._made = False

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Convert errors of the file system to ExportError."""
        try:
            yield
        except OSError as error:
            raise unwritable(str(self.path), error) from error

    def _take(self, *, resume: bool) -> None:
        with self.guarding():
            self.address = str(self.path.absolute())
            if self.path.exists() and not self.path.is_dir():
                raise ExportError(f"{self.path} is not a folder", hint="name a folder for an export in parts")
            self._made = not self.path.exists()
            if resume and self._made:
                raise self.nothing()
            self.path.mkdir(parents=True, exist_ok=True)
            lock = files.try_lock(self.path / _LOCK)
        if lock is None:
            hint = "wait for it, or choose another folder"
            raise ExportError(f"another export is writing {self.path}", hint=hint, code="export-running")
        self._lock, self.claim = lock, secrets.token_hex(16)
        with self.guarding():
            os.ftruncate(lock, 0)
            os.write(lock, self.claim.encode())
            os.fsync(lock)  # a worker may be another machine
            files.sweep_drafts(self.path / PLAN, self.path / MANIFEST)  # of a run that was killed

    def _others(self) -> list[str]:
        with self.guarding():
            return sorted(path.name for path in self.path.iterdir() if path.name != _LOCK)

    def _read_plan(self) -> bytes:
        # One that another user wrote could ask for other rows.
        return files.read_plain(self.path / PLAN, limit=MOST, own=True)

    def begin(self, split: Split) -> None:
        """Record a new export."""
        with self.guarding():
            files.write(self.path / PLAN, msgspec.json.encode(split), mode=0o600)

    def file(self, name: str) -> Path:
        """Return the path of a part."""
        return self.path / name

    def size(self, name: str) -> int:
        """Return the size of a part in bytes, as this process sees it; -1 if it is not there."""
        try:
            return (self.path / name).stat().st_size
        except OSError:
            return -1

    def done(self, split: Split) -> dict[int, PartResult]:
        """Return the parts of an unfinished export that are complete, by number; a file that was changed is not."""
        parts: dict[int, PartResult] = {}
        with suppress(FileNotFoundError):
            lines = files.read_plain(self.path / DONE, limit=MOST).splitlines()
            for number, part in self.known(split, lines).items():
                with suppress(OSError), files.open_plain(self.path / part.file) as file:  # it may be gone
                    if hashlib.file_digest(file, "sha256").hexdigest() == part.sha256:
                        parts[number] = part
        return parts

    def record(self, part: PartResult) -> None:
        """Record a complete part."""
        with self.guarding(), _to_append(self.path / DONE) as file:
            file.write(b"\n" + msgspec.json.encode(part))
            file.flush()
            os.fsync(file.fileno())

    def finish(self, result: PartsResult) -> None:
        """Write the manifest, then remove what was needed to continue."""
        with self.guarding():
            files.sync(self.path)
            files.write(self.path / MANIFEST, msgspec.json.format(msgspec.json.encode(result)) + b"\n")
            self._tidy()

    def _tidy(self) -> None:
        for path in (self.path / DONE, self.path / PLAN, *self.path.glob(f"{PROBE}*")):
            path.unlink(missing_ok=True)

    def digest(self) -> str:
        """Return the SHA-256 digest of the manifest, in hexadecimal."""
        with self.guarding(), (self.path / MANIFEST).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def discard(self, split: Split) -> None:
        """Remove the parts and all else of an export that cannot be continued."""
        with self.guarding():
            for number in range(len(split.shares)):
                final = self.path / split.file(number)
                for path in (final, *(final.with_name(f".{final.name}.{kind}") for kind in ("part", "made"))):
                    path.unlink(missing_ok=True)
            self._tidy()

    def leave(self) -> None:
        """Release the lock; remove the folder if this export made it and it is empty."""
        if self._lock is None:
            return
        with suppress(OSError):
            (self.path / _LOCK).unlink()
        os.close(self._lock)
        self._lock = None
        if self._made:
            with suppress(OSError):  # it is not empty
                self.path.rmdir()

    def unfinished(self) -> bool:
        """Return whether the folder holds an export in parts that may be continued."""
        return (self.path / PLAN).is_file() and not (self.path / MANIFEST).exists()

    def _holds(self, claim: str) -> bool:
        try:
            return files.read_plain(self.path / _LOCK, limit=_CLAIM) == claim.encode()
        except PermissionError:  # the worker is another user
            return True
        except OSError:
            return False

    def probe(self, claim: str) -> None:
        """Write a file and remove it, in a worker. Raises ExportError, also if the folder is not here."""
        path = self.path / f"{PROBE}{secrets.token_hex(6)}"
        hint = "export into a folder that this machine and all workers have under the same path"
        if not self.path.is_dir():
            raise ExportError(f"{self.path} is not here", hint=hint)
        if not self._holds(claim):
            raise ExportError(f"{self.path} is another folder here: the export does not write to it", hint=hint)
        with self.guarding():
            path.touch()
            path.unlink()


def _to_append(path: Path) -> BinaryIO:
    """Open a file of this folder to append to it; never through a link that another user may have put there."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    return open(path, "ab", opener=lambda name, _: os.open(name, flags, 0o600))
