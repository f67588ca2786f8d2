"""A real server to test on, and the driver connected to it: Chroma starts in seconds, so there is no fake."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from drivers import rigging

from dragoman_api import ExportRequest, Profile
from dragoman_api.testing.target import opened
from dragoman_chroma.driver import Driver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from dragoman_api import Filter

BASE = "/api/v2/tenants/default_tenant/databases/default_database/collections"


def profile(url: str, **more: Any) -> Profile:
    """Make a profile of a server without credentials."""
    return rigging.profile_of(url, **{"name": "vectors", "type": "chroma"} | more)


def record(number: int, /, **metadata: Any) -> dict[str, Any]:
    """Return a record with a document, some metadata and an embedding."""
    return {
        "id": f"r{number:04}",
        "document": f"Document {number}",
        "metadata": metadata,
        "embedding": [number, 0.5, -1],
    }


class Rig(rigging.Rig):
    """A connected driver, and collections that are removed at the end."""

    path = f"{BASE}/{{}}"

    async def collection(self, records: Iterable[dict[str, Any]] = (), *, name: str = "") -> str:
        """Make a collection of records, and return its full name."""
        name = name or f"t{uuid4().hex[:10]}"
        definition = await self.call("POST", BASE, {"name": name})
        self.made.append(name)
        await self.load(definition["id"], records)
        return f"default_database/{name}"

    async def load(self, collection: str, records: Iterable[dict[str, Any]]) -> None:
        """Store records past the driver."""
        rows = [*records]
        for start in range(0, len(rows), 500):
            part = rows[start : start + 500]
            body: dict[str, Any] = {
                "ids": [row["id"] for row in part],
                "embeddings": [row.get("embedding", [1, 2, 3]) for row in part],
                "documents": [row.get("document") for row in part],
                "uris": [row.get("uri") for row in part],
                "metadatas": [row.get("metadata") or None for row in part],
            }
            await self.call("POST", f"{BASE}/{collection}/add", body)

    async def remove(self) -> None:
        """Remove what the test made, records first: the server keeps arrays of a dropped collection for others."""
        for name in self.made:
            response = await self.raw("GET", f"{BASE}/{name}")
            if response.status == 200:
                path = f"{BASE}/{response.json()['id']}"
                while ids := (await self.call("POST", f"{path}/get", {"limit": 1_000, "include": []}))["ids"]:
                    await self.call("POST", f"{path}/delete", {"ids": ids})
        await super().remove()

    async def stored(self, name: str, *ids: str) -> list[dict[str, Any]]:
        """Return records as the server holds them, past the driver."""
        definition = await self.call("GET", f"{BASE}/{name.rpartition('/')[2]}")
        include = ["documents", "uris", "metadatas", "embeddings"]
        body = {"include": include, **({"ids": [*ids]} if ids else {})}
        answer = await self.call("POST", f"{BASE}/{definition['id']}/get", body)
        parts = zip(*(answer[part] for part in ("ids", *include)), strict=True)
        return [dict(zip(("id", "document", "uri", "metadata", "embedding"), part, strict=True)) for part in parts]

    async def export(self, name: str, *rows: Filter, **more: Any) -> list[bytes]:
        """Export a collection, and return its lines."""
        compiled = await self.filter(name, *rows) if rows else None
        request = ExportRequest(object=name, filter=compiled, **more)
        return [line async for part in self.driver.export_rows(request) for line in part.data.splitlines()]


@asynccontextmanager
async def on_server(record: dict[str, Any], *, confined: bool = False, **more: Any) -> AsyncIterator[Rig]:
    """Connect a driver to a server, in this process or in its sandbox."""
    if confined:
        async with rigging.confined(Rig, Driver, profile(record["url"], **more)) as rig:
            yield rig
        return
    driver = Driver()
    async with opened(driver, profile(record["url"], **more)) as log:
        rig = Rig(driver, driver.http, log)
        try:
            yield rig
        finally:
            await rig.remove()
