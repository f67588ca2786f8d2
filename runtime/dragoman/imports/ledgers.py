"""The ledger of a load: what is on disk about each row before the next ones are sent."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from dragoman.changes.files import write_line
from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import quoted
from dragoman_registry import files

from .checkpoints import LoadCheckpoint, checkpoint_path, merged, ranges, read_checkpoint
from .reports import AppendedFile, no_counts, rejected_lines
from .sources import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dragoman_api.changes import Change

    from .batches import Batch, Entry
    from .checkpoints import Range
    from .reports import Rejection


class Ledger:
    """Counts, rejected rows, undo lines and the checkpoint of one load; every method blocks on the disk.

    Attributes:
        counts: The number of rows per outcome.
        read: The number of rows that were read.
        resumed: How often the load was resumed.
        rejected: The file of rejected rows.
        earlier: The checkpoint of an earlier run that is continued.
    """

    def __init__(self, file: Path, *, keeps: bool, undo: Path | None, stream: BinaryIO | None = None) -> None:
        """Prepare.

        Args:
            file: The file that is loaded; for a stream, the name that stands for it.
            keeps: A checkpoint is kept, so that the load can be resumed.
            undo: The file that receives the undo of each row.
            stream: The stream that is loaded instead.
        """
        self._file, self._keeps, self._undo_path, self._stream = file, keeps, undo, stream
        self.counts = no_counts()
        self.read = self.resumed = 0
        self.names: Sequence[str] = ()
        self.earlier: LoadCheckpoint | None = None
        self._identity: dict[str, Any] = {}
        self._place = (0, "")
        self._seen = 0  # rows that this run has read
        self._flight: dict[int, tuple[Batch, list[Range]]] = {}
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._lock: int | None = None
        self.rejected: AppendedFile
        self.undo: AppendedFile | None = None

    @property
    def read_now(self) -> int:
        """The number of rows that this run has read."""
        return self.read - (self.earlier.read if self.earlier else 0)

    # opening

    def open(self, identity: dict[str, Any], *, resume: bool) -> None:
        """Take the load over, or begin it.

        Raises:
            ConfigurationError: It runs already, was interrupted before, cannot be resumed (code ``resume-refused``), or
                a file beside it cannot be written.
        """
        self._identity = identity
        if self._keeps:
            self._take_lock()
        found = read_checkpoint(self._file) if self._keeps else None
        if resume:
            found = self._checked(found)
        elif found is not None:
            path = checkpoint_path(self._file)
            hint = f"go on with --resume; or remove {path} first, and then rows without ids of their own may be doubled"
            text = f"a load of {self._file} was interrupted after {found.read:,} rows"
            raise ConfigurationError(text, hint=hint, code="import-unfinished")
        if self._undo_path is not None:
            if not (found and found.undo) and self._undo_path.exists():
                hint = "name another file: this one may be the only undo of earlier changes"
                raise ConfigurationError(f"{self._undo_path} already exists", hint=hint)
            self.undo = AppendedFile(self._undo_path, size=found.undo if found else 0, mode=0o600)
        self.rejected = self._open_rejected(found.rejected if found else 0)
        if found is not None:
            self.earlier, self.read, self.resumed = found, found.read, found.resumed + 1
            self.counts = no_counts() | found.counts
            self._place, self._started = (found.bytes, found.sha256), found.started

    def _open_rejected(self, size: int) -> AppendedFile:
        """Open the file of rejected rows, which nobody can read who cannot read the file they come from."""
        path, source = rejected_path(self._file), self._file if self._stream is None else _descriptor(self._stream)
        return AppendedFile(path, size=size, mode=files.mode_beside(path, source=source))

    def _take_lock(self) -> None:
        path = self._file.with_name(f".{self._file.name}.import.lock")
        try:
            lock = files.try_lock(path, mode=0o600)
        except OSError as error:
            hint = f"put the file into a folder that you can write to, or pipe it: … - < {self._file}"
            text = f"a load keeps its place beside the file, and {path} cannot be written: {error.strerror}"
            raise ConfigurationError(text, hint=hint) from error
        if lock is None:
            raise ConfigurationError(f"{self._file} is being loaded by another process", code="import-running")
        self._lock = lock

    def _checked(self, found: LoadCheckpoint | None) -> LoadCheckpoint:
        if found is None:
            raise _refused(f"no load of {self._file} was interrupted", "load it without --resume")
        for name, value in self._identity.items():
            if (before := found.identity.get(name)) != value:
                text = f"the interrupted load of {self._file} had {name} {quoted(before)}, not {quoted(value)}"
                raise _refused(text, "resume with the arguments of the first run")
        try:
            digest = digest_of(self._file, found.bytes)
        except OSError as error:
            raise ConfigurationError(f"{self._file} cannot be read: {error.strerror}") from error
        if digest != found.sha256:
            text = f"the first {found.bytes:,} bytes of {self._file} changed since the load was interrupted"
            raise _refused(text, f"remove {checkpoint_path(self._file)} to load the changed file from its beginning")
        return found

    # rows

    def begin(self, batch: Batch) -> None:
        """Record a batch as possibly sent, before anything of it is; rows that are not sent have their outcome now."""
        self._reject(batch.rejections)
        self._seen = batch.read
        self.read = max(self.read, batch.read)
        if batch.place[0] >= self._place[0]:
            self._place = batch.place
        if batch.entries:
            self._flight[id(batch)] = (batch, ranges(entry.record.number for entry in batch.entries))
            self.write()

    def undo_of(self, changes: Sequence[Change]) -> None:
        """Write the undo of rows before they are sent."""
        assert self.undo is not None
        self.undo.append(b"".join(write_line(change) for change in changes))  # type: ignore[arg-type]  # no drops
        self.undo.sync()

    def settle(
        self, batch: Batch, *, counts: dict[str, int], rejections: Sequence[Rejection], left: list[Entry]
    ) -> None:
        """Record outcomes of a batch, of which some rows are left that have none."""
        self._reject(rejections)
        for status, count in counts.items():
            self.counts[status] += count
        batch.entries = left
        if left:
            self._flight[id(batch)] = (batch, ranges(entry.record.number for entry in batch.entries))
        else:
            del self._flight[id(batch)]

    def _reject(self, rejections: Sequence[Rejection]) -> None:
        self.rejected.append(rejected_lines(rejections, self.names))
        for each in rejections:
            self.counts["refused" if each.code == "unreadable" else each.code] += 1

    # the checkpoint

    def write(self, *, ended: bool = False) -> None:
        """Write the checkpoint.

        Args:
            ended: Nothing is being sent any more, so rows that were never sent are known to be so.
        """
        if not self._keeps:
            return
        self.rejected.sync()
        doubt = [part for _, parts in self._flight.values() for part in parts]
        waiting: list[Range] = []
        if ended:
            entries = [entry for batch, _ in self._flight.values() for entry in batch.entries]
            doubt, waiting = _numbers(entries, doubt=True), _numbers(entries, doubt=False)
        if self.earlier is not None:  # what this run has not reached
            doubt += _beyond(self._seen, self.earlier.doubt)
            waiting += _beyond(self._seen, self.earlier.waiting)
        checkpoint = LoadCheckpoint(
            identity=self._identity, read=self.read, doubt=merged(doubt), waiting=merged(waiting),
            bytes=self._place[0], sha256=self._place[1], counts=self.counts, rejected=self.rejected.size,
            undo=self.undo.size if self.undo else 0, started=self._started, resumed=self.resumed,
        )  # fmt: skip
        try:
            files.write(checkpoint_path(self._file), msgspec.json.encode(checkpoint), mode=0o600)
        except OSError as error:
            text = f"{checkpoint_path(self._file)} cannot be written: {error.strerror}"
            raise ConfigurationError(text, hint="free some space, then resume") from error

    @property
    def doubtful(self) -> int:
        """The number of rows in flight that may have been written."""
        return sum(entry.uncertain for batch, _ in self._flight.values() for entry in batch.entries)

    def complete(self) -> None:
        """Remove the checkpoint: every row has its outcome."""
        if self._keeps:
            self.rejected.sync()
            checkpoint_path(self._file).unlink(missing_ok=True)

    def give_up(self) -> bool:
        """Keep what a resumption needs, and return whether there is anything to resume."""
        begun = any(self.counts.values()) or self.doubtful or self.earlier is not None
        if begun:
            self.write(ended=True)
        elif self._keeps:
            checkpoint_path(self._file).unlink(missing_ok=True)
        return bool(begun) and self._keeps

    def close(self) -> None:
        """Release the files."""
        for each in (getattr(self, "rejected", None), self.undo):
            if each is not None:
                each.close()
        if self._lock is not None:
            with suppress(OSError):
                self._file.with_name(f".{self._file.name}.import.lock").unlink()
            os.close(self._lock)
            self._lock = None


def _descriptor(stream: BinaryIO) -> int | None:
    """Return the descriptor of a stream; None for one that is only in memory."""
    with suppress(OSError, AttributeError):
        return stream.fileno()
    return None


def rejected_path(file: Path) -> Path:
    """Return the path of the file of a load's rejected rows."""
    return file.with_name(f"{file.name}.rejected.ndjson")


def _refused(text: str, hint: str) -> ConfigurationError:
    return ConfigurationError(text, hint=hint, code="resume-refused")


def _numbers(entries: Iterable[Entry], *, doubt: bool) -> list[Range]:
    return ranges(sorted(entry.record.number for entry in entries if entry.uncertain is doubt))


def _beyond(number: int, parts: Iterable[Range]) -> list[Range]:
    return [(max(first, number + 1), last) for first, last in parts if last > number]
