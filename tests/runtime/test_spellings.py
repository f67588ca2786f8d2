"""Spellings: a value and its text are each other's inverse, in every kind of column."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpora import every_row
from dragoman.exports.csv_lines import Csv
from dragoman.imports.csv_rows import FieldForm, SeparatedRows
from dragoman.imports.field_values import FieldInserts
from dragoman.imports.records import Wishes
from dragoman.spellings import Quoted, exact_text, spelling_of, value_of
from dragoman_api.cells import Json
from dragoman_api.columns import Column, ColumnKind, Description
from dragoman_api.json_text import encode

KINDS = [*ColumnKind]
TEXTS = [
    "", " ", "a", "[1]", '["a",null]', "[x", "{}", '{"a":1}', '"q"', '"[1]"', '"\\"[1]\\""', "null", "true", "False",
    "12", "-0", "1e3", "1.10", "007", "+1", ".5", "1.", " 12", "12 ", " [1]", "[1] ", "=1+1", "'=1+1",
    "''=1", "'", "@a", "-a", "a,b", 'a"b', "a\nb", "a\r\nb", "\t", "\ufeff", "é🐎", "NaN", "2024-01-05",
    "1700000000000", "AP8=", "\x00",
]  # fmt: skip
RAW = [
    "0", "-0", "1", "1e3", "1E+3", "1.10", "1.0", "-1.5e-07", "1e16", "1e+16", "1e400", "9007199254740993", "9" * 30,
    "9" * 5_000, "0.00001", "1e99999999999999999999", "true", "false", "[]", "{}", "[1,-0,1.10,null]", '["a",null]',
    '[[1],{"a":1e3}]', '{"a":{"b":[1e3]}}', '["[1]"]',
]  # fmt: skip


class Source:
    """The bytes of a file."""

    name = "a.csv"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        data, self._data = self._data, b""
        return data


def stored(value: Any) -> str:
    """Return the JSON text of a value as drivers store it."""
    return str(value) if isinstance(value, Json) else encode(value)


def through(column: Column, raw: str, *, tabs: bool, escape: bool, exact: bool) -> str:
    """Write a value to a table, read it again, and return the JSON text that would be stored."""
    key = Column(name="#", type="", kind=ColumnKind.INTEGER, path=("#",))
    table = Csv([key, column], escape=escape, tabs=tabs)
    data = table.head() + table.convert(b'{"#":1,"=x":%b}\n' % raw.encode())
    lines = SeparatedRows(Source(data), delimiter="\t" if tabs else ",", exact=exact)  # type: ignore[arg-type]
    form = FieldForm(exact=exact, escaped=escape and exact)
    [record] = lines
    assert not record.fault, data
    inserts = FieldInserts(
        Wishes(object="o"), Description(object="o", columns=[key, column]), lines.names, spelled=form
    )
    inserts.fill(record)
    return stored(record.values["=x"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_of_our_own_table_comes_back_as_it_is_stored(kind):
    column = Column(name="=x", type="", kind=kind, multiple=True, path=("=x",))
    with every_row() as row:
        for raw, (tabs, escape) in product([*map(encode, TEXTS), *RAW], ((False, False), (True, False), (False, True))):
            if kind is not ColumnKind.TEXT or raw[0] != "{":  # no server stores an object where it has texts
                with row(raw, tabs, escape):
                    assert through(column, raw, tabs=tabs, escape=escape, exact=True) == raw


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6,
)  # fmt: skip


@given(st.sampled_from(KINDS), json_values.filter(lambda value: value is not None), st.booleans(), st.booleans())
@example(ColumnKind.TEXT, '"\\"[]\\""', False, True)
def test_any_json_of_our_own_table_comes_back(kind, value, tabs, escape):
    if kind is ColumnKind.TEXT and isinstance(value, dict):
        return
    raw = json.dumps(value, ensure_ascii=False)
    column = Column(name="=x", type="", kind=kind, multiple=True, path=("=x",))
    assert json.loads(through(column, raw, tabs=tabs, escape=escape, exact=True)) == value


@pytest.mark.parametrize("raw", [*map(encode, TEXTS), "[]", "[1,-0,1.10,null]", '["[1]"]', '[[1],{"a":1e3}]'])
@pytest.mark.parametrize("multiple", [True, False])
def test_texts_and_arrays_of_texts_come_back_from_any_table(raw, multiple):
    """Without the manifest beside the file, the column says what a field without a type is."""
    if raw[0] == "[" and not multiple:
        return
    column = Column(name="=x", type="", kind=ColumnKind.TEXT, multiple=multiple, path=("=x",))
    assert through(column, raw, tabs=False, escape=False, exact=False) == raw


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (ColumnKind.TEXT, "12", "12"),
        (ColumnKind.TEXT, "[draft]", "[draft]"),
        (ColumnKind.TEXT, '"Hello"', '"Hello"'),
        (ColumnKind.TEXT, '{"a":1}', '{"a":1}'),
        (ColumnKind.TEXT, "[1]", Json("[1]")),
        (ColumnKind.TEXT, '"[1]"', "[1]"),
        (ColumnKind.INTEGER, "12", "12"),
        (ColumnKind.INTEGER, "[1]", Json("[1]")),
        (ColumnKind.BOOLEAN, "true", "true"),
        (ColumnKind.JSON, "12", 12),
        (ColumnKind.JSON, "1e3", Json("1e3")),
        (ColumnKind.JSON, "1.5,2", Json('"1.5,2"')),
        (ColumnKind.JSON, '"12"', Json('"12"')),
        (ColumnKind.JSON, ' {"a":1}', Json('{"a":1}')),
    ],
)
def test_a_field_of_a_table_by_somebody_else_is_what_its_column_says(kind, field, value):
    column = Column(name="x", type="", kind=kind, multiple=True)
    for each in (field, Quoted(field)):
        found = spelling_of(column).value(each, exact=False)
        assert (found, type(found)) == (value, type(value))


SHARDS = ["null", "1,2", "[1", "2]", '"a', '","', 'b"', "1 ", "\u0663", "1_0", "te", "fe", "1e", "Infinity", '"""', "{"]
"""Fields that would be something else beside others."""


def _sent(values: dict[str, Any]) -> dict[str, tuple[object, str]]:
    """Return what a request says of each value; a number is the same number as a float, a Decimal and JSON."""
    texts = {name: stored(value) for name, value in values.items()}
    return {name: ("number" if text[:1] in "-0123456789" else type(values[name]), text) for name, text in texts.items()}


@given(
    st.lists(st.sampled_from([None, *TEXTS, *RAW, *SHARDS]) | st.text(max_size=3), min_size=4, max_size=4),
    st.lists(st.sampled_from([ColumnKind.INTEGER, *KINDS]), min_size=4, max_size=4),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
@example(["1,2", "3", None, "4"], [ColumnKind.INTEGER] * 4, False, True, True)
@example(["1", None, "2", "null"], [ColumnKind.INTEGER] * 4, False, True, True)
@example(["1 ", "-0", "1e3", "1.10"], [ColumnKind.INTEGER] * 4, False, True, True)
@example(["12", "true", "1.5", "-3"], [ColumnKind.INTEGER] * 4, True, True, True)
@example([None, "1e16", "1e-05", "0.00001"], [ColumnKind.INTEGER] * 4, False, True, False)
@example(["12", "true", "1.5", "-3"], [ColumnKind.INTEGER] * 4, False, True, True)
def test_the_fields_of_a_row_are_read_as_each_is_alone(fields, kinds, quotes, exact, multiple):
    columns = [
        Column(name=name, type="", kind=kind, multiple=multiple) for name, kind in zip("abcd", kinds, strict=True)
    ]
    marks = [field is not None and (quotes or not field or not {*'"\t\r\n'}.isdisjoint(field)) for field in fields]
    line = "\t".join(
        "" if field is None else '"' + field.replace('"', '""') + '"' if mark else field
        for field, mark in zip(fields, marks, strict=True)
    )
    [record] = SeparatedRows(Source(f"a\tb\tc\td\n{line}\n".encode()), delimiter="\t", exact=exact)  # type: ignore[arg-type]
    assert record.data == fields
    inserts = FieldInserts(
        Wishes(object="o"), Description(object="o", columns=columns), [*"abcd"], spelled=FieldForm(exact=exact)
    )
    alone = {
        column.name: spelling_of(column).value(Quoted(field) if mark else field, exact=exact)
        for column, field, mark in zip(columns, fields, marks, strict=True)
        if field is not None
    }
    inserts.fill(record)
    values = record.values
    assert _sent(values) == _sent(alone)


@pytest.mark.parametrize("raw", RAW)
def test_a_json_text_keeps_its_digits_as_a_value(raw):
    assert stored(value_of(raw.encode())) == raw


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_a_text_in_any_column_and_plain_where_no_column_reads_it_otherwise(text):
    value = value_of(encode(text).encode())
    assert value == exact_text(text)
    assert json.loads(value) == text if isinstance(value, Json) else value == text


def test_values_that_python_holds_exactly_are_pythons_own():
    assert [value_of(raw) for raw in (b"12", b"1.5", b"true", b"null", b'"a"')] == [12, 1.5, True, None, "a"]
    assert repr(value_of(b"1.10")) == repr(Decimal("1.10"))
