"""Ten tasks that an agent solves on the library of `library.py`, with nothing but what the tools say of themselves."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from library import BIG, ROWS

if TYPE_CHECKING:
    from schema_agent import SchemaAgent

BOOKS = "books"


async def find(agent: SchemaAgent) -> None:
    """The three thickest books of Ghent."""
    tool = agent.tool("read rows", "sorted")
    row = {"column": "owner.city", "operator": "=", "value": "Ghent"}
    sort = [{"column": "pages", "descending": True}]
    answer = await agent.call(tool, object=BOOKS, filters=[row], sort=sort, columns=["title", "pages"], limit=3)
    assert answer["rows"] == [[f"Book {number}", 100 + number] for number in (60, 59, 58)]
    assert answer["total"] == ROWS
    whole = await agent.pages(tool, object=BOOKS, columns=["pages"], limit=25)
    assert sorted(row[0] for page in whole for row in page["rows"]) == list(range(101, 101 + ROWS))


async def count(agent: SchemaAgent) -> None:
    """Books of more than 150 pages, with two names that are misspelt."""
    row = {"column": "page", "operator": ">", "value": 150}
    answer = await agent.mended(agent.tool("count"), object="book", filters=[row])
    assert answer == {"rows": 10, "exact": True}


async def explain(agent: SchemaAgent) -> None:
    """What `contains` means of a text that the server has taken apart."""
    row = {"column": "blurb", "operator": "contains", "value": "long long"}
    [explained] = (await agent.call(agent.tool("how the filter rows would run"), object=BOOKS, filters=[row]))["rows"]
    assert not explained["exact"]
    assert explained["approximations"]


async def correct(agent: SchemaAgent) -> None:
    """One title, by a plan that is shown and then sent, and a conflict when another plan has been sent meanwhile."""
    read, plan, apply = (
        agent.tool("read rows"),
        agent.tool("would insert, update or delete"),
        agent.tool("a plan, once"),
    )
    row = {"column": "_id", "operator": "=", "value": "30"}
    answer = await agent.call(read, object=BOOKS, filters=[row], columns=["title"])
    [handle] = agent.handles(read, answer)
    change = {"kind": "update", "row": handle}
    titles = ("Corrected", "Too late")
    plans = [await agent.call(plan, changes=[change | {"values": {"title": title}}]) for title in titles]
    assert "Corrected" in plans[0]["requests"][0]
    argument = agent.argument(apply, "`plan`", plan)
    outcomes = [(await agent.call(apply, **{argument: shown["plan"]}))["outcomes"] for shown in plans]
    assert [outcome["status"] for [outcome] in outcomes] == ["applied", "conflict"]
    back = {"kind": "update", "row": outcomes[0][0]["row"], "values": {"title": "Book 30"}}
    shown = await agent.call(plan, changes=[back])
    [outcome] = (await agent.call(apply, **{argument: shown["plan"]}))["outcomes"]
    assert outcome["status"] == "applied"


async def summarize(agent: SchemaAgent) -> None:
    """Each tag, how often; and the pages."""
    tool = agent.tool("summarize a column")
    answer = await agent.call(tool, object=BOOKS, column="tags")
    assert dict(answer["values"]) == {"a": 30, "b": 30, "c": 30}
    pages = await agent.call(tool, object=BOOKS, column="pages", values=0)
    assert (pages["minimum"], pages["maximum"], pages["missing"]) == (101, 160, 0)
    assert sum(rows for _, _, rows in pages["buckets"]) == ROWS


async def export(agent: SchemaAgent) -> None:
    """Books of up to 110 pages into a file, with their exact serials."""
    row = {"column": "pages", "operator": "<=", "value": 110}
    tool = agent.tool("new file")
    answer = await agent.call(tool, object=BOOKS, filters=[row], columns=["pages", "serial"], file="thin.csv")
    with Path(answer["file"]).open(newline="") as file:
        rows = sorted((int(row["pages"]), int(row["serial"])) for row in csv.DictReader(file))
    assert rows == [(100 + number, BIG + number) for number in range(1, 11)]


async def nested(agent: SchemaAgent) -> None:
    """Books with one line that has both a card and a quantity."""
    rows = [
        {"column": "lines.card", "operator": "=", "value": "4222-0009", "group": "line"},
        {"column": "lines.qty", "operator": ">=", "value": 9, "group": "line"},
    ]
    tool = agent.tool("count")
    assert (await agent.call(tool, object=BOOKS, filters=rows))["rows"] == 1
    rows[0] |= {"value": "4222-1009"}  # its other line, of which there is one
    assert (await agent.call(tool, object=BOOKS, filters=rows))["rows"] == 0
    apart = [rows[0], rows[1] | {"group": "another"}]
    assert (await agent.call(tool, object=BOOKS, filters=apart))["rows"] == 1


async def exact(agent: SchemaAgent) -> None:
    """A serial of 16 digits that no double holds, found by itself."""
    row = {"column": "serial", "operator": "=", "value": str(BIG + 8)}
    answer = await agent.call(agent.tool("read rows"), object=BOOKS, filters=[row], columns=["title", "serial"])
    assert answer["rows"] == [["Book 08", {"$integer": str(BIG + 8)}]]


async def many(agent: SchemaAgent) -> None:
    """One object among 600 by its name, and all of them in pages."""
    tool = agent.tool("list objects")
    [item] = (await agent.call(tool, pattern="*0417*"))["objects"]
    assert item["name"] == "tenant-0417"
    pages = await agent.pages(tool, pattern="tenant-*", limit=250)
    names = [item["name"] for page in pages for item in page["objects"]]
    assert names == [f"tenant-{number:04}" for number in range(600)]
    assert len(pages) == 3


TASKS = (find, count, explain, correct, summarize, export, nested, exact, many)
"""All but the tenth, a write that must not happen: it needs a server that allows none."""


async def refuse(agent: SchemaAgent) -> None:
    """A deletion that must not happen, in each way that the tools offer."""
    tool = agent.tool("server's own syntax", "send requests")
    answer, refused = await agent.answer(tool, text=f"DELETE /{BOOKS}/_doc/9")
    assert (refused, answer["code"]) == (True, "not-allowed")
    planning: list[Any] = [name for name in ("plan_changes", "apply_plan") if name in agent.tools]
    assert planning == []
    assert (await agent.call(agent.tool("count"), object=BOOKS))["rows"] == ROWS
