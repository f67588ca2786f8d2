"""The one way in which tests run the command line: `dragoman` on a machine of its own.

A machine is a home, a working folder and an environment. Calling it runs a command there: inside this process, which
saves its start, or as a process, where signals, pipes and what a start loads are the matter.

    machine("objects", "shop")                      # words
    machine("dragoman page shop books --limit 5")   # a line, as a person types it
    machine.process("objects", "shop", code=3)      # always as a process
"""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal

from dragoman import Runtime, Session
from dragoman.cli import app
from dragoman.cli.options import Options
from dragoman.sandbox.fork_server import ForkClaim

if TYPE_CHECKING:
    from collections.abc import Awaitable

SECONDS = 50
"""Time that a process has."""


@dataclass(frozen=True)
class Ended:
    """What a command printed, and how it ended."""

    command: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Both streams, one after the other."""
        return self.out + self.err

    @property
    def json(self) -> Any:
        """Standard output, parsed."""
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"{shlex.join(self.command)} ended with {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@dataclass
class Machine:
    """One home, and the `dragoman` that lives in it.

    Attributes:
        home: What DRAGOMAN_HOME names.
        cwd: The working folder; that of the tests where it is None.
        port: What ``$PORT`` stands for in a line.
        inside: Whether a call runs inside this process.
        bare: Whether the environment holds a PATH and a HOME, the parent of `home`, alone, or all that the tests have.
        more: Further variables.
        shared: An open connection that every command uses, inside this process.
        runtime: The runtime it belongs to.
        portal: The event loop they live in.
    """

    home: Path
    cwd: Path | None = None
    port: int = 0
    inside: bool = True
    bare: bool = False
    more: dict[str, str] = field(default_factory=dict)
    shared: Session | None = None
    runtime: Runtime | None = None
    portal: BlockingPortal | None = None

    def words(self, *words: object) -> list[str]:
        """Return the words that start a command as a process."""
        return [sys.executable, "-m", "dragoman", *map(str, words)]

    def variables(self, **more: str) -> dict[str, str]:
        """Return the environment of a command."""
        if self.bare:
            given = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.home.parent)}
        else:
            given = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        return {**given, "DRAGOMAN_HOME": str(self.home), "TERM": "xterm-256color", **self.more, **more}

    def __call__(self, *words: object, typed: str = "", code: int | None = 0, **variables: str) -> Ended:
        """Run a command: its words, or one line that begins with `dragoman`.

        Args:
            words: What is typed.
            typed: What stands on its standard input.
            code: The exit code it must end with; any where it is None.
            variables: Further variables of its environment.
        """
        run = self._inside if self.inside else self._process
        return _checked(run(self._split(words), typed, self.variables(**variables)), code)

    def process(self, *words: object, typed: str = "", code: int | None = 0, **variables: str) -> Ended:
        """Run a command as a process, whatever the machine does else; the arguments are those of a call."""
        return _checked(self._process(self._split(words), typed, self.variables(**variables)), code)

    def beside(self, **changes: Any) -> Machine:
        """Return a machine that differs in some attributes."""
        return replace(self, **changes)

    def _split(self, words: tuple[object, ...]) -> list[str]:
        texts = [str(word) for word in words]
        if len(texts) == 1 and texts[0].startswith("dragoman "):
            return shlex.split(texts[0].replace("$PORT", str(self.port)))[1:]
        return texts

    def _process(self, words: list[str], typed: str, variables: dict[str, str]) -> Ended:
        done = subprocess.run(
            self.words(*words), input=typed, env=variables, cwd=self.cwd, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        return Ended(tuple(words), done.returncode, done.stdout, done.stderr)

    def _inside(self, words: list[str], typed: str, variables: dict[str, str]) -> Ended:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True) for _ in "12")
        options = Options(shared=self.shared, current=self.runtime)
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr("sys.stdin", io.StringIO(typed))
            patch.setattr("dragoman.sandbox.bare_process.Spare", ForkClaim)  # forks as the tests do; processes spawn
            if self.cwd is not None:
                patch.chdir(self.cwd)
            for name, value in variables.items():
                patch.setenv(name, value)
            try:
                code = app.execute(words, options, wait=self._wait)
            except SystemExit as end:  # as a process would end
                code = end.code if isinstance(end.code, int) else int(bool(end.code))
        return Ended(tuple(words), code, *(stream.buffer.getvalue().decode() for stream in (out, err)))

    def _wait(self, work: Awaitable[Any]) -> Any:
        async def main() -> Any:
            return await work

        return self.portal.call(main) if self.portal else anyio.run(main)


def _checked(ended: Ended, code: int | None) -> Ended:
    assert "\nTraceback" not in f"\n{ended.err}", ended  # a driver's own is indented
    assert code is None or ended.code == code, ended
    return ended
