"""Commands that write: previews, guards, outcomes."""

from __future__ import annotations

import json
from decimal import Decimal
from urllib.parse import unquote

import pytest

from dragoman.cli.changes import parse_values
from dragoman.cli.options import take_pairs
from dragoman_api.cells import Json
from dragoman_api.columns import Column, ColumnKind
from dragoman_api.errors import ConfigurationError

COLUMNS = {
    column.name: column
    for column in (
        Column(name="title", type="", kind=ColumnKind.TEXT),
        Column(name="price", type="", kind=ColumnKind.FLOAT),
        Column(name="fee", type="", kind=ColumnKind.DECIMAL),
        Column(name="tags", type="", kind=ColumnKind.JSON),
        Column(name="words", type="", kind=ColumnKind.TEXT, repeated=True),
        Column(name="codes", type="", kind=ColumnKind.TEXT, multiple=True),
        Column(name="counts", type="", kind=ColumnKind.INTEGER, multiple=True),
        Column(name="day", type="", kind=ColumnKind.DATE),
        Column(name="at", type="", kind=ColumnKind.TIMESTAMP),
        Column(name="time", type="", kind=ColumnKind.TIME),
        Column(name="image", type="", kind=ColumnKind.BINARY),
    )
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("title=12", "12"),
        ("title=a=b", "a=b"),
        ("title=", ""),
        ("title:=null", None),
        ('title:="a"', "a"),
        ('title:="[\\"a\\"]"', Json('"[\\"a\\"]"')),
        ("day=2024", "2024"),
        ("at=17", "17"),
        ("time=12", "12"),
        ("image=1234", "1234"),
        ("fee=1.5", Decimal("1.5")),
        ("fee= 10", Decimal(10)),
        ("fee=NaN", "NaN"),
        ("fee=null", None),
        ('words=["1"]', Json('["1"]')),
        ("words=a", "a"),
        ("price=12", 12),
        ("price=1.10", Decimal("1.10")),
        ("price=-0", Decimal("-0")),
        ("price=1e3", Json("1e3")),
        ("price:=1e3", Json("1e3")),
        ("title=1e3", "1e3"),
        ("price:=true", True),
        ('price:="12"', Json('"12"')),
        ('price="12"', "12"),
        ("counts=[1, 2]", Json("[1, 2]")),
        ("unmapped:= -0", Decimal("-0")),
        ("price=123456789012345678901234567890", 123456789012345678901234567890),
        ("price=null", None),
        ("price=dear", "dear"),
        ('tags=["a", 1.10]', Json('["a", 1.10]')),
        ("unmapped=true", "true"),
        ('title=["a"]', '["a"]'),
        ('title={"a":1}', '{"a":1}'),
        ("codes=[1]", "[1]"),
        ('title:=["a"]', Json('["a"]')),
        ("title=[draft]", "[draft]"),
        ("day=[1]", "[1]"),
        ("price=[1]", "[1]"),
        ('tags={"a":1}', Json('{"a":1}')),
        ("unmapped=Ada", "Ada"),
    ],
)
def test_a_value_is_read_by_the_kind_of_its_column(pair, value):
    parsed = parse_values([pair], COLUMNS)[pair.partition("=")[0].rstrip(":")]
    assert repr(parsed) == repr(value)
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    "pairs", [["title"], ["=1"], ["price:=12,5"], ["price=1", "price=2"], [f"tags:={'[' * 5_000}"]]
)
def test_an_assignment_that_cannot_be_meant_is_refused(pairs):
    with pytest.raises(ConfigurationError) as caught:
        parse_values(pairs, COLUMNS)
    assert caught.value.hint


def test_guards_are_taken_out_wherever_they_stand():
    known = {"--set"}.__contains__
    words = ["shop", "--if-seq-no", "41", "books", "--set", "a=1", "17", "--if-primary-term=1", "--", "--if-x", "y"]
    rest, guards = take_pairs(words, is_known=known)
    assert rest == ["shop", "books", "--set", "a=1", "17", "--", "--if-x", "y"]
    assert guards == {"if_seq_no": "41", "if_primary_term": "1"}


def test_a_dry_run_shows_the_exact_request_and_sends_nothing(shop):
    done = shop("update", "shop", "books", "1", "--set", "title=x", "--if-seq-no", "40", "--dry-run")
    assert done.out == 'POST /books/_update/1?refresh&if_seq_no=40\n{"title": "x"}\n'
    assert done.err == "  not sent (--dry-run)\n"


def test_an_applied_change_is_told_with_its_row(shop):
    assert shop("insert", "shop", "books", "--id", "9", "--set", "price=1").out == "9  applied\n"
    assert shop("delete", "shop", "books", "9").out == "9  applied\n"


@pytest.mark.parametrize(
    ("typed", "given", "spelled"),
    [
        ('["eu", 17]', "['eu', 17]", ["eu", 17]),
        ('["a", {"base64": "/w=="}]', "['a', b'\\xff']", ["a", {"base64": "/w=="}]),
        ('{"base64":"AA=="}', "b'\\x00'", {"base64": "AA=="}),
        ('"[17]"', "[17]", "[17]"),
        ("[17", "[17", "[17"),
    ],
)
def test_composite_and_binary_keys_are_read_and_shown_in_one_spelling(shop, typed, given, spelled):
    """In the driver they are lists and bytes; a text that looks like one of them is a JSON string."""
    for words in (("insert", "--id", typed, "--set", "price=1"), ("delete", typed)):
        assert f"/books/_doc/{given}" in unquote(shop(words[0], "shop", "books", *words[1:], "--dry-run").out)
    words = ("update", "shop", "books", typed, "--set", "id=2")
    assert shop(*words, "--json", code=4).json["outcomes"][0]["id"] == spelled
    shown = shop(*words, code=4).out.split("  ")[0]
    assert shown == (typed if isinstance(spelled, str) else json.dumps(spelled))
    assert "there is no row" in shop("cell", "shop", "books", typed, "price", code=1).err


def test_a_conflict_ends_with_4_and_says_how_to_look(shop):
    done = shop("update", "shop", "books", "1", "--set", "price=1", "--if-seq-no", "40", code=4)
    assert done.out == "1  conflict  changed since it was read (seq_no 40 → 41)\n"
    assert done.err == "    try: dragoman cell shop books 1 price\n"


def test_a_change_that_is_not_sent_is_an_outcome_too(shop):
    done = shop("update", "shop", "books", "1", "--set", "id=2", "--json", code=4)
    assert done.json["requests"] == []
    assert done.json["outcomes"][0]["status"] == "skipped"


def test_an_update_without_values_and_a_guard_without_one_are_usage_errors(shop):
    assert "error[usage]: nothing to change" in shop("update", "shop", "books", "1", code=2).err
    assert "error[usage]: --if-seq-no needs a value" in shop("delete", "shop", "books", "1", "--if-seq-no", code=2).err


def test_dropping_is_refused_where_nobody_can_confirm_it(shop):
    done = shop("drop", "shop", "books", code=1)
    assert "error[refused]" in done.err
    assert "  try: dragoman drop shop books --yes" in done.err
    assert "  try: dragoman drop shop 'a $(id)' --yes" in shop("drop", "shop", "a $(id)", code=1).err
    assert shop("drop", "shop", "books", "--yes").out == "dropped books\n"
    assert shop("drop", "shop", "books", "--dry-run").out == "DELETE /books\n"


def test_a_statement_is_shown_above_the_exact_request_and_never_instead_of_it(shop):
    done = shop("delete", "shop", "books", "spoken", "--dry-run")
    assert done.out == "# DELETE FROM spoken\nDELETE /books/_doc/spoken\n"
    [request] = json.loads(shop("delete", "shop", "books", "spoken", "--dry-run", "--json").out)["requests"]
    assert request == {
        "method": "DELETE",
        "path": "/books/_doc/spoken",
        "body": None,
        "content_type": "application/json",
        "statement": "DELETE FROM spoken",
    }
    [request] = json.loads(shop("delete", "shop", "books", "1", "--dry-run", "--json").out)["requests"]
    assert "statement" not in request


def test_a_dry_run_of_what_would_not_be_sent_ends_as_the_real_one(shop):
    """Its exit code says that something was refused, with and without JSON."""
    words = ("update", "shop", "books", "3", "--set", "id=9", "--dry-run")
    done, document = shop(*words, code=4), shop(*words, "--json", code=4).json
    assert document["requests"] == []
    [refusal] = document["refusals"]
    assert refusal["reason"] in done.out
