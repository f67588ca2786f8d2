"""Bytecode of installed wheels, for the next installation of the same source: compiling takes a process each."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

from dragoman_registry.client import installer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class CompiledTrees:
    """Compiles trees as the installer does, and repeats for the same source what that wrote."""

    def __init__(self) -> None:
        self.compile_anew = installer.compile_tree
        self._bytecode: dict[object, dict[Path, bytes]] = {}

    def compile_tree(self, folder: Path) -> None:
        """Compile a tree, or write the bytecode that another one with the same source has."""
        digest = sha256()
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{file.relative_to(folder)}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
        # A changed installer compiles anew.
        key = digest.digest(), self.compile_anew.__code__, installer.COMPILE, sys.executable
        if (bytecode := self._bytecode.get(key)) is None:
            self.compile_anew(folder)
            self._bytecode[key] = {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*.pyc")}
            return
        for name, code in bytecode.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(code)

    @contextmanager
    def installing(self) -> Iterator[CompiledTrees]:
        """Let the installer take what other installations compiled."""
        installer.compile_tree = self.compile_tree
        try:
            yield self
        finally:
            installer.compile_tree = self.compile_anew
