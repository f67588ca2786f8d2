"""The sample servers with their data: a bookshop, a library with vectors, and metrics.

`python -m dragoman_sample.servers [PORT]...` serves all of them on free ports, but none of these, until its standard
input ends.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
import time
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import aiohttp
import anyio
import anyio.to_thread
from yarl import URL

from . import bookshop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator
    from contextlib import AbstractAsyncContextManager

HOST = "127.0.0.1"
"""Nothing else can reach a sample."""

INDICES = ("books", "orders")
ARTICLES = 320
TENANTS = {"berlin": 12, "lisbon": 7}
HOURS = 3
"""The time before now that the metrics cover."""

_TYPES = {"title": "text", "section": "text", "words": "int", "score": "number", "published": "date", "free": "boolean"}
_DIMENSIONS = 8
_SECTIONS = ("science", "travel", "books", "cooking")
_WORDS = ("quiet", "river", "engine", "garden", "letter", "winter", "market", "signal", "copper", "island")
_STEP = 15_000
_INSTANCES = ("web-1:8080", "web-2:8080")


class SampleServer(NamedTuple):
    """A sample, as a saved connection names it.

    Attributes:
        name: The name of the connection.
        type: The type of the connection.
        holds: What there is to see.
        usual_port: The port that such a server usually has.
        read: A command that reads rows of it, with `{name}` for the name of the connection.
        serve: Serves it on this port, the next free one, or any for 0, while the block runs; yields the port. It avoids
            the ports of the second argument.
    """

    name: str
    type: str
    holds: str
    usual_port: int
    read: str
    serve: Callable[[int, Collection[int]], AbstractAsyncContextManager[int]]


@dataclass(frozen=True, kw_only=True)
class ServedSample:
    """A sample that is served, and where."""

    name: str
    type: str
    holds: str
    host: str
    port: int
    read: str


@asynccontextmanager
async def serving(
    names: Collection[str] = (), *, port: int | None = None, avoided: Collection[int] = ()
) -> AsyncIterator[list[ServedSample]]:
    """Serve samples on the loopback interface while the block runs.

    Args:
        names: The samples; all of them if it is empty.
        port: The first port to try; None for the usual ports of such servers, 0 for any free ones.
        avoided: Ports that other servers are expected at, though nothing may listen there now.

    Yields:
        The samples, once their data is loaded.
    """
    async with AsyncExitStack() as stack:
        served: list[ServedSample] = []
        for sample in SAMPLES:
            if not names or sample.name in names:
                first = sample.usual_port if port is None else port
                bound = await stack.enter_async_context(sample.serve(first, avoided))
                fields = {key: getattr(sample, key) for key in ("name", "type", "holds", "read")}
                served.append(ServedSample(**fields, host=HOST, port=bound))
        yield served


def free_port(first: int, avoided: Collection[int] = ()) -> int:
    """Return this port or the next free one, but none of the avoided ones; 0 stays 0 if there are none."""
    following = range(first, min(first + 100, 65_536)) if first else ()
    chosen = [0] * (len(avoided) + 1)  # the system may choose each of them once
    with ExitStack() as probes:
        for port in (*following, *chosen):
            if port in avoided or not (port or avoided):
                continue
            probe = probes.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            if (bound := probe.getsockname()[1]) not in avoided:
                return bound  # type: ignore[no-any-return]
    return 0


# the bookshop ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving_bookshop(port: int = 0, avoided: Collection[int] = ()) -> AsyncIterator[int]:
    """Serve the bookshop as an Elasticsearch would, on this port or the next free one, and yield the port."""
    from .fakes.elasticsearch import FakeElasticsearch

    async with FakeElasticsearch(guarded=True) as server:  # on a port of its own, so that nobody reads a part
        await load(server.url)
    server.port = free_port(port, avoided)
    async with server:
        yield server.port


async def load(url: str, *, prefix: str = "", verify: bool = True) -> list[str]:
    """Create `books` and `orders` in a cluster and fill them.

    Args:
        url: Address of the cluster, with user name and password if it requires them.
        prefix: Put before both names; existing indices are never changed.
        verify: Whether the server's certificate is checked.

    Returns:
        The names of the indices.

    Raises:
        RuntimeError: The cluster refuses; the indices created until then are removed.
    """
    created: list[str] = []
    async with _session(url, verify=verify) as session:
        try:
            for name in INDICES:
                await _load_index(session, name, prefix + name, created)
        except BaseException:
            with anyio.CancelScope(shield=True):
                for index in created:
                    await _send(session, "DELETE", f"/{index}")
            raise
    return created


async def remove(url: str, *, prefix: str = "", verify: bool = True) -> None:
    """Delete the two indices that `load` created under this prefix."""
    async with _session(url, verify=verify) as session:
        for name in INDICES:
            await _send(session, "DELETE", f"/{prefix}{name}")


async def _load_index(session: aiohttp.ClientSession, name: str, index: str, created: list[str]) -> None:
    settings = {"number_of_shards": bookshop.SHARDS[name], "number_of_replicas": 0}
    body = {"settings": settings, "mappings": {"properties": bookshop.MAPPINGS[name]}}
    await _send(session, "PUT", f"/{index}", json.dumps(body).encode())
    created.append(index)
    for part in bookshop.bulk_bodies(name):
        answer = await _send(session, "POST", f"/{index}/_bulk", part, "application/x-ndjson")
        if answer["errors"]:
            first = next(item for item in answer["items"] if "error" in next(iter(item.values())))
            raise RuntimeError(f"the cluster refused a document of {index}: {first}")
    await _send(session, "POST", f"/{index}/_refresh")


def _session(url: str, *, verify: bool) -> aiohttp.ClientSession:
    address = URL(url)
    headers = {}
    if address.user is not None:
        pair = f"{address.user}:{address.password or ''}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    connector = aiohttp.TCPConnector(ssl=verify)
    timeout = aiohttp.ClientTimeout(total=120)
    return aiohttp.ClientSession(address.with_user(None), headers=headers, connector=connector, timeout=timeout)


async def _send(
    session: aiohttp.ClientSession, method: str, path: str, body: bytes | None = None, media: str = "application/json"
) -> Any:
    headers = {"Content-Type": media} if body is not None else {}
    async with session.request(method, path, data=body, headers=headers) as response:
        answer = await response.json()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path} was answered {response.status}: {answer['error']}")
        return answer


# the library ----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving_library(port: int = 0, avoided: Collection[int] = ()) -> AsyncIterator[int]:
    """Serve articles with vectors, and reviews by tenant, as a Weaviate would, as `serving_bookshop` does."""
    from .fakes.weaviate import FakeWeaviate

    async with FakeWeaviate(guarded=True) as server, aiohttp.ClientSession(server.url) as session:
        await _load_library(session)
    server.port = free_port(port, avoided)
    async with server:
        yield server.port


async def _load_library(session: aiohttp.ClientSession) -> None:
    properties = [{"name": name, "dataType": [kind]} for name, kind in _TYPES.items()]
    await _post(session, "schema", {"class": "Article", "properties": properties, "vectorizer": "none"})
    reviews = [{"name": "text", "dataType": ["text"]}, {"name": "stars", "dataType": ["int"]}]
    tenancy = {"class": "Review", "properties": reviews, "multiTenancyConfig": {"enabled": True}, "vectorizer": "none"}
    await _post(session, "schema", tenancy)
    await _post(session, "schema/Review/tenants", [{"name": name} for name in TENANTS])
    objects = [_article(number) for number in range(ARTICLES)]
    objects += [_review(name, number) for name, count in TENANTS.items() for number in range(count)]
    await _post(session, "batch/objects", {"objects": objects})


def _article(number: int) -> dict[str, Any]:
    chance = Random(number)
    values = {
        "title": f"The {chance.choice(_WORDS)} {chance.choice(_WORDS)} {number}",
        "section": chance.choice(_SECTIONS),
        "words": chance.randrange(200, 4_000),
        "score": round(chance.random() * 10, 3),
        "published": f"2025-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}T08:00:00Z",
        "free": chance.random() < 0.4,
    }
    vector = [round(chance.uniform(-1, 1), 4) for _ in range(_DIMENSIONS)]
    return {"class": "Article", "id": str(UUID(int=number + 1, version=4)), "properties": values, "vector": vector}


def _review(tenant: str, number: int) -> dict[str, Any]:
    values = {"text": f"Review {number} of {tenant}", "stars": number % 5 + 1}
    return {"class": "Review", "id": str(UUID(int=number + 1, version=4)), "properties": values, "tenant": tenant}


async def _post(session: aiohttp.ClientSession, path: str, body: object) -> None:
    async with session.post(f"/v1/{path}", json=body) as response:
        answer = await response.json()
    failed = [item for item in answer if "errors" in item.get("result", {})] if isinstance(answer, list) else []
    if response.status >= 300 or failed:
        raise RuntimeError(f"POST /v1/{path} was answered {response.status}: {failed[:1] or answer}")


# the metrics ----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving_metrics(port: int = 0, avoided: Collection[int] = ()) -> AsyncIterator[int]:
    """Serve requests and temperatures of the last hours as a Prometheus would, as `serving_bookshop` does."""
    from .fakes.prometheus import FakePrometheus
    from .fakes.serving import serving

    store = FakePrometheus(_samples(int(time.time() * 1000)))
    store.seen = None
    async with serving(store, port=free_port(port, avoided), guarded=True) as (_, _, bound):
        yield bound


def _samples(now: int) -> Iterator[tuple[dict[str, str], int, Any]]:
    chance = Random(1)
    totals: dict[tuple[str, str], float] = {}
    for at in range(now - HOURS * 3_600_000, now, _STEP):
        for instance in _INSTANCES:
            labels = {"instance": instance, "job": "web"}
            yield {"__name__": "up", **labels}, at, 1.0
            for code, limit in (("200", 90), ("404", 4), ("500", 2)):
                totals[instance, code] = totals.get((instance, code), 0.0) + chance.randrange(limit)
                yield {"__name__": "http_requests_total", "code": code, **labels}, at, totals[instance, code]
            yield {"__name__": "http_requests_in_flight", **labels}, at, float(chance.randrange(20))
        for room in ("cellar", "roof"):
            degrees = round(12 + chance.random() * 9, 2)
            yield {"__name__": "temperature_celsius", "room": room}, at, degrees


SAMPLES = (
    SampleServer(
        "shop",
        "elasticsearch",
        "Books and orders of a bookshop",
        9200,
        "dragoman page {name} orders --filter 'total >= 100' --sort -total --limit 5 --columns _id,total,items.sku",
        serving_bookshop,
    ),
    SampleServer(
        "library",
        "weaviate",
        "Articles with vectors, and reviews by tenant",
        8080,
        "dragoman page {name} Article --filter 'words > 3000' --sort -score --limit 5",
        serving_library,
    ),
    SampleServer(
        "metrics",
        "prometheus",
        "Requests and temperatures of the last three hours",
        9090,
        "dragoman page {name} http_requests_total --limit 5",
        serving_metrics,
    ),
)


async def _serve_until_input_ends() -> None:
    from msgspec import json as msgspec_json

    async with serving(port=0, avoided=[int(word) for word in sys.argv[1:]]) as samples:
        sys.stdout.write(msgspec_json.encode(samples).decode() + "\n")
        sys.stdout.flush()
        # The process that started this one may be killed: its end of the pipe then closes, too.
        await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)


if __name__ == "__main__":
    anyio.run(_serve_until_input_ends)
