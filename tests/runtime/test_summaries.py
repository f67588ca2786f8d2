"""A session's summaries of columns: figures over a driver in its sandbox, and what of a driver's result is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

import wheelhouse
from dragoman import Filter
from dragoman_api.cells import CutText, Json
from dragoman_api.errors import ConfigurationError, DriverFaultError, Refused, SandboxError, UnsupportedOperationError
from dragoman_api.summaries import SUMMARY_TEXT, Bucket, Figure, ValueCount
from dragoman_worker.hooks_and_deadlines import HOOKS

MEMORY = "from .memory_driver import MemoryDriver as Driver\n"

ODD = """
from decimal import Decimal

from dragoman_api import Column, Json, Note, hookimpl
from dragoman_api.summaries import Bucket, ColumnSummary, Figure, ValueCount
from .memory_driver import MemoryDriver

RESULTS = {
    "wide": dict(
        rows=2**40, missing=1,
        values=[ValueCount(each, 1) for each in (2**70, Decimal("1.10"), b"x", Json("[1]"), None, True, "a")],
        minimum=-(2**65), maximum=Decimal("1E+400"), buckets=[Bucket(2**64, 2**65, 3)],
    ),
    "long": dict(rows=1, values=[ValueCount("ä" * 100_000, 1)], maximum="b" * 100_000),
    "told": dict(
        rows=1, approximate={Figure.VALUES: "shards\\x1b[31m"}, absent={Figure.MAXIMUM: "z" * 10_000},
        notes=[Note(code="odd", reason="\\x1b[2Jr", hint="h")],
    ),
    "values": dict(rows=1, values=[ValueCount(each, 1) for each in range(101)]),
    "few": dict(rows=1, values=[ValueCount(each, 1) for each in range(11)]),
    "buckets": dict(rows=1, buckets=[Bucket(each, each + 1, 1) for each in range(51)]),
    "negative": dict(rows=1, values=[ValueCount(1, -1)]),
    "missing": dict(rows=1, missing=2),
    "other": dict(rows=1, column=Column(name="elsewhere", type="long")),
}


class Driver(MemoryDriver):
    @hookimpl
    async def summarize_column(self, request):
        return ColumnSummary(**{"column": Column(name=request.column, type="long"), **RESULTS[request.column]})
"""


@pytest.fixture
def open_driver(make_runtime):
    def make(code=MEMORY, **more):
        driver = wheelhouse.Driver("memory", code=code, hooks=[*HOOKS], capabilities=["browse"])
        return make_runtime(driver, installed=True, **more)

    return make


async def test_a_column_is_summarized_under_a_filter(open_driver):
    async with open_driver() as runtime, runtime.open("memory") as session:
        found = await session.rows("books", filters=[Filter("stock", ">", 0)]).summarize("stock", values=2, buckets=4)
        assert (found.rows, found.missing, found.present, found.distinct) == (19, 0, 19, 4)
        assert found.values == [ValueCount(1, 5), ValueCount(2, 5)]
        assert (found.minimum, found.maximum) == (1, 4)
        assert found.buckets == [Bucket(1, 2, 5), Bucket(2, 3, 5), Bucket(3, 4, 5), Bucket(4, 5, 4)]
        assert (found.approximate, found.absent, found.notes) == ({}, {}, [])
        whole = await session.rows("books").summarize("available")
        assert (whole.rows, whole.missing, whole.values) == (23, 1, [ValueCount(False, 11), ValueCount(True, 11)])
        with pytest.raises(UnsupportedOperationError, match="arrays"):
            await session.rows("books").summarize("tags")


async def test_what_makes_the_filter_approximate_is_a_note_of_the_summary(open_driver):
    from dragoman import RawQuery

    async with open_driver() as runtime, runtime.open("memory") as session:
        found = await session.rows("books", filters=[RawQuery("Tea")]).summarize("stock")
        assert [note.code for note in found.notes] == [
            note.code for note in (await session.rows("books", filters=[RawQuery("Tea")]).count()).notes
        ] != []  # fmt: skip


async def test_numbers_of_any_size_and_digits_arrive_as_they_are(open_driver):
    async with open_driver(ODD) as runtime, runtime.open("memory") as session:
        found = await session.rows("books").summarize("wide")
        cells = [each.value for each in found.values]
        assert cells == [2**70, Decimal("1.10"), b"x", "[1]", None, True, "a"]
        assert str(cells[1]) == "1.10"
        assert type(cells[3]) is Json
        assert (found.minimum, found.maximum) == (-(2**65), Decimal("1E+400"))
        assert found.buckets == [Bucket(2**64, 2**65, 3)]


async def test_long_texts_are_cut_and_a_drivers_sentences_made_harmless(open_driver):
    async with open_driver(ODD) as runtime, runtime.open("memory") as session:
        found = await session.rows("books").summarize("long")
        value = found.values[0].value
        assert type(value) is type(found.maximum) is CutText
        assert value == "ä" * (SUMMARY_TEXT // 2) + "..."
        told = await session.rows("books").summarize("told")
        assert "\x1b" not in told.approximate[Figure.VALUES]
        assert "shards" in told.approximate[Figure.VALUES]
        assert len(told.absent[Figure.MAXIMUM]) == 4_001
        assert "\x1b" not in told.notes[0].reason
        assert told.notes[0].hint_from == "driver"


@pytest.mark.parametrize("column", ["values", "few", "buckets", "negative", "missing", "other"])
async def test_a_result_that_cannot_be_is_a_fault_of_the_driver(open_driver, column):
    async with open_driver(ODD) as runtime, runtime.open("memory") as session:
        with pytest.raises((DriverFaultError, SandboxError)):
            await session.rows("books").summarize(column, buckets=50)
        assert await session.rows("books").count() == 23


async def test_too_many_values_or_buckets_are_refused_before_a_call(open_driver):
    async with open_driver() as runtime, runtime.open("memory") as session:
        for more in ({"values": 101}, {"values": -1}, {"buckets": 51}, {"buckets": -1}):
            with pytest.raises(ConfigurationError, match="0 to"):
                await session.rows("books").summarize("stock", **more)
        found = await session.rows("books").summarize("stock", values=0, buckets=0)
        assert (found.values, found.buckets, found.distinct) == ([], [], 5)
        with pytest.raises(UnsupportedOperationError, match="tenants"):
            await session.rows("books", tenant="acme").summarize("stock")


async def test_the_limit_of_bytes_holds_for_a_summary(open_driver, home):
    runtime = open_driver(ODD)
    file = home / "config/config.toml"
    file.write_text(file.read_text() + "\n[guards.connections.memory.limits]\nbytes = 1000\n")
    async with type(runtime)(spare=False) as again, again.open("memory") as session:
        with pytest.raises(Refused, match="bytes"):
            await session.rows("books").summarize("long")
