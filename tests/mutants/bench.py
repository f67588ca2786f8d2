"""A process that tries mutants in a copy of the repository: one JSON line in, one out.

Its interpreter has imported what the tests need of other people's packages and nothing of this project, and forks for
each run: the fork imports the project's modules as they lie on disk at that moment. What a test starts as a process of
its own, such as a driver, reads the same files.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

_WARM = (
    "aiohttp", "aiohttp.web", "anyio.abc", "click", "graphql", "hypothesis.strategies", "installer", "jsonschema",
    "msgspec", "packaging.requirements", "platformdirs", "pluggy", "pydantic", "rich.console", "rich.table",
    "securesystemslib.signer", "sqlite3", "tomlkit", "tuf.api.metadata", "tuf.ngclient",
)  # fmt: skip
_OPTIONS = (
    "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler", "--hypothesis-seed=1",
    "-W", "ignore::pytest.PytestAssertRewriteWarning", "-m", "not slow and not live and not browser",
)  # fmt: skip


class _Chosen:
    """Runs only some tests, in a given order, and last those that are not known: a change may rename cases."""

    def __init__(self, names: list[str], known: list[str] | None) -> None:
        self._rank = {name: at for at, name in enumerate(names)}
        self._known = None if known is None else {*known}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._rank:
            kept = [item for item in items if item.nodeid in self._rank or self._is_new(item.nodeid)]
            items[:] = sorted(kept, key=lambda item: self._rank.get(item.nodeid, len(self._rank)))

    def _is_new(self, name: str) -> bool:
        return self._known is not None and name not in self._known


class _Verdict:
    """Remembers the first test that failed."""

    killer = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.killer:
            self.killer = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.killer:
            self.killer = report.nodeid


class _Watch:
    """Remembers which functions of watched files each test and its fixtures call, and how long it takes."""

    def __init__(self, files: list[str]) -> None:
        self._files = {str(Path(file).resolve()): file for file in files}
        self._called = set[tuple[str, str]]()
        self._made = dict[object, set[tuple[str, str]]]()
        self.tests: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Any:
        before, self._called = self._called, set()
        try:
            return (yield)
        finally:
            self._made[fixturedef] = self._called
            self._called = before | self._called

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._called = set()

        def watch(frame: Any, event: str, arg: object) -> None:
            del event, arg
            file = self._files.get(frame.f_code.co_filename)
            if file is not None:
                self._called.add((file, frame.f_code.co_qualname.split(".<locals>")[0]))

        start = time.monotonic()
        sys.settrace(watch)
        threading.settrace(watch)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            calls: dict[str, list[str]] = {}
            for file, name in sorted(self._called | self._shared(item)):
                calls.setdefault(file, []).append(name)
            self.tests[item.nodeid] = {"seconds": round(time.monotonic() - start, 3), "calls": calls}

    def _shared(self, item: pytest.Item) -> set[tuple[str, str]]:
        """Return what a test's fixtures called, also those that an earlier test set up."""
        info = getattr(item, "_fixtureinfo", None)
        fixtures = [each for found in info.name2fixturedefs.values() for each in found] if info else []
        return set().union(*(self._made.get(each, ()) for each in fixtures))


class Bench:
    """The process's side of the exchange."""

    def __init__(self) -> None:
        self._child = 0
        signal.signal(signal.SIGTERM, self._end)

    def serve(self) -> None:
        """Answer until the other side closes."""
        for name in _WARM:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        for line in sys.stdin:
            print(json.dumps(self._answer(json.loads(line))), flush=True)

    def _answer(self, job: dict[str, Any]) -> dict[str, Any]:
        if "file" not in job:
            return self._run(job)
        file = Path(job["file"])
        original = file.read_text(encoding="utf-8")
        file.write_text(job["code"], encoding="utf-8")
        try:
            return self._run(job)
        finally:
            file.write_text(original, encoding="utf-8")

    def _run(self, job: dict[str, Any]) -> dict[str, Any]:
        start = time.monotonic()
        reading, writing = os.pipe()
        self._child = os.fork()
        if not self._child:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _child(job, writing)
        os.close(writing)
        told = _read(reading, until=start + job["seconds"])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child, signal.SIGKILL)  # with whatever a test left behind
        os.waitpid(self._child, 0)
        self._child = 0
        told = {"outcome": "timeout"} if told is None else json.loads(told or '{"outcome": "killed", "killer": "died"}')
        return told | {"took": round(time.monotonic() - start, 2)}

    def _end(self, *_: object) -> None:
        if self._child:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child, signal.SIGKILL)
        os._exit(1)


def _read(pipe: int, *, until: float) -> bytes | None:
    """Read all that a child says, or None where it says nothing in time."""
    said = b""
    with open(pipe, "rb", buffering=0) as file:
        while select.select([file], [], [], max(0, until - time.monotonic()))[0]:
            part = file.read(1 << 16)
            if not part:
                return said
            said += part
    return None


def _child(job: dict[str, Any], pipe: int) -> None:
    with Path(os.devnull).open("r+b") as nothing, Path("bench.log").open("wb") as log:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    verdict, watch = _Verdict(), _Watch(job.get("watch", []))
    plugins = [verdict, _Chosen(job.get("chosen", []), job.get("known")), *([watch] if "watch" in job else [])]
    code = pytest.main([*_OPTIONS, *job["tests"]], plugins=plugins)
    outcome = {0: "survived", 5: "untested"}.get(int(code), "killed")
    said = json.dumps({"outcome": outcome, "killer": verdict.killer, "tests": watch.tests}).encode()
    with open(pipe, "wb") as file:
        file.write(said)
    os._exit(0)


if __name__ == "__main__":
    Bench().serve()
