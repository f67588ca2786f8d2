"""How a table spells numbers, days, times and truths: what is proposed, what is read, and that no digit is lost."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from dragoman import preview_import
from dragoman.imports import readers
from dragoman.imports.checkpoints import read_checkpoint
from dragoman.imports.load_run import Load, LoadOptions
from dragoman.imports.loads import load
from dragoman.imports.readings import USUAL, field_reader, reading_named
from dragoman_api import Outcome, Plan
from dragoman_api.changes import HttpRequest, Insert, OutcomeStatus, PlannedRequest
from dragoman_api.columns import Column, ColumnKind, Description, Role
from dragoman_api.errors import ConfigurationError, ConnectionFailedError
from dragoman_api.events import ConnectionInfo
from dragoman_api.hookspecs import hookimpl
from dragoman_api.kit.writing import stored_value
from in_process import Here

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date
    from pathlib import Path

    from dragoman.imports.new_objects import ColumnProposal, TypeProposal

DIGITS = st.text("0123456789", min_size=1, max_size=60)


@given(st.integers(0, 10**40), st.none() | DIGITS, st.sampled_from(["", ".", " ", "\u00a0", "\u202f", "'", "\u2019"]),
       st.sampled_from(["", "-", "\u2212"]))  # fmt: skip
def test_a_number_keeps_every_digit_whatever_parts_its_thousands(
    whole: int, fraction: str | None, parting: str, sign: str
) -> None:
    plain = f"{'-' if sign else ''}{whole}{'' if fraction is None else f'.{fraction}'}"
    field = sign + f"{whole:,}".replace(",", parting) + ("" if fraction is None else f",{fraction}")
    assert field_reader("n", ("decimal-comma", "float")).respell(field) == plain
    if parting == ".":
        swapped = field.translate(str.maketrans(",.", ".,"))
        assert field_reader("n", ("decimal-point", "float")).respell(swapped) == plain
    assert Decimal(plain).as_tuple() == Decimal(field_reader("n", ("decimal-comma", "")).respell(field)).as_tuple()


@given(
    st.dates(),
    st.sampled_from(
        [
            ("day-first", "{d}.{m}.{y:04}"),
            ("day-first", "{d:02}/{m:02}/{y:04}"),
            ("day-first", "{d}. {m}. {y:04}"),
            ("month-first", "{m}/{d}/{y:04}"),
            ("year-first", "{y:04}/{m}/{d}"),
        ]
    ),
)
def test_a_day_is_read_in_its_order_and_no_other(day: date, spelling: tuple[str, str]) -> None:
    reading, form = spelling
    field = form.format(d=day.day, m=day.month, y=day.year)
    assert field_reader("d", (reading, "date")).respell(field) == day.isoformat()
    assert field_reader("d", (reading, "timestamp")).respell(field) == f"{day.isoformat()}T00:00:00Z"
    for other in {"day-first", "month-first"} - {reading} if reading != "year-first" else ():
        with suppress(ValueError):
            swapped = field_reader("d", (other, "date")).respell(field)
            assert swapped == day.replace(month=day.day, day=day.month).isoformat()


@given(st.text(max_size=12), st.sampled_from(USUAL), st.sampled_from([*ColumnKind, ""]))
def test_any_text_is_read_or_refused_with_its_column_and_what_was_expected(text: str, name: str, kind: str) -> None:
    reader, reason = field_reader("c", (name, kind)), ""
    try:
        assert isinstance(reader.respell(text), str)
    except ValueError as refused:
        reason = str(refused)
    expected = (f"its column 'c' holds {text!r}, which is not ", reading_named(name).expected)
    assert not reason or (reason.startswith(expected[0]) and expected[1] in reason)


@pytest.mark.parametrize(
    ("reading", "kind", "field", "value"),
    [
        ("decimal-comma", "integer", "9.007.199.254.740.993", "9007199254740993"),
        ("decimal-comma", "float", " -1.234,50 ", "-1234.50"), ("decimal-comma", "float", "1,5E+10", "1.5E+10"),
        ("decimal-comma", "float", "1.5", None), ("decimal-comma", "float", "1.23,4", None),
        ("decimal-comma", "float", "1.234 567,8", None), ("decimal-comma", "float", "007,5", None),
        ("decimal-comma", "float", "1.234E5", None), ("decimal-comma", "float", "1 234e-05", None),
        ("decimal-comma", "float", "1,234E-05", "1.234E-05"), ("decimal-point", "float", "1,234E5", None),
        ("decimal-comma", "float", "1.234,5.6", None), ("decimal-comma", "float", ",5", None),
        ("decimal-comma", "float", "\u0661,5", None), ("decimal-point", "float", "12,5", None),
        ("day-first", "date", "29.2.2024", "2024-02-29"), ("day-first", "date", "29.2.2025", None),
        ("day-first", "date", "1.4.26", None), ("day-first", "date", "1.4/2026", None),
        ("day-first", "date", "1.4.2026 12:00", None), ("day-first", "text", "1.4.2026", "2026-04-01"),
        ("day-first", "timestamp", "1.4.2026, 14:30:05,25", "2026-04-01T14:30:05.25Z"),
        ("day-first", "timestamp", "1.4.2026 14.30", "2026-04-01T14:30:00Z"),
        ("day-first", "timestamp", "1.4.2026 24:00", None), ("day-first", "timestamp", "1.4.2026 13:00 PM", None),
        ("month-first", "timestamp", "4/1/2026 12:05 AM", "2026-04-01T00:05:00Z"),
        ("month-first", "timestamp", "4/1/2026 12:05 p.m.", "2026-04-01T12:05:00Z"),
        ("year-first", "timestamp", "2026-04-01 14:30:05+02:00", "2026-04-01T14:30:05+02:00"),
        ("day-first@Europe/Berlin", "timestamp", "1.4.2026 14:30", "2026-04-01T14:30:00+02:00"),
        ("day-first@Europe/Berlin", "timestamp", "29.3.2026 02:30", None),
        ("day-first@Europe/Berlin", "timestamp", "25.10.2026 02:30", None),
        ("ja/nein", "boolean", "JA", "true"), ("ja/nein", "boolean", "yes", None),
        ("ja/nein", "boolean", f"ja{' ' * 1000}", None),
        ("s\u00ed/no", "boolean", "Si\u0301", "true"), ("x/", "boolean", "", "false"), ("x/", "boolean", "y", None),
    ],
)  # fmt: skip
def test_each_spelling_is_read_or_refused(reading: str, kind: str, field: str, value: str | None) -> None:
    reader = field_reader("c", (reading, kind))
    if value is None:
        with pytest.raises(ValueError, match="which is not"):
            reader.respell(field)
        return
    assert reader.respell(field) == value
    stored_value(Column(name="c", type="t", kind=ColumnKind(kind)), value)  # as drivers read it


def test_a_reading_that_is_none_is_refused_with_those_that_are() -> None:
    for name in ("comma", "day-first@", "day-first@../../etc/passwd", "day-first@Nowhere/Else", "/no", "a/b/c", "x/X"):
        with pytest.raises(ConfigurationError) as refused:
            reading_named(name)
        assert (refused.value.code, bool(refused.value.hint)) == ("value-invalid", True)


def proposal_of(folder: Path, *lines: str, **arguments: Any) -> TypeProposal:
    file = folder / "o.csv"
    file.write_text("".join(f"{line}\n" for line in lines))
    proposal = preview_import(file, object="o", delimiter=";", **arguments).proposal
    assert proposal is not None
    return proposal


def column_of(folder: Path, *fields: str, **arguments: Any) -> ColumnProposal:
    return proposal_of(folder, "n;k", *(f"{field};" for field in fields), **arguments).columns[0]


@pytest.mark.parametrize(
    ("fields", "reading", "kind"),
    [
        (["12,5", "1.234,50"], "decimal-comma", "float"), (["1.234.567", "3"], "decimal-comma", "integer"),
        (["1,234.5", "2"], "decimal-point", "float"), (["1'234.50"], "decimal-point", "float"),
        (["1 234", "5"], "decimal-comma", "integer"), (["1'234", "5"], "decimal-point", "integer"),
        (["01.04.2026", "13.04.2026"], "day-first", "date"), (["4/1/2026", "4/13/2026"], "month-first", "date"),
        (["13.4.2026", "1.4.2026 14:30"], "day-first", "timestamp"),
        (["2026-04-01 14:30:00"], "year-first", "timestamp"), (["ja", "Nein"], "ja/nein", "boolean"),
        (["no", "sí"], "sí/no", "boolean"), (["1", "0"], "", "integer"), (["x", ""], "", "text"), (["ja"], "", "text"),
        (["1.5", "2"], "", "float"), (["1.234", "5.678"], "", "float"), (["+491701234567"], "", "text"),
        (["01234", "12345"], "", "text"), (["1.4.26"], "", "text"), (["12345678901234567,5"], "", "text"),
        (["192.168.100.101", "10.255.199.200"], "", "text"),
        (["192.168.100.101", "1.234.567"], "decimal-comma", "integer"),
    ],
)  # fmt: skip
def test_a_reading_is_proposed_if_some_value_settles_it(
    tmp_path: Path, fields: list[str], reading: str, kind: str
) -> None:
    column = column_of(tmp_path, *fields)
    assert (column.reading, str(column.type), column.doubt) == (reading, kind, "")
    assert not column.misfits
    assert (column.reading in [choice.reading for choice in column.readings]) is bool(reading)


@pytest.mark.parametrize(
    ("fields", "names"),
    [(["1/4/2026", "12.12.2026"], "day-first|month-first"), (["1,234", "5"], "decimal-comma|decimal-point")],
)
def test_what_no_value_settles_is_in_doubt_and_stays_text(tmp_path: Path, fields: list[str], names: str) -> None:
    column = column_of(tmp_path, *fields)
    assert (column.reading, column.type, column.likely_reading) == ("", "text", names)
    assert f"{fields[0]!r} can be {names.replace('|', ' or ')}" in column.doubt
    first, second = names.split("|")
    values = [column_of(tmp_path, *fields, readings={"n": reading}) for reading in (first, second)]
    assert [(column.consent, column.doubt, column.reading) for column in values] == [
        (True, "", first),
        (True, "", second),
    ]
    assert [[choice.reading for choice in column.readings] for column in values] == [[first, second]] * 2
    assert values[0].readings[0].value != values[0].readings[1].value


def test_a_point_is_in_doubt_once_another_column_has_decimal_commas(tmp_path: Path) -> None:
    columns = proposal_of(tmp_path, "a;b;c", "12,5;1.234;1.5", "3;5;2").columns
    assert [(column.reading, str(column.type)) for column in columns] == [
        ("decimal-comma", "float"), ("", "text"), ("", "float"),
    ]  # fmt: skip
    assert columns[1].doubt == "the point in '1.234' may part thousands: decimal-comma, or plain"
    nearly = proposal_of(tmp_path, "a;b", *(f"{at},5;1.234" for at in range(30)), "n/a;1.234").columns
    assert (nearly[0].nearly_reading, nearly[1].doubt) == ("decimal-comma", columns[1].doubt)
    points = proposal_of(tmp_path, "a;b", "1,234.5;1.234", "n/a;2").columns
    assert (points[1].type, points[1].doubt) == ("float", "")
    said = proposal_of(tmp_path, "a;b", "12,5;1.234", readings={"b": "plain"}).columns[1]
    assert (said.type, said.doubt) == ("float", "")
    typed = proposal_of(tmp_path, "a;b", "12,5;1.234", types={"b": "integer"}).columns[1]
    assert (typed.reading, typed.doubt) == ("decimal-comma", "")  # no integer has a point
    assert column_of(tmp_path, "x", "Böttcher", "Ärzte").readings == ()


def test_a_reading_that_fits_nearly_all_values_is_named_and_a_said_one_says_what_is_rejected(tmp_path: Path) -> None:
    fields = [f"{at},5" for at in range(30)]
    column = column_of(tmp_path, *fields, "n/a")
    assert (column.type, column.nearly, column.nearly_reading, column.misfits) == (
        "text", "float", "decimal-comma", ("n/a",),
    )  # fmt: skip
    said = column_of(tmp_path, *fields, "n/a", readings={"n": "decimal-comma"})
    assert (said.type, said.misfits, said.source, said.consent) == ("float", ("n/a",), "rows", True)
    assert column_of(tmp_path, "12,5", types={"n": "float"}).reading == "decimal-comma"
    assert column_of(tmp_path, "12,5", types={"n": "text"}).reading == ""


def test_readings_that_no_column_takes_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    for arguments, code in (
        ({"readings": {"m": "decimal-comma"}}, "column-unknown"), ({"readings": {"n": "coma"}}, "value-invalid"),
        ({"readings": {"n": "ja/nein"}, "types": {"n": "float"}}, "value-invalid"),
        ({"readings": {"n": "ja/nein"}, "id": "n"}, "value-invalid"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError) as refused:
            column_of(tmp_path, "ja", **arguments)
        assert refused.value.code == code


# loads ----------------------------------------------------------------------------------------------------------------

COLUMNS = [
    Column(name="id", type="keyword", kind=ColumnKind.TEXT, role=Role.KEY),
    Column(name="price", type="double", kind=ColumnKind.FLOAT),
    Column(name="pieces", type="long", kind=ColumnKind.INTEGER),
    Column(name="day", type="date", kind=ColumnKind.TIMESTAMP),
    Column(name="paid", type="boolean", kind=ColumnKind.BOOLEAN),
    Column(name="name", type="text", kind=ColumnKind.TEXT),
    Column(name="more", type="object", kind=ColumnKind.JSON, path=("more",)),
]


class Shelf:
    """Rows in memory, as a driver stores them.

    Attributes:
        rows: The values of the rows, by id.
        ends: The connection ends before the request of this number, from 1.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.ends = 0
        self._requests = 0

    @hookimpl
    async def describe_object(self, name: str) -> Description:
        return Description(object=name, columns=COLUMNS)

    @hookimpl
    async def plan_change(self, request: Any) -> Plan:
        columns, sent, refusals = {column.name: column for column in COLUMNS}, [], []
        for at, change in enumerate(request.changes):
            try:
                for name, value in change.values.items():
                    stored_value(columns[name], value)
                sent.append(at)
            except ValueError as error:
                refusals.append(Outcome(change=at, status=OutcomeStatus.REFUSED, reason=str(error)))
        planned = PlannedRequest(request=HttpRequest("POST", "/", "{}"), changes=sent, rows=[[at] for at in sent])
        return Plan(planned=[planned] if sent else [], refusals=refusals)

    @hookimpl
    async def apply_change(self, plan: Plan) -> list[Outcome]:
        self._requests += 1
        if self._requests == self.ends:
            raise ConnectionFailedError("it ended", details={"sent": False})
        columns = {column.name: column for column in COLUMNS}
        for at in plan.planned[0].changes:
            change = plan.changes[at]
            assert isinstance(change, Insert)
            values = {name: stored_value(columns[name], value) for name, value in change.values.items()}
            self.rows[str(change.id)] = values
        return [Outcome(change=at, status=OutcomeStatus.APPLIED) for at in plan.planned[0].changes]

    def session(self) -> Any:
        here = Here(self)
        here.info = ConnectionInfo(name="shop", type="memory", host="h", port=1)
        return here.session()


EUROPEAN = (
    "id;price;pieces;day;paid;name",
    '1;12,5;9.007.199.254.740.993;01.04.2026;ja;"1,5"',
    "2;1.234,50;7;13.04.2026;nein;n",
)
SAID = {"price": "decimal-comma", "pieces": "decimal-comma", "day": "day-first", "paid": "ja/nein"}
STORED = {
    "1": {"price": Decimal("12.5"), "pieces": 9007199254740993, "day": "2026-04-01T00:00:00Z", "paid": True,
          "name": "1,5"},
    "2": {"price": Decimal("1234.50"), "pieces": 7, "day": "2026-04-13T00:00:00Z", "paid": False, "name": "n"},
}  # fmt: skip


def table(folder: Path, *lines: str) -> Path:
    file = folder / "t.csv"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def rejected(file: Path) -> list[dict[str, Any]]:
    lines = file.with_name(f"{file.name}.rejected.ndjson").read_text().splitlines()
    return [json.loads(line) for line in lines]


async def test_fields_are_read_into_an_object_that_exists_as_the_caller_says(tmp_path: Path) -> None:
    shelf, file = Shelf(), table(tmp_path, *EUROPEAN, "3;n/a;1;1.5.2026;ja;", "4;1,5;1;1.5.2026;yes;")
    report = await load(shelf.session(), "t", file=file, delimiter=";", readings=SAID)
    assert shelf.rows == STORED
    assert (report.counts["applied"], report.counts["refused"], report.rows) == (2, 2, 4)
    assert [(row["row"], row["reason"]) for row in rejected(file)] == [
        (3, "its column 'price' holds 'n/a', which is not a number with a decimal comma, such as 1.234,5"),
        (4, "its column 'paid' holds 'yes', which is not 'ja' or 'nein'"),
    ]
    assert rejected(file)[0]["data"]["day"] == "1.5.2026"
    assert report.proposal is not None
    assert {column.column: column.reading for column in report.proposal.columns} == SAID


async def test_nothing_is_sent_before_somebody_has_said_how_fields_are_read(tmp_path: Path) -> None:
    shelf, file = Shelf(), table(tmp_path, *EUROPEAN)
    with pytest.raises(ConfigurationError) as refused:
        await load(shelf.session(), "t", file=file, delimiter=";")
    assert (refused.value.code, shelf.rows) == ("readings-unconfirmed", {})
    assert repr(SAID) in refused.value.hint
    report = await load(shelf.session(), "t", file=file, delimiter=";", readings=dict.fromkeys(SAID, "plain"))
    assert (report.counts["refused"], report.proposal) == (2, None)
    doubtful = table(tmp_path, "id;day", "1;1/4/2026")
    with pytest.raises(ConfigurationError, match="'1/4/2026' can be day-first or month-first") as refused:
        await load(shelf.session(), "t", file=doubtful, delimiter=";")
    assert "{'day': 'day-first|month-first'}" in refused.value.hint


async def test_a_reading_that_fits_nearly_all_values_of_a_number_column_is_asked_for(tmp_path: Path) -> None:
    shelf, file = Shelf(), table(tmp_path, "id;price", *(f"{at};{at},5" for at in range(30)), "x;n/a")
    doubt = "30 of 31 values fit decimal-comma, though 'n/a' does not; fewer fit plain"
    with pytest.raises(ConfigurationError, match=doubt) as refused:
        await load(shelf.session(), "t", file=file, delimiter=";")
    assert (refused.value.code, shelf.rows) == ("readings-unconfirmed", {})
    assert "{'price': 'decimal-comma'}" in refused.value.hint
    report = await load(shelf.session(), "t", file=file, delimiter=";", readings={"price": "decimal-comma"})
    assert (report.counts["applied"], report.counts["refused"]) == (30, 1)
    mostly = table(tmp_path, "id;price", *(f"{at};{at}.5" for at in range(30)), "x;12,5")
    report = await load(Shelf().session(), "t", file=mostly, delimiter=";")
    assert (report.counts["applied"], report.counts["refused"]) == (30, 1)


async def test_what_a_person_confirms_is_what_is_read(tmp_path: Path) -> None:
    shelf, shown, file = Shelf(), [], table(tmp_path, *EUROPEAN)

    async def confirm(proposal: TypeProposal) -> None:
        shown.append({column.column: (column.reading, column.source) for column in proposal.unsaid})

    await Load(shelf.session(), "t", file, options=LoadOptions(delimiter=";"), confirm_types=confirm).run()
    assert shown == [{name: (reading, "object") for name, reading in SAID.items()}]
    assert shelf.rows == STORED


async def test_plain_tables_and_exports_are_confirmed_by_nobody(tmp_path: Path) -> None:
    shelf, file = (
        Shelf(),
        table(tmp_path, "id;price;day;paid", "1;12.5;2026-04-01T00:00:00Z;true", "2;;2026-04-01;false"),
    )
    assert (await load(shelf.session(), "t", file=file, delimiter=";")).counts["refused"] == 1  # the driver's word


def raising(_proposal: object) -> None:
    raise AssertionError("a resumed load asks nobody")


async def test_a_resumed_load_reads_on_as_it_began(tmp_path: Path) -> None:
    shelf, file = Shelf(), table(tmp_path, *EUROPEAN)
    shelf.ends = 2

    async def agree(_proposal: TypeProposal) -> None:
        return

    def run(confirm: Callable[..., Any], **options: Any) -> Any:
        wishes = LoadOptions(delimiter=";", batch=1, **options)
        return Load(shelf.session(), "t", file, options=wishes, confirm_types=confirm).run()

    with pytest.raises(ConnectionFailedError):
        await run(agree)
    checkpoint = await to_thread.run_sync(read_checkpoint, file)
    assert checkpoint is not None
    assert checkpoint.identity["readings"]["day"] == ["day-first", "timestamp"]
    with pytest.raises(ConfigurationError) as refused:
        await run(raising, resume=True, readings={"day": "month-first"})
    assert (refused.value.code, "read 'day' as day-first, not as month-first" in refused.value.message) == (
        "resume-refused", True,
    )  # fmt: skip
    report = await run(raising, resume=True)
    assert (shelf.rows, report.resumed, report.complete) == (STORED, 1, True)


async def test_a_dry_run_says_which_rows_do_not_fit_their_reading(tmp_path: Path) -> None:
    shelf, file = Shelf(), table(tmp_path, *EUROPEAN, "3;n/a;1;1.5.2026;ja;")
    report = await load(shelf.session(), "t", file=file, delimiter=";", readings=SAID, dry_run=True)
    assert (report.counts["refused"], shelf.rows) == (1, {})
    assert [note.reason for note in report.notes if note.code == "row-refused"] == [
        "row 3: its column 'price' holds 'n/a', which is not a number with a decimal comma, such as 1.234,5"
    ]


async def test_an_empty_field_is_false_only_if_the_reading_says_so(tmp_path: Path) -> None:
    shelf, file = Shelf(), table(tmp_path, "id;paid;name", "1;x;", "2;;b")
    await load(shelf.session(), "t", file=file, delimiter=";", readings={"paid": "x/"})
    assert shelf.rows == {"1": {"paid": True}, "2": {"paid": False, "name": "b"}}


async def test_a_reading_goes_with_its_column_under_a_new_name_and_not_into_a_file_of_values(tmp_path: Path) -> None:
    shelf, file = Shelf(), table(tmp_path, "id;Preis", "1;1,5")
    renamed = {"Preis": "price"}
    await load(shelf.session(), "t", file=file, delimiter=";", renamed=renamed, readings={"Preis": "decimal-comma"})
    assert shelf.rows == {"1": {"price": Decimal("1.5")}}
    lines = tmp_path / "t.ndjson"
    lines.write_text('{"price": "1,5"}\n')
    with pytest.raises(ConfigurationError, match="the file is read as documents"):
        await load(shelf.session(), "t", file=lines, readings={"price": "decimal-comma"})


async def test_a_reading_is_refused_where_it_could_not_reach_the_fields(tmp_path: Path) -> None:
    shelf, parts = Shelf(), table(tmp_path, "id;n", "1;1.234")
    for names in ({"n": "more.a"}, {"n.a": "more.a"}):
        with pytest.raises(ConfigurationError) as refused:
            await load(
                shelf.session(), "t", file=parts, delimiter=";", renamed=names, readings={"n": "decimal-comma"}
            )  # fmt: skip
        assert (refused.value.code, "'n'" in refused.value.message, shelf.rows) == ("value-invalid", True, {})


async def test_a_resumed_load_of_an_export_reads_on_as_it_began(tmp_path: Path) -> None:
    shelf, file = Shelf(), table(tmp_path, "id,price", '1,"1,5"', '2,"2,5"')
    data = file.read_bytes()
    file.with_name("t.csv.manifest.json").write_text(json.dumps({"format": "csv", "bytes": len(data)}))
    shelf.ends = 2
    with pytest.raises(ConnectionFailedError):
        await load(shelf.session(), "t", file=file, batch=1, readings={"price": "decimal-comma"})
    report = await load(shelf.session(), "t", file=file, batch=1, resume=True)
    assert (shelf.rows, report.complete) == ({"1": {"price": Decimal("1.5")}, "2": {"price": Decimal("2.5")}}, True)


LARGE = ("id;price;name", *(f"{at};{at},5;{'x' * 400}" for at in range(9)))


def test_of_large_rows_fewer_are_looked_at_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "AHEAD_BYTES", 1_000)
    proposal = proposal_of(tmp_path, *LARGE)
    assert (proposal.rows, proposal.whole, proposal.columns[1].reading) == (3, False, "decimal-comma")
    preview = preview_import(tmp_path / "o.csv", delimiter=";")
    assert (len(preview.rows), preview.whole) == (3, False)


async def test_rows_that_were_not_looked_at_are_loaded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "AHEAD_BYTES", 1_000)
    shelf, file = Shelf(), table(tmp_path, *LARGE)
    report = await load(shelf.session(), "t", file=file, delimiter=";", readings={"price": "decimal-comma"})
    assert (report.counts["applied"], [row["price"] for row in shelf.rows.values()]) == (
        9, [Decimal(f"{at}.5") for at in range(9)],
    )  # fmt: skip
    assert report.proposal is not None
    assert (report.proposal.rows, report.proposal.whole) == (3, False)
