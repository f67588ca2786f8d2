"""The pytest plugin: real servers by ``--live``, and a summary by engine at the end of a run."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from dragoman_api.connections import Profile

    Opener = Callable[[type, Profile], AbstractAsyncContextManager[Any]]

Server = dict[str, Any]

_MARKERS = (
    "live(*types): needs a real server, of one of the types if there are any; see --live",
    "fake_only(reason): a rule that no engine here can show",
)

_RAISED = re.compile(r"^driver: \w+ raised \w+ (at .+)$", re.MULTILINE)
_CONFORMANCE = f"{__package__}.conformance"

pytest.register_assert_rewrite(_CONFORMANCE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--live`` and the options that ``dragoman driver test`` passes."""
    text = "JSON list of real servers, each with type, engine, version and url; tests marked `live` run on them"
    group = parser.getgroup("dragoman")
    group.addoption("--live", metavar="FILE.json", type=Path, help=text)
    group.addoption("--open-with", metavar="MODULE:NAME", help="what `open_driver` opens drivers with: a sandbox")
    group.addoption("--report", metavar="FILE.json", type=Path, help="write the result of each conformance test")


def pytest_configure(config: pytest.Config) -> None:
    """Read the servers, and register the collector of the final summary."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    live = _Live(_read(config.getoption("--live")), report=config.getoption("--report"))
    config.pluginmanager.register(live, "dragoman-live")


def _read(path: Path | None) -> list[Server] | None:
    if path is None:
        return None
    try:
        servers = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"--live {path}: {error}") from error
    records: list[Any] = servers if isinstance(servers, list) else [{}]
    if not all(isinstance(record, dict) and {"type", "engine", "version"} <= {*record} for record in records):
        raise pytest.UsageError(f"--live {path}: not a list of servers with type, engine and version")
    return records


class _Live:
    """The servers of one run, and the results on them."""

    def __init__(self, servers: list[Server] | None, *, report: Path | None = None) -> None:
        self.servers = servers
        self.report = report
        self.conformance: dict[str, dict[str, str]] = {}
        self.results: Counter[tuple[str, str]] = Counter()
        self.of_test: dict[str, str] = {}
        self.listed: dict[str, list[str]] = {"fake_only": [], "deviates": []}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test that takes `live_server` once per server of its types."""
        if "live_server" not in metafunc.fixturenames:
            return
        types = {kind for mark in metafunc.definition.iter_markers("live") for kind in mark.args}
        fitting = [server for server in self.servers or [] if not types or server["type"] in types]
        if fitting:
            metafunc.parametrize("live_server", fitting, ids=_name, indirect=True, scope="session")
            return
        reason = "needs a real server: --live FILE.json" if self.servers is None else f"--live has no {sorted(types)}"
        absent = pytest.param(None, id="none", marks=pytest.mark.skip(reason=reason))
        metafunc.parametrize("live_server", [absent], indirect=True, scope="session")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skip tests marked `live` if there is no server."""
        for item in items:
            if item.get_closest_marker("live") and self.servers is None:
                item.add_marker(pytest.mark.skip(reason="needs a real server: --live FILE.json"))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Record what the final summary must list."""
        for item in session.items:
            if getattr(getattr(item, "function", None), "__module__", "").startswith(_CONFORMANCE):
                self.conformance[item.nodeid] = {"test": item.name, "engine": "fake", "outcome": "passed", "reason": ""}
            for mark in item.iter_markers("fake_only"):
                reason = mark.args[0] if mark.args else mark.kwargs.get("reason", "")
                self.listed["fake_only"].append(f"{item.nodeid}: {reason}")
            if reason := getattr(getattr(item, "function", None), "deviation", ""):
                self.listed["deviates"].append(f"{item.nodeid}: {reason}")
                self.conformance[item.nodeid] = {
                    "test": item.name, "engine": "fake", "outcome": "passed", "reason": f"deviates: {reason}"
                }  # fmt: skip
            callspec = getattr(item, "callspec", None)
            if callspec is not None and callspec.params.get("live_server"):
                self.of_test[item.nodeid] = _name(callspec.params["live_server"])
            if item.nodeid in self.conformance and item.get_closest_marker("live"):
                self.conformance[item.nodeid]["engine"] = self.of_test.get(item.nodeid, "no server")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count results by engine."""
        engine = self.of_test.get(report.nodeid)
        if engine and (report.when == "call" or (report.when == "setup" and not report.passed)):
            self.results[engine, report.outcome] += 1
        if report.nodeid in self.conformance and report.outcome != "passed":
            # A skip has file, line and reason; a failure has the exception.
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else _crash(report)
            self.conformance[report.nodeid] |= {"outcome": report.outcome, "reason": reason}

    def pytest_sessionfinish(self) -> None:
        """Write the report."""
        if self.report is not None:
            self.report.write_text(json.dumps(list(self.conformance.values()), indent=1), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List engines, rules that only a fake shows, and deviations from the contract."""
        write = terminalreporter.write_line
        if self.servers is not None:
            terminalreporter.section("engines tested")
        for engine in map(_name, self.servers or []):
            counts = {outcome: count for (name, outcome), count in self.results.items() if name == engine}
            write(f"{engine}: " + (", ".join(f"{n} {o}" for o, n in sorted(counts.items())) or "NOT TESTED"))
        for kind, title in (("fake_only", "fake-only rules"), ("deviates", "deviations from the contract")):
            if self.listed[kind]:
                terminalreporter.section(title)
                for line in self.listed[kind]:
                    write(line)


def _crash(report: pytest.TestReport) -> str:
    """Return why a test failed, and for an error that the driver raised the line that raised it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    reason = str(crash.message if crash is not None else report.longrepr)
    raised = _RAISED.findall(report.capstderr) if reason.startswith("dragoman_api.errors.") else []
    return f"{reason} {raised[-1]}" if raised and " at " not in reason.partition("inside the driver: ")[2] else reason


def _name(server: Server) -> str:
    engine, version = str(server["engine"]), str(server["version"])
    return engine if version in engine else f"{engine} {version}"


@pytest.fixture(scope="session")
def live_server(request: pytest.FixtureRequest, record_testsuite_property: Callable[[str, object], None]) -> Server:
    """Return one server of ``--live``: type, engine, version, url, host, port, tls, credentials."""
    server: Server = request.param
    record_testsuite_property("engine", _name(server))
    return server


@pytest.fixture(scope="session")
def open_driver(pytestconfig: pytest.Config) -> Opener:
    """Return an async context manager that opens a driver for a profile.

    Use it as ``async with open_driver(Driver, profile) as driver``. Under plain pytest the driver runs in this process,
    where a debugger can reach it; under ``dragoman driver test`` it runs in its sandbox.
    """
    if not (opener_name := pytestconfig.getoption("--open-with")):
        return _opened_here
    module, _, name = opener_name.partition(":")
    opener: Opener = getattr(import_module(module), name)
    return opener


@asynccontextmanager
async def _opened_here(driver: type, profile: Profile) -> AsyncIterator[Any]:
    from .blocking import sleep
    from .target import opened

    instance = driver()
    with patch("time.sleep", sleep):
        async with opened(instance, profile):
            yield instance
