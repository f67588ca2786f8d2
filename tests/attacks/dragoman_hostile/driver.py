"""The driver: makes an attack where a real one would look at an object."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dragoman_api import hookimpl
from dragoman_api.columns import Description, Object, ObjectList, ObjectsRequest
from dragoman_api.connections import Server
from dragoman_api.exports import ExportPart

from . import broker, files, host, kernel, network, programs, resources, wire  # noqa: F401 - each writes its attacks down
from .book import ATTACKS, outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api.connections import Profile
    from dragoman_api.exports import ExportRequest
    from dragoman_api.grid import Page, PageRequest


class Driver:
    """As hostile as it can be."""

    @hookimpl
    async def connect(self, profile: Profile, http: Any) -> Server:
        return Server("hostile", "1.0.0")

    @hookimpl
    async def list_objects(self, request: ObjectsRequest) -> ObjectList:
        return ObjectList(objects=[Object(name) for name in ATTACKS])

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        wanted = json.loads(name)
        end = await outcome(wanted["attack"], SimpleNamespace(**wanted["targets"]))
        return Description(object=wanted["attack"], columns=[], structure=end)

    @hookimpl
    async def fetch_page(self, request: PageRequest) -> Page | None:
        """Make an attack in place of a page, whose parts the host takes for cells."""
        await outcome(request.object, SimpleNamespace())
        return None

    @hookimpl
    async def export_rows(self, request: ExportRequest) -> AsyncIterator[ExportPart]:
        """Make an attack in place of an export."""
        await outcome(request.object, SimpleNamespace())
        yield ExportPart(data=b"", rows=0)
