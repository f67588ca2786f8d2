"""The workbench has no power of its own: whatever its page asks for, a guard can veto before anything is sent."""

from __future__ import annotations

import json

import pytest

from browsing import signed_in
from dragoman_api.errors import Refused
from dragoman_api.hookspecs import hookimpl

ON = {"connection": "shop"}
BOOKS = {**ON, "rows": {"object": "books"}}
PRICE = {"type": "filter", "column": "price", "op": ">", "value": "1"}
KEY = "KEY"
VETOED = {
    "objects": ("list_objects", ON),
    "describe": ("describe_object", {**ON, "object": "books"}),
    "explain": ("compile_filter", {**ON, "rows": {"object": "books", "filters": [PRICE]}}),
    "page": ("fetch_page", BOOKS),
    "count": ("count_rows", BOOKS),
    "cell": ("fetch_cell", {**ON, "key": KEY, "column": "title"}),
    "summarize": ("summarize_column", {**BOOKS, "column": "price"}),
    "changes/plan": ("plan_change", {**ON, "changes": [{"kind": "delete", "key": KEY}]}),
    "console/execute": ("execute_console", {**ON, "text": "GET /books/_count"}),
    "plugins/remove": ("remove_plugin", {"id": "elasticsearch"}),
}


class Guard:
    """Vetoes one hook."""

    def __init__(self) -> None:
        self.vetoes = ""

    @hookimpl
    async def before_call(self, call) -> None:
        if call.hook == self.vetoes:
            raise Refused("not now")


@pytest.fixture
async def guarded(shop_home):
    """Return a tab of a workbench with a guard, and the guard."""
    guard = Guard()
    async with signed_in(shop_home, use=[guard]) as tab:
        await tab("open", connection="shop")
        yield tab, guard


async def test_a_guard_vetoes_what_the_page_asks_for(guarded):
    tab, guard = guarded
    key = (await tab("page", **BOOKS))["rows"][0]["key"]
    for route, (hook, words) in VETOED.items():
        guard.vetoes = hook
        _, answer = await tab.send(route, json.loads(json.dumps(words).replace('"KEY"', json.dumps(key))))
        failure = answer["error"]
        assert (failure["code"], "Guard: not now" in failure["message"]) == ("refused", True), (route, failure)
