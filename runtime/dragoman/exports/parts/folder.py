"""The folder of an export in parts: its lock, what of it is done, and the manifest that comes last."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager, suppress
from shlex import quote
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import ExportError
from dragoman_api.json_text import decode
from dragoman_registry import files

from .split import PartResult, PartsResult, Split

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST = "manifest.json"
"""The manifest's name; its presence means that every part is there."""

_LOCK, _PLAN, _DONE = ".export.lock", ".export.json", ".export.done"
_MOST = 256 << 20  # bytes of a plan: 1,024 shares of at most 64,000 characters, and a filter


def unfinished(folder: Path) -> bool:
    """Return whether a folder holds an export in parts that may be continued."""
    return (folder / _PLAN).is_file() and not (folder / MANIFEST).exists()


class PartsFolder:
    """The folder of one export in parts, for the process that coordinates it.

    Attributes:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._made = False

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Convert file system errors to ExportError."""
        try:
            yield
        except OSError as error:
            hint = "free some space, or choose a folder that you can write to"
            reason = f"{self.path} cannot be written: {error.strerror or error}"
            raise ExportError(reason, hint=hint) from error

    def open(self, *, resume: bool) -> Split | None:
        """Lock the folder, which is made if it is missing; return the unfinished export to continue.

        Raises:
            ExportError: Another export is writing it (code ``export-running``), it holds something else
                (``target-occupied``), or there is nothing to continue (``resume-refused``).
        """
        with self.guarding():
            if self.path.exists() and not self.path.is_dir():
                raise ExportError(f"{self.path} is not a folder", hint="name a folder for an export in parts")
            self._made = not self.path.exists()
            if resume and self._made:
                raise self._nothing()
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = files.try_lock(self.path / _LOCK)
            if self._lock is None:
                hint = "wait for it, or choose another folder"
                raise ExportError(f"another export is writing {self.path}", hint=hint, code="export-running")
            try:
                return self._found(resume=resume)
            except BaseException:
                self.leave()
                raise

    def _found(self, *, resume: bool) -> Split | None:
        complete, unfinished = (self.path / MANIFEST).exists(), (self.path / _PLAN).exists()
        others = sorted(path.name for path in self.path.iterdir() if path.name != _LOCK)
        if resume and (complete or not unfinished):
            raise self._nothing(complete=complete)
        if resume:
            try:
                # One that another user wrote could ask for other rows.
                return decode(files.read_plain(self.path / _PLAN, limit=_MOST, own=True), Split)
            except (OSError, ValueError) as error:
                raise ExportError(
                    f"the unfinished export in {self.path} cannot be read: {error}",
                    hint=f"remove {quote(str(self.path))} and export again",
                    code="resume-refused",
                ) from error
        if others:
            what = "a complete export" if complete else "an unfinished export" if unfinished else repr(others[0])
            also = ", or continue it with --resume" if unfinished and not complete else ""
            hint = f"choose another folder{also}"
            raise ExportError(f"{self.path} holds {what}; nothing was written", hint=hint, code="target-occupied")
        return None

    def _nothing(self, *, complete: bool = False) -> ExportError:
        reason = f"the export in {self.path} is complete" if complete else f"{self.path} holds no unfinished export"
        return ExportError(reason, hint="export without --resume, into another folder", code="resume-refused")

    def begin(self, split: Split) -> None:
        """Record a new export."""
        with self.guarding():
            files.write(self.path / _PLAN, msgspec.json.encode(split), mode=0o600)

    def done(self, split: Split) -> dict[int, PartResult]:
        """Return the parts of an unfinished export that are complete, by number; a file that was changed is not."""
        numbers = {split.file(number): number for number in range(len(split.shares))}
        found: dict[int, PartResult] = {}
        with suppress(FileNotFoundError):
            for line in files.read_plain(self.path / _DONE, limit=_MOST).splitlines():
                with suppress(msgspec.MsgspecError, OSError, KeyError):  # the last line may be torn, a file gone
                    part = msgspec.json.decode(line, type=PartResult)
                    number = numbers[part.file]
                    with files.open_plain(self.path / part.file) as file:
                        if hashlib.file_digest(file, "sha256").hexdigest() == part.sha256:
                            found[number] = part
        return found

    def record(self, part: PartResult) -> None:
        """Record a complete part."""
        with self.guarding(), (self.path / _DONE).open("ab") as file:
            file.write(b"\n" + msgspec.json.encode(part))
            file.flush()
            os.fsync(file.fileno())

    def finish(self, result: PartsResult) -> None:
        """Write the manifest, then remove what was needed to continue."""
        with self.guarding():
            files.sync(self.path)
            files.write(self.path / MANIFEST, msgspec.json.format(msgspec.json.encode(result)) + b"\n")
            for name in (_PLAN, _DONE):
                (self.path / name).unlink(missing_ok=True)

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
            for name in (_DONE, _PLAN):
                (self.path / name).unlink(missing_ok=True)

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
