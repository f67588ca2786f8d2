"""Where an export is written: an open stream, or a file that appears only when it is complete."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from dragoman_api.errors import ExportError
from dragoman_registry import files
from dragoman_registry.locks import holds

from .results import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .results import ExportResult

PIECE = 1 << 20


class Target:
    """A stream that was open before; what it takes is counted and digested on its way.

    Attributes:
        bytes: Taken so far.
    """

    resumable = False

    def __init__(self, stream: BinaryIO | None) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.bytes = 0

    @property
    def name(self) -> str:
        """Name the target for messages and events."""
        return getattr(self._stream, "name", "stream")

    @property
    def sha256(self) -> str:
        """Give the digest of what was taken so far."""
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            ExportError: The disk is full, or the target went away.
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
        """Turn what a file system says into an error of the export; a reader who has seen enough ends it quietly."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            hint = "free some space, or choose a folder that is there and that you may write into"
            raise ExportError(f"{self.name} cannot be written: {error.strerror or error}", hint=hint) from error

    def open(self) -> None:
        """Take possession of the target."""

    def begin(self) -> None:
        """Start anew."""

    def place(self) -> None:
        """Put what was written in its final place."""
        assert self._stream is not None
        with self.guarding():
            self._stream.flush()

    def leave(self) -> None:
        """Leave everything as it was."""

    def discard(self) -> None:
        """Remove what was written, where it can be removed."""

    def close(self) -> None:
        """Give up possession."""


class FileTarget(Target):
    """A file that appears only when it is complete; what is unfinished lies beside it.

    Its lock is held on the unfinished part, so that it ends with the process, however that ends.
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
        self._manifest = final.with_name(f"{final.name}.manifest.json")

    @property
    def name(self) -> str:
        """Name the target for messages and events."""
        return str(self._final)

    def open(self) -> None:
        """Take possession of the part.

        Raises:
            ExportError: Another export writes this file, or the place does not take one.
        """
        if self._final.exists() and not self._final.is_file():
            raise self._no_file()
        with self.guarding():
            while self._stream is None:
                if (handle := files.try_lock(self.part, mode=0o600)) is None:
                    hint = "wait for it, or choose another file"
                    raise ExportError(f"another export is writing {self.name}", hint=hint, code="export-running")
                # Whoever had it may have finished meanwhile.
                if holds(handle, self.part):
                    self._stream = os.fdopen(handle, "r+b", buffering=0)
                else:
                    os.close(handle)

    def _no_file(self) -> ExportError:
        return ExportError(f"{self.name} is no file", hint="give the name of a file, or leave it out for stdout")

    def left_over(self) -> int | None:
        """Give the rows of an unfinished export that lies there, None where there is none, 0 where nobody knows."""
        if not self.part.stat().st_size:
            return None
        found = read_checkpoint(self._checkpoint)
        return found.rows if found else 0

    def begin(self) -> None:
        """Start anew; the old checkpoint goes first, for it says nothing about the new part."""
        assert self._stream is not None
        with self.guarding():
            self._checkpoint.unlink(missing_ok=True)
            self.made.unlink(missing_ok=True)
            self._stream.truncate(0)

    def resume(self, identity: dict[str, Any]) -> Checkpoint:
        """Cut the part off behind what is safe, to go on there.

        Raises:
            ExportError: This cannot be done; everything is left as it is.
        """
        assert self._stream is not None
        found = read_checkpoint(self._checkpoint)
        if found is None:
            raise self._refusal(f"no unfinished export of {self.name} can be resumed: it has no readable checkpoint")
        if differences := [name for name in identity if identity[name] != found.identity.get(name)]:
            raise self._refusal(f"the unfinished export of {self.name} has another {', another '.join(differences)}")
        with self.guarding():
            size = self.part.stat().st_size
            if found.part != self.part.name or size < found.offset:
                raise self._refusal(f"{self.part} has {size:,} bytes; {found.offset:,} were written and are missing")
            while piece := self._stream.read(min(PIECE, found.offset - self.bytes)):
                self._digest.update(piece)
                self.bytes += len(piece)
            if self.sha256 != found.sha256:
                raise self._refusal(f"{self.part} was changed since it was written")
            self._stream.truncate(found.offset)
        return found

    def _refusal(self, reason: str) -> ExportError:
        self.leave()
        return ExportError(reason, hint="export without --resume to begin anew", code="resume-refused")

    def secure(self, checkpoint: Checkpoint) -> None:
        """Bring a checkpoint to the disk, after what it is about; more may be written meanwhile."""
        assert self._stream is not None
        with self.guarding():
            os.fsync(self._stream.fileno())
            files.write(self._checkpoint, msgspec.json.encode(checkpoint), mode=0o600)

    def take(self, made: Path) -> None:
        """Let a file that was made of the part take its place."""
        self._source = made
        with self.guarding(), made.open("rb") as file:
            self._digest = hashlib.file_digest(file, "sha256")
            self.bytes = file.tell()

    def place(self) -> None:
        """Put the file under its final name; an old manifest goes first, for it says nothing about the new file."""
        with self.guarding():
            files.sync(self._source)
            self._manifest.unlink(missing_ok=True)
            files.patiently(lambda: self._source.replace(self._final))
            files.sync(self._final.parent)
            self._checkpoint.unlink(missing_ok=True)
            if self._source is not self.part:
                self.part.unlink()

    def tell(self, result: ExportResult) -> None:
        """Write the manifest beside the file."""
        with self.guarding():
            files.write(self._manifest, msgspec.json.format(msgspec.json.encode(result)) + b"\n", mode=0o600)

    def leave(self) -> None:
        """Leave everything as it was before the lock was taken."""
        with self.guarding():
            if not self.part.stat().st_size:
                self.part.unlink()

    def discard(self) -> None:
        """Remove the unfinished part and all that belongs to it."""
        with self.guarding():
            for path in (self._checkpoint, self.made, self.part):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock."""
        if self._stream is not None:
            self._stream.close()


def checkpoint_path(final: Path) -> Path:
    """Name the checkpoint of a file's export."""
    return final.with_name(f".{final.name}.checkpoint")


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Read a checkpoint; None where none is, or where it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except (OSError, msgspec.MsgspecError):
        return None


def unfinished(final: Path) -> bool:
    """Tell whether an export of this file could be resumed."""
    return bool(final.name) and read_checkpoint(checkpoint_path(final)) is not None
