"""Collections that change while a connection is open: no call runs silently on columns that are no longer so."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from drivers.weaviate.rig import INDEXED, OnFake, OnServer, Rig, key, properties

from dragoman_api import CellRequest, CountRequest, ExportRequest, Filter, PageRequest, RowKey
from dragoman_api.errors import ObjectChangedError, ObjectNotFoundError
from dragoman_api.exports import SplitRequest
from dragoman_api.grid import PreviewRequest
from dragoman_api.summaries import SummaryRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

WORDS = {"code": {"dataType": ["text"], "tokenization": "word"}}
FIELD = {"code": {"dataType": ["text"], "tokenization": "field"}}


async def anew(wv: Rig, name: str, types: dict[str, Any], objects: list[dict[str, Any]]) -> None:
    """Delete a collection, and make another of its name."""
    await wv.call("DELETE", f"/v1/schema/{name}")
    body = {"class": name, "vectorizer": "none", "properties": properties(types), "invertedIndexConfig": INDEXED}
    await wv.call("POST", "/v1/schema", body)
    await wv.load(name, objects)


async def exported(wv: Rig, request: ExportRequest) -> list[Any]:
    return [part async for part in wv.driver.export_rows(request)]


class Rules:
    """Each of these calls ran on columns of the past when views were read once."""

    async def test_a_filter_of_another_tokenization_runs_nowhere(self, wv: Rig) -> None:
        name = await wv.collection(FIELD, [{"code": "A-1"}])
        old = await wv.filter(name, Filter("code", "=", "A-1"))
        asked, counted = PageRequest(object=name, filter=old), CountRequest(object=name, filter=old)
        assert (await wv.driver.fetch_page(asked)).total == await wv.driver.count_rows(counted) == 1
        await anew(wv, name, WORDS, [{"code": "A-1"}, {"code": "1 a"}])
        with pytest.raises(ObjectChangedError, match="its definition differs"):
            await wv.driver.fetch_page(asked)
        for _ in range(2):
            with pytest.raises(ObjectChangedError, match="since the filter was compiled"):
                await wv.driver.fetch_page(asked)
            with pytest.raises(ObjectChangedError, match="since the filter was compiled"):
                await wv.driver.count_rows(counted)
            async with aclosing(wv.driver.export_rows(ExportRequest(object=name, filter=old))) as parts:
                with pytest.raises(ObjectChangedError, match="since the filter was compiled"):
                    await anext(parts)
        assert (await wv.filter(name, Filter("code", "=", "A-1"))).rows != old.rows

    @pytest.mark.parametrize("call", ["page", "count", "summary", "page preview", "count preview", "export", "split"])
    async def test_each_operation_refuses_a_filter_of_another_definition_every_time(self, wv: Rig, call: str) -> None:
        name = await wv.collection(FIELD, [{"code": "A-1"}])
        old = await wv.filter(name, Filter("code", "=", "A-1"))
        page, counted = PageRequest(object=name, filter=old), CountRequest(object=name, filter=old)
        export = ExportRequest(object=name, filter=old)
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "page": lambda: wv.driver.fetch_page(page),
            "count": lambda: wv.driver.count_rows(counted),
            "summary": lambda: wv.driver.summarize_column(SummaryRequest(object=name, column="code", filter=old)),
            "page preview": lambda: wv.driver.preview_read(PreviewRequest(page=page)),
            "count preview": lambda: wv.driver.preview_read(PreviewRequest(count=counted)),
            "export": lambda: exported(wv, export),
            "split": lambda: wv.driver.split_export(SplitRequest(export=export, shares=2)),
        }
        await calls[call]()
        await anew(wv, name, WORDS, [{"code": "A-1"}])
        for _ in range(3):
            with pytest.raises(ObjectChangedError):
                await calls[call]()

    async def test_a_count_notices_it_first(self, wv: Rig) -> None:
        name = await wv.collection(FIELD, [{"code": "A-1"}])
        old = await wv.filter(name, Filter("code", "=", "A-1"))
        await anew(wv, name, WORDS, [{"code": "A-1"}])
        with pytest.raises(ObjectChangedError):
            await wv.driver.count_rows(CountRequest(object=name, filter=old))

    async def test_an_export_notices_it_first(self, wv: Rig) -> None:
        name = await wv.collection(FIELD, [{"code": "A-1"}])
        old = await wv.filter(name, Filter("code", "=", "A-1"))
        await anew(wv, name, WORDS, [{"code": "A-1"}])
        async with aclosing(wv.driver.export_rows(ExportRequest(object=name, filter=old))) as parts:
            with pytest.raises(ObjectChangedError):
                await anext(parts)

    async def test_a_column_that_came_later_is_shown(self, wv: Rig) -> None:
        name = await wv.collection({"a": "int"}, [{"a": 1}])
        asked = PageRequest(object=name)
        assert [column.name for column in (await wv.driver.fetch_page(asked)).columns] == ["uuid", "a", "vector"]
        await wv.call("POST", f"/v1/schema/{name}/properties", {"name": "b", "dataType": ["text"]})
        with pytest.raises(ObjectChangedError, match="new: 'b'"):
            await wv.driver.fetch_page(asked)
        page = await wv.driver.fetch_page(asked)
        assert [column.name for column in page.columns] == ["uuid", "a", "b", "vector"]
        await wv.call("POST", f"/v1/schema/{name}/properties", {"name": "c", "dataType": ["text"]})
        with pytest.raises(ObjectChangedError, match="new: 'c'"):  # not: there is no such column
            await wv.driver.fetch_page(PageRequest(object=name, columns=["c"]))

    async def test_a_cell_of_a_column_that_came_later_is_read(self, wv: Rig) -> None:
        name = await wv.collection({"a": "int"}, [{"a": 1}])
        await wv.driver.describe_object(name)
        await wv.call("POST", f"/v1/schema/{name}/properties", {"name": "b", "dataType": ["text"]})
        wanted = CellRequest(key=RowKey(name, key(0)), column="b")
        with pytest.raises(ObjectChangedError, match="new: 'b'"):
            await wv.driver.fetch_cell(wanted)
        assert await wv.driver.fetch_cell(wanted) is None

    async def test_an_alias_that_leads_elsewhere_is_noticed(self, wv: Rig) -> None:
        one, two = await wv.collection(FIELD, [{"code": "a"}]), await wv.collection(FIELD, [{"code": "b"}] * 2)
        alias = f"{one}_now"
        await wv.call("POST", "/v1/aliases", {"alias": alias, "class": one})
        asked = PageRequest(object=alias)
        assert [row["code"] for row in (await wv.driver.fetch_page(asked)).rows] == ["a"]
        await wv.call("DELETE", f"/v1/aliases/{alias}")
        await wv.call("POST", "/v1/aliases", {"alias": alias, "class": two})
        with pytest.raises(ObjectChangedError, match=f"it stands for '{two}', before for '{one}'"):
            await wv.driver.fetch_page(asked)
        assert [row["code"] for row in (await wv.driver.fetch_page(asked)).rows] == ["b", "b"]
        await wv.call("DELETE", f"/v1/aliases/{alias}")

    async def test_a_collection_that_is_gone_is_said_to_be_gone(self, wv: Rig) -> None:
        name = await wv.collection(FIELD, [{"code": "a"}])
        old = await wv.filter(name, Filter("code", "=", "a"))
        await wv.call("DELETE", f"/v1/schema/{name}")
        for asked in (PageRequest(object=name), PageRequest(object=name, filter=old)):
            with pytest.raises(ObjectNotFoundError):
                await wv.driver.fetch_page(asked)
        with pytest.raises(ObjectNotFoundError):
            await wv.driver.count_rows(CountRequest(object=name, filter=old))

    async def test_an_export_of_all_rows_takes_the_columns_of_now(self, wv: Rig) -> None:
        name = await wv.collection({"a": "int"}, [{"a": 1}])
        await wv.driver.describe_object(name)
        await wv.call("POST", f"/v1/schema/{name}/properties", {"name": "b", "dataType": ["text"]})
        assert len(await wv.export(name)) == 1


class TestChangedObjectsOnFake(OnFake, Rules):
    pass


@pytest.mark.one_engine
class TestChangedObjectsOnServers(OnServer, Rules):
    pass
