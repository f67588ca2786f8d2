"""Engines that outlive the command that started them: a supervising process, and a state file that names it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servers.faults import EngineError, narrate
from servers.fleet import running
from servers.folders import exclusive, is_owned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from servers.engines import Engine, Options

_STOP_SECONDS = 60.0


def start(arguments: Sequence[str]) -> int:
    """Start a supervisor in the background and pass on what it says; the arguments are its command line."""
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        # Ends when all servers answer, since the supervisor then closes its output, or when it failed.
        said = child.stdout.read() if child.stdout else ""
    except BaseException:
        child.terminate()
        child.wait()
        raise
    print(said, end="", flush=True)
    return 0 if said else child.wait()


def supervise(engines: Sequence[Engine], options: Options, *, state: Path, hours: float) -> None:
    """Run the engines until a signal, the removal of the state file, the death of one of them, or the time limit.

    Raises:
        EngineError: The state file already stands for running servers, or an engine did not start.
    """
    with _claimed(state), running(engines, options) as servers:
        records = [server.record for server in servers]
        try:
            write_records(state, records)
            _announce(records)
            deadline = time.monotonic() + hours * 3600
            while time.monotonic() < deadline and state.exists() and all(server.process.alive for server in servers):
                time.sleep(0.5)
        finally:
            state.unlink(missing_ok=True)


def stop(state: Path) -> list[dict[str, Any]]:
    """Stop what a state file names; give what was stopped."""
    records = read_state(state)
    _signal_supervisors(records, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while any(map(_lives, records)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for supervisor in _signal_supervisors(records, signal.SIGKILL):  # its servers die with it
        narrate(f"process {supervisor} did not end in time and was killed")
    state.unlink(missing_ok=True)
    return [{"engine": record["engine"], "pid": record["pid"], "stopped": True} for record in records]


def read_state(state: Path) -> list[dict[str, Any]]:
    """Read the records of a state file; without a file there are none."""
    try:
        records = json.loads(state.read_text())
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise EngineError(str(state), f"is not a state file: {error}") from error
    return list(records)


def write_records(file: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write records, passwords included, for this user's eyes; readers never see half a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")  # 0600
    with os.fdopen(number, "w") as scratch:
        scratch.write(json.dumps(records, indent=2) + "\n")
    Path(name).replace(file)


@contextlib.contextmanager
def _claimed(state: Path) -> Iterator[None]:
    name = hashlib.sha256(os.fsencode(state)).hexdigest()[:16]
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(exclusive(f"state-{name}", wait=False))
        except BlockingIOError as error:
            remedy = f"stop --state {state}, or another --state for these"
            raise EngineError(str(state), "stands for servers that already run", remedy=remedy) from error
        yield


def _signal_supervisors(records: Sequence[dict[str, Any]], number: signal.Signals) -> set[int]:
    supervisors = {record["supervisor"] for record in records if _lives(record)}
    for supervisor in supervisors:
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor, number)
    return supervisors


def _lives(record: dict[str, Any]) -> bool:
    """Judge by the lock that the supervisor holds, since process ids are used again."""
    return is_owned(Path(record["data_dir"]))


def _announce(records: Sequence[dict[str, Any]]) -> None:
    """Tell the waiting `start`, which then ends, so that nothing of its terminal may be held any longer."""
    try:
        print(json.dumps(records, indent=2), flush=True)
    except BrokenPipeError as error:
        raise EngineError("start", "ended before its servers answered") from error
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
