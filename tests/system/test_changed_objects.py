"""Objects that change under an open session: it asks again with the columns of now, and says so."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch import rig as elasticsearch
from drivers.weaviate import rig as weaviate

from dragoman import Filter, Reference, Runtime, SavedConnection
from dragoman_api import MISSING, hookimpl
from dragoman_api.errors import FilterNotSupportedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivers.rigging import Rig

    from dragoman import Session

TEXT = {"t": {"type": "text", "fields": {"keyword": {"type": "keyword"}}}}
KEYWORD = {"t": {"type": "keyword"}}


class Watch:
    """Notes which hooks were called, and what was rejected."""

    def __init__(self) -> None:
        self.hooks: list[str] = []
        self.events: list[str] = []

    @hookimpl
    async def before_call(self, call: Any) -> None:
        self.hooks.append(call.hook)

    @hookimpl
    async def on_event(self, event: Any) -> None:
        self.events.append(event.name)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@asynccontextmanager
async def opened(rig: Rig, watch: Watch, **values: Any) -> AsyncIterator[Session]:
    """Open a session on the server of a rig."""
    profile = rig.http.profile
    about = {"host": profile.host, "port": profile.port, "ssl_mode": str(profile.ssl_mode)} | values
    runtime = Runtime(spare=False, use=[watch])
    runtime.connections.save(SavedConnection(name="changing", type=profile.type, values=about))
    async with runtime, runtime.open("changing") as session:
        yield session


class ElasticsearchRules:
    """An index that is made anew, or grows."""

    async def anew(self, es: elasticsearch.Rig, name: str, properties: dict[str, Any], *documents: Any) -> None:
        await es.call("DELETE", f"/{name}")
        await es.call("PUT", f"/{name}", {"mappings": {"properties": properties}})
        await es.load(name, documents)

    async def test_an_index_made_anew_with_another_type_gives_no_wrong_total(
        self, es: elasticsearch.Rig, session: Session, watch: Watch
    ) -> None:
        name, rows = await es.index(TEXT, [{"t": "x"}]), [Filter("t", "=", "x")]
        assert (await session.rows(name, filters=rows).page()).total == 1
        await self.anew(es, name, KEYWORD, {"t": "x"}, {"t": "x"})
        watch.hooks.clear()
        page = await session.rows(name, filters=rows).page()
        assert (page.total, len(page.rows)) == (2, 2)
        [note] = page.notes
        assert (note.code, note.reason) == (
            "object-changed",
            f"'{name}' changed while the connection was open: 't' is keyword, before text",
        )
        assert watch.hooks == ["compile_filter", "fetch_page"] * 2
        assert (await session.rows(name, filters=rows).page()).notes == []
        await self.anew(es, name, TEXT, {"t": "x"})
        assert await session.rows(name, filters=rows).count() == 1
        await self.anew(es, name, KEYWORD, {"t": "x"})
        assert (await session.rows(name, filters=rows).explain()).rows[0].clause == "term t"

    @pytest.mark.slow
    async def test_exports_use_the_columns_of_now(self, es: elasticsearch.Rig, session: Session, tmp_path: Any) -> None:
        name, rows = await es.index(TEXT, [{"t": "x"}]), [Filter("t", "=", "x")]
        assert await session.rows(name, filters=rows).count() == 1
        for number, properties in enumerate((KEYWORD, TEXT, KEYWORD)):
            await self.anew(es, name, properties, {"t": "x"}, {"t": "y"})
            if number == 0:
                async with aclosing(session.rows(name, filters=rows).stream()) as found:
                    assert [row async for row in found] == [{"t": "x"}]
            else:
                target = tmp_path / f"{number}.{'csv' if number == 1 else 'ndjson'}"
                assert (await session.rows(name, filters=rows).export(to=target)).rows == 1

    async def test_a_column_that_came_later_can_be_filtered_and_read(
        self, es: elasticsearch.Rig, session: Session, watch: Watch
    ) -> None:
        name = await es.index(documents=[{"a": 1}])
        assert [column.name for column in (await session.rows(name).page()).columns][3:] == ["a"]
        await es.call("PUT", f"/{name}/_doc/1?refresh=true", {"a": 1, "b": 2})
        page = await session.rows(name, filters=[Filter("b", ">=", 2)]).page()
        assert ([column.name for column in page.columns][3:], page.total, page.notes) == (["a", "b"], 1, [])
        await es.call("PUT", f"/{name}/_doc/2?refresh=true", {"c": 3})
        page = await session.rows(name).page()
        assert [column.name for column in page.columns][3:] == ["a", "b", "c"]
        assert ["new: 'c'" in note.reason for note in page.notes] == [True]
        await es.call("PUT", f"/{name}/_doc/3?refresh=true", {"d": 4})
        assert await session.rows(page.rows[0].key.object).cell(page.rows[0].key, "d") is MISSING
        assert "filter.rejected" not in watch.events

    @pytest.mark.slow
    async def test_a_filter_that_no_longer_fits_is_refused_with_its_reason(
        self, es: elasticsearch.Rig, session: Session
    ) -> None:
        name, rows = await es.index({"n": {"type": "long"}}, [{"n": 5}]), [Filter("n", "between", [1, 9])]
        assert (await session.rows(name, filters=rows).page()).total == 1
        await self.anew(es, name, {"n": {"type": "boolean"}}, {"n": True})
        with pytest.raises(FilterNotSupportedError, match="'n between"):
            await session.rows(name, filters=rows).page()
        with pytest.raises(FilterNotSupportedError, match="'n between"):
            await session.rows(name, filters=rows).count()


class WeaviateRules:
    """A collection that is made anew."""

    @pytest.mark.slow
    async def test_a_collection_made_anew_with_another_tokenization(self, wv: weaviate.Rig, session: Session) -> None:
        field = {"code": {"dataType": ["text"], "tokenization": "field"}}
        name = await wv.collection(field, [{"code": "Big Cat"}])
        rows = [Filter("code", "=", "Big Cat")]
        assert (await session.rows(name, filters=rows).page()).total == 1
        before = (await session.rows(name, filters=rows).explain()).rows[0].approximations
        await wv.call("DELETE", f"/v1/schema/{name}")
        definition = {"class": name, "properties": [{"name": "code", "dataType": ["text"], "tokenization": "word"}]}
        await wv.call("POST", "/v1/schema", definition)
        await wv.load(name, [{"code": "big cat"}])
        page = await session.rows(name, filters=rows).page()
        assert [note.code for note in page.notes] == ["object-changed", "filter-approximate"]
        told = (await session.rows(name, filters=rows).explain()).rows[0].approximations
        assert told != before
        assert any("in any order" in each for each in told)
        assert await session.rows(name, filters=rows).count() == page.total


class TestElasticsearchOnFake(elasticsearch.OnFake, ElasticsearchRules):
    @pytest.fixture
    async def session(self, es: elasticsearch.Rig, watch: Watch) -> AsyncIterator[Session]:
        async with opened(es, watch) as session:
            yield session


class TestElasticsearchOnServers(elasticsearch.OnServer, ElasticsearchRules):
    @pytest.fixture
    async def session(
        self, es: elasticsearch.Rig, watch: Watch, live_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[Session]:
        values: dict[str, Any] = {}
        if live_server["security"]:
            user = live_server["users"]["superuser"]
            monkeypatch.setenv("CHANGING_PASSWORD", user["password"])
            password = Reference("env", "CHANGING_PASSWORD")
            values = {"auth_method": "username-password", "username": user["username"], "password": password}
        async with opened(es, watch, **values) as session:
            yield session


class TestWeaviateOnFake(weaviate.OnFake, WeaviateRules):
    @pytest.fixture
    async def session(self, wv: weaviate.Rig, watch: Watch) -> AsyncIterator[Session]:
        async with opened(wv, watch) as session:
            yield session


class TestWeaviateOnServers(weaviate.OnServer, WeaviateRules):
    @pytest.fixture
    async def session(
        self, wv: weaviate.Rig, watch: Watch, live_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[Session]:
        values: dict[str, Any] = {}
        if live_server["api_keys"]:
            monkeypatch.setenv("CHANGING_KEY", live_server["api_keys"]["admin"])
            values = {"auth_method": "api-key", "api_key": Reference("env", "CHANGING_KEY")}
        async with opened(wv, watch, **values) as session:
            yield session
