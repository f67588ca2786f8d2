"""A home that was used for years: real installs, updates, rollbacks, repairs and collections, one after the other.

Only the time between two acts is not spent: each act makes what earlier ones left look older by its share of the years.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import wheelhouse
from command_line import Machine
from dragoman_worker.hooks_and_deadlines import HOOKS

YEARS = 5
DRIVERS = ("demo", "blue", "green", "red")
STAMPED = re.compile(r"(state\.db\.damaged-)([0-9]{8}-[0-9]{6}-[0-9]{6})(.*)")
STAMP = "%Y%m%d-%H%M%S-%f"
PLAN = {"install": 50, "update": 15, "rollback": 15, "fail": 5, "collect": 5, "remove": 4, "repair": 3, "damage": 3}
"""What people do, and how often of a hundred times."""


def publish(folder: Path, versions: int, *, drivers: tuple[str, ...] = DRIVERS) -> Path:
    """Publish versions of drivers, each with other bytes, which read a database that they hold in memory."""
    code = "from .memory_driver import MemoryDriver as Driver  # {version}\n"
    wheels = [
        wheelhouse.Driver(name, f"{1 + number}.0.0", code=code, hooks=[*HOOKS],
                          capabilities=["browse"]).write(folder / "wheels")
        for name in drivers for number in range(versions)
    ]  # fmt: skip
    return wheelhouse.registry(folder / "team", wheels)


@dataclass
class Life:
    """What happens to one home.

    Attributes:
        home: The home; `publish` filled the registry that it knows.
        versions: How many of each driver were published.
        acts: How many fill `YEARS`.
        collecting: Whether somebody types `plugins gc` now and then.
    """

    home: Path
    versions: int
    acts: int
    collecting: bool = True

    def __post_init__(self) -> None:
        self.machine = Machine(self.home)
        self._dice = random.Random(1)
        self.done = Counter[str]()

    def live(self) -> None:
        """Do everything."""
        for name in DRIVERS:
            self.machine("plugins", "install", name, "--version", "1.0.0", "--yes")
        for number in range(self.acts):
            kind = self._dice.choices(list(PLAN), list(PLAN.values()))[0]
            if kind == "collect" and not self.collecting:
                continue
            self.done[kind] += 1
            # Versions appear over the years: the newest of today was not there at the beginning.
            newest = 1 + number * (self.versions - 1) // self.acts
            getattr(self, f"_{kind}")(self._dice.choice(DRIVERS), newest)
            self._age(timedelta(days=365.25 * YEARS / self.acts))

    def _install(self, name: str, newest: int) -> None:
        version = self._dice.choice([newest, newest, newest, self._dice.randint(1, newest)])
        self.machine("plugins", "install", name, "--version", f"{version}.0.0", "--yes")

    def _update(self, name: str, newest: int) -> None:
        self._install(name, newest)
        self.machine("plugins", "pin", name)
        self.machine("plugins", "update", "--yes")
        self.machine("plugins", "unpin", name)

    def _rollback(self, name: str, newest: int) -> None:
        self.machine("plugins", "rollback", name, code=None)  # a driver that was just removed has nothing to go back to

    def _fail(self, name: str, newest: int) -> None:
        self.machine("plugins", "install", name, "--version", "9999.0.0", code=1)

    def _collect(self, name: str, newest: int) -> None:
        self.machine("plugins", "gc")

    def _remove(self, name: str, newest: int) -> None:
        self.machine("plugins", "remove", name, "--yes")
        self.machine("plugins", "install", name, "--version", f"{newest}.0.0", "--yes")

    def _repair(self, name: str, newest: int) -> None:
        files = sorted((self.home / "data/store/trees").glob(f"*/dragoman_{name}/driver.py"))
        file = self._dice.choice(files)
        file.chmod(0o644)
        file.write_text("damaged")
        self.machine("plugins", "repair", name, "--yes")

    def _damage(self, name: str, newest: int) -> None:
        (self.home / "data/state.db").write_bytes(self._dice.randbytes(9_000))
        self.machine("plugins", "repair", "--yes")

    def _age(self, share: timedelta) -> None:
        """Make locks and damaged databases look older."""
        for path in (*self.home.rglob("*.lock"), *(self.home / "data").glob("state.db.damaged-*")):
            moment = path.stat().st_mtime - share.total_seconds()
            os.utime(path, (moment, moment))
            if match := STAMPED.fullmatch(path.name):
                earlier = datetime.strptime(match[2], STAMP).replace(tzinfo=UTC) - share
                path.rename(path.with_name(f"{match[1]}{earlier.strftime(STAMP)}{match[3]}"))


def counts(home: Path) -> dict[str, int]:
    """Count what a home holds: rows, trees, locks, damaged databases, files, and bytes in all and of the state."""
    data = home / "data"
    with closing(sqlite3.connect(data / "state.db")) as database:
        [(rows,)] = database.execute("SELECT count(*) FROM generations")
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    return {
        "generations": rows,
        "trees": len(list((data / "store/trees").iterdir())),
        "locks": len(list((data / "store/.locks").iterdir())),
        "damaged": len(list(data.glob("state.db.damaged-*"))),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "state bytes": (data / "state.db").stat().st_size,
    }
