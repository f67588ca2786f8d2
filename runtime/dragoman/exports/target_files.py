"""Targets of exports: an open stream, or a file that appears under its name only when it is complete."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from contextlib import contextmanager, suppress
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from dragoman_api.errors import DragomanError, ExportError
from dragoman_api.events import ExportFailed
from dragoman_api.wording import failure
from dragoman_registry import files
from dragoman_registry.files import OPEN, PRIVATE

from .checkpoints import Checkpoint, checkpoint_path, read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dragoman_api.events import Event


PIECE = 1 << 20

_PROTOCOL = re.compile(r"[a-z][a-z0-9+.-]+(::[^/]+)?://", re.IGNORECASE)


def is_url(to: str) -> bool:
    """Return whether a target is a URL, even one that no store takes, and not a path."""
    return _PROTOCOL.match(to) is not None


def unwritable(name: str, error: OSError) -> ExportError:
    """Return the error of a target that the system refuses to write."""
    full = "free some space, or choose another folder"
    hints = {
        errno.ENOSPC: full,
        errno.EDQUOT: full,
        errno.ENOENT: "create the folder first",
        errno.ENOLCK: "choose a folder on a disk of this machine, and move the file afterwards",
    }
    hint = hints.get(error.errno or 0) or files.remedy(error) or "choose a folder that you can write to"
    return ExportError(f"{name} cannot be written: {error.strerror or error}", hint=hint)


class StreamTarget:
    """A stream that the caller opened; bytes are counted and hashed as they are written.

    Attributes:
        bytes: The number of bytes written so far.
    """

    resumable = False

    def __init__(self, stream: BinaryIO | None) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.bytes = 0

    @property
    def name(self) -> str:
        """The target's name in messages and events."""
        return getattr(self._stream, "name", "stream")

    @property
    def sha256(self) -> str:
        """The SHA-256 digest of the bytes written so far."""
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            ExportError: The disk is full, or the target is gone.
        """
        assert self._stream is not None
        view = memoryview(data)
        with self.guarding():
            while view:
                view = view[self._stream.write(view) :]
        self._digest.update(data)
        self.bytes += len(data)

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Convert errors of the file system to ExportError; BrokenPipeError passes, since the reader wants no more."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise unwritable(self.name, error) from error

    def open(self) -> None:
        """Open the target."""

    def begin(self) -> None:
        """Begin with an empty output."""

    def place(self) -> None:
        """Move the output to its final place."""
        assert self._stream is not None
        with self.guarding():
            self._stream.flush()

    def leave(self) -> None:
        """Leave the stream as it is."""

    def discard(self) -> None:
        """Remove the output, where possible."""

    def close(self) -> None:
        """Release the target."""


class FileTarget(StreamTarget):
    """A file that appears only when it is complete; the unfinished part lies beside it.

    The umask decides who can read both, but a file that is replaced keeps its mode, and so does its manifest. The lock
    is on the unfinished part, so it ends with the process in every case.

    Attributes:
        mode: The mode in which to create files that may become the export.
    """

    resumable = True

    def __init__(self, final: Path) -> None:
        super().__init__(None)
        self._final = final
        if not final.name:
            raise self._no_file()
        self.part = final.with_name(f".{final.name}.part")
        self.made = final.with_name(f".{final.name}.made")
        self._source = self.part
        self._checkpoint = checkpoint_path(final)
        self.manifest = final.with_name(f"{final.name}.manifest.json")
        self.mode = OPEN
        self._told: tuple[int, int | None] = (OPEN, None)  # modes of the manifest

    @property
    def name(self) -> str:
        """The target's name in messages and events."""
        return str(self._final)

    def open(self) -> None:
        """Open and lock the unfinished part.

        Raises:
            ExportError: Another export is writing this file, or the folder cannot be written.
        """
        if self._final.exists() and not self._final.is_file():
            raise self._no_file()
        with self.guarding():
            self.mode, _ = _modes(self._final)
            if self.part.is_symlink():
                raise self._foreign()
            if (handle := files.try_lock(self.part, mode=self.mode)) is None:
                hint = "wait for it, or choose another file"
                raise ExportError(f"another export is writing {self.name}", hint=hint, code="export-running")
            if os.fstat(handle).st_uid != os.geteuid():
                os.close(handle)
                hint = "choose another folder: that user could read the export"
                raise ExportError(f"{self.part} belongs to another user; nothing was written", hint=hint)
            if not stat.S_ISREG((status := os.fstat(handle)).st_mode) or status.st_nlink > 1:
                os.close(handle)
                raise self._foreign()
            # An earlier run may have created it before there was a private file.
            _set_mode(handle, stat.S_IMODE(status.st_mode) & self.mode)
            self._stream = os.fdopen(handle, "r+b", buffering=0)
            files.sweep_drafts(self._checkpoint, self.manifest)

    def _no_file(self) -> ExportError:
        return ExportError(f"{self.name} is not a file name", hint="name a file, or omit it for stdout")

    def _foreign(self) -> ExportError:
        hint = f"remove {quote(str(self.part))}, or choose another file"
        return ExportError(f"{self.part} is a link or not a regular file; nothing was written", hint=hint)

    def left_over(self) -> int | None:
        """Return the number of rows of an unfinished export: None if there is none, 0 if the number is unknown."""
        if not self.part.stat().st_size:
            return None
        checkpoint = read_checkpoint(self._checkpoint)
        return checkpoint.rows if checkpoint else 0

    def begun(self) -> datetime | None:
        """Return when the first run of an unfinished export began; None if there is none that can be resumed."""
        checkpoint = read_checkpoint(self._checkpoint)
        with suppress(ValueError):
            return datetime.fromisoformat(checkpoint.started) if checkpoint else None
        return None

    def lists(self) -> dict[str, str] | None:
        """Return the columns that are lists in an unfinished export; None if there is none that can be resumed."""
        checkpoint = read_checkpoint(self._checkpoint)
        lists = checkpoint.identity.get("lists") if checkpoint else None
        return lists if isinstance(lists, dict) else None

    def begin(self) -> None:
        """Begin with an empty part; delete the old checkpoint first, since it does not describe the new part."""
        assert self._stream is not None
        with self.guarding():
            self._checkpoint.unlink(missing_ok=True)
            self.made.unlink(missing_ok=True)
            self._stream.truncate(0)

    def resume(self, identity: dict[str, Any]) -> Checkpoint:
        """Truncate the part after its safe bytes, to continue there, and return its checkpoint.

        Raises:
            ExportError: The export cannot be resumed; nothing has changed.
        """
        assert self._stream is not None
        checkpoint = read_checkpoint(self._checkpoint)
        if checkpoint is None:
            raise self._refusal(f"no unfinished export of {self.name} can be resumed: it has no readable checkpoint")
        if differences := [name for name in identity if identity[name] != checkpoint.identity.get(name)]:
            raise self._refusal(f"the unfinished export of {self.name} has another {', another '.join(differences)}")
        with self.guarding():
            size = self.part.stat().st_size
            if checkpoint.part != self.part.name or size < checkpoint.offset:
                raise self._refusal(f"{self.part} has {size:,} bytes; the checkpoint needs {checkpoint.offset:,}")
            while piece := self._stream.read(min(PIECE, checkpoint.offset - self.bytes)):
                self._digest.update(piece)
                self.bytes += len(piece)
            if self.sha256 != checkpoint.sha256:
                raise self._refusal(f"{self.part} was changed since it was written")
            self._stream.truncate(checkpoint.offset)
        return checkpoint

    def _refusal(self, reason: str) -> ExportError:
        self.leave()
        return ExportError(reason, hint="export without --resume to start again", code="resume-refused")

    def secure(self, checkpoint: Checkpoint) -> None:
        """Sync the part and then its checkpoint to disk; the part may grow meanwhile."""
        assert self._stream is not None
        with self.guarding():
            os.fsync(self._stream.fileno())
            files.write(self._checkpoint, msgspec.json.encode(checkpoint), mode=0o600)

    def take(self, path: Path) -> None:
        """Replace the part with a file that was built from it."""
        self._source = path
        with self.guarding(), path.open("rb") as file:
            self._digest = hashlib.file_digest(file, "sha256")
            self.bytes = file.tell()

    def place(self) -> None:
        """Move the file to its final name; delete an old manifest first, since it does not describe the new file."""
        with self.guarding():
            self._told = _modes(self.manifest if self.manifest.exists() else self._final)
            _, mode = _modes(self._final)
            if mode is not None:  # until the move succeeds, another run must be able to continue the part
                _give_mode(self._source, mode | PRIVATE)
            files.sync(self._source)
            self.manifest.unlink(missing_ok=True)
            self._source.replace(self._final)
            if mode is not None:
                _give_mode(self._final, mode)
            files.sync(self._final.parent)
            self._checkpoint.unlink(missing_ok=True)
            if self._source is not self.part:
                self.part.unlink()

    def tell(self, result: msgspec.Struct) -> None:
        """Write the manifest beside the file."""
        first, mode = self._told
        with self.guarding(), files.replacing(self.manifest, mode=first) as file:
            if mode is not None:
                _set_mode(file.fileno(), mode)
            file.write(msgspec.json.format(msgspec.json.encode(result)) + b"\n")

    def leave(self) -> None:
        """Restore the state before the lock was taken."""
        with self.guarding():
            if not self.part.stat().st_size:
                self.part.unlink()

    def discard(self) -> None:
        """Remove the unfinished part and its companion files."""
        with self.guarding():
            for path in (self._checkpoint, self.made, self.part):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock."""
        if self._stream is not None:
            self._stream.close()


def files_beside(final: Path) -> tuple[Path, ...]:
    """List the files that an export writes beside its target. Raises ExportError if the target is not a file name."""
    target = FileTarget(final)
    return target.part, target.made, checkpoint_path(final), target.manifest


def _modes(path: Path) -> tuple[int, int | None]:
    """Return the mode in which to create the file that will replace this one, and the mode that it gets in the end.

    The latter is None where the umask decides: for a new file, and if another user could have put the file or a link
    there. Such a file can only narrow what the umask allows.
    """
    with suppress(OSError):  # there is none, or only a link that leads nowhere
        status = path.stat()
        mode = stat.S_IMODE(status.st_mode) & (files.mode_beside(path, source=path) | 0o111)
        if path.is_symlink() or status.st_uid != os.geteuid():
            return PRIVATE | (mode & OPEN), None
        return PRIVATE, mode
    return OPEN, None


def _give_mode(path: Path, mode: int) -> None:
    """Set the mode of a file, but not through a link that another user may have put there."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_nlink == 1:
            _set_mode(handle, mode)
    finally:
        os.close(handle)


def _set_mode(handle: int, mode: int) -> None:
    """Set the mode of an open file, where the file system has modes."""
    if stat.S_IMODE(os.fstat(handle).st_mode) != mode:
        with suppress(OSError):
            os.fchmod(handle, mode)


@contextmanager
def reporting(emit: Callable[[Event], None], *, connection: str, object: str, target: str) -> Iterator[None]:  # noqa: A002
    """Emit `ExportFailed` for any error of the block, a cancellation too."""
    try:
        yield
    except BaseException as error:
        code, reason = "stopped", failure(error)
        if isinstance(error, DragomanError):
            code, reason = error.code, error.message
        emit(ExportFailed(connection=connection, object=object, target=target, code=code, reason=reason))
        raise
