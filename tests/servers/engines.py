"""What a family of engines has to offer, and the list of all engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servers.faults import EngineError
from servers.processes import Process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from servers.faults import Obstacle


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a server should be started."""

    heap: str = "512m"
    certificate: str = "localhost"
    patience: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running engine: its process, and the record that tells others how to reach it."""

    process: Process
    record: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine(ABC):
    """One version of one engine in one configuration.

    Attributes:
        exposed: It listens on all interfaces whatever its settings, so it belongs into a network of its own.
    """

    id: str
    type: str
    version: str
    proves: str
    exposed: bool = False

    @abstractmethod
    def obstacle(self) -> Obstacle | None:
        """Say why it cannot run on this machine, if it cannot; nothing is downloaded to find out."""

    @abstractmethod
    def install(self) -> tuple[Path, bool]:
        """Put what it needs into the cache, once; give the folder, and whether this call made it."""

    @abstractmethod
    def serve(self, folder: Path, options: Options) -> AbstractContextManager[Server]:
        """Run a server in this empty folder: entered, it answers; left, it is gone.

        Raises:
            EngineError: It did not start; nothing is left running.
        """


def all_engines() -> list[Engine]:
    """List every engine of every family."""
    families = sorted(path.parent.name for path in Path(__file__).parent.glob("*/catalog.py"))
    return [engine for family in families for engine in import_module(f"servers.{family}").ENGINES]


def choose_engines(names: Sequence[str]) -> list[Engine]:
    """Resolve what was asked for, `all` included.

    Raises:
        EngineError: There is no engine of that name.
    """
    known = {engine.id: engine for engine in all_engines()}
    chosen: dict[str, Engine] = {}
    for name in names:
        if name == "all":
            chosen |= known
        elif name in known:
            chosen[name] = known[name]
        else:
            raise EngineError(name, "no such engine", remedy=f"one of: all {' '.join(known)}")
    return list(chosen.values())
