"""What a driver does is the same where a server ends each connection after its answer, and over a slow link."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from drivers.rigging import Rig, connected, profile_of

from dragoman_api import CountRequest, Delete, Filter, Insert, ObjectsRequest, Update
from dragoman_api.exports import ExportRequest
from dragoman_elasticsearch.driver import Driver as Elasticsearch
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from dragoman_weaviate.driver import Driver as Weaviate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.slow

ROWS = 250
LINKS: dict[str, tuple[Any, ...]] = {
    "closes after each answer": ("closes", {"Connection": "close"}),
    "closes after each answer without saying so": ("closes", None),
    "sends each answer in pieces": ("trickles", None),
}


class Place(Rig):
    path = "/{}"
    name = "books"


@pytest.fixture(params=["elasticsearch", "weaviate"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    fake, driver = {"elasticsearch": (FakeElasticsearch, Elasticsearch), "weaviate": (FakeWeaviate, Weaviate)}[
        request.param
    ]
    async with fake() as server:
        profile = profile_of(server.url, name="shop", type=request.param)
        async with connected(Place, driver(), profile) as rig:
            rig.fake = server
            if request.param == "elasticsearch":
                await rig.call("PUT", "/books", {"mappings": {"properties": {"n": {"type": "integer"}}}})
                lines = [line for n in range(ROWS) for line in ({"index": {"_id": f"{n:03d}"}}, {"n": n})]
                await rig.call("POST", "/books/_bulk?refresh=true", "".join(f"{json.dumps(line)}\n" for line in lines))
                rig.text = "GET /books/_count"
            else:
                rig.name = "Books"
                properties = [{"name": "n", "dataType": ["int"]}]
                await rig.call("POST", "/v1/schema", {"class": "Books", "properties": properties})
                rows = [{"class": "Books", "id": uuid(n), "properties": {"n": n}} for n in range(ROWS)]
                await rig.call("POST", "/v1/batch/objects", {"objects": rows})
                rig.text = "GET /v1/schema/Books"
            yield rig


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


async def use(rig: Any, key: str) -> tuple[list[Any], Counter[tuple[str, str]]]:
    """Make a call of each kind; return what came of them, and the requests by path."""
    rig.fake.requests.clear()
    driver, name = rig.driver, rig.name
    objects = await driver.list_objects(ObjectsRequest())
    compiled = await rig.filter(name, Filter("n", ">=", "100"))
    pages = [await rig.page(name, Filter("n", "<", "150"), limit=40, offset=offset) for offset in (0, 40)]
    counts = [await driver.count_rows(CountRequest(object=name, filter=compiled)) for _ in range(2)]
    changes = []
    for change in (Insert(name, {"n": 7}, id=key), None, Delete):
        if change is None or change is Delete:
            row = next(row.key for row in (await rig.page(name, Filter("n", "=", "7"))).rows if row.key.id == key)
            change = Update(row, {"n": 7}) if change is None else Delete(row)
        changes += [(outcome.status, outcome.id) for outcome in await rig.apply(change)]
    answers = [answer.status for answer in await rig.console(f"{rig.text}\n{rig.text}")]
    parts = [part async for part in driver.export_rows(ExportRequest(object=name, filter=compiled))]
    lines = sum(part.data.count(b"\n") for part in parts)
    results = [
        [(node.name, node.rows) for node in objects],
        [[row["n"] for row in page.rows] for page in pages],
        counts, changes, answers, lines,
    ]  # fmt: skip
    requests = Counter((request.method, request.path.replace(key, "KEY")) for request in rig.fake.requests)
    return results, requests


@pytest.mark.parametrize("link", LINKS)
async def test_every_call_gives_the_same_and_sends_nothing_twice_over_a_bad_link(place: Any, link: str) -> None:
    await use(place, uuid(996))  # after which the driver knows the object
    good = await use(place, uuid(997))
    kind, headers = LINKS[link]
    place.fake.misbehave(kind, headers=headers, seconds=0.02)
    bad = await use(place, uuid(998))
    assert good[0][5] == ROWS - 100
    assert json.loads(json.dumps(bad[0], default=str).replace("998", "997")) == json.loads(
        json.dumps(good[0], default=str)
    )
    assert bad[1] == good[1]
