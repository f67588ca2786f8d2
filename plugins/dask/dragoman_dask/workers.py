"""The tasks of a Dask worker: it opens the connection from its own home, compares it, and exports or reads parts.

Tasks take and return plain data. No secret travels: a worker has the connection by name, with its own credentials.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman import BlockingSession, connect
from dragoman.extending import PartResult, Split
from dragoman_api.errors import DragomanError

from . import exports
from .pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pandas import DataFrame
    from pyarrow import Table

IDLE_SECONDS = 120.0
"""How long a process keeps a connection that it does not use."""


BUSY = "dragoman-busy"
"""The topic of Dask's events under which a worker tells that the server is busy: the connection and the home."""


class _Lent(msgspec.Struct):
    session: BlockingSession
    pace: Pace
    users: int = 0
    timer: threading.Timer | None = None


_open: dict[tuple[str, str], _Lent] = {}
_opening = threading.Lock()


class TaskEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a task.

    Attributes:
        part: The part, if one was exported.
        code: The code of the error; empty for none.
        message: Its message.
        hint: Its hint.
    """

    part: PartResult | None = None
    code: str = ""
    message: str = ""
    hint: str = ""


@contextmanager
def lend(connection: str, home: str) -> Iterator[tuple[BlockingSession, Pace]]:
    """Lend this process's connection of a name, which closes once it was not used for `IDLE_SECONDS`, and its pace.

    Args:
        connection: The connection's name.
        home: The home; empty for that of the process.

    Raises:
        DragomanError: The connection cannot be opened.
    """
    key = connection, home
    with _opening:
        if (lent := _open.get(key)) is None:
            session = connect(connection, home=Path(home) if home else None)
            lent = _open[key] = _Lent(session, Pace(_teller(connection, home)))
        lent.users += 1
        if lent.timer is not None:
            lent.timer.cancel()
    try:
        yield lent.session, lent.pace
    finally:
        with _opening:
            lent.users -= 1
            if not lent.users:
                lent.timer = threading.Timer(IDLE_SECONDS, _close_idle, (key, lent))
                lent.timer.daemon = True
                lent.timer.start()


def _close_idle(key: tuple[str, str], lent: _Lent) -> None:
    with _opening:
        if lent.users or _open.get(key) is not lent:
            return
        del _open[key]
    lent.session.close()


def compare(plan: bytes, home: str, target: str = "", claim: str = "") -> bytes:
    """Open the connection, compare server, hosts and driver with those of the export, and write to its target.

    Args:
        plan: The export.
        home: The home of this worker; empty for its own.
        target: The target's path or URL, if there is one.
        claim: What the coordinator has left there.

    Returns:
        A `TaskEnd`.
    """
    split = msgspec.json.decode(plan, type=Split)
    try:
        with lend(split.origin.connection, home) as (session, _):
            session.rows(split.request.object).check_origin(split)
        if target:
            exports.parts_target(target).probe(claim)
    except DragomanError as error:
        return _failed(error)
    return msgspec.json.encode(TaskEnd())


def export_part(plan: bytes, target: str, file: str, claim: str, home: str) -> bytes:
    """Export the only part of a plan to a file of its target, as long as the claim is there. Returns a `TaskEnd`."""
    split = msgspec.json.decode(plan, type=Split)
    try:
        with lend(split.origin.connection, home) as (session, pace):
            place = exports.parts_target(target)
            options: dict[str, Any] = {"to": place.file(file), "confirm": partial(place.confirm, claim)}
            rows = session.rows(split.request.object)
            part = rows.run(lambda rows: exports.export_part(rows, split, 0, pace=pace, **options))
    except DragomanError as error:
        return _failed(error)
    return msgspec.json.encode(TaskEnd(part=part))


def read_part(split: Split, home: str) -> DataFrame:
    """Read the only part of a split into a dataframe of Arrow's types.

    Raises:
        DragomanError: The connection cannot be opened, or the part cannot be read.
    """
    import pyarrow as pa

    with lend(split.origin.connection, home) as (session, pace):
        batches = session.rows(split.request.object).part_batches(split, number=0, pace=pace)
        return dataframe(pa.Table.from_batches(batches))


def dataframe(table: Table) -> DataFrame:
    """Return a table of pyarrow as a dataframe of the same types."""
    from pandas import ArrowDtype

    return table.to_pandas(types_mapper=ArrowDtype)


def _teller(connection: str, home: str) -> Callable[[], None] | None:
    """Return what tells the other workers through the scheduler that the server is busy; None outside of a worker."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return None
    return lambda: worker.log_event(BUSY, [connection, home])


def slow_down(connection: str, home: str) -> None:
    """Slow down the parts that this process reads over a connection."""
    if (lent := _open.get((connection, home))) is not None:
        lent.pace.slow_down()


def stop(connection: str, home: str) -> None:
    """Close the connection, which cancels what still runs on it."""
    with _opening:
        lent = _open.pop((connection, home), None)
    if lent is not None:
        lent.session.close()


def _failed(error: DragomanError) -> bytes:
    return msgspec.json.encode(TaskEnd(code=error.code, message=error.message, hint=str(error.to_dict()["hint"])))
