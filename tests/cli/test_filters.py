"""The grammar of filter rows and sort keys."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.filters import parse_filter, parse_rows, parse_sort, show_row
from dragoman_api.columns import Operator
from dragoman_api.errors import ConfigurationError
from dragoman_api.filters import Filter, RawQuery
from dragoman_api.grid import Sort

VALUES = set(Operator) - {Operator.NULL, Operator.NOT_NULL, Operator.EMPTY, Operator.NOT_EMPTY}
SCALARS = sorted(VALUES - {Operator.IN, Operator.NOT_IN, Operator.BETWEEN})


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("total >= 100", Filter("total", ">=", "100")),
        ("  title   contains   'two words'  ", Filter("title", "contains", "two words")),
        ('title = "say \\"so\\""', Filter("title", "=", 'say "so"')),
        ("title = ''", Filter("title", "=", "")),
        ("'odd name' null", Filter("odd name", "null")),
        ("status in open,closed", Filter("status", "in", ["open", "closed"])),
        ("city in 'New York, NY',Bonn", Filter("city", "in", ["New York, NY", "Bonn"])),
        ("city in New\\ York\\,\\ NY,Bonn", Filter("city", "in", ["New York, NY", "Bonn"])),
        ("price between 10,20", Filter("price", "between", ["10", "20"])),
        ("at in last 24h", Filter("at", "in", ["last 24h"])),
        ("at in last week,this  week, today @1", Filter("at", "in", ["last week", "this week", "today"], "1")),
        ("at between last month,yesterday", Filter("at", "between", ["last month", "yesterday"])),
        ("at = 'last 7 days'", Filter("at", "=", "last 7 days")),
        ("at != last 7 days", Filter("at", "!=", "last 7 days")),
        ("place near 52.52,13.405,5km", Filter("place", "near", "52.52,13.405,5km")),
        ("city = a,b", Filter("city", "=", "a,b")),
        ("items.sku = A-17 @1", Filter("items.sku", "=", "A-17", "1")),
        ("items.sku null @both", Filter("items.sku", "null", None, "both")),
        ("title not-null", Filter("title", "not-null")),
        ("title empty", Filter("title", "empty")),
        ("title not-empty", Filter("title", "not-empty")),
        ("user = '@bob'", Filter("user", "=", "@bob")),
        ("user = \\@bob", Filter("user", "=", "@bob")),
        (r"name regex ^A\d+\.$", Filter("name", "regex", r"^A\d+\.$")),
        (r"name regex '^A \d+$'", Filter("name", "regex", r"^A \d+$")),
        ("Status NOT-IN a,b", Filter("Status", "not-in", ["a", "b"])),
        ("id = 9007199254740993", Filter("id", "=", "9007199254740993")),
    ],
)
def test_a_row_is_column_operator_value_and_group(row, expected):
    assert parse_filter(row) == expected


@pytest.mark.parametrize(
    ("row", "reason", "hint"),
    [
        ("", "COLUMN OP VALUE", "--filter"),
        ("total", "COLUMN OP VALUE", "--filter"),
        ("total>=100", "COLUMN OP VALUE", "--filter 'total >= 100'"),
        ("total >=", "needs a value", "VALUE"),
        ("total => 5", "did you mean", ">="),
        ("user = @bob", "quote a value that starts with @", "VALUE"),
        ("status = open and total > 5", "one condition", "--filter 'status = open' --filter 'total > 5'"),
        ("note null AND b = 'x y'", "one condition", """--filter 'note null' --filter 'b = "x y"'"""),
        ("a = 1 or b = 2 || c in 3,4", "one condition", "--filter 'b = 2' --filter 'c in 3,4' --match any"),
        ("a = 1 or b = 2 and c = 3", "one condition", "with --match any one of them"),
        ("title = salt and pepper", "more than one value", '"salt and pepper"'),
        ("title = \"a\" 'and' b = c", "more than one value", '"a and b = c"'),
        ("title contains two words", "more than one value", '"two words"'),
        ("title = don't", "never closed", "quotes"),
        ("email null x", "takes no value", "email null"),
        ("price between 10", "two bounds", "between 10,20"),
        ("price between 10,20,30", "two bounds", "between 10,20"),
        ("status in open,,closed", "empty", "''"),
        ("'' = 3", "COLUMN OP VALUE", "--filter"),
        ("at today", "needs an operator", "--filter 'at in today'"),
        ("at last 24h", "needs an operator", "--filter 'at in last 24h'"),
        ("at in last week,two words", "more than one value", "two words"),
        ("at = last week,this week", "more than one value", "last week"),
        ("at in last 24M", "more than one value", "last 24M"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_way_out_and_never_widened(row, reason, hint):
    with pytest.raises(ConfigurationError) as caught:
        parse_filter(row)
    assert caught.value.code == "filter-syntax"
    assert reason in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("raw", ["", "   "])
def test_an_empty_raw_row_is_refused_because_it_would_match_everything(raw):
    with pytest.raises(ConfigurationError):
        parse_rows((), (raw,))


def test_raw_rows_come_after_the_others():
    assert parse_rows(("a = 1",), ("status:open",)) == [Filter("a", "=", "1"), RawQuery("status:open")]


@given(value=st.text(min_size=1), op=st.sampled_from(SCALARS), group=st.sampled_from([None, "1", "both"]))
def test_any_value_quoted_as_in_a_shell_comes_back_as_it_was(value, op, group):
    row = f"col {op} '{value}'" if "'" not in value else f"col {op} {shlex.quote(value)}"
    assert parse_filter(row + (f" @{group}" if group else "")) == Filter("col", op, value, group)


@given(row=st.text())
def test_any_text_is_a_row_or_a_refusal(row):
    try:
        parsed = parse_filter(row)
    except ConfigurationError:
        return
    assert parsed.column
    assert (parsed.value is None) == (parsed.op not in VALUES)


def test_a_hyphen_before_a_sort_key_means_descending():
    assert parse_sort(("-total", "_id")) == [Sort("total", descending=True), Sort("_id")]
    with pytest.raises(ConfigurationError):
        parse_sort(("-",))


def test_an_explanation_shows_a_row_as_it_was_written():
    assert show_row(parse_filter("items.sku in a,b @1")) == "items.sku in a,b @1"
    assert show_row(parse_filter("email null")) == "email null"
