"""Commands that write: previews, guards, outcomes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dragoman.cli.changes import parse_values
from dragoman.cli.option_values import take_pairs
from dragoman_api.cells import Json
from dragoman_api.columns import ColumnKind
from dragoman_api.errors import ConfigurationError

KINDS = {"title": ColumnKind.TEXT, "price": ColumnKind.NUMBER, "tags": ColumnKind.JSON, "day": ColumnKind.DATE}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("title=12", "12"),
        ("title=a=b", "a=b"),
        ("title=", ""),
        ("title:=null", None),
        ("day=2024", "2024"),
        ("price=12", 12),
        ("price=1.10", Decimal("1.10")),
        ("price=-0", Decimal("-0")),
        ("unmapped:= -0", Decimal("-0")),
        ("price=123456789012345678901234567890", 123456789012345678901234567890),
        ("price=null", None),
        ("price=dear", "dear"),
        ('tags=["a", 1.10]', Json('["a", 1.10]')),
        ("unmapped=true", True),
        ("unmapped=Ada", "Ada"),
    ],
)
def test_a_value_is_read_by_the_kind_of_its_column(pair, value):
    parsed = parse_values([pair], KINDS)[pair.partition("=")[0].rstrip(":")]
    assert repr(parsed) == repr(value)
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    "pairs", [["title"], ["=1"], ["price:=12,5"], ["price=1", "price=2"], [f"tags:={'[' * 5_000}"]]
)
def test_an_assignment_that_cannot_be_meant_is_refused(pairs):
    with pytest.raises(ConfigurationError) as caught:
        parse_values(pairs, KINDS)
    assert caught.value.hint


def test_guards_are_taken_out_wherever_they_stand():
    known = {"--set"}.__contains__
    words = ["shop", "--if-seq-no", "41", "books", "--set", "a=1", "17", "--if-primary-term=1", "--", "--if-x", "y"]
    rest, guards = take_pairs(words, known=known)
    assert rest == ["shop", "books", "--set", "a=1", "17", "--", "--if-x", "y"]
    assert guards == {"if_seq_no": "41", "if_primary_term": "1"}


def test_a_dry_run_shows_the_exact_request_and_sends_nothing(shop):
    done = shop("update", "shop", "books", "1", "--set", "title=x", "--if-seq-no", "40", "--dry-run")
    assert done.out == 'POST /books/_update/1?refresh&if_seq_no=40\n{"title": "x"}\n'
    assert done.err == "  not sent (--dry-run)\n"


def test_an_applied_change_is_told_with_its_row(shop):
    assert shop("insert", "shop", "books", "--id", "9", "--set", "price=1").out == "9  applied\n"
    assert shop("delete", "shop", "books", "9").out == "9  applied\n"


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
    assert shop("drop", "shop", "books", "--yes").out == "dropped books\n"
    assert shop("drop", "shop", "books", "--dry-run").out == "DELETE /books\n"


def test_a_dry_run_of_what_would_not_be_sent_ends_as_the_real_one(shop):
    """Its exit code says that something was refused, with and without JSON."""
    words = ("update", "shop", "books", "3", "--set", "id=9", "--dry-run")
    done, document = shop(*words, code=4), shop(*words, "--json", code=4).json
    assert document["requests"] == []
    [refusal] = document["refusals"]
    assert refusal["reason"] in done.out
