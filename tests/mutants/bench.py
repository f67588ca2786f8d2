"""A process that tries mutants in a copy of the repository: one JSON line in, one out.

Its interpreter has imported what the tests need of other people's packages and nothing of this project, and forks for
each run: the fork imports the project's modules as they lie on disk at that moment. What a test starts as a process of
its own, such as a driver, reads the same files.

Importing and collecting takes longer than most tests. So a mutant is first tried in a fork of a process that has
collected the tests of its package, where only the code of the changed function is exchanged. A change that
survives there, or that is no change of a function, is tried in a process that imports everything again.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib
import itertools
import json
import os
import select
import shutil
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WARM = (
    "aiohttp", "aiohttp.web", "anyio.abc", "click", "graphql", "hypothesis.strategies", "installer", "jsonschema",
    "msgspec", "packaging.requirements", "platformdirs", "pluggy", "pydantic", "rich.console", "rich.table",
    "securesystemslib.signer", "sqlite3", "tomlkit", "tuf.api.metadata", "tuf.ngclient",
)  # fmt: skip
_OPTIONS = (
    "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler", "--hypothesis-seed=1",
    "-W", "ignore::pytest.PytestAssertRewriteWarning", "-o", "timeout=600",  # see a job's `seconds`
    "-m", "not slow and not live and not browser",
    "--deselect=tests/test_architecture.py::test_a_small_module_has_two_readers_or_a_reason",  # marking changes lines
)  # fmt: skip


_SERVING = 6
"""How many processes that have collected tests are kept."""


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


class _Marked(ast.NodeTransformer):
    """Marks every function of a file with a call that tells of it; tracing all calls would take much longer."""

    def __init__(self, file: str) -> None:
        self._file, self._classes, self._function = file, list[str](), ""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._classes.append(node.name)
        self.generic_visit(node)
        self._classes.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        around, self._function = self._function, self._function or ".".join([*self._classes, node.name])
        self.generic_visit(node)
        told = f"__import__('sys').__dict__.get('called', max)({self._file!r}, {self._function!r})"
        node.body.insert(int(ast.get_docstring(node) is not None), ast.parse(told).body[0])
        self._function = around
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - as the base class calls it


def marked(file: str, text: str) -> str:
    """Return the text of a file whose functions call `sys.called` with the file and their name, where there is one."""
    try:
        return ast.unparse(_Marked(file).visit(ast.parse(text)))
    except ValueError:  # an expression that cannot be written again
        return text


class _Watch:
    """Remembers which functions of watched files each test and its fixtures call, and how long it takes."""

    def __init__(self) -> None:
        self._called = set[tuple[str, str]]()
        self._made = dict[object, set[tuple[str, str]]]()
        self._making = dict[int, set[tuple[str, str]]]()  # what makes a value of a cache just now
        self.tests: dict[str, dict[str, Any]] = {}
        sys.__dict__["called"] = lambda file, function: self._note({(file, function)})

    def _note(self, calls: set[tuple[str, str]]) -> None:
        self._called |= calls
        for each in [*self._making.values()]:
            each |= calls

    def remembering(self, lru_cache: Callable[..., Any]) -> Callable[..., Any]:
        """Return a `functools.lru_cache` for which taking a value counts as all the calls that once made it."""

        def cached(maxsize: Any = 128, typed: bool = False) -> Any:
            if callable(maxsize):
                return self._remembered(lru_cache(maxsize))
            return lambda function: self._remembered(lru_cache(maxsize, typed)(function))

        return cached

    def _remembered(self, function: Any) -> Any:
        made = defaultdict[int, set[tuple[str, str]]](set)

        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            calls = made[hash((given, *named.items()))]
            self._making[id(calls)] = calls
            try:
                return function(*given, **named)
            finally:
                self._making.pop(id(calls), None)
                self._note(calls)

        call.__dict__.update({name: getattr(function, name) for name in ("__wrapped__", "cache_info", "cache_clear")})
        return call

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
        start = time.monotonic()
        try:
            return (yield)
        finally:
            calls: dict[str, list[str]] = {}
            for file, name in sorted(self._called | self._shared(item)):
                calls.setdefault(file, []).append(name)
            self.tests[item.nodeid] = {"seconds": round(time.monotonic() - start, 3), "calls": calls}

    def _shared(self, item: pytest.Item) -> set[tuple[str, str]]:
        """Return what a test's fixtures called, including those that an earlier test set up."""
        info = getattr(item, "_fixtureinfo", None)
        fixtures = [each for found in info.name2fixturedefs.values() for each in found] if info else []
        return set().union(*(self._made.get(each, ()) for each in fixtures))


class _Serving:
    """Runs some of the collected tests for each job, in a fork; no test runs in this process itself."""

    def __init__(self, jobs: int, answers: int, verdict: _Verdict) -> None:
        self._jobs, self._answers, self._verdict = jobs, answers, verdict

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        gc.unfreeze()  # a frozen object is not listed
        loaded = [each for each in gc.get_objects() if type(each) is FunctionType]
        gc.freeze()
        _say(self._answers, ready=True)
        with open(self._jobs, encoding="utf-8", closefd=False) as jobs:
            for line in jobs:
                child = os.fork()
                if not child:
                    os.setsid()
                    _say(self._answers, pid=os.getpid())
                    self._try(session, json.loads(line), loaded)
                os.waitpid(child, 0)
                _say(self._answers, ended=True)
        os._exit(0)

    def _try(self, session: pytest.Session, job: dict[str, Any], loaded: list[FunctionType]) -> None:
        outcome = "unpatched"
        try:
            if "file" not in job or exchange(job["file"], job["original"], job["code"], job["function"], loaded):
                items = {item.nodeid: item for item in session.items}
                session.items = [items[name] for name in job["chosen"] if name in items]
                with contextlib.suppress(session.Failed, session.Interrupted):
                    session.config.pluginmanager.getplugin("main").pytest_runtestloop(session)  # type: ignore[union-attr]
                outcome = "killed" if session.testsfailed else "survived"
        except BaseException:  # noqa: BLE001 - a change may end pytest itself
            outcome = "killed"
        _say(self._answers, outcome=outcome, killer=self._verdict.killer)
        os._exit(0)


def _say(pipe: int, **words: Any) -> None:
    os.write(pipe, json.dumps(words).encode() + b"\n")


def exchange(file: str, original: str, code: str, function: str, loaded: list[FunctionType]) -> bool:
    """Exchange a function's code in the modules that are loaded; tell whether that is all of the change.

    Args:
        file: Of the module.
        original: Its text as it was loaded.
        code: Its text after the change.
        function: The outermost function around the change, as `__qualname__` names it.
        loaded: All functions there are.
    """
    path = str(Path(file).resolve())
    if not any(getattr(module, "__file__", None) == path for module in list(sys.modules.values())):
        return True  # it will be loaded as it lies on disk
    before, after = (compile(text, path, "exec", dont_inherit=True) for text in (original, code))
    if not function or _without(before, function) != _without(after, function):
        return False  # what is done while the module is loaded differs
    pairs = list(zip(_codes(before, function), _codes(after, function), strict=True))
    there = [each for each in loaded if each.__code__.co_filename == path]
    exchanged = False
    for old, new in pairs:
        for each in there:
            if each.__code__ == old:
                if len(each.__code__.co_freevars) != len(new.co_freevars):
                    return False
                each.__code__ = new
                exchanged = True
    return exchanged


def _codes(code: CodeType, function: str) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_qualname == function:
                yield each
            else:
                yield from _codes(each, function)


def _without(code: CodeType, function: str) -> CodeType:
    """Return a module's code without that of a function and without line numbers."""
    kept = tuple(_one_without(each, function) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_consts=kept, co_linetable=b"", co_firstlineno=0)


def _one_without(code: CodeType, function: str) -> CodeType | str:
    return function if code.co_qualname == function else _without(code, function)


class _Collected:
    """A process that has collected some files of tests and runs a choice of them for each job."""

    def __init__(self, tests: list[str]) -> None:
        reading, self._jobs = os.pipe()
        answers, writing = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            for pipe in {*range(3, 1024)} - {reading, writing}:  # of others like it, which would not see their end
                with contextlib.suppress(OSError):
                    os.close(pipe)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            verdict = _Verdict()
            _quiet()
            pytest.main([*_OPTIONS, *tests], plugins=[verdict, _Serving(reading, writing, verdict)])
            os._exit(1)
        os.close(reading)
        os.close(writing)
        self._answers = _Lines(answers)
        self._child = 0
        if self._answers.next(time.monotonic() + 900) is None:
            self.close()

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run the chosen tests; nothing is known (`unpatched`) where they were not collected."""
        if self.closed:
            return {"outcome": "unpatched"}
        _say(self._jobs, **job)
        told = {"outcome": "killed", "killer": "died"}
        until = time.monotonic() + job["seconds"]
        while (said := self._answers.next(until)) is None or "ended" not in said:
            if said is None and told["outcome"] == "timeout":
                self.close()
                break
            if said is not None and "pid" in said:
                self._child = said["pid"]
                continue
            told, until = said or {"outcome": "timeout"}, time.monotonic() + 30
            self._kill()
        self._kill()
        self._child = 0
        return told

    def _kill(self) -> None:
        """End what runs, with whatever a test left behind."""
        if self._child:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child, signal.SIGKILL)

    def close(self) -> None:
        """End the process."""
        self._kill()
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            os.close(self._jobs)
            self._answers.close()
        self._pid = 0

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return not self._pid


class _Lines:
    """Reads lines of JSON from a pipe."""

    def __init__(self, pipe: int) -> None:
        self._pipe, self._read = pipe, b""

    def next(self, until: float) -> dict[str, Any] | None:
        """Read a line; None where it does not arrive in time, or the other side has ended."""
        while b"\n" not in self._read:
            if not select.select([self._pipe], [], [], max(0, until - time.monotonic()))[0]:
                return None
            part = os.read(self._pipe, 1 << 16)
            if not part:
                return None
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        return dict(json.loads(line))

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._pipe)


class Bench:
    """The process's side of the exchange."""

    def __init__(self) -> None:
        self._child = 0
        self._times = itertools.count(1)  # bytecode of a text of the same size and second would be taken for another's
        self._collected: dict[tuple[str, ...], _Collected] = {}
        signal.signal(signal.SIGTERM, self._end)

    def serve(self) -> None:
        """Answer until the other side closes."""
        for name in _WARM:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        for line in sys.stdin:
            print(json.dumps(self._answer(json.loads(line))), flush=True)

    def _answer(self, job: dict[str, Any]) -> dict[str, Any]:
        act: Callable[[dict[str, Any]], dict[str, Any]] = self._run_collected if "function" in job else self._run
        try:
            with contextlib.ExitStack() as stack:
                for name in job.get("watch", ()):
                    stack.enter_context(self._changed(name, marked(name, Path(name).read_text(encoding="utf-8"))))
                if "function" in job:
                    self._collect(job)  # before the file is changed
                if "file" not in job:
                    return act(job)
                original = stack.enter_context(self._changed(job["file"], job["code"]))
                return act(job | {"original": original})
        finally:
            for folder in Path(os.environ["TMPDIR"]).glob("pytest-of-*"):
                shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _changed(self, name: str, text: str) -> Iterator[str]:
        """Write another text into a file; the context is the original one, which comes back."""
        file = Path(name)
        original, written = file.read_text(encoding="utf-8"), file.stat().st_mtime_ns
        file.write_text(text, encoding="utf-8")
        os.utime(file, (0, next(self._times)))
        try:
            yield original
        finally:
            file.write_text(original, encoding="utf-8")
            os.utime(file, ns=(written, written))

    def _collect(self, job: dict[str, Any]) -> None:
        key = tuple(job["tests"])
        if key in self._collected and self._collected[key].closed:
            del self._collected[key]
        if key not in self._collected:
            if len(self._collected) == _SERVING:
                self._collected.pop(next(iter(self._collected))).close()
            self._collected[key] = _Collected(job["tests"])

    def _run_collected(self, job: dict[str, Any]) -> dict[str, Any]:
        start = time.monotonic()
        return self._collected[tuple(job["tests"])].run(job) | {"took": round(time.monotonic() - start, 2)}

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
        for each in self._collected.values():
            each.close()
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


def _quiet() -> None:
    with Path(os.devnull).open("r+b") as nothing, Path("bench.log").open("wb") as log:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


def _child(job: dict[str, Any], pipe: int) -> None:
    _quiet()
    verdict, watch = _Verdict(), _Watch()
    if "watch" in job:
        functools.lru_cache = watch.remembering(functools.lru_cache)  # `functools.cache` asks it too
    plugins = [verdict, _Chosen(job.get("chosen", []), job.get("known")), *([watch] if "watch" in job else [])]
    code = pytest.main([*_OPTIONS, *job["tests"]], plugins=plugins)
    outcome = {0: "survived", 5: "untested"}.get(int(code), "killed")
    said = json.dumps({"outcome": outcome, "killer": verdict.killer, "tests": watch.tests}).encode()
    with open(pipe, "wb") as file:
        file.write(said)
    os._exit(0)


if __name__ == "__main__":
    Bench().serve()
