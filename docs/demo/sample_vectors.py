"""The sample of Weaviate: articles with vectors, and reviews by tenant, on a fake server until interrupted."""

from __future__ import annotations

import argparse
import json
import sys
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import aiohttp
import anyio

from .sample_cluster import FAKES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ARTICLES = 320
TENANTS = {"berlin": 12, "lisbon": 7}
_TYPES = {"title": "text", "section": "text", "words": "int", "score": "number", "published": "date", "free": "boolean"}
_DIMENSIONS = 8
_SECTIONS = ("science", "travel", "books", "cooking")
_WORDS = ("quiet", "river", "engine", "garden", "letter", "winter", "market", "signal", "copper", "island")


async def serve(port: int = 0) -> AsyncIterator[int]:
    """Serve the sample; yield the port once it is loaded, and serve until the iterator is closed."""
    if FAKES not in sys.path:
        sys.path.append(FAKES)
    from fakes.weaviate import FakeWeaviate

    async with FakeWeaviate(port=port) as server:
        async with aiohttp.ClientSession(server.url) as session:
            await _load(session)
        server.requests.clear()
        yield server.port


async def _load(session: aiohttp.ClientSession) -> None:
    properties = [{"name": name, "dataType": [kind]} for name, kind in _TYPES.items()]
    await _send(session, "schema", {"class": "Article", "properties": properties, "vectorizer": "none"})
    reviews = [{"name": "text", "dataType": ["text"]}, {"name": "stars", "dataType": ["int"]}]
    tenancy = {"class": "Review", "properties": reviews, "multiTenancyConfig": {"enabled": True}, "vectorizer": "none"}
    await _send(session, "schema", tenancy)
    await _send(session, "schema/Review/tenants", [{"name": name} for name in TENANTS])
    made = [_article(number) for number in range(ARTICLES)]
    made += [_review(name, number) for name, count in TENANTS.items() for number in range(count)]
    await _send(session, "batch/objects", {"objects": made})


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


async def _send(session: aiohttp.ClientSession, path: str, body: object) -> None:
    async with session.post(f"/v1/{path}", json=body) as response:
        answer = await response.json()
    failed = [one for one in answer if "errors" in one.get("result", {})] if isinstance(answer, list) else []
    if response.status >= 300 or failed:
        raise RuntimeError(f"POST /v1/{path} was answered {response.status}: {failed[:1] or answer}")


async def _main(port: int) -> None:
    async for served in serve(port):
        print(json.dumps({"port": served, "url": f"http://127.0.0.1:{served}"}), flush=True)
        await anyio.sleep_forever()


def main() -> None:
    """Parse the arguments and serve."""
    parser = argparse.ArgumentParser(prog="sample_vectors", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 for a free one (default)")
    try:
        anyio.run(_main, parser.parse_args().port)
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
