"""The conformance kit around its tests: guard, skips, pytest plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from api.loopback import http, serving
from api.test_memory_driver import PROFILE

from dragoman_api.changes import HttpRequest
from dragoman_api.columns import ObjectList
from dragoman_api.connections import Profile, Server
from dragoman_api.hookspecs import hookimpl
from dragoman_api.testing import DriverConformance, Target, deviates, opened, plugin
from dragoman_api.testing.target import hooks_of
from memory_driver import MemoryDriver

if TYPE_CHECKING:
    from pathlib import Path

# the guard ------------------------------------------------------------------------------------------------------------


def test_an_override_without_a_reason_is_refused():
    with pytest.raises(TypeError, match="test_pages_tile_the_rows"):

        class Weaker(DriverConformance):
            async def test_pages_tile_the_rows(self, target: Target) -> None: ...


def test_switching_a_promise_off_or_mixing_it_away_is_refused():
    class Mixin:
        test_a_filter_never_widens = None

    with pytest.raises(TypeError, match="test_a_filter_never_widens"):

        class Weaker(Mixin, DriverConformance):
            pass


def test_an_override_with_a_reason_stands():
    class Other(DriverConformance):
        @deviates("the server has no order")
        async def test_pages_tile_the_rows(self, target: Target) -> None: ...

    assert Other.test_pages_tile_the_rows.deviation == "the server has no order"
    with pytest.raises(ValueError, match="reason"):
        deviates(" ")


def test_every_promise_is_documented():
    for name in dir(DriverConformance):
        if name.startswith("test_"):
            assert getattr(DriverConformance, name).__doc__, name


# skips ----------------------------------------------------------------------------------------------------------------


class OnlyLists:
    @hookimpl
    async def list_objects(self, request):
        return ObjectList(objects=[])

    async def fetch_page(self, request):
        """No hook: it carries no mark."""


async def test_promises_about_hooks_that_a_driver_lacks_are_skipped():
    assert hooks_of(OnlyLists()) == {"list_objects"}
    target = Target(driver=OnlyLists(), object="books", rows=7)
    for name in ("test_pages_tile_the_rows", "test_an_open_connection_is_healthy"):
        with pytest.raises(pytest.skip.Exception, match=r"describe_object|ping"):
            await getattr(DriverConformance(), name)(target)


async def test_promises_that_need_more_of_the_target_are_skipped():
    await MemoryDriver().connect(PROFILE, None)
    target = Target(driver=MemoryDriver(), object="books", rows=23)
    with pytest.raises(pytest.skip.Exception, match="'scratch'"):
        await DriverConformance().test_planning_writes_nothing(target)


def test_the_memory_driver_has_every_hook():
    assert len(hooks_of(MemoryDriver())) == 21


async def test_opened_records_what_a_driver_sends_over_real_http():
    class Asks:
        @hookimpl
        async def connect(self, profile, http):
            await http.request("POST", "/a%2Fb", body="{}", read=True)
            await http.get_json("/c")
            return Server("x")

    async with serving(lambda request: http()) as server:
        profile = Profile(name="m", type="m", host="127.0.0.1", port=server.port)
        async with opened(Asks(), profile) as log:
            assert log == [HttpRequest("POST", "/a%2Fb", "{}"), HttpRequest("GET", "/c")]
    assert [request.target for request in server.requests] == ["/a%2Fb", "/c"]


# the pytest plugin ----------------------------------------------------------------------------------------------------

SUITE = """
import pytest
from dragoman_api.kit.filter_rows import holds
from dragoman_api.testing import DriverConformance, deviates

@pytest.mark.live("memory")
def test_server(live_server):
    assert live_server["url"]

@pytest.mark.live
def test_by_hand(): ...

@pytest.mark.live("other")
def test_other(live_server): ...

@pytest.mark.fake_only("E3: the fork is not built here")
def test_fork(): ...

class TestIt(DriverConformance):
    @pytest.fixture
    def target(self):
        pytest.skip("no server")

    @deviates("rows have no order")
    async def test_pages_tile_the_rows(self, target): ...
"""

SERVERS = [
    {"type": "memory", "engine": "memory", "version": "1.2", "url": "http://a"},
    {"type": "memory", "engine": "memory-2.0", "version": "2.0", "url": ""},
    {"type": "third", "engine": "third", "version": "3", "url": ""},
]


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(SUITE)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    options = ["-p", "no:cacheprovider", "-rs", "--strict-markers", *arguments]
    command = [sys.executable, "-m", "pytest", *options, "test_it.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
def test_without_servers_live_tests_are_skipped_with_a_reason(tmp_path):
    out = run_pytest(tmp_path).stdout
    assert "needs a real server: --live FILE.json" in out
    assert "engines tested" not in out
    assert "test_fork: E3: the fork is not built here" in out
    assert "test_pages_tile_the_rows: rows have no order" in out
    assert "1 passed" in out


@pytest.mark.slow
def test_with_servers_the_engines_are_told_and_go_into_the_junit_properties(tmp_path):
    (tmp_path / "live.json").write_text(json.dumps(SERVERS))
    out = run_pytest(tmp_path, "--live", "live.json", "--junitxml", "out.xml").stdout
    assert "memory 1.2: 1 passed" in out
    assert "memory-2.0: 1 failed" in out
    assert "third 3: NOT TESTED" in out
    assert "--live has no ['other']" in out
    properties = (tmp_path / "out.xml").read_text()
    assert 'name="engine" value="memory 1.2"' in properties
    assert 'name="engine" value="memory-2.0"' in properties


@pytest.mark.parametrize("text", ["{}", "[", '[{"type": "memory"}]', "[1]", None])
def test_a_file_that_is_no_list_of_servers_is_a_usage_error(tmp_path, text):
    path = tmp_path / "live.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(pytest.UsageError, match=r"--live .*live\.json: "):
        plugin._read(path)


def test_loading_the_plugin_pays_for_nothing_else():
    code = "import sys, pytest; import dragoman_api.testing.plugin; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"aiohttp", "msgspec", "hypothesis", "anyio", "dragoman_api.errors"} & {*loaded}
