"""Limits of one call: what a page may ask for, and what a meter counts while the answer arrives."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from dragoman.automations.guards import Limits, Meter
from dragoman.automations.hook_manager import Hooks
from dragoman.settings import Limit
from dragoman_api.changes import HttpRequest
from dragoman_api.columns import Column
from dragoman_api.console import Answer, AnswerKind
from dragoman_api.errors import DeadlineExceededError, Refused
from dragoman_api.events import Call, CallRefused, ConnectionInfo
from dragoman_api.exports import ExportPart
from dragoman_api.grid import Page
from dragoman_api.summaries import ColumnSummary, ValueCount

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

SHOP = ConnectionInfo(name="shop", type="demo", host="h", port=1)
READ = Call(hook="fetch_page", connection=SHOP, object="books")
COLUMNS = [Column(name="title", kind="text", type="text"), Column(name="data", kind="binary", type="binary")]


def meter(call: Call = READ, **limit: Any) -> tuple[Meter, list[Any]]:
    events: list[Any] = []
    return Meter(Limit(**limit), call, emit=events.append), events


def page(*rows: list[Any]) -> Page:
    return Page(columns=COLUMNS, cells=list(rows))


def answer(**fields: Any) -> Answer:
    return Answer(kind=AnswerKind.JSON, status=200, request=HttpRequest("GET", "/"), **fields)


def reached(act: Callable[[], None]) -> dict[str, Any] | None:
    """Return the details of a refusal, or None where there was none."""
    try:
        act()
    except Refused as error:
        return error.details if error.code == "limit-exceeded" else {"code": error.code}
    return None


# before a call --------------------------------------------------------------------------------------------------------


async def test_a_page_may_ask_for_as_many_rows_as_its_limit_and_no_more() -> None:
    limits = {"shop": Limit(rows=5), "free": Limit(rows=0), "other": Limit()}
    hooks = Hooks([Limits(limits.__getitem__)], emit=lambda _: None)
    for name, rows in (("shop", 5), ("shop", None), ("free", 9), ("other", 9)):
        connection = ConnectionInfo(name=name, type="demo", host="h", port=1)
        await hooks.ask(Call(hook="fetch_page", connection=connection, rows=rows))
    await hooks.ask(Call(hook="fetch_page", rows=9))
    with pytest.raises(Refused) as caught:
        await hooks.ask(Call(hook="fetch_page", connection=SHOP, object="books", rows=1_006))
    assert caught.value.message == (
        "limits: fetch_page of books on shop may have 5 rows, and 1,006 rows were asked for; nothing was sent"
    )
    assert caught.value.hint == "--limit 5, or raise rows below [guards.connections.shop.limits] in config.toml"
    assert (caught.value.code, caught.value.details) == (
        "limit-exceeded", {"limit": "rows", "most": 5, "reached": 1_006},
    )  # fmt: skip


# what arrives ---------------------------------------------------------------------------------------------------------


def test_rows_and_bytes_add_up_to_their_limits_and_the_next_one_is_withheld() -> None:
    measured, events = meter(rows=5, bytes=10)
    measured.take(rows=3, size=6)
    measured.take(rows=2, size=4)
    assert events == []
    with pytest.raises(Refused) as caught:
        measured.take(rows=1, size=0)
    assert caught.value.message == (
        "limits: fetch_page of books on shop may have 5 rows, and there are 6 rows; the received data was withheld"
    )
    assert caught.value.hint == "ask for less, or raise rows below [guards.connections.shop.limits] in config.toml"
    assert caught.value.details == {"limit": "rows", "most": 5, "reached": 6}
    [event] = events
    assert isinstance(event, CallRefused)
    assert (event.hook, event.automation, event.connection) == ("fetch_page", "limits", "shop")
    assert event.reason == caught.value.message
    measured, _ = meter(bytes=10)
    measured.take(rows=99, size=10)
    assert reached(lambda: measured.take(rows=0, size=1)) == {"limit": "bytes", "most": 10, "reached": 11}


def test_rows_that_are_announced_count_before_they_arrive() -> None:
    measured, _ = meter(rows=5)
    measured.take(rows=1, size=0, total=5)
    assert reached(lambda: measured.take(rows=1, size=0, total=6)) == {"limit": "rows", "most": 5, "reached": 6}


def test_zero_and_none_are_no_limits() -> None:
    for limit in ({}, {"rows": 0, "bytes": 0, "seconds": 0}):
        measured, _ = meter(**limit)
        measured.take(rows=10**6, size=10**9)
        measured.take_result(page(["a" * 10**6, None]))
        assert measured.left(30) == 30


@pytest.mark.parametrize(
    ("call", "measured"),
    [
        (READ, True),
        (Call(hook="execute_console", connection=SHOP), True),
        (Call(hook="execute_console", connection=SHOP, writes=True), False),
        (Call(hook="connect", connection=SHOP), False),
        (Call(hook="ping", connection=SHOP), False),
        (Call(hook="close", connection=SHOP), False),
    ],
)
def test_what_writes_or_maintains_a_connection_is_not_measured(call: Call, measured: bool) -> None:
    for limit, act in (
        ({"rows": 1}, lambda each: each.take(rows=2, size=0)),
        ({"bytes": 1}, lambda each: each.take(rows=0, size=2)),
    ):
        one, _ = meter(call, **limit)
        assert (reached(lambda one=one, act=act: act(one)) is not None) == measured
    one, _ = meter(call, seconds=2)
    assert (one.left(30) < 30) == measured


SIZED = [
    (page(["née", b"\xff\xff"], [None, 1.5]), 2, 4 + 2 + 4 + 3),
    (page(), 0, 0),
    ("née", 0, 4),
    (b"\xff\xff\xff", 0, 3),
    ("\ud800", 0, 1),
    (answer(text="née"), 0, 4),
    (answer(page=page(["abc", None])), 1, 3 + 4),
    (answer(page=page(["abc", None], ["d", None]), text="whole"), 2, 5),
    (answer(text="ab", next=answer(text="cd", next=answer(page=page(["e", b"f"])))), 1, 2 + 2 + 2),
    (ColumnSummary(column=COLUMNS[0], rows=9, minimum="ab", maximum="née", values=[ValueCount("d", 9)]), 0, 2 + 4 + 1),
    (None, 0, 0),
    (17, 0, 0),
]


@pytest.mark.parametrize(("result", "rows", "size"), SIZED)
def test_a_result_counts_its_rows_and_the_bytes_of_its_values(result: object, rows: int, size: int) -> None:
    for name, most in (("rows", rows), ("bytes", size)):
        assert reached(lambda name=name, most=most: meter(**{name: most})[0].take_result(result)) is None
        if most > 1:
            told = reached(lambda name=name, most=most: meter(**{name: most - 1})[0].take_result(result))
            assert told is not None
            assert told["limit"] == name
            assert told["most"] == most - 1
        measured, _ = meter(**{name: most + 1})
        measured.take_result(result)
        one_more = {"rows": 1, "size": 0} if name == "rows" else {"rows": 0, "size": 1}
        measured.take(**one_more)
        assert reached(lambda measured=measured, one_more=one_more: measured.take(**one_more)) is not None


# time -----------------------------------------------------------------------------------------------------------------


def test_a_deadline_is_the_limits_only_when_its_seconds_are_over() -> None:
    for limit in ({}, {"seconds": 60}):
        measured, events = meter(**limit)
        with pytest.raises(DeadlineExceededError), measured.timing():
            raise DeadlineExceededError("fetch_page took longer than 30 s")
        assert events == []
    for error in (DeadlineExceededError("late"), TimeoutError()):
        measured, events = meter(seconds=0.01)
        time.sleep(0.02)
        assert measured.left(30) == 0
        with pytest.raises(Refused) as caught, measured.timing():
            raise error
        assert "may have 0.01 seconds, and it was stopped after 0." in caught.value.message
        assert caught.value.details["limit"] == "seconds"
        assert caught.value.details["reached"] > caught.value.details["most"] == 0.01
        assert [event.name for event in events] == ["call.refused"]
    with pytest.raises(ValueError, match="else"), meter(seconds=0.001)[0].timing():
        raise ValueError("something else")


def test_the_time_left_is_the_limits_or_the_usual_one_whichever_is_shorter() -> None:
    measured, _ = meter(seconds=20)
    assert 19 < measured.left(30) <= 20
    assert measured.left(5) == 5
    assert meter()[0].left(math.inf) == math.inf


async def streamed(*parts: ExportPart, pause: float = 0) -> AsyncIterator[ExportPart]:
    for part in parts:
        yield part
        await anyio.sleep(pause)


PARTS = [ExportPart(data=b"1\n2\n", rows=2, total=3), ExportPart(data=b"3\n", rows=1, total=3)]


async def test_the_parts_of_an_export_pass_within_the_limits() -> None:
    measured, _ = meter(rows=3, bytes=6, seconds=60)
    assert [part async for part in measured.parts(streamed(*PARTS))] == PARTS
    for limit in ({"rows": 2}, {"bytes": 3}):
        got: list[ExportPart] = []
        with pytest.raises(Refused):
            got.extend([part async for part in meter(**limit)[0].parts(streamed(*PARTS))])
        assert got == []


async def test_an_export_that_pauses_beyond_its_seconds_ends() -> None:
    parts = meter(seconds=0.2)[0].parts(streamed(*PARTS, pause=60))
    assert await anext(parts) == PARTS[0]
    with pytest.raises(Refused) as caught, anyio.fail_after(10):
        await anext(parts)
    assert caught.value.details["limit"] == "seconds"
