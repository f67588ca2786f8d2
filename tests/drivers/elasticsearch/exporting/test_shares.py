"""Shares of an export: slices of one point in time that another connection reads, or one scroll."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake
from msgspec import Raw
from msgspec.structs import replace

from dragoman_api import ExportRequest, Filter, FilterRequest, QueryError, TimeRange
from dragoman_api.errors import ObjectChangedError
from dragoman_api.exports import ExportForm, SnapshotHold, SplitRequest
from dragoman_elasticsearch.driver import Driver
from dragoman_querydsl import driver

if TYPE_CHECKING:
    from dragoman_api.exports import ExportSplit


async def split(es: Rig, name: str, shares: int, **more: Any) -> tuple[ExportRequest, ExportSplit]:
    await es.driver.describe_object(name)
    request = ExportRequest(object=name, form=ExportForm.ROWS, **more)
    return request, await es.driver.split_export(SplitRequest(export=request, shares=shares))


async def read(driver: Any, request: ExportRequest, share: str) -> bytes:
    async with aclosing(driver.export_rows(replace(request, share=share))) as parts:
        return b"".join([part.data async for part in parts])


async def another(es: Rig) -> Driver:
    """Connect one more driver, which knows nothing of the split."""
    driver = Driver()
    await driver.connect(es.driver._profile, es.driver._exchanges.http, None)
    return driver


def numbers(*data: bytes) -> list[int]:
    return sorted(json.loads(line)["_source"]["n"] for each in data for line in each.splitlines())


class ShareRules:
    async def test_another_connection_reads_the_shares_of_the_time_of_the_split(self, es: Rig) -> None:
        name = await es.index(
            {"n": {"type": "long"}}, ({"n": at} for at in range(2_500)), settings={"number_of_shards": 3}
        )
        request, made = await split(es, name, 5)
        await es.raw("PUT", f"/{name}/_doc/later?refresh=true", '{"n": 9999}')
        other = await another(es)
        shares = [await read(other, request, share) for share in reversed(made.shares)]
        if es.version < (7, 12):
            assert (len(made.shares), made.snapshot, made.total) == (1, "", None)
            assert [note.code for note in made.notes] == ["no-snapshot"]
            assert numbers(*shares) == [*range(2_500), 9999]
            return
        assert (len(made.shares), made.total, made.notes) == (5, 2_500, [])
        assert numbers(*shares) == list(range(2_500))
        assert shares == [await read(es.driver, request, share) for share in reversed(made.shares)]
        assert [each for each in es.log if each.method == "DELETE"] == []
        assert await other.hold_snapshot(SnapshotHold(snapshot=made.snapshot, seconds=60))
        assert await other.hold_snapshot(SnapshotHold(snapshot=made.snapshot, seconds=0))
        assert not await es.driver.hold_snapshot(SnapshotHold(snapshot=made.snapshot, seconds=60))
        assert not await es.driver.hold_snapshot(SnapshotHold(snapshot=made.snapshot, seconds=0))
        with pytest.raises(QueryError) as caught:
            await read(es.driver, request, made.shares[0])
        assert caught.value.details["type"] == "search_context_missing_exception"
        assert caught.value.code == "context-lost"

    async def test_the_shares_of_a_filter_need_no_columns_of_another_connection(self, es: Rig) -> None:
        """The query travels in the share, so a column that appears meanwhile changes nothing."""
        name = await es.index({"n": {"type": "long"}}, ({"n": at} for at in range(40)))
        await es.driver.describe_object(name)
        where = await es.driver.compile_filter(FilterRequest(object=name, rows=[Filter("n", ">=", 10)]))
        request, made = await split(es, name, 3, filter=where)
        await es.raw("PUT", f"/{name}/_doc/later?refresh=true", '{"n": 3, "new": 1}')
        other = await another(es)
        assert numbers(*[await read(other, request, share) for share in made.shares]) == list(range(10, 40))
        if made.snapshot:
            await other.hold_snapshot(SnapshotHold(snapshot=made.snapshot, seconds=0))

    @pytest.mark.parametrize(("rows", "shares"), [(0, 1), (1, 1), (10, 10)])
    async def test_there_are_no_more_shares_than_rows(self, es: Rig, rows: int, shares: int) -> None:
        name = await es.index({"n": {"type": "long"}}, ({"n": at} for at in range(rows)))
        request, made = await split(es, name, 100)
        assert len(made.shares) == (shares if made.snapshot else 1)
        assert numbers(*[await read(es.driver, request, share) for share in made.shares]) == list(range(rows))
        if made.snapshot:
            await es.driver.hold_snapshot(SnapshotHold(snapshot=made.snapshot, seconds=0))


class TestSharesOnFake(ShareRules, OnFake):
    pass


class TestSharesOnServer(ShareRules, OnServer):
    pass


async def test_a_split_that_fails_frees_its_point_in_time() -> None:
    async with on_fake("8.19.21") as es:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        assert es.fake is not None
        es.fake.misbehave("garbage", on="/_search")
        with pytest.raises(QueryError):
            await split(es, name, 2)
        es.fake.behave()
        assert not es.fake.cluster.contexts


@pytest.mark.fake_only(reason="a server that is busy in the middle of an export")
@pytest.mark.parametrize("kind", ["es_rejected_execution_exception", ""])
@pytest.mark.parametrize("after", [0, 1])
async def test_the_reader_of_a_share_tells_at_once_that_the_server_is_busy(
    kind: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E32, whether it counts the share or reads it; a whole export has no others to tell."""
    monkeypatch.setattr(driver, "jittered", lambda _: 0.0)
    async with on_fake("8.19.21") as es:
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(30)])
        request, made = await split(es, name, 1)
        assert es.fake is not None
        body = {"error": {"type": kind, "reason": "the queue is full", "root_cause": []}} if kind else {}
        for share, told in ((made.shares[0], [(0, 1), (0, 1), (30, 0)]), (None, [(30, 0)])):
            es.fake.misbehave("answer", on="/_search", after=after, times=2, status=429, body=body)
            async with aclosing(es.driver.export_rows(replace(request, share=share))) as parts:
                assert [(part.rows, part.turned_away) async for part in parts] == told
            assert es.fake.troubles.pop().times < 0


@pytest.mark.fake_only(reason="a connection that breaks in the middle of an export")
@pytest.mark.parametrize("after", [0, 1])
async def test_a_connection_that_breaks_turns_no_share_away(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others need not slow down for it; it is tried again all the same."""
    monkeypatch.setattr(driver, "jittered", lambda _: 0.0)
    async with on_fake("8.19.21") as es:
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(30)])
        request, made = await split(es, name, 1)
        assert es.fake is not None
        es.fake.misbehave("cut", on="/_search", after=after, times=1)
        async with aclosing(es.driver.export_rows(replace(request, share=made.shares[0]))) as parts:
            assert [(part.rows, part.turned_away) async for part in parts] == [(30, 0)]


@pytest.mark.parametrize("asked", ["filter", "time", "all"])
async def test_a_query_that_changed_while_the_context_was_opened_is_refused(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E32: the context has the new columns, and the query those before; what was opened is freed."""
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index({"@timestamp": {"type": "date"}}, [{"@timestamp": "2024-12-31"}])
        where = await es.filter(name, Filter("@timestamp", "not-null"))
        more = {"filter": {"filter": where}, "time": {"time": TimeRange(column="@timestamp")}, "all": {}}[asked]
        request = ExportRequest(object=name, form=ExportForm.ROWS, **more)
        queries = [b'{"match_all":{}}', b'{"match_none":{}}']

        async def changed(_: ExportRequest) -> Raw:
            return Raw(queries[0] if len(queries) == 1 else queries.pop(0))

        monkeypatch.setattr(es.driver, "_exported", changed)
        for whole in (True, False):
            queries[:] = [b'{"match_all":{}}', b'{"match_none":{}}']
            if asked == "all":
                made = await es.driver.split_export(SplitRequest(export=request, shares=2))
                assert (made.total, len(queries)) == (1, 1)
                await es.driver.hold_snapshot(SnapshotHold(snapshot=made.snapshot, seconds=0))
            elif whole:
                async with aclosing(es.driver.export_rows(request)) as parts:
                    with pytest.raises(ObjectChangedError):
                        await anext(parts)
            else:
                with pytest.raises(ObjectChangedError):
                    await es.driver.split_export(SplitRequest(export=request, shares=2))
            assert not es.fake.cluster.contexts
