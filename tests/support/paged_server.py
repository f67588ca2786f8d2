"""A stand-in server that answers pages in its own time, however many are asked for at once, and a driver for it."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from command_line import Machine
from dragoman_worker.hooks_and_deadlines import HOOKS
from wheelhouse import Driver, registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SOURCE = """
import anyio

from dragoman_api import Description, Server, hookimpl
from dragoman_api.columns import Column
from dragoman_api.exports import ExportPart, ExportSplit
from dragoman_api.kit.exchanges import read_together


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        self.http = http
        return Server("paged")

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=[Column(name="n", type="long", path=("n",))])

    @hookimpl
    async def split_export(self, request):
        return ExportSplit(shares=[str(at) for at in range(request.shares)], snapshot="s")

    @hookimpl
    async def hold_snapshot(self, request):
        return True

    @hookimpl
    async def export_rows(self, request):
        async with read_together([self.pages(request)]) as parts:
            async for part in parts:
                yield part

    async def pages(self, request):
        page = 0
        while page < PAGES:
            reply = await self.http.request("GET", f"/{request.share}/{page}", read=True)
            if reply.status == 429:
                yield ExportPart(data=b"", rows=0, turned_away=1)
                await anyio.sleep(0.1)
                continue
            yield ExportPart(data=reply.body, rows=ROWS)
            page += 1
"""
FORM = [
    {"name": "host", "label": "Host", "default": "127.0.0.1", "required": True},
    {"name": "port", "label": "Port", "kind": "integer", "default": 7700, "required": True},
]


@dataclass
class PagedServer:
    """A server of one object, whose shares all have the same pages.

    Attributes:
        pages: Pages of a share.
        rows: Rows of a page, of 580 bytes each.
        seconds: How long an answer takes.
        busy: How many of the next requests are turned away.
        asked: The time of each request and its share.
    """

    pages: int
    rows: int
    seconds: float
    busy: int = 0
    asked: list[tuple[float, str]] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        rows = (json.dumps({"n": at, "text": "x" * 560}).encode().ljust(579) + b"\n" for at in range(self.rows))
        self._page = b"".join(rows)

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append((time.monotonic(), request.match_info["share"]))
        if self.busy:
            self.busy -= 1
            return web.Response(status=429)
        await asyncio.sleep(self.seconds)
        return web.Response(body=self._page)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve on the loopback."""
        server = web.Application()
        server.router.add_get("/{share}/{page}", self._answer)
        runner = web.AppRunner(server)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.port = runner.addresses[0][1]
            yield
        finally:
            await runner.cleanup()

    def machine(self, folder: Path) -> Machine:
        """Return a machine with a connection `shop` to this server, whose driver is built here."""
        code = SOURCE.replace("PAGES", str(self.pages)).replace("ROWS", str(self.rows))
        wheel = Driver("paged", code=code, hooks=[hook for hook in HOOKS if f"def {hook}(" in code], form=FORM)
        machine = Machine(folder / "home", inside=False)
        machine("registry", "add", registry(folder / "team", [wheel.write(folder / "wheels")]))
        machine(f"dragoman connections add shop --type paged --port {self.port} --yes")
        return machine
