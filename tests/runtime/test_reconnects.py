"""Reconnects: however often a session connects anew, it has one process with one HTTP client and one connection."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import anyio
import pytest
from aiohttp import web

import wheelhouse
from child_processes import children
from dragoman import SavedConnection
from dragoman.imports.loads import load
from dragoman_api.changes import HttpRequest
from dragoman_api.console import ConsoleRequest
from dragoman_api.errors import DragomanError, DriverCrashedError
from dragoman_sample.fakes.serving import FakeServer
from dragoman_worker.hooks_and_deadlines import HOOKS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")

ATTEMPTS = 10

CODE = """
import gc, json, os
from collections import Counter
import aiohttp
from dragoman_api import Answer, hookimpl
from dragoman_api.console import AnswerKind
from dragoman_api.http import Http
from .memory_driver import MemoryDriver

CONNECTS = []


class Driver(MemoryDriver):
    @hookimpl
    async def connect(self, profile, http):
        CONNECTS.append(http)
        await http.get_json("/")
        return await super().connect(profile, http)

    @hookimpl
    async def execute_console(self, request):
        if request.request.path == "/die":
            os._exit(5)
        held = Counter(kind.__name__ for kind in map(type, gc.get_objects()) if kind in (Http, aiohttp.ClientSession))
        text = json.dumps({**held, "connects": len(CONNECTS)})
        return Answer(kind=AnswerKind.TEXT, status=200, request=request.request, text=text)
"""


class Server(FakeServer):
    async def answer(self, request, path, query, raw):
        return web.json_response({})

    def connections(self):
        return len(self._runner.server.connections)


def request(path):
    return ConsoleRequest(request=HttpRequest("GET", path), writes=False)


@pytest.mark.slow
async def test_reconnects_leave_one_process_with_one_http_client(make_runtime):
    driver = wheelhouse.Driver("counting", code=CODE, hooks=list(HOOKS))
    async with Server() as server, make_runtime(driver, installed=True) as runtime:
        values = {"host": server.host, "port": server.port}
        runtime.connections.save(SavedConnection(name="there", type="counting", values=values))
        before = children()
        async with runtime.open("there") as session:
            for restart in range(1, 4):
                with pytest.raises(DriverCrashedError):
                    await session.execute(request("/die"))
                server.misbehave("answer", status=500, body={})
                for _ in range(ATTEMPTS):  # the process lives on, and each call connects it again
                    with pytest.raises(DragomanError, match="500"):
                        await session.objects()
                server.behave()
                held = json.loads((await session.execute(request("/count"))).text)
                assert held == {"Http": 1, "ClientSession": 1, "connects": ATTEMPTS + 1}, restart
                assert (len(children() - before), server.connections()) == (1, 1), restart
        with anyio.fail_after(5):
            while server.connections() or children() - before:
                await anyio.sleep(0.05)


SAYS_ITS_PROCESS = """
import os
from dragoman_api import hookimpl
from dragoman_api.connections import Server
from .memory_driver import MemoryDriver

class Driver(MemoryDriver):
    @hookimpl
    async def connect(self, profile, http, first_object=None):
        server = await super().connect(profile, http)
        return Server(server.product, str(os.getpid()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["plan", "apply"])
async def test_a_load_plans_again_what_the_drivers_process_took_along_unsent(
    make_runtime, tmp_path, monkeypatch, stage
):
    monkeypatch.setattr("dragoman.imports.load_run.AT_ONCE", 1)
    file = anyio.Path(tmp_path / "f.csv")
    await file.write_text("title\n" + "".join(f"t{at}\n" for at in range(40)))
    driver = wheelhouse.Driver("memory", code=SAYS_ITS_PROCESS, hooks=[*HOOKS])
    async with make_runtime(driver, installed=True) as runtime, runtime.open("memory") as session:
        call, ends = getattr(session, stage), iter([False, True, False, True])

        async def after_the_end(*arguments, **options):
            if next(ends, False):
                os.kill(int(session.server.version), signal.SIGKILL)
                if stage == "apply":
                    await anyio.sleep(0.2)
            return await call(*arguments, **options)

        monkeypatch.setattr(session, stage, after_the_end)
        report = await load(session, "scratch", file=Path(file), batch=10)
        assert (report.counts["applied"], report.rows, report.complete) == (40, 40, True)
        assert [event.name for event in runtime.seen].count("plugin.restarted") == 2


async def test_a_load_ends_where_the_process_ends_with_every_plan(make_runtime, tmp_path):
    file = anyio.Path(tmp_path / "f.csv")
    await file.write_text("title\na\n")
    code = SAYS_ITS_PROCESS + "    @hookimpl\n    async def plan_change(self, request): os._exit(3)\n"
    driver = wheelhouse.Driver("memory", code=code, hooks=[*HOOKS])
    async with make_runtime(driver, installed=True) as runtime, runtime.open("memory") as session:
        with pytest.raises(DriverCrashedError) as caught:
            await load(session, "scratch", file=Path(file))
        assert (caught.value.details["applied"], caught.value.details["unknown"]) == (0, 0)
