"""A filter row that claims to be exact finds what Python finds in the stored documents, for every kind of mapping."""

from __future__ import annotations

import ipaddress
import itertools
import json
import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig
from drivers.elasticsearch.test_objects import read, view

from dragoman_api import CountRequest, Filter, FilterNotSupportedError, FilterRequest, PageRequest, Sort
from dragoman_api import Operator as Op
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl.columns import dates, exactness, field_types
from dragoman_querydsl.grid import filters
from dragoman_querydsl.grid.filters import compile_filter
from thorough import THOROUGH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dragoman_querydsl.columns.grid_columns import View

# what a stored value is, in Python


class Spelled(float):
    """A number with decimals that keeps its digits, which texts compare."""

    def __new__(cls, digits: str) -> Spelled:
        made = super().__new__(cls, digits)
        made.digits = digits
        return made

    digits: str

    def __str__(self) -> str:
        return self.digits


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values of a field: those of an array one by one, nulls never."""
    if isinstance(value, list):
        for each in value:
            yield from leaves(each)
    elif value is not None:
        yield value


def text(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def number(value: Any) -> int | float:
    if isinstance(value, (int, float)):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    raise ValueError(value)


def boolean(value: Any) -> bool:
    return {"true": True, "false": False}[text(value)]


def address(value: Any) -> bytes:
    found = ipaddress.ip_address(value)
    return found.packed if found.version == 6 else b"\0" * 10 + b"\xff\xff" + found.packed


def addresses(value: str) -> tuple[bytes, bytes]:
    if "/" not in value:
        return (address(value),) * 2
    net = ipaddress.ip_network(value, strict=False)
    return address(str(net[0])), address(str(net[-1]))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?)?)?)?Z?")
_SPANS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1))


def span(value: Any) -> tuple[int, int]:
    """Return the first and the last nanosecond of a year, a month, …, a second, or of an instant or a period."""
    if "/" in (text := str(value)):
        begins, _, ends = text.partition("||/d" if "||" in text else "/")
        first = span(begins)[0]
        if ends:
            return first, span(ends)[0] - 1
        first -= first % 86_400_000_000_000
        return first, first + 86_400_000_000_000 - 1
    found = _ISO.fullmatch(str(value))
    if found is None:
        raise ValueError(value)
    given = [part for part in found.groups()[:6] if part is not None]
    parts = [int(part) for part in given] + [1] * max(0, 3 - len(given))
    first = datetime(*parts, tzinfo=UTC)  # type: ignore[misc]
    if len(given) < 3:
        year, month = first.year, first.month
        after = first.replace(
            year=year + (len(given) == 1 or month == 12), month=1 if len(given) == 1 else month % 12 + 1
        )
    else:
        after = first + _SPANS[len(given) - 3]
    low, end = ((moment - _EPOCH) // timedelta(microseconds=1) * 1000 for moment in (first, after))
    if found[7]:
        low += int(found[7].ljust(9, "0"))
        return low, low
    return low, end - 1


def instant(value: Any) -> int:
    return span(value)[0]


def points(stored: Any) -> Iterator[tuple[float, float]]:
    """Yield the points of a stored value: latitude and longitude."""
    if isinstance(stored, dict):
        yield float(stored["lat"]), float(stored["lon"])
    elif isinstance(stored, str) and stored.startswith("POINT"):
        longitude, latitude = re.findall(r"[-\d.]+", stored)
        yield float(latitude), float(longitude)
    elif isinstance(stored, str) and not isinstance(stored, Spelled):
        latitude, longitude = map(float, stored.split(","))
        yield latitude, longitude
    elif isinstance(stored, list) and stored and isinstance(stored[0], Spelled | int):
        yield float(stored[1]), float(stored[0])
    elif isinstance(stored, list):
        for each in stored:
            yield from points(each)


def lies(op: Op, at: tuple[float, float], given: str) -> bool:
    """Return whether a point lies in a circle or a box."""
    if op is Op.IN_BOX:
        south, west, north, east = map(float, given.split(","))
        across = west <= at[1] <= east if west <= east else not east < at[1] < west
        return south <= at[0] <= north and across
    latitude, longitude, metres = given.removesuffix("m").split(",")
    one, two = (
        (math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a))
        for a, b in (map(math.radians, at), map(math.radians, (float(latitude), float(longitude))))
    )
    return 2 * 6_371_008.7714 * math.asin(min(1.0, math.dist(one, two) / 2)) <= float(metres)


READERS: dict[str, Callable[[Any], Any]] = {
    "boolean": boolean, "date": instant, "date_nanos": instant, "ip": address,
    **dict.fromkeys(["byte", "short", "integer", "long", "unsigned_long", "double", "float", "half_float"], number),
    "scaled_float": number, "keyed": number,
}  # fmt: skip
SPANS = {"date": span, "date_nanos": span, "ip": addresses}
_FOLD = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})
_CONTAINS = {Op.CONTAINS: str.__contains__, Op.STARTS: str.startswith, Op.ENDS: str.endswith}
_POSITIVE = {Op.NE: Op.EQ, Op.NOT_IN: Op.IN, Op.NOT_CONTAINS: Op.CONTAINS, Op.NULL: Op.NOT_NULL}


def matches(kind: str, row: Filter, stored: Any) -> bool:
    """Evaluate a filter row on the stored value of a field."""
    if row.op in _POSITIVE:
        return not matches(kind, Filter(row.column, _POSITIVE[row.op], row.value), stored)
    plain = list(leaves(stored))
    if row.op is Op.NOT_NULL:
        return bool(plain)
    if row.op in (Op.NEAR, Op.IN_BOX):
        return any(lies(row.op, each, row.value) for each in points(stored))
    if row.op is Op.EMPTY:
        return "" in plain
    if row.op is Op.NOT_EMPTY:
        return bool(plain) and "" not in plain
    if row.op in (Op.IN, Op.BETWEEN):
        if row.op is Op.BETWEEN:
            low, high = row.value
            return any(
                matches(kind, Filter("", Op.GE, low), v) and matches(kind, Filter("", Op.LE, high), v) for v in plain
            )
        return any(matches(kind, Filter("", Op.EQ, each), stored) for each in row.value)
    return any(_compared(kind, row.op, value, row.value) for value in plain)


def _compared(kind: str, op: Op, stored: Any, given: Any) -> bool:
    if isinstance(stored, dict):
        return False  # an object is no text
    try:
        value = READERS.get(kind, text)(stored)
    except (ValueError, KeyError):
        return False
    if op in _CONTAINS:
        return _CONTAINS[op](value.translate(_FOLD), text(given).translate(_FOLD))
    if kind in SPANS:
        low, high = SPANS[kind](given)
    else:
        low = high = READERS.get(kind, text)(given)
    if isinstance(value, str):
        value, low, high = value.encode(), low.encode(), high.encode()
    side = -1 if value < low else 1 if value > high else 0
    return side == 0 if op is Op.EQ else side in {Op.GT: (1,), Op.GE: (0, 1), Op.LT: (-1,), Op.LE: (-1, 0)}[op]


# the cases


@dataclass(frozen=True)
class Case:
    """Documents with the edges of one kind of mapping, and the values to ask for.

    Attributes:
        cause: The row of the table that the mapping meets; empty if the mapping makes no difference.
        kind: The type of the column.
        spec: The other parameters of the field `f`.
        stored: Stored values of `f`, as JSON texts.
        values: Values for every operator that the column takes.
        column: The column, if it is not `f`.
        properties: The whole mapping, if there is more than `f`.
        documents: Whole documents, beside those of `stored`.
        settings: Settings of the index.
    """

    cause: str
    kind: str
    spec: dict[str, Any] = field(default_factory=dict)
    stored: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    column: str = "f"
    properties: dict[str, Any] | None = None
    documents: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return re.sub(
            r"[^\w]+", "-", f"{self.cause or 'exact'} {self.kind} {self.spec or ''}{self.settings or ''}"
        ).strip("-")

    @property
    def mapping(self) -> dict[str, Any]:
        return self.properties or {"f": {"type": self.kind, **self.spec}}

    @property
    def all(self) -> list[str]:
        return ["{}", '{"f":null}', *(f'{{"f":{each}}}' for each in self.stored), *self.documents]

    def value(self, document: str) -> Any:
        """Return the stored value of the column."""
        found: Any = json.loads(document, parse_float=Spelled)
        for key in self.column.split("."):
            found = [each.get(key) for each in leaves(found) if isinstance(each, dict)]
        return found


_WORDS = (
    '"a"',
    '"abc"',
    '"ABC"',
    '"abcd"',
    '"\\ud83d\\ude00\\ud83d\\ude00"',
    '"\\ud83d\\ude00a"',
    '""',
    '["a","abcd"]',
    "[]",
)
_ASKED = ("a", "abc", "abcd", "\U0001f600\U0001f600", "B")
_MALFORMED = ('"abc"', '[1,"abc"]', '""', "1", "5", "99999999999", '"1e400"')
_DECIMALS = ("1.7", "-0.5", '"12"', '"1.9"', "-1.2", "0", "1", "2", "-1", "-2", "[1.2,5]", "1e1")
_FLOATS = ("0", "-0.0", "0.0", '"-0.0"', "0.1", "0.100000001", "1.5", "1e-30", "-1.5", "1234.56789", "100")
_BIG = ("9007199254740993", "9007199254740992", "9007199254740991", "0.1", "1e300", "-0.0", "0")
_DAYS = (
    '"2024-01-05"',
    '"2024-01-05T10:00:00.123Z"',
    '"2024-01-05T10:00:00.1239Z"',
    '"1960-01-05T10:00:00.1239Z"',
    '"2024-02-01"',
)
_MOMENTS = ("2024-01-05", "2024-01-05T10:00:00", "2024-01-05T10", "2024-01", "2024", "2024-01-05T10:00:00.123Z",
            "2024-01-05T10:00:00.1235Z", "1960-01-05T10:00:00.123Z")  # fmt: skip
_PERIODS = ("2024-01-05T00:00:00Z/2024-01-06T00:00:00Z", "2024-01-05T10:00:00.123Z/2024-02-01T00:00:00Z",
            "2024-01-05T10:00:00.1239Z||/d", "2024-01-04T00:00:00Z/2024-01-05T10:00:00.123Z",
            "2024-01-05T10:00:00.123Z/2024-01-05T10:00:00.124Z")  # fmt: skip
_FINE_PERIOD = "2024-01-05T10:00:00.1235Z/2024-01-05T10:00:00.1239Z"
_POINTS = ('{"lat":1.23456789,"lon":10.98765432}', '"1.3,11"', "[11,1.5]", '[[11,1.5],[-11,-1.5]]', '"POINT (11 1.3)"',
           '{"lat":0,"lon":180}', '{"lat":0,"lon":-180}', '{"lat":90,"lon":0}', '"0,179.5"')  # fmt: skip
_PLACES = ("1.3000005,11,0.01m", "1.3,11,100m", "1.3,11,30000m", "0,180,100000m", "1,10,1.4,11.5",
           "-1,179,1,-179", "-90,-180,90,180")  # fmt: skip
_LAST = '"2024-01-05T23:59:59.9995Z"'
_OBJECTS = ('{"a":10,"b":"x"}', '{"a":9}', "{}", '{"a":null}', '{"a":{"b":"z"}}', '{"a":""}', '{"a":true}',
            '{"a":[1,[2]]}', '[{"a":1},{"a":"q"}]', '{"a":"long one"}')  # fmt: skip
_ADDRESSES = ('"10.0.0.1"', '"::ffff:10.0.0.1"', '"2001:DB8::2"', '"2001:db8:0:0:0:0:0:2"', '"10.0.1.0"')
_SUB = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}


def _with(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**spec, "fields": {"keyword": {**spec["fields"]["keyword"], **more}}}


CASES = (
    Case("ignore_above", "keyword", {"ignore_above": 3}, _WORDS, _ASKED),
    Case("ignore_above", "keyword", {"note": "sub"}, _WORDS, _ASKED, properties={"f": _with(_SUB, ignore_above=3)}),
    Case("ignore_above", "keyword", {}, _WORDS, _ASKED, settings={"index.mapping.ignore_above": 3}),
    Case("ignore_above", "keyword", {"note": "nested"}, (), _ASKED, column="n.f",
         properties={"n": {"type": "nested", "properties": {"f": {"type": "keyword", "ignore_above": 3}}}},
         documents=('{"n":[{"f":"a"}]}', '{"n":[{"f":"abcd"},{}]}', '{"n":[]}', '{"n":{"f":"abcd"}}')),
    Case("ignore_above", "keyword", {"note": "keyed"}, ('{"a":"abcd"}', '{"a":"ab"}', "{}"), ("ab", "abcd"),
         column="f.a", properties={"f": {"type": "flattened", "ignore_above": 3}}),
    Case("ignore_malformed", "integer", {"ignore_malformed": True, "coerce": False}, _MALFORMED, (1, 5, -1)),
    Case("ignore_malformed", "long", {"coerce": False}, (*_MALFORMED, '"99999999999999999999"'), (1, 5, -1),
         settings={"index.mapping.ignore_malformed": True}),
    Case("ignore_malformed", "double", {"ignore_malformed": True}, ('"1e400"', '"x"', "1", "5"), (1, 5)),
    Case("ignore_malformed", "date_nanos", {"ignore_malformed": True},
         ('"1500-01-01"', '"2024-01-05"', '"nope"', '""'), ("2024-01-05", "2024-01", "2024-01-05T10:00:00.123Z")),
    Case("ignore_malformed", "integer", {"note": "nested", "ignore_malformed": True}, (), (7,), column="n.f",
         properties={"n": {"type": "nested", "properties": {
             "f": {"type": "integer", "coerce": False, "ignore_malformed": True}}}},
         documents=('{"n":[{"f":1}]}', '{"n":[{"f":"x"}]}', '{"n":[]}')),
    Case("", "date", {"ignore_malformed": True}, ('"2024-01-05"', '"nope"', '""', '["2024-01-05","x"]'), ()),
    Case("", "ip", {"ignore_malformed": True}, ('"10.0.0.1"', '"nope"', '""'), ("10.0.0.1", "10.0.0.0/24")),
    Case("", "boolean", {"ignore_malformed": True}, ("true", '"yes"', '"true"'), (True,)),
    Case("", "geo_point", {"ignore_malformed": True}, ('"1,1"', '{"lat":"x","lon":1}', "[1,1]")),
    Case("null_value", "keyword", {"null_value": "none"}, ('"none"', '"x"', "[null]", "[]", '["x",null]'),
         ("none", "x")),
    Case("null_value", "keyword", {"note": "sub"}, ('"none"', '"x"', "[null]"), ("none", "x"),
         properties={"f": _with(_SUB, null_value="none")}),
    Case("null_value", "integer", {"null_value": 7, "coerce": False}, ("7", "1", "[null]"), (7, 1)),
    Case("null_value", "boolean", {"null_value": True}, ("true", "false", "[null]"), (True,)),
    Case("null_value", "ip", {"null_value": "10.0.0.1"}, _ADDRESSES, ("10.0.0.1", "2001:db8::2")),
    Case("null_value", "date", {"null_value": "2024-01-05"}, ('"2024-01-05"', '"2025-01-05"'), ("2024-01-05", "2025")),
    Case("null_value", "keyword", {"note": "keyed"}, ('{"a":"none"}', '{"a":null}', '{"a":"x"}'), ("none", "x"),
         column="f.a", properties={"f": {"type": "flattened", "null_value": "none"}}),
    Case("normalizer", "keyword", {"normalizer": "lowercase"}, ('"ABC"', '"abc"', '"\u00c4b"', '""'),
         ("ABC", "abc", "b")),
    Case("copy_to", "keyword", {}, (), ("x", "y"),
         properties={"f": {"type": "keyword"}, "a": {"type": "keyword", "copy_to": ["f"]},
                     "b": {"type": "integer", "copy_to": "f"}},
         documents=('{"a":"x"}', '{"f":"x"}', '{"b":7}', '{"a":"y","f":"x"}')),
    Case("text", "text", {}, ('"a b"', '"A"', '"a"', '""', '"!!!"', "7"), ("a", "a b", "7")),
    Case("text, parts", "text", {}, ('"ab c"', '"abc"'), ("a", "ab")),
    Case("flattened", "flattened", {}, _OBJECTS, ("1", "9", "x", "z")),
    Case("flattened, null", "flattened", {}, _OBJECTS, ()),
    Case("flattened, null", "keyword", {"note": "keyed"}, _OBJECTS, ("10", "true"), column="f.a",
         properties={"f": {"type": "flattened"}}),
    Case("flattened, order", "keyed", {}, ('{"a":10}', '{"a":9}', '{"a":2}'), (1, 9), column="f.a",
         properties={"f": {"type": "flattened"}}),
    Case("token_count", "token_count", {"analyzer": "standard"}, ('"a b c"', '"a"', '""', "7"), (1, 3)),
    Case("floats", "float", {}, _FLOATS, (0, 0.1, 1.5, -1.5, 100)),
    Case("floats", "half_float", {}, _FLOATS, (0, 0.1, 1.5, 100)),
    Case("floats", "float", {}, ("9.99", "999.999", "8388.61", "8388.62", "1.23456e-30", "16777200"),
         (9.9900001, 9.99, 999.999, 999.998, 8388.61, 8388.615, "1.23457e-30", 16777200)),
    Case("floats", "half_float", {}, ("1.1", "999", "0.00123", "65500"), (1.10001, 1.1, 999, 998, 0.00123, 65500)),
    Case("floats", "double", {}, (*_BIG, *_FLOATS), (0, 0.1, 1.5, 2**53, 2**53 - 1, "-0.0")),
    Case("scaled_float", "scaled_float", {"scaling_factor": 10}, _FLOATS, (0, 0.1, 1.5, 100)),
    Case("coerce", "integer", {}, _DECIMALS, (0, 1, 2, -1, -2, 1.5, 12)),
    Case("coerce", "long", {}, _DECIMALS, (0, 1, -1)),
    Case("boolean", "boolean", {}, ('""', '"false"', '"true"', "false", "true", "[true,false]"), (True, False)),
    Case("date", "date", {}, _DAYS, _MOMENTS),
    Case("date", "date", {}, _DAYS, (_FINE_PERIOD,)),
    Case("geo_point", "geo_point", {}, _POINTS, _PLACES),
    Case("geo_point, box", "geo_point", {}, _POINTS, ("1,10,1.29999999,11.5", "1,10,1.31,11.5")),
    Case("null_value", "geo_point", {"null_value": "1,1"}, ('"1,1"', "[2,2]"), ("1,1,5000m", "0,0,1.5,1.5")),
    Case("ignore_malformed", "date", {"ignore_malformed": True, "format": "yyyy-MM-dd"}, (*_DAYS, '"x"'), _PERIODS[:3]),
    # what makes no difference
    Case("", "date", {}, (*_DAYS, _LAST), _PERIODS),
    Case("", "date_nanos", {}, (*_DAYS[:3], _LAST), (*_PERIODS, _FINE_PERIOD)),
    Case("", "integer", {"coerce": False}, ("1", "2", "-1", "0", "[1,5]", str(2**31 - 1)), (0, 1, 1.5, 2**31 - 1)),
    Case("", "short", {}, ("1", "2", "[1,5]"), (0, 1), settings={"index.mapping.coerce": False}),
    Case("", "unsigned_long", {}, ("0", str(2**64 - 1), str(2**63)), (0, 2**64 - 1, 2**63)),
    Case("", "keyword", {}, ('"a"', '""', "1.50", "1e2", "true", "7", '"\\u00dcb"', "[]", '["a",""]'),
         ("a", "1.50", "1e2", "true", "7", "1.5", "\u00fcb")),
    Case("", "keyword", {"doc_values": False}, ('"a"', '""', "[]"), ("a", "b")),
    Case("", "keyword", {"norms": True, "store": True}, ('"a"', '""'), ("a",)),
    Case("", "keyword", {"index": False}, ('"a"', '""'), ("a",)),
    Case("", "keyword", {"note": "text"}, ('"a"', '""', '"!!!"', "[]", '"a b"'), ("a", "a b", "B"),
         properties={"f": {**_SUB, "norms": False}}),
    Case("", "text", {"norms": False}, ('"a"', '""', '"!!!"', "[]", "[null]"), ()),
    Case("", "wildcard", {}, _WORDS, _ASKED),
    Case("", "double", {"doc_values": False}, ("0", "-0.0", "1.5", "-1.5", "[-0.0,1.5]"), (0, "-0.0", 1.5, 0.0)),
    Case("", "date", {}, ('"2024-01-05"', '"2024-01-05T10:00:00.123Z"', "2024"), _MOMENTS[:5]),
    Case("", "date_nanos", {}, _DAYS[:3], (*_MOMENTS[:2], "2024-01-05T10:00:00.1239Z", "2024-01-05T10:00:00.123Z")),
    Case("", "ip", {}, _ADDRESSES, ("10.0.0.1", "::ffff:a00:1", "2001:DB8:0::2", "10.0.0.5/24")),
    Case("", "integer_range", {}, ('{"gte":1,"lt":5}', "{}", "[]")),
    Case("", "geo_point", {"ignore_z_value": True}, ('"1,1"', "[1,1,5]")),
    Case("", "binary", {"doc_values": True}, ('"eA=="', '""')),
)  # fmt: skip


def asked(case: Case, operators: Iterable[str]) -> Iterator[Filter]:
    """Yield every filter row that a case makes."""
    for op in operators:
        if op in (Op.NULL, Op.NOT_NULL, Op.EMPTY, Op.NOT_EMPTY):
            yield Filter(case.column, op)
        elif op in (Op.IN, Op.NOT_IN):
            yield from (Filter(case.column, op, list(pair)) for pair in itertools.combinations(case.values, 2))
        elif op in (Op.NEAR, Op.IN_BOX):
            count = 3 if op == Op.NEAR else 4
            yield from (Filter(case.column, op, each) for each in case.values if str(each).count(",") == count - 1)
        elif op == Op.BETWEEN:
            pairs = itertools.product(
                [each for each in case.values if case.kind != "ip" or "/" not in str(each)][:4], repeat=2
            )
            yield from (Filter(case.column, op, list(pair)) for pair in pairs)
        else:
            yield from (Filter(case.column, op, value) for value in case.values)


class ExactnessRules:
    """`exact` is a promise: Python finds the same rows in the stored documents."""

    @pytest.mark.parametrize("case", CASES, ids=str)
    async def test_E34_exact_means_what_python_finds(self, es: Rig, case: Case) -> None:
        made = await es.raw(
            "PUT", "/t-exactness", {"mappings": {"properties": case.mapping}, "settings": case.settings}
        )
        if made.status != 200:
            assert re.search("No handler|does not exist|unknown (parameter|setting)", made.text), made.text
            if es.fake is not None:
                es.fake.faults.clear()
            pytest.skip("this server has no such type or parameter")
        es.made.append("t-exactness")
        await es.load("t-exactness", case.all)
        described = await es.driver.describe_object("t-exactness")
        operators = next((each.operators for each in described.columns if each.name == case.column), list(Op))
        stored = {str(at): case.value(document) for at, document in enumerate(case.all)}
        wrong, real, counted = [], set(), set()
        for row in asked(case, operators):
            try:
                compiled = await es.driver.compile_filter(FilterRequest(object="t-exactness", rows=[row]))
            except FilterNotSupportedError:
                continue
            page = await es.driver.fetch_page(PageRequest(object="t-exactness", filter=compiled))
            found = {key.id for key in page.keys}
            if THOROUGH or row.op not in counted:  # the first of each operator and mapping is counted in each run
                counted.add(row.op)
                assert await es.driver.count_rows(CountRequest(object="t-exactness", filter=compiled)) == len(found)
            expected = {key for key, value in stored.items() if matches(case.kind, row, value)}
            reasons = [each for each in compiled.rows[0].approximations if not each.startswith("rows without")]
            if found != expected:
                real.update(reasons)
                if not reasons:
                    wrong.append(f"{row.op} {row.value!r}: {sorted(found)} instead of {sorted(expected)}")
        assert not wrong, "\n".join(wrong[:10])
        if case.cause:
            [reason] = [cause.reason for cause in exactness.TABLE if cause.name == case.cause]
            pattern = re.escape(reason).replace(r"\{\}", ".+")
            assert any(re.fullmatch(f"{pattern}(; .+)?", each) for each in real), (
                f"no difference shows why {reason!r}: {real}"
            )
        else:
            assert not real


class TestExactnessOnFake(OnFake, ExactnessRules):
    """Fakes."""


class TestExactnessOnServer(OnServer, ExactnessRules):
    """Real servers."""


# several indices behind one name, and what the mapping does not say


class UnionRules:
    """One name, several mappings: each row counts by the mapping of its own index."""

    async def _second(self, es: Rig, name: str, mapping: dict[str, Any], *documents: str) -> str:
        await es.call("PUT", f"/{name}-2", {"settings": {"number_of_replicas": 0}, "mappings": mapping})
        es.made.append(f"{name}-2")
        for at, document in enumerate(documents):
            await es.call("PUT", f"/{name}-2/_doc/second{at}?refresh=true", document)
        return f"{name}*"

    @pytest.mark.parametrize("kind", ["keyword", "text"])
    async def test_E34_an_alias_field_stays_within_the_indices_that_have_it(self, es: Rig, kind: str) -> None:
        target = {"type": "keyword"} if kind == "keyword" else _SUB
        one = await es.index({"x": target, "al": {"type": "alias", "path": "x"}}, [{"x": "a"}, {"x": "b"}, {}])
        both = await self._second(es, one, {"properties": {"x": target}}, '{"x":"a"}')
        assert await es.ids(both, Filter("x", "=", "a")) == ["0", "second0"]
        assert await es.ids(both, Filter("al", "=", "a")) == ["0"]
        assert await es.ids(both, Filter("al", "contains", "A")) == ["0"]
        assert await es.ids(both, Filter("al", "not-null")) == ["0", "1"]
        assert await es.ids(both, Filter("al", "null")) == ["2", "second0"]
        assert await es.ids(both, Filter("al", "!=", "a")) == ["1", "2", "second0"]
        page = await es.page(both, sort=[Sort("al")])
        assert [note.code for note in page.notes] == ["sort-dropped"]
        assert {row["_id"]: row["al"] for row in page.rows} == {"0": "a", "1": "b", "2": None, "second0": None}

    async def test_E34_an_index_that_stores_a_field_without_a_mapping_is_told(self, es: Rig) -> None:
        one = await es.index({"k": {"type": "keyword"}}, [{"k": "a"}, {}])
        both = await self._second(es, one, {"dynamic": False, "properties": {"x": {"type": "long"}}}, '{"k":"a"}')
        for row in (Filter("k", "=", "a"), Filter("k", "null")):
            compiled = await es.filter(both, row)
            [told] = compiled.rows[0].approximations
            assert "without a mapping" in told
        assert await es.ids(both, Filter("k", "null")) == ["1", "second0"]
        compiled = await es.filter(one, Filter("k", "=", "a"))
        assert compiled.rows[0].exact

    async def test_E34_formats_that_differ_between_indices_are_told(self, es: Rig) -> None:
        one = await es.index({"d": {"type": "date"}}, [{"d": "2024"}])
        both = await self._second(
            es, one, {"properties": {"d": {"type": "date", "format": "epoch_second"}}}, '{"d":2024}'
        )
        compiled = await es.filter(both, Filter("d", "=", "2024"))
        assert any("different formats" in each for each in compiled.rows[0].approximations)
        assert (await es.filter(both, Filter("d", "not-null"))).rows[0].exact


class TestUnionsOnFake(OnFake, UnionRules):
    """Fakes."""


class TestUnionsOnServer(OnServer, UnionRules):
    """Real servers."""

    async def test_an_index_without_a_shard_is_told(self, es: Rig) -> None:
        one = await es.index({"x": {"type": "long"}}, [{"x": 1}])
        nowhere = {"number_of_replicas": 0, "index.routing.allocation.require._name": "nowhere"}
        await es.call("PUT", f"/{one}-2?wait_for_active_shards=0", {"settings": nowhere})
        es.made.append(f"{one}-2")
        [note] = (await es.driver.describe_object(f"{one}*")).notes
        assert (note.code, note.reason[:4]) == ("capabilities-partial", "1 of")


# what a look at stored rows tells


@dataclass(frozen=True)
class Rare:
    """A column, ordinary documents, one with the rare value, and filter rows that only the latter changes."""

    spec: dict[str, Any]
    ordinary: tuple[str, ...]
    rare: str
    rows: tuple[Filter, ...]
    unlikely: str
    example: str


_EVERY = " rows with a value"
RARE = {
    "coerce": Rare(
        {"type": "long"}, ('{"f":1}', '{"f":[2,"3"]}', '{"f":null}'), '{"f":[7,1.7]}',
        (Filter("f", "=", 1), Filter("f", ">", 1), Filter("f", "=", "1.5")),
        "a stored number with decimals counts without them (coerce); none in 2" + _EVERY,
        "a stored number with decimals counts without them (coerce); a row holds 1.7",
    ),
    "floats": Rare(
        {"type": "float"}, ('{"f":9.99}', '{"f":0.1}', '{"f":-1e20}', '{"f":123456}'), '{"f":9.9900001}',
        (Filter("f", "=", 9.99), Filter("f", "<=", 9.99)),
        "numbers are compared with 24 bits, about 7 digits; none in 4" + _EVERY,
        "numbers are compared with 24 bits, about 7 digits; a row holds 9.9900001",
    ),
    "boolean": Rare(
        {"type": "boolean"}, ('{"f":true}', '{"f":"false"}', '{"f":false}'), '{"f":""}', (Filter("f", "=", False),),
        "a stored empty text counts as false; none in 3" + _EVERY,
        "a stored empty text counts as false; a row holds ''",
    ),
    "ignore_above": Rare(
        {"type": "keyword", "ignore_above": 3}, ('{"f":"abc"}', '{"f":""}'), '{"f":"abcd"}',
        (Filter("f", "contains", "b"), Filter("f", ">", "a")),
        "strings longer than 3 characters are not indexed; no row has one",
        "strings longer than 3 characters are not indexed; so in row '2'",
    ),
    "ignore_above, sub-field": Rare(
        _SUB | {"fields": {"keyword": {"type": "keyword", "ignore_above": 3}}}, ('{"f":"abc"}',), '{"f":"abcd"}',
        (Filter("f", "contains", "b"), Filter("f", "not-contains", "b")),
        "strings longer than 3 characters are not indexed; no row has one",
        "strings longer than 3 characters are not indexed; so in row '1'",
    ),
    "ignore_malformed": Rare(
        {"type": "integer", "coerce": False, "ignore_malformed": True}, ('{"f":1}',), '{"f":99999999999}',
        (Filter("f", ">", 0),),
        "values that the type cannot hold are not indexed (ignore_malformed); no row has one",
        "values that the type cannot hold are not indexed (ignore_malformed); so in row '1'",
    ),
}  # fmt: skip


class LookRules:
    """A warning that every filter carries is none: an approximation that stored rows do not show is unlikely."""

    @pytest.mark.parametrize("name", RARE)
    async def test_E34_an_approximation_is_unlikely_until_a_stored_value_shows_it(self, es: Rig, name: str) -> None:
        case = RARE[name]
        told = [([], [case.unlikely]), ([case.example], [])]
        if es.version < (7, 11) and name.startswith("ignore"):  # the server does not tell
            told = [([case.unlikely.partition(";")[0]], [])] * 2
        for documents, wanted in zip((case.ordinary, (*case.ordinary, case.rare)), told, strict=True):
            index = await es.index({"f": case.spec}, documents)
            for row in case.rows:
                [explained] = (await es.filter(index, row)).rows
                notes = [note for note in explained.approximations if not note.startswith("rows without")]
                assert (notes, explained.unlikely) == wanted
                assert not explained.exact

    async def test_a_rare_value_is_seen_wherever_the_server_reports_it(self, es: Rig) -> None:
        spec = {"k": {"type": "keyword", "ignore_above": 3}, "n": {"type": "long"}}
        index = await es.index(spec, [{"n": at, "k": "abc"} for at in range(300)])
        await es.call("PUT", f"/{index}/_doc/rare?refresh=true", '{"k":"abcd","n":1}')
        await es.driver.describe_object(index)
        [explained] = (await es.filter(index, Filter("k", "contains", "b"))).rows
        if es.fake is None and es.version >= (7, 11):  # a fake does not order rows by score
            assert explained.approximations == ["strings longer than 3 characters are not indexed; so in row 'rare'"]
        [explained] = (await es.filter(index, Filter("n", "=", 1))).rows
        assert explained.unlikely == [
            "a stored number with decimals counts without them (coerce); none in 200" + _EVERY
        ]

    async def test_rows_that_are_all_reported_crowd_out_what_no_row_of_the_look_has(self, es: Rig) -> None:
        limited = {"type": "keyword", "ignore_above": 3}
        index = await es.index({"k": limited, "m": limited}, ['{"k":"abcd"}'] * 200)
        [explained] = (await es.filter(index, Filter("m", "contains", "b"))).rows
        assert explained.approximations == ["strings longer than 3 characters are not indexed"]

    async def test_rows_of_every_index_behind_a_name_are_looked_at(self, es: Rig) -> None:
        many = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(300)])
        await es.call("PUT", f"/{many}-2", {"mappings": {"properties": {"n": {"type": "long"}}}})
        es.made.append(f"{many}-2")
        await es.load(f"{many}-2", ['{"n":1.5}'] * 300)
        [explained] = (await es.filter(f"{many}*", Filter("n", "=", 1))).rows
        if es.fake is None:  # a fake does not order rows by score
            assert explained.approximations[0].endswith("; a row holds 1.5")


class TestLookOnFake(OnFake, LookRules):
    """Fakes."""

    async def test_one_look_serves_all_filters_that_it_concerns(self, es: Rig) -> None:
        fields = {"n": {"type": "long"}, "m": {"type": "long"}, "k": {"type": "keyword"}}
        index = await es.index(fields, [{"n": 1, "m": 2}])
        for row in (Filter("k", "=", "a"), Filter("n", ">=", 1), Filter("k", "null")):
            await es.filter(index, row)
        await es.page(index)
        before = len(es.sent("POST", "_search"))
        assert before == 1
        for row in (Filter("n", "=", 1), Filter("m", ">", 1), Filter("n", "<", 5)):
            await es.filter(index, row)
        assert len(es.sent("POST", "_search")) == before + 1

    @pytest.mark.parametrize("how", ["cut", "empty", "large"])
    async def test_without_a_look_the_approximation_is_told(
        self, es: Rig, how: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert es.fake is not None
        fields = {"n": {"type": "long"}, "k": {"type": "keyword", "ignore_above": 3}}
        index = await es.index(fields, [] if how == "empty" else [{"n": 1}])
        if how == "large":
            monkeypatch.setattr(filters, "SAMPLE_BYTES", 10)
        elif how != "empty":
            es.fake.misbehave(how, on=f"/{index}/_search", times=1)
        for _ in range(2):
            [explained] = (await es.filter(index, Filter("n", "=", 1))).rows
            told = (explained.approximations, explained.unlikely)
            assert told == (["a stored number with decimals counts without them (coerce)"], [])
            [explained] = (await es.filter(index, Filter("k", "contains", "a"))).rows
            assert (explained.approximations, explained.unlikely) == (
                ["strings longer than 3 characters are not indexed"], [],
            )  # fmt: skip
        assert len(es.sent("POST", "_search")) == 1, "it is tried again after a while only"

    async def test_what_documents_leave_out_is_not_looked_at(self, es: Rig) -> None:
        mapping = {"_source": {"excludes": ["n"]}, "properties": {"n": {"type": "long"}}}
        index = await es.index(mapping=mapping, documents=[{"n": 1, "m": 1}])
        also = index.replace("books", "kept")
        await es.call("PUT", f"/{also}", {"mappings": {"properties": {"n": {"type": "long"}}}})
        es.made.append(also)
        await es.load(also, [{"n": 1}])
        for name in (index, f"{index},{also}"):
            await es.driver.describe_object(name)
            [explained] = (await es.filter(name, Filter("n", "=", 1))).rows
            assert (bool(explained.approximations), explained.unlikely) == (True, [])

    async def test_values_inside_arrays_and_under_dotted_keys_are_seen(self, es: Rig) -> None:
        spec = {
            "o": {"properties": {"n": {"type": "long"}}},
            "a": {"type": "nested", "properties": {"n": {"type": "long"}}},
        }
        index = await es.index(spec, ['{"o.n":1.5}', '{"a":[{"n":1},{"n":[2,2.5]}]}'])
        for column, value in (("o.n", "1.5"), ("a.n", "2.5")):
            [explained] = (await es.filter(index, Filter(column, "=", 1))).rows
            assert explained.approximations[0].endswith(f"; a row holds {value}")


class TestLookOnServer(OnServer, LookRules):
    """Real servers."""


def told(found: View, row: Filter, version: tuple[int, int, int] = (8, 19, 21)) -> list[str]:
    request = FilterRequest(object="x", rows=[row])
    return compile_filter(request, found, dialect_of(version)).rows[0].approximations


@pytest.mark.parametrize(
    ("rule", "spec"),
    [
        ("script", {"type": "long", "script": {"source": "emit(1)"}}),
        ("constant_keyword", {"type": "constant_keyword", "value": "x"}),
    ],
)
def test_what_no_engine_here_has_is_told_by_the_mapping(rule: str, spec: dict[str, Any]) -> None:
    found = view({"properties": {"f": spec}})
    reason = next(each.reason for each in exactness.TABLE if each.name == rule)
    assert reason.replace("{}", "x") in told(found, Filter("f", "=", "1")) + told(found, Filter("f", "null"))


def test_a_hidden_mapping_makes_every_filter_approximate() -> None:
    caps = {"k": {"keyword": {}}, "n": {"long": {}}}
    found = read("x", None, {"indices": ["a"], "fields": caps})
    for row in (Filter("k", "=", "a"), Filter("k", "null"), Filter("n", ">=", 5)):
        assert any("mapping is hidden" in each for each in told(found, row))
    exact = [told(found, Filter(name, "=", "a")) for name in ("_id", "_index")]
    assert exact == [[], []]


def test_types_that_conflict_are_told_under_a_hidden_mapping() -> None:
    caps = {
        "x": {"long": {"indices": ["a"]}, "keyword": {"indices": ["b", "c"]}},
        "o": {"object": {"indices": ["a"], "searchable": False}, "keyword": {"indices": ["b"]}},
        "o.y": {"keyword": {}},
    }
    found = read("x", None, {"indices": ["a", "b", "c"], "fields": caps})
    assert found.columns["x"].type == "mixed"
    assert {note.column for note in found.notes if note.code == "type-conflict"} == {"x", "o"}
    with pytest.raises(FilterNotSupportedError, match="different clauses"):
        told(found, Filter("x", "=", 1))


def test_indices_that_did_not_answer_are_told() -> None:
    mapped = {"a": {"mappings": {"properties": {"k": {"type": "keyword"}}}}}
    caps = {"indices": ["a"], "fields": {"k": {"keyword": {}}}, "failed_indices": 2}
    for indices in (mapped, None):
        [note] = [note for note in read("x", indices, caps).notes if note.code == "capabilities-partial"]
        assert note.reason.startswith("2 of the indices")
    silent = read("x", mapped | {"b": {"mappings": {}}}, {"indices": ["a"], "fields": {"k": {"keyword": {}}}})
    assert [note.reason[:9] for note in silent.notes if note.code == "capabilities-partial"] == ["1 of the "], "7.10"


def test_before_7_11_the_server_does_not_tell_which_long_strings_it_left_out() -> None:
    found = view({"properties": {"k": {"type": "keyword", "ignore_above": 3}}})
    assert told(found, Filter("k", "null"), (8, 19, 21)) == []
    assert told(found, Filter("k", "null"), (7, 10, 2)) == ["strings longer than 3 characters are not indexed"]


@pytest.mark.parametrize(
    ("kind", "row", "approximate"),
    [
        ("keyword", Filter("r", "=", "a"), False),
        ("keyword", Filter("r", "null"), True),
        ("long", Filter("r", "not-null"), True),
        ("long", Filter("r", ">=", 1), True),
        ("double", Filter("r", "=", 1), False),
        ("date", Filter("r", "<", "2024-01-31"), True),
    ],
)
def test_values_that_a_runtime_field_without_a_script_cannot_hold_count_as_absent(
    kind: str,
    row: Filter,
    approximate: bool,
) -> None:
    """Measured on 8.19.21: `exists` and ranges on a runtime long pass over a stored text, and `_ignored` lacks it."""
    found = view({"properties": {}, "runtime": {"r": {"type": kind}}}, caps={"r": {kind: {}}})
    reasons = told(found, row, (8, 19, 21))
    assert ("values that the type cannot hold count as absent (runtime field)" in reasons) is approximate


LIMITED = {"type": "keyword", "ignore_above": 3}
LONG, WORDS = {"type": "long"}, {"type": "keyword"}
STRICT = {"type": "date", "format": "strict_date_optional_time"}
TOUCHED: list[tuple[list[dict[str, Any]], list[Filter], list[Filter]]] = [
    # a limit of one of two indices, and a long value beside a short one
    (
        [LIMITED | {"ignore_above": 9}, LIMITED],
        [
            Filter("x", "=", "abcd"),
            Filter("x", "in", ["a", "abcd"]),
            Filter("x", "not-in", ["abcd", "a"]),
            Filter("x", ">", "a"),
            Filter("x", "contains", "a"),
        ],
        [Filter("x", "=", "abc"), Filter("x", "in", ["a", "abc"]), Filter("x", "empty"), Filter("x", "null")],
    ),
    # the text itself tells whether a row has one
    ([_with(_SUB, ignore_above=3)], [Filter("x", "=", "abcd")], [Filter("x", "=", "abc"), Filter("x", "null")]),
    (
        [_with(_SUB, null_value="none")],
        [Filter("x", "=", "none"), Filter("x", "=", "NONE", case=False), Filter("x", "in", ["a", "none"])],
        [Filter("x", "null"), Filter("x", "not-empty"), Filter("x", "=", "other"), Filter("x", "empty")],
    ),
    (
        [WORDS | {"null_value": "none"}, WORDS | {"null_value": ""}, WORDS | {"null_value": "nil"}],
        [Filter("x", "empty"), Filter("x", "null"), Filter("x", "=", "nil"), Filter("x", "=", "")],
        [Filter("x", "=", "other")],
    ),
    ([WORDS | {"null_value": "none"}], [Filter("x", "null"), Filter("x", ">", "a")], [Filter("x", "empty")]),
    (
        [LONG | {"null_value": 7, "coerce": False}],
        [Filter("x", "=", "7.0"), Filter("x", "in", [1, 7])],
        [Filter("x", "=", 8)],
    ),
    ([LONG | {"null_value": "7", "coerce": False}], [Filter("x", "=", 7)], [Filter("x", "=", 77)]),
    # decimals cut off towards zero cross a bound, or cannot
    (
        [LONG],
        [
            Filter("x", "=", 1),
            Filter("x", ">=", 0),
            Filter("x", "<", 0),
            Filter("x", ">", 0),
            Filter("x", "<=", 0),
            Filter("x", ">=", -1),
            Filter("x", "<", -1),
            Filter("x", ">", 1),
            Filter("x", "<=", 1),
            Filter("x", ">=", "1.5"),
            Filter("x", "between", [1, 5]),
            Filter("x", "between", [-5, -1]),
            Filter("x", "between", [0, -1]),
        ],
        [
            Filter("x", ">=", 1),
            Filter("x", "<", 1),
            Filter("x", ">", -1),
            Filter("x", "<=", -1),
            Filter("x", "null"),
            Filter("x", "between", [1, -1]),
        ],
    ),
    ([{"type": "unsigned_long"}], [], [Filter("x", "=", 1), Filter("x", ">", 1)]),
    # what a double cannot hold
    (
        [{"type": "double"}],
        [
            Filter("x", "=", 2**53),
            Filter("x", ">", -(2**53)),
            Filter("x", "in", [1, 2**53]),
            Filter("x", "between", [0, 2**60]),
            Filter("x", "=", "0.1000000000000000000001"),
        ],
        [Filter("x", "=", 2**53 - 1), Filter("x", "=", 1 - 2**53), Filter("x", "in", [1, 0.1]), Filter("x", "null")],
    ),
    ([{"type": "double"}, {"type": "float"}], [Filter("x", "=", 1)], [Filter("x", "not-null")]),
    ([{"type": "boolean"}], [Filter("x", "=", False), Filter("x", "in", [True, False])], [Filter("x", "=", True)]),
    # a second and a day are taken whole, an instant is not
    (
        [STRICT],
        [
            Filter("x", "=", "2024-12-31T10:00:00.123Z"),
            Filter("x", "in", ["2024-12-31", "2024-12-31T10:00:00.1Z"]),
            Filter("x", "between", ["2024", "now"]),
            Filter("x", "=", "2024-12-31T00:00:00.0001Z/2025-01-01T00:00:00Z"),
        ],
        [
            Filter("x", "=", "2024-12-31T10:00:00Z"),
            Filter("x", "in", ["2024-12-31", "2024-12"]),
            Filter("x", "=", "2024-12-31T00:00:00Z/2025-01-01T00:00:00Z"),
        ],
    ),
    ([STRICT | {"format": "yyyyMMdd"}], [Filter("x", "=", "20241231")], [Filter("x", "=", "2024-12-31")]),
    (
        [STRICT | {"ignore_malformed": True}],
        [Filter("x", ">", "2024"), Filter("x", "=", "2024-12-31T00:00:00Z/2025-01-01T00:00:00Z")],
        [Filter("x", "=", "2024-12-31"), Filter("x", "null")],
    ),
    (
        [LONG | {"ignore_malformed": "true", "coerce": "false"}],
        [Filter("x", ">", 1)],
        [Filter("x", "=", 1), Filter("x", "null")],
    ),
]


@pytest.mark.parametrize("specs", [pytest.param(case, id=f"{at}") for at, case in enumerate(TOUCHED)])
def test_a_mapping_makes_just_those_rows_approximate_whose_values_it_can_move(
    specs: tuple[list[dict[str, Any]], list[Filter], list[Filter]],
) -> None:
    """In one of several indices, for one of several values, at the very edge; whichever index comes first."""
    mappings, touched, exact = specs
    for order in (mappings, mappings[::-1], [*mappings[1:], *mappings[:1]]):
        found = view(*({"properties": {"x": spec, f"y{at}": LONG}} for at, spec in enumerate(order)))
        reasons = [
            [each for each in told(found, row) if not each.startswith("rows without")] for row in touched + exact
        ]
        assert [row for row, reason in zip(touched, reasons, strict=False) if not reason] == []
        assert [row for row, reason in zip(exact, reasons[len(touched) :], strict=True) if reason] == []


@pytest.mark.parametrize(
    ("value", "types", "long"),
    [
        ("9.99", ("double", "float"), False),
        ("9.99", ("float", "double"), False),
        ("123456", ("float",), False),
        ("1234567", ("float",), True),
        ("1.2e-38", ("float",), False),
        ("1.1e-38", ("float",), True),
        ("123", ("half_float", "double"), False),
        ("1234", ("half_float",), True),
        ("0", ("float",), False),
        ("0.5", ("double",), True),
        (True, ("float",), False),
        ({"a": 1}, ("float",), False),
        ("many", ("float",), False),
    ],
)
def test_a_number_is_long_by_the_type_that_keeps_the_fewest_digits(
    value: Any, types: tuple[str, ...], *, long: bool
) -> None:
    assert field_types.is_long(value, tuple(field_types.PRECISION[kind] for kind in types)) is long


def test_every_row_of_the_table_is_tested() -> None:
    elsewhere = {"hidden", "dynamic", "script", "constant_keyword", "format", "runtime"}
    assert {case.cause for case in CASES if case.cause} | elsewhere == {cause.name for cause in exactness.TABLE}


@pytest.mark.parametrize("now", ["2026-11-23T12:00:00Z", "2026-11-23T12:00:00.000Z"])
def test_now_is_an_instant_also_on_a_whole_second(now: str) -> None:
    assert dates.anchored("now", now) == "2026-11-23T12:00:00.000Z"
    assert dates.anchored("now-1d", now) == f"{now}||-1d"
