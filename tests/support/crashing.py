"""Killing an installation at every step that changes something on disk, one step per run.

Runs as a program: `python crashing.py FOLDER SCENARIO UID`, where FOLDER holds a registry and the homes that are tried.
For n = 1, 4, 7, …, or for each n in a thorough run, a forked child installs and kills itself at the n-th step; then
another one looks at what is left, installs again and looks once more. The steps are every write (of which the first
half reaches the file), fsync, rename, chmod, folder made or removed, and SQL statement, the commit included: before it
and after it. Prints a line of JSON.
"""

from __future__ import annotations

import builtins
import io
import json
import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from installing import Place
from thorough import THOROUGH

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = ("fsync", "rename", "replace", "mkdir", "rmdir", "unlink", "chmod", "ftruncate", "pwrite")


class Bomb:
    """Counts steps and kills the process at one of them."""

    def __init__(self, fuse: int) -> None:
        self.fuse = fuse
        self.log: list[str] = []

    def step(self, what: str, half: Callable[[], None] = lambda: None) -> None:
        self.log.append(what)
        if len(self.log) == self.fuse:
            half()
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        for name in STEPS:
            setattr(os, name, self._counted(name, getattr(os, name)))
        real_open, bomb = io.open, self

        def open_(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
            opened = real_open(file, mode, *rest, **options)
            return Writing(opened, bomb) if set(mode) & set("wax+") and not isinstance(file, int) else opened

        io.open = builtins.open = open_

        class Database(sqlite3.Connection):
            def execute(self, statement: str, *arguments: Any) -> Any:
                bomb.step(f"before {statement[:12]}")
                result = super().execute(statement, *arguments)
                bomb.step(f"after {statement[:12]}")
                return result

            def executescript(self, script: str) -> Any:
                bomb.step("before script")
                result = super().executescript(script)
                bomb.step("after script")
                return result

        real_connect = sqlite3.connect
        sqlite3.connect = lambda *rest, **options: real_connect(*rest, factory=Database, **options)

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.step(f"{name} {Path(str(arguments[0])).name}")
            return real(*arguments, **options)

        return counted


class Writing:
    """A file whose every write is a step; the one that kills writes half of its bytes."""

    def __init__(self, file: Any, bomb: Bomb) -> None:
        self._file, self._bomb = file, bomb

    def write(self, data: bytes) -> int:
        def half() -> None:
            self._file.write(data[: len(data) // 2])
            self._file.flush()

        self._bomb.step(f"write {Path(self._file.name).name}", half)
        written = self._file.write(data)
        self._file.flush()  # what follows a write in the program follows it on the disk
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Writing:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def child(work: Callable[[], object]) -> int:
    """Run something in a forked child; give its exit code, negative for a signal."""
    if not (pid := os.fork()):
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - a forked child ends here, whatever happened
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def look(place: Place, versions: set[str | None]) -> None:
    """Hold what must be true of any home that somebody finds."""
    active = place.store.active("demo")
    assert (active and active.version) in versions, active
    for generation in place.store.generations("demo"):
        assert place.store.verify(generation) == [], generation
    if active:
        assert (active.trees[0] / "dragoman_demo/driver.py").is_file()


def main(root: Path, scenario: str, uid: int) -> None:
    place = Place(root)
    versions: set[str | None] = {None, "2.0.0"}
    place.install(pinned="1.0.0")  # imports everything, and is the state before an update
    if uid != os.getuid():
        for path in (place.store.root, *place.store.root.rglob("*")):
            os.chown(path, uid, uid)
        os.setuid(uid)
    template = root / "template"
    if scenario == "update":
        versions = {"1.0.0", "2.0.0"}
        place.store.root.rename(template)
    else:
        template.mkdir()
    for fuse in range(1, 1000, 1 if THOROUGH else 3):
        home = place.store.root
        remove(home)
        shutil.copytree(template, home, symlinks=True)
        bomb = Bomb(fuse)

        def run(bomb: Bomb = bomb) -> None:
            bomb.arm()
            place.install()
            print(json.dumps({"steps": len(bomb.log), "log": bomb.log}), flush=True)

        died = child(run) == -signal.SIGKILL
        expected = versions if died else {"2.0.0"}

        def again(expected: set[str | None] = expected) -> None:
            look(place, expected)
            place.install()
            look(place, {"2.0.0"})
            assert place.leftovers() == [], place.leftovers()
            assert '"version": "2.0.0"' in place.store.lock_file.read_text()

        assert child(again) == 0, f"after step {fuse}"
        if not died:
            return


def remove(home: Path) -> None:
    for folder, _, _ in os.walk(home):
        Path(folder).chmod(0o755)
    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
