"""An object as a `dask.dataframe`, each partition one part of a split export."""

from __future__ import annotations

import secrets
import sys
import threading
import warnings
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.extending import Split, in_memory
from dragoman_api.errors import DragomanError, ExportError

from . import workers as tasks
from .clusters import check_address
from .coordinator import RENEWALS
from .runner import compare, share_pace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dask.dataframe import DataFrame

    from dragoman import FileFormat
    from dragoman.extending import BlockingRows


class Snapshot:
    """The snapshot that dataframes read, which this process renews as long as they exist."""

    def __init__(self, split: Split, home: str) -> None:
        """Begin to renew it."""
        self._split, self._home = split, home
        self._end = threading.Event()
        renewing = threading.Thread(target=_renew, args=(self._end, split, home), name="dragoman-snapshot", daemon=True)
        renewing.start()

    def leave(self) -> None:
        """Renew it no longer, so that it ends by itself: parts may still be read, which renew it, too."""
        self._end.set()

    def free(self) -> None:
        """Free it on the server.

        Raises:
            DragomanError: The server did not answer; the snapshot ends by itself.
        """
        self._end.set()
        with tasks.lend(self._split.origin.connection, self._home) as (session, _):
            session.rows(self._split.request.object).hold(self._split, seconds=0)


def _renew(end: threading.Event, split: Split, home: str) -> None:
    """Renew a snapshot until the end, or until the server has lost it; a failed renewal is repeated."""
    seconds = split.request.keep_alive
    while not end.wait(seconds / RENEWALS):
        with suppress(DragomanError), tasks.lend(split.origin.connection, home) as (session, _):
            if not session.rows(split.request.object).hold(split, seconds=seconds):
                return


class PartReader:
    """Reads a part of a split, in any process; neither the home nor the snapshot leaves this one."""

    def __init__(self, plan: Split, home: str = "", snapshot: Snapshot | None = None) -> None:
        """Prepare.

        Args:
            plan: The split, without its shares.
            home: The home of this process; empty for the usual one.
            snapshot: The snapshot, which is left when no dataframe needs this reader.
        """
        self.plan, self.home, self.snapshot = plan, home, snapshot
        if snapshot is not None:
            weakref.finalize(self, snapshot.leave)

    def __reduce__(self) -> tuple[object, ...]:
        return _reader, (msgspec.json.encode(self.plan),)

    def __dask_tokenize__(self) -> object:
        return "dragoman", msgspec.json.encode(self.plan)

    def __call__(self, share: str) -> Any:
        """Read a part into a `pandas.DataFrame`.

        Raises:
            ExportError: The server no longer holds the snapshot (code ``snapshot-lost``).
            DragomanError: The part cannot be read.
        """
        try:
            return tasks.read_part(msgspec.structs.replace(self.plan, shares=[share]), self.home)
        except DragomanError as error:
            if error.code != "context-lost":
                raise
            raise ExportError(
                f"the server no longer holds the snapshot of {self.plan.request.object!r} of this dataframe",
                hint="call dragoman_dask.read again, and keep the dataframe until everything is computed; "
                f"keep_alive holds a snapshot without a dataframe, here for {self.plan.request.keep_alive} seconds",
                code="snapshot-lost",
            ) from error


def _reader(plan: bytes) -> PartReader:
    return PartReader(msgspec.json.decode(plan, type=Split))


def read(
    rows: BlockingRows,
    *,
    parts: int,
    insecure: bool = False,
    format: FileFormat | str = "arrow",  # noqa: A002 - the word that people know
    keep_alive: int | None = None,
) -> DataFrame:
    """Return rows as a `dask.dataframe`, which reads each partition where it is needed.

    Columns and types are those of `Rows.table`, as Arrow's types in pandas; ``_misfits`` holds what does not fit. The
    rows are split at once, into one snapshot if the driver has one, and read when something is computed. Every worker
    opens the connection of the same name from its own home, and compares server, hosts and driver with those of this
    process: now if a `distributed.Client` is open, and before each part.

    This process renews the snapshot as long as the dataframe, or one made from it, exists here, whether their
    connection stays open or not. Then the server keeps it for `keep_alive` seconds after the last page that was read,
    so ``persist()`` needs no dataframe. `close` frees it at once.

    Args:
        rows: The rows of a connection that `connect` opened.
        parts: The wanted number of partitions; there are fewer if the object has fewer rows.
        insecure: Accept an open client whose connections are not encrypted.
        format: How values become typed, as for `Rows.table`.
        keep_alive: Seconds for which the server holds the snapshot without requests, at least 60; None for what
            `config.toml` says.

    Returns:
        The dataframe. Notes on the rows, such as that there is no snapshot, come as warnings of Python.

    Raises:
        ConfigurationError: The client is refused, or a worker lacks the connection or differs (``worker-differs``).
        DragomanError: The rows cannot be split.
    """
    client = _client()
    if client is not None and not (address := client.scheduler.address).startswith("inproc://"):
        check_address(address, insecure=insecure)
    own = str(rows.home) if rows.home is not None else ""
    split = rows.split(parts, format=in_memory(format), keep_alive=keep_alive)
    snapshot = Snapshot(split, own) if split.snapshot else None
    try:
        if client is not None:
            share_pace(client)
            client.sync(compare, client, split, "")
        return _dataframe(PartReader(msgspec.structs.replace(split, shares=[]), own, snapshot), split.shares)
    except BaseException:
        if snapshot is not None:
            with suppress(DragomanError):
                snapshot.free()
        raise
    finally:
        for note in split.notes:
            warnings.warn(f"{split.request.object}: {note.reason}", stacklevel=2)


def close(frame: DataFrame) -> None:
    """Free the snapshots that a dataframe reads; nothing more can be computed from them.

    Raises:
        DragomanError: The server did not answer; the snapshot ends by itself.
    """
    readers = (operand for node in frame.expr.walk() for operand in node.operands if isinstance(operand, PartReader))
    for snapshot in {reader.snapshot for reader in readers if reader.snapshot is not None}:
        snapshot.free()


def _client() -> Any:
    """Return the client that dataframes are computed on; None if there is none, or if it belongs to an event loop."""
    if "distributed" not in sys.modules:  # it makes the client, so it would be there
        return None
    from distributed.client import default_client

    try:
        client = default_client()
    except ValueError:
        return None
    return None if client.asynchronous else client


def _dataframe(reader: PartReader, shares: Sequence[str]) -> DataFrame:
    from dask.dataframe import from_map

    plan = reader.plan
    meta = tasks.dataframe(plan.schema().empty_table())
    token = f"dragoman-{plan.origin.connection}-{secrets.token_hex(8)}"
    return from_map(reader, shares, meta=meta, label=token, enforce_metadata=False)
