"""Values of changes as columns store them, and a look before each write."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import Column, ColumnKind, Delete, Drop, HttpRequest, Insert, Outcome, OutcomeStatus, RowKey, Update
from dragoman_api.cells import CutText, Json
from dragoman_api.changes import Plan, PlannedRequest
from dragoman_api.columns import Role, Written
from dragoman_api.errors import ConnectionFailedError
from dragoman_api.kit.row_changes import NotSentError, Outcomes, after_writing
from dragoman_api.kit.writing import batches, digest_guard, send_after_a_look, stored_value, writable

KINDS = ColumnKind
STORED = [
    (KINDS.INTEGER, "12", 12), (KINDS.INTEGER, Json("12"), 12), (KINDS.INTEGER, 12, 12), (KINDS.INTEGER, "1e2", 100),
    (KINDS.INTEGER, "1.5", None), (KINDS.INTEGER, "twelve", None), (KINDS.FLOAT, "1.50", Decimal("1.50")),
    (KINDS.FLOAT, Json('"1.50"'), "1.50"), (KINDS.BOOLEAN, "TRUE", True), (KINDS.BOOLEAN, "yes", None),
    (KINDS.TEXT, "[1]", "[1]"), (KINDS.TEXT, Json("[1]"), [1]), (KINDS.JSON, "[1]", [1]), (KINDS.JSON, "[1", None),
    (KINDS.JSON, Json("[1"), None), (KINDS.BINARY, "AP8=", b"\0\xff"), (KINDS.BINARY, Json('"AP8="'), b"\0\xff"),
    (KINDS.BINARY, b"\0", b"\0"), (KINDS.BINARY, "a b", None), (KINDS.TEXT, b"a", None),
    (KINDS.TEXT, CutText("a..."), None),
    (KINDS.TIMESTAMP, "2024-01-31T12:00:00Z", "2024-01-31T12:00:00Z"), (KINDS.TIMESTAMP, "yesterday", None),
    (KINDS.DATE, "2024-01-31", "2024-01-31"), (KINDS.DATE, "31.1.2024", None), (KINDS.OTHER, "1", "1"),
]  # fmt: skip
"""A kind of column, a value of a change, and what is stored; None if the value is refused."""


@pytest.mark.parametrize(("kind", "value", "stored"), STORED)
def test_a_value_is_stored_as_its_column_holds_it_or_refused(kind, value, stored):
    column = Column(name="c", type="", kind=kind)
    if stored is None:
        with pytest.raises(ValueError, match=r"\w"):
            stored_value(column, value)
    else:
        read = stored_value(column, value)
        assert (type(read), read) == (type(stored), stored)
    assert stored_value(column, None) is None


def test_a_column_of_arrays_reads_a_text_as_json():
    assert stored_value(Column(name="c", type="", kind=KINDS.TEXT, repeated=True), '["a"]') == ["a"]
    assert stored_value(Column(name="c", type="", kind=KINDS.INTEGER, multiple=True), "[1,2]") == [1, 2]
    assert stored_value(Column(name="c", type="", kind=KINDS.INTEGER, multiple=True), "1") == 1


COLUMNS = [
    Column(name="id", type="", kind=KINDS.TEXT, role=Role.KEY, written=Written.INSERT, reasons={"edit": "the key"}),
    Column(name="n", type="", kind=KINDS.INTEGER),
    Column(name="made", type="", written=Written.NEVER),
]  # fmt: skip


def test_a_change_names_only_columns_that_it_may_write_and_all_faults_are_said_at_once():
    assert writable(Insert("o", {"id": "a", "n": "1"}), COLUMNS) == {"id": "a", "n": 1}
    with pytest.raises(NotSentError) as caught:
        writable(Update(RowKey("o", "a"), {"id": "b", "n": "x", "made": 1, "other": 2}), COLUMNS)
    for part in ("id: the key", "n: 'x' is not", "made: the server keeps it", "other: there is no such column"):
        assert part in str(caught.value)
    with pytest.raises(NotSentError, match="as a document"):
        writable(Insert("o", document="{}"), COLUMNS)


class Rows:
    """Rows by id on a server that compares nothing."""

    def __init__(self, **rows):
        self.rows, self.sent, self.broken = rows, [], False

    async def look(self, key):
        if self.broken:
            raise ConnectionFailedError("no answer", details={"sent": True})
        return digest_guard(self.rows[key.id]) if key.id in self.rows else None

    async def send(self, planned, change):
        self.sent.append(planned.request.path)
        return Outcome(change=0, status=OutcomeStatus.APPLIED)


OLD, NEW = digest_guard("old"), digest_guard("new")
LOOKS = [
    (Insert("o", {}, id="new"), {}, "applied"),
    (Insert("o", {}), {}, "applied"),
    (Insert("o", {}, id="a"), {}, "conflict"),
    (Insert("o", {}, id="a", replace=True), {}, "applied"),
    (Insert("o", {}, id="new", replace=True), {}, "applied"),
    (Insert("o", {}, id="a", replace=True, guard=NEW), {}, "conflict"),
    (Insert("o", {}, id="a", replace=True, guard=OLD), {}, "applied"),
    (Insert("o", {}, id="new", replace=True, guard=OLD), {}, "conflict"),
    *(
        (change, guard, outcome)
        for kind in (Delete, lambda key: Update(key, {"n": 1}))
        for change, guard, outcome in (
            (kind(RowKey("o", "a", guard=OLD)), {}, "applied"),
            (kind(RowKey("o", "a", guard=NEW)), {}, "conflict"),
            (kind(RowKey("o", "a", guard=NEW)), OLD, "conflict"),
            (kind(RowKey("o", "a")), OLD, "applied"),
            (kind(RowKey("o", "a")), NEW, "conflict"),
            (kind(RowKey("o", "gone")), OLD, "conflict"),
        )
    ),
    (Drop("o"), {}, "applied"),
]
"""A change, the guard of its planned request, and what becomes of it where the row `a` is old."""


def plan_of(change, guard):
    planned = PlannedRequest(request=HttpRequest("POST", "/write"), changes=[0], guard=guard)
    return Plan(planned=[planned], changes=[change])


@pytest.mark.parametrize(("change", "guard", "outcome"), LOOKS)
async def test_a_request_is_sent_only_if_its_row_is_as_the_plan_expects_it(change, guard, outcome):
    server = Rows(a="old")
    [told] = await send_after_a_look(plan_of(change, guard), look=server.look, send=server.send)
    assert (told.status, bool(told.reason), bool(server.sent)) == (outcome, outcome == "conflict", outcome == "applied")


async def test_a_look_that_fails_sends_nothing_and_says_so():
    server = Rows(a="old")
    server.broken = True
    with pytest.raises(ConnectionFailedError) as caught:
        await send_after_a_look(plan_of(Delete(RowKey("o", "a")), OLD), look=server.look, send=server.send)
    assert (caught.value.details["sent"], server.sent) == (False, [])


@pytest.mark.parametrize(
    ("change", "guard", "rows", "status"),
    [
        (Insert("o", {}, id="new"), {}, {"a": "old", "new": "new"}, "applied"),
        (Insert("o", {}, id="new"), {}, {"a": "old", "new": "other"}, "unknown"),
        (Insert("o", {}, id="new"), {}, {"a": "old"}, "unknown"),
        (Insert("o", {}), {}, {"a": "new"}, "unknown"),
        (Update(RowKey("o", "a"), {}), OLD, {"a": "new"}, "applied"),
        (Update(RowKey("o", "a"), {}), OLD, {"a": "old"}, "unknown"),
        (Update(RowKey("o", "a"), {}), OLD, {}, "unknown"),
        (Delete(RowKey("o", "a")), OLD, {}, "applied"),
        (Delete(RowKey("o", "a")), OLD, {"a": "old"}, "unknown"),
        (Update(RowKey("o", "a"), {}), OLD, None, "unknown"),
        (Drop("o"), {}, {}, "unknown"),
    ],
)
@pytest.mark.parametrize("raises", [True, False])
async def test_a_write_whose_answer_is_lost_is_looked_for(change, guard, rows, status, raises):
    server = Rows(a="old")

    async def send(planned, sent):
        server.rows, server.broken = rows or {}, rows is None
        if raises:
            raise ConnectionFailedError("the connection ended", details={"sent": True})
        return Outcome(change=0, status=OutcomeStatus.UNKNOWN, reason="the connection ended")

    def written(planned, sent):
        return None if isinstance(sent, Delete) else NEW

    plan = plan_of(change, guard)
    [told] = await send_after_a_look(plan, look=server.look, send=send, written=written)
    assert (told.status, told.change) == (status, 0)
    assert ("the connection ended" in told.reason) is (status == "unknown")
    server = Rows(a="old")
    [told] = await send_after_a_look(plan, look=server.look, send=send)
    assert told.status == "unknown"


def test_a_look_after_a_write_that_fails_does_not_say_that_the_write_was_not_sent():
    outcomes = Outcomes()
    with outcomes.sending([0]), after_writing():
        raise ConnectionFailedError("nothing listens", details={"sent": False})
    assert outcomes.of(0).status is OutcomeStatus.UNKNOWN


def test_a_digest_is_of_all_that_a_row_holds_and_not_of_the_order_of_its_members():
    assert digest_guard({"a": [{"b": 1, "c": 2}]}) == digest_guard({"a": [{"c": 2, "b": 1}]})
    assert len({str(digest_guard(row)) for row in ({"a": 1}, {"a": 1.5}, {"a": "1"}, {"a": None}, {}, {"a": [1]})}) == 6


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": [1, {"c": None}]}, {"b": [1, {"c": None}], "a": 1}, True),
        ({"n": 12.5}, {"n": Decimal("12.50")}, True),
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 10**30}, {"n": Decimal("1E+30")}, True),
        ({"n": 10**30}, {"n": 10**30 + 1}, False),
        ({"n": 0.1}, {"n": Decimal("0.1000000000000000000001")}, False),
        ({"n": 1}, {"n": "1"}, False),
        ({"n": 1}, {"n": True}, False),
        ({"n": 0}, {"n": None}, False),
        ({"n": None}, {}, False),
        ({"n": [1, 2]}, {"n": [2, 1]}, False),
        (b"{}", {}, True),
        ({"n": Decimal("1E+1000000000")}, {"n": Decimal("1E+1000000001")}, False),
        ({"n": Decimal("1E+1000000001")}, {"n": Decimal("10E+1000000000")}, True),
        ({"n": Decimal("0." + "1" * 40)}, {"n": Decimal("0." + "1" * 40 + "0")}, True),
        ({"n": Decimal("0." + "1" * 40)}, {"n": Decimal("0." + "1" * 41)}, False),
        ({"n": -0.0}, {"n": 0}, True),
        ({"n": Decimal("9" * 5_000)}, {"n": Decimal("9" * 5_001)}, False),
        ({"n": -1.5}, {"n": 1.5}, False),
    ],
)
def test_the_state_of_a_row_is_what_it_holds_and_not_how_that_is_spelled(one, other, same):
    assert (digest_guard(one) == digest_guard(other)) is same


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 5), st.integers(0, 20))
def test_batches_hold_every_row_once_and_are_as_large_as_they_may_be(
    sizes: list[int], limit: int, size_limit: int
) -> None:
    parts = [*batches(sizes, lambda size: size, limit=limit, size_limit=size_limit)]
    assert [size for part in parts for size in part] == sizes
    assert all(part and len(part) <= limit and (sum(part) <= size_limit or len(part) == 1) for part in parts)
    for part, after in pairwise(parts):
        assert len(part) == limit or sum(part) + after[0] > size_limit
