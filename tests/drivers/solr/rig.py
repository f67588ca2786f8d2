"""A server to test on, the driver connected to it, and cores that are removed at the end."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from drivers import rigging

from dragoman_api import ExportRequest, Profile
from dragoman_api.testing.target import opened
from dragoman_solr.driver import Driver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from dragoman_api import Filter


def profile(url: str, **more: Any) -> Profile:
    """Make a profile of a server without credentials."""
    return rigging.profile_of(url, **{"name": "search", "type": "solr"} | more)


class Rig(rigging.Rig):
    """A connected driver, and cores that are removed at the end."""

    async def core(self, documents: Iterable[dict[str, Any]] = (), *, name: str = "") -> str:
        """Make a core of documents, and return its name."""
        name = name or f"t{uuid4().hex[:10]}"
        await self.call("GET", f"/solr/admin/cores?action=CREATE&name={name}&configSet=tests")
        self.made.append(name)
        await self.load(name, documents)
        return name

    async def load(self, name: str, documents: Iterable[dict[str, Any]]) -> None:
        """Store documents past the driver, and let searches see them."""
        await self.call("POST", f"/solr/{name}/update?commit=true", [*documents])

    async def remove(self) -> None:
        """Remove the cores and what they keep on the disk."""
        for name in self.made:
            await self.raw("GET", f"/solr/admin/cores?action=UNLOAD&core={name}&deleteInstanceDir=true")

    async def stored(self, name: str, key: str) -> dict[str, Any] | None:
        """Return a document as the server holds it, past the driver."""
        answer = await self.call("POST", f"/solr/{name}/get", {"params": {"id": key}})
        document: dict[str, Any] | None = answer["doc"]
        return document

    async def export(self, name: str, *rows: Filter, **more: Any) -> list[bytes]:
        """Export a core, and return its lines."""
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
