"""Changes of rows: folded without losing one, and planned so that each has exactly one outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import Delete, Drop, HttpRequest, Insert, OutcomeStatus, QueryError, RowKey, Update
from dragoman_api.changes import object_of
from dragoman_api.errors import AccessDeniedError, AuthenticationError, ObjectNotFoundError, RowNotFoundError
from dragoman_api.kit.row_changes import Folded, NotSentError, PlanDraft, fold, row_of, typed

if TYPE_CHECKING:
    from dragoman_api.changes import Change

HERE = {"rev": "1"}
STALE = {"rev": "0"}
REQUEST = HttpRequest("PUT", "/")
Rows = dict[str, dict[str, Any]]


@dataclass
class Store:
    """A server whose rows have a revision: the state before a set has the revision of `HERE`."""

    rows: Rows = field(default_factory=lambda: {"1": {"a": 0, "b": 0}, "2": {"a": 0}})

    def apply(self, change: Change) -> bool:
        """Carry out one change as a server does, and return whether it did."""
        if isinstance(change, Insert):
            there = change.id in self.rows
            if (there and not change.replace) or (change.guard and not (there and change.guard == HERE)):
                return False
            self.rows[change.id or "made"] = dict(change.values)
            return True
        assert isinstance(change, (Update, Delete))
        if change.key.id not in self.rows or change.key.guard not in ({}, HERE):
            return False
        if isinstance(change, Delete):
            del self.rows[change.key.id]
        else:
            self.rows[change.key.id] |= change.values
        return True


def step_by_step(rows: Rows, changes: list[Change]) -> Rows:
    """Return what some changes make of the rows in their order, whatever their guards."""
    made = {name: dict(values) for name, values in rows.items()}
    for change in changes:
        name = row_of(change) or "made"
        if isinstance(change, Insert):
            made[name] = dict(change.values)
        elif isinstance(change, Delete):
            made.pop(name, None)
        elif name in made and isinstance(change, Update):
            made[name] |= change.values
    return made


VALUES = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 9), max_size=2)
ROW = st.sampled_from(["1", "2", "3"])
KEYS = st.builds(lambda row, guard: RowKey("t", row, guard=guard), ROW, st.sampled_from([{}, HERE, HERE, STALE]))
CHANGES = st.one_of(
    st.builds(lambda row, values, replace: Insert("t", values, row, replace=replace), ROW, VALUES, st.booleans()),
    st.builds(lambda row, values: Insert("t", values, row, replace=True, guard=HERE), ROW, VALUES),
    st.builds(lambda row, values: Insert("t", values, row, guard=HERE), ROW | st.none(), VALUES),
    st.builds(Update, KEYS, VALUES), st.builds(Update, KEYS, VALUES), st.builds(Delete, KEYS),
)  # fmt: skip


@given(st.lists(CHANGES, max_size=7))
def test_a_fold_does_what_its_changes_do_one_after_another(changes: list[Change]) -> None:
    draft = PlanDraft(changes)
    store = Store()
    for folded in fold(draft):
        before = {name: dict(values) for name, values in store.rows.items()}
        applied = store.apply(folded.change)
        assert store.rows == (step_by_step(before, [changes[each] for each in folded.numbers]) if applied else before)
        draft.send(REQUEST, *folded.numbers)
    plan = draft.plan()
    skipped = [each.change for each in plan.refusals if each.status is OutcomeStatus.SKIPPED]
    assert step_by_step({}, [changes[each] for each in skipped]) == {}, "what is skipped comes to nothing"


@given(st.lists(CHANGES, max_size=7))
def test_a_fold_drops_no_change_and_keeps_the_strictest_guard(changes: list[Change]) -> None:
    draft = PlanDraft(changes)
    found = fold(draft)
    for folded in found:
        draft.send(REQUEST, *folded.numbers)
        assert list(folded.numbers) == sorted(folded.numbers)
        rows = {row_of(changes[each]) for each in folded.numbers}
        assert rows == {row_of(folded.change)}
        guards = [
            change.guard if isinstance(change, Insert) else change.key.guard
            for change in (changes[each] for each in folded.numbers)
            if isinstance(change, (Insert, Update, Delete))
        ]
        kept = folded.change.guard if isinstance(folded.change, Insert) else folded.change.key.guard  # type: ignore[union-attr]
        assert all(guard in ({}, kept) for guard in guards), "a guard that was given is not lost"
    assert len(draft.plan().refusals) == len(changes) - sum(len(each.numbers) for each in found)


def folded(*changes: Change) -> tuple[list[Folded], list[tuple[int, str]]]:
    draft = PlanDraft(changes)
    found = fold(draft)
    for each in found:
        draft.send(REQUEST, *each.numbers)
    return found, [(each.change, str(each.status)) for each in draft.plan().refusals]


def test_what_contradicts_an_earlier_change_is_refused_alone() -> None:
    key = RowKey("t", "1", guard=HERE)
    assert folded(Delete(key), Update(key, {"a": 1}), Delete(key)) == (
        [Folded(Delete(key), (0,))],
        [(1, "refused"), (2, "refused")],
    )
    assert folded(Update(key, {"a": 1}), Insert("t", {}, "1")) == (
        [Folded(Update(key, {"a": 1}), (0,))],
        [(1, "refused")],
    )
    stale = RowKey("t", "1", guard=STALE)
    assert folded(Update(key, {"a": 1}), Update(stale, {"a": 2}))[1] == [(1, "conflict")]
    assert folded(Insert("t", {}, "1", document="{}"), Update(RowKey("t", "1"), {"a": 2}))[1] == [(1, "refused")]


PLAIN, GUARDED = RowKey("t", "1"), RowKey("t", "1", guard=HERE)


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ([Update(GUARDED, {"a": 1, "b": 1}), Update(GUARDED, {"b": 2})], Update(GUARDED, {"a": 1, "b": 2})),
        ([Update(PLAIN, {"a": 1}), Update(GUARDED, {"b": 2})], Update(GUARDED, {"a": 1, "b": 2})),
        ([Update(GUARDED, {"a": 1}), Update(PLAIN, {"b": None})], Update(GUARDED, {"a": 1, "b": None})),
        ([Update(GUARDED, {"a": 1}), Delete(PLAIN)], Delete(GUARDED)),
        ([Delete(GUARDED), Insert("t", {"a": 1}, "1")], Insert("t", {"a": 1}, "1", replace=True, guard=HERE)),
        ([Delete(PLAIN), Insert("t", {}, "1"), Update(PLAIN, {"a": 0})], Insert("t", {"a": 0}, "1", replace=True)),
        ([Insert("t", {"a": 1}, "1"), Update(PLAIN, {"b": 2})], Insert("t", {"a": 1, "b": 2}, "1")),
        ([Insert("t", {"a": 1}, "1"), Insert("t", {"b": 2}, "1", replace=True)], Insert("t", {"b": 2}, "1")),
        ([Insert("t", {"a": 1}, "1", replace=True), Update(PLAIN, {"b": 2})],
         Insert("t", {"a": 1, "b": 2}, "1", replace=True)),
        ([Update(PLAIN, {"a": 1}), Insert("t", {"b": 2}, "1", replace=True, guard=HERE)],
         Insert("t", {"b": 2}, "1", replace=True, guard=HERE)),
        ([Update(GUARDED, {"a": 1}), Delete(GUARDED), Insert("t", {}, "1", document="{}")],
         Insert("t", {}, "1", document="{}", replace=True, guard=HERE)),
    ],
)  # fmt: skip
def test_changes_of_one_row_become_one(changes: list[Change], result: Change) -> None:
    assert folded(*changes) == ([Folded(result, tuple(range(len(changes))))], [])


def test_changes_keep_the_order_of_the_first_of_each_row() -> None:
    other = RowKey("t", "2")
    found, _ = folded(
        Update(PLAIN, {"a": 1}), Update(other, {"a": 1}), Drop("u"), Delete(other), Update(PLAIN, {"b": 1})
    )
    assert [each.numbers for each in found] == [(0, 4), (1, 3), (2,)]


def test_rows_of_other_objects_and_kinds_of_keys_are_others() -> None:
    keys = [RowKey("t", "1"), RowKey("u", "1"), RowKey("t", b"1"), RowKey("t", ["1"]), RowKey("t", "['1']"),
            RowKey("t", "1", "r"), RowKey("t", "1", "s")]  # fmt: skip
    found, refused = folded(*(Delete(key) for key in keys), *(Delete(key) for key in keys))
    assert [each.numbers for each in found] == [(at,) for at in range(len(keys))]
    assert refused == [(len(keys) + at, "refused") for at in range(len(keys))]


def test_a_row_that_an_insert_may_replace_is_deleted_although_the_insert_is_undone() -> None:
    assert folded(Insert("t", {}, "1", replace=True, guard=HERE), Delete(PLAIN)) == (
        [Folded(Delete(GUARDED), (0, 1))], [],
    )  # fmt: skip
    made = Insert("t", {}, "1"), Update(PLAIN, {"a": 1}), Delete(PLAIN)
    assert folded(*made) == ([], [(at, "skipped") for at in range(3)])


@pytest.mark.parametrize("before", [[], [Delete(RowKey("t", "1"))], [Insert("t", {}, "1")]])
@pytest.mark.parametrize("change", [Insert("t", {}, "1", guard=HERE), Insert("t", {}, replace=True, guard=HERE)])
def test_a_guard_of_no_stored_row_is_refused(before: list[Change], change: Insert) -> None:
    assert folded(*before, change)[1] == [(len(before), "refused")]


def test_what_is_undone_in_the_same_set_is_skipped() -> None:
    assert folded(Insert("t", {"a": 1}, "1"), Delete(RowKey("t", "1"))) == ([], [(0, "skipped"), (1, "skipped")])
    assert folded(Insert("t", {}, "1", replace=True), Delete(RowKey("t", "1")))[0] == [
        Folded(Delete(RowKey("t", "1")), (0, 1))
    ]


def test_rows_are_one_by_object_id_and_routing() -> None:
    found, refused = folded(
        Insert("t", {}), Insert("t", {}), Insert("t", {}, "1", tenant="a"), Update(RowKey("t", "1", "a"), {"a": 1}),
        Insert("t", {}, "1", tenant="b"), Insert("u", {}, "1"), Delete(RowKey("t", "")),
    )  # fmt: skip
    assert [each.numbers for each in found] == [(0,), (1,), (2, 3), (4,), (5,)]
    assert refused == [(6, "skipped")]


def test_nothing_is_written_behind_the_drop_of_its_object() -> None:
    found, refused = folded(
        Insert("t", {}, "1"), Drop("t"), Insert("t", {}, "1"), Drop("t"), Insert("u", {}, "1"), Delete(PLAIN),
        Update(PLAIN, {"a": 1}),
    )  # fmt: skip
    assert [each.numbers for each in found] == [(0,), (1,), (4,)]
    assert refused == [(at, "refused") for at in (2, 3, 5, 6)]


# drafts of plans


@pytest.mark.parametrize("sent", [[], [0], [0, 1, 1], [0, 1, 2]])
def test_a_plan_accounts_for_each_change_exactly_once(sent: list[int]) -> None:
    draft = PlanDraft([Drop("a"), Drop("b")])
    draft.send(REQUEST, *sent)
    with pytest.raises(RuntimeError):
        draft.plan()


def test_a_request_of_several_rows_names_the_changes_of_each() -> None:
    draft = PlanDraft([Drop(name) for name in "abc"])
    draft.send(HttpRequest("POST", "/a"), rows=[(2, 0), (1,)])
    [planned] = draft.plan().planned
    assert (planned.changes, planned.rows, planned.by_row) == ([2, 0, 1], [[2, 0], [1]], [[2, 0], [1]])


def test_a_plan_has_the_changes_that_take_it_back() -> None:
    draft = PlanDraft([Insert("t", {}, "1")])
    draft.send(REQUEST, 0)
    assert draft.plan((Delete(PLAIN),)).undo == [Delete(PLAIN)]


def test_a_change_cannot_be_both_sent_and_refused() -> None:
    draft = PlanDraft([Drop("a")])
    draft.send(REQUEST, 0)
    draft.refuse(0, "no")
    with pytest.raises(RuntimeError):
        draft.plan()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotSentError("no"), "refused"),
        (NotSentError("no", status=OutcomeStatus.CONFLICT), "conflict"),
        (ValueError("no"), "refused"),
        (QueryError("no"), "refused"),
        (RowNotFoundError("no"), "refused"),
        (ObjectNotFoundError("no"), "refused"),
        (AccessDeniedError("no"), "refused"),
    ],
)
def test_an_error_about_a_change_refuses_that_change(error: Exception, status: str) -> None:
    draft = PlanDraft([Delete(RowKey("t", "1")), Drop("t")])
    with draft.judging(0):
        raise error
    with draft.judging(1):
        draft.send(REQUEST, 1)
    plan = draft.plan()
    assert [(each.change, each.status, each.id, each.reason) for each in plan.refusals] == [(0, status, "1", "no")]


@pytest.mark.parametrize("holds", [True, False])
def test_an_error_about_several_changes_refuses_each_of_them(holds: bool) -> None:
    draft = PlanDraft([Delete(RowKey("t", "1")), Drop("t"), Delete(RowKey("t", "2"))])
    with draft.judging(0, 2):
        raise NotSentError("no", status=OutcomeStatus.CONFLICT, holds=holds)
    draft.send(REQUEST, 1, guard=HERE)
    plan = draft.plan()
    assert [(each.change, each.status, each.id, each.holds) for each in plan.refusals] == [
        (0, "conflict", "1", holds), (2, "conflict", "2", holds),
    ]  # fmt: skip
    assert plan.planned[0].guard == HERE


@pytest.mark.parametrize("error", [KeyError("x"), AuthenticationError("no")])
def test_any_other_error_ends_the_plan(error: Exception) -> None:
    draft = PlanDraft([Drop("t")])
    with pytest.raises(type(error)), draft.judging(0):
        raise error


def test_a_note_is_made_once() -> None:
    draft = PlanDraft([])
    for reason in ("first", "second"):
        draft.note("rounded", "n", reason)
    draft.note("rounded", "m", "third")
    draft.note("rounded", "m", "fourth", column="c")
    notes = [(note.reason, note.column) for note in draft.plan().notes]
    assert notes == [("first", None), ("third", None), ("fourth", "c")]


def test_all_faults_of_a_row_are_told_at_once() -> None:
    def convert(name: str, value: object) -> int:
        if name == "leaf":
            raise NotSentError("edit the array", status=OutcomeStatus.SKIPPED)
        return int(str(value))

    assert typed({"a": "1", "b": 2}, convert) == {"a": 1, "b": 2}
    with pytest.raises(NotSentError) as caught:
        typed({"a": "x", "leaf": 1, "b": "y"}, convert)
    assert caught.value.status is OutcomeStatus.REFUSED
    assert [name in str(caught.value) for name in ("a: ", "edit the array", "b: ")] == [True] * 3
    with pytest.raises(NotSentError) as caught:
        typed({"leaf": 1}, convert)
    assert caught.value.status is OutcomeStatus.SKIPPED


def test_a_change_names_its_object_and_its_row() -> None:
    key = RowKey("t", "1")
    assert [object_of(each) for each in (Insert("t", {}), Update(key, {}), Delete(key), Drop("t"))] == ["t"] * 4
    assert [row_of(each) for each in (Insert("t", {}, ""), Update(key, {}), Delete(RowKey("t", "")), Drop("t"))] == [
        None, "1", None, None,
    ]  # fmt: skip


def test_changes_of_one_composite_or_binary_key_are_one_row() -> None:
    """An insert names it by its key columns, an update by its id."""
    for row, columns in ((["x", 1], {"a": "x", "b": 1}), (b"\xff", {"a": b"\xff"})):
        draft = PlanDraft([Insert("t", {**columns, "c": 1}), Update(RowKey("t", row), {"c": 2})])
        found = fold(draft, keyed=lambda insert, columns=columns: insert.with_key(*columns))  # type: ignore[misc]
        assert [(each.numbers, each.change) for each in found] == [((0, 1), Insert("t", {"c": 2}, row))]


def test_an_insert_whose_key_cannot_be_read_is_refused_alone() -> None:
    draft = PlanDraft([Insert("t", {"a": 1}), Insert("t", {"a": 1, "b": 2})])
    found = fold(draft, keyed=lambda insert: insert.with_key("a", "b"))
    assert [each.numbers for each in found] == [(1,)]
    draft.send(REQUEST, 1, statement="INSERT …")
    plan = draft.plan()
    assert [each.change for each in plan.refusals] == [0]
    assert plan.planned[0].statement == "INSERT …"
