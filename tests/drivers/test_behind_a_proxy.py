"""Both drivers behind a proxy that serves the database below a path, and wants headers of its own."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from api.loopback import http, serving
from drivers.elasticsearch import rig as elasticsearch
from drivers.weaviate import rig as weaviate

from dragoman_api import ConnectionFailedError, Delete, ExportRequest, Insert, RowKey
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.errors import DragomanError
from dragoman_api.remedies import Remedy
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from fakes.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from dragoman_api import Profile

EMPTY: Mapping[str, str] = {}
GATE = {"X-Gate": "open-s3same", "X-Tenant": "blue"}


def connected(driver: str, profile: Profile) -> AbstractAsyncContextManager[Any]:
    """Connect a driver of that kind."""
    return weaviate.connected(profile) if driver == "weaviate" else elasticsearch.connected(profile, version="8.19.21")


@asynccontextmanager
async def below(
    prefix: str, driver: str, *, required: dict[str, str] | None = None, **given: Any
) -> AsyncIterator[Any]:
    """Connect a driver through a proxy to a fake server of its kind."""
    room, fake = {"elasticsearch": (elasticsearch, FakeElasticsearch), "weaviate": (weaviate, FakeWeaviate)}[driver]
    async with fake() as server, Proxy(upstream=server.url, prefix=prefix, required=required) as proxy:
        options = {"path_prefix": prefix, **given.pop("options", {})}
        profile = room.profile(proxy.url, options=options, **given)
        async with connected(driver, profile) as rig:
            yield rig
        assert server.faults == []


async def work(rig: Any, driver: str) -> None:
    """Create, read, page, export, ask in the console and delete."""
    if driver == "elasticsearch":
        name = await rig.index({"n": {"type": "long"}}, [{"n": 1}, {"n": 2}])
        texts = [f"GET /{name}/_count", f'POST /{name}/_search\n{{"query": {{"match_all": {{}}}}}}']
        key, values = "9", {"n": 9}
    else:
        name = await rig.collection({"title": "text"}, [{"title": "a"}, {"title": "b"}])
        texts = ["GET /v1/meta", f"{{ Get {{ {name}(limit: 3) {{ title }} }} }}"]
        key, values = weaviate.key(9), {"title": "c"}
    await rig.driver.describe_object(name)
    assert len(await rig.ids(name)) == 2
    [outcome] = await rig.apply(Insert(object=name, id=key, values=values))
    assert outcome.status == "applied", outcome
    assert len(await rig.ids(name)) == 3
    [outcome] = await rig.apply(Delete(key=RowKey(object=name, id=key)))
    assert outcome.status == "applied", outcome
    assert sum([part.rows async for part in rig.driver.export_rows(ExportRequest(object=name))]) == 2
    for text in texts:
        assert await rig.console(text)


@pytest.mark.parametrize("driver", ["elasticsearch", "weaviate"])
async def test_E6_W5_everything_works_below_a_path_and_behind_a_gate(driver: str) -> None:
    given = {
        "options": {"headers": "X-Tenant: blue"},
        "secrets": Secrets(values={"secret_headers": "X-Gate: open-s3same"}),
    }
    async with below("/db/one", driver, required=GATE, **given) as rig:
        assert (await rig.driver.ping()).ok
        await work(rig, driver)


@pytest.mark.parametrize("driver", ["elasticsearch", "weaviate"])
async def test_without_its_headers_the_gate_stays_shut_and_the_secret_is_not_told(driver: str) -> None:
    given = {"secrets": Secrets(values={"secret_headers": "X-Gate: wr0ng-secret"})}
    with pytest.raises(DragomanError) as caught:
        async with below("/db", driver, required=GATE, **given):
            pass
    assert "wr0ng" not in f"{caught.value.message} {caught.value.hint}"


async def test_E6_a_service_accounts_token_goes_as_bearer() -> None:
    given = {"auth_scheme": AuthScheme.BEARER, "secrets": Secrets(values={"token": "AAEAAWVsYXN0aWM"})}
    async with below("", "elasticsearch", required={"Authorization": "Bearer AAEAAWVsYXN0aWM"}, **given) as rig:
        await work(rig, "elasticsearch")


@pytest.mark.parametrize("driver", ["elasticsearch", "weaviate"])
async def test_a_redirect_to_the_prefix_is_told_and_not_followed(driver: str) -> None:
    room = {"elasticsearch": elasticsearch, "weaviate": weaviate}[driver]
    async with serving(lambda _: http(status=302, headers="Location: /es/\r\n")) as server:
        profile = room.profile(f"http://127.0.0.1:{server.port}")
        with pytest.raises(ConnectionFailedError, match="redirects") as caught:
            async with connected(driver, profile):
                pass
    assert caught.value.remedies == (Remedy("edit-field", {"field": "path_prefix", "value": "/es"}),)
    assert not any(request.target.startswith("/es") for request in server.requests)
