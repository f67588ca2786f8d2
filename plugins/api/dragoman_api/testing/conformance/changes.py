"""Promises about changes: planned as exact requests, sent as planned, each with an outcome."""

from __future__ import annotations

from base64 import b64encode
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from dragoman_api.cells import MISSING, Json
from dragoman_api.changes import Delete, Drop, Insert, InsertBatch, Outcome, OutcomeStatus, PlanRequest, Update
from dragoman_api.columns import Written
from dragoman_api.errors import DragomanError
from dragoman_api.grid import CellRequest, CountRequest
from dragoman_api.json_text import encode
from dragoman_api.testing.conformance.filters import USUAL
from dragoman_api.testing.target import decoded, with_digits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api.changes import Change, HttpRequest, Plan, Values
    from dragoman_api.columns import Column
    from dragoman_api.grid import Row, RowKey
    from dragoman_api.testing.target import Target


class ChangeConformance:
    """Promises to a person who writes."""

    async def test_planning_writes_nothing(self, target: Target) -> None:
        """Plans of an insert, an update, a delete and a drop send none of their requests and change no row."""
        async with _new_row(target) as row:
            before, mark = await target.count(target.scratch), target.sent()
            changes: list[Change] = [target.insert(), Delete(row.key), Drop(target.scratch)]
            if target.change:
                changes.append(Update(row.key, target.change))
            for change in changes:
                plan = await _plan(target, change)
                assert plan.planned, f"{change} plans nothing"
                assert not [request for request in target.since(mark) if request in plan.requests], change
            assert await target.count(target.scratch) == before
            after = await _find(target, row.key)
            assert after is not None
            assert (after.key, after.to_dict()) == (row.key, row.to_dict())

    async def test_applying_sends_exactly_the_planned_requests(self, target: Target) -> None:
        """`apply_change` sends the plan's requests, byte for byte and in order; all other requests only read."""
        _needs(target)
        if target.log is None:
            pytest.skip("the requests to the server cannot be observed")
        plan = await _plan(target, target.insert())
        mark = target.sent()
        [outcome] = await target.driver.apply_change(plan)
        assert [request for request in target.since(mark) if _may_write(target, request, plan)] == plan.requests
        await _remove(target, outcome)

    async def test_an_inserted_row_is_there_with_its_values(self, target: Target) -> None:
        """An insert is applied and reports the new id, and the row holds the given values."""
        async with _new_row(target) as row:
            _stored_alike(row, target.row, target.row)

    async def test_a_null_is_told_from_a_field_that_is_not_there(self, target: Target) -> None:
        """If the driver tells them apart, what an insert leaves out is missing, and what is set to None is null."""
        target.needs("describe_object", "fetch_page", "fetch_cell")
        if not target.tells_missing:
            pytest.skip("the driver does not tell missing fields from nulls")
        target.given("change")
        name = next(iter(target.change))
        async with _new_row(target, without=name) as row:
            assert row.is_missing(name), "a field that was not stored is shown as a null"
            assert await target.driver.fetch_cell(CellRequest(key=row.key, column=name)) is MISSING
            [outcome] = await _apply(target, Update(row.key, {name: None}))
            assert outcome.status is OutcomeStatus.APPLIED, outcome.reason
            now = await _find(target, row.key)
            assert now is not None
            assert (now[name], now.is_missing(name)) == (None, False), "a null that was stored is shown as missing"
            assert await target.driver.fetch_cell(CellRequest(key=now.key, column=name)) is None

    async def test_a_revision_shows_the_rows_as_they_were(self, target: Target) -> None:
        """Pages, counts and cells at the `revision` of an earlier page are as they were then, despite later changes."""
        target.needs("describe_object", "fetch_page", "count_rows", "fetch_cell")
        async with _new_row(target) as row:
            before = await target.page(target.scratch)
            if not before.revision:
                pytest.skip("pages state no revision")
            async with _new_row(target):
                now = await target.page(target.scratch)
                assert (len(now.cells), now.revision != before.revision) == (len(before.cells) + 1, True)
                then = await target.page(target.scratch, revision=before.revision)
                assert (then.cells, then.keys, then.revision) == (before.cells, before.keys, before.revision)
                count = CountRequest(object=target.scratch, revision=before.revision)
                assert await target.driver.count_rows(count) == len(before.cells)
            await _apply(target, Delete(row.key))
            name = next(iter(target.row))
            cell = CellRequest(key=row.key, column=name, revision=before.revision)
            assert await target.driver.fetch_cell(cell) == row[name]

    async def test_an_update_changes_the_named_columns_only(self, target: Target) -> None:
        """After an update the named columns hold the new values, and all others their old ones.

        Columns that the server keeps, such as a version, may change with every write.
        """
        target.given("change")
        async with _new_row(target) as row:
            [outcome] = await _apply(target, Update(row.key, target.change))
            assert outcome.status is OutcomeStatus.APPLIED, outcome.reason
            after = await _find(target, row.key)
            assert after is not None
            assert await _values(target, after) == {**await _values(target, row), **target.change}

    async def test_an_update_that_the_driver_does_not_make_is_refused(self, target: Target) -> None:
        """If the target names no ``change``, an update plans no request, and its refusal has a reason."""
        if target.change:
            pytest.skip("the driver updates rows")
        async with _new_row(target) as row:
            plan = await _plan(target, Update(row.key, target.row))
            assert plan.planned == []
            assert [outcome.status for outcome in plan.refusals] == [OutcomeStatus.REFUSED]
            assert plan.refusals[0].reason

    async def test_a_column_that_the_server_keeps_is_never_sent(self, target: Target) -> None:
        """A change that names a column beyond its `written` is refused or skipped, with the reason."""
        async with _new_row(target) as row:
            for column in (await target.describe(target.scratch)).columns:
                value = USUAL.get(column.kind, ["changed"])[0]
                changes: list[Change] = []
                if column.written is not Written.ALWAYS:
                    changes.append(Update(row.key, {column.name: value}))
                if column.written is Written.NEVER:
                    changes.append(Insert(target.scratch, {**target.row, column.name: value}))
                for change in changes:
                    plan = await _plan(target, change)
                    assert plan.planned == [], change
                    [outcome] = plan.refusals
                    assert outcome.status in (OutcomeStatus.SKIPPED, OutcomeStatus.REFUSED)
                    assert outcome.reason, change

    async def test_an_update_that_names_the_key_moves_no_row(self, target: Target) -> None:
        """An update that gives a row another key is refused as a whole; one that repeats its key moves nothing."""
        target.given("change")
        async with _new_row(target) as row:
            count = await target.count(target.scratch)
            for column in (await target.describe(target.scratch)).columns:
                if not column.is_key:
                    continue
                plan = await _plan(target, Update(row.key, {**target.change, column.name: _other(row[column.name])}))
                assert plan.planned == [], f"an update that sets the key {column.name} is sent: {plan.requests}"
                assert [bool(outcome.reason) for outcome in plan.refusals] == [True], column.name
                await _apply(target, Update(row.key, {**target.change, column.name: row[column.name]}))
                assert await target.count(target.scratch) == count, "an update of a row wrote another one"
                assert await _find(target, row.key) is not None, "the row is not found under its key any more"

    async def test_a_value_is_stored_alike_however_it_is_spelled(self, target: Target) -> None:
        """A value that is typed, comes from Python or is JSON is stored as the same one, see `Values`.

        A command line sends texts (``12.5``, ``true``, ``["a"]``), a script numbers, Decimals, lists and bytes, a page
        and a change file `Json`.
        """
        _needs(target)
        columns = {column.name: column for column in (await target.describe(target.scratch)).columns}
        inserted, updated = (
            {name: _spellings(columns[name], value) for name, value in values.items() if name in columns}
            for values in (target.row, target.change)
        )
        for turn in range(max(map(len, [*inserted.values(), *updated.values()]))):
            row = {name: spellings[turn % len(spellings)] for name, spellings in inserted.items()}
            async with _new_row(target, values=row) as stored:
                _stored_alike(stored, row, target.row)
                change = {name: spellings[turn % len(spellings)] for name, spellings in updated.items()}
                if change:
                    [outcome] = await _apply(target, Update(stored.key, change))
                    assert outcome.status is OutcomeStatus.APPLIED, f"{change}: {outcome.reason}"
                    after = await _find(target, stored.key)
                    assert after is not None
                    _stored_alike(after, change, target.change)

    async def test_a_whole_number_keeps_every_digit(self, target: Target) -> None:
        """A number of 17 digits is read as it was written; or the insert is refused, or a note of its plan says so."""
        _needs(target)
        target.needs("fetch_cell")
        await target.describe(target.scratch)
        for name in [name for name, value in target.row.items() if type(value) is int]:
            insert = target.insert()
            expected: Values = {name: 12_345_678_901_234_567}
            plan = await _plan(target, msgspec.structs.replace(insert, values={**insert.values, **expected}))
            [outcome] = await target.driver.apply_change(plan) if plan.planned else plan.refusals
            notes = [note for note in plan.notes if note.column == name or f"'{name}'" in note.reason]
            for row in await target.all_rows(target.scratch):
                if outcome.status is OutcomeStatus.APPLIED and row.key.id == outcome.id and not notes:
                    _stored_alike(row, expected, expected)
                    cell = CellRequest(key=row.key, column=name)
                    assert await target.driver.fetch_cell(cell) == row[name], f"{name}: fetch_cell loses digits"
            await _remove(target, outcome)

    async def test_an_insert_takes_the_key_from_its_column(self, target: Target) -> None:
        """An insert that names the key by its columns, if they can be inserted, writes the row with that key."""
        async with _new_row(target) as row:
            columns = [column for column in (await target.describe(target.scratch)).columns if column.is_key]
            if not columns or any(column.written is not Written.INSERT for column in columns):
                pytest.skip("no insert names the key by its columns")
            [outcome] = await _apply(target, Delete(row.key))
            assert outcome.status is OutcomeStatus.APPLIED, outcome.reason
            key = {column.name: row[column.name] for column in columns}
            [outcome] = await _apply(target, Insert(target.scratch, {**target.row, **key}))
            assert outcome.status is OutcomeStatus.APPLIED, outcome.reason
            assert outcome.id == row.key.id

    async def test_a_change_of_a_row_that_changed_meanwhile_is_a_conflict(self, target: Target) -> None:
        """Of two updates planned from the same state, the second is a conflict and overwrites nothing."""
        target.given("change")
        async with _new_row(target) as row:
            if not row.key.guard:
                pytest.skip("rows carry no guard")
            back: Values = {name: row[name] for name in target.change}
            plans = [await _plan(target, Update(row.key, values)) for values in (target.change, back)]
            [first] = await target.driver.apply_change(plans[0])
            [second] = await target.driver.apply_change(plans[1])
            assert (first.status, second.status) == (OutcomeStatus.APPLIED, OutcomeStatus.CONFLICT)
            assert second.reason
            after = await _find(target, row.key)
            assert after is not None
            assert await _values(target, after) == {**await _values(target, row), **target.change}

    async def test_a_change_without_a_guard_spares_a_row_that_changed_since(self, target: Target) -> None:
        """Without a guard in its key, the row must be at `apply_change` what it was at `plan_change`."""
        target.given("change")
        for kind in (Update, Delete):
            async with _new_row(target) as row:
                back: Values = {name: row[name] for name in target.change}
                plan = await _plan(target, Delete(_bare(row.key)) if kind is Delete else Update(_bare(row.key), back))
                assert plan.planned, plan.refusals
                [other] = await _apply(target, Update(row.key, target.change))
                assert other.status is OutcomeStatus.APPLIED, other.reason
                [outcome] = await target.driver.apply_change(plan)
                assert outcome.status is OutcomeStatus.CONFLICT, (
                    f"a row that changed since its {kind.__name__} was planned: {outcome}"
                )
                assert outcome.reason
                after = await _find(target, row.key)
                assert after is not None
                assert await _values(target, after) == {**await _values(target, row), **target.change}

    async def test_an_insert_never_overwrites(self, target: Target) -> None:
        """An insert with the id of an existing row is not applied, unless it asks to replace."""
        async with _new_row(target) as row:
            [outcome] = await _apply(target, Insert(target.scratch, {**target.row, **target.change}, id=row.key.id))
            assert outcome.status is not OutcomeStatus.APPLIED
            assert outcome.reason
            after = await _find(target, row.key)
            assert after is not None
            assert after.to_dict() == row.to_dict()

    async def test_a_deleted_row_is_gone(self, target: Target) -> None:
        """A delete is applied and removes only this row."""
        async with _new_row(target) as row:
            before = await target.count(target.scratch)
            [outcome] = await _apply(target, Delete(row.key))
            assert outcome.status is OutcomeStatus.APPLIED, outcome.reason
            assert await _find(target, row.key) is None
            assert await target.count(target.scratch) == before - 1

    async def test_a_change_whose_answer_is_lost_is_unknown(self, target: Target) -> None:
        """If the server carries out a change and no answer arrives from then on, its outcome is `unknown`.

        So it is if the driver raises an error, unless the error says that nothing was sent.
        """
        _needs(target)
        if target.lose is None:
            pytest.skip("answers of the server cannot be lost")
        for status in (0, 502, 504):
            for kind in (Insert, Update, Delete) if target.change else (Insert, Delete):
                async with _new_row(target) as row:
                    case = f"{kind.__name__}, status {status}"
                    before = await target.all_rows(target.scratch)
                    plan = await _plan(target, _change_of(kind, row, target))
                    with target.lose(plan.requests[0], status):
                        [outcome] = await _outcomes(target, plan)
                    assert outcome.status is OutcomeStatus.UNKNOWN, f"{case}: {outcome}"
                    assert outcome.reason, case
                    after = await target.all_rows(target.scratch)
                    assert after != before, f"{case}: the server did not carry it out"
                    for stored_row in after:
                        if stored_row.key.id not in [old_row.key.id for old_row in before]:
                            await _apply(target, Delete(stored_row.key))

    async def test_every_change_has_one_outcome(self, target: Target) -> None:
        """Refusals of the plan and outcomes of applying cover each change exactly once."""
        async with _new_row(target) as row:
            columns = (await target.describe(target.scratch)).columns
            fixed = next((column.name for column in columns if column.written is not Written.ALWAYS), "")
            if not fixed:
                pytest.skip("every column can be edited")
            last = Update(row.key, target.change) if target.change else Delete(row.key)
            changes: list[Change] = [Update(row.key, {fixed: "changed"}), target.insert(), last]
            plan = await _plan(target, *changes)
            outcomes = await target.driver.apply_change(plan)
            assert sorted(outcome.change for outcome in [*plan.refusals, *outcomes]) == [0, 1, 2]
            planned = sorted(number for request in plan.planned for number in request.changes)
            assert planned == sorted(outcome.change for outcome in outcomes)
            for outcome in outcomes:
                if outcome.change == 1:
                    await _remove(target, outcome)

    async def test_rows_of_a_load_are_written_and_each_has_an_outcome(self, target: Target) -> None:
        """The rows of an `InsertBatch` are written like inserts, and outcomes that are joined stand for applied rows.

        A load never gets the number of a plan that stays in the driver's process: the host exchanges it.
        """
        _needs(target)
        await target.describe(target.scratch)
        before = await target.count(target.scratch)
        inserts = [target.insert() for _ in range(3)]
        ids = [insert.id for insert in inserts if isinstance(insert.id, str)]
        if len(ids) not in (0, 3) or any(isinstance(insert.id, bytes | list) for insert in inserts):
            pytest.skip("the ids of its rows are no texts")
        batch = InsertBatch(target.scratch, values=[insert.values for insert in inserts], ids=[*ids])
        keys = [row.key.id for row in await target.all_rows(target.scratch)]
        plan: Plan = await target.driver.plan_change(PlanRequest(changes=batch, bulk=True, last=True))
        assert plan.refusals == []
        whole = msgspec.structs.replace(plan, changes=batch, bulk=True)
        outcomes: list[Outcome] = await target.driver.apply_change(whole)
        try:
            assert [outcome for outcome in outcomes if outcome.status is not OutcomeStatus.APPLIED] == []
            numbers = [outcome.change + at for outcome in outcomes for at in range(outcome.rows)]
            assert sorted(numbers) == [0, 1, 2]
            assert all(outcome.rows == 1 or (outcome.id is None and outcome.key is None) for outcome in outcomes)
            assert await target.count(target.scratch) == before + 3
        finally:
            for row in await target.all_rows(target.scratch):
                if row.key.id not in keys:
                    await _apply(target, Delete(row.key))

    async def test_changes_of_one_row_are_carried_out_in_order(self, target: Target) -> None:
        """If a plan updates one row twice, the later update wins, unless its outcome says that it was not applied."""
        target.given("change")
        async with _new_row(target) as row:
            steps: list[Values] = [{**target.change}, {name: row[name] for name in target.change}]
            outcomes = await _apply(target, *(Update(row.key, values) for values in steps))
            assert sorted(outcome.change for outcome in outcomes) == [0, 1]
            expected: Values = await _values(target, row)
            for outcome in sorted(outcomes, key=lambda outcome: outcome.change):
                expected |= steps[outcome.change] if outcome.status is OutcomeStatus.APPLIED else {}
            after = await _find(target, row.key)
            assert after is not None
            assert await _values(target, after) == expected

    async def test_an_undo_takes_back_what_was_applied_and_nothing_else(self, target: Target) -> None:
        """The undo of a plan finds no row before the plan is applied; afterwards it brings all rows back."""
        async with _new_row(target) as row:
            changes: list[Change] = [*([Update(row.key, target.change)] if target.change else []), target.insert()]
            plan: Plan = await target.driver.plan_change(PlanRequest(changes=changes, undo=True))
            plan = msgspec.structs.replace(plan, changes=changes)  # as the host does
            if not plan.undo:
                pytest.skip("plans no undo")
            assert len(plan.undo) == sum(len(planned.by_row) for planned in plan.planned)
            before = await target.count(target.scratch)
            for applied in (False, True):
                if applied:
                    assert {outcome.status for outcome in await target.driver.apply_change(plan)} == {
                        OutcomeStatus.APPLIED
                    }
                outcomes = await _apply(target, *plan.undo)
                assert {outcome.status is OutcomeStatus.APPLIED for outcome in outcomes} == {applied}, outcomes
                after = await _find(target, row.key)
                assert after is not None
                assert await _values(target, after) == await _values(target, row)
                assert await target.count(target.scratch) == before

    @pytest.mark.parametrize("name", ["*", "_all", "", "a,b"])
    async def test_a_drop_of_more_than_one_object_is_refused(self, target: Target, name: str) -> None:
        """A drop names one object: wildcards, lists and empty names plan no request."""
        _needs(target)
        try:
            plan = await _plan(target, Drop(name))
        except DragomanError:
            return
        assert plan.planned == []
        assert [outcome.status for outcome in plan.refusals] == [OutcomeStatus.REFUSED]


def _needs(target: Target) -> None:
    target.needs("describe_object", "fetch_page", "plan_change", "apply_change")
    target.given("scratch", "row")


async def _plan(target: Target, *changes: Change) -> Plan:
    plan: Plan = await target.driver.plan_change(PlanRequest(changes=list(changes)))
    return msgspec.structs.replace(plan, changes=list(changes))  # as the host does


def _change_of(kind: type[Insert | Update | Delete], row: Row, target: Target) -> Change:
    if kind is Insert:
        return target.insert()
    return Update(row.key, target.change) if kind is Update else Delete(row.key)


async def _outcomes(target: Target, plan: Plan) -> list[Outcome]:
    """Apply a plan, and take an error for the outcome of each change, as the host does."""
    try:
        outcomes: list[Outcome] = await target.driver.apply_change(plan)
    except DragomanError as error:
        status = OutcomeStatus.FAILED if error.details.get("sent") is False else OutcomeStatus.UNKNOWN
        numbers = [number for planned in plan.planned for number in planned.changes]
        return [Outcome(change=number, status=status, reason=error.message) for number in numbers]
    return outcomes


async def _apply(target: Target, *changes: Change) -> list[Outcome]:
    """Plan and apply; changes that the plan refuses also yield outcomes."""
    plan = await _plan(target, *changes)
    outcomes: list[Outcome] = [*plan.refusals, *(await target.driver.apply_change(plan) if plan.planned else [])]
    return outcomes


@asynccontextmanager
async def _new_row(target: Target, *, without: str = "", values: Values | None = None) -> AsyncIterator[Row]:
    _needs(target)
    await target.describe(target.scratch)
    insert = target.insert()
    values = {name: value for name, value in {**insert.values, **(values or {})}.items() if name != without}
    [outcome] = await _apply(target, msgspec.structs.replace(insert, values=values))
    assert outcome.status is OutcomeStatus.APPLIED, f"{values}: {outcome.reason}"
    assert outcome.id, "the outcome of an insert has no id"
    row = next((row for row in await target.all_rows(target.scratch) if row.key.id == outcome.id), None)
    assert row is not None, f"the inserted row {outcome.id!r} is missing"
    try:
        yield row
    finally:
        await _remove(target, outcome)


async def _remove(target: Target, outcome: Outcome) -> None:
    """Delete a row in its current state, if it still exists."""
    row = next((row for row in await target.all_rows(target.scratch) if row.key.id == outcome.id), None)
    if row is not None:
        await _apply(target, Delete(row.key))


async def _find(target: Target, key: RowKey) -> Row | None:
    """Find the current state of a row."""
    rows = await target.all_rows(target.scratch)
    return next((row for row in rows if msgspec.structs.replace(row.key, guard={}) == _bare(key)), None)


async def _values(target: Target, row: Row) -> Values:
    """Return a row without the columns that the server keeps, such as a version: every write may change them."""
    columns = (await target.describe(target.scratch)).columns
    server_columns = {column.name for column in columns if column.written is Written.NEVER and not column.is_key}
    return {name: cell for name, cell in row.to_dict().items() if name not in server_columns}


def _spellings(column: Column, value: object) -> list[Any]:
    """Return the ways in which people, scripts and files spell a value of a column."""
    if value is None or column.is_key:
        return [value]
    if isinstance(value, bytes):
        base64 = b64encode(value).decode()
        return [value, base64, Json(encode(base64))]
    if isinstance(value, list | dict | Json):
        text = value if isinstance(value, Json) else encode(value)
        return [value, Json(text), str(text), decoded(text)]
    json = Json(encode(value))
    if isinstance(value, bool):
        return [value, json, str(json)]
    if isinstance(value, int | float | Decimal):
        return [value, json, str(json), Decimal(str(json))]
    return [value, json]


def _stored_alike(row: Row, spelled: Values, expected: Values) -> None:
    for name, spelling in spelled.items():
        cell: Any = row[name]
        value: Any = expected[name]
        if isinstance(cell, Json):
            cell, value = (decoded(text) if isinstance(text, str) else text for text in (cell, value))
        assert with_digits(cell) == with_digits(value), (
            f"{name}: {spelling!r} ({type(spelling).__name__}) is stored as {row[name]!r}, not as {expected[name]!r}"
        )


def _other(value: Any) -> Any:
    """Return a value of a key column that the row does not have."""
    if isinstance(value, bytes | str):
        return value[:-1] + b"~" if isinstance(value, bytes) else f"{value[:-1]}~"
    return value + 1 if isinstance(value, int | float) else "changed"


def _bare(key: RowKey) -> RowKey:
    return msgspec.structs.replace(key, guard={})


def _may_write(target: Target, request: HttpRequest, plan: Plan) -> bool:
    reads = request.method in ("GET", "HEAD") or target.posts_that_read(request)
    return request in plan.requests or not reads
