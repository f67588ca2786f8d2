"""Shares of an export: ranges of ids that another connection reads."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from drivers.weaviate.rig import OnFake, OnServer, Rig, on_fake
from msgspec.structs import replace

from dragoman_api import ExportRequest, Filter, FilterRequest
from dragoman_api.exports import ExportForm, SplitRequest
from dragoman_weaviate.driver import Driver
from dragoman_weaviate.export import ranges_of_ids

if TYPE_CHECKING:
    from dragoman_api.exports import ExportSplit


@pytest.mark.parametrize("number", [1, 2, 3, 7, 1024])
def test_ranges_leave_no_id_out(number: int) -> None:
    ranges = ranges_of_ids(number)
    assert len(ranges) == number
    assert (ranges[0][0], ranges[-1][1]) == ("", "")
    assert [after for after, _ in ranges[1:]] == [last for _, last in ranges[:-1]]
    assert sorted(last for _, last in ranges[:-1]) == [last for _, last in ranges[:-1]]


async def split(wv: Rig, name: str, shares: int, **more: Any) -> tuple[ExportRequest, ExportSplit]:
    request = ExportRequest(object=name, form=ExportForm.ROWS, **more)
    return request, await wv.driver.split_export(SplitRequest(export=request, shares=shares))


async def read(driver: Any, request: ExportRequest, share: str) -> bytes:
    async with aclosing(driver.export_rows(replace(request, share=share))) as parts:
        return b"".join([part.data async for part in parts])


def numbers(*data: bytes) -> list[int]:
    return sorted(json.loads(line)["properties"]["pages"] for each in data for line in each.splitlines())


class ShareRules:
    async def test_another_connection_reads_the_shares_with_and_without_a_filter(self, wv: Rig) -> None:
        name = await wv.collection({"pages": "int"}, ({"pages": at} for at in range(900)), shards=2)
        await wv.driver.describe_object(name)
        other = Driver()
        await other.connect(wv.driver._profile, wv.driver._exchanges.http, None)
        await other.describe_object(name)
        where = await wv.driver.compile_filter(FilterRequest(object=name, rows=[Filter("pages", ">=", 100)]))
        for given, expected in ((None, range(900)), (where, range(100, 900))):
            request, made = await split(wv, name, 7, filter=given)
            assert (len(made.shares), made.snapshot, made.total) == (7, "", len(expected))
            assert [note.code for note in made.notes] == ["no-snapshot"]
            shares = [await read(other, request, share) for share in reversed(made.shares)]
            assert numbers(*shares) == list(expected)
            assert shares == [await read(wv.driver, request, share) for share in reversed(made.shares)]

    @pytest.mark.parametrize(("rows", "shares"), [(0, 1), (1, 1), (10, 10)])
    async def test_there_are_no_more_shares_than_rows(self, wv: Rig, rows: int, shares: int) -> None:
        name = await wv.collection({"pages": "int"}, ({"pages": at} for at in range(rows)))
        await wv.driver.describe_object(name)
        request, made = await split(wv, name, 100)
        assert len(made.shares) == shares
        assert numbers(*[await read(wv.driver, request, share) for share in made.shares]) == list(range(rows))


class TestSharesOnFake(ShareRules, OnFake):
    pass


class TestSharesOnServer(ShareRules, OnServer):
    pass


@pytest.mark.slow
@pytest.mark.fake_only(reason="a server that is busy in the middle of an export")
async def test_the_reader_of_a_share_tells_at_once_that_the_server_is_busy() -> None:
    """A whole export has no others to tell."""
    async with on_fake() as wv:
        name = await wv.collection({"pages": "int"}, ({"pages": at} for at in range(30)))
        await wv.driver.describe_object(name)
        request, made = await split(wv, name, 1)
        assert wv.fake is not None
        for share in (made.shares[0], None):
            wv.fake.misbehave("answer", on="/v1/objects", times=2, status=429, body={"error": [{"message": "busy"}]})
            async with aclosing(wv.driver.export_rows(replace(request, share=share))) as parts:
                found = [(part.rows, part.turned_away) async for part in parts]
            assert wv.fake.troubles.pop().times < 0
            assert sum(rows for rows, _ in found) == 30
            assert [part for part in found if part[1]] == ([(0, 1), (0, 1)] if share else [])
