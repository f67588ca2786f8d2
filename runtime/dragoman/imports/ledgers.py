"""The ledger of a load: the state of each row is on disk before the next ones are sent."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from dragoman.changes.files import read_line, write_line
from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import quoted
from dragoman_registry import files

from .batches import key_of
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
        earlier: The checkpoint of the earlier run that this one continues; None for a new load.
    """

    def __init__(self, file: Path, *, keeps: bool, undo: Path | None, stream: BinaryIO | None = None) -> None:
        """Prepare; nothing is opened.

        Args:
            file: The path of the file that is loaded; for a stream, a name that stands for it.
            keeps: Keep a checkpoint, so that the load can be resumed.
            undo: The file that receives the undo of each row; None for no undo.
            stream: The stream that is loaded instead of the file.
        """
        self._file, self._keeps, self._undo_path, self._stream = file, keeps, undo, stream
        self.counts = no_counts()
        self.read = self.resumed = 0
        self.names: Sequence[str] = ()
        self.earlier: LoadCheckpoint | None = None
        self._identity: dict[str, Any] = {}
        self._place = (0, "")
        self._seen = 0  # rows that this run has read
        self._flight: dict[int, tuple[Batch, list[Range], int]] = {}  # and where the undo of a batch begins
        self._noted: set[object] = set()  # rows whose undo an earlier run wrote
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
        """Begin the load, or continue an earlier run.

        Raises:
            ConfigurationError: The load is running, was interrupted before, or cannot be resumed (code
                ``resume-refused``); or a file beside the loaded one cannot be written.
        """
        self._identity = identity
        if self._keeps:
            self._take_lock()
        checkpoint = read_checkpoint(self._file) if self._keeps else None
        if resume:
            checkpoint = self._checked(checkpoint)
        elif checkpoint is not None:
            path = checkpoint_path(self._file)
            hint = f"go on with --resume; or remove {path} first, and then rows without ids of their own may be doubled"
            text = f"a load of {self._file} was interrupted after {checkpoint.read:,} rows"
            raise ConfigurationError(text, hint=hint, code="import-unfinished")
        if self._undo_path is not None:
            if checkpoint is None and self._undo_path.exists():
                hint = "name another file: this one may be the only undo of earlier changes"
                raise ConfigurationError(f"{self._undo_path} already exists", hint=hint)
            size = self._read_undo(self._undo_path, checkpoint) if checkpoint else 0
            self.undo = AppendedFile(self._undo_path, size=size, mode=0o600)
        self.rejected = self._open_rejected(checkpoint.rejected if checkpoint else 0)
        if checkpoint is not None:
            self.earlier, self.read, self.resumed = checkpoint, checkpoint.read, checkpoint.resumed + 1
            self.counts = no_counts() | checkpoint.counts
            self._place, self._started = (checkpoint.bytes, checkpoint.sha256), checkpoint.started

    def _read_undo(self, path: Path, checkpoint: LoadCheckpoint) -> int:
        """Note the rows whose undo is on disk already, and return the size of all complete lines, in bytes.

        Lines after those of the checkpoint stay: their rows may have been written, and only these lines hold what was
        there before. An incomplete line is of a row that was not sent.
        """
        size = checkpoint.undo_from
        try:
            with path.open("rb") as file:
                file.seek(size)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._noted.add(key_of(read_line(line)))
                    size += len(line)
        except FileNotFoundError:  # nothing was written, or `AppendedFile` says that it is gone
            return checkpoint.undo
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise _refused(f"{path} is no longer the undo file of this load: {error}", "put it back") from error
        return max(size, checkpoint.undo)

    def _open_rejected(self, size: int) -> AppendedFile:
        """Open the file of rejected rows; only those who can read the loaded file can read it."""
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
        files.sweep_drafts(checkpoint_path(self._file))  # of a run that was killed

    def _checked(self, checkpoint: LoadCheckpoint | None) -> LoadCheckpoint:
        if checkpoint is None:
            raise _refused(f"no load of {self._file} was interrupted", "load it without --resume")
        for name, value in self._identity.items():
            if (before := checkpoint.identity.get(name)) != value:
                text = f"the interrupted load of {self._file} had {name} {quoted(before)}, not {quoted(value)}"
                raise _refused(text, "resume with the arguments of the first run")
        try:
            digest = digest_of(self._file, checkpoint.bytes)
        except OSError as error:
            raise ConfigurationError(f"{self._file} cannot be read: {error.strerror}") from error
        if digest != checkpoint.sha256:
            text = f"the first {checkpoint.bytes:,} bytes of {self._file} changed since the load was interrupted"
            raise _refused(text, f"remove {checkpoint_path(self._file)} to load the changed file from its beginning")
        return checkpoint

    # rows

    def begin(self, batch: Batch) -> None:
        """Record a batch as possibly sent before any of it is; rows that are not sent get their outcome now."""
        self._reject(batch.rejections)
        self._seen = batch.read
        self.read = max(self.read, batch.read)
        if batch.place[0] >= self._place[0]:
            self._place = batch.place
        if batch.entries:
            undone = self.undo.size if self.undo else 0
            if self.earlier is not None and any(entry.doubt for entry in batch.entries):
                undone = self.earlier.undo_from
            self._flight[id(batch)] = (batch, ranges(entry.record.number for entry in batch.entries), undone)
            self.write()

    def undo_of(self, rows: Iterable[tuple[Entry, Change]]) -> None:
        """Write the undo of rows once, before they are sent: later, a row may hold what the load itself wrote."""
        assert self.undo is not None
        lines = []
        for entry, change in rows:
            if entry.noted or (entry.doubt and entry.key in self._noted):
                continue
            lines.append(write_line(change))  # type: ignore[arg-type]  # no drops
            entry.noted = entry.key is not None  # else the next plan makes another id
        self.undo.append(b"".join(lines))
        self.undo.sync()

    def settle(
        self, batch: Batch, *, counts: dict[str, int], rejections: Sequence[Rejection], left: list[Entry]
    ) -> None:
        """Record outcomes of a batch; the rows in `left` have none yet."""
        self._reject(rejections)
        for status, count in counts.items():
            self.counts[status] += count
        batch.entries = left
        _, _, undone = self._flight.pop(id(batch))
        if left:
            self._flight[id(batch)] = (batch, ranges(entry.record.number for entry in batch.entries), undone)

    def _reject(self, rejections: Sequence[Rejection]) -> None:
        self.rejected.append(rejected_lines(rejections, self.names))
        for rejection in rejections:
            self.counts["refused" if rejection.code == "unreadable" else rejection.code] += 1

    # the checkpoint

    def write(self, *, ended: bool = False) -> None:
        """Write the checkpoint.

        Args:
            ended: Nothing is being sent any more, so it is certain which rows were never sent.
        """
        if not self._keeps:
            return
        self.rejected.sync()
        doubt = [part for _, parts, _ in self._flight.values() for part in parts]
        undone = [self.undo.size if self.undo else 0, *(start for _, _, start in self._flight.values())]
        waiting: list[Range] = []
        if ended:
            entries = [entry for batch, _, _ in self._flight.values() for entry in batch.entries]
            doubt, waiting = _numbers(entries, doubt=True), _numbers(entries, doubt=False)
        if self.earlier is not None:  # what this run has not reached
            if beyond := _beyond(self._seen, self.earlier.doubt):
                doubt += beyond
                undone.append(self.earlier.undo_from)
            waiting += _beyond(self._seen, self.earlier.waiting)
        checkpoint = LoadCheckpoint(
            identity=self._identity, read=self.read, doubt=merged(doubt), waiting=merged(waiting),
            bytes=self._place[0], sha256=self._place[1], counts=self.counts, rejected=self.rejected.size,
            undo=undone[0], undo_from=min(undone), started=self._started, resumed=self.resumed,
        )  # fmt: skip
        try:
            files.write(checkpoint_path(self._file), msgspec.json.encode(checkpoint), mode=0o600)
        except OSError as error:
            text = f"{checkpoint_path(self._file)} cannot be written: {error.strerror}"
            raise ConfigurationError(text, hint="free some space, then resume") from error

    @property
    def doubtful(self) -> int:
        """The number of rows in flight that may have been written."""
        return sum(entry.uncertain for batch, _, _ in self._flight.values() for entry in batch.entries)

    def complete(self) -> None:
        """Remove the checkpoint: every row has its outcome."""
        if self._keeps:
            self.rejected.sync()
            checkpoint_path(self._file).unlink(missing_ok=True)

    def give_up(self) -> bool:
        """Keep what another run needs to resume, and return whether there is anything to resume."""
        begun = any(self.counts.values()) or self.doubtful or self.earlier is not None
        if begun:
            self.write(ended=True)
        elif self._keeps:
            checkpoint_path(self._file).unlink(missing_ok=True)
        return bool(begun) and self._keeps

    def close(self) -> None:
        """Release the files."""
        for file in (getattr(self, "rejected", None), self.undo):
            if file is not None:
                file.close()
        if self._lock is not None:
            with suppress(OSError):
                self._file.with_name(f".{self._file.name}.import.lock").unlink()
            os.close(self._lock)
            self._lock = None


def _descriptor(stream: BinaryIO) -> int | None:
    """Return the file descriptor of a stream; None for one that is only in memory."""
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
