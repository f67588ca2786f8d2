"""Values of columns in exported rows: found by path, every digit as it was stored."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.exports.csv_lines import Csv
from dragoman.exports.values import ValueReader, read_row, text_of
from dragoman_api import Column, ColumnKind
from dragoman_api.errors import ExportError


def reader(path: tuple[str, ...], *arrays: str) -> ValueReader:
    return ValueReader([Column(name="x", type="t", path=path, arrays=arrays)])


@pytest.mark.parametrize(
    ("line", "path", "value"),
    [
        (b'{"_id":"1"}', ("_id",), b'"1"'),
        (b'{"_source":{"a":1.10}}', ("_source", "a"), b"1.10"),
        (b'{"_source":{"a":{"b": [1, 2.50] }}}', ("_source", "a.b"), b"[1, 2.50]"),
        (b'{"_source":{"a.b":1,"a":{"b":2}}}', ("_source", "a.b"), b"1"),
        (b'{"_source":{"a":{"b.c":1}}}', ("_source", "a.b.c"), b"1"),
        (b'{"_source":{"a.b":{"c":1}}}', ("_source", "a.b.c"), b"1"),
        (b'{"_source":{"a":[{"b":1},{"c":2},{"b":null},3,[{"b":4}]]}}', ("_source", "a.b"), b"[1,null,null,null,[4]]"),
        (b'{"_source":{"a":[]}}', ("_source", "a.b"), b"[]"),
        (b'{"_source":{"a":null}}', ("_source", "a"), None),
        (b'{"_source":{"a":1}}', ("_source", "a.b"), None),
        (b'{"_source":[1]}', ("_source", "a"), None),
        (b"{}", ("_source", "x", "a"), None),
    ],
)
def test_a_path_leads_to_the_stored_text(line, path, value):
    assert reader(path).read(line) == [value]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (b'{"n":{"a":1}}', b"[1]"),
        (b'{"n":[{"a":1}]}', b"[1]"),
        (b'{"n":{"b":1}}', b"[null]"),
        (b'{"n":{"m":{"a":1.10}}}', b"[[1.10]]"),
        (b'{"n":[{"m":{"a":1}},{"m":[{"a":2},{}]}]}', b"[[1],[2,null]]"),
        (b'{"n.m":{"a":1}}', b"[1]"),
        (b'{"n.a":1}', b"1"),
        (b'{"n":3}', None),
    ],
)
def test_a_single_object_where_rows_have_an_array_is_an_array_of_one(source, value):
    name = "n.m.a" if b'"m"' in source or b"n.m" in source else "n.a"
    assert reader(("_source", name), "n", "n.m").read(b'{"_source":%b}' % source) == [value]


def test_a_hostile_name_costs_no_more_than_what_a_row_holds():
    name = ".".join(["a"] * 2_000)
    assert reader((name,)).read(b'{"a":{"a":1}}') == [None]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_a_stored_value_comes_back_byte_for_byte(value):
    text = msgspec.json.encode(value)
    [found] = reader(("row", "v")).read(b'{"row":{"v":%s}}' % text)
    assert found == (None if value is None else text)


@given(st.text())
def test_a_text_is_read_without_its_quotes(text):
    assert text_of(msgspec.json.encode(text)) == text


def lines_of(*rows: bytes, columns: int = 2, escape: bool = False) -> tuple[bytes, int]:
    kind = ColumnKind.TEXT
    names = [Column(name=name, type="t", kind=kind, multiple=True, path=(name,)) for name in ("a", "b")[:columns]]
    table = Csv(names, escape=escape)
    return table.convert(b"\n".join([*rows, b""])), table.formulas


@pytest.mark.parametrize(
    ("stored", "field"),
    [
        (b"1.10", b"1.10"),
        (b"true", b"true"),
        (b"-1", b"-1"),
        (b"[1]", b"[1]"),
        (b"[1, 2]", b'"[1, 2]"'),
        (b'{"c":1}', b'"{""c"":1}"'),
        (b'""', b'""'),
        (b'"x"', b"x"),
        (b'"xy"', b"xy"),
        (b'"x,y"', b'"x,y"'),
        (b'"x\\"y"', b'"x""y"'),
        (b'"x\\ny"', b'"x\ny"'),
        (b'"x\\ry"', b'"x\ry"'),
        (b'"x\\ty"', b"x\ty"),
        (b'"[1,2"', b'"[1,2"'),
        (b'"1"', b'"1"'),
        (b'"-1"', b'"-1"'),
        (b'"1e3"', b'"1e3"'),
        (b'"true"', b'"true"'),
        (b'"truely"', b"truely"),
        (b'"2024-01-05"', b"2024-01-05"),
        (b'"007"', b"007"),
        (b'"[1]"', b'"""[1]"""'),
        (b'"[draft]"', b"[draft]"),
        (b'"{\\"c\\":1}"', b'"{""c"":1}"'),
        (b'"\\"q\\""', b'"""q"""'),
        (b'"\\"[1]\\""', b'"""\\""[1]\\"""""'),
        (b'"+1.5e3"', b"+1.5e3"),
    ],
)
def test_a_field_of_csv_is_quoted_only_where_it_must_be(stored: bytes, field: bytes):
    row = b'{"a":%b,"b":2}' % stored
    assert lines_of(row) == (field + b",2\r\n", 0)
    assert lines_of(row, row, columns=1) == ((field + b"\r\n") * 2, 0)


def test_null_is_an_empty_field_but_no_empty_line_of_csv():
    assert lines_of(b"{}", b'{"a":null,"b":""}') == (b',\r\n,""\r\n', 0)
    assert lines_of(b"{}", b'{"a":1}', columns=1) == (b'""\r\n1\r\n', 0)


@pytest.mark.parametrize("text", ["=1+1", "+1x", "-a", "@x", "=", "\\t=1", "=1,2"])
def test_what_a_spreadsheet_would_take_for_a_formula_is_counted_and_escaped_on_request(text: str):
    row = b'{"a":"%b","b":"x"}' % text.encode()
    plain = text.replace("\\t", "\t").encode()
    for escape, expected in ((False, plain), (True, b"'" + plain)):
        field = b'"%b"' % expected if b"," in expected else expected
        assert lines_of(row, row, escape=escape) == ((field + b",x\r\n") * 2, 2)


def test_the_header_counts_and_escapes_formulas_too():
    table = Csv([Column(name=name, type="t", path=("a",)) for name in ("=a", 'b "c"', "d,e", "f")], escape=True)
    assert (table.head(), table.formulas) == (b'\'=a,"b ""c""","d,e",f\r\n', 1)


def test_a_row_keeps_every_digit_and_a_damaged_one_is_an_error_with_a_way_on():
    row = b'{"a":1.10,"b":%b,"c":-0,"d":18446744073709551617}' % (b"9" * 5_000)
    read = read_row(row)
    assert (str(read["a"]), str(read["b"]), read["d"]) == ("1.10", "9" * 5_000, 2**64 + 1)
    for line in (b"[1]", b"{", b"", b'{"a":' + b"[" * 100_000):
        with pytest.raises(ExportError, match="a row cannot be read") as caught:
            read_row(line)
        assert caught.value.hint.startswith("export documents")
