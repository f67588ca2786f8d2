"""Each row of the table of differences, on stored objects that show it; and what is exact at the edges of each type."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from drivers.weaviate.rig import OnFake, OnServer, Rig, key
from drivers.weaviate.views import view

from dragoman_api import CountRequest, Filter, FilterNotSupportedError, FilterRequest
from dragoman_api import Operator as Op
from dragoman_weaviate.graphql import literal
from dragoman_weaviate.grid import filters
from dragoman_weaviate.grid.exactness import TABLE
from dragoman_weaviate.grid.filters import compile_filter

if TYPE_CHECKING:
    from collections.abc import Callable

WORD, SPACED, FIELD, TRIGRAM = (
    {"dataType": ["text"], "tokenization": each} for each in ("word", "whitespace", "field", "trigram")
)
FOLDED = WORD | {"textAnalyzer": {"asciiFold": True}}
RANGED = {"dataType": ["int"], "indexFilterable": False, "indexRangeFilters": True}
AGO = "1439-06-13T00:25:26.290448384Z"
"""The moment that is 2^64 nanoseconds before 2024-01-01T00:00:00Z."""


# what a filter row plainly says ---------------------------------------------------------------------------------------


def nanoseconds(text: str) -> Decimal:
    whole, fraction, zone = re.fullmatch(r"([^.Z+]+?)(\.\d+)?(Z|[+-]\d\d:\d\d)", text).groups()
    moment = datetime.fromisoformat(whole + zone) - datetime.fromisoformat("1970-01-01T00:00:00Z")
    return (moment.days * 86_400 + moment.seconds + Decimal("0" + (fraction or ""))) * 10**9


def value_of(text: Any, column: Any) -> Any:
    kind = str(column if isinstance(column, str) else column["dataType"][0]).removesuffix("[]")
    if kind == "date":
        return nanoseconds(text)
    return Decimal(str(text)) if kind in ("int", "number") else text


TESTS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: lambda cell, value: cell == value,
    Op.GT: lambda cell, value: cell > value,
    Op.GE: lambda cell, value: cell >= value,
    Op.LT: lambda cell, value: cell < value,
    Op.LE: lambda cell, value: cell <= value,
    Op.CONTAINS: lambda cell, value: value in cell,
    Op.STARTS: lambda cell, value: cell.startswith(value),
    Op.ENDS: lambda cell, value: cell.endswith(value),
}
NEGATED = {Op.NE: Op.EQ, Op.NOT_IN: Op.IN, Op.NOT_CONTAINS: Op.CONTAINS}


def says(row: Filter, cell: Any, column: Any) -> bool:
    """Return whether a stored cell satisfies a filter row, taken at its word: one element of an array is enough."""
    if row.op in (Op.NULL, Op.NOT_NULL):
        return (cell is None) is (row.op is Op.NULL)
    if row.op in (Op.EMPTY, Op.NOT_EMPTY):
        return (cell in ("", [])) if row.op is Op.EMPTY else cell not in (None, "", [])
    if cell is None:
        return False
    if row.op in NEGATED:
        return not says(Filter(row.column, NEGATED[row.op], row.value, case=row.case), cell, column)
    if row.op is Op.NEAR:
        latitude, longitude, metres = row.value.removesuffix("m").split(",")
        one, two = (
            (math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a))
            for a, b in (
                map(math.radians, (cell["latitude"], cell["longitude"])),
                map(math.radians, (float(latitude), float(longitude))),
            )
        )
        return 2 * 6_371_000 * math.asin(min(1.0, math.dist(one, two) / 2)) <= float(metres)
    if row.op is Op.IN:
        return any(says(Filter(row.column, Op.EQ, each), cell, column) for each in row.value)
    if row.op is Op.BETWEEN:
        low, high = (Filter(row.column, op, each) for op, each in zip((Op.GE, Op.LE), row.value, strict=True))
        return says(low, cell, column) and says(high, cell, column)
    cells = [value_of(each, column) for each in (cell if isinstance(cell, list) else [cell])]
    value = value_of(row.value, column)
    if isinstance(value, str) and (row.case is False or (row.case is None and column not in (SPACED, FIELD))):
        cells, value = [each.lower() for each in cells], value.lower()
    return any(TESTS[row.op](each, value) for each in cells)


# the cases ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """A filter row on cells of one column, `x`; what it finds where it is approximate, by position.

    A refused one is sent past the driver as `raw`: either the server finds something else, or it answers an error.
    """

    name: str
    column: Any
    cells: list[Any]
    op: str
    value: Any = None
    case: bool | None = None
    finds: list[int] | None = None
    raw: dict[str, Any] | None = None

    @property
    def row(self) -> Filter:
        return Filter("x", self.op, self.value, case=self.case)

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [{} if cell is None else {"x": cell} for cell in self.cells]


def raw(operator: str, **value: Any) -> dict[str, Any]:
    return {"path": ["x"], "operator": operator, **value}


NEW_YEAR = "2024-01-01T00:00:00Z"
APPROXIMATE = [
    Case(name="absent", column="int", cells=[1, 2, None], op="!=", value=1, finds=[1, 2]),
    Case(name="absent", column="int", cells=[1, 2, None], op="not-in", value=[1], finds=[1, 2]),
    Case(name="absent", column=RANGED, cells=[1, 2, None], op="!=", value=1, finds=[1, 2]),
    Case(name="absent", column="uuid", cells=[key(1), key(2), None], op="not-in", value=[key(1)], finds=[1, 2]),
    Case(name="case kept", column=FIELD, cells=["Tea", "tea"], op="=", value="tea", case=False, finds=[1]),
    Case(name="case lost", column=WORD, cells=["Tea", "tea"], op="contains", value="te", case=True, finds=[0, 1]),
    Case(name="case lost", column=TRIGRAM, cells=["Tea", "tea"], op="=", value="tea", case=True, finds=[0, 1]),
    Case(name="dotted capital", column=WORD, cells=["İ", "i", "x"], op="contains", value="İ", finds=[0, 1]),
    Case(name="dotted capital", column=WORD, cells=["İb", "ib", "b"], op="=", value="İb", finds=[0, 1]),
    Case(name="dotted capital", column=TRIGRAM, cells=["İzmir", "izmir", "x"], op="in", value=["İzmir"], finds=[0, 1]),
    Case(name="dotted capital", column=WORD, cells=["İ", "i", "x"], op="not-contains", value="İ", finds=[2]),
    Case(name="accents", column=FOLDED, cells=["café", "cafe", "tea"], op="contains", value="cafe", finds=[0, 1]),
    Case(name="accents", column=FOLDED, cells=["Straße", "strasse"], op="contains", value="ße", finds=[0, 1]),
    Case(name="white space", column=FIELD, cells=["tea", " tea "], op="=", value="tea", finds=[0, 1]),
    Case(name="white space", column=FIELD, cells=["tea", " tea\n"], op="ends", value="tea", finds=[0, 1]),
    Case(
        name="stopwords", column=WORD, cells=["war peace", "war and peace"], op="=", value="war and peace", finds=[0, 1]
    ),
    Case(name="all words", column=WORD, cells=["war peace", "peace, war!", "war"], op="=", value="war peace",
         finds=[0, 1]),
    Case(name="all words", column=TRIGRAM, cells=["hello", "othello", "hell"], op="in", value=["hello"], finds=[0, 1]),
    Case(name="any word left out", column=WORD, cells=["war peace", "war", "tea"], op="!=", value="war peace",
         finds=[2]),
    Case(name="any word left out", column=TRIGRAM, cells=["hello", "help", "tea"], op="!=", value="hello", finds=[2]),
    Case(name="all words left out", column=WORD, cells=["war peace", "peace war", "war"], op="not-in",
         value=["war peace"], finds=[2]),
    Case(name="wildcards", column=FIELD, cells=["a*b", "axb", "a?b"], op="contains", value="a*b", finds=[0, 1, 2]),
    Case(name="wildcards", column=FIELD, cells=["a?b", "axb", "axxb"], op="contains", value="a?b", finds=[0, 1]),
    Case(name="wildcards", column=WORD, cells=["axb", "ab"], op="contains", value="a?b", finds=[0]),
    Case(name="line breaks", column=FIELD, cells=["Line", "Line1\nLine2"], op="contains", value="ine", finds=[0]),
    Case(name="line breaks left in", column=FIELD, cells=["tea", "Line1\nLine2"], op="not-contains", value="ine",
         finds=[0, 1]),
    Case(name="parts of a pattern", column=WORD, cells=["tea time", "time for tea"], op="contains", value="tea time",
         finds=[0, 1]),
    Case(name="any word", column=WORD, cells=["tea time", "time for tea"], op="starts", value="tea", finds=[0, 1]),
    Case(name="any word", column=WORD, cells=["tea time", "time for tea"], op="ends", value="tea", finds=[0, 1]),
    Case(name="several elements", column="text[]", cells=[["red apple", "green pear"], ["red pear"]], op="=",
         value="red pear", finds=[0, 1]),
    Case(name="several elements", column="text[]", cells=[["red apple", "green pear"], ["red pear"]], op="contains",
         value="red pear", finds=[0, 1]),
    Case(name="rounded integer", column="int", cells=[2**53, 2**53 + 1, 1], op="=", value=2**53 + 1, finds=[0, 1]),
    Case(name="rounded integer", column=RANGED, cells=[2**53, 1], op=">=", value=2**53 + 1, finds=[0]),
    Case(name="overflow", column="int", cells=[1, 2**63 - 1, 2**53], op=">", value=0, finds=[0, 2]),
    Case(name="overflow", column="int[]", cells=[[1], [2**63 - 512], [-1]], op="<", value=0, finds=[1, 2]),
    Case(name="overflow", column=RANGED, cells=[1, 2**63 - 1], op=">=", value=1, finds=[0]),
    Case(name="overflow", column="int", cells=[-(2**63), 2**63 - 1, 0], op="=", value=-(2**63), finds=[0, 1]),
    Case(name="overflow", column="int[]", cells=[[-(2**63)], [2**63 - 1], [0]], op="in", value=[7, -(2**63) + 1],
         finds=[0, 1]),
    Case(name="overflow", column="int", cells=[-(2**63), 2**63 - 1, 0], op="!=", value=-(2**63), finds=[2]),
    Case(name="overflow", column="int", cells=[-(2**63), 2**63 - 1, 1], op="between", value=[-(2**63), 0],
         finds=[0, 1]),
    Case(name="rounded number", column="number", cells=[2.0**53, 1.5], op="=", value="9007199254740993", finds=[0]),
    Case(name="far dates", column="date", cells=[NEW_YEAR, "9999-12-31T00:00:00Z", "1000-01-01T00:00:00Z"], op=">",
         value="2020-01-01T00:00:00Z", finds=[0, 2]),
    Case(name="far dates", column="date", cells=[NEW_YEAR, AGO, "9999-12-31T00:00:00Z"], op="=", value=NEW_YEAR,
         finds=[0, 1]),
    Case(name="far dates", column="date", cells=[NEW_YEAR, AGO], op="not-in", value=[NEW_YEAR], finds=[]),
    Case(name="far dates", column="date[]", cells=[[NEW_YEAR], ["9999-12-31T00:00:00Z"]], op=">=", value=NEW_YEAR,
         finds=[0]),
    Case(name="digits of a second", column="date", cells=["2024-01-01T00:00:00.123456789Z"], op="=",
         value="2024-01-01T00:00:00.1234567891Z", finds=[0]),
    Case(name="coordinates", column="geoCoordinates", op="near", value="52.12500178,13.5,0.1m", finds=[0],
         cells=[{"latitude": 52.125, "longitude": 13.5}, {"latitude": 52.126, "longitude": 13.5}, None]),
    Case(name="empty is null", column=WORD, cells=["", "a", None], op="null", finds=[0, 2]),
    Case(name="empty is null", column="int[]", cells=[[], [1], None], op="not-null", finds=[1]),
    Case(name="null is empty", column=WORD, cells=["", "a", None], op="empty", finds=[0, 2]),
]  # fmt: skip
RARE = {each.name: each.shown_by for each in TABLE if each.shown_by is not None}
REFUSED = [
    Case(name="no word", column=WORD, cells=["@@@", "tea"], op="=", value="@@@", raw=raw("Equal", valueText="@@@")),
    Case(name="no trigram", column=TRIGRAM, cells=["he", "hello"], op="=", value="he",
         raw=raw("Equal", valueText="he")),
    Case(name="no trigram", column=TRIGRAM, cells=["he", "hello"], op="in", value=["hello", "he"],
         raw=raw("ContainsAny", valueText=["hello", "he"])),
    Case(name="only stopwords", column=WORD, cells=["the", "tea"], op="in", value=["tea", "the"],
         raw=raw("ContainsAny", valueText=["tea", "the"])),
    Case(name="only stopwords", column=WORD, cells=["the", "tea"], op="!=", value="the",
         raw=raw("NotEqual", valueText="the")),
    Case(name="no characters", column=WORD, cells=["a@b", "a", "@"], op="contains", value="@",
         raw=raw("Like", valueText="*@*")),
    Case(name="smallest integer", column="int", cells=[5, -5], op=">", value=2**63 - 1,
         raw=raw("GreaterThan", valueInt=2**63 - 1)),
    Case(name="smallest integer", column="int[]", cells=[[5], [-5]], op="<=", value=2**63 - 512,
         raw=raw("LessThanEqual", valueInt=2**63 - 512)),
    Case(name="smallest integer", column="int", cells=[-(2**63)], op="=", value=2**63 - 1,
         raw=raw("Equal", valueInt=2**63 - 1)),
    Case(name="far bound", column="date", cells=[NEW_YEAR], op="<", value="9999-12-31T00:00:00Z",
         raw=raw("LessThan", valueDate="9999-12-31T00:00:00Z")),
    Case(name="far bound", column="date", cells=[NEW_YEAR], op=">=", value="1677-09-20T23:59:59+00:00",
         raw=raw("GreaterThanEqual", valueDate="1677-09-20T23:59:59+00:00")),
]  # fmt: skip
BY_VERSION = {"old patterns", "negative zero", "null before the property"}
"""Differences of versions that no engine here runs; their reasons are below."""

LONG = "x" * 100_000
EXACT = [
    Case(name="integers", column="int", cells=[2**53, 2**53 - 1, -(2**53), 0, None], op="=", value=2**53),
    Case(name="integers", column="int", cells=[2**53, -(2**53), 0], op="in", value=[2**53, -(2**53)]),
    Case(name="integers", column="int", cells=[1, 2**63 - 1, -(2**63), -5, 7], op="between", value=[-5, 5]),
    Case(name="numbers", column="number", cells=[-0.0, 0.0, 5e-324, -5e-324, 1e308], op="=", value=0),
    Case(name="numbers", column="number", cells=[-0.0, 0.0, 5e-324, -5e-324, 1e308], op="<", value=0),
    Case(name="numbers", column="number", cells=[-0.0, 0.0, 5e-324, -1e308, 1.7976931348623157e308], op=">=",
         value=-0.0),
    Case(name="numbers", column="number", cells=[0.1, 0.30000000000000004, 0.3], op="between", value=[0.1, "0.3"]),
    Case(name="numbers", column="number[]", cells=[[1, 5], [3], []], op=">", value=3),
    Case(name="truth", column="boolean", cells=[True, False, None], op="=", value=False),
    Case(name="uuids", column="uuid", cells=[key(1), key(2), None], op="in", value=[key(2).upper()]),
    Case(name="uuids", column="uuid[]", cells=[[key(1), key(2)], [key(3)], []], op="=", value=key(2)),
    Case(name="texts", column=WORD, cells=["Teatime", "a tea", "te", "日本語"], op="contains", value="tea"),
    Case(name="texts", column=WORD, cells=[LONG + "tea", LONG, "tea"], op="contains", value="xtea"),
    Case(name="texts", column="text[]", cells=[["a", "Tea"], ["b"], []], op="contains", value="EA"),
    Case(name="texts", column=SPACED, cells=["a@b", "A@B", "@"], op="contains", value="a@"),
    Case(name="nothing", column="int", cells=[1, None, 0], op="null"),
    Case(name="nothing", column=RANGED, cells=[1, None, 0], op="not-null"),
    Case(name="nothing", column="date", cells=["9999-12-31T00:00:00Z", None], op="null"),
    Case(name="nothing", column="text[]", cells=[[], ["a"], None, [""]], op="not-empty"),
]  # fmt: skip


def by_name(cases: list[Case]) -> Any:
    return pytest.mark.parametrize(
        "case", [pytest.param(each, id=f"{each.name}-{each.op}-{at}") for at, each in enumerate(cases)]
    )


def plainly(case: Case, cells: list[Any]) -> list[int]:
    return [at for at, cell in enumerate(cells) if says(case.row, cell, case.column)]


async def stored(wv: Rig, name: str, case: Case) -> list[Any]:
    """Return the cells as the server stored them, by their numbers."""
    return [(await wv.stored(name, key(at)) or {})["properties"].get("x") for at in range(len(case.cells))]


def test_every_difference_has_a_case():
    """W38: what is refused and what is approximate is shown, on a server where there is one."""
    assert {each.name for each in TABLE if not each.refused} == {each.name for each in APPROXIMATE} | (
        BY_VERSION - {"old patterns"} | {"nearest"}
    )
    assert {each.name for each in TABLE if each.refused} == {each.name for each in REFUSED} | {"old patterns"}
    assert len({each.name for each in TABLE}) == len(TABLE)


@pytest.mark.parametrize(
    ("row", "newer", "older"),
    [
        (Filter("price", "=", 1), (1, 38, 0), (1, 37, 9)),
        (Filter("pages", "null"), (1, 33, 0), (1, 32, 9)),
        (Filter("title", "empty"), (1, 33, 0), (1, 32, 9)),
    ],
)
def test_differences_of_older_versions_are_told(wording, row, newer, older):
    """W13, W18: -0.0 was not 0.0 (weaviate/weaviate#11120), and without Not old rows are missing under null."""
    for version in (newer, older):
        [told] = compile_filter(FilterRequest(object="Book", rows=[row]), view(version=version)).rows
        wording("; ".join(told.approximations))


def test_negated_lists_of_older_versions_leave_out_any_word(wording):
    """W16: below 1.33 each value is a NotEqual."""
    rows = [Filter("title", "not-in", ["war peace", "tea"])]
    for version in ((1, 33, 0), (1, 32, 9)):
        [told] = compile_filter(FilterRequest(object="Book", rows=rows), view(version=version)).rows
        wording("; ".join(told.approximations))


class Rules:
    @by_name(APPROXIMATE)
    async def test_what_is_approximate_finds_other_rows_and_says_why(self, wv: Rig, case: Case):
        """W13, W15, W16, W18, W19: in pages, counts and exports."""
        name = await wv.collection({"x": case.column}, case.objects)
        compiled = await wv.filter(name, case.row)
        [told] = compiled.rows
        reasons = {each.name: each.reason for each in TABLE}
        start = reasons[case.name].partition("{")[0]
        assert [each for each in told.approximations if each.startswith(start)], told.approximations
        assert not told.exact
        found = await wv.numbers(name, case.row)
        assert found == case.finds
        assert found != plainly(case, await stored(wv, name, case))
        assert await wv.driver.count_rows(CountRequest(object=name, filter=compiled)) == len(found)
        assert len(await wv.export(name, case.row)) == len(found)

    @by_name([case for case in APPROXIMATE if case.name in RARE])
    async def test_a_difference_that_only_rare_values_show_is_unlikely_without_them(self, wv: Rig, case: Case):
        """A warning that every filter carries is none."""
        rare = RARE[case.name]
        cells = [cell for cell in case.cells if not any(map(rare, cell if isinstance(cell, list) else [cell]))]
        [with_them, without] = [
            await wv.collection({"x": case.column}, [{"x": cell} for cell in shown]) for shown in (case.cells, cells)
        ]
        [told] = (await wv.filter(with_them, case.row)).rows
        assert any("; a row holds " in each for each in told.approximations)
        compiled = await wv.filter(without, case.row)
        [told] = compiled.rows
        start = next(each.reason for each in TABLE if each.name == case.name).partition("{")[0]
        assert [each for each in told.unlikely if each.startswith(start)], told
        assert told.unlikely[0].endswith(f"; none in {len(cells)} rows with a value")
        assert not told.exact
        if not told.approximations:
            assert await wv.numbers(without, case.row) == [
                at for at, cell in enumerate(cells) if says(case.row, cell, case.column)
            ]

    async def test_one_look_serves_all_filters_of_a_collection(self, wv: Rig):
        name = await wv.collection({"n": "int", "m": "int", "t": WORD}, [{"n": 1, "m": 2, "t": "a"}])
        await wv.filter(name, Filter("t", "contains", "a"))
        await wv.filter(name, Filter("n", "=", 1))
        assert wv.sent("GET", "/v1/objects") == []
        for row in (Filter("n", ">", 0), Filter("m", "<", 5), Filter("n", ">=", 3)):
            [told] = (await wv.filter(name, row)).rows
            assert (told.approximations, len(told.unlikely)) == ([], 1)
        assert len(wv.sent("GET", "/v1/objects")) == 1

    async def test_a_collection_of_tenants_is_not_looked_at(self, wv: Rig):
        name = await wv.collection({"n": "int"}, [], multiTenancyConfig={"enabled": True})
        [told] = (await wv.filter(name, Filter("n", ">", 0))).rows
        assert (len(told.approximations), told.unlikely) == (1, [])
        assert wv.sent("GET", "/v1/objects") == []

    async def test_a_look_that_would_take_too_many_bytes_is_given_up(self, wv: Rig, monkeypatch):
        monkeypatch.setattr(filters, "SAMPLE_BYTES", 100)
        name = await wv.collection({"n": "int", "t": WORD}, [{"n": 1, "t": "a" * 100}])
        [told] = (await wv.filter(name, Filter("n", ">", 0))).rows
        assert (len(told.approximations), told.unlikely) == (1, [])

    async def test_a_rare_value_in_the_filter_row_itself_makes_it_approximate(self, wv: Rig):
        name = await wv.collection({"x": FIELD}, [{"x": "tea"}])
        [told] = (await wv.filter(name, Filter("x", "=", " tea"))).rows
        assert (told.approximations, told.unlikely) == (["white space around the text is not compared"], [])
        assert await wv.numbers(name, Filter("x", "=", " tea")) == [0]

    @by_name(REFUSED)
    async def test_what_the_server_would_answer_wrongly_is_refused(self, wv: Rig, case: Case):
        """W38: sent past the driver, it finds other rows, or is an error."""
        name = await wv.collection({"x": case.column}, case.objects)
        with pytest.raises(FilterNotSupportedError) as caught:
            await wv.filter(name, case.row)
        reason = next(each.reason for each in TABLE if each.name == case.name)
        assert all(part in caught.value.details["reason"] for part in re.split(r"\{[^}]*\}", reason))
        query = f"{{Get{{{name}(limit:100,where:{literal(case.raw)}){{_additional{{id}}}}}}}}"
        answer = await wv.call("POST", "/v1/graphql", {"query": query})
        if not answer.get("errors"):
            ids = {each["_additional"]["id"] for each in answer["data"]["Get"][name]}
            found = [at for at in range(len(case.cells)) if key(at) in ids]
            assert found != plainly(case, await stored(wv, name, case))

    @by_name(EXACT)
    async def test_what_is_exact_finds_what_it_says(self, wv: Rig, case: Case):
        """W12-W19: at the edges of each type."""
        name = await wv.collection({"x": case.column}, case.objects)
        compiled = await wv.filter(name, case.row)
        assert compiled.rows[0].exact, compiled.rows[0].approximations
        found = await wv.numbers(name, case.row)
        assert found == plainly(case, await stored(wv, name, case))
        assert await wv.driver.count_rows(CountRequest(object=name, filter=compiled)) == len(found)

    async def test_only_the_nearest_800_rows_are_found(self, wv: Rig):
        """So a filter row never claims to find all."""
        places = [{"latitude": 50 + at / 1000, "longitude": 4.0} for at in range(805)]
        name = await wv.collection({"x": "geoCoordinates"}, [{"x": place} for place in places])
        row = Filter("x", "near", "50,4,1000km")
        compiled = await wv.filter(name, row)
        assert "at most the nearest 800 rows of a shard" in compiled.rows[0].approximations[0]
        assert await wv.driver.count_rows(CountRequest(object=name, filter=compiled)) == 800
        assert len(await wv.export(name, row)) == 800

    async def test_rows_that_are_older_than_a_property_are_null(self, wv: Rig):
        """W18, W19: the server notes an absent value when it writes a row, so it does not know of older rows."""
        name = await wv.collection({"t": "text"}, [{"t": "a"}, {}])
        for kind in ("int", "text"):
            definition = {"name": f"new_{kind}", "dataType": [kind]}
            await wv.call("POST", f"/v1/schema/{name}/properties", definition)
        ids = [key(at) for at in (2, 3)]
        await wv.load(name, [{"id": ids[0], "new_int": 1, "new_text": "v"}, {"id": ids[1]}])
        for column in ("new_int", "new_text"):
            assert await wv.numbers(name, Filter(column, "null")) == [0, 1, 3]
            assert await wv.numbers(name, Filter(column, "not-null")) == [2]
            assert await wv.numbers(name, Filter(column, "!=", "1" if column == "new_int" else "v")) == [0, 1, 3]
        assert await wv.numbers(name, Filter("new_text", "empty")) == [0, 1, 3]
        assert await wv.numbers(name, Filter("new_text", "not-empty")) == [2]
        query = f'{{Get{{{name}(where:{{path:["new_int"],operator:IsNull,valueBoolean:true}}){{_additional{{id}}}}}}}}'
        answer = await wv.call("POST", "/v1/graphql", {"query": query})
        assert [each["_additional"]["id"] for each in answer["data"]["Get"][name]] == [key(3)]

    async def test_without_an_index_of_nulls_empty_means_empty(self, wv: Rig):
        """W19: absent texts have no length there, and null is refused."""
        rows = [{"x": ""}, {"x": "a"}, {}]
        name = await wv.collection({"x": "text"}, rows, index={"indexPropertyLength": True})
        compiled = await wv.filter(name, Filter("x", "empty"))
        assert compiled.rows[0].exact
        assert await wv.numbers(name, Filter("x", "empty")) == [0]
        with pytest.raises(FilterNotSupportedError, match="indexNullState"):
            await wv.filter(name, Filter("x", "null"))

    async def test_stopwords_are_those_of_the_property_in_their_letter_case(self, wv: Rig):
        """W13: a property may have a preset of its own, and a stopword with a capital never meets a word."""
        index = {"indexNullState": True, "stopwordPresets": {"mine": ["war"]}}
        index |= {"stopwords": {"preset": "en", "additions": ["TEA"], "removals": None}}
        types = {"usual": WORD, "none": WORD | {"textAnalyzer": {"stopwordPreset": "none"}}}
        types["own"] = WORD | {"textAnalyzer": {"stopwordPreset": "mine"}}
        name = await wv.collection(types, [dict.fromkeys(types, text) for text in ("the", "war", "tea")], index=index)
        for column, word, finds in (
            ("usual", "the", None), ("usual", "war", [1]), ("usual", "tea", [2]), ("none", "the", [0]),
            ("own", "the", [0]), ("own", "war", None), ("own", "tea", [2]),
        ):  # fmt: skip
            if finds is None:
                with pytest.raises(FilterNotSupportedError, match="stopwords"):
                    await wv.filter(name, Filter(column, "=", word))
            else:
                assert await wv.numbers(name, Filter(column, "=", word)) == finds, (column, word)


class TestDifferencesOnFake(OnFake, Rules):
    pass


@pytest.mark.one_engine
class TestDifferencesOnServer(OnServer, Rules):
    pass
