"""A write that went out and whose answer did not come back: it is said, and the hint is not to send it again."""

from __future__ import annotations

import pytest

import wheelhouse
from dragoman import Insert
from dragoman.sessions.driver_calls import after_a_write, reason_of, tell_unknown, unknown
from dragoman_api import hookimpl
from dragoman_api.changes import HttpRequest
from dragoman_api.console import ConsoleRequest
from dragoman_api.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ConsoleSyntaxError,
    DragomanError,
    QueryError,
    Refused,
    UnsupportedOperationError,
)
from dragoman_api.events import Call
from dragoman_worker.hooks_and_deadlines import HOOKS

CODE = """
import os
from dragoman_api import Answer, errors, hookimpl
from dragoman_api.console import AnswerKind
from dragoman_api.grid import Page
from dragoman_api.columns import Column
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    def fail(self, how):
        if how == "crash":
            os._exit(5)
        if how == "bug":
            raise KeyError("took")
        if how == "gone":
            raise errors.ConnectionFailedError("no whole answer", details={"sent": True})
        if how == "unreached":
            raise errors.ConnectionFailedError("connection refused", details={"sent": False, "outcome": "unknown"})
        if how == "denied":
            raise errors.AccessDeniedError("read only")
        if how == "endless":
            raise errors.QueryError("the answer is longer than 10 bytes", hint="ask for less", details={"limit": 10})

    @hookimpl
    async def execute_console(self, request):
        self.fail(how := request.request.path[1:])
        said = {"kind": AnswerKind.TEXT, "status": 200, "request": request.request}
        if how == "long":
            said |= {"text": "x" * (80 << 20)}
        if how == "wide":
            columns = [Column(name="a", type="text")]
            said |= {"kind": AnswerKind.GRID, "page": Page(columns=columns, cells=[["x" * (5 << 20)]])}
        return "no answer at all" if how == "nonsense" else Answer(**said)

    @hookimpl
    async def apply_change(self, plan):
        self.fail(plan.changes[0].values["title"] if plan.changes else "")
        return await super().apply_change(plan)
"""
UNKNOWN = "it is unknown whether it was applied: "


class Guard:
    @hookimpl
    async def before_call(self, call):
        if call.requests and call.requests[0].path == "/vetoed":
            raise Refused("not today")


@pytest.fixture
def open_losing(make_runtime):
    def make():
        driver = wheelhouse.Driver("losing", code=CODE, hooks=list(HOOKS))
        return make_runtime(driver, installed=True, use=[Guard()])

    return make


async def failure(call):
    with pytest.raises(DragomanError) as caught:
        await call
    return caught.value


def request(path, *, writes=True):
    return ConsoleRequest(request=HttpRequest(method="POST", path=f"/{path}"), writes=writes)


LOST = {
    "nonsense": "driver-fault",
    "bug": "driver-fault",
    "crash": "driver-crashed",
    "gone": "connection-failed",
    "endless": "query-failed",
}


@pytest.mark.parametrize("path", LOST)
async def test_a_console_write_whose_answer_is_lost_is_said_to_be_unknown(open_losing, path):
    async with open_losing() as runtime, runtime.open("losing") as session:
        assert (await session.execute(request("well"))).status == 200
        error = await failure(session.execute(request(path)))
        assert (error.code, error.details["outcome"]) == (LOST[path], "unknown")
        assert error.message == str(error)
        assert unknown(error)
        assert error.message.startswith(f"{error.prefix}the write was handed over, and {UNKNOWN}")
        assert (error.hint, error.hint_from) == ("check the result before sending it again", "")
        error = await failure(session.execute(request(path, writes=False)))
        assert (error.code, error.details.get("outcome")) == (LOST[path], None)
        assert not unknown(error)
        assert UNKNOWN not in error.message


@pytest.mark.parametrize("path", ["long", "wide"])
async def test_a_console_write_whose_answer_is_too_large_is_answered_and_cut(open_losing, path):
    async with open_losing() as runtime, runtime.open("losing") as session:
        answer = await session.execute(request(path))
        assert answer.status == 200
        notes = [*answer.notes, *(answer.page.notes if answer.page else ())]
        assert [note.code for note in notes] == ["text-cut" if path == "long" else "cells-cut"]


async def test_a_console_write_that_was_not_sent_or_was_answered_with_no_is_not_unknown(open_losing):
    async with open_losing() as runtime, runtime.open("losing") as session:
        for path in ("unreached", "denied", "vetoed"):
            error = await failure(session.execute(request(path)))
            assert UNKNOWN not in error.message
            assert "outcome" not in error.details
        large = ConsoleRequest(request=HttpRequest(method="POST", path="/", body="x" * (64 << 20)), writes=True)
        error = await failure(session.execute(large))
        assert "cannot be sent" in error.message or "are allowed" in error.message
        assert (error.details["sent"], error.details.get("outcome")) == (False, None)


@pytest.mark.parametrize("how", ["crash", "bug", "gone"])
async def test_a_change_whose_answer_is_lost_is_said_to_be_unknown(open_losing, how):
    async with open_losing() as runtime, runtime.open("losing") as session:
        plan = await session.plan(Insert("books", {"title": how}))
        error = await failure(session.apply(plan))
        assert (error.code, error.details["outcome"]) == (LOST[how], "unknown")
        assert UNKNOWN in error.message
        assert error.message == f"{error.prefix}the write was handed over, and {UNKNOWN}{reason_of(error)}"
        assert error.hint == "check the result before sending it again"
        plan = await session.plan(Insert("books", {"title": "unreached"}))
        assert "outcome" not in (await failure(session.apply(plan))).details


@pytest.mark.parametrize("error", [AccessDeniedError("read only"), AuthenticationError("expired")], ids=str)
def test_a_refusal_answers_for_the_only_request_and_leaves_the_outcome_of_several_unknown(error):
    refusal = HttpRequest(method="POST", path="/")
    for requests, outcome in (((refusal,), None), ((refusal, refusal), "unknown")):
        tell_unknown(error, Call(hook="apply_change", writes=True, requests=requests))
        assert error.details.get("outcome") == outcome


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (Refused, None),
        (UnsupportedOperationError, None),
        (ConfigurationError, None),
        (ConsoleSyntaxError, None),
        (QueryError, "unknown"),
    ],
)
def test_what_is_turned_down_before_it_is_sent_has_no_unknown_outcome(kind, outcome):
    for requests in ((), (HttpRequest(method="POST", path="/"),)):
        error = kind("no")
        tell_unknown(error, Call(hook="execute_console", writes=True, requests=requests))
        assert error.details.get("outcome") == outcome


@pytest.mark.parametrize("kind", [ConfigurationError, Refused, UnsupportedOperationError, QueryError])
def test_what_fails_after_a_write_leaves_its_outcome_unknown_whatever_it_is(kind):
    for writes in (True, False):
        with pytest.raises(kind) as caught, after_a_write(writes=writes), after_a_write(writes=writes):
            raise kind("the disk is full")
        assert unknown(caught.value) is writes
        assert caught.value.message.count(UNKNOWN) == writes
        assert reason_of(caught.value) == ("the disk is full" if writes else "")
