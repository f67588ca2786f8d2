"""Operands of filter rows: read as typed, or refused with a reason; nothing is guessed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.kit import operands

INTEGERS = st.integers(-(2**70), 2**70)
ANYTHING = (
    st.none() | st.booleans() | INTEGERS | st.floats() | st.text() | st.lists(st.text() | INTEGERS) | st.decimals()
)
READERS = [
    operands.several, operands.bounds, operands.single, operands.integer, operands.decimal, operands.floating,
    operands.boolean, operands.timestamp, operands.instant, operands.day, operands.uuid, operands.text,
]  # fmt: skip


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@given(ANYTHING)
def test_whatever_is_no_operand_is_refused_with_a_short_reason(read, value):
    reason = "no reason"
    try:
        read(value)
    except ValueError as error:
        reason = str(error)
    assert 0 < len(reason) < 400


@given(INTEGERS, st.booleans())
def test_an_integer_keeps_its_digits_or_has_too_many_bits(number, signed):
    low, high = (-(2**63), 2**63) if signed else (0, 2**64)
    for value in (number, str(number), f" {number} "):
        if low <= number < high:
            assert operands.integer(value, signed=signed) == number
        else:
            with pytest.raises(ValueError, match=r"bits|below"):
                operands.integer(value, signed=signed)


@pytest.mark.parametrize(("low", "signed"), [(-(2**63), True), (0, False)])
def test_the_ends_of_a_type_are_in_it(low, signed):
    for edge, beyond in ((low, low - 1), (low + 2**64 - 1, low + 2**64)):
        assert operands.integer(edge, signed=signed) == edge
        with pytest.raises(ValueError, match=r"bits|below"):
            operands.integer(beyond, signed=signed)


@pytest.mark.parametrize("value", [True, 1.5, "1.0", "1_000", "٣", "", "0x10", None, [1], float("inf"), "9" * 5000])
def test_what_is_no_integer(value):
    with pytest.raises(ValueError, match="not an integer"):
        operands.integer(value)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_keeps_its_value(number):
    if abs(number.adjusted()) > 4_000:
        return
    assert operands.decimal(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_keeps_its_value(number):
    assert operands.floating(number) == operands.floating(repr(number)) == number
    assert operands.decimal(number) == Decimal(repr(number))


@pytest.mark.parametrize("value", ["nan", "inf", "1_0", "1e400", 10**400, True, "", float("nan"), float("-inf"), None])
def test_what_is_no_finite_number(value):
    with pytest.raises(ValueError, match="number"):
        operands.floating(value)


def test_booleans_are_words_and_digits_only_where_asked():
    assert [operands.boolean(each) for each in (True, "TRUE", "false")] == [True, True, False]
    assert [operands.boolean(each, digits=True) for each in (1, "0")] == [True, False]
    for value in (1, "0", "yes", None, ""):
        with pytest.raises(ValueError, match="neither"):
            operands.boolean(value)


ZONES = st.integers(-720, 720).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.builds(
    lambda seconds, parts, zone: datetime.fromtimestamp(seconds, zone) + timedelta(microseconds=parts),
    st.integers(-(10**10), 10**11),
    st.integers(0, 999_999),
    ZONES,
)


@given(MOMENTS, MOMENTS)
def test_time_stamps_compare_as_the_instants_that_they_are(one, other):
    texts = [each.isoformat() for each in (one, other)]
    assert [operands.timestamp(f" {text} ") for text in texts] == texts
    found = [operands.instant(text) for text in texts]
    assert (found[0] < found[1], found[0] == found[1]) == (one < other, one == other)
    assert operands.instant(one.astimezone(UTC).isoformat().replace("+00:00", "Z")) == found[0]


@pytest.mark.parametrize(
    "value",
    ["2024", "2024-01-31", "2024-01-31T12:00:00", "2024-02-30T12:00:00Z", "2024-01-31t12:00:00z",
     "2024-01-31T24:00:01Z", "2024-01-31T12:00Z", "2024-01-31T12:00:00+25:00", "2024-01-31T12:00:00,5Z", None],
)  # fmt: skip
def test_what_is_no_time_stamp(value):
    with pytest.raises(ValueError, match="RFC 3339"):
        operands.timestamp(value)


def test_a_day_is_one_of_the_calendar():
    assert operands.day(" 2024-02-29 ") == "2024-02-29"
    for value in ("2023-02-29", "2024-2-9", "20240209", "2024-W01-1"):
        with pytest.raises(ValueError, match="not a day"):
            operands.day(value)


@given(st.uuids())
def test_a_uuid_has_one_form(key):
    assert operands.uuid(str(key)) == operands.uuid(f" {str(key).upper()} ") == operands.uuid(key.hex) == str(key)


@given(st.text(st.characters() | st.sampled_from("\ud800\udfff")))
def test_a_text_is_sent_as_it_is_or_not_at_all(text):
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert operands.text(text) == text
        return
    with pytest.raises(ValueError, match="not valid Unicode"):
        operands.text(text)


@given(st.lists(st.text(st.characters(exclude_characters=",", exclude_categories=["Z", "C"]), min_size=1), min_size=1))
def test_a_list_is_the_same_typed_with_commas_or_passed(parts):
    assert operands.several(" , ".join(parts)) == operands.several(parts) == parts


@pytest.mark.parametrize("value", ["", [], "a,,b", ",", ["a", ""]])
def test_a_list_with_a_gap_is_refused(value):
    with pytest.raises(ValueError, match="empty"):
        operands.several(value)


def test_an_empty_text_is_a_value_only_where_it_may_be_one():
    assert operands.several("", empty=True) == [""]
    assert operands.several(["a", ""], empty=True) == ["a", ""]
    for value in ("a,", []):
        with pytest.raises(ValueError, match="empty"):
            operands.several(value, empty=True)


@pytest.mark.parametrize("value", ["1", "1,2,3", "1,", [1], [1, None], None, ""])
def test_between_takes_two_bounds(value):
    assert operands.bounds("1, 2") == ["1", "2"]
    with pytest.raises(ValueError, match="two bounds"):
        operands.bounds(value)


def test_an_empty_text_is_a_bound_only_in_a_list():
    assert operands.bounds(["", "b"]) == ["", "b"]


@pytest.mark.parametrize("value", [None, [], ["a"], {}])
def test_one_value_is_neither_none_nor_several(value):
    assert operands.single(0) == 0
    with pytest.raises(ValueError, match="one value"):
        operands.single(value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(True, "true"), (None, "null"), (Decimal("1.5"), "1.5"), (["a", 2], "'a', 2"), ("x\n", "'x\\n'")],
)
def test_a_refused_operand_is_shown_as_a_person_types_it(value, shown):
    with pytest.raises(ValueError, match="is not a day") as caught:
        operands.day(value)
    assert str(caught.value).startswith(f"{shown} is not a day")


@pytest.mark.parametrize(
    ("text", "number"), [("1.234,5", "1234.5"), ("1,5", "1.5"), ("-1 234 567,25", "-1234567.25"), ("1'234,5", "1234.5")]
)
def test_a_number_with_a_decimal_comma_is_refused_with_the_number_it_may_mean(text, number):
    with pytest.raises(ValueError, match=f"is not a number.*{re.escape(number)}$"):
        operands.decimal(text)
    with pytest.raises(ValueError, match=r"is not a number$"):
        operands.decimal("1,2,3")


def test_limits_of_digits_are_in_the_range():
    assert repr(operands.decimal("9" * 40)) == "9" * 40
    assert operands.decimal(f"1{'0' * 40}") == Decimal(f"1{'0' * 40}")
    assert isinstance(operands.decimal(f"1{'0' * 40}"), Decimal)
    at = "2024-01-31T12:00:00"
    assert operands.timestamp(f"{at}.{'1' * 15}Z").endswith("1Z")
    with pytest.raises(ValueError, match="RFC 3339"):
        operands.timestamp(f"{at}.{'1' * 16}Z")
    assert operands.bounds((1, 2)) == operands.several((1, 2)) == [1, 2]


def test_a_text_is_what_json_would_spell():
    assert [*map(operands.text, (True, False, "True", 1.5, 0))] == ["true", "false", "True", "1.5", "0"]
