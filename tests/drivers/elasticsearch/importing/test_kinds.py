"""A value keeps its kind on every way in: each kind of column, on each way, is compared with the stored document."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.importing.test_loads import counts, export, rejected, session, stored, tokens
from drivers.elasticsearch.rig import OnFake, OnServer, Rig

from dragoman.changes.files import read_line, write_line
from dragoman.cli.changes import parse_values
from dragoman.imports.loads import load
from dragoman_api import Insert, Json, RowKey, Update
from dragoman_api.changes import OutcomeStatus, PlanRequest

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman_api import Column

NESTED = {
    "a": {"type": "long"},
    "r": {"type": "long_range"},
    "x": {"type": "object", "enabled": False},
    "f": {"type": "flattened"},
    "o": {"properties": {"z": {"type": "keyword"}}},
    "deep": {"type": "nested", "properties": {"b": {"type": "keyword"}}},
}
KINDS: dict[str, tuple[Any, str]] = {
    "keyword": (
        {"type": "keyword"},
        r"""["a", "", "[1]", "[\"a\",null]", "[draft]", "{\"a\":1}", "\"q\"", "\"[1]\"", "null", "true", "12", "1e3",
        "007", "-0", " 12", "=1+1", "'=1+1", "a,b", "two\r\nlines", "é🐎\u0000", "NaN", 12, 1e3, 1E+3, 1.10, -0, true,
        123456789012345678901234567890, ["a","b"], [], [1,"1",null,1.10], ["[1]"], [["a"],"b"]]""",
    ),
    "text": ({"type": "text"}, r"""["[1]", "[[\"a\"]]", "a\nb", "12", 5, 1e3, false, ["a b","c"], "{}"]"""),
    "long": (
        {"type": "long"},
        '[1, 0, -1, 9007199254740993, -9223372036854775808, "12", "", 1.0, 1e3, [1,2], [1,"2",null], [], 1.5]',
    ),
    "sloppy": ({"type": "long", "ignore_malformed": True}, '["many", "[1]", "true", 7]'),
    "double": ({"type": "double"}, '[1.1, 5, 1.10, 1e3, -0.0, 0.30000000000000004, 1e-7, "1.50", "1e3", [1.10,2]]'),
    "boolean": ({"type": "boolean"}, '[true, false, "true", "false", "", [true,"false"]]'),
    "date": (
        {"type": "date"},
        """["2024-01-05", "2024-01-05T10:00:00.123456789+02:00", "2024-01-05T10:00:00Z", 1700000000000, "1700000000000",
        ["2024-01-05",1], "2024"]""",
    ),
    "day": ({"type": "date", "format": "dd.MM.yyyy"}, '["31.01.2024", ["31.01.2024","01.02.2024"]]'),
    "stamp": ({"type": "date", "format": "epoch_second"}, '["1700000000", 1700000000]'),
    "ip": ({"type": "ip"}, '["10.0.0.1", "2001:DB8::2", ["10.0.0.1","::1"]]'),
    "binary": ({"type": "binary"}, '["AP8=", "aGVsbG8="]'),
    "point": (
        {"type": "geo_point"},
        '[{"lat":1.5,"lon":2.5}, {"lat":1.50,"lon":2}, "1.5,2", [2,1.5], "POINT (2 1.5)", [{"lat":1,"lon":2},"1,2"]]',
    ),
    "range": ({"type": "long_range"}, '[{"gte":1,"lt":5}, [{"gte":1},{"lt":2}]]'),
    "addresses": ({"type": "ip_range"}, '["10.0.0.0/8", {"gte":"10.0.0.1"}]'),
    "object": (
        {"type": "object", "enabled": False},
        r"""[{}, {"p":1.10,"q":[1e3,-0,null,{"r":"[1]"}],"s":null}, "text", "12", "[1]", "{}", "\"q\"", "null", "", 5,
        1e3, [], [1,{"a":1e3}], true]""",
    ),
    "flattened": ({"type": "flattened"}, '[{"p":"q","r":{"s":"1"}}, {"p":[1,"1",true,1.10]}]'),
    "nested": (
        {"type": "nested", "properties": NESTED},
        """[[{"a":1},{"a":2}], [], [{"a":1,"deep":[{"b":"q"}],"r":{"gte":1,"lt":5},"f":{"p":"q"}}],
        [{"x":{"p":1.10,"q":[-0,1e3]}},{"x":"12"},{"x":[1]},{"x":5}], [{"o":{"z":"y"}},{"o":[{"z":"y"},{"z":"w"}]}],
        [{"a":"1"},{"a":[1,2]},{}], [{"a":null}]]""",
    ),
    "bare": ({"type": "nested", "properties": NESTED}, '[{"a":1}, {"a":1,"deep":{"b":"q"}}]'),
    "vector": ({"type": "dense_vector", "dims": 2}, "[[0.5,1.25], [1,2]]"),
}
"""The type of each column, and values that it holds as one JSON array."""

COLUMNS = {name: mapping for name, (mapping, _) in KINDS.items()} | {"in": {"properties": {"ner": {"type": "keyword"}}}}
IDS = [
    "{}", "[1]", '["eu",17]', '{"base64":"AP8="}', '"q"', '"[1]"', "null", "true", "12", "1e3", "00", " ", "-", "[",
    "x,y", "_x", "=1+1", "é",
]  # fmt: skip
FILES = ("rows", "bulk", "csv", "tsv", "parquet")


def values_of(name: str) -> list[str]:
    """Return the JSON texts of the values of a kind."""
    _, texts = KINDS[name]
    found, decoder, at = [], json.JSONDecoder(), 1
    while texts[at] != "]":
        while texts[at] in " ,\n":
            at += 1
        _, end = decoder.raw_decode(texts, at)
        found.append(texts[at:end])
        at = end
    return found


CASES = [(name, raw) for name in KINDS for raw in values_of(name)]
LICENSED = ("vector", "flattened")
"""Types that builds without modules of the vendor lack before 8.0."""
DOCUMENTS = ["{}", *(f'{{"{name}":{raw}}}' for name, raw in CASES), '{"in":{"ner":"[1]"}}']


def takes_all(es: Rig) -> bool:
    """Version 9 leaves vectors out of `_source`, and spells the rest of a document that may hold one anew."""
    return (8,) <= es.version < (9,)


def columns_of(es: Rig) -> dict[str, Any]:
    if takes_all(es):
        return COLUMNS
    found = {name: mapping for name, mapping in COLUMNS.items() if name not in LICENSED}
    inner = {name: mapping for name, mapping in NESTED.items() if name != "f"}
    return found | {name: {"type": "nested", "properties": inner} for name in ("nested", "bare")}


def documents_of(es: Rig) -> list[str]:
    lacking = (*(f'{{"{name}":' for name in LICENSED),)
    return [text for text in DOCUMENTS if takes_all(es) or not (text.startswith(lacking) or '"f":' in text)]


def in_value(text: str) -> Any:
    """Return what Parquet promises of a document: numbers and instants by value, arrays of one, no null members."""

    def number(digits: str) -> Any:
        return "number", float(digits)

    def read(name: str, value: Any) -> Any:
        if name == "bare" and isinstance(value, dict):
            return [value]
        if name == "nested":
            return [{key: item for key, item in each.items() if item is not None} for each in value]
        if name in ("date", "day", "stamp") and isinstance(value, str):
            return instant(value)
        return value

    loaded = json.loads(text, parse_float=number, parse_int=number)
    return {name: read(name, value) for name, value in loaded.items()}


def instant(text: str) -> Any:
    if text.isdecimal():
        return text
    if "." in text[:3]:
        text = "-".join(reversed(text.split(".")))
    _, _, clock = text.partition("T")
    fraction = clock.partition(".")[2].partition("+")[0].rstrip("Z")
    return datetime.fromisoformat(text.replace(f".{fraction}", "") + ("" if clock else "T00:00:00Z")), fraction


def as_python(raw: str, column: str) -> Any:
    """Return a JSON text as a person writes it in Python; a text that is none of a text column is JSON."""
    value = json.loads(
        raw, parse_float=lambda digits: float(digits) if repr(float(digits)) == digits else Decimal(digits)
    )
    return Json(raw) if isinstance(value, str) and column not in ("keyword", "text") else value


def as_changed(raw: str, column: str, number: int) -> Any:
    line = json.dumps({"op": "insert", "object": "x", "id": str(number), "set": {"#": 0}}).replace(
        '"#": 0', f'"{column}":{raw}'
    )
    change = read_line(line.encode())
    assert isinstance(change, Insert)
    assert read_line(write_line(change)) == change
    return change.values[column]


class Rules:
    async def check(self, es: Rig, target: str, *, about: Any = tokens) -> None:
        """Compare the documents of an index with those that are wanted, all at once."""
        after = await stored(es, target)
        pairs = [(document, after.get(str(at), "null")) for at, document in enumerate(documents_of(es))]
        assert [pair for pair in pairs if about(pair[0]) != about(pair[1])] == []

    @pytest.mark.parametrize("kind", FILES)
    async def test_every_kind_comes_back_from_a_file_as_it_is_stored(self, es: Rig, tmp_path: Path, kind: str) -> None:
        columns, documents = columns_of(es), documents_of(es)
        source, target = await es.index(columns, documents), await es.index(columns, name="copy")
        file = tmp_path / f"o.{kind}"
        await export(es, source, file, format=kind)
        report = await load(session(es), target, file=file)
        assert counts(report) == {"applied": len(documents)}, rejected(file)
        await self.check(es, target, about=in_value if kind == "parquet" else tokens)

    @pytest.mark.parametrize("way", ["python", "set", "changes"])
    @pytest.mark.parametrize("insert", [True, False])
    async def test_every_kind_is_stored_as_it_is_given(self, es: Rig, way: str, insert: bool) -> None:
        cases = [case for case in CASES if f'{{"{case[0]}":{case[1]}}}' in documents_of(es)]
        target = await es.index(columns_of(es), [] if insert else ["{}" for _ in range(len(cases) + 2)])
        description = await es.driver.describe_object(target)
        columns: dict[str, Column] = {column.name: column for column in description.columns}
        changes: list[Insert | Update] = []
        for number, (name, raw) in enumerate([*cases, ("in.ner", '"[1]"')], start=1):
            if way == "python":
                value = as_python(raw, "keyword" if name == "in.ner" else name)
            else:
                value = (
                    parse_values([f"{name}:={raw}"], columns)[name] if way == "set" else as_changed(raw, name, number)
                )
            key = RowKey(target, str(number))
            changes.append(Insert(target, {name: value}, key.id) if insert else Update(key, {name: value}))
        if insert:
            changes.append(Insert(target, {}, "0"))
        outcomes = await es.apply(*changes)
        assert {outcome.reason for outcome in outcomes if outcome.status is not OutcomeStatus.APPLIED} == set()
        # A partial update keeps digits, but neither the order of members nor escapes.
        number: Any = Decimal if way == "python" else str
        await self.check(es, target, about=partial(json.loads, parse_int=number, parse_float=number))

    async def test_every_kind_is_back_after_an_undo(self, es: Rig) -> None:
        documents = documents_of(es)
        target = await es.index(columns_of(es), documents)
        changes = [Update(RowKey(target, str(at)), {"keyword": "other", "long": 5}) for at in range(len(documents))]
        plan = await es.driver.plan_change(PlanRequest(changes=[*changes], undo=True))
        assert not plan.refusals
        await es.driver.apply_change(plan)
        undo = [read_line(write_line(change)) for change in plan.undo]  # type: ignore[arg-type]
        outcomes = await es.apply(*undo)
        assert {outcome.reason for outcome in outcomes if outcome.status is not OutcomeStatus.APPLIED} == set()
        await self.check(es, target, about=str)

    @pytest.mark.parametrize("kind", FILES)
    async def test_no_id_is_read_as_anything_but_a_text(self, es: Rig, tmp_path: Path, kind: str) -> None:
        target = await es.index({"k": {"type": "keyword"}}, name="copy")
        source = await es.index({"k": {"type": "keyword"}})
        assert {each.status for each in await es.apply(*(Insert(source, {"k": id_}, id_) for id_ in IDS))} == {
            "applied"
        }
        file = tmp_path / f"o.{kind}"
        await es.call("POST", f"/{source}/_refresh")
        await export(es, source, file, format=kind)
        assert counts(await load(session(es), target, file=file)) == {"applied": len(IDS)}
        hits = (await es.call("POST", f"/{target}/_search", {"size": 100}))["hits"]["hits"]
        assert {hit["_id"]: hit["_source"]["k"] for hit in hits} == dict(zip(IDS, IDS, strict=True))

    async def test_a_table_by_somebody_else_is_what_the_columns_say(self, es: Rig, tmp_path: Path) -> None:
        name = await es.index(columns_of(es))
        file = tmp_path / "a.csv"
        file.write_text(
            '_id,keyword,long,boolean,object\r\n1,12,12,true,12\r\n2,"[1]",[1],"true","{""a"":1}"\r\n3,"""q""",,,q\r\n'
        )
        assert counts(await load(session(es), name, file=file)) == {"applied": 3}
        assert {key: json.loads(text) for key, text in (await stored(es, name)).items()} == {
            "1": {"keyword": "12", "long": 12, "boolean": True, "object": 12},
            "2": {"keyword": [1], "long": [1], "boolean": True, "object": {"a": 1}},
            "3": {"keyword": '"q"', "object": "q"},
        }


class TestKindsOnFake(Rules, OnFake):
    """Every kind against the fake."""


class TestKindsOnServer(Rules, OnServer):
    """The same against real servers."""
