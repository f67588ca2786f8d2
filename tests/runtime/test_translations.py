"""Rows of one type of database become rows of a table: each value by its own column and by the one that receives it."""

from __future__ import annotations

import json

import pytest

from dragoman.imports.records import Record
from dragoman.imports.translations import Passage, Translation, derived_uuid, full_instant, holds_null
from dragoman_api.cells import Json
from dragoman_api.columns import Column, ColumnKind, Description, Role

KEY = Column(name="_id", type="id", kind=ColumnKind.TEXT, role=Role.KEY, path=("_id",))


def translated(*lines, source, kind, repeated=False, derives=False, **column):
    """Return the fields of rows with one column `a`, or their faults, and the notes."""
    passage_column = Column(name="a", type="t", kind=source, path=("_source", "a"), **column)
    passage = Passage(source=passage_column, name="b", kind=kind, repeated=repeated)
    translation = Translation(
        [passage], Description(object="t", columns=[KEY, passage_column]), id_column=KEY, derives=derives
    )
    records = [Record(number, b'{"_id": "%d", "_source": %b}' % (number, line)) for number, line in enumerate(lines, 1)]
    rows = [record.fault or record.data[1] for record in translation.records(iter(records))]
    return rows, {note.code: note.reason for note in translation.notes}


@pytest.mark.parametrize(
    ("source", "kind", "repeated", "text", "value"),
    [
        (ColumnKind.INTEGER, ColumnKind.INTEGER, False, b"9223372036854775807", 2**63 - 1),
        (ColumnKind.INTEGER, ColumnKind.TEXT, False, b"9007199254740993", "9007199254740993"),
        (ColumnKind.FLOAT, ColumnKind.FLOAT, False, b"1e400", Json("1e400")),
        (ColumnKind.TEXT, ColumnKind.TEXT, False, b'"12"', "12"),
        (ColumnKind.TEXT, ColumnKind.TEXT, False, b'"[1]"', "[1]"),
        (ColumnKind.TEXT, ColumnKind.TEXT, False, b"true", "true"),
        (ColumnKind.TEXT, ColumnKind.TEXT, False, b'""', ""),
        (ColumnKind.TEXT, ColumnKind.TEXT, False, b'["x"]', Json('["x"]')),
        (ColumnKind.TEXT, ColumnKind.TEXT, True, b'"x"', Json('["x"]')),
        (ColumnKind.TEXT, ColumnKind.TEXT, True, b'["x", 1.10, null]', Json('["x","1.10",null]')),
        (ColumnKind.TEXT, ColumnKind.TEXT, True, b"[]", Json("[]")),
        (ColumnKind.INTEGER, ColumnKind.INTEGER, True, b"7", Json("[7]")),
        (ColumnKind.TEXT, ColumnKind.JSON, False, b'"12"', Json('"12"')),
        (ColumnKind.JSON, ColumnKind.TEXT, False, b'{"n": 1.10}', '{"n": 1.10}'),
        (ColumnKind.JSON, ColumnKind.TEXT, False, b'[{"n": 1}]', '[{"n": 1}]'),
        (ColumnKind.JSON, ColumnKind.TEXT, False, b'"plain"', "plain"),
        (ColumnKind.JSON, ColumnKind.JSON, False, b'{"n": 1.10}', Json('{"n": 1.10}')),
        (ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMP, False, b'"2024-01-31"', "2024-01-31T00:00:00Z"),
        (ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMP, False, b"1706702400000", 1_706_702_400_000),
        (ColumnKind.TIMESTAMP, ColumnKind.TIMESTAMP, True, b'["2024-01-31", 5]', Json('["2024-01-31T00:00:00Z",5]')),
        (ColumnKind.TIMESTAMP, ColumnKind.TEXT, False, b'"2024-01-31"', "2024-01-31"),
        (ColumnKind.BOOLEAN, ColumnKind.BOOLEAN, False, b"false", False),
        (ColumnKind.TEXT, ColumnKind.TEXT, False, b"null", None),
    ],
)
def test_a_value_becomes_what_its_column_and_the_other_one_say(source, kind, repeated, text, value):
    [[result], _] = translated(b'{"a": %b}' % text, source=source, kind=kind, repeated=repeated)
    assert (result, type(result)) == (value, type(value))


def test_what_is_spelled_otherwise_is_counted_and_so_are_nulls_and_fields_without_a_column():
    lines = [b'{"a": "2024-01-31"}', b'{"a": null}', b'{"a": "2024-01-31T00:00:00Z", "x": 1}', b'{"a": "null"}']
    rows, notes = translated(*lines, source=ColumnKind.TIMESTAMP, kind=ColumnKind.TIMESTAMP)
    assert rows == ["2024-01-31T00:00:00Z", None, "2024-01-31T00:00:00Z", "null"]
    assert notes["values-respelled"] == "1 value is spelled as the column there needs"
    assert notes["nulls-left-out"] == "1 row holds a null, which is not written: the value is missing"
    assert "x" in notes["keys-left-out"]


def test_a_number_in_an_array_of_texts_is_counted_as_spelled_otherwise():
    rows, notes = translated(b'{"a": ["x", 1.10, true]}', source=ColumnKind.TEXT, kind=ColumnKind.TEXT, repeated=True)
    assert rows == [Json('["x","1.10","true"]')]
    assert notes["values-respelled"] == "2 values are spelled as the column there needs"


def test_a_text_that_becomes_a_number_or_a_boolean_is_counted_as_spelled_otherwise():
    for kind, text in ((ColumnKind.BOOLEAN, "true"), (ColumnKind.FLOAT, "1e3"), (ColumnKind.INTEGER, "7")):
        rows, notes = translated(json.dumps({"a": text}).encode(), source=kind, kind=kind)
        assert (rows, "values-respelled" in notes) == ([text], True)


def test_ids_that_a_server_of_uuids_spells_otherwise_are_counted():
    translation = Translation([], Description(object="t", columns=[KEY]), id_column=KEY, derives=False)
    translation.uuids = True
    ids = ["8F14E45F-CEEA-467A-9575-9C7A7A1A2B3C", "8f14e45f-ceea-467a-9575-9c7a7a1a2b3d", "none"]
    lines = [Record(at, b'{"_id": "%b"}' % row_id.encode()) for at, row_id in enumerate(ids)]
    assert [record.data for record in translation.records(iter(lines))] == [[row_id] for row_id in ids]
    [note] = translation.notes
    assert (note.code, note.column) == ("values-respelled", "_id")
    assert note.reason.startswith("1 value ")


def test_columns_keep_apart_whose_names_would_be_one():
    columns = [Column(name=name, type="t", kind=ColumnKind.TEXT, path=(name,)) for name in ("_id", "_id as b")]
    passages = [Passage(source=columns[0], name="b", kind=None), Passage(source=columns[1], name="c", kind=None)]
    translation = Translation(passages, Description(object="t", columns=columns), id_column=columns[0], derives=False)
    [record] = translation.records(iter([Record(1, b'{"_id": "1", "_id as b": "2"}')]))
    assert len(translation.names) == len(record.data) == 3
    assert [*translation.labels.values()] == ["b", "c"]


def test_an_array_where_members_of_one_object_are_columns_rejects_its_row_alone():
    column = Column(name="o.a", type="t", kind=ColumnKind.INTEGER, path=("_source", "o.a"))
    translation = Translation(
        [Passage(source=column, name="o_a", kind=ColumnKind.INTEGER)],
        Description(object="t", columns=[KEY, column]), id_column=None, derives=False,
    )  # fmt: skip
    lines = [b'{"o": {"a": 1}}', b'{"o": [{"a": 1}]}', b'{"o.a": 2}', b"{"]
    records = [Record(at, b'{"_id": "x", "_source": %b}' % line) for at, line in enumerate(lines)]
    rows = [record.fault or record.data for record in translation.records(iter(records))]
    assert (rows[0], rows[2]) == ([1, "x"], [2, "x"])
    assert "an array at 'o'" in rows[1]
    assert rows[3]


def test_an_id_is_carried_or_a_uuid_is_derived_from_it():
    for derives, fields in ((False, {"_id": "1"}), (True, {"_id as UUID": derived_uuid("1"), "_id": "1"})):
        translation = Translation([], Description(object="t", columns=[KEY]), id_column=KEY, derives=derives)
        [record] = translation.records(iter([Record(1, b'{"_id": "1"}')]))
        assert dict(zip(translation.names, record.data, strict=True)) == fields


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-01-31 12:00", "2024-01-31T12:00:00Z"),
        ("2024-01-31T12:00:00.123456789z", "2024-01-31T12:00:00.123456789Z"),
        ("2024-01-31T12:00:00+02", "2024-01-31T12:00:00+02:00"),
        ("20240131", "20240131"),
        ("2024-W05", "2024-W05"),
    ],
)
def test_an_instant_gets_the_parts_that_it_leaves_to_be_understood(text, instant):
    assert full_instant(text) == instant


def test_a_null_in_a_text_or_an_array_is_none_of_a_member():
    lines = [b'{"a": null}', b'{"a": {"b": null}}', b'{"a": "null"}', b'{"a": [null]}', b'{"a": nul']
    assert [*map(holds_null, lines)] == [True, True, False, False, False]
