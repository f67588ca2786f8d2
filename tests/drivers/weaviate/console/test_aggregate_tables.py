"""The answers of GraphQL Aggregate as tables, when a request asks for them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import OnFake, OnServer, Rig
from drivers.weaviate.views import view

from dragoman_api import ConsoleText
from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.grid import MAX_ROWS
from dragoman_weaviate import console_answers as answers
from dragoman_weaviate.console_text import parse
from dragoman_weaviate.protocol import Features

if TYPE_CHECKING:
    from dragoman_api import Answer

AGGREGATE = "{ Aggregate { Book { meta { count } } } }"


def answered(body: Any, *more: Any, text: str = AGGREGATE, tabular: bool = True) -> Answer:
    [request] = parse(text)
    asked = msgspec.structs.replace(request, tabular=tabular)
    return Answers(reply(body), *more).run(answers.execute(asked, Features()))


def aggregated(*rows: Any) -> dict[str, Any]:
    return {"data": {"Aggregate": {"Book": [*rows]}}}


def read(answer: Answer | None) -> list[tuple[str, list[dict[str, Any]]]]:
    found = []
    while answer is not None:
        assert answer.page is not None
        found.append((answer.title, [row.to_dict(missing=False) for row in answer.page.rows]))
        answer = answer.next
    return found


@pytest.mark.parametrize("more", [0, 1])
def test_as_many_rows_and_columns_are_shown_as_a_page_may_have(more: int) -> None:
    rows = answered(aggregated(*[{"meta": {"count": at}} for at in range(MAX_ROWS + more)])).page
    assert rows is not None
    assert (len(rows.cells), [note.code for note in rows.notes]) == (MAX_ROWS, ["rows-cut"] * more)
    wide = answered(aggregated({f"p{at}": {"n": at} for at in range(MAX_COLUMNS + more)})).page
    assert wide is not None
    assert (len(wide.columns), [note.code for note in wide.notes]) == (MAX_COLUMNS, ["columns-cut"] * more)


def test_a_table_has_the_columns_of_all_rows_at_any_depth() -> None:
    body = aggregated({"a": {"b": {"c": 1}}}, {"a": {"b": {"d": 2}}, "e": 0}, {})
    assert read(answered(body)) == [("", [{"a.b.c": 1}, {"a.b.d": 2, "e": 0}, {}])]
    two = {"data": {"Aggregate": {"Book": [], "Film": None, "Song": [{"n": 1}]}}}
    assert read(answered(two)) == [("Aggregate Book", []), ("Aggregate Song", [{"n": 1}])]


def test_groups_are_rows_with_a_column_for_each_figure() -> None:
    """W32: if tables are asked for; else the answer stays JSON."""
    groups = [
        {
            "groupedBy": {"path": ["genre"], "value": "tea"},
            "meta": {"count": 3},
            "price": {"mean": 1.5, "type": "number"},
        },
        {"groupedBy": {"path": ["genre"], "value": "sea"}, "meta": {"count": 1}, "price": {"mean": None}},
    ]
    body = aggregated(*groups)
    assert answered(body, tabular=False).kind == "json"
    found = answered(body)
    assert found.kind == "table"
    assert found.page is not None
    assert [column.name for column in found.page.columns if column.role == "key"] == ["groupedBy.value"]
    assert json.loads(found.text) == body, "expectations read the whole answer"
    assert read(found) == [
        (
            "",
            [
                {
                    "groupedBy.path": '["genre"]',
                    "groupedBy.value": "tea",
                    "meta.count": 3,
                    "price.mean": 1.5,
                    "price.type": "number",
                },
                {"groupedBy.path": '["genre"]', "groupedBy.value": "sea", "meta.count": 1, "price.mean": None},
            ],
        )
    ]


def test_frequent_texts_are_json_and_numbers_keep_their_digits() -> None:
    row_ = '{"t":{"topOccurrences":[{"value":"a","occurs":2}]},"n":{"sum":1.10,"big":1E400}}'
    [(_, [row])] = read(answered(f'{{"data":{{"Aggregate":{{"Book":[{row_}]}}}}}}'))
    assert row["t.topOccurrences"] == '[{"value":"a","occurs":2}]'
    assert (str(row["n.sum"]), row["n.big"]) == ("1.10", Decimal("1E400"))


def test_several_collections_and_rows_beside_them_are_a_table_each() -> None:
    both = {"data": {"Get": {"Book": [{"title": "x"}]}, "Aggregate": {"Book": [{"meta": {"count": 1}}], "Odd": None}}}
    found = answered(both, reply(view().structure))
    assert [title for title, _ in read(found)] == ["Book", "Aggregate Book"]
    assert json.loads(found.text) == both
    assert answered(both, tabular=False).kind == "json"


def test_an_error_beside_the_figures_fails_the_request() -> None:
    assert answered(aggregated({"meta": {"count": 1}}) | {"errors": [{"message": "no"}]}).failed == "no"


@pytest.mark.parametrize("found", [5, [], {"Book": 5}, {"Book": [5]}])
def test_what_makes_no_table_stays_json(found: Any) -> None:
    assert answered({"data": {"Aggregate": found}}).kind == "json"
    assert answered({"data": {"a": {"Book": []}}}).kind == "json"
    assert answered({"data": {"Aggregate": {"Book": [{}]}}}, text="GET /v1/schema").kind == "json"


def test_rows_and_tables_are_bounded() -> None:
    page = answered(aggregated(*({"meta": {"count": at}} for at in range(MAX_ROWS + 1)))).page
    assert page is not None
    assert (len(page.cells), [note.code for note in page.notes]) == (MAX_ROWS, ["rows-cut"])
    many = {"data": {"Aggregate": {f"C{at}": [] for at in range(answers.MAX_TABLES + 1)}}}
    found = answered(many)
    assert (len(read(found)), [note.code for note in found.notes]) == (answers.MAX_TABLES, ["answers-cut"])


class Rules:
    async def test_the_groups_of_a_server_are_a_table(self, wv: Rig) -> None:
        name = await wv.collection({"t": "text", "i": "int"}, [{"t": "tea"}, {"t": "tea"}, {"t": "sea"}])
        query = f'{{ Aggregate {{ {name}(groupBy: ["t"]) {{ groupedBy {{ path value }} meta {{ count }} }} }} }}'
        [request] = await wv.driver.parse_console(ConsoleText(query))
        found = await wv.driver.execute_console(msgspec.structs.replace(request, tabular=True))
        [(_, rows)] = read(found)
        assert [(row["groupedBy.value"], row["meta.count"]) for row in rows] == [("tea", 2), ("sea", 1)]


class TestOnFake(Rules, OnFake):
    pass


class TestOnServer(Rules, OnServer):
    pass
