"""The spellings of a selection, as words of a command line, texts, Python and JSON: none loses anything."""

from __future__ import annotations

import shlex

import click
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import dragoman
from dragoman import Filter, RawQuery, Sort, Span
from dragoman.cli import read_options
from dragoman.sessions.selection_codec import (
    SelectionTexts,
    call_arguments,
    filter_text,
    names_text,
    parse_filter,
    parse_names,
    parse_sort,
    script,
)
from dragoman.sessions.selections import RowSelection
from dragoman_api.errors import ConfigurationError
from drawn_selections import FIELDS, FULL, NASTY, SCALARS, SELECTIONS, TEXTS, VALUES
from in_process import Here
from memory_driver import MemoryDriver


def test_every_field_of_a_selection_is_drawn_and_one_has_them_all():
    """A new field fails here until it is drawn, and below until it is spelled."""
    assert [*FIELDS] == [*RowSelection.__struct_fields__]
    assert not [
        name
        for name, default in zip(RowSelection.__struct_fields__[1:], RowSelection.__struct_defaults__, strict=True)
        if getattr(FULL, name) == default
    ]


@settings(max_examples=40, deadline=None)
@given(SELECTIONS)
def test_a_selection_comes_back_from_texts(selection):
    texts = SelectionTexts.of(selection)
    assert texts.read() == selection
    assert msgspec.convert(msgspec.to_builtins(texts), SelectionTexts) == texts


@settings(max_examples=40, deadline=None)
@given(SELECTIONS)
def test_a_selection_comes_back_from_json(selection):
    assert msgspec.json.decode(msgspec.json.encode(selection), type=RowSelection) == selection


@settings(max_examples=40, deadline=None)
@given(SELECTIONS)
def test_a_selection_comes_back_from_python(selection):
    session = Here(MemoryDriver(), capabilities=("tenants", "revisions")).session()
    names = {"Filter": Filter, "RawQuery": RawQuery, "Sort": Sort, "Span": Span, "session": session}
    assert eval(f"session.rows({call_arguments(selection)})", names).selection == selection


def _click(words: list[str]) -> RowSelection:
    @click.command()
    @click.argument("connection")
    @click.argument("object")
    @read_options.choosing(*read_options.OPTIONS)
    def page(*, connection: str, choice: read_options.Choice) -> RowSelection:
        return choice.texts.read()

    selection: RowSelection = page.main(words, standalone_mode=False)
    return selection


@settings(max_examples=40, deadline=None)
@given(SELECTIONS)
def test_a_selection_comes_back_from_a_command_line(selection):
    words = SelectionTexts.of(selection).command("shop")
    assert words[:3] == ["dragoman", "page", "shop"]
    read = _click(words[2:])
    sign = "@" if selection.object.startswith("@") else ""
    assert read == replace(selection, object=f"{sign}{selection.object}")


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
        ("title contains dune -case", Filter("title", "contains", "dune", case=False)),
        ("title = Dune @1 +CASE", Filter("title", "=", "Dune", "1", case=True)),
        ("at in last 24h @1 +case", Filter("at", "in", ["last 24h"], "1", case=True)),
        ("title = '-case'", Filter("title", "=", "-case")),
        ('items.sku = x @"a b"', Filter("items.sku", "=", "x", "a b")),
        ("mail = @example.com", Filter("mail", "=", "@example.com")),
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
        ("user = -case", "quote the value +case or -case", "VALUE"),
        ("user = Bob -case x", "more than one value", '"Bob -case x"'),
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
    with pytest.raises(ConfigurationError, match="--raw is empty"):
        SelectionTexts(object="x", raw=[raw]).read()
    with pytest.raises(ConfigurationError, match="--raw is empty"):
        SelectionTexts.of(RowSelection(object="x", filters=(RawQuery(raw),)))


def test_raw_rows_come_after_the_others():
    texts = SelectionTexts(object="x", filters=["a = 1"], raw=["status:open"])
    assert texts.read().filters == (Filter("a", "=", "1"), RawQuery("status:open"))


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (Filter("a", "=", 10), "a = 10"),
        (Filter("a", "=", True), "a = true"),
        (Filter("a", "in", [1, "b", 1.5]), "a in 1,b,1.5"),
        (Filter("a", "in", "x, y z"), 'a in x,"y z"'),
        (Filter("a", "between", "1,2"), "a between 1,2"),
    ],
)
def test_values_of_other_types_become_the_texts_that_a_person_types(row, text):
    assert filter_text(row) == text


@pytest.mark.parametrize(
    "row",
    [
        Filter("", "=", "x"),
        Filter("a", "=", None),
        Filter("a", "in", []),
        Filter("a", "in", ["x", None]),
        Filter("a", "between", ["1"]),
        Filter("a", "null", "x"),
        Filter("a", "=", ["x", "y"]),
    ],
)
def test_what_has_no_spelling_is_refused_and_never_shortened(row):
    with pytest.raises(ConfigurationError, match="no spelling"):
        filter_text(row)


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
    assert parse_filter(filter_text(parsed)) == parsed


def test_a_hyphen_before_a_sort_key_means_descending():
    assert [*map(parse_sort, ("-total", "_id"))] == [Sort("total", descending=True), Sort("_id")]
    for text in ("-", "+", ""):
        with pytest.raises(ConfigurationError):
            parse_sort(text)


@given(st.lists(st.sampled_from(NASTY) | TEXTS, max_size=4))
def test_names_come_back_whatever_they_hold(names):
    assert parse_names(names_text(names)) == names


@given(st.text())
def test_any_text_is_a_list_of_names(text):
    assert parse_names(names_text(parse_names(text))) == parse_names(text)


def test_a_script_imports_what_it_uses():
    code = script(FULL, "shop")
    compile(code, "script", "exec")
    assert "from dragoman import Filter, RawQuery, Sort, Span, open" in code
    assert "from dragoman import open\n" in script(replace(FULL, filters=(), sort=(), span=Span()), "shop")
    assert {"Filter", "RawQuery", "Sort", "Span"} <= {*dragoman.__all__}
