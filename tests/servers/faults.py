"""What can go wrong, told with the engine, the reason, the command that would help and the end of the log."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

EXIT_FAILED = 1
EXIT_UNAVAILABLE = 3


class EngineError(Exception):
    """Something failed; nothing of it is left running."""

    exit_code = EXIT_FAILED

    def __init__(self, subject: str, problem: str, *, remedy: str = "", tail: str = "") -> None:
        """Compose the message.

        Args:
            subject: The engine or the thing that failed.
            problem: What happened, with the value that made it happen.
            remedy: What to do, if possible as a command.
            tail: The last lines of a log.
        """
        lines = [f"{subject}: {problem}"]
        if tail:
            lines += ["  last lines of its log:", *(f"    {line}" for line in tail.splitlines())]
        if remedy:
            lines.append(f"  this would help: {remedy}")
        super().__init__("\n".join(lines))


class EngineUnavailableError(EngineError):
    """An engine cannot run on this machine."""

    exit_code = EXIT_UNAVAILABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why an engine cannot run here, and what would change that.

    Attributes:
        excused: It may be missing even where every engine is required.
    """

    reason: str
    remedy: str
    excused: bool = False


def engines_are_required() -> bool:
    """Tell whether an engine that is missing here is a failure, as in continuous integration."""
    return os.environ.get("REQUIRE_REAL") == "1" or os.environ.get("CI") in {"1", "true"}


def narrate(text: str) -> None:
    """Say something to the person who waits; standard output is for JSON."""
    print(text, file=sys.stderr, flush=True)
