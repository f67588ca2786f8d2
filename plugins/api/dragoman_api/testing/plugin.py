"""The pytest plugin: real servers by ``--live``, and what was proven on which engine at the end of a run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

Server = dict[str, Any]

_MARKERS = (
    "live(*types): needs a real server, of one of the types if there are any; see --live",
    "fake_only(reason): a rule that no engine here can show",
)

pytest.register_assert_rewrite(f"{__package__}.promises")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--live``."""
    text = "JSON list of real servers, each with type, engine, version and url; tests marked `live` run on them"
    parser.getgroup("dragoman").addoption("--live", metavar="FILE.json", type=Path, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Read the servers and register the part that collects what the end of the run says."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    config.pluginmanager.register(_Live(_read(config.getoption("--live"))), "dragoman-live")


def _read(path: Path | None) -> list[Server] | None:
    if path is None:
        return None
    try:
        servers = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"--live {path}: {error}") from error
    records: list[Any] = servers if isinstance(servers, list) else [{}]
    if not all(isinstance(each, dict) and {"type", "engine", "version"} <= {*each} for each in records):
        raise pytest.UsageError(f"--live {path}: no list of servers with type, engine and version")
    return records


class _Live:
    """What one run knows of servers, and what it has proven on them."""

    def __init__(self, servers: list[Server] | None) -> None:
        self.servers = servers
        self.results: Counter[tuple[str, str]] = Counter()
        self.of_test: dict[str, str] = {}
        self.listed: dict[str, list[str]] = {"fake_only": [], "deviates": []}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test that takes `live_server` once per server of its types."""
        if "live_server" not in metafunc.fixturenames:
            return
        types = {kind for mark in metafunc.definition.iter_markers("live") for kind in mark.args}
        fitting = [each for each in self.servers or [] if not types or each["type"] in types]
        if fitting:
            metafunc.parametrize("live_server", fitting, ids=_name, indirect=True, scope="session")
            return
        reason = "needs a real server: --live FILE.json" if self.servers is None else f"--live has no {sorted(types)}"
        absent = pytest.param(None, id="none", marks=pytest.mark.skip(reason=reason))
        metafunc.parametrize("live_server", [absent], indirect=True, scope="session")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skip what is marked `live` when there is no server."""
        for item in items:
            if item.get_closest_marker("live") and self.servers is None:
                item.add_marker(pytest.mark.skip(reason="needs a real server: --live FILE.json"))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember what the end of the run has to list."""
        for item in session.items:
            for mark in item.iter_markers("fake_only"):
                reason = mark.args[0] if mark.args else mark.kwargs.get("reason", "")
                self.listed["fake_only"].append(f"{item.nodeid}: {reason}")
            if reason := getattr(getattr(item, "function", None), "deviation", ""):
                self.listed["deviates"].append(f"{item.nodeid}: {reason}")
            callspec = getattr(item, "callspec", None)
            if callspec is not None and callspec.params.get("live_server"):
                self.of_test[item.nodeid] = _name(callspec.params["live_server"])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count results by engine."""
        engine = self.of_test.get(report.nodeid)
        if engine and (report.when == "call" or (report.when == "setup" and not report.passed)):
            self.results[engine, report.outcome] += 1

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


def _name(server: Server) -> str:
    engine, version = str(server["engine"]), str(server["version"])
    return engine if version in engine else f"{engine} {version}"


@pytest.fixture(scope="session")
def live_server(request: pytest.FixtureRequest, record_testsuite_property: Callable[[str, object], None]) -> Server:
    """Give one server of ``--live``: type, engine, version, url, host, port, tls, credentials."""
    server: Server = request.param
    record_testsuite_property("engine", _name(server))
    return server
