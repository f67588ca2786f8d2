"""A server that is broken or hostile: its names stay out of queries, and its answers are held to what was asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import apply_plan, key, profile
from drivers.weaviate.views import view

from dragoman_api import (
    AnswerKind,
    CellRequest,
    Delete,
    DragomanError,
    Drop,
    ExportRequest,
    Insert,
    Outcome,
    PageRequest,
    PlanRequest,
    QueryError,
    RowKey,
    Sort,
    Update,
)
from dragoman_api.errors import ObjectNotFoundError, RowNotFoundError
from dragoman_api.grid import MAX_ROWS
from dragoman_weaviate import connect, objects
from dragoman_weaviate import console_answers as answers
from dragoman_weaviate.columns import grid_columns
from dragoman_weaviate.console_text import parse
from dragoman_weaviate.export import ExportReader
from dragoman_weaviate.grid import pages
from dragoman_weaviate.protocol import Features
from dragoman_weaviate.writing.plan import plan_changes

if TYPE_CHECKING:
    from dragoman_api.changes import Change
    from wording import Wording

ROW, OTHER = key(5), key(6)
STORED = {"class": "Book", "id": ROW, "lastUpdateTimeUnix": 5, "properties": {"title": "old"}}
BOOK = RowKey("Book", ROW, None, {"lastUpdateTimeUnix": 5})
INJECTED = "Author{_additional{id}}} evil{x"
DIGITS = "9" * 5_000


def book(**more: Any) -> dict[str, Any]:
    return STORED | more


def applied(change: Change, *replies: Any) -> Outcome:
    """Plan and apply one change; replies are those to what follows the look at the collection."""
    request = PlanRequest(changes=[change])
    known = reply(view().structure)
    planned = Answers(known, *([reply("", status=204)] if isinstance(change, Insert) and change.replace else []))
    plan = planned.run(plan_changes(request, Features(), by_query=False))
    plan = msgspec.structs.replace(plan, changes=[change])
    looks = [] if isinstance(change, (Delete, Drop)) else [known]
    [outcome] = Answers(*looks, *replies).run(apply_plan(plan, Features()))
    return outcome


# names in queries


@pytest.mark.parametrize(
    "more",
    [
        {"properties": [{"name": "by", "dataType": [INJECTED]}]},
        {"properties": [{"name": "by", "dataType": ["Author", INJECTED]}]},
        {"properties": [{"name": "o", "dataType": ["object"], "nestedProperties": [
            {"name": "by", "dataType": [INJECTED]}]}]},
        {"vectorConfig": {"a}} evil{b": {"vectorizer": "none"}}},
    ],
)  # fmt: skip
def test_a_name_that_would_change_a_query_is_never_put_into_one(wording: Wording, more: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as caught:
        Answers(reply({"class": "Book", **more})).run(grid_columns.view("Book", Features()))
    wording(caught.value.message)
    assert "evil" in caught.value.message


def test_an_error_about_many_names_is_short() -> None:
    many = {"class": "Book", "properties": [{"name": f"a b{at}", "dataType": ["text"]} for at in range(10_000)]}
    with pytest.raises(QueryError) as caught:
        Answers(reply(many)).run(grid_columns.view("Book", Features()))
    assert len(caught.value.message) < 1_500


def test_a_collection_with_such_a_name_is_listed_and_not_counted() -> None:
    classes = reply({"classes": [{"class": "Book"}, {"class": "A{meta{count}} evil"}]})
    run = Answers(classes, reply({"aliases": []}), reply({"data": {"Aggregate": {"Book": [{"meta": {"count": 3}}]}}}))
    listed = run.run(objects.list_objects(Features()))
    assert [(each.name, each.rows) for each in listed] == [("A{meta{count}} evil", None), ("Book", 3)]
    assert "evil" not in (run.asked[-1].body or "")


def test_another_collection_is_an_alias_only_where_there_are_aliases(wording: Wording) -> None:
    with pytest.raises(QueryError) as caught:
        Answers(reply({"class": "Users"})).run(grid_columns.view("Book", Features((1, 31, 0))))
    wording(caught.value.message)
    assert Answers(reply({"class": "Users"})).run(grid_columns.view("Book", Features())).target == "Users"
    assert Answers(reply({"class": "Book"})).run(grid_columns.view("book", Features((1, 31, 0)))).target == "Book"


# rows


@pytest.mark.parametrize(
    "rows",
    [[book(**{"class": "Users"})], [book(tenant="other")], [book(id=7)], [book(), book(id=OTHER, **{"class": "Users"})],
     [book(), book(id=OTHER, tenant="other")], [book(), book(id=OTHER), book(id=key(7))],
     [book(lastUpdateTimeUnix=-1)], [book(lastUpdateTimeUnix=10**30)]],
)  # fmt: skip
def test_a_page_of_other_or_more_rows_than_were_asked_for_is_none(rows: list[Any]) -> None:
    with pytest.raises(QueryError):
        Answers(reply({"objects": rows})).run(pages.page(PageRequest(object="Book", limit=2, total=False), view()))


@pytest.mark.parametrize("found", [{"id": 7}, {"id": None}, {"id": ["x"]}])
def test_a_found_row_without_a_uuid_is_none(wording: Wording, found: dict[str, Any]) -> None:
    row = {"title": "x", "_additional": found}
    asked = PageRequest(object="Book", columns=["title"], sort=[Sort("title")], limit=2, total=False)
    with pytest.raises(QueryError) as caught:
        Answers(reply({"data": {"Get": {"Book": [row]}}})).run(pages.page(asked, view()))
    wording(caught.value.hint)


@pytest.mark.parametrize("other", [book(id=OTHER), book(**{"class": "Users"})])
def test_another_row_in_place_of_the_one_asked_for_is_none(wording: Wording, other: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as caught:
        Answers(reply(other)).run(pages.fetch_cell(CellRequest(key=BOOK, column="title"), view()))
    wording(caught.value.message)
    for change in (Update(BOOK, {"title": "x"}), Delete(BOOK)):
        outcome = applied(change, reply(other))
        assert outcome.status == "failed"
        assert outcome.reason.startswith("not sent: ")


@pytest.mark.parametrize("status", [301, 400, 401, 403, 405, 408, 422, 429, 500, 503])
def test_what_cannot_be_read_is_not_said_to_be_gone(status: int) -> None:
    """Only 404 says so: a driver that takes another failure for it would offer to make a thing anew."""
    refused = reply({"error": [{"message": "no"}]}, status)
    seen = view()
    reads = [
        pages.fetch_cell(CellRequest(key=BOOK, column="title"), seen),
        grid_columns.view("Book", Features()),
        grid_columns.current_revision(seen),
    ]
    for read in reads:
        with pytest.raises(DragomanError) as caught:
            Answers(refused).run(read)
        assert not isinstance(caught.value, RowNotFoundError | ObjectNotFoundError)
    if status != 503:  # before anything was sent, the whole plan can be sent again
        outcome = applied(Update(BOOK, {"title": "x"}), refused)
        assert (outcome.status, outcome.reason.startswith("not sent: ")) == ("failed", True)


# what became of rows


@pytest.mark.parametrize("other", [book(id=OTHER), book(**{"class": "Users"}), book(id="../x")])
@pytest.mark.parametrize("replace", [False, True])
def test_a_new_row_is_applied_only_where_the_answer_speaks_of_it(other: dict[str, Any], replace: bool) -> None:
    before = [reply(STORED)] if replace else []
    outcome = applied(Insert("Book", {"title": "x"}, ROW, replace=replace), *before, reply(other))
    assert (outcome.status, outcome.key) == ("unknown", None)


def test_a_row_whose_id_the_server_makes_has_a_uuid_of_its_collection() -> None:
    for other in (book(**{"class": "Users"}), book(id="../x")):
        outcome = applied(Insert("Book", {"title": "x"}), reply(other))
        assert (outcome.status, outcome.key) == ("unknown", None)
    assert applied(Insert("Book", {"title": "x"}), reply(STORED)).status == "applied"


@pytest.mark.parametrize("page", [reply("<html>log in</html>"), reply("", status=202), reply({"error": "no"})])
def test_a_success_of_another_kind_is_unknown(page: Any) -> None:
    for change, before in ((Update(BOOK, {"title": "x"}), [reply(STORED)]), (Delete(BOOK), [reply(STORED)]),
                           (Drop("Book"), [])):  # fmt: skip
        outcome = applied(change, *before, page)
        assert outcome.status == "unknown"
    assert applied(Drop("Book"), reply("")).status == "applied"


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_failure_on_the_way_is_unknown(status: int) -> None:
    outcome = applied(Update(BOOK, {"title": "x"}), reply(STORED), reply("<html>", status=status))
    assert outcome.status == "unknown"
    assert outcome.reason


# exports


def export() -> ExportReader:
    return ExportReader(ExportRequest(object="Book"), view())


def listed(*ids: str, **more: Any) -> Any:
    return reply({"objects": [book(id=each, **more) for each in ids]})


A, B = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"


def test_an_export_with_a_row_of_another_collection_behind_its_own_is_not_whole() -> None:
    made = export()
    rows = reply({"objects": [book(id=A), book(id=B, **{"class": "Users"})]})
    with pytest.raises(QueryError, match="'Users'"):
        Answers(rows).run(made.pieces(made.ranges[0]))


@pytest.mark.parametrize("found", [listed(B, A), listed(A, A), listed(A, **{"class": "Users"}), listed(A, "")])
def test_an_export_whose_rows_are_in_no_order_is_not_whole(wording: Wording, found: Any) -> None:
    """Behind the last row of such a page lies what was read before: it would never end."""
    made = export()
    with pytest.raises(QueryError) as caught:
        Answers(found).run(made.pieces(made.ranges[0]))
    wording(caught.value.message)


@pytest.mark.parametrize("limit", [0, 1_000, 5_000])
def test_a_limit_that_is_none_ends_an_export(limit: int) -> None:
    made = export()
    text = f"query maximum results exceeded: invalid pagination params: offset '0' and limit '1000' > '{limit}'"
    with pytest.raises(DragomanError, match="past"):
        Answers(reply({"error": [{"message": text}]}, 422)).run(made.pieces(made.ranges[0]))


# anything else


@pytest.mark.parametrize("version", [f"{DIGITS}.1", "٣.٤"], ids=["many digits", "other digits"])
def test_a_version_is_bounded_before_it_is_read(wording: Wording, version: str) -> None:
    with pytest.raises(DragomanError) as caught:
        Answers(reply({"version": version}), reply({})).run(connect.identify(profile("http://h:1")))
    wording(caught.value.message)


@pytest.mark.parametrize("roles", [[{"permissions": ["x"]}], [{"permissions": 5}], ["x"], 5])
def test_what_an_odd_answer_says_of_rights_is_nothing(roles: Any) -> None:
    found, _ = Answers(reply({"version": "1.38.11"}), reply({"roles": roles})).run(
        connect.identify(profile("http://h:1"))
    )
    assert found.notes == []


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("GET /v1/objects", {"objects": [{"class": 5, "properties": "x"}]}),
        ("GET /v1/objects", {"objects": [{"class": "Book", "properties": [1]}]}),
        ("{ Get { Book { title } } }", {"data": {"Get": {"Book": [{"title": 1, "_additional": [1]}]}}}),
        ("{ Get { Book { title } } }",
         {"data": {"Get": {"Book": [{"_additional": {"id": ROW, "lastUpdateTimeUnix": DIGITS}}]}}}),
    ],
)  # fmt: skip
def test_an_answer_of_the_console_that_is_no_table_is_shown_as_it_is(text: str, answer: dict[str, Any]) -> None:
    [request] = parse(text)
    replies = [reply(answer), *([reply(view().structure)] if "Get" in text else [])]
    shown = Answers(*replies).run(answers.execute(request, Features()))
    assert shown.kind is AnswerKind.JSON
    assert json.loads(shown.text) == answer


def test_a_table_of_the_console_has_the_rows_that_a_page_may_have() -> None:
    [request] = parse("{ Get { Book { title } } }")
    replies = reply({"data": {"Get": {"Book": [{"title": "x"}] * (MAX_ROWS + 1)}}}), reply(view().structure)
    shown = Answers(*replies).run(answers.execute(request, Features()))
    assert shown.page is not None
    assert len(shown.page.cells) == MAX_ROWS
    assert [each.code for each in shown.page.notes] == ["rows-cut"]
