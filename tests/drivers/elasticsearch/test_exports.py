"""Exports: the whole object, document by document as stored, or an error."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest
from drivers.elasticsearch.replies import Answers, reply
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake

from dragoman_api import ExportPart, ExportRequest, Filter, QueryError
from dragoman_api.errors import ConnectionFailedError
from dragoman_api.exports import ExportForm
from dragoman_elasticsearch import exports


async def parts(es: Rig, name: str, **more: Any) -> list[ExportPart]:
    async with aclosing(es.driver.export_rows(ExportRequest(object=name, **more))) as stream:
        return [part async for part in stream]


def lines(found: list[ExportPart]) -> list[bytes]:
    return [line for part in found for line in part.data.splitlines()]


class ExportRules:
    async def test_E32_the_whole_index_past_the_window_and_every_row_once(self, es: Rig) -> None:
        rows = ({"n": at} for at in range(10_640))
        name = await es.index({"n": {"type": "long"}}, rows, settings={"number_of_shards": 3})
        found = await parts(es, name)
        assert sorted(json.loads(line)["n"] for line in lines(found)) == list(range(10_640))
        assert [part.total for part in found] == [10_640] * len(found)
        assert len(found) >= 2
        opened = [each for each in es.sent("POST") if "/_pit?" in each.path or "?scroll=" in each.path]
        assert len(opened) == 1
        assert [each for each in es.log if each.method == "DELETE" and each.path in ("/_pit", "/_search/scroll")]

    async def test_E32_documents_leave_as_they_are_stored(self, es: Rig) -> None:
        """C35: digits, escapes and the order of keys; only line breaks between tokens go."""
        stored = ['{"z":1.10,"a":1e400,"s":"\\u00fc \\n","big":123456789012345678901234567890}', '{"a": 1,  "b":  2}']
        name = await es.index(mapping={"dynamic": False}, documents=stored)
        assert sorted(lines(await parts(es, name))) == sorted(text.encode() for text in stored)

    async def test_a_document_on_several_lines_becomes_one(self, es: Rig) -> None:
        name = await es.index(mapping={"dynamic": False})
        reply_ = await es.raw("PUT", f"/{name}/_doc/1?refresh=true", '{\n  "a": 1.10,\n  "t": "x  y"\n}')
        assert reply_.status == 201
        assert lines(await parts(es, name)) == [b'{"a":1.10,"t":"x  y"}']

    async def test_with_metadata_a_line_can_be_put_back(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        await es.call("PUT", f"/{name}/_doc/a%22b?routing=r&refresh=true", {"n": 1})
        await es.call("PUT", f"/{name}/_doc/c?refresh=true", {"n": 2})
        found = {line["_id"]: line for line in map(json.loads, lines(await parts(es, name, form=ExportForm.ROWS)))}
        assert found == {
            'a"b': {"_index": name, "_id": 'a"b', "_source": {"n": 1}, "_routing": "r"},
            "c": {"_index": name, "_id": "c", "_source": {"n": 2}},
        }

    async def test_a_filtered_export(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(50)])
        compiled = await es.filter(name, Filter("n", "<", 7))
        assert len(lines(await parts(es, name, filter=compiled))) == 7

    async def test_an_empty_index(self, es: Rig) -> None:
        assert await parts(es, await es.index({"n": {"type": "long"}})) == []

    async def test_a_lowered_window_makes_smaller_requests(self, es: Rig) -> None:
        rows = [{"n": at} for at in range(230)]
        name = await es.index({"n": {"type": "long"}}, rows, settings={"index.max_result_window": 50})
        assert len(lines(await parts(es, name))) == 230

    async def test_an_export_that_is_left_early_frees_what_it_holds(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(3000)])
        async with aclosing(es.driver.export_rows(ExportRequest(object=name))) as stream:
            async for _ in stream:
                break
        assert es.log[-1].method == "DELETE"
        assert es.log[-1].path in ("/_pit", "/_search/scroll")

    async def test_a_missing_index_is_told(self, es: Rig) -> None:
        with pytest.raises(Exception, match="no such index"):
            await parts(es, "t-nosuch")


class TestExportsOnFake(ExportRules, OnFake):
    pass


class TestExportsOnServer(ExportRules, OnServer):
    pass


async def test_a_checkpoint_is_refused_and_none_is_given() -> None:
    async with on_fake("8.19.21") as es:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        assert [part.checkpoint for part in await parts(es, name)] == [None]
        with pytest.raises(QueryError, match="begins anew"):
            await parts(es, name, checkpoint="x")


@pytest.mark.fake_only(reason="no engine here loses a shard on request")
@pytest.mark.parametrize("more", [{"_shards": {"total": 2, "failed": 1}}, {"timed_out": True}])
def test_a_partial_page_fails_the_export(more: dict[str, Any]) -> None:
    export = exports.Export("x", exports.Raw(b"{}"), metadata=False, scrolls=False)
    hits = {"hits": {"hits": [{"_index": "x", "_id": "1", "_source": {}, "sort": [1, 1]}]}}
    with pytest.raises(QueryError, match="the export is not whole"):
        Answers(reply({"id": "p"}), reply(hits | more)).run(export.part())


def test_documents_that_are_not_kept_cannot_be_exported() -> None:
    export = exports.Export("x", exports.Raw(b"{}"), metadata=False, scrolls=False)
    hits = {"hits": {"hits": [{"_index": "x", "_id": "1", "sort": [1, 1]}]}}
    with pytest.raises(QueryError, match="keeps no documents"):
        Answers(reply({"id": "p"}), reply(hits)).run(export.part())


def test_C2_an_export_goes_on_behind_the_last_row_with_the_tiebreaker() -> None:
    export = exports.Export("x", exports.Raw(b"{}"), metadata=False, scrolls=False)
    hits = {"hits": {"hits": [{"_index": "x", "_id": "1", "_source": {}, "sort": [7, 9223372036854775807]}]}}
    first = Answers(reply({"id": "p1"}), reply(hits | {"pit_id": "p2"}))
    first.run(export.part())
    second = Answers(reply({"hits": {"hits": []}}))
    assert second.run(export.part()) is None
    body = json.loads(second.asked[0].body or "")
    assert body["search_after"] == [7, 9223372036854775807]
    assert [next(iter(key)) for key in body["sort"]] == ["_doc", "_shard_doc"]
    assert body["pit"]["id"] == "p2", "the newest id is used"
    assert "allow_partial_search_results=false" in second.asked[0].path


@pytest.mark.fake_only(reason="a network that fails in the middle of an export")
@pytest.mark.parametrize("version", ["8.19.21", "7.10.2"])
async def test_an_export_that_breaks_off_raises_and_never_ends_early(version: str) -> None:
    async with on_fake(version) as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(3000)])
        es.fake.misbehave("cut", on="/_search", after=1)
        with pytest.raises(ConnectionFailedError):
            await parts(es, name)
        es.fake.behave()


@pytest.mark.fake_only(reason="a connection that ends between two pages of a scroll")
async def test_a_page_of_a_scroll_is_never_asked_for_twice() -> None:
    """The second time would be the page after it: rows would be missing."""
    async with on_fake("7.10.2") as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(3000)])
        es.fake.misbehave("drop", on="/_search/scroll", times=1)
        with pytest.raises(ConnectionFailedError):
            await parts(es, name)
