"""Retries: a busy server is asked again within a budget, a write never."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from drivers.replies import reply
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import ConnectionFailedError, HttpRequest, QueryError
from dragoman_api.kit.exchanges import Exchanges
from dragoman_api.kit.retries import BUDGET, PAUSES, SHORT_BUDGET, Patience, jittered
from dragoman_worker.hooks_and_deadlines import HOOKS

if TYPE_CHECKING:
    from dragoman_api import Http
    from dragoman_api.replies import Reply

READ = HttpRequest("GET", "/books")


@dataclass
class Busy:
    """A client of a server that turns requests away, and says for how long."""

    asks: list[float | None]
    sent: list[dict[str, Any]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    now: float = 0.0

    async def request(self, method: str, path: str, **more: Any) -> Reply:
        self.sent.append(more)
        return reply("", 200 if self.asks[len(self.sent) - 1] is None else 429)

    def retry_after(self, _: Reply) -> float | None:
        return self.asks[len(self.sent) - 1]

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def patched(self, patch: pytest.MonkeyPatch) -> Busy:
        patch.setattr(anyio, "sleep", self.sleep)
        patch.setattr(anyio, "current_time", lambda: self.now)
        return self


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Busy:
    return Busy([]).patched(monkeypatch)


def exchanges_of(server: Busy, *, read: bool = True) -> Exchanges:
    return Exchanges(cast("Http", server), reads=lambda _: read, retry_after=server.retry_after)


async def sent(server: Busy, *, read: bool = True, **more: Any) -> Reply:
    return await exchanges_of(server, read=read).send(READ, **more)


async def test_a_read_is_sent_again_until_the_server_is_free(busy: Busy) -> None:
    busy.asks = [0, 0, 0, None]
    assert (await sent(busy, limit=7)).status == 200
    assert [each["limit"] for each in busy.sent] == [7] * 4
    assert all(pause / 2 <= slept <= pause * 1.5 for slept, pause in zip(busy.slept, PAUSES, strict=False))


async def test_what_is_sent_again_is_the_whole_request(busy: Busy) -> None:
    busy.asks = [0, None]
    request = HttpRequest("POST", "/books/_search", '{"a":1}', "application/x-ndjson")
    await exchanges_of(busy).send(request, limit=7)
    whole = {"body": '{"a":1}', "content_type": "application/x-ndjson", "headers": None, "read": True, "limit": 7}
    assert busy.sent == [whole, whole]


@pytest.mark.parametrize(
    ("details", "away", "waits"),
    [({}, False, False), ({}, True, True), ({"retry_after": 0}, False, True), ({"retry_after": 76}, True, False)],
)
def test_only_a_failure_that_may_pass_is_waited_for(details: dict[str, int], away: bool, waits: bool) -> None:
    assert (Patience().pause(QueryError("no", details=details), away=away) is not None) is waits


def test_patience_is_whole_again_after_a_success() -> None:
    patience, error = Patience(), QueryError("busy", details={"retry_after": 30})
    for _ in range(3):
        assert [patience.pause(error, away=False) for _ in range(3)] == [30, 30, None]
        patience.renew()


async def test_the_seconds_that_a_server_asks_for_are_kept(busy: Busy) -> None:
    busy.asks = [7, None]
    await sent(busy)
    assert busy.slept == [7]


async def test_a_server_that_asks_for_more_than_the_budget_is_not_asked_again(busy: Busy) -> None:
    busy.asks = [20, 20, None]
    assert (await sent(busy)).status == 429
    assert busy.slept == [20]


async def test_a_write_is_sent_once(busy: Busy) -> None:
    busy.asks = [0, None]
    assert (await sent(busy, read=False)).status == 429
    assert [each["read"] for each in busy.sent] == [False]
    assert busy.slept == []


async def test_the_last_answer_comes_back_when_the_pauses_are_used_up(busy: Busy) -> None:
    busy.asks = [0] * 9
    assert (await sent(busy, pauses=(1, 2))).status == 429
    assert len(busy.sent) == 3


@given(st.lists(st.floats(0, 200) | st.just(0), min_size=12, max_size=12))
def test_no_request_waits_longer_than_its_budget(asks: list[float]) -> None:
    busy = Busy([*asks])

    async def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            await sent(busy.patched(patch), pauses=(0.1,) * 11)

    anyio.run(run)
    assert sum(busy.slept) <= BUDGET
    assert all(slept >= asked for slept, asked in zip(busy.slept, asks, strict=False) if asked)


@given(st.lists(st.floats(0.1, 40), min_size=9, max_size=9), st.floats(0, 30), st.floats(0, 40))
def test_the_requests_of_an_operation_share_its_time(asks: list[float], slow: float, until: float) -> None:
    busy = Busy([*asks], now=slow)

    async def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            for _ in range(3):
                await sent(busy.patched(patch), pauses=(0.1,) * 2, until=until)

    anyio.run(run)
    assert busy.now <= max(slow, until)


def test_a_busy_server_gets_an_error_before_the_host_ends_the_call() -> None:
    """A page and its like may follow one another; the rest of the deadline is for the requests themselves."""
    reading = {"connect", "list_objects", "describe_object", "fetch_page", "fetch_cell", "count_rows", "plan_change"}
    assert all(HOOKS[hook].seconds >= 2 * BUDGET for hook in reading)
    assert HOOKS["ping"].seconds >= 2 * SHORT_BUDGET


@given(st.floats(0, 1_000))
def test_jitter_stays_around_its_pause(pause: float) -> None:
    assert pause / 2 <= jittered(pause) <= pause * 1.5


@given(st.lists(st.tuples(st.booleans(), st.none() | st.integers(0, 200)), max_size=60))
def test_patience_ends(failures: list[tuple[bool, int | None]]) -> None:
    patience, waited, attempts = Patience(), 0.0, 0
    for away, after in failures:
        error = QueryError("busy", details={} if after is None else {"retry_after": after})
        if (pause := patience.pause(error, away=away)) is None:
            continue
        assert after is None or pause >= after
        waited, attempts = waited + pause, attempts + 1
    assert waited <= 75
    assert attempts <= 8


@pytest.mark.parametrize(("details", "attempts"), [({"retry_after": 0}, 8), ({}, 3)])
def test_pauses_grow_gently_and_then_the_read_is_given_up(details: dict[str, int], attempts: int) -> None:
    patience, error, pauses = Patience(), QueryError("busy", details=details), list[float]()
    while (pause := patience.pause(error, away=True)) is not None:
        pauses.append(pause)
    assert len(pauses) == attempts
    assert 0 < pauses[0] < 0.5
    assert all(before < after < 4 * before or before == after == 8 for before, after in pairwise(pauses))


def test_a_server_may_ask_for_all_the_patience_at_once() -> None:
    patience, error = Patience(), QueryError("busy", details={"retry_after": 75})
    assert patience.pause(error, away=False) == 75
    assert patience.pause(QueryError("busy", details={"retry_after": 0}), away=False) is None


def test_patience_begins_anew_after_a_success() -> None:
    patience, error = Patience(), ConnectionFailedError("no answer")
    while patience.pause(error, away=True) is not None:
        pass
    patience.renew()
    assert patience.pause(error, away=True) is not None
