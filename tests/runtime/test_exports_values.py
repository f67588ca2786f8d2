"""Values of columns in exported rows: found by path, every digit as it was stored."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.exports.values import ValueReader, text_of


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
    assert ValueReader([path]).read(line) == [value]


def test_a_hostile_name_costs_no_more_than_what_a_row_holds():
    name = ".".join(["a"] * 2_000)
    assert ValueReader([(name,)]).read(b'{"a":{"a":1}}') == [None]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_a_stored_value_comes_back_byte_for_byte(value):
    text = msgspec.json.encode(value)
    [found] = ValueReader([("row", "v")]).read(b'{"row":{"v":%s}}' % text)
    assert found == (None if value is None else text)


@given(st.text())
def test_a_text_is_read_without_its_quotes(text):
    assert text_of(msgspec.json.encode(text)) == text
