"""Loads over a table in memory: the second batch, an id twice, lost answers, and a process that ends at any request."""

from __future__ import annotations

import json
import os
import random
from contextlib import suppress
from copy import deepcopy
from hashlib import sha256
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio
import pytest
from anyio import to_thread
from msgspec.structs import replace

from dragoman.changes.files import read_line
from dragoman.imports.checkpoints import AppendedFile, LoadCheckpoint, checkpoint_path, read_checkpoint
from dragoman.imports.load_run import Load, LoadOptions
from dragoman.imports.loads import load
from dragoman.imports.sources import digest_of
from dragoman.sessions.driver_calls import unknown
from dragoman.spellings import spell_id
from dragoman_api import Insert, Outcome, Plan, RowKey
from dragoman_api.changes import Delete, HttpRequest, OutcomeStatus, PlannedRequest
from dragoman_api.columns import Column, ColumnKind, Description, Note, Role
from dragoman_api.errors import (
    ConfigurationError,
    ConnectionFailedError,
    DriverFaultError,
    QueryError,
)
from dragoman_api.events import ConnectionInfo
from dragoman_api.hookspecs import hookimpl
from dragoman_api.kit.row_changes import Outcomes
from dragoman_worker.service import KeptPlans
from dragoman_worker.wire import PLAN_DROPPED
from in_process import Here

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman.imports.load_run import LoadReport
    from dragoman.sessions.session import Session

COLUMNS = [
    Column(name="id", type="keyword", kind=ColumnKind.TEXT, role=Role.KEY, path=("id",)),
    Column(name="n", type="long", kind=ColumnKind.INTEGER, path=("n",)),
    Column(name="m", type="long", kind=ColumnKind.INTEGER, path=("m",)),
    Column(name="sku", type="keyword", kind=ColumnKind.TEXT, path=("sku",)),
]


class Table:
    """Rows in memory and what lay on disk when each request came.

    Attributes:
        rows: The number of each row by its id.
        requests: The numbers of the rows of each request, in the order of their arrival.
        failures: What becomes of the next requests: called with the plan and what carries it out; None for all is well.
        moments: A copy of the folder and of the rows before and after each request was carried out.
    """

    def __init__(self, file: Path, *, rows: dict[str, int] | None = None) -> None:
        self.file, self.rows = file, rows or {}
        self.requests: list[list[int]] = []
        self.failures: list[Callable[[Plan, Callable[[Plan], list[Outcome]]], list[Outcome]] | None] = []
        self.moments: list[tuple[dict[str, bytes], dict[str, int]]] = []
        self.lasts: list[bool] = []
        self.largest = 1_000
        self.plans = KeptPlans()  # as in a driver's process
        self.forgets: Callable[[], bool] = lambda: False

    columns: Sequence[Column] = tuple(COLUMNS)
    key: tuple[str, ...] = ()

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=[*self.columns])

    @hookimpl
    async def plan_change(self, request):
        if len(request.changes) > self.largest:
            raise QueryError("too many", code="plan-too-large")
        self.lasts.append(request.last)
        ids = [self.row_of(change) for change in request.changes if self.row_of(change) is not None]
        assert len(ids) == len({*ids})  # of two rows with one id, the first has its outcome before the second is sent
        numbers = [_number(change) for change in request.changes]
        refusals = [
            Outcome(change=at, status=OutcomeStatus.REFUSED, reason="unlucky")
            for at, number in enumerate(numbers)
            if number == 13
        ]
        sent = [at for at, number in enumerate(numbers) if number != 13]
        body = json.dumps([numbers[at] for at in sent])
        planned = PlannedRequest(request=HttpRequest("POST", "/rows", body), changes=sent, rows=[[at] for at in sent])
        undo = [self._undo(request.changes[at]) for at in sent] if request.undo else []
        notes = [Note(code="remark", reason=f"of {'odd' if number % 2 else 'even'}") for number in numbers]
        plan = Plan(planned=[planned] if sent else [], refusals=refusals, undo=undo, notes=notes)
        return self.plans.outline(request, plan)

    def row_of(self, change: Insert) -> str | None:
        """Return what the server takes for the row of an insert."""
        row = change.with_key(*self.key).id if self.key else change.id
        if row is not None and self.columns[0].type == "uuid":
            return str(UUID(str(row).strip()))
        return None if row is None else spell_id(row)

    def _undo(self, change: Insert) -> Insert | Delete:
        guard, row = {"n": _number(change)}, self.row_of(change) or ""
        if (stored := self.rows.get(row)) is None:
            return Delete(RowKey("t", row, guard=guard))
        return Insert("t", {"n": stored}, row, replace=True, guard=guard)

    @hookimpl
    async def apply_change(self, plan):
        if self.forgets():
            self.plans = KeptPlans()
        if plan.number:
            plan = self.plans.take(plan.number)
        self.requests.append([_number(plan.changes[at]) for at in plan.planned[0].changes])
        self.keep_moment()
        failure = self.failures.pop(0) if self.failures else None
        try:
            if failure is not None and iscoroutinefunction(failure):
                return await failure(plan, self.write)
            return failure(plan, self.write) if failure else joined(self.write(plan))
        finally:
            self.keep_moment()

    def keep_moment(self):
        # The checkpoint first: the others may grow meanwhile. What replaces it has no part in it before it does.
        paths = [path for path in sorted(self.file.parent.iterdir()) if path.suffix != ".tmp"]
        self.moments.append(({path.name: path.read_bytes() for path in paths}, deepcopy(self.rows)))

    def write(self, plan: Plan) -> list[Outcome]:
        outcomes = []
        for at in plan.planned[0].changes:
            change = plan.changes[at]
            assert isinstance(change, Insert)
            key, number = self.row_of(change) or f"made-{len(self.rows)}", _number(change)
            holds = self.rows.get(key) == number
            if key in self.rows and not change.replace:
                outcomes.append(Outcome(change=at, status=OutcomeStatus.CONFLICT, reason="it exists", holds=holds))
            else:
                self.rows[key] = number
                outcomes.append(Outcome(change=at, status=OutcomeStatus.APPLIED))
        return outcomes

    def session(self, name: str = "shop", *, type: str = "memory") -> Session:  # noqa: A002
        here = Here(self)
        here.info = ConnectionInfo(name=name, type=type, host="h", port=1)
        return here.session()

    async def load(self, **options: Any) -> LoadReport:
        return await load(self.session(), "t", file=self.file, **options)

    def back_to(self, moment: int) -> None:
        """Put folder and rows back to what they were, as if the process had ended then."""
        files, rows = self.moments[moment]
        for path in [*self.file.parent.iterdir()]:
            if path.name not in files:
                path.unlink()
        for name, data in files.items():
            (self.file.parent / name).write_bytes(data)
        self.rows = deepcopy(rows)

    def checkpoint(self) -> LoadCheckpoint:
        found = read_checkpoint(self.file)
        assert found is not None
        return found

    def rejected(self) -> list[dict[str, Any]]:
        path = self.file.with_name(f"{self.file.name}.rejected.ndjson")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def joined(outcomes: list[Outcome]) -> list[Outcome]:
    """Join what was applied as asked, as the drivers do for a load."""
    told = Outcomes()
    for outcome in outcomes:
        if outcome.status is OutcomeStatus.APPLIED:
            told.applied([outcome.change])
        else:
            told.tell([outcome.change], outcome)
    return told.told


def _number(change: Insert) -> int:
    return int(change.values["n"]) if change.document is None else json.loads(change.document)["n"]


def lose(*, written: bool) -> Callable[..., list[Outcome]]:
    def failure(plan, write):
        if written:
            write(plan)
        raise ConnectionFailedError("the connection ended", details={"sent": True})

    return failure


def unsent(_plan, _write):
    raise ConnectionFailedError("nothing listens", details={"sent": False})


def half_unknown(plan, write):
    """The rows of odd number were written, or not; what is certain is that no answer came about any of them."""
    outcomes = write(plan)
    return [
        Outcome(change=each.change, status=OutcomeStatus.UNKNOWN) if _number(plan.changes[each.change]) % 2 else each
        for each in outcomes
    ]


def turned_away(plan, write):
    """Only the first row is taken; for the others the server was too busy."""
    numbers = plan.planned[0].changes
    first = PlannedRequest(request=plan.planned[0].request, changes=numbers[:1])
    kept = write(Plan(planned=[first], changes=plan.changes))
    return kept + [Outcome(change=at, status=OutcomeStatus.FAILED, busy=True) for at in numbers[1:]]


def broke_off(plan, write):
    """The answer about the first row was lost, and the others were certainly not begun."""
    first, *others = plan.planned[0].changes
    kept = PlannedRequest(request=plan.planned[0].request, changes=[first])
    write(Plan(planned=[kept], changes=plan.changes))
    failed = [Outcome(change=at, status=OutcomeStatus.FAILED, reason="not begun") for at in others]
    return [Outcome(change=first, status=OutcomeStatus.UNKNOWN), *failed]


FAILURES = [None, lose(written=True), lose(written=False), unsent, half_unknown, turned_away]


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch):
    monkeypatch.setattr("dragoman.imports.batch_sending.AGAIN", (0.0, 0.0))
    monkeypatch.setattr("dragoman.imports.batch_sending.BUSY", (0.0,) * 8)


def written_file(folder: Path, rows: list[tuple[str | None, int] | str]) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps({"sku": row[0], "n": row[1]}) for row in rows]
    (folder / "f.ndjson").write_text("".join(f"{line}\n" for line in lines))
    return folder / "f.ndjson"


def take_back(table: Table, undo: Path) -> tuple[dict[str, int], int]:
    """Return the rows after each line of an undo file was carried out, and how many lines met another row."""
    rows, conflicts = dict(table.rows), 0
    for line in undo.read_bytes().splitlines():
        change = read_line(line)
        row = change if isinstance(change, Insert) else change.key
        if rows.get(str(row.id)) != row.guard["n"]:
            conflicts += 1
        elif isinstance(change, Insert):
            rows[str(row.id)] = int(str(change.values["n"]))
        else:
            del rows[str(row.id)]
    return rows, conflicts


def judge(table: Table, report: LoadReport, rows, *, on_conflict: str, before: dict[str, int], keyed: bool) -> None:
    """Compare the end with what the rows of the file say, one after the other."""
    expected, statuses = dict(before), []
    for row in rows:
        if isinstance(row, str):
            statuses.append("unreadable")
        elif row[1] == 13:
            statuses.append("refused")
        elif keyed and row[0] in expected and on_conflict != "overwrite":
            statuses.append("skipped" if on_conflict == "skip" else "conflict")
        else:
            if keyed:
                expected[row[0]] = row[1]
            statuses.append("applied")
    rejected = table.rejected()
    for each in rejected:
        row = rows[each["row"] - 1]
        assert each["data"] == (row if isinstance(row, str) else {"sku": row[0], "n": row[1]})
        assert each.get("id") == (None if isinstance(row, str) else row[0])
    codes = {each["row"]: each["code"] for each in rejected}
    assert len(codes) == len(rejected)
    assert report.complete
    assert report.rows == sum(report.counts.values()) == len(rows)
    told = [codes.get(at, "") for at in range(1, len(rows) + 1)]
    if keyed:
        assert table.rows == expected
        assert told == ["" if status in ("applied", "skipped") else status for status in statuses]
        assert report.counts["applied"] == statuses.count("applied")
        assert report.counts["skipped"] == statuses.count("skipped")
        return
    # A row of whose writing nothing is known is named, never doubled, and no other is left out.
    numbers = sorted(table.rows.values())
    doubtful = [row[1] for row, code in zip(rows, told, strict=True) if code == "unknown"]
    assert len(numbers) == len({*numbers})
    assert all(code in (status.replace("applied", ""), "unknown") for code, status in zip(told, statuses, strict=True))
    applied = [row[1] for row, code in zip(rows, told, strict=True) if not code]
    assert {*applied} <= {*numbers} <= {*applied, *doubtful}
    assert (report.counts["applied"], report.counts["unknown"]) == (len(applied), len(doubtful))


def drawn(seed: int, *, keyed: bool) -> tuple[random.Random, list[Any]]:
    """Draw rows: ids come twice and out of order, and some rows cannot be read or are refused."""
    chance = random.Random(seed)
    rows: list[Any] = [(f"s{chance.randrange(9)}" if keyed else None, at) for at in range(chance.randrange(9, 20))]
    rows[chance.randrange(len(rows))] = "nonsense"
    return chance, rows


@pytest.mark.parametrize("seed", range(12))
async def test_every_row_has_one_outcome_whatever_fails_on_the_way(tmp_path, seed):
    keyed, on_conflict = bool(seed % 4), ("fail", "skip", "overwrite")[seed % 3]
    chance, rows = drawn(seed, keyed=keyed)
    before = {"s3": -3} if keyed else {}
    table = Table(written_file(tmp_path / "folder", rows), rows=dict(before))
    table.failures = [chance.choice(FAILURES) for _ in range(9)]
    table.largest = chance.choice((1_000, 2))
    table.forgets = lambda: not chance.randrange(4)
    options = {"id": "sku" if keyed else None, "on_conflict": on_conflict}
    batches = iter([chance.randrange(1, 6) for _ in range(40)])
    report = None
    while report is None:
        with suppress(ConnectionFailedError):
            resume = await to_thread.run_sync(checkpoint_path(table.file).exists)
            report = await table.load(resume=resume, batch=next(batches), **options)
    judge(table, report, rows, on_conflict=on_conflict, before=before, keyed=keyed)
    assert [path.name for path in table.file.parent.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("seed", range(3))
async def test_a_load_that_ends_at_any_request_is_resumed_exactly(tmp_path, seed):
    """The folder as it lies when a request arrives, and when it was carried out, is enough to go on from."""
    keyed, on_conflict = seed % 3 > 0, ("fail", "skip", "overwrite")[seed % 3]
    chance, rows = drawn(100 + seed, keyed=keyed)
    before = {"s3": -3} if keyed else {}
    table = Table(written_file(tmp_path / "folder", rows), rows=dict(before))
    options = {"id": "sku" if keyed else None, "on_conflict": on_conflict}
    await table.load(batch=3, **options)
    first = table.moments
    for moment in range(len(first)):
        table.moments = first
        table.back_to(moment)
        table.moments = []
        report = await table.load(resume=True, batch=chance.randrange(1, 6), **options)
        assert report.resumed == 1
        judge(table, report, rows, on_conflict=on_conflict, before=before, keyed=keyed)
        second = table.moments
        if second:  # and once more, in the middle of what was left
            table.back_to(len(second) // 2)
            report = await table.load(resume=True, batch=chance.randrange(1, 6), **options)
            assert report.resumed == 2
            judge(table, report, rows, on_conflict=on_conflict, before=before, keyed=keyed)


@pytest.mark.parametrize("lost", [False, True])
async def test_the_undo_of_a_load_that_ended_at_any_request_restores_every_row(tmp_path, lost):
    """It is on disk before its row is sent, and a resumed load keeps what was there before the first attempt."""
    rows = [(f"s{at}", at) for at in range(8)]
    before = {"s0": -1, "s4": -5, "s7": -8}
    table, undo = Table(written_file(tmp_path / "folder", rows), rows=dict(before)), tmp_path / "folder" / "undo"
    options = {"id": "sku", "on_conflict": "overwrite", "undo": undo}
    table.failures = [None, turned_away, None, broke_off]
    await table.load(batch=3, **options)
    assert await to_thread.run_sync(take_back, table, undo) == (before, 0)
    moments = table.moments
    for moment in range(len(moments)):
        table.moments = moments
        table.back_to(moment)
        table.moments, table.failures = [], [lose(written=True)] * lost
        report = None
        while report is None:
            with suppress(ConnectionFailedError):
                report = await table.load(batch=2, resume=True, **options)
        assert (report.counts["applied"], table.rows) == (8, dict(rows))
        assert await to_thread.run_sync(take_back, table, undo) == (before, 0)


async def test_an_undo_file_that_is_there_or_that_is_no_longer_the_same_is_not_touched(tmp_path):
    table, undo = Table(written_file(tmp_path / "folder", [("a", 0), ("b", 1)])), tmp_path / "undo"
    undo.write_text("mine\n")
    with pytest.raises(ConfigurationError, match="already exists"):
        await table.load(id="sku", undo=undo)
    undo.unlink()
    table.failures = [lose(written=True)]
    with pytest.raises(ConnectionFailedError):
        await table.load(id="sku", undo=undo)
    for text in (undo.read_text()[:-9], "other\n" * 99):
        kept = undo.read_text()
        undo.write_text(text)
        with pytest.raises(ConfigurationError):
            await table.load(id="sku", undo=undo, resume=True)
        assert undo.read_text() == text
        undo.write_text(kept)
    assert (await table.load(id="sku", undo=undo, resume=True)).counts["applied"] == 2
    assert take_back(table, undo) == ({}, 0)


async def test_a_checkpoint_that_a_killed_run_was_writing_goes_when_the_load_goes_on(tmp_path):
    table = Table(written_file(tmp_path / "folder", [("a", 0), ("b", 1)]))
    table.failures = [lose(written=True)]
    with pytest.raises(ConnectionFailedError):
        await table.load(id="sku")
    assert checkpoint_path(table.file).stat().st_mode & 0o777 == 0o600
    (tmp_path / "folder/..f.ndjson.import.0123456789ab.tmp").write_bytes(b"{")
    await table.load(id="sku", resume=True)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["f.ndjson"]


async def test_before_a_request_is_sent_the_disk_has_all_that_is_needed_after_it(tmp_path, monkeypatch):
    """The rejected rows that the checkpoint counts, then the checkpoint, then the undo: each is synced in its turn."""
    steps = []
    monkeypatch.setattr(os, "fsync", lambda number: steps.append(Path(f"/proc/self/fd/{number}").readlink().name))
    table = Table(written_file(tmp_path / "folder", ["nonsense", ("a", 0)]))

    def failure(plan, write):
        steps.append("request")
        return write(plan)

    table.failures = [failure]
    await table.load(id="sku", undo=tmp_path / "folder" / "undo")
    del steps[steps.index("request") + 1 :]
    names = [".import" if ".import" in step else step for step in steps if step != "folder"]
    assert names == ["f.ndjson.rejected.ndjson", ".import", "undo", "request"]


@pytest.mark.parametrize("keyed", [True, False])
async def test_a_disk_that_is_full_after_a_write_leaves_its_rows_in_doubt_and_the_load_goes_on(
    tmp_path, monkeypatch, keyed
):
    rows = [("a", 0), ("b", 1), ("c", 13)]
    table = Table(written_file(tmp_path / "folder", rows))
    options: dict[str, Any] = {"id": "sku"} if keyed else {"renamed": {"sku": ""}}
    with monkeypatch.context() as patch:

        def fill_disk(plan, write):
            def full(*_, **__):
                raise ConfigurationError("no space left")

            outcomes = write(plan)
            patch.setattr(AppendedFile, "append", full)
            patch.setattr("dragoman.imports.checkpoints.Ledger.write", full)
            return outcomes

        table.failures = [fill_disk]
        with pytest.raises(ConfigurationError, match="no space left") as caught:
            await table.load(**options)
    error = caught.value
    assert unknown(error)
    assert (error.details["unknown"], error.details["applied"], error.details["failed"]) == (2, 0, 0)
    assert "load with resume=True" in str(error.hint)
    report = await table.load(**options, resume=True)
    assert sorted(table.rows.values()) == [0, 1]
    counts = (report.counts["applied"], report.counts["unknown"], report.counts["refused"])
    assert counts == ((2, 0, 1) if keyed else (0, 3, 0))


async def test_a_checkpoint_that_cannot_be_removed_is_an_error_after_which_every_row_has_its_outcome(
    tmp_path, monkeypatch
):
    table, unlink = Table(written_file(tmp_path / "folder", [("a", 0)])), Path.unlink

    def stay(path, **options):
        if path == checkpoint_path(table.file):
            raise PermissionError(1, "Operation not permitted")
        unlink(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", stay)
        with pytest.raises(ConfigurationError, match="cannot be removed: Operation not permitted") as caught:
            await table.load(id="sku")
    assert (caught.value.details["applied"], caught.value.details["unknown"]) == (1, 0)
    assert (await table.load(id="sku", resume=True)).counts["applied"] == 1
    assert len(table.requests) == 1


async def slow(plan, write):
    await anyio.sleep(0.05)
    return write(plan)


class Uuids(Table):
    columns = (replace(COLUMNS[0], type="uuid"), *COLUMNS[1:])


class Points(Table):
    columns = (
        Column(name="at", type="long", kind=ColumnKind.INTEGER, role=Role.KEY, path=("at",)),
        Column(name="host", type="keyword", kind=ColumnKind.TEXT, role=Role.KEY, path=("host",)),
        COLUMNS[1],
    )
    key = ("at", "host")


SPELLINGS = [
    "8f14e45f-ceea-467a-9575-9c7a7a1a2b3c", "8F14E45F-CEEA-467A-9575-9C7A7A1A2B3C", "8f14e45fceea467a95759c7a7a1a2b3c",
    "{8f14e45f-ceea-467a-9575-9c7a7a1a2b3c}", "urn:uuid:8f14e45f-ceea-467a-9575-9c7a7a1a2b3c",
    " 8f14e45f-ceea-467a-9575-9c7a7a1a2b3c", "8f14-e45fceea-467a95759c7a-7a1a2b-3c",
]  # fmt: skip


@pytest.mark.parametrize("batch", [1, 9])
@pytest.mark.parametrize("on_conflict", ["overwrite", "fail"])
async def test_all_spellings_of_one_uuid_are_one_key(tmp_path, batch, on_conflict):
    table = Uuids(written_file(tmp_path / "folder", [(text, at) for at, text in enumerate(SPELLINGS)]))
    table.failures = [slow]
    report = await table.load(id="sku", batch=batch, on_conflict=on_conflict)
    assert table.requests == [[at] for at in range(len(SPELLINGS))]
    assert table.rows == {SPELLINGS[0]: len(SPELLINGS) - 1 if on_conflict == "overwrite" else 0}
    assert [row["id"] for row in table.rejected()] == (SPELLINGS[1:] if on_conflict == "fail" else [])
    assert report.complete


async def test_only_an_object_whose_key_is_a_uuid_has_several_spellings_of_one_id(tmp_path):
    table = Table(written_file(tmp_path / "folder", [(text, at) for at, text in enumerate(SPELLINGS)]))
    await table.load(id="sku")
    assert len(table.rows) == len(SPELLINGS)
    assert len(table.requests) == 1


async def test_a_resumed_load_knows_the_undo_of_a_uuid_in_any_spelling(tmp_path):
    table, undo = Uuids(written_file(tmp_path / "folder", [(SPELLINGS[1], 0)])), tmp_path / "folder/undo"
    table.failures = [lose(written=True)]
    with pytest.raises(ConnectionFailedError):
        await table.load(id="sku", undo=undo, on_conflict="overwrite")
    await table.load(id="sku", undo=undo, on_conflict="overwrite", resume=True)
    assert take_back(table, undo) == ({}, 0)


POINTS = [("eu", 0, 1), ("us", 1, 1), ("eu", 2, 2), ("eu", 3, 1), ("us", 4, 2), ("eu", 5, 1)]


@pytest.mark.parametrize("order", ["host,n,at", "at,host,n", "n,at,host"])
@pytest.mark.parametrize("batch", [1, 9])
async def test_rows_with_one_key_of_several_columns_keep_their_order_whatever_the_order_of_columns(
    tmp_path, order, batch
):
    (tmp_path / "folder").mkdir()
    rows = [dict(zip(("host", "n", "at"), row, strict=True)) for row in POINTS]
    lines = [order, *(",".join(str(row[name]) for name in order.split(",")) for row in rows)]
    (file := tmp_path / "folder/f.csv").write_text("\n".join(lines) + "\n")
    table = Points(file)
    table.failures = [slow, slow, lose(written=True)]
    with pytest.raises(ConnectionFailedError):
        await table.load(batch=batch, on_conflict="overwrite")
    report = await table.load(batch=batch, on_conflict="overwrite", resume=True)
    assert table.rows == {'["1", "eu"]': 5, '["1", "us"]': 1, '["2", "eu"]': 2, '["2", "us"]': 4}
    assert (report.counts["applied"], report.counts["unknown"], table.rejected()) == (6, 0, [])


class Stamped(Points):
    """The server makes the part `at` of a key where a row has none."""

    def row_of(self, change: Insert) -> str | None:
        return super().row_of(change) if "at" in change.values else None


async def test_a_part_of_a_key_names_no_row_and_is_not_sent_twice(tmp_path):
    (tmp_path / "folder").mkdir()
    (file := tmp_path / "folder/f.csv").write_text("host,n\neu,1\neu,2\neu,3\n")
    table = Stamped(file)
    table.failures = [half_unknown]
    report = await table.load()
    assert table.requests == [[1, 2, 3]]
    assert (report.counts["applied"], report.counts["unknown"]) == (1, 2)
    assert [row["code"] for row in table.rejected()] == ["unknown", "unknown"]


async def test_no_one_column_is_the_id_where_the_key_has_several(tmp_path):
    file = written_file(tmp_path / "folder", [("a", 0)])
    with pytest.raises(ConfigurationError, match="identified by at, host, so no one column can be its id"):
        await Points(file).load(id="sku")


@pytest.mark.parametrize(
    ("renamed", "names"),
    [
        ({"a": "n", "b": "n"}, "'a' and 'b'"), ({"a": "n", "b": "m"}, "'a' and 'n'"), ({"a": "id", "b": "m"}, ""),
        ({"a": "id", "b": "id"}, "'a' and 'b'"), ({"a": "", "b": "sku"}, ""), ({"a": "n", "b": "", "n": ""}, ""),
    ],
)  # fmt: skip
async def test_two_columns_of_a_table_never_become_one(tmp_path, renamed, names):
    (tmp_path / "folder").mkdir()
    (file := tmp_path / "folder/f.csv").write_text("a,b,n\n1,2,3\n")
    table = Table(file)
    if not names or names == "'a' and 'n'":
        renamed = {"n": "n"} | renamed
    if not names:
        assert (await table.load(renamed=renamed)).counts["applied"] == 1
        return
    with pytest.raises(ConfigurationError, match=rf"the columns {names} of the file would both become") as caught:
        await table.load(renamed=renamed)
    assert (caught.value.code, table.requests) == ("columns-collide", [])


@pytest.mark.parametrize("member", ["_routing", "routing"])
async def test_a_row_with_an_empty_routing_is_refused(tmp_path, member):
    (tmp_path / "folder").mkdir()
    owners = enumerate(("", None, "x"))
    lines = [json.dumps({"_id": str(at), member: text, "_source": {"n": at}}) + "\n" for at, text in owners]
    (file := tmp_path / "folder/f.rows").write_text("".join(lines))
    table = Table(file)
    table.columns = [replace(COLUMNS[0], path=("_id",)), *COLUMNS[1:]]
    await table.load(format="rows", on_conflict="overwrite")
    assert table.rows == {"1": 1, "2": 2}
    assert [(row["row"], row["code"]) for row in table.rejected()] == [(1, "refused")]
    assert "its routing is an empty text" in table.rejected()[0]["reason"]


async def test_the_id_of_a_file_that_another_column_replaces_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    (file := tmp_path / "folder/f.csv").write_text("id,sku,n\n1,a,3\n")
    report = await Table(file).load(id="sku")
    assert [(note.column, note.reason) for note in report.notes if note.column] == [
        ("id", "--id takes the id of each row from 'sku', so it is left out")
    ]
    (rows := tmp_path / "folder/f.rows").write_text('{"_id":"1","_source":{"sku":"a","n":3}}\n')
    table = Table(rows)
    table.columns = [replace(COLUMNS[0], path=("_id",)), *COLUMNS[1:]]
    report = await table.load(id="sku", format="rows")
    assert [note.column for note in report.notes if note.column] == ["id"]
    assert table.rows == {"a": 3}


async def test_a_batch_ends_where_all_values_of_its_rows_are_many_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.imports.batches.BATCH_BYTES", 5_000)
    (file := tmp_path / "a.csv").write_text("n,sku\n" + "".join(f"{at},{'x' * 2_000}\n" for at in range(7)))
    table = Table(file)
    report = await table.load()
    assert (report.counts["applied"], [len(request) for request in table.requests]) == (7, [3, 3, 1])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"id": ""}, "it has no column '', which --id names"),
        ({"renamed": {"n": "sku"}}, "--map gives its columns 'sku' and 'n' one name, 'sku'"),
    ],
)
async def test_a_document_without_the_column_of_its_id_or_with_two_of_one_name_is_refused(tmp_path, options, reason):
    table = Table(written_file(tmp_path / "folder", [("a", 0)]))
    await table.load(**options)
    assert ([row["reason"] for row in table.rejected()], table.requests) == ([reason], [])


async def test_a_row_of_a_table_without_an_id_gets_one_from_the_server(tmp_path):
    (file := tmp_path / "a.csv").write_text("id,n\na,1\n,2\nb,3\n")
    table = Table(file)
    report = await table.load()
    assert (report.counts["applied"], table.rows) == (3, {"a": 1, "made-1": 2, "b": 3})


@pytest.mark.parametrize("batch", [0, 5_001])
async def test_a_batch_has_one_to_five_thousand_rows(tmp_path, batch):
    table = Table(written_file(tmp_path, [("a", 0)]))
    with pytest.raises(ConfigurationError, match="a batch has 1 to 5,000 rows"):
        await table.load(batch=batch)
    assert (await table.load(batch=5_000)).counts["applied"] == 1


async def test_a_load_that_was_stopped_when_all_it_had_was_refused_goes_on_and_makes_no_undo(tmp_path):
    table = Table(written_file(tmp_path / "folder", ["nonsense", ("a", 13), ("b", 1)]))
    options = {"id": "sku", "batch": 1, "undo": tmp_path / "folder" / "undo"}
    table.failures = [unsent]
    with pytest.raises(ConnectionFailedError) as caught:
        await table.load(**options)
    assert (caught.value.details["refused"], caught.value.details["applied"]) == (2, 0)
    assert "resume=True" in caught.value.hint
    report = await table.load(resume=True, **options)
    assert (report.counts["refused"], report.counts["applied"], len(table.rejected())) == (2, 1, 2)
    assert report.undo == str(options["undo"])
    other = Table(written_file(tmp_path / "other", [("a", 13)]))
    assert (await other.load(id="sku", undo=tmp_path / "none")).undo is None


async def test_a_plan_that_its_process_took_along_is_made_again_and_travels_whole(tmp_path):
    table = Table(written_file(tmp_path / "folder", [(f"s{at}", at) for at in range(8)]))
    moments = iter([True, False, True, False])
    table.forgets = lambda: next(moments)
    report = await table.load(id="sku", batch=4)
    assert (report.counts["applied"], report.complete) == (8, True)
    assert sorted(table.rows.values()) == [*range(8)]
    assert [len(request) for request in table.requests] == [4, 4], "nothing was sent of the plans that were gone"


async def test_a_driver_that_calls_a_plan_dropped_after_it_wrote_gets_its_rows_no_second_time(tmp_path):
    def dropped(plan, write):
        write(plan)
        raise QueryError("the plan is no longer there", details={PLAN_DROPPED: True})

    table = Table(written_file(tmp_path / "folder", [("a", 0), ("b", 1)]))
    table.failures = [dropped]
    with pytest.raises(QueryError) as caught:
        await table.load()
    assert unknown(caught.value)
    assert (table.requests, sorted(table.rows.values())) == ([[0, 1]], [0, 1])


async def test_two_writes_of_one_row_keep_their_order_whatever_else_is_under_way(tmp_path):
    table = Table(written_file(tmp_path, [("a", 0), ("x", 1), ("x", 2), ("b", 3)]))
    under_way: list[int] = []

    def slowly(seconds: float) -> Callable[..., Any]:
        async def failure(plan, write):
            number = _number(plan.changes[0])
            assert not (number == 2 and 1 in under_way)
            under_way.append(number)
            await anyio.sleep(seconds)
            under_way.remove(number)
            return write(plan)

        return failure

    table.failures = [slowly(0.01), slowly(0.03), slowly(0), slowly(0)]
    report = await table.load(id="sku", batch=1, on_conflict="overwrite")
    assert (report.counts["applied"], table.rows) == (4, {"a": 0, "x": 2, "b": 3})


async def test_rows_that_certainly_were_not_begun_are_sent_again_beside_one_whose_answer_was_lost(tmp_path):
    table = Table(written_file(tmp_path, [("a", 0), ("b", 1), ("c", 2)]))
    table.failures = [broke_off, broke_off]
    report = await table.load(id="sku")
    assert (report.counts["applied"], table.rows) == (3, {"a": 0, "b": 1, "c": 2})
    assert table.requests == [[0, 1, 2]] * 3


async def test_after_the_last_attempt_an_outcome_stays_as_it_is(tmp_path):
    table = Table(written_file(tmp_path, [(f"s{at}", at) for at in range(6)]))
    table.failures = [broke_off] * 3
    report = await table.load(id="sku")
    codes = [(each["row"], each["code"]) for each in table.rejected()]
    assert report.complete
    assert len(table.requests) == 3
    assert sum(report.counts.values()) == 6
    assert {code for _, code in codes} <= {"unknown", "failed"}
    assert len(codes) + report.counts["applied"] == 6


async def test_only_the_last_batch_says_so_and_every_remark_is_kept_once(tmp_path):
    table = Table(written_file(tmp_path, [(None, at) for at in range(7)]))
    report = await table.load(batch=3)
    assert table.lasts == [False, False, True]
    assert sorted(note.reason for note in report.notes) == ["of even", "of odd"]


async def test_the_first_failure_is_the_one_that_is_reported(tmp_path):
    table = Table(written_file(tmp_path, [("a", 0), ("b", 1)]))
    second_came = anyio.Event()

    async def first(plan, _write):
        await second_came.wait()
        raise ConnectionFailedError("the first", details={"sent": False})

    async def second(plan, _write):
        second_came.set()
        await anyio.sleep(0.01)
        raise ConnectionFailedError("the second", details={"sent": True})

    table.failures = [first, second]
    with pytest.raises(ConnectionFailedError, match="the first") as caught:
        await table.load(id="sku", batch=1)
    assert caught.value.details["unknown"] == 1
    found = await to_thread.run_sync(table.checkpoint)
    assert (found.doubt, found.waiting) == ([(2, 2)], [(1, 1)])


@pytest.mark.parametrize("pauses", [(0.0,), ()])
async def test_rows_that_were_turned_away_are_not_in_doubt_when_the_load_stops(tmp_path, monkeypatch, pauses):
    monkeypatch.setattr("dragoman.imports.batch_sending.BUSY", pauses)
    table = Table(written_file(tmp_path, [(None, at) for at in range(4)]))
    table.failures = [turned_away, unsent][: 1 + len(pauses)]
    with pytest.raises((ConnectionFailedError, QueryError)) as caught:
        await table.load()
    assert (caught.value.details["applied"], caught.value.details["unknown"]) == (1, 0)
    found = await to_thread.run_sync(table.checkpoint)
    assert (found.doubt, found.waiting, found.read) == ([], [(2, 4)], 4)
    report = await table.load(resume=True)
    assert (report.counts["applied"], report.rows, report.now) == (4, 4, 0)  # all were read before


async def test_a_cancelled_load_doubts_what_is_under_way_and_nothing_else(tmp_path):
    table = Table(written_file(tmp_path, [(None, at) for at in range(9)]))
    with anyio.CancelScope() as scope:

        async def cancels(plan, write):
            write(plan)
            scope.cancel()
            await anyio.sleep_forever()

        table.failures = [None, cancels]
        await table.load(batch=3)
    found = await to_thread.run_sync(table.checkpoint)
    assert found.doubt[0] == (4, 6)
    report = await table.load(resume=True, batch=3)
    assert sorted(table.rows.values()) == [*range(9)]
    assert (report.counts["applied"], report.counts["unknown"]) == (6, 3)


def twice(plan):
    return replace(plan, planned=[replace(plan.planned[0], changes=[0, 0], rows=[[0], [0]])])


def left_out(plan):
    return replace(plan, planned=[replace(plan.planned[0], changes=[0], rows=[[0]])])


def an_empty_row(plan):
    return replace(plan, planned=[replace(plan.planned[0], rows=[[0], [1], []])])


@pytest.mark.parametrize("wrong", [twice, left_out, an_empty_row])
async def test_a_plan_without_every_row_exactly_once_is_never_sent(tmp_path, wrong):
    class Wrong(Table):
        @hookimpl
        async def plan_change(self, request):
            return wrong(await super().plan_change(request))

    table = Wrong(written_file(tmp_path, [("a", 0), ("b", 1)]))
    with pytest.raises(DriverFaultError, match="every change exactly once"):
        await table.load(id="sku")
    assert table.requests == []


async def test_a_plan_that_takes_back_only_some_rows_is_never_sent(tmp_path):
    class Wrong(Table):
        @hookimpl
        async def plan_change(self, request):
            plan = await super().plan_change(request)
            return replace(plan, undo=plan.undo[:1])

    table = Wrong(written_file(tmp_path, [("a", 0), ("b", 1)]))
    with pytest.raises(DriverFaultError, match="1 changes that undo 2 rows"):
        await table.load(id="sku", undo=tmp_path / "undo")
    assert table.requests == []


BASE: dict[str, Any] = {
    "id": "sku", "renamed": {"m": "n"}, "on_conflict": "skip", "format": "csv", "delimiter": ";", "tenant": None,
    "batch": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("connection", {}), ("type", {}), ("object", {}), ("format", {"format": "tsv", "delimiter": ";"}),
        ("delimiter", {"delimiter": "|"}), ("id", {"id": None}), ("map", {"renamed": {"m": ""}}),
        ("on_conflict", {"on_conflict": "fail"}), ("tenant", {"tenant": "b"}), ("undo", {"undo": "other"}),
    ],
)  # fmt: skip
async def test_a_load_goes_on_only_with_the_same_arguments(tmp_path, name, changed):
    """Each of them says what the rows that follow become, so rows of two loads never mix in one."""
    file = tmp_path / "f.csv"
    file.write_text("sku;m\na;0\nb;1\nc;2\n")
    table = Table(file)
    table.failures = [None, unsent]
    with pytest.raises(ConnectionFailedError):
        await table.load(**BASE)
    before = await to_thread.run_sync(table.checkpoint)
    requests = [*table.requests]
    options = BASE | changed
    if name == "undo":
        options["undo"] = tmp_path / "other"
    session, target = table.session("other" if name == "connection" else "shop"), "u" if name == "object" else "t"
    if name == "type":
        session = table.session(type="other")
    if name in ("format", "delimiter"):  # the first line is read before the rest is compared
        file.write_text(file.read_text().replace(";", options["delimiter"]))
    with pytest.raises(ConfigurationError, match=f"had {name} ") as caught:
        await load(session, target, file=file, resume=True, **options)
    assert caught.value.code == "resume-refused"
    assert (await to_thread.run_sync(table.checkpoint), table.requests) == (before, requests)


def test_what_follows_the_known_end_of_a_file_that_grows_is_removed(tmp_path):
    """A killed run left lines of rows that are in doubt; the next ones may be shorter."""
    (tmp_path / "lines").write_bytes(b"one\nof a row that is in doubt\n")
    grown = AppendedFile(tmp_path / "lines", size=4, mode=0o600)
    grown.append(b"two\n")
    grown.close()
    assert ((tmp_path / "lines").read_bytes(), grown.size) == (b"one\ntwo\n", 8)


def test_a_checkpoint_holds_for_the_bytes_that_were_read_and_no_more(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 600_000 + b"y")
    known = sha256(b"x" * 300_000).hexdigest()
    assert digest_of(tmp_path / "f", 300_000) == known
    assert digest_of(tmp_path / "f", 600_000) != digest_of(tmp_path / "f")


@pytest.mark.parametrize("number", [2, 3, 5])  # the first call says that it begins
async def test_an_error_of_the_callers_progress_ends_the_load_as_itself_and_every_row_has_its_outcome(tmp_path, number):
    table = Table(written_file(tmp_path / "folder", [(f"s{at}", at) for at in range(8)]))
    calls = []

    def show(progress):
        calls.append(progress)
        if len(calls) == number:
            raise ValueError("the bar broke")

    with pytest.raises(ValueError, match="the bar broke"):
        await table.load(id="sku", batch=2, progress=show)
    assert not (await to_thread.run_sync(table.checkpoint)).doubt
    assert (await table.load(id="sku", resume=True)).counts["applied"] == 8
    assert len(table.rows) == 8


async def test_a_dry_run_names_the_first_rows_that_would_not_be_sent(tmp_path):
    file = written_file(tmp_path / "folder", [("s1", 1), *((f"s{at}", 13) for at in range(2, 40))])
    table = Table(file)
    report = await table.load(id="sku", dry_run=True)
    reasons = [note.reason for note in report.notes if note.code == "row-refused"]
    assert reasons == [*(f"row {row}: unlucky" for row in range(2, 22)), "further rows would not be sent"]
    assert report.counts["refused"] == 38
    assert not table.requests


async def test_an_error_of_the_callers_preview_ends_a_dry_run_as_itself(tmp_path):
    def show(planned):
        raise ValueError("the pager broke")

    file = written_file(tmp_path / "folder", [("s1", 1)])
    job = Load(Table(file).session(), "t", file, options=LoadOptions(id="sku", dry_run=True), preview=show)
    with pytest.raises(ValueError, match="the pager broke"):
        await job.run()
