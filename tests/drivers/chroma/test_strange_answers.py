"""Answers that are none of Chroma's: each is an error of the API, and nothing is shown as rows."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from drivers.chroma.rig import profile
from msgspec.structs import replace

from dragoman_api import (
    AuthenticationError,
    Delete,
    DragomanError,
    ExportRequest,
    Insert,
    OutcomeStatus,
    PageRequest,
    PlanRequest,
    QueryError,
    RowKey,
    Update,
)
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.errors import ServerNotSupportedError
from dragoman_api.grid import SimilarRequest
from dragoman_api.testing.target import opened
from dragoman_chroma.driver import Driver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ID = "0c5a2b0e-3c5f-4a53-8a3a-8d2b3f9d7e11"
RECORDS = {"ids": ["a"], "documents": ["x"], "uris": [None], "metadatas": [{"n": 1}], "embeddings": [[1.0, 2.0]]}
USUAL: dict[str, Any] = {
    "heartbeat": {"nanosecond heartbeat": 1},
    "version": "1.0.0",
    "pre-flight-checks": {"max_batch_size": 5},
    "default_tenant": {"name": "default_tenant"},
    "books": {"id": ID, "name": "books", "dimension": 2},
    "get": RECORDS,
    "count": 1,
    "add": {},
}


@asynccontextmanager
async def connected(
    changed: Callable[[web.Request], web.Response | None] = lambda request: None, **options: Any
) -> AsyncIterator[Driver]:
    """Connect a driver to a server that answers in Chroma's way, but for some requests."""

    async def answer(request: web.Request) -> web.Response:
        if (response := changed(request)) is not None:
            return response
        return web.json_response(USUAL[request.path.rpartition("/")[2]])

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        driver = Driver()
        async with opened(driver, profile(f"http://{server.host}:{server.port}", **options)):
            yield driver


def one(name: str, response: Callable[[], web.Response]) -> Callable[[web.Request], web.Response | None]:
    """Answer requests whose path ends in a name with something else, but the first, which reads the samples."""
    seen = []

    def changed(request: web.Request) -> web.Response | None:
        if request.path.rpartition("/")[2] != name:
            return None
        seen.append(request)
        return response() if len(seen) > (name == "get") else None

    return changed


@pytest.mark.parametrize(
    "response",
    [
        web.Response(text="<html>It works!</html>", content_type="text/html"),
        web.json_response({"version": {"number": "8.19.21"}}),
        web.json_response(["nanosecond heartbeat"]),
        web.json_response({"error": "Unimplemented", "message": "The v2 API is not there"}, status=404),
        web.Response(status=302, headers={"Location": "http://elsewhere.example/"}),
    ],
)
async def test_another_product_is_refused(response: web.Response) -> None:
    """C5: by what it answers to the heartbeat."""
    with pytest.raises(ServerNotSupportedError, match="other than Chroma"):
        async with connected(lambda request: response if request.path.endswith("heartbeat") else None):
            pass


async def test_a_server_before_the_first_version_is_refused() -> None:
    """C5."""
    with pytest.raises(ServerNotSupportedError, match="Chroma 0"):
        async with connected(one("version", lambda: web.json_response("0.6.3"))):
            pass


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        json.dumps(RECORDS)[:-9],
        json.dumps(RECORDS | {"ids": [1]}),
        json.dumps(RECORDS | {"ids": ["a", "b"]}),
        json.dumps(RECORDS | {"metadatas": [{"n": 1}, {}]}),
        json.dumps(RECORDS | {"metadatas": "x"}),
        "[" * 100_000,
    ],
)
async def test_records_of_another_shape_are_an_error(text: str) -> None:
    """A page, a cell and an export fail with a reason instead of showing some of it."""
    reply = lambda: web.Response(text=text, content_type="application/json")  # noqa: E731
    async with connected(one("get", reply)) as driver:
        await driver.describe_object("books")
        with pytest.raises(QueryError) as caught:
            await driver.fetch_page(PageRequest(object="books", limit=2))
        assert caught.value.message
        with pytest.raises(QueryError):
            _ = [part async for part in driver.export_rows(ExportRequest(object="books"))]


async def test_more_records_than_were_asked_for_are_an_error() -> None:
    """The page would not be the one that was asked for."""
    many = {name: values * 3 for name, values in RECORDS.items()}
    async with connected(one("get", lambda: web.json_response(many))) as driver:
        await driver.describe_object("books")
        with pytest.raises(QueryError, match="more than it was asked for"):
            await driver.fetch_page(PageRequest(object="books", limit=2))


NEAR: dict[str, Any] = {name: [values] for name, values in RECORDS.items()} | {"distances": [[0.5]]}


@pytest.mark.parametrize(
    "changes",
    [
        {"ids": []},
        {"ids": [["a"], ["b"]]},
        {"distances": [[]]},
        {"distances": [[None]]},
        {"distances": [["0.5"]]},
        {"distances": None},
        {"documents": [["x", "y"]]},
        {name: [values[0] * 3] for name, values in NEAR.items()},
    ],
    ids=str,
)
async def test_nearest_records_of_another_shape_are_an_error(changes: dict[str, Any]) -> None:
    """C42: an answer that does not fit together shows no rows, and neither does one with too many."""
    answers = {"query": NEAR}

    def changed(request: web.Request) -> web.Response | None:
        answer = answers.get(request.path.rpartition("/")[2])
        return None if answer is None else web.json_response(answer)

    async with connected(changed) as driver:
        await driver.describe_object("books")
        near = SimilarRequest(object="books", vector=[1, 2], limit=2)
        page = await driver.similar_rows(near)
        assert ([key.id for key in page.keys], page.cells[0][-1]) == (["a"], 0.5)
        answers["query"] = NEAR | changes
        with pytest.raises(QueryError):
            await driver.similar_rows(near)


@pytest.mark.parametrize("status", [400, 404, 413, 422, 429, 500, 502, 503])
async def test_an_error_status_is_an_error_that_quotes_it(status: int) -> None:
    """Whatever the server says of a page."""
    async with connected(one("get", lambda: web.Response(status=status, text="why it failed"))) as driver:
        await driver.describe_object("books")
        with pytest.raises(DragomanError, match="why it failed"):
            await driver.fetch_page(PageRequest(object="books"))


@pytest.mark.parametrize(
    ("status", "outcome"), [(422, OutcomeStatus.FAILED), (500, OutcomeStatus.UNKNOWN), (502, OutcomeStatus.UNKNOWN)]
)
async def test_a_write_in_doubt_is_unknown(status: int, outcome: OutcomeStatus) -> None:
    """C33: the server says 500 also for what it stored."""
    none = web.json_response({name: [] for name in RECORDS})

    def changed(request: web.Request) -> web.Response | None:
        last = request.path.rpartition("/")[2]
        return web.Response(status=status) if last == "add" else none if last == "get" else None

    def anew(request: web.Request) -> web.Response | None:
        response = changed(request)
        return web.json_response({name: [] for name in RECORDS}) if response is none else response

    async with connected(anew) as driver:
        await driver.describe_object("books")
        plan = await driver.plan_change(PlanRequest(changes=[Insert("books", {"embedding": [1, 2]}, id="b")]))
        assert [told.status for told in await driver.apply_change(plan)] == [outcome]


@pytest.mark.parametrize(
    ("after", "outcome"), [({"metadatas": [{"n": 2}]}, OutcomeStatus.CONFLICT), ({}, OutcomeStatus.APPLIED)]
)
async def test_an_add_is_not_believed_by_its_status(after: dict[str, Any], outcome: OutcomeStatus) -> None:
    """C34: another writer's record that came between the look and the write is found by the look behind it."""
    answers = {"get": dict.fromkeys(RECORDS, ())}

    def changed(request: web.Request) -> web.Response | None:
        last = request.path.rpartition("/")[2]
        if last == "add":
            answers["get"] = {**RECORDS, **after}
        return web.json_response(answers["get"]) if last == "get" else None

    async with connected(changed) as driver:
        await driver.describe_object("books")
        values = {"document": "x", "n": 1, "embedding": [1, 2]}
        plan = await driver.plan_change(PlanRequest(changes=[Insert("books", values, id="a")]))
        assert [told.status for told in await driver.apply_change(plan)] == [outcome]


NOTHING: dict[str, Any] = {name: [] for name in RECORDS}


@pytest.mark.parametrize("now", [RECORDS | {"documents": ["y"]}, RECORDS | {"embeddings": [[1, 3]]}, NOTHING])
async def test_a_record_that_changed_after_the_plan_is_not_written(now: dict[str, Any]) -> None:
    """C33: the look just before the write finds it, and nothing is sent."""
    answers, writes = [RECORDS], []

    def changed(request: web.Request) -> web.Response | None:
        last = request.path.rpartition("/")[2]
        writes.extend([last] if last in ("update", "delete") else [])
        return web.json_response(answers[-1]) if last == "get" else None

    async with connected(changed) as driver:
        for change in (Update(RowKey("books", "a"), {"n": 2}), Delete(RowKey("books", "a"))):
            answers.append(RECORDS)
            plan = await driver.plan_change(PlanRequest(changes=[change]))
            answers.append(now)
            [outcome] = await driver.apply_change(plan)
            assert (outcome.status, outcome.id, writes) == (OutcomeStatus.CONFLICT, "a", [])


AFTER = {
    "add": (Insert("books", {"document": "x", "n": 1, "embedding": [1, 2]}, id="a"), NOTHING, RECORDS),
    "upsert": (
        Insert("books", {"document": "x", "m": 2, "embedding": [1, 2]}, id="a", replace=True),
        RECORDS, {**RECORDS, "metadatas": [{"m": 2}]},
    ),
    "update": (Update(RowKey("books", "a"), {"m": 2}), RECORDS, {**RECORDS, "metadatas": [{"n": 1, "m": 2}]}),
    "delete": (Delete(RowKey("books", "a")), RECORDS, NOTHING),
}  # fmt: skip


@pytest.mark.parametrize("how", ["cut", 502, "unread"])
@pytest.mark.parametrize("end", ["written", "unwritten", "changed", "unreachable"])
@pytest.mark.parametrize("verb", AFTER)
async def test_a_write_whose_answer_is_lost_is_looked_for(verb: str, end: str, how: str | int) -> None:
    """C34, C35: what the record holds proves that the write was made; nothing else proves anything."""
    change, before, after = AFTER[verb]
    other = {**RECORDS, "documents": ["another"]}
    stored: list[Any] = [before]
    writes: list[str] = []

    def changed(request: web.Request) -> web.Response | None:
        last = request.path.rpartition("/")[2]
        if last == "get" and stored[0] is None:
            return web.Response(status=503)
        if last == "get":
            return web.json_response(stored[0])
        if last != verb:
            return None
        writes.append(verb)
        stored[0] = {"written": after, "unwritten": before, "changed": other, "unreachable": None}[end]
        if how == "cut":
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=how) if isinstance(how, int) else web.json_response({})

    async with connected(changed) as driver:
        await driver.describe_object("books")
        plan = await driver.plan_change(PlanRequest(changes=[change]))
        plan = replace(plan, changes=[change])
        [outcome] = await driver.apply_change(plan)
    assert writes == [verb]
    assert outcome.change == 0
    if how == "unread":  # the usual answer, which says nothing of a record
        assert outcome.status is not OutcomeStatus.FAILED
        if end == "unreachable" and verb != "delete":
            assert outcome.status is OutcomeStatus.UNKNOWN
        return
    assert outcome.status is (OutcomeStatus.APPLIED if end == "written" else OutcomeStatus.UNKNOWN)
    assert outcome.reason


async def test_the_token_goes_in_chromas_own_header() -> None:
    """C4, C6: with every request; a rejected one names the field, and never the token."""

    def guarded(request: web.Request) -> web.Response | None:
        return None if request.headers.get("X-Chroma-Token") == "right" else web.Response(status=401, text="no wrong")

    options = {"options": {"auth_method": "chroma-token"}}
    async with connected(guarded, **options, secrets=Secrets(values={"api_key": "right"})) as driver:
        assert (await driver.ping()).ok
        assert (await driver.fetch_page(PageRequest(object="books"))).total == 1
    with pytest.raises(AuthenticationError, match="X-Chroma-Token") as caught:
        async with connected(guarded, **options, secrets=Secrets(values={"api_key": "wrong"})):
            pass
    assert "wrong" not in caught.value.message
    with pytest.raises(AuthenticationError):
        async with connected(guarded):
            pass


async def test_basic_and_bearer_are_sent_as_everywhere() -> None:
    """C4: in Authorization, behind a path prefix."""
    seen: list[tuple[str, str]] = []

    def note(request: web.Request) -> None:
        seen.append((request.headers.get("Authorization", ""), request.path))

    secrets = Secrets(values={"token": "abc", "password": "secret"})
    options = {"auth_method": "token", "path_prefix": "/vectors", "username": "ann"}
    for scheme in (AuthScheme.BEARER, AuthScheme.BASIC):
        async with connected(note, options=options, secrets=secrets, auth_scheme=scheme):
            pass
    assert {header for header, _ in seen} == {"Bearer abc", "Basic YW5uOnNlY3JldA=="}
    assert all(path.startswith("/vectors/api/v2/") for _, path in seen)
