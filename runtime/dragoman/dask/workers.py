"""The tasks of a Dask worker: it opens the connection from its own home, compares it, and exports parts.

Tasks take and return plain data. No secret travels: a worker has the connection by name, with its own credentials.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from dragoman.blocking import BlockingSession, connect
from dragoman.exports.parts.split import PartResult, Split
from dragoman.exports.parts.targets import parts_target
from dragoman_api.errors import DragomanError

_sessions: dict[tuple[str, str], BlockingSession] = {}
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


def _session(connection: str, home: str) -> BlockingSession:
    with _opening:
        key = connection, home
        if key not in _sessions:
            _sessions[key] = connect(connection, home=Path(home) if home else None)
        return _sessions[key]


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
        split.origin.check(_session(split.origin.connection, home).origin())
        if target:
            parts_target(target).probe(claim)
    except DragomanError as error:
        return _failed(error)
    return msgspec.json.encode(TaskEnd())


def export_part(plan: bytes, file: str, home: str) -> bytes:
    """Export the only part of a plan to a file, a path or a URL. Returns a `TaskEnd`."""
    split = msgspec.json.decode(plan, type=Split)
    try:
        part = _session(split.origin.connection, home).export_part(split, number=0, to=file)
    except DragomanError as error:
        return _failed(error)
    return msgspec.json.encode(TaskEnd(part=part))


def stop(connection: str, home: str) -> None:
    """Close the connection, which cancels what still runs on it."""
    with _opening:
        session = _sessions.pop((connection, home), None)
    if session is not None:
        session.close()


def _failed(error: DragomanError) -> bytes:
    return msgspec.json.encode(TaskEnd(code=error.code, message=error.message, hint=error.hint))
