"""The workbench as its page sees it: a tab that is signed in, over real HTTP."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio

from dragoman import SavedConnection
from dragoman_workbench.serving import Workbench, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def shop(port: int, name: str = "shop", **more: str) -> SavedConnection:
    """Return a connection to the sample cluster."""
    values = {"host": "127.0.0.1", "port": port, "auth_method": "none", **more}
    return SavedConnection(name=name, type="elasticsearch", values=values)


class UnexpectedError(AssertionError):
    """An answer that the test did not expect."""


class Tab:
    """One tab of a browser.

    Attributes:
        place: The workbench.
        http: Its HTTP client, which sends an Origin header as browsers do.
        secret: What it got for its token.
    """

    def __init__(self, place: Workbench, http: aiohttp.ClientSession) -> None:
        self.place, self.http, self.secret = place, http, ""
        self.events: list[dict[str, Any]] = []

    async def enter(self, token: str | None = None) -> None:
        """Exchange a token, by default that of the entry file."""
        token = token or self.place.address().partition("token=")[2]
        self.secret = (await self("enter", token=token))["secret"]

    async def send(self, route: str, body: object, **headers: str) -> tuple[int, Any]:
        """Send a request, and return status and answer."""
        secret = {"Dragoman-Secret": self.secret} if self.secret else {}
        async with self.http.post(f"/api/{route}", json=body, headers=secret | headers) as answer:
            return answer.status, await answer.json()

    async def __call__(self, route: str, **body: object) -> Any:
        """Send a request that works, and return its answer."""
        status, answer = await self.send(route, body)
        if status != 200:
            raise UnexpectedError(f"{route}: {status} {json.dumps(answer)}")
        return answer

    async def failure(self, route: str, *, status: int = 422, **body: object) -> Any:
        """Send a request that fails with this status, and return its failure."""
        told, answer = await self.send(route, body)
        assert told == status, (route, told, answer)
        return answer["error"]

    async def listen(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        """Collect the event stream in `events`, until it ends or is cancelled."""
        async with self.http.get("/api/events", headers={"Dragoman-Secret": self.secret}) as stream:
            assert stream.status == 200, await stream.text()
            assert stream.headers["Content-Type"] == "text/event-stream"
            async for line in stream.content:
                if line.startswith(b"data: "):
                    self.events.append(json.loads(line[6:]))
                    if self.events[-1]["kind"] == "hello":
                        task_status.started()

    async def told(self, kind: str, **about: object) -> dict[str, Any]:
        """Wait for a message of the event stream."""
        with anyio.fail_after(20):
            while True:
                for event in self.events:
                    inner = event.get(kind) or {}
                    if event["kind"] == kind and (not about or about.items() <= inner.items()):
                        return event
                await anyio.sleep(0.01)


@asynccontextmanager
async def signed_in(home: Path | None = None, **options: Any) -> AsyncIterator[Tab]:
    """Serve a workbench, and sign a tab in."""
    async with serving(home, spare=False, **options) as place, tab_of(place) as tab:
        await tab.enter()
        yield tab


@asynccontextmanager
async def tab_of(place: Workbench) -> AsyncIterator[Tab]:
    """Open a tab that is not signed in."""
    timeout = aiohttp.ClientTimeout(total=40)
    async with aiohttp.ClientSession(place.url, headers={"Origin": place.url}, timeout=timeout) as http:
        yield Tab(place, http)


class Asked(Exception):  # noqa: N818 - the end of a request
    """What a room asks for: the method, its arguments, and the rows that it reads, if it reads rows."""


class Recorder:
    """Stands for open connections, their sessions, or the drivers: raises what it is asked for.

    Attributes:
        name: Of the one connection.
    """

    def __init__(self, name: str = "shop", *, choice: tuple[object, ...] = ()) -> None:
        self.name, self._choice = name, choice

    def rows(self, name: str, **choice: object) -> Recorder:
        """Return what stands for rows: their object and how they are chosen come with every call."""
        return Recorder(choice=(name, choice))

    def select(self, selection: object) -> Recorder:
        """Return what stands for the rows of a selection, which comes with every call."""
        return Recorder(choice=(selection,))

    async def session(self, name: str) -> Recorder:
        """Return itself as the session of the one connection."""
        assert name == self.name
        return self

    def __getattr__(self, method: str) -> Any:
        async def ask(*words: object, **options: object) -> None:
            raise Asked(method, words, options, *self._choice)

        return ask
