"""Exchanges: what is yielded is sent, what is answered comes back, an error is the exchange's to handle."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Raw
from msgspec.json import Decoder

from dragoman_api.cells import Json
from dragoman_api.errors import DragomanError, ObjectNotFoundError, QueryError
from dragoman_api.exchanges import carry_out, decode, encode

if TYPE_CHECKING:
    from collections.abc import Generator

    from wording import Wording


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

    with pytest.raises(DragomanError, match="-1"):
        await carry_out(exchange(), _double)
    assert closed


@pytest.mark.parametrize("answer", ["text", None, {"a": []}, {"a": {"b": "1" * 5_000}}])
async def test_an_answer_of_another_form_is_told_as_the_servers(wording: Wording, answer: Any) -> None:
    def exchange() -> Generator[int, Any, int]:
        return int((yield 1)["a"]["b"])

    async def send(asked: int) -> Any:
        return answer

    with pytest.raises(QueryError) as caught:
        await carry_out(exchange(), send)
    wording(caught.value.hint)


async def test_a_fault_before_the_first_answer_is_the_drivers_own() -> None:
    def exchange() -> Generator[int, int, int]:
        yield {}["a"]  # type: ignore[misc]

    with pytest.raises(KeyError):
        await carry_out(exchange(), _double)


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


UNDECODABLE = {
    "a key that is no UTF-8": b'{"\xb2":1}',
    "a text that is no UTF-8": b'{"a":"\xb2"}',
    "nested": b'{"a":' * 3_000 + b"1" + b"}" * 3_000,
    "a number of 5,000 digits": b"9" * 5_000,
    "a number beyond floats": b"1e999",
    "cut": b'{"a":',
    "nothing": b"",
    "of another form": b"[1]",
}


@pytest.mark.parametrize("text", UNDECODABLE.values(), ids=UNDECODABLE)
@pytest.mark.parametrize("kind", [dict[str, object], Decoder(dict[str, object])], ids=["type", "decoder"])
def test_whatever_cannot_be_decoded_is_one_kind_of_error(text: bytes, kind: type | Decoder) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode(text, kind)


def test_what_a_reader_did_not_name_a_type_for_is_decoded_as_it_comes() -> None:
    assert decode(b'{"a":[1,2.5,null]}', dict[str, object]) == {"a": [1, 2.5, None]}
    assert decode("18446744073709551616", object) == 2**64
    assert decode(Json("[1]"), object) == [1]


def test_what_stays_raw_is_sound_all_the_same() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        decode(b'{"a":["\xb2"]}', dict[str, Raw])
    with pytest.raises(ValueError, match="surrogates"):
        decode('"\udce9"', Raw)
