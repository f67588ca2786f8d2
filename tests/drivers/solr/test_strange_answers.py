"""Answers that are none of Solr's, and what the driver sends, without a server: each is an error of the API."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from drivers.solr.rig import profile

from dragoman_api import (
    AuthenticationError,
    CountRequest,
    DragomanError,
    ExportRequest,
    Filter,
    FilterNotSupportedError,
    FilterRequest,
    Insert,
    OutcomeStatus,
    PageRequest,
    PlanRequest,
    QueryError,
    RowKey,
    Sort,
    Update,
)
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.errors import ServerNotSupportedError
from dragoman_api.testing.target import opened
from dragoman_solr.driver import Driver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

DOCUMENT = {"id": "a", "n_i": 1, "_version_": 5}
FOUND = {"responseHeader": {}, "response": {"numFound": 1, "numFoundExact": True, "docs": [DOCUMENT]},
         "nextCursorMark": "x"}  # fmt: skip
POINTS = {"indexed": True, "stored": True, "docValues": True, "useDocValuesAsStored": True}
USUAL: dict[str, Any] = {
    "system": {"mode": "std", "lucene": {"solr-spec-version": "9.10.1"}},
    "cores": {"status": {"books": {"index": {"numDocs": 1}}}},
    "schema": {"schema": {"uniqueKey": "id", "copyFields": [],
                          "fieldTypes": [{"name": "string", "class": "solr.StrField"},
                                         {"name": "pint", "class": "solr.IntPointField"}]}},
    "fields": {"fields": [{"name": "id", "type": "string", **POINTS}, {"name": "_version_", "type": "pint", **POINTS}]},
    "dynamicfields": {"dynamicFields": [{"name": "*_i", "type": "pint", **POINTS},
                                        {"name": "*", "type": "string", **POINTS}]},
    "luke": {"fields": {"id": {}, "n_i": {"dynamicBase": "*_i"}}},
    "select": FOUND,
    "get": {"doc": DOCUMENT},
    "update": {"responseHeader": {"status": 0}, "adds": ["a", 6]},
}  # fmt: skip


@asynccontextmanager
async def connected(
    changed: Callable[[web.Request], Awaitable[web.Response | None] | web.Response | None] = lambda request: None,
    **options: Any,
) -> AsyncIterator[Driver]:
    """Connect a driver to a server that answers in Solr's way, but for some requests."""

    async def answer(request: web.Request) -> web.Response:
        response = changed(request)
        if isinstance(response, Awaitable):
            response = await response
        if response is not None:
            return response
        return web.json_response(USUAL[request.path.rpartition("/")[2]])

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        driver = Driver()
        async with opened(driver, profile(f"http://{server.host}:{server.port}", **options)):
            yield driver


def one(name: str, response: Callable[[], web.Response]) -> Callable[[web.Request], web.Response | None]:
    """Answer requests whose path ends in a name with something else."""
    return lambda request: response() if request.path.rpartition("/")[2] == name else None


@pytest.mark.parametrize(
    "response",
    [
        web.Response(text="<html>It works!</html>", content_type="text/html"),
        web.json_response({"version": {"number": "8.19.21"}}),
        web.json_response({"lucene": "9"}),
        web.json_response({"lucene": {"solr-spec-version": "nine"}}),
        web.json_response({"error": "not here"}, status=404),
        web.Response(status=302, headers={"Location": "http://elsewhere.example/"}),
    ],
)
async def test_another_product_is_refused(response: web.Response) -> None:
    """S1: by what it answers about its system."""
    with pytest.raises(ServerNotSupportedError, match="other than Solr"):
        async with connected(one("system", lambda: response)):
            pass


@pytest.mark.parametrize(("version", "mode"), [("8.11.4", "std"), ("9.10.1", "solrcloud")])
async def test_an_older_server_and_a_cloud_are_refused(version: str, mode: str) -> None:
    """S1."""
    system = {"mode": mode, "lucene": {"solr-spec-version": version}}
    with pytest.raises(ServerNotSupportedError, match=version):
        async with connected(one("system", lambda: web.json_response(system))):
            pass


async def test_credentials_are_sent_and_a_refusal_is_told() -> None:
    """S2."""
    sent = []

    def guard(request: web.Request) -> web.Response | None:
        sent.append(request.headers.get("Authorization", ""))
        return web.Response(status=401, text="require authentication") if len(sent) > 1 else None

    basic = {
        "auth_scheme": AuthScheme.BASIC,
        "options": {"username": "owner"},
        "secrets": Secrets(values={"password": "secret"}),
    }
    async with connected(guard, **basic) as driver:
        health = await driver.ping()
        assert (health.ok, health.code) == (False, AuthenticationError("").code)
        with pytest.raises(AuthenticationError):
            await driver.describe_object("books")
    assert all(header.startswith("Basic ") for header in sent)


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", '{"response": {}}', json.dumps(FOUND)[:-5], '{"response": 5}']
)
async def test_an_answer_of_another_form_shows_no_rows(text: str) -> None:
    """S8: not in a page, a count, an export or a plan."""
    compiled = None
    async with connected(one("select", lambda: web.Response(text=text, content_type="application/json"))) as driver:
        for call in (
            lambda: driver.fetch_page(PageRequest(object="books", filter=compiled)),
            lambda: driver.count_rows(CountRequest(object="books")),
            lambda: anext(driver.export_rows(ExportRequest(object="books"))),
        ):
            with pytest.raises(DragomanError):
                await call()  # type: ignore[misc]


@pytest.mark.parametrize(
    "changes",
    [
        {"responseHeader": {"partialResults": True}},
        {"response": {"numFound": 200, "docs": [DOCUMENT] * 200}},
    ],
)
async def test_a_result_that_is_partial_or_too_long_is_an_error(changes: dict[str, Any]) -> None:
    """S8."""
    async with connected(one("select", lambda: web.json_response(FOUND | changes))) as driver:
        with pytest.raises(QueryError, match=r"part of the result|more than were asked for"):
            await driver.fetch_page(PageRequest(object="books"))


async def test_a_count_that_is_a_lower_bound_is_no_count() -> None:
    """S18: a page says that its total is one."""
    rows = {"numFound": 5, "numFoundExact": False, "docs": []}
    async with connected(one("select", lambda: web.json_response({"response": rows}))) as driver:
        with pytest.raises(QueryError, match="lower bound"):
            await driver.count_rows(CountRequest(object="books"))
        page = await driver.fetch_page(PageRequest(object="books"))
        assert (page.total, page.total_exact) == (5, False)


async def test_each_search_names_its_parser_and_each_exclusion_what_it_takes_from() -> None:
    """S8, S13, S17: the request as it is sent."""
    bodies: list[Any] = []

    async def keep(request: web.Request) -> None:
        bodies.append(json.loads(await request.text()))

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("select"):
            await keep(request)
        return web.json_response(USUAL[request.path.rpartition("/")[2]])

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        driver = Driver()
        async with opened(driver, profile(f"http://{server.host}:{server.port}")):
            rows = [Filter("n_i", "!=", 1), Filter("id", "null")]
            compiled = await driver.compile_filter(FilterRequest(object="books", rows=rows))
            await driver.fetch_page(PageRequest(object="books", filter=compiled, sort=[Sort("n_i", descending=True)]))
            with pytest.raises(FilterNotSupportedError, match="no such column"):
                await driver.compile_filter(FilterRequest(object="books", rows=[Filter("x", "!=", 1)]))
    [body] = bodies
    assert body["params"] == {"wt": "json", "defType": "lucene", "cursorMark": "*"}
    assert body["sort"] == "if(exists(n_i),0,1) asc,n_i desc,id asc"
    assert [condition["bool"]["must"] for condition in body["filter"]] == [["*:*"], ["*:*"]]
    assert body["filter"][0]["bool"]["must_not"] == [{"field": {"f": "n_i", "query": "1"}}]


@pytest.mark.parametrize(
    ("status", "text", "outcome"),
    [
        (200, '{"responseHeader": {"status": 0}, "adds": ["a", 6]}', OutcomeStatus.APPLIED),
        (200, '{"responseHeader": {"status": 0}}', OutcomeStatus.CONFLICT),
        (200, '{"responseHeader": {"status": 0}, "adds": ["b", 6]}', OutcomeStatus.UNKNOWN),
        (200, '{"responseHeader": {"status": 0}, "adds": ["a", "b"]}', OutcomeStatus.UNKNOWN),
        (200, '{"responseHeader": {"status": 0}, "adds": {"a": 6}}', OutcomeStatus.UNKNOWN),
        (200, '{"adds": ["a", 6]}', OutcomeStatus.UNKNOWN),
        (200, "{}", OutcomeStatus.UNKNOWN),
        (200, "<html>", OutcomeStatus.UNKNOWN),
        (409, '{"error": {"msg": "version conflict for a"}}', OutcomeStatus.CONFLICT),
        (400, '{"error": {"msg": "unknown field"}}', OutcomeStatus.FAILED),
        (500, '{"error": {"msg": "disk full"}}', OutcomeStatus.UNKNOWN),
    ],
)
async def test_an_outcome_claims_no_more_than_the_answer(status: int, text: str, outcome: OutcomeStatus) -> None:
    """S21, S26: a success names the new version, which is the guard of the next change."""
    response = {"status": status, "text": text, "content_type": "application/json"}
    async with connected(one("update", lambda: web.Response(**response))) as driver:
        changes = [Update(RowKey("books", "a", guard={"_version_": 5}), {"n_i": 2})]
        plan = await driver.plan_change(PlanRequest(changes=changes))
        assert [json.loads(request.body or "") for request in plan.requests] == [
            {"add": [{"id": "a", "_version_": 5, "n_i": {"set": 2}}]}
        ]
        plan.changes.extend(changes)  # type: ignore[union-attr] # as the host does
        [applied] = await driver.apply_change(plan)
    assert applied.status is outcome
    if outcome is OutcomeStatus.APPLIED:
        assert applied.key == RowKey("books", "a", guard={"_version_": 6})
    if "msg" in text:
        assert json.loads(text)["error"]["msg"] in applied.reason


async def test_a_new_field_has_the_type_of_the_longest_pattern() -> None:
    """S5, S10: `*_i` and not `*`."""
    async with connected() as driver:
        for value, status in ((2**31, OutcomeStatus.REFUSED), (5, None)):
            plan = await driver.plan_change(PlanRequest(changes=[Insert("books", {"other_i": value}, id="b")]))
            assert [outcome.status for outcome in plan.refusals] == ([status] if status else [])
