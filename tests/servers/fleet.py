"""Several engines, one after another: who can run here, installing them, and running them together."""

from __future__ import annotations

import contextlib
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from servers.faults import (
    EXIT_FAILED,
    EXIT_UNAVAILABLE,
    EngineUnavailableError,
    Obstacle,
    engines_are_required,
    narrate,
)
from servers.folders import run_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from servers.engines import Engine, Options, Server


OPEN_TO_ALL = "listens on all interfaces"
"""What keeps an exposed engine off a network that it shares with others."""


def describe(engines: Sequence[Engine]) -> list[dict[str, Any]]:
    """Tell of each engine what it proves and whether it can run here."""
    described = []
    for engine in engines:
        obstacle = engine.obstacle()
        described.append(
            {
                "engine": engine.id,
                "type": engine.type,
                "version": engine.version,
                "proves": engine.proves,
                "available": obstacle is None,
                "reason": obstacle.reason if obstacle else None,
                "remedy": obstacle.remedy if obstacle else None,
            }
        )
    return described


def usable(engines: Sequence[Engine], *, isolated: bool = True) -> tuple[list[Engine], int]:
    """Leave out, aloud, what cannot run here, or not without a network of its own.

    Returns:
        The others, and the exit code that the missing ones call for: 0 when nothing is missing that should be there.
    """
    kept, codes = [], {0}
    for engine in engines:
        obstacle = engine.obstacle() or (None if isolated or not engine.exposed else _needs_isolation(engine))
        if obstacle is None:
            kept.append(engine)
        else:
            narrate(f"SKIPPED {EngineUnavailableError(engine.id, obstacle.reason, remedy=obstacle.remedy)}")
            codes.add(_exit_code(obstacle, alone=len(engines) == 1))
    # 1 says "must be here and is not", 3 "is not here"; the worse one of several wins.
    worst = EXIT_FAILED if EXIT_FAILED in codes else max(codes)
    return kept, worst if kept or worst else EXIT_UNAVAILABLE


def _needs_isolation(engine: Engine) -> Obstacle:
    remedy = f"run {engine.id} -- COMMAND, which gives it a network of its own; --shared-network lets others reach it"
    return Obstacle(reason=OPEN_TO_ALL, remedy=remedy, excused=True)


def _exit_code(obstacle: Obstacle, *, alone: bool) -> int:
    if obstacle.excused:
        return EXIT_UNAVAILABLE if alone else 0
    return EXIT_FAILED if engines_are_required() else EXIT_UNAVAILABLE


def install(engines: Sequence[Engine]) -> list[dict[str, Any]]:
    """Put the engines into the cache."""
    installed = []
    for engine in engines:
        began = time.monotonic()
        folder, made = engine.install()
        seconds = round(time.monotonic() - began, 2)
        installed.append(
            {"engine": engine.id, "version": engine.version, "folder": str(folder), "made": made, "seconds": seconds}
        )
    return installed


@contextmanager
def running(engines: Sequence[Engine], options: Options) -> Iterator[list[Server]]:
    """Run the engines: entered, all answer; left, none is there any more, nor its data."""
    with contextlib.ExitStack() as stack:
        servers = []
        for engine in engines:
            narrate(f"starting {engine.id} …")
            folder = stack.enter_context(run_folder(engine.id))
            server = stack.enter_context(engine.serve(folder, options))
            narrate(f"  {server.record['url']} answers after {server.record['started_in']} s")
            servers.append(server)
        yield servers
