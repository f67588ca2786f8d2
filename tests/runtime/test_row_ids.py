"""A row's id has one spelling: texts, bytes and composite ids come back from every place as they were."""

from __future__ import annotations

import json
import shlex
from decimal import Decimal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.changes.files import read_line, write_line
from dragoman.cli.output import dumps
from dragoman.spellings import JsonId, cell_command, id_of, json_of, read_id, spell_id
from dragoman_api.cells import as_bytes
from dragoman_api.changes import Delete, Insert, Outcome, OutcomeStatus, Plan, Update
from dragoman_api.errors import QueryError
from dragoman_api.grid import CellRequest, RowKey, text_id
from dragoman_worker.values import decode_request, encode_request

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
PARTS = TEXTS | st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=30)
CLASHING = st.builds(json.dumps, st.lists(TEXTS | st.integers()) | TEXTS | st.builds(lambda x: {"base64": x}, TEXTS))
IDS = TEXTS | CLASHING | st.binary(min_size=1, max_size=30) | st.lists(PARTS, min_size=1, max_size=32)


def same(found, wanted):
    """Compare with the types of the parts: `1 == True` and `b"" == b""` say too little."""
    assert (type(found), found) == (type(wanted), wanted)
    if isinstance(wanted, list):
        assert [*map(type, found)] == [*map(type, wanted)]


@given(IDS)
@example('["a"]')
@example('"a"')
@example('{"base64":"YQ=="}')
@example("[" * 100_000)
def test_an_id_survives_the_command_line(row):
    same(read_id(shlex.split(shlex.quote(spell_id(row)))[0]), row)


@given(TEXTS)
def test_a_plain_text_is_spelled_as_it_stands(row):
    if row[0] not in '["{':
        assert spell_id(row) == row


@given(IDS)
def test_an_id_survives_json(row):
    same(id_of(msgspec.json.decode(msgspec.json.encode(json_of(row)), type=JsonId)), row)
    for document in (RowKey("o", row), Outcome(change=0, status=OutcomeStatus.APPLIED, id=row)):
        shown = json.loads(dumps({"rows": [document]}))["rows"][0]["id"]
        same(id_of(msgspec.convert(shown, JsonId)), row)


def test_a_row_may_have_no_id_yet():
    assert json.loads(dumps(Insert("o", {"a": 1})))["values"] == {"a": 1}


def test_the_command_for_a_cell_parts_options_from_names_only_where_a_name_looks_like_one():
    assert cell_command("shop", "orders", "17", "note") == "dragoman cell shop orders 17 note"
    assert cell_command("shop", "orders", "-x1", "note") == "dragoman cell shop -- orders -x1 note"


def test_a_column_named_id_is_a_value_as_any_other():
    change = Insert("o", {"id": b"\xff", "n": Decimal("1.10"), "in": {"id": [b"\xff"]}}, b"\xff")
    for document in (change, [change], {"a": change}, Plan(planned=[], changes=[change])):
        shown = dumps(document)
        assert shown.count('{"base64":"/w=="}') == 1
        assert '"values":{"id":"/w==","n":1.10,"in":{"id":["/w=="]}}' in shown


@given(IDS)
def test_an_id_survives_a_change_file(row):
    for change in (Insert("o", {"a": 1}, row), Update(RowKey("o", row), {"a": 1}), Delete(RowKey("o", row))):
        read = read_line(write_line(change))
        assert read == change
        same(read.id if isinstance(read, Insert) else read.key.id, row)


@given(IDS)
def test_an_id_survives_the_wire(row):
    request = CellRequest(key=RowKey("o", row), column="a")
    same(decode_request(CellRequest, msgspec.Raw(encode_request(request))).key.id, row)


def test_bytes_among_the_values_of_a_change_file_are_base64_text():
    """A line says nothing of a column's kind: a driver takes bytes or their base64 text."""
    read = read_line(write_line(Update(RowKey("o", "1"), {"a": b"\0\xff"})))
    assert read == Update(RowKey("o", "1"), {"a": "AP8="})
    assert as_bytes(read.values["a"]) == as_bytes(b"\0\xff")


@pytest.mark.parametrize("row", ["[]", '[{"base64": "?"}]', "[true]", '[{"base64":"YQ==","more":1}]', "{}", "null"])
def test_a_line_with_another_id_is_refused(row):
    with pytest.raises(ValueError, match=r"id|base64|Expected|Invalid"):
        read_line(b'{"op":"delete","object":"o","id":%s}' % row.encode())


@pytest.mark.parametrize("row", [b"a", ["a"], ["a", 1]])
def test_a_database_of_texts_refuses_other_ids(row):
    assert text_id("a") == "a"
    with pytest.raises(QueryError):
        text_id(row)
