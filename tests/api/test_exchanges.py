"""Exchanges: what is yielded is sent, what is answered comes back, an error is the exchange's to handle."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from msgspec import Raw

from dragoman_api.errors import DragomanError, ObjectNotFoundError
from dragoman_api.exchanges import carry_out, encode

if TYPE_CHECKING:
    from collections.abc import Generator


async def _double(asked: int) -> int:
    if asked < 0:
        raise ObjectNotFoundError(f"nothing at {asked}")
    return asked * 2


async def test_an_exchange_gets_the_answer_to_what_it_asks_and_gives_its_result() -> None:
    def exchange() -> Generator[int, int, str]:
        first = yield 1
        second = yield first
        return f"{first} {second}"

    assert await carry_out(exchange(), _double) == "2 4"


async def test_an_exchange_may_handle_an_error_of_the_sending_and_ask_again() -> None:
    def exchange() -> Generator[int, int, int]:
        try:
            return (yield -1)
        except ObjectNotFoundError:
            return (yield 5)

    assert await carry_out(exchange(), _double) == 10


async def test_an_error_that_an_exchange_lets_through_is_raised_and_closes_it() -> None:
    closed = []

    def exchange() -> Generator[int, int, int]:
        try:
            return (yield -1)
        finally:
            closed.append(True)

    with pytest.raises(DragomanError, match="nothing at -1"):
        await carry_out(exchange(), _double)
    assert closed


async def test_what_breaks_the_sending_otherwise_closes_the_exchange() -> None:
    closed = []

    def exchange() -> Generator[int, int, int]:
        try:
            return (yield 1)
        finally:
            closed.append(True)

    async def broken(asked: int) -> int:
        raise OSError(asked)

    with pytest.raises(OSError, match="1"):
        await carry_out(exchange(), broken)
    assert closed


def test_numbers_keep_their_digits_and_raw_parts_their_bytes() -> None:
    assert encode({"a": Decimal("1.10"), "b": Raw(b'{"c" : 1e2}')}) == '{"a":1.10,"b":{"c" : 1e2}}'
