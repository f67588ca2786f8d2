"""What a session hands on to a driver in its sandbox, and from it: tenants, keep-alive, parts of an answer, codes."""

from __future__ import annotations

import io
import json
from contextlib import aclosing

import pytest

import wheelhouse
from dragoman import Filter, Insert
from dragoman_api.errors import ConfigurationError, UnsupportedOperationError
from dragoman_worker.hooks_and_deadlines import HOOKS

ECHO = """
import json
from dragoman_api import (
    Answer, AuthenticationError, Column, ExportPart, Health, Outcome, Page, Plan, PlannedRequest, hookimpl
)
from dragoman_api.console import AnswerKind
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    pings, open = 0, 0

    @hookimpl
    async def ping(self):
        self.pings += 1
        if self.pings == 1:
            return Health(ok=False, reason="throttled", code="overloaded")
        if self.pings == 3:
            raise AuthenticationError("the key was revoked")
        return Health(ok=True)

    @hookimpl
    async def fetch_page(self, request):
        return Page(columns=[Column(name="tenant", type="text")], cells=[[request.tenant]])

    @hookimpl
    async def count_rows(self, request):
        return len(request.tenant) if request.tenant else self.open

    @hookimpl
    async def export_rows(self, request):
        self.open += 1
        try:
            said = {"tenant": request.tenant, "keep_alive": request.keep_alive, "form": request.form}
            for _ in range(100):
                yield ExportPart(data=json.dumps(said | {"columns": request.columns}).encode() + b"\\n", rows=1)
        finally:
            self.open -= 1

    @hookimpl
    async def execute_console(self, request):
        answer = None
        for at in reversed(range(int(request.request.path[1:]))):
            said = {"kind": AnswerKind.TEXT, "status": 200, "request": request.request}
            answer = Answer(**said, text=str(at), failed="odd" * (at % 2), next=answer)
        return answer
"""


RESIDUAL = """
from dragoman_api import Column, CompiledFilter, ExportPart, Page, hookimpl
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    @hookimpl
    async def compile_filter(self, request):
        return CompiledFilter(object=request.object, body=str(request.residual), rows=[])

    @hookimpl
    async def fetch_page(self, request):
        body = request.filter.body if request.filter else None
        return Page(columns=[Column(name=name, type="text") for name in "ab"], cells=[[body, request.residual]])

    @hookimpl
    async def count_rows(self, request):
        return int(request.filter.body == "None")

    @hookimpl
    async def export_rows(self, request):
        yield ExportPart(data=f'{{"body": "{request.filter.body}"}}\\n'.encode(), rows=1)
"""


@pytest.fixture
def open_echo(make_runtime):
    def make(*capabilities):
        driver = wheelhouse.Driver("echo", code=ECHO, hooks=[*HOOKS], capabilities=["browse", "export", *capabilities])
        return make_runtime(driver, installed=True)

    return make


async def test_a_tenant_reaches_every_request_that_knows_one(open_echo, tmp_path):
    async with open_echo("tenants") as runtime, runtime.open("echo") as session:
        assert (await session.rows("books", tenant="acme").page()).cells == [["acme"]]
        assert await session.rows("books", tenant="acme").count() == 4
        assert [row["tenant"] async for row in session.rows("books", tenant="acme")] == ["acme"] * 100
        await session.rows("books", tenant="acme").export(to=tmp_path / "b")
        assert json.loads((tmp_path / "b").read_bytes().splitlines()[0])["tenant"] == "acme"
        assert (await session.plan(Insert("books", {"title": "x"}, tenant="acme"))).planned


@pytest.mark.slow
async def test_a_tenant_is_refused_before_anything_is_asked_where_the_manifest_claims_none(open_echo, tmp_path):
    async with open_echo() as runtime, runtime.open("echo") as session:
        with pytest.raises(UnsupportedOperationError, match="echo has no tenants"):
            session.rows("books", tenant="acme")
        with pytest.raises(UnsupportedOperationError, match="echo has no tenants"):
            await session.plan(Insert("books", {"title": "x"}, tenant="acme"))


@pytest.mark.slow
async def test_the_server_keeps_something_only_for_what_can_be_resumed(open_echo, tmp_path, home):
    async def asked(session, **more):
        await session.rows("books").export(to=tmp_path / "b", **more)
        return json.loads((tmp_path / "b").read_bytes().splitlines()[0])["keep_alive"]

    async with open_echo() as runtime, runtime.open("echo") as session:
        assert await asked(session) == 300
        assert await asked(session, keep_alive=1800) == 1800
        stream = io.BytesIO()
        await session.rows("books").export(to=stream)
        assert json.loads(stream.getvalue().splitlines()[0])["keep_alive"] == 0
        assert (await anext(session.rows("books").stream()))["keep_alive"] == 0


async def test_how_long_it_keeps_it_is_a_setting(open_echo, tmp_path, home):
    runtime = open_echo()
    file = home / "config/config.toml"
    file.write_text("keep_alive = 1200\n" + file.read_text())
    async with type(runtime)(spare=False) as again, again.open("echo") as session:
        await session.rows("books").export(to=tmp_path / "b")
    assert json.loads((tmp_path / "b").read_bytes().splitlines()[0])["keep_alive"] == 1200
    file.write_text("keep_alive = 0\n")
    with pytest.raises(ConfigurationError, match="keep_alive"):
        type(runtime)()


async def test_rows_come_in_the_form_and_with_the_columns_that_are_wanted(open_echo):
    async with open_echo() as runtime, runtime.open("echo") as session:
        row = await anext(session.rows("books", columns=["title"]).stream(form="rows"))
        assert (row["form"], row["columns"]) == ("rows", ["title"])
        with pytest.raises(ConfigurationError, match=r"'tea'.* documents, rows, bulk"):
            await anext(session.rows("books").stream(form="tea"))


async def test_an_iteration_that_is_closed_early_ends_at_the_driver(open_echo):
    async with open_echo() as runtime, runtime.open("echo") as session:
        async with aclosing(session.rows("books").stream()) as rows:
            await anext(rows)
            assert await session.rows("books").count() == 1
        assert await session.rows("books").count() == 0


async def test_one_request_may_have_several_answers_and_those_that_are_too_many_are_left_out_and_said(open_echo):
    async with open_echo() as runtime, runtime.open("echo") as session:
        answers = await session.console("GET /3\nGET /1")
        assert [answer.text for answer in answers] == ["0", "1", "2", "0"]
        assert [answer.failed for answer in answers] == ["", "odd", "", ""]
        assert not any(answer.next for answer in answers)
        assert not [each for each in await session.console("GET /500") if each.notes]
        for number in (501, 20_000):  # more than can be nested in one another
            answers = await session.console(f"GET /{number}")
            assert [answer.text for answer in answers] == [str(at) for at in range(500)]
            assert [(at, note.code) for at, answer in enumerate(answers) for note in answer.notes] == [
                (499, "answers-cut")
            ]
            assert answers[-1].notes[0].reason.startswith(f"{number - 500:,} more answers are left out")


async def test_W35_a_change_of_health_has_the_code_of_its_error(open_echo):
    async with open_echo() as runtime, runtime.open("echo") as session:
        for _ in range(3):
            await session.ping()
        told = [event for event in runtime.seen if event.name == "connection.health_changed"]
        assert [(event.state, event.code) for event in told] == [
            ("failed", "overloaded"), ("ok", ""), ("failed", "authentication-failed"),
        ]  # fmt: skip


@pytest.mark.slow
async def test_leave_to_evaluate_rows_here_reaches_pages_alone(make_runtime):
    driver = wheelhouse.Driver("echo", code=RESIDUAL, hooks=[*HOOKS], capabilities=["browse", "export"])
    rows = [Filter("title", "=", "x")]
    async with make_runtime(driver) as runtime, runtime.open("echo") as session:
        assert (await session.rows("books", filters=rows, residual=50).page()).cells == [["50", 50]]
        assert (await session.rows("books", residual=50).page()).cells == [[None, 50]]
        assert (await session.rows("books", filters=rows).page()).cells == [["None", None]]
        assert (await session.rows("books", filters=rows, residual=9).explain()).body == "9"
        assert await session.rows("books", filters=rows).count() == 1
        assert [row async for row in session.rows("books", filters=rows)] == [{"body": "None"}]
        assert await session.rows("books", filters=rows, residual=50).count() == 1
        assert [row async for row in session.rows("books", filters=rows, residual=50)] == [{"body": "None"}]
        for number in (0, -1, 10_001):
            with pytest.raises(ConfigurationError, match="residual"):
                session.rows("books", filters=rows, residual=number)
