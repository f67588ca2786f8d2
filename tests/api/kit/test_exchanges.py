"""Exchanges: what is yielded is sent, what is answered comes back, an error is the exchange's to handle."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec
import pytest
from drivers.replies import reply
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import Health, HttpRequest
from dragoman_api.errors import AuthenticationError, DragomanError, ObjectNotFoundError, QueryError
from dragoman_api.kit.exchanges import Exchange, Exchanges, ask, carry_out, get, post, read_together, send_all
from dragoman_api.kit.retries import WRITE_PAUSES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from wording import Wording


async def _double(asked: int) -> int:
    if asked < 0:
        raise ObjectNotFoundError(f"nothing at {asked}")
    return asked * 2


async def test_an_exchange_gets_the_answer_to_what_it_asks_and_gives_its_result() -> None:
    def exchange() -> Generator[Sequence[int], Sequence[int], str]:
        [first] = yield [1]
        second, third = yield [first, 3]
        return f"{first} {second} {third}"

    assert await carry_out(exchange(), _double) == "2 4 6"


async def test_an_exchange_may_handle_an_error_of_the_sending_and_ask_again() -> None:
    def exchange() -> Generator[Sequence[int], Sequence[int], int]:
        try:
            return (yield [-1])[0]
        except ObjectNotFoundError:
            return (yield [5])[0]

    assert await carry_out(exchange(), _double) == 10


async def test_an_error_that_an_exchange_lets_through_is_raised_and_closes_it() -> None:
    closed = []

    def exchange() -> Generator[Sequence[int], Sequence[int], int]:
        try:
            return (yield [-1])[0]
        finally:
            closed.append(True)

    with pytest.raises(DragomanError, match="-1"):
        await carry_out(exchange(), _double)
    assert closed


@pytest.mark.parametrize("answer", ["text", None, {"a": []}, {"a": {"b": "1" * 5_000}}])
async def test_an_answer_of_another_form_is_told_as_the_servers(wording: Wording, answer: Any) -> None:
    def exchange() -> Generator[Sequence[int], Sequence[Any], int]:
        return int((yield [1])[0]["a"]["b"])

    async def send(asked: int) -> Any:
        return answer

    with pytest.raises(QueryError) as caught:
        await carry_out(exchange(), send)
    wording(caught.value.hint)


@pytest.mark.parametrize(
    "fault",
    [KeyError("a"), IndexError("a"), TypeError("a"), ValueError("a"), AttributeError("a"), RecursionError("a"),
     msgspec.DecodeError("a"), msgspec.ValidationError("a"), UnicodeDecodeError("utf-8", b"", 0, 1, "a")],
    ids=lambda fault: type(fault).__name__,
)  # fmt: skip
async def test_code_that_fails_at_an_answer_says_that_the_answer_is_not_the_expected_one(fault: Exception) -> None:
    def exchange() -> Generator[Sequence[int], Sequence[int], int]:
        yield [1]
        raise fault

    with pytest.raises(QueryError, match="not the expected JSON") as caught:
        await carry_out(exchange(), _double)
    assert caught.value.__cause__ is fault


async def test_a_fault_before_the_first_answer_is_the_drivers_own() -> None:
    def exchange() -> Generator[Sequence[int], Sequence[int], int]:
        yield {}["a"]  # type: ignore[misc]

    with pytest.raises(KeyError):
        await carry_out(exchange(), _double)


async def test_what_breaks_the_sending_otherwise_closes_the_exchange() -> None:
    closed = []

    def exchange() -> Generator[Sequence[int], Sequence[int], int]:
        try:
            return (yield [1])[0]
        finally:
            closed.append(True)

    async def broken(asked: int) -> int:
        raise OSError(asked)

    with pytest.raises(OSError, match="1"):
        await carry_out(kept := exchange(), broken)
    assert kept.gi_frame is None
    assert closed


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 10))
def test_answers_come_in_the_order_of_their_requests(requests: list[int], at_once: int) -> None:
    under_way, most = 0, 0

    async def send(asked: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(asked % 5):
            await anyio.lowlevel.checkpoint()
        under_way -= 1
        return asked * 2

    async def run() -> list[int]:
        return await send_all(requests, send, at_once=at_once)

    assert anyio.run(run) == [each * 2 for each in requests]
    assert most <= at_once


async def test_the_first_error_ends_requests_under_way() -> None:
    async def send(asked: int) -> int:
        await anyio.sleep(0 if asked < 0 else 60)
        return await _double(asked)

    with anyio.fail_after(5), pytest.raises(ObjectNotFoundError, match="-1"):
        await send_all([1, -1, 2], send)


async def test_an_exchange_asks_for_one_reply_with_ask() -> None:
    def exchange() -> Exchange[int]:
        return (yield from ask(get("/a", size=1))).status

    script = exchange()
    assert next(script) == (get("/a?size=1"),)
    with pytest.raises(StopIteration) as end:
        script.send([reply("", 204)])
    assert end.value.value == 204


def test_parameters_are_encoded_and_those_that_are_none_left_out() -> None:
    assert get("/a", b="x y/z", c=None, d=0) == HttpRequest("GET", "/a?b=x%20y%2Fz&d=0")
    assert get("/a", b=None) == get("/a") == HttpRequest("GET", "/a")
    assert post("/a", {"b": 1}) == HttpRequest("POST", "/a", '{"b":1}')
    assert post("/a") == HttpRequest("POST", "/a", None)


async def test_rejected_credentials_are_told_in_the_drivers_words_and_a_ping_tells_them_as_its_health() -> None:
    def exchange() -> Exchange[Health]:
        reply = yield from ask(get("/"))
        raise AuthenticationError(f"HTTP {reply.status}")

    class Http:
        async def request(self, *_: Any, **__: Any) -> Any:
            return reply("", 401)

    exchanges = Exchanges(
        cast("Any", Http()),
        reads=lambda _: True,
        retry_after=lambda _: None,
        rejected=lambda error: AuthenticationError(f"the key was rejected: {error.message}"),
    )
    with pytest.raises(AuthenticationError, match=r"the key was rejected: .*HTTP 401"):
        await exchanges.run(exchange())
    health = await exchanges.ping(exchange())
    assert (health.ok, health.code) == (False, "authentication-failed")
    assert "the key was rejected" in health.reason


@pytest.mark.parametrize(("turned_away", "attempts"), [(0, 1), (2, 3), (9, 5)])
async def test_a_write_is_tried_again_while_rows_are_turned_away(
    monkeypatch: pytest.MonkeyPatch, turned_away: int, attempts: int
) -> None:
    tried, slept = [], []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def attempt() -> Exchange[bool]:
        tried.append(True)
        yield []
        return len(tried) <= turned_away

    monkeypatch.setattr(anyio, "sleep", sleep)
    await Exchanges(cast("Any", None), reads=lambda _: False, retry_after=lambda _: None).write(attempt)
    assert (len(tried), len(slept)) == (attempts, attempts - 1)
    assert all(pause / 2 <= each <= pause * 1.5 for each, pause in zip(slept, WRITE_PAUSES, strict=False))


async def counted(first: int, items: int, closed: list[int], fails: bool = False) -> AsyncGenerator[int, None]:
    try:
        for number in range(first, first + items):
            await anyio.lowlevel.checkpoint()
            yield number
        if fails:
            raise ObjectNotFoundError(f"nothing after {first}")
    finally:
        closed.append(first)


@given(st.lists(st.integers(0, 20), max_size=6))
def test_streams_read_together_lose_and_double_nothing(sizes: list[int]) -> None:
    closed: list[int] = []

    async def run() -> list[int]:
        readers = [counted(100 * at, size, closed) for at, size in enumerate(sizes)]
        async with read_together(readers) as items:
            return [each async for each in items]

    found = anyio.run(run)
    assert sorted(found) == [100 * at + each for at, size in enumerate(sizes) for each in range(size)]
    assert all([each for each in found if each // 100 == at] == sorted(each for each in found if each // 100 == at)
               for at in range(len(sizes)))  # fmt: skip
    assert sorted(closed) == [100 * at for at in range(len(sizes))]


async def test_an_error_of_a_stream_is_raised_as_it_is_and_closes_the_others() -> None:
    closed: list[int] = []

    async def read() -> None:
        async with read_together([counted(0, 10**9, closed), counted(100, 3, closed, True)]) as items:
            async for _ in items:
                await anyio.lowlevel.checkpoint()

    with pytest.raises(ObjectNotFoundError, match="after 100"):
        await read()
    assert sorted(closed) == [0, 100]


async def test_leaving_closes_the_streams_and_what_runs_beside_them() -> None:
    closed: list[int] = []
    begun = anyio.Event()

    async def beside() -> None:
        try:
            begun.set()
            await anyio.sleep_forever()
        finally:
            closed.append(-1)

    async def parts() -> AsyncGenerator[int, None]:
        async with read_together([counted(0, 10**9, closed)], beside=beside) as items:
            async for each in items:
                yield each

    async with aclosing(parts()) as stream:
        assert await anext(stream) == 0
        await begun.wait()
    assert sorted(closed) == [-1, 0]


async def test_a_stream_is_read_one_item_ahead_and_no_further() -> None:
    read: list[int] = []

    async def reader() -> AsyncGenerator[int, None]:
        for number in range(100):
            read.append(number)
            yield number

    async with read_together([reader()]) as items:
        assert await anext(items) == 0
        await anyio.wait_all_tasks_blocked()
        assert len(read) <= 3
