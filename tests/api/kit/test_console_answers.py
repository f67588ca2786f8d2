"""Console answers: a reply as text or tables, and the console and the ping of a server that speaks REST."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace
from multidict import CIMultiDict

from dragoman_api import AnswerKind, ConsoleRequest, ConsoleText, HttpRequest, Json, Profile, Server, hookimpl
from dragoman_api.cells import MISSING
from dragoman_api.columns import MAX_COLUMNS, Role
from dragoman_api.errors import ConsoleSyntaxError
from dragoman_api.grid import MAX_ROWS
from dragoman_api.http import Http
from dragoman_api.kit.console_answers import MAX_TABLES, RestConsole, chained, rows_page, text_answer
from dragoman_api.kit.derived_hooks import PingByPath
from dragoman_api.replies import Response, error_text


def answered(body: bytes | str, *, status: int = 200, method: str = "GET", form: str = "application/json", **more: Any):
    data = body.encode() if isinstance(body, str) else body
    reply = Response(status, CIMultiDict({"Content-Type": form}), data)  # type: ignore[arg-type]
    request = ConsoleRequest(request=HttpRequest(method, "/x"), writes=method not in ("GET", "HEAD"))
    return text_answer(request, reply, lambda: "the reason", **more)


@pytest.mark.parametrize(
    ("body", "form", "kind", "text"),
    [
        ('{"n":1.10}', "application/json", "json", '{\n  "n": 1.10\n}'),
        ("[1]", "text/plain", "json", "[\n  1\n]"),
        ("{no json", "application/json", "text", "{no json"),
        ("1.10", "text/plain", "text", "1.10"),
        ("", "application/json", "text", "HTTP 200"),
    ],
)
def test_a_reply_is_json_wherever_it_is_some_and_text_otherwise(body, form, kind, text):
    answer = answered(body, form=form)
    assert (answer.kind, answer.text, answer.notes) == (kind, text, [])


def test_what_is_no_text_is_not_shown_and_said():
    answer = answered(b"\xff\x00", form="application/cbor")
    assert (answer.kind, answer.text) == ("text", "")
    assert "2 bytes of application/cbor" in answer.notes[0].reason


@pytest.mark.parametrize(
    ("method", "status", "turned_away", "codes"),
    [
        ("GET", 404, False, ["http-error"]),
        ("GET", 502, False, ["http-error"]),
        ("POST", 404, False, ["http-error"]),
        ("POST", 502, False, ["http-error", "outcome-unknown"]),
        ("POST", 503, True, ["http-error"]),
        ("POST", 201, False, []),
        ("HEAD", 404, False, []),
    ],
)
def test_an_error_status_is_noted_and_a_write_that_may_have_happened_is_in_doubt(method, status, turned_away, codes):
    answer = answered("{}", status=status, method=method, turned_away=turned_away)
    assert [note.code for note in answer.notes] == codes
    assert all("the reason" in note.reason for note in answer.notes)


def test_rows_without_a_description_keep_what_is_missing_and_say_what_is_cut():
    page = rows_page([{"a": 1, "b": [1]}, {"c": None}])
    assert [column.name for column in page.columns] == ["a", "b", "c"]
    assert page.cells == [[1, Json("[1]"), MISSING], [MISSING, MISSING, None]]
    assert [column.role for column in page.columns] == [""] * 3
    named = rows_page([{"a": 1, "b": 2}], roles={"b": Role.KEY, "c": Role.TIME})
    assert [column.role for column in named.columns] == ["", Role.KEY]
    wide, long = rows_page([{f"c{n}": n for n in range(MAX_COLUMNS + 1)}]), rows_page([{"n": 1}] * (MAX_ROWS + 1))
    assert (len(wide.columns), len(wide.cells[0]), [note.code for note in wide.notes]) == (
        MAX_COLUMNS, MAX_COLUMNS, ["columns-cut"]
    )  # fmt: skip
    assert (len(long.cells), [note.code for note in long.notes]) == (MAX_ROWS, ["rows-cut"])


@pytest.mark.parametrize("number", [1, 2, MAX_TABLES, MAX_TABLES + 1])
def test_an_answer_of_several_tables_is_bounded_and_its_first_has_the_text(number):
    whole = replace(answered("{}"), failed="one of them failed")
    pages = [(AnswerKind.TABLE, f"t{n}", rows_page([{"n": n}])) for n in range(number)]
    answer, titles = chained(whole, pages), []
    assert (answer.text, answer.failed) == (whole.text, whole.failed)
    assert [note.code for note in answer.notes] == ["answers-cut"] * (number > MAX_TABLES)
    while answer is not None:
        titles.append(answer.title)
        answer = answer.next
    assert titles == [title for _, title, _ in pages[:MAX_TABLES]]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"root_cause": [], "type": "t", "reason": "no such index"}, "status": 404}, "no such index"),
        ({"error": [{"message": "a"}, {"message": "b"}, {"message": "a"}]}, "a; b"),
        ({"error": "NotFoundError", "message": "Collection [x] does not exist"}, "Collection [x] does not exist"),
        ({"status": "error", "errorType": "bad_data", "error": "parse error"}, "parse error"),
        ({"error": "not_found", "reason": "missing"}, "missing"),
        ({"type": "about:blank", "title": "Bad Request", "detail": "limit is 10"}, "limit is 10"),
        ({"other": 1}, ""),
        ("a text", "a text"),
        ([], ""),
        ({"error": {"error": {"error": {"error": {"error": {"error": "deep"}}}}}}, ""),
    ],
)
def test_the_text_of_an_error_is_what_its_body_says_to_people(body, text):
    assert error_text(json.dumps(body).encode()) == text
    assert error_text(b"<html>") == "<html>"


class Driver(RestConsole, PingByPath):
    console_prefix = "/api"
    ping_path = "/api/whoami"
    logged_out = False

    def console_writes(self, request):
        return super().console_writes(request) and not request.path.startswith("/api/search")

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        self.http = http
        return Server("Demo")


@pytest.fixture
async def driver():
    driver = Driver()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/api/rows":
            return web.json_response([{"id": "a", "n": 2**60}, {"id": "b"}])
        if request.path == "/api/gone":
            return web.json_response({"error": "it is gone", "token": "s3cret"}, status=502)
        if request.path == "/api/whoami" and driver.logged_out:
            return web.json_response({"message": "log in first"}, status=401)
        seen = {"method": request.method, "path": request.path_qs, "body": await request.text()}
        return web.json_response(seen | {"form": request.content_type})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        profile = Profile(name="x", type="demo", host=server.host, port=server.port)
        async with Http(profile) as http:
            await driver.connect(profile, http)
            yield driver


async def test_a_console_text_becomes_requests_beneath_the_prefix(driver):
    text = 'GET /rows?n=1\n\nPOST /api/search {"a": 1}\nPOST /apidocs {}\n\nDELETE /rows/1'
    requests = await driver.parse_console(ConsoleText(text))
    assert [(one.request.method, one.request.path, one.writes, one.line) for one in requests] == [
        ("GET", "/api/rows?n=1", False, 1),
        ("POST", "/api/search", False, 3),
        ("POST", "/api/apidocs", True, 4),
        ("DELETE", "/api/rows/1", True, 6),
    ]
    with pytest.raises(ConsoleSyntaxError):
        await driver.parse_console(ConsoleText("rows"))


async def test_a_console_request_is_sent_as_it_stands_and_a_list_of_objects_is_a_table(driver):
    [request] = await driver.parse_console(ConsoleText('POST /x?y=%20 {"n": 1.10}'))
    answer = await driver.execute_console(request)
    assert answer.kind == "json"
    assert json.loads(answer.text) == {
        "method": "POST", "path": "/api/x?y=%20", "body": '{"n": 1.10}', "form": "application/json"
    }  # fmt: skip
    form = ConsoleRequest(request=HttpRequest("POST", "/x", "a=b", "application/x-www-form-urlencoded"), writes=True)
    assert json.loads((await driver.execute_console(form)).text)["form"] == "application/x-www-form-urlencoded"
    [request] = await driver.parse_console(ConsoleText("GET /rows"))
    answer = await driver.execute_console(request)
    assert answer.kind == "table"
    assert answer.page.cells == [["a", 2**60], ["b", MISSING]]
    [request] = await driver.parse_console(ConsoleText("POST /gone"))
    answer = await driver.execute_console(request)
    assert answer.status == 502
    assert [note.code for note in answer.notes] == ["http-error", "outcome-unknown"]
    assert answer.notes[0].reason.endswith(": it is gone")


async def test_a_ping_gets_its_path_and_its_failure_is_an_answer(driver):
    assert (await driver.ping()).ok
    driver.logged_out = True
    health = await driver.ping()
    assert (health.ok, health.code) == (False, "authentication-failed")
    assert "log in first" in health.reason
    async with Http(Profile(name="x", type="demo", host="127.0.0.1", port=1)) as driver.http:
        assert (await driver.ping()).code == "connection-failed"
