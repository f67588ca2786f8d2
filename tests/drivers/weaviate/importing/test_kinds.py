"""A value keeps its kind on every way in: each type of property, on each way, is compared with the stored object."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.weaviate.importing.test_loads import rejected, session, stored
from drivers.weaviate.rig import OnFake, OnServer, Rig, key

from dragoman.changes.files import read_line, write_line
from dragoman.cli.changes import parse_values
from dragoman.imports.loads import load
from dragoman_api import Insert, Json, RowKey, Update
from dragoman_api.changes import OutcomeStatus, PlanRequest
from exporting import Line

if TYPE_CHECKING:
    from pathlib import Path

NESTED = [
    {"name": "name", "dataType": ["text"]},
    {"name": "born", "dataType": ["int"]},
    {"name": "alive", "dataType": ["boolean"]},
    {"name": "seen", "dataType": ["date"]},
    {"name": "words", "dataType": ["text[]"]},
    {"name": "inner", "dataType": ["object"], "nestedProperties": [{"name": "code", "dataType": ["text"]}]},
]
TEXTS = [
    "a", "", "[1]", '["a",null]', "[draft]", '{"a":1}', '"q"', '"[1]"', "null", "true", "12", "1e3", "007", "-0", " 12",
    "=1+1", "'=1+1", "a,b", "two\r\nlines", "é🐎", "NaN",
]  # fmt: skip
ID = "0a0b0c0d-0000-4000-8000-00000000000f"
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "title": ("text", TEXTS),
    "pages": ("int", [0, -1, 12, 2**53]),
    "price": ("number", [1.1, 5, -0.5, 1e21, 0.30000000000000004, 1e-7]),
    "available": ("boolean", [True, False]),
    "published": ("date", ["2024-01-15T10:00:00.5Z", "2024-01-15T10:00:00Z", "2024-01-15T10:00:00.123456789Z"]),
    "shelf": ("uuid", [ID]),
    "tags": ("text[]", [["a", "b,c"], ["[1]", "12", "true", "null", ""], ["=1"]]),
    "sizes": ("int[]", [[1, 2], [0]]),
    "rates": ("number[]", [[1.1, 5]]),
    "flags": ("boolean[]", [[True, False]]),
    "days": ("date[]", [["2024-01-15T10:00:00.5Z", "2024-01-16T10:00:00Z"]]),
    "shelves": ("uuid[]", [[ID]]),
    "place": ("geoCoordinates", [{"latitude": 1.5, "longitude": 2}]),
    "phone": ("phoneNumber", [{"input": "0171 1234567", "defaultCountry": "de"}, {"input": "+1 212 555 0123"}]),
    "cover": ("blob", ["aGVsbG8=", "AP8="]),
    "author": (
        {"dataType": ["object"], "nestedProperties": NESTED},
        [
            {"name": "[1]", "born": 1815, "alive": False, "seen": "1815-12-10T00:00:00Z", "words": ["12", "[1]"]},
            {"name": "12", "inner": {"code": "true"}},
        ],
    ),
    "authors": (
        {"dataType": ["object[]"], "nestedProperties": NESTED},
        [[{"name": "a"}, {"name": "[1]", "born": 1, "inner": {"code": "1e3"}}]],
    ),
}
"""The type of each property, and values that it holds."""

TYPES = {name: spec for name, (spec, _) in KINDS.items()}
CASES = [(name, value) for name, (_, values) in KINDS.items() for value in values]
OBJECTS = [{}, *({name: value} for name, value in CASES)]


def documents(found: dict[str, tuple[Any, Any]]) -> list[dict[str, Any]]:
    """Return the properties of objects in the order of `OBJECTS`, without what the server computes."""
    rows = [dict(found[key(at)][0]) if key(at) in found else {"nothing": at} for at in range(len(OBJECTS))]
    for row in rows:
        if "phone" in row:
            row["phone"] = {name: row["phone"][name] for name in ("input", "defaultCountry") if row["phone"].get(name)}
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def as_changed(value: Any, column: str) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    change = read_line(f'{{"op":"insert","object":"x","set":{{"{column}":{text}}}}}'.encode())
    assert isinstance(change, Insert)
    assert read_line(write_line(change)) == change
    return change.values[column]


class Rules:
    async def check(self, wv: Rig, target: str, source: str) -> None:
        after, before = (
            documents(await stored(wv, target, limit="200")),
            documents(await stored(wv, source, limit="200")),
        )
        assert [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]] == []

    @pytest.mark.parametrize("kind", ["rows", "bulk", "csv", "tsv", "parquet"])
    async def test_every_kind_comes_back_from_a_file_as_it_is_stored(self, wv: Rig, tmp_path: Path, kind: str) -> None:
        source, target = await wv.collection(TYPES, OBJECTS), await wv.collection(TYPES, name="Copy")
        file = tmp_path / f"o.{kind}"
        await Line(wv.driver)(file, name=source, format=kind)
        report = await load(session(wv), target, file=file)
        assert report.counts["applied"] == len(OBJECTS), rejected(file)
        await self.check(wv, target, source)

    @pytest.mark.parametrize("way", ["python", "bytes", "set", "typed", "changes"])
    @pytest.mark.parametrize("insert", [True, False])
    async def test_every_kind_is_stored_as_it_is_given(self, wv: Rig, way: str, insert: bool) -> None:
        source = await wv.collection(TYPES, OBJECTS)
        target = await wv.collection(TYPES, [] if insert else [{} for _ in OBJECTS], name="Copy")
        columns = {column.name: column for column in (await wv.driver.describe_object(target)).columns}
        changes: list[Insert | Update] = [Insert(target, {}, key(0))] if insert else []
        for number, (name, value) in enumerate(CASES, start=1):
            given = value
            if way == "bytes" and name == "cover":
                given = base64.b64decode(value)
            elif way in ("set", "typed"):
                text = json.dumps(value, ensure_ascii=False)
                plain = way == "typed" and isinstance(value, str)
                [given] = parse_values([f"{name}={value}" if plain else f"{name}:={text}"], columns).values()
            elif way == "changes":
                given = as_changed(value, name)
            row = RowKey(target, key(number))
            changes.append(Insert(target, {name: given}, row.id) if insert else Update(row, {name: given}))
        outcomes = await wv.apply(*changes)
        assert {outcome.reason for outcome in outcomes if outcome.status is not OutcomeStatus.APPLIED} == set()
        await self.check(wv, target, source)

    async def test_every_kind_is_back_after_an_undo(self, wv: Rig) -> None:
        source, target = await wv.collection(TYPES, OBJECTS), await wv.collection(TYPES, OBJECTS, name="Copy")
        changes = [Update(RowKey(target, key(at)), {"title": "other", "pages": 7}) for at in range(len(OBJECTS))]
        plan = await wv.driver.plan_change(PlanRequest(changes=[*changes], undo=True))
        assert not plan.refusals
        await wv.driver.apply_change(plan)
        undo = [read_line(write_line(change)) for change in plan.undo]  # type: ignore[arg-type]
        outcomes = await wv.apply(*undo)
        assert {outcome.reason for outcome in outcomes if outcome.status is not OutcomeStatus.APPLIED} == set()
        await self.check(wv, target, source)

    async def test_a_value_of_another_kind_is_refused_with_its_reason(self, wv: Rig) -> None:
        target = await wv.collection(TYPES)
        wrong = [
            ("title", 12), ("title", True), ("title", Json("[1]")), ("pages", Json('"12"')), ("price", Json('"1"')),
            ("available", Json('"true"')), ("tags", [1]), ("sizes", ["1"]), ("author", {"born": "1"}), ("cover", 12),
            ("published", 17), ("pages", float("nan")), ("authors", [{"name": 1}]),
        ]  # fmt: skip
        outcomes = await wv.apply(*(Insert(target, {name: value}) for name, value in wrong))
        assert [outcome.status for outcome in outcomes] == ["refused"] * len(wrong)
        assert all(outcome.reason for outcome in outcomes)


class TestKindsOnFake(Rules, OnFake):
    """Every kind against the fake."""


@pytest.mark.one_engine
class TestKindsOnServer(Rules, OnServer):
    """The same against real servers."""
