"""Working trees as an author has them: the scaffold, copied and changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from dragoman.authoring.check import Checked, check
from dragoman.authoring.project import built
from dragoman.authoring.publish import publish
from dragoman.authoring.scaffold import scaffold
from dragoman_registry.store import Store


@dataclass
class Tree:
    """A working tree."""

    path: Path

    def __getitem__(self, name: str) -> Path:
        return self.path / name

    @property
    def code(self) -> Path:
        return self.path / "dragoman_orbit/driver.py"

    @property
    def manifest(self) -> Path:
        return self.path / "dragoman_orbit/driver.json"

    def change(self, file: str, *pairs: tuple[str, str]) -> None:
        """Replace pieces of a file, each of which must be there."""
        text = self[file].read_text()
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new, 1)
        self[file].write_text(text)

    def driver(self, *pairs: tuple[str, str]) -> None:
        self.change("dragoman_orbit/driver.py", *pairs)

    def on_import(self, code: str) -> int:
        """Have code run while the driver is imported; gives its first line."""
        text = self.code.read_text()
        self.code.write_text(f"{text}\n\n{code}\n")
        return len(text.splitlines()) + 3

    def check(self) -> Checked:
        with built(self.path) as made:
            return anyio.run(check, made)

    def codes(self) -> set[str]:
        return {fault.code for fault in self.check().faults}

    def publish(self, to: Path, **more: Any):
        return anyio.run(partial(publish, self.path, to=to, **more))

    def files(self) -> dict[str, bytes]:
        return contents(self.path)


def contents(folder: Path) -> dict[str, bytes]:
    """Give every file below a folder, but for what Python caches."""
    found = (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scaffold as `driver new` makes it."""
    folder = tmp_path_factory.mktemp("fresh")
    return scaffold("orbit", type="orbit", port=7700, into=folder, registries=(), store=Store(folder / "home"))


@pytest.fixture
def tree(fresh: Path, tmp_path: Path) -> Tree:
    """A copy of the scaffold to change."""
    return Tree(shutil.copytree(fresh, tmp_path / "dragoman-orbit"))


@pytest.fixture
def type_in(home: Path, tmp_path: Path):
    """Type a `dragoman` command, as a process, in a home of the test's own."""

    def run(*words: object, code: int = 0, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dragoman", *map(str, words)]
        done = subprocess.run(command, cwd=cwd or tmp_path, capture_output=True, text=True, timeout=50)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, done
        return done

    return run
