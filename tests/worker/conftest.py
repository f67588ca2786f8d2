"""Drivers written on the spot, and workers started on them."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.sandbox.bare_process import Spare
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.launch import Launch
from dragoman.sandbox.levels import achievable_level
from dragoman_api.connections import Profile, Secrets

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = """
from __future__ import annotations
import asyncio, errno, json, os, socket, sys, time
from decimal import Decimal
import anyio
from dragoman_api import errors
from dragoman_api.cells import CutJson, CutText, Json
from dragoman_api.columns import Column, Description, Note, Object, ObjectList, ObjectsRequest
from dragoman_api.connections import Health, Server
from dragoman_api.console import Answer, AnswerKind
from dragoman_api.changes import HttpRequest, Outcome, Plan, PlannedRequest
from dragoman_api.exports import ExportPart
from dragoman_api.grid import Page, RowKey
from dragoman_api.hookspecs import hookimpl

def answer(value):
    return Server("answer", json.dumps(value))
"""

CONNECT = """
class Driver:
    @hookimpl
    async def ping(self):
        return Health(ok=True)

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=[], structure=json.dumps(attempt(name)))
"""


TRYING = """
import json, os, socket
from dragoman_api.hookspecs import hookimpl
from dragoman_api.columns import Description

def tries(act):
    try:
        act()
    except OSError as error:
        return error.errno
    return "done"

class Driver:
    @hookimpl
    async def describe_object(self, name):
"""
"""How a driver begins that tries what it must not: `tries` gives the number of the error."""


def attempts(body: str) -> str:
    """Return the source of a driver whose `describe_object(name)` runs a function's body."""
    return f"def attempt(name):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n{CONNECT}"


@dataclass
class Workshop:
    """Makes driver trees and workers."""

    folder: Path
    spare: Spare | None = None
    lines: list[str] = field(default_factory=list)
    denied: list[tuple[str, int | None]] = field(default_factory=list)

    def write(self, source: str, name: str = "tiny_driver") -> Path:
        """Write a driver's module into the tree."""
        tree = self.folder / "tree"
        tree.mkdir(exist_ok=True)
        (tree / f"{name}.py").write_text(HEAD + textwrap.dedent(source))
        return tree

    def worker(
        self,
        source: str,
        *,
        secrets: dict[str, str] | None = None,
        host: str = "db",
        port: int = 1,
        spare: Any = None,
        tls: dict[str, Any] | None = None,
        **options: Any,
    ) -> Worker:
        """Make a worker on a driver's source."""
        tree = self.write(source)
        profile = Profile(
            name="n", type="t", host=host, port=port, secrets=Secrets(values=secrets or {}), **(tls or {})
        )
        launch = Launch(driver="tiny_driver:Driver", trees=(tree,), profile=profile, **options)
        return self.start(launch, spare=spare)

    def start(self, launch: Launch, *, spare: Any = None) -> Worker:
        """Make a worker on what was written before."""
        return Worker(
            launch,
            spare=spare or self.spare,
            on_log=self.lines.append,
            on_denied=lambda host, port: self.denied.append((host, port)),
        )

    def again(self, source: str) -> Callable[[], Worker]:
        """Make what makes workers on a driver's source."""
        launch = Launch(driver="tiny_driver:Driver", trees=(self.write(source),))
        return lambda: self.start(launch)

    def attempting(self, body: str, **options: Any) -> Worker:
        """Make a worker whose `describe_object(name)` gives what `attempt(name)` returns, as JSON in `structure`."""
        return self.worker(attempts(body), **options)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """Return a folder for one test's drivers."""
    return Workshop(tmp_path)


@pytest.fixture
def full_level() -> None:
    """Skip, loudly, where the kernel cannot confine a driver."""
    if (report := achievable_level()).level != "full":
        pytest.skip(f"NOT SHOWN HERE, this machine gives only: {report}")
