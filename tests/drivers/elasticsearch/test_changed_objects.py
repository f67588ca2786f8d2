"""Indices that change while a connection is open: no call runs silently on columns that are no longer so."""

from __future__ import annotations

import base64
from contextlib import aclosing
from typing import Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, connected, profile

from dragoman_api import CellRequest, CountRequest, ExportRequest, Filter, PageRequest, PlanRequest, Sort, Update
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.errors import FilterNotSupportedError, ObjectChangedError, ObjectNotFoundError, QueryError
from dragoman_querydsl import driver

KEYWORD = {"t": {"type": "keyword"}}
TEXT = {"t": {"type": "text", "fields": {"keyword": {"type": "keyword"}}}}


async def anew(es: Rig, name: str, properties: dict[str, Any], documents: list[Any]) -> None:
    """Delete an index, and make another of its name."""
    await es.call("DELETE", f"/{name}")
    body = {"settings": {"number_of_shards": 1, "number_of_replicas": 0}, "mappings": {"properties": properties}}
    await es.call("PUT", f"/{name}", body)
    await es.load(name, documents)


class Rules:
    """Each of these calls gave a wrong answer, as an exact one, when views were read once."""

    async def test_a_filter_of_other_columns_runs_nowhere(self, es: Rig) -> None:
        name = await es.index(TEXT, [{"t": "x"}])
        old = await es.filter(name, Filter("t", "=", "x"))
        asked, counted = PageRequest(object=name, filter=old), CountRequest(object=name, filter=old)
        assert (await es.driver.fetch_page(asked)).total == await es.driver.count_rows(counted) == 1
        await anew(es, name, KEYWORD, [{"t": "x"}])
        with pytest.raises(ObjectChangedError, match="'t' is keyword, before text"):
            await es.driver.fetch_page(asked)
        for _ in range(2):
            with pytest.raises(ObjectChangedError, match="since the filter was compiled"):
                await es.driver.fetch_page(asked)
            with pytest.raises(ObjectChangedError, match="since the filter was compiled"):
                await es.driver.count_rows(counted)
            async with aclosing(es.driver.export_rows(ExportRequest(object=name, filter=old))) as parts:
                with pytest.raises(ObjectChangedError, match="since the filter was compiled"):
                    await anext(parts)
        assert await es.ids(name, Filter("t", "=", "x")) == ["0"]

    async def test_a_count_notices_it_first(self, es: Rig) -> None:
        name = await es.index(TEXT, [{"t": "x"}])
        old = await es.filter(name, Filter("t", "=", "x"))
        await anew(es, name, KEYWORD, [{"t": "x"}])
        with pytest.raises(ObjectChangedError):
            await es.driver.count_rows(CountRequest(object=name, filter=old))

    async def test_an_export_notices_it_first(self, es: Rig) -> None:
        name = await es.index(TEXT, [{"t": "x"}])
        old = await es.filter(name, Filter("t", "=", "x"))
        await anew(es, name, KEYWORD, [{"t": "x"}])
        async with aclosing(es.driver.export_rows(ExportRequest(object=name, filter=old))) as parts:
            with pytest.raises(ObjectChangedError):
                await anext(parts)

    async def test_a_sorted_page_of_an_index_made_anew_is_asked_for_again(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "keyword"}}, [{"n": "10"}, {"n": "9"}])
        asked = PageRequest(object=name, sort=[Sort("n")])
        assert [key.id for key in (await es.driver.fetch_page(asked)).keys] == ["0", "1"]
        await anew(es, name, {"n": {"type": "text"}}, [{"n": "10"}, {"n": "9"}])
        with pytest.raises(ObjectChangedError, match="'n' is text, before keyword"):
            await es.driver.fetch_page(asked)
        [note] = (await es.driver.fetch_page(asked)).notes
        assert (note.code, note.column) == ("sort-dropped", "n")

    async def test_a_column_that_came_later_is_shown(self, es: Rig) -> None:
        name = await es.index(documents=[{"a": 1}])
        asked = PageRequest(object=name)
        assert [column.name for column in (await es.driver.fetch_page(asked)).columns][3:] == ["a"]
        await es.call("PUT", f"/{name}/_doc/1?refresh=true", {"a": 1, "b": 2})
        with pytest.raises(ObjectChangedError, match="new: 'b'"):
            await es.driver.fetch_page(asked)
        assert [column.name for column in (await es.driver.fetch_page(asked)).columns][3:] == ["a", "b"]
        await es.call("PUT", f"/{name}/_doc/2?refresh=true", {"c": 3})
        with pytest.raises(ObjectChangedError, match="new: 'c'"):  # not: there is no such column
            await es.driver.fetch_page(PageRequest(object=name, columns=["c"]))
        await es.call("PUT", f"/{name}/_doc/3?refresh=true", {"d": 4})
        with pytest.raises(ObjectChangedError, match="new: 'd'"):
            await es.driver.fetch_page(PageRequest(object=name, sort=[Sort("d")]))

    async def test_a_cell_of_a_column_that_came_later_is_read(self, es: Rig) -> None:
        name = await es.index(documents=[{"a": 1}])
        [row] = (await es.page(name)).rows
        await es.call("PUT", f"/{name}/_doc/0?refresh=true", {"a": 1, "b": 2})
        wanted = CellRequest(key=row.key, column="b")
        with pytest.raises(ObjectChangedError, match="new: 'b'"):
            await es.driver.fetch_cell(wanted)
        assert await es.driver.fetch_cell(wanted) == 2

    async def test_E17_an_alias_that_leads_elsewhere_is_noticed_past_the_window_too(self, es: Rig) -> None:
        one = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(12)])
        two = await es.index({"n": {"type": "long"}}, [{"n": 100 + at} for at in range(12)])
        alias = f"{one}-now"
        await es.call("POST", "/_aliases", {"actions": [{"add": {"index": one, "alias": alias}}]})
        await es.call("PUT", f"/{one}/_settings", {"index.max_result_window": 10})
        es.driver._profile.options["window"] = "index"
        shallow = PageRequest(object=alias, sort=[Sort("n")], limit=2)
        deep = PageRequest(object=alias, sort=[Sort("n")], offset=9, limit=2)
        for asked, first in ((shallow, 0), (deep, 9)):
            assert (await es.driver.fetch_page(asked)).rows[0]["n"] == first
        await es.call("PUT", f"/{two}/_settings", {"index.max_result_window": 10})
        moves = [{"remove": {"index": one, "alias": alias}}, {"add": {"index": two, "alias": alias}}]
        await es.call("POST", "/_aliases", {"actions": moves})
        with pytest.raises(ObjectChangedError, match=f"it stands for '{two}', before for '{one}'"):
            await es.driver.fetch_page(deep)
        for asked, first in ((shallow, 100), (deep, 109)):
            assert (await es.driver.fetch_page(asked)).rows[0]["n"] == first

    async def test_an_edit_is_planned_for_the_columns_of_now(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        [row] = (await es.page(name)).rows
        await anew(es, name, {"n": {"type": "keyword"}}, [{"n": "1"}])
        [row] = (await es.driver.fetch_page(PageRequest(object=f"{name}*"))).rows
        plan = await es.driver.plan_change(PlanRequest(changes=[Update(row.key, {"n": "two"})]))
        assert [each.reason for each in plan.refusals] == []
        assert '"n":"two"' in str(plan.requests[0].body)

    async def test_an_index_that_is_gone_is_said_to_be_gone(self, es: Rig) -> None:
        name = await es.index(KEYWORD, [{"t": "x"}])
        old = await es.filter(name, Filter("t", "=", "x"))
        await es.call("DELETE", f"/{name}")
        for call in (PageRequest(object=name), PageRequest(object=name, filter=old)):
            with pytest.raises(ObjectNotFoundError):
                await es.driver.fetch_page(call)
        with pytest.raises(ObjectNotFoundError):
            await es.driver.count_rows(CountRequest(object=name, filter=old))

    async def test_an_index_made_anew_with_the_same_mapping_needs_nothing(self, es: Rig) -> None:
        name = await es.index(KEYWORD, [{"t": "x"}])
        old = await es.filter(name, Filter("t", "=", "x"))
        await anew(es, name, KEYWORD, [{"t": "x"}, {"t": "x"}])
        assert (await es.driver.fetch_page(PageRequest(object=name, filter=old))).total == 2

    async def test_the_order_of_indices_in_an_answer_is_no_change(self, es: Rig) -> None:
        first = await es.index(KEYWORD, [{"t": "x"}])
        for number in range(8):
            await es.call("PUT", f"/{first}-{number}", {"mappings": {"properties": {f"f{number}": {"type": "long"}}}})
            es.made.append(f"{first}-{number}")
        old = await es.filter(f"{first}*", Filter("t", "=", "x"))
        for _ in range(20):
            assert (await es.driver.fetch_page(PageRequest(object=f"{first}*", filter=old))).total == 1

    async def test_a_large_mapping_is_not_read_again_for_every_page(
        self, es: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What could make a filter wrong is noticed at once: another index. A new column is, after seconds."""
        many = {f"{'n' * 200}{at}": {"type": "long"} for at in range(320)}
        name = await es.index({**KEYWORD, **many}, [{"t": "x"}])
        asked = PageRequest(object=name, filter=await es.filter(name, Filter("t", "=", "x")), columns=["t"])
        assert (await es.driver.fetch_page(asked)).total == 1
        mark = len(es.log)
        assert (await es.driver.fetch_page(asked)).total == 1
        assert sorted(each.path.split("?")[0] for each in es.log[mark:]) == [
            f"/{name}/_search",
            f"/{name}/_settings/index.uuid",
        ]
        await es.call("PUT", f"/{name}/_mapping", {"properties": {"b": {"type": "long"}}})
        assert (await es.driver.fetch_page(asked)).total == 1
        monkeypatch.setattr(driver, "_LIFE", 0.0)
        with pytest.raises(ObjectChangedError, match="new: 'b'"):
            await es.driver.fetch_page(asked)
        monkeypatch.undo()
        asked = PageRequest(object=name, filter=await es.filter(name, Filter("t", "=", "x")), columns=["t"])
        assert (await es.driver.fetch_page(asked)).total == 1
        await anew(es, name, {**TEXT, **many}, [{"t": "x"}])
        with pytest.raises(ObjectChangedError, match="'t' is text, before keyword"):
            await es.driver.fetch_page(asked)

    async def test_an_edit_is_planned_for_the_columns_of_now_however_large_the_mapping(self, es: Rig) -> None:
        many = {f"{'n' * 200}{at}": {"type": "long"} for at in range(320)}
        name = await es.index({**KEYWORD, **many}, [{"t": "x"}])
        asked = PageRequest(object=name, columns=["t"])
        await es.driver.fetch_page(asked)
        [row] = (await es.driver.fetch_page(asked)).rows
        await es.call("PUT", f"/{name}/_mapping", {"properties": {"b": {"type": "long"}}})
        plan = await es.driver.plan_change(PlanRequest(changes=[Update(row.key, {"b": "7"})]))
        assert [each.reason for each in plan.refusals] == []
        assert '"b":7' in str(plan.requests[0].body)

    async def test_a_refused_page_is_refused_if_nothing_changed(self, es: Rig) -> None:
        name = await es.index(KEYWORD, [{"t": "x"}])
        await es.driver.describe_object(name)
        with pytest.raises(QueryError, match="no column 'b'") as caught:
            await es.driver.fetch_page(PageRequest(object=name, columns=["b"]))
        assert not isinstance(caught.value, ObjectChangedError)
        with pytest.raises(FilterNotSupportedError):
            await es.filter(name, Filter("b", "=", 1))


class TestChangedObjectsOnFake(OnFake, Rules):
    pass


class TestChangedObjectsOnServers(OnServer, Rules):
    async def test_a_reader_who_may_not_see_mappings_notices_it_too(self, es: Rig, live_server: dict[str, Any]) -> None:
        if not live_server["security"]:
            pytest.skip("no security")
        name = await es.index(TEXT, [{"t": "x"}])
        roles = {"r": {"index": [{"names": [name], "privileges": ["read"]}]}}
        made = await es.call("POST", "/_security/api_key", {"name": "r", "role_descriptors": roles})
        encoded = base64.b64encode(f"{made['id']}:{made['api_key']}".encode()).decode()
        given = profile(
            live_server["url"], auth_scheme=AuthScheme.API_KEY, secrets=Secrets(values={"api_key": encoded})
        )
        async with connected(given, version=live_server["version"]) as limited:
            old = await limited.filter(name, Filter("t", "=", "x"))
            asked = PageRequest(object=name, filter=old)
            assert (await limited.driver.fetch_page(asked)).total == 1
            await anew(es, name, KEYWORD, [{"t": "x"}])
            with pytest.raises(ObjectChangedError, match="'t' is keyword, before text"):
                await limited.driver.fetch_page(asked)
            assert await limited.ids(name, Filter("t", "=", "x")) == ["0"]
