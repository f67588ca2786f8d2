"""The ledger of a load: the state of each row is on disk, as a checkpoint, before the next ones are sent."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import msgspec

from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode
from dragoman_api.wording import quoted
from dragoman_registry import files

from .batches import Range, key_of, merged, no_counts, ranges, rejected_lines
from .sources import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from dragoman_api.changes import Change

    from .batches import Batch, Rejection
    from .readings import FieldReadings
    from .records import Record

_MOST = 4 << 20  # bytes of a checkpoint


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

    def reserve(self, identity: dict[str, Any], *, resume: bool) -> None:
        """Keep other processes from loading the file, and check whether it can be loaded; write nothing of the load.

        Args:
            identity: What a run that continues this one must share with it.
            resume: Continue an earlier run.

        Raises:
            ConfigurationError: The load is running, was interrupted before, or cannot be resumed (code
                ``resume-refused``); the undo file is there already; or no file can be locked beside the loaded one.
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
        if self._undo_path is not None and checkpoint is None and self._undo_path.exists():
            hint = "name another file: this one may be the only undo of earlier changes"
            raise ConfigurationError(f"{self._undo_path} already exists", hint=hint)
        self.earlier = checkpoint

    def readings_kept(self, wishes: Mapping[str, str]) -> FieldReadings:
        """Return how the earlier run read fields. Raises ConfigurationError if the caller says otherwise."""
        from .readings import check_resumed

        readings: FieldReadings = {} if self.earlier is None else self.earlier.identity.get("readings", {})
        check_resumed(readings, wishes)
        return readings

    def open(self, readings: FieldReadings) -> None:
        """Begin the load that was reserved, or continue its earlier run.

        Args:
            readings: How fields of a table are read; a run that continues this one keeps it.

        Raises:
            ConfigurationError: A file beside the loaded one cannot be written.
        """
        checkpoint = self.earlier
        self._identity["readings"] = readings
        if self._undo_path is not None:
            size = self._read_undo(self._undo_path, checkpoint) if checkpoint else 0
            self.undo = AppendedFile(self._undo_path, size=size, mode=0o600)
        self.rejected = self._open_rejected(checkpoint.rejected if checkpoint else 0)
        if checkpoint is not None:
            self.read, self.resumed = checkpoint.read, checkpoint.resumed + 1
            self.counts = no_counts() | checkpoint.counts
            self._place, self._started = (checkpoint.bytes, checkpoint.sha256), checkpoint.started

    def _read_undo(self, path: Path, checkpoint: LoadCheckpoint) -> int:
        """Note the rows whose undo is on disk already, and return the size of all complete lines, in bytes.

        Lines after those of the checkpoint stay: their rows may have been written, and only these lines hold what was
        there before. An incomplete line is of a row that was not sent.
        """
        from dragoman.changes.files import read_line

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
        return AppendedFile(path, size=size, mode=files.mode_beside(path, source=source), shared=not self._keeps)

    def _take_lock(self) -> None:
        path = self._file.with_name(f".{self._file.name}.import.lock")
        try:
            lock = files.try_lock(path, mode=0o600)
        except OSError as error:
            place = (
                "on a disk of this machine" if error.errno == errno.ENOLCK else "into a folder that you can write to"
            )
            hint = f"put the file {place}, or pipe it: … - < {self._file}"
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
        if batch.records:
            undone = self.undo.size if self.undo else 0
            if self.earlier is not None and any(record.doubt for record in batch.records):
                undone = self.earlier.undo_from
            self._flight[id(batch)] = (batch, ranges(record.number for record in batch.records), undone)
            self.write()

    def undo_of(self, rows: Iterable[tuple[Record, Change]]) -> None:
        """Write the undo of rows once, before they are sent: later, a row may hold what the load itself wrote."""
        from dragoman.changes.files import write_line

        assert self.undo is not None
        lines = []
        for record, change in rows:
            if record.noted or (record.doubt and record.key in self._noted):
                continue
            lines.append(write_line(change))  # type: ignore[arg-type]  # no drops
            record.noted = record.key is not None  # else the next plan makes another id
        self.undo.append(b"".join(lines))
        self.undo.sync()

    def settle(
        self, batch: Batch, *, counts: dict[str, int], rejections: Sequence[Rejection], left: list[Record]
    ) -> None:
        """Record outcomes of a batch; the rows in `left` have none yet."""
        self._reject(rejections)
        for status, count in counts.items():
            self.counts[status] += count
        batch.records = left
        _, _, undone = self._flight.pop(id(batch))
        if left:
            self._flight[id(batch)] = (batch, ranges(record.number for record in left), undone)

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
            records = [record for batch, _, _ in self._flight.values() for record in batch.records]
            doubt, waiting = _numbers(records, doubt=True), _numbers(records, doubt=False)
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
            raise ConfigurationError(text, hint=files.remedy(error, self._file.parent)) from error

    @property
    def doubtful(self) -> int:
        """The number of rows in flight that may have been written."""
        return sum(record.uncertain for batch, _, _ in self._flight.values() for record in batch.records)

    def complete(self) -> None:
        """Remove the checkpoint: every row has its outcome."""
        if self._keeps:
            self.rejected.sync()
            self._remove_checkpoint()

    def _remove_checkpoint(self) -> None:
        try:
            checkpoint_path(self._file).unlink(missing_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{checkpoint_path(self._file)} cannot be removed: {error.strerror}") from error

    def give_up(self) -> bool:
        """Keep what another run needs to resume, and return whether there is anything to resume.

        On a full disk, the checkpoint stays that was written before the last batches: their rows are in doubt there.
        """
        if not self._keeps:
            return False
        with suppress(ConfigurationError):  # the error that ended the load is the one to tell
            if any(self.counts.values()) or self.doubtful or self.earlier is not None:
                self.write(ended=True)
            else:
                self._remove_checkpoint()
        return checkpoint_path(self._file).exists()

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


def _numbers(records: Iterable[Record], *, doubt: bool) -> list[Range]:
    return ranges(sorted(record.number for record in records if record.uncertain is doubt))


def _beyond(number: int, parts: Iterable[Range]) -> list[Range]:
    return [(max(first, number + 1), last) for first, last in parts if last > number]


class LoadCheckpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of a load's rows, on disk before the next ones are sent.

    Attributes:
        identity: Properties that another run must share to be the same load, by name.
        read: The number of rows that were read; all but those of the next two attributes have an outcome.
        doubt: The rows that were sent, but have no answer on disk.
        waiting: The rows that were certainly not sent.
        bytes: The number of bytes of the file that were read for these rows.
        sha256: The SHA-256 digest of these bytes, in hexadecimal.
        counts: The number of rows per outcome.
        rejected: The size of the file of rejected rows, in bytes.
        undo: The size of the undo file, in bytes.
        undo_from: The place in the undo file, in bytes, after which the lines of all rows in doubt are.
        started: When the load's first run began: ISO 8601, in UTC.
        resumed: How often the load was resumed.
    """

    version: Literal[1] = 1
    identity: dict[str, Any]
    read: int
    doubt: list[Range]
    waiting: list[Range]
    bytes: int
    sha256: str
    counts: dict[str, int]
    rejected: int
    undo: int
    undo_from: int
    started: str
    resumed: int


def checkpoint_path(file: Path) -> Path:
    """Return the path of the checkpoint of a file's load."""
    return file.with_name(f".{file.name}.import")


def read_checkpoint(file: Path) -> LoadCheckpoint | None:
    """Read the checkpoint of a file's load; None if it is missing, unreadable, or of another user.

    Another user could have rows skipped as if they were written.

    Raises:
        ConfigurationError: It is of a newer version of dragoman (code ``state-newer``).
    """
    path = checkpoint_path(file)
    try:
        data = files.read_plain(path, limit=_MOST, own=True)
    except (OSError, ValueError):
        return None
    try:
        return decode(data, LoadCheckpoint)
    except ValueError:
        from dragoman_api.file_versions import refuse_newer

        refuse_newer(path, data)
        return None


def unfinished(file: Path) -> bool:
    """Return whether a load of this file can be resumed."""
    with suppress(ConfigurationError):
        return bool(file.name) and read_checkpoint(file) is not None
    return False


def _is_held(path: Path) -> bool:
    """Return whether a load that runs writes a file."""
    try:
        file = files.open_plain(path)
    except OSError:
        return False
    with file, suppress(OSError):
        return not files.take_lock(file.fileno(), path, wait=False)
    return False


class AppendedFile:
    """A file of lines that grows while a load runs; a resumed load continues it at a known place.

    Attributes:
        size: The size of the file so far, in bytes.
    """

    def __init__(self, path: Path, *, size: int = 0, mode: int, shared: bool = False) -> None:
        """Prepare; nothing is created until there is a line.

        Args:
            path: The file's path.
            size: The number of bytes of an earlier run to keep; later ones are removed. 0 for a new file.
            mode: The mode of a new file, which the umask narrows.
            shared: Other loads that run may have the same path; then the file gets a number in its name.

        Raises:
            ConfigurationError: The file of an earlier run is gone, or cannot be written.
        """
        self.path, self.size, self._mode, self._shared = path, size, mode, shared
        self._file: int | None = None
        self._unsynced = False
        try:
            if not size:
                if not (shared and _is_held(path)):
                    path.unlink(missing_ok=True)
            elif path.stat().st_size < size:
                raise ConfigurationError(f"{path} was cut since the load was interrupted", code="resume-refused")
            else:
                self._file = os.open(path, os.O_WRONLY)
                os.ftruncate(self._file, size)
        except OSError as error:
            raise self._failed(error) from error

    def append(self, data: bytes) -> None:
        """Append lines. Raises ConfigurationError if the file cannot be written."""
        if not data:
            return
        try:
            if self._file is None:
                self._file = self._created()
                files.sync(self.path.parent)
            view, at = memoryview(data), self.size
            os.lseek(self._file, at, os.SEEK_SET)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            raise self._failed(error) from error
        self.size += len(data)
        self._unsynced = True

    def _created(self) -> int:
        first, number = self.path, 1
        while True:
            try:
                file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._mode)
                break
            except FileExistsError:
                if not self._shared:
                    raise
                number += 1
                self.path = first.with_name(f"{first.stem}-{number}{first.suffix}")
        with suppress(OSError):  # without locks, loads that run at once are not told apart
            files.take_lock(file, self.path, wait=False)
        return file

    def sync(self) -> None:
        """Sync the file to disk if it has changed. Raises ConfigurationError if that fails."""
        if self._file is not None and self._unsynced:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise self._failed(error) from error
            self._unsynced = False

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _failed(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(f"{self.path} cannot be written: {error.strerror}")
