"""JSON text: numbers keep their digits, and whatever cannot be decoded is one kind of error."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec import Raw
from msgspec.json import Decoder

from dragoman_api.cells import Json
from dragoman_api.json_text import check_once, decode, decode_once, encode


def test_numbers_keep_their_digits_and_raw_parts_their_bytes() -> None:
    assert encode({"a": Decimal("1.10"), "b": Raw(b'{"c" : 1e2}')}) == '{"a":1.10,"b":{"c" : 1e2}}'


UNDECODABLE = {
    "a key that is no UTF-8": b'{"\xb2":1}',
    "a text that is no UTF-8": b'{"a":"\xb2"}',
    "nested": b'{"a":' * 30_000 + b"1" + b"}" * 30_000,
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


TWICE = {
    "beside each other": '{"a":1,"a":1}',
    "apart, with blanks": '{ "a" : 1 , "b" : "x:y" , "a" : 2 }',
    "in an object": '{"o":{"p":[{"a":null,"a":{}}]}}',
    "in an array": '[1,{"a":1,"a":2}]',
    "one spelled otherwise": '{"a":1,"\\u0061":2}',
    "beside an escaped colon": '{"a":"\\u003a","a":"\\u003A"}',
    "empty": '{"":1,"":2}',
}


@pytest.mark.parametrize("text", TWICE.values(), ids=TWICE)
@pytest.mark.parametrize("kind", [object, Decoder()], ids=["type", "decoder"])
def test_a_name_that_occurs_twice_in_an_object_is_refused_instead_of_lost(text: str, kind: type | Decoder) -> None:
    with pytest.raises(ValueError, match=r"'a?' occurs twice"):
        decode_once(text, kind)
    with pytest.raises(ValueError, match=r"'a?' occurs twice"):
        check_once(text.encode())


@pytest.mark.parametrize(
    "text",
    ['{"a":{"a":1},"b":{"a":1}}', '[{"a":1},{"a":2}]', '{"A":1,"a":":::"}', '{"a:":"\\u003a"}', "18446744073709551616"],
)
def test_names_that_occur_once_in_each_object_are_decoded(text: str) -> None:
    assert decode_once(text, object) == decode(text, object)
    assert decode_once(text.encode(), Raw) == Raw(text.encode())


def test_a_number_of_any_length_hides_no_name() -> None:
    check_once(b'{"a":' + b"9" * 5_000 + b',"b":1}')
    with pytest.raises(ValueError, match="'a' occurs twice"):
        check_once(b'{"a":' + b"9" * 5_000 + b',"a":1}')


def test_members_that_stay_raw_are_compared_by_name_alone() -> None:
    assert decode_once('{"a":{"b":1,"b":2}}', dict[str, Raw]) == {"a": Raw(b'{"b":1,"b":2}')}
    with pytest.raises(ValueError, match="'a' occurs twice"):
        decode_once('{"a":1,"a":2}', dict[str, Raw])
