"""Dates that do not fit their column are refused before they are sent; what the server takes is never refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OnFake, OnServer
from drivers.elasticsearch.test_objects import read

from dragoman_api import Filter, Insert, Json, OutcomeStatus
from dragoman_querydsl.columns.dates import check, respelled
from dragoman_querydsl.grid import clauses
from dragoman_querydsl.writing.edited_values import edited

if TYPE_CHECKING:
    from drivers.elasticsearch.rig import Rig

DEFAULT = "strict_date_optional_time||epoch_millis"
FITTING: list[tuple[str, Any]] = [
    (DEFAULT, "2024"), (DEFAULT, "2024-02"), (DEFAULT, "2024-02-29"), (DEFAULT, "2024-01-31T12:00:00Z"),
    (DEFAULT, "2024-01-31T12:00:00.123456789+02:00"), (DEFAULT, "2024-01-31T12"), (DEFAULT, 1706702400000),
    (DEFAULT, "1706702400000"), (DEFAULT, "-1"), ("yyyy-MM-dd", "2024-01-31"), ("yyyy/MM/dd HH:mm:ss||yyyy", "2024"),
    ("epoch_second", 17), ("yyyy'.'MM", "2024.01"), (DEFAULT, "2024-12"), (DEFAULT, "2024-12-31"),
    ("dd.MM.yyyy", "31.12.2024"), ("yyyy-MM", "2024-12"),
]  # fmt: skip
MISFITS: list[tuple[str, Any]] = [
    (DEFAULT, "soon"), (DEFAULT, "31.01.2024"), (DEFAULT, "2024-13-01"), (DEFAULT, "2023-02-29"), (DEFAULT, "2024-1-1"),
    (DEFAULT, "2024-01-31 12:00"), (DEFAULT, "2024-01-31T25:00:00Z"), (DEFAULT, True), (DEFAULT, ""),
    ("yyyy-MM-dd", "2024-01-31T12:00:00Z"), ("yyyy-MM-dd", 1706702400000), ("strict_date_optional_time", "1.5"),
    ("yyyy/MM/dd HH:mm:ss||yyyy", "2024-01"), (DEFAULT, ["2024", "soon"]), (DEFAULT, "2024-04-31"),
    (DEFAULT, "2024-00-01"), (DEFAULT, "2024-12-32"), ("dd.MM.yyyy", "00.12.2024"),
]  # fmt: skip


@pytest.mark.parametrize(("formats", "value"), FITTING)
def test_a_date_that_a_format_reads_passes(formats: str, value: Any) -> None:
    check(value, [formats])
    check([value, None], [formats])


@pytest.mark.parametrize(("formats", "value"), MISFITS)
def test_a_value_that_no_format_reads_is_refused_with_the_formats(formats: str, value: Any) -> None:
    with pytest.raises(ValueError, match="is not a date in the format ") as caught:
        check(value, [formats])
    assert " or ".join(formats.split("||")) in str(caught.value)


@pytest.mark.parametrize("formats", ["dd.MM.yy", "basic_week_date", "yyyy-MM-dd||EEE", "yyyyMMyyyy"])
def test_a_format_that_only_the_server_knows_refuses_nothing(formats: str) -> None:
    check("soon", [formats])
    check("soon", ["yyyy", formats])


@pytest.mark.parametrize(
    ("instant", "formats", "spelling"),
    [
        ("2024-12-31T00:00:00Z", ["dd.MM.yyyy"], "31.12.2024"),
        ("2024-12-01T00:00:00Z", ["yyyy-MM"], "2024-12"),
        ("2024-01-01T00:00:00Z", ["8uuuu"], "2024"),
        ("2024-01-31T12:30:45.12Z", ["yyyy/MM/dd HH:mm:ss.SSS"], "2024/01/31 12:30:45.120"),
        ("2024-01-31T12:30:45Z", ["yyyy/MM/dd HH:mm:ss.SSS"], "2024/01/31 12:30:45.000"),
        ("9999-12-31T23:59:59Z", ["epoch_second"], "253402300799"),
        ("1969-12-31T23:59:59.999000Z", ["epoch_millis"], "-1"),
        ("2024-01-31T00:00:00.5Z", ["epoch_millis"], "1706659200500"),
        # the first that spells all of it, of one mapping or of another
        ("2024-01-31T00:00:00Z", ["yyyy||yyyy-MM||dd.MM.yyyy||yyyy/MM/dd"], "31.01.2024"),
        ("2024-01-31T00:00:00Z", ["yyyy", "yyyy-MM", "dd.MM.yyyy"], "31.01.2024"),
        # a part that no format has
        ("2024-02-01T00:00:00Z", ["yyyy"], None),
        ("2024-01-31T00:00:00Z", ["yyyy-MM"], None),
        ("2024-01-31T01:00:00Z", ["yyyy-MM-dd"], None),
        ("2024-01-31T00:01:00Z", ["yyyy-MM-dd"], None),
        ("2024-01-31T00:00:01Z", ["yyyy-MM-dd HH:mm"], None),
        ("2024-01-31T00:00:00.001Z", ["yyyy-MM-dd HH:mm:ss"], None),
        ("2024-01-31T00:00:00.0001Z", ["yyyy-MM-dd HH:mm:ss.SSS"], None),
        ("2024-01-31T00:00:00.5Z", ["epoch_second"], None),
        ("2024-01-31T00:00:00.1234Z", ["epoch_millis"], None),
        # read as it is, by one of several, or by one that only the server knows
        ("2024-01-31T00:00:00Z", ["dd.MM.yyyy||strict_date_optional_time"], None),
        ("2024-01-31T00:00:00Z", ["dd.MM.yyyy", "strict_date_optional_time"], None),
        ("2024-01-31T00:00:00Z", ["basic_week_date||dd.MM.yyyy"], None),
        ("2024-01-31", ["dd.MM.yyyy"], None),
    ],
)
def test_an_instant_is_spelled_as_a_format_takes_all_of_it(
    instant: str, formats: list[str], spelling: str | None
) -> None:
    assert respelled(instant, formats) == (spelling or instant)


class Rules:
    """Run on the fake and on real servers."""

    async def test_the_server_takes_what_fits_and_refuses_what_does_not(self, es: Rig) -> None:
        for formats in dict.fromkeys(formats for formats, _ in [*FITTING, *MISFITS]):
            name = await es.index({"d": {"type": "date", "format": formats}})
            for values, fits in ((FITTING, True), (MISFITS, False)):
                for value in (value for each, value in values if each == formats):
                    if value == "-1" and es.version < (8, 0):  # left to the server, which takes only the number
                        continue
                    answer = await es.raw("POST", f"/{name}/_doc", {"d": value})
                    assert (answer.status < 300) is fits, (formats, value, answer.text)

    async def test_a_misfit_is_refused_in_the_plan_and_an_index_that_ignores_them_takes_it(self, es: Rig) -> None:
        name = await es.index({"d": {"type": "date"}})
        [refused] = await es.apply(Insert(name, {"d": "31.01.2024"}))
        assert (refused.status, "strict_date_optional_time or epoch_millis" in refused.reason) == (
            OutcomeStatus.REFUSED, True,
        )  # fmt: skip
        [refused] = await es.apply(Insert(name, {"d": Json('["2024", "soon"]')}))
        assert refused.status is OutcomeStatus.REFUSED
        lenient = await es.index({"d": {"type": "date", "ignore_malformed": True}})
        [applied] = await es.apply(Insert(lenient, {"d": "31.01.2024"}))
        assert applied.status is OutcomeStatus.APPLIED, applied.reason

    async def test_an_iso_date_finds_rows_of_a_column_with_another_format(self, es: Rig) -> None:
        days = ["31.01.2024", "01.02.2024", "01.03.2024"]
        name = await es.index({"d": {"type": "date", "format": "dd.MM.yyyy"}}, [{"d": day} for day in days])
        for row, found in (
            (Filter("d", "=", "2024-01-31"), ["0"]),
            (Filter("d", "!=", "2024-01-31"), ["1", "2"]),
            (Filter("d", "=", "2024-01-31T10:00:00Z"), []),
            (Filter("d", "in", "2024-01-31,01.03.2024"), ["0", "2"]),
            (Filter("d", ">", "2024-01-31"), ["1", "2"]),
            (Filter("d", ">=", "2024-02-01"), ["1", "2"]),
            (Filter("d", "between", "31.01.2024,2024-02-01"), ["0", "1"]),
            (Filter("d", "between", "2024-02,2024-03-01"), ["1", "2"]),
        ):
            assert sorted(await es.ids(name, row)) == found, row


def test_a_date_is_left_to_the_server_where_the_mapping_hides_its_format() -> None:
    found = read("x", None, {"indices": ["a"], "fields": {"d": {"date": {}}}}).fields["d"]
    assert clauses.typed(found, "31.01.2024") == "31.01.2024"
    assert edited(found, "31.01.2024") == "31.01.2024"


class TestOnFake(Rules, OnFake):
    """On the fake."""


class TestOnServer(Rules, OnServer):
    """On a real server."""
