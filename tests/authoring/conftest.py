"""Working trees as an author has them: the scaffold, copied and changed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from command_line import Machine
from dragoman.authoring.check import Checked, check
from dragoman.authoring.conformance_run import run_conformance
from dragoman.authoring.publish import publish
from dragoman.authoring.scaffold import scaffold
from dragoman.authoring.wheel_build import built
from dragoman_registry.client.installed_drivers import Store

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        return publish(self.path, to=to, **more)

    def files(self) -> dict[str, bytes]:
        return contents(self.path)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, but for what Python caches."""
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


@pytest.fixture(scope="session")
def report(fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The report of the unchanged scaffold, for tests that are not about conformance."""
    folder = shutil.copytree(fresh, tmp_path_factory.mktemp("tested") / "tree")
    with built(folder) as made:
        run_conformance(made)
    return (folder / "report.json").read_bytes()


@pytest.fixture
def ready(tree: Tree, report: bytes) -> Tree:
    """A tree whose report is of its very bytes."""
    tree["report.json"].write_bytes(report)
    return tree


@pytest.fixture
def type_in(home: Path, tmp_path: Path) -> Machine:
    """Type a `dragoman` command in a home of the test's own; it runs inside this process, which saves its start."""
    return Machine(home, cwd=tmp_path)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextmanager
def serving(tree: Tree) -> Iterator[int]:
    """Serve the fake of a tree in a process of its own, and yield its port."""
    port = free_port()
    words = [sys.executable, str(tree["tests/fake.py"]), "--port", str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(400):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(10)
