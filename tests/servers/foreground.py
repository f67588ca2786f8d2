"""Engines that live as long as one command, by default in a network that only it can reach."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from servers.background import write_records
from servers.faults import EngineError, EngineUnavailableError, narrate
from servers.fleet import OPEN_TO_ALL, install, running
from servers.network import isolate
from servers.processes import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servers.engines import Engine, Options

_GRACE_SECONDS = 10.0
_INTERRUPTED = 128 + signal.SIGINT


def run(engines: Sequence[Engine], options: Options, command: Sequence[str], *, isolated: bool) -> int:
    """Start the engines, run the command with `DRAGOMAN_LIVE` naming their records, stop them.

    Returns:
        The command's exit code, or 128 and its signal.
    """
    install(engines)  # first: there is no way out of the namespace
    if isolated:
        _isolate_or_say([engine.id for engine in engines if engine.exposed])
    with running(engines, options) as servers:
        records = [server.record for server in servers]
        live = Path(records[0]["data_dir"]) / "live.json"
        write_records(live, records)
        return _wait_for(command, live)


def _isolate_or_say(exposed: Sequence[str]) -> None:
    reason = isolate()
    if reason and exposed:
        remedy = "root, or sysctl kernel.unprivileged_userns_clone=1; --shared-network lets others reach it"
        raise EngineUnavailableError(", ".join(exposed), f"{OPEN_TO_ALL}, and {reason}", remedy=remedy)
    if reason:
        narrate(
            f"NOT ISOLATED: no network namespace here ({reason}).\n"
            "  Engines and command use this machine's own network; the engines listen on loopback only.\n"
            "  This would help: root, or sysctl kernel.unprivileged_userns_clone=1; --shared-network accepts it."
        )
    else:
        narrate("engines and command have a network of their own, with nothing but lo")


def _wait_for(command: Sequence[str], live: Path) -> int:
    environment = {**os.environ, "DRAGOMAN_LIVE": str(live)}
    try:
        child = subprocess.Popen(command, env=environment, preexec_fn=die_with_parent(signal.SIGTERM))
    except OSError as error:
        raise EngineError(command[0], f"cannot be run: {error}") from error
    try:
        status = child.wait()
    except SystemExit as leaving:  # a signal: the command ends before its engines do
        if leaving.code != _INTERRUPTED:  # the terminal has already told the command, which may be tidying up
            child.terminate()
        try:
            child.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise
    return status if status >= 0 else 128 - status
