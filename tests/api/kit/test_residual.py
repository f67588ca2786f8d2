"""Residual filters and sorts: what is evaluated here is what plain Python says, over no more rows than allowed."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman_api import Filter, FilterNotSupportedError, FilterRequest, PageRequest, RawQuery, Sort
from dragoman_api import Operator as Op
from dragoman_api.columns import Note, Operator
from dragoman_api.kit.residual import (
    ResidualFilter,
    ResidualKey,
    ResidualRow,
    residual_keys,
    residual_of,
    select,
    split_rows,
)
from dragoman_api.kit.row_evaluation import ValueKind as Kind

KINDS_OF_A = {"a": Kind.NUMBER}
KINDS = {"t": Kind.TEXT, "n": Kind.NUMBER, "b": Kind.BOOLEAN, "d": Kind.TIMESTAMP}
INSTANTS = ["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2023-12-31T23:59:59.5Z", "2024-02-01T00:00:00-08:00"]
VALUES = {
    "t": st.sampled_from(["tea", "Tea", "TEAPOT", "a tea", ""]),
    "n": st.integers(-3, 3) | st.sampled_from([1.5, -0.0, 2**70]),
    "b": st.booleans(),
    "d": st.sampled_from(INSTANTS),
}
NEGATED = {Op.NE: Op.EQ, Op.NOT_IN: Op.IN, Op.NOT_CONTAINS: Op.CONTAINS}
ORDERED = (Op.GT, Op.GE, Op.LT, Op.LE)


def stored(column):
    return st.none() | VALUES[column] | st.lists(VALUES[column] | st.none(), max_size=3)


ITEMS = st.lists(st.fixed_dictionaries({name: stored(name) for name in KINDS}), max_size=12)


@st.composite
def filter_rows(draw):
    column, op = draw(st.sampled_from(list(KINDS))), draw(st.sampled_from(list(Op)))
    value = VALUES[column]
    if op in (Op.NULL, Op.NOT_NULL, Op.EMPTY, Op.NOT_EMPTY):
        return Filter(column, op)
    if op is Op.BETWEEN:
        return Filter(column, op, draw(st.lists(value, min_size=2, max_size=2)))
    if op in (Op.IN, Op.NOT_IN):
        return Filter(column, op, draw(st.lists(value.filter(lambda each: each != ""), min_size=1, max_size=3)))
    return Filter(column, op, draw(value), case=draw(st.none() | st.booleans()))


def plainly(row, value):
    """Say what a filter row means, by another way than the kit."""
    elements = [each for each in (value if isinstance(value, list) else [value]) if each is not None]
    if row.op in (Op.NULL, Op.NOT_NULL):
        return bool(elements) is (row.op is Op.NOT_NULL)
    if row.op in NEGATED:
        return not plainly(msgspec.structs.replace(row, op=NEGATED[row.op]), value)
    return any(_one(row, each) for each in elements)


def _one(row, element):
    if row.op in (Op.EMPTY, Op.NOT_EMPTY):
        return (element == "") is (row.op is Op.EMPTY)
    given = row.value if isinstance(row.value, list) else [row.value]
    if row.column == "d":
        element, given = datetime.fromisoformat(element), [datetime.fromisoformat(each) for each in given]
    if row.column == "t" and (row.case is False or (row.case is None and row.op in (Op.CONTAINS, Op.STARTS, Op.ENDS))):
        element, given = element.lower(), [each.lower() for each in given]
    if row.op in (Op.EQ, Op.IN):
        return element in given
    if row.op is Op.BETWEEN:
        return given[0] <= element <= given[1]
    [value] = given
    return {
        Op.GT: lambda: element > value, Op.GE: lambda: element >= value, Op.LT: lambda: element < value,
        Op.LE: lambda: element <= value, Op.CONTAINS: lambda: value in element,
        Op.STARTS: lambda: element.startswith(value), Op.ENDS: lambda: element.endswith(value),
    }[row.op]()  # fmt: skip


def refuse_all(number, row):
    raise ValueError(f"reason {number}")


def split(*rows, match="all", residual=100, compile_row=refuse_all):
    request = FilterRequest(object="t", rows=list(rows), match=match, residual=residual)
    return split_rows(request, compile_row, hint=lambda row: "", kind=lambda row: KINDS.get(row.column))


def split_or_none(*rows, match="all"):
    try:
        return split(*rows, match=match)[1]
    except FilterNotSupportedError:
        return None


@given(ITEMS, st.lists(filter_rows(), min_size=1, max_size=3), st.sampled_from(["all", "any"]), st.integers(1, 12))
def test_a_page_holds_what_plain_python_finds_among_the_rows_that_were_read(items, rows, match, limit):
    where = split_or_none(*rows, match=match)
    if where is None:
        never = (Op.REGEX, Op.EMPTY, Op.NOT_EMPTY, Op.NEAR, Op.IN_BOX, Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS)
        assert any(row.column in "tb" or row.op in never for row in rows)
        return
    where = msgspec.json.decode(msgspec.json.encode(where), type=ResidualFilter)  # as it travels in the body
    read = items[:limit]
    found = select(read, dict.get, limit=limit, matched=len(items), where=where)
    join = all if match == "all" else any
    assert found.rows == [item for item in read if join(plainly(row, item[row.column]) for row in rows)]
    assert found.total == len(found.rows)
    assert found.total_exact is (len(items) <= limit)
    [note] = found.notes
    assert note.code == "residual-filter"
    assert bool(note.hint) is (len(items) > limit)


@given(filter_rows())
def test_without_leave_a_row_is_refused(row):
    with pytest.raises(FilterNotSupportedError) as caught:
        split(row, residual=None)
    assert caught.value.details["reason"] == "reason 0"


@pytest.mark.parametrize("column", KINDS)
def test_a_regular_expression_is_never_evaluated_here(column):
    with pytest.raises(FilterNotSupportedError):
        split(Filter(column, "regex", "(a+)+b"))


def test_rows_that_the_server_runs_are_compiled_and_the_others_left_over():
    def some(number, row):
        return refuse_all(number, row) if row.column == "t" else f"{row.column}{number}"

    rows = [Filter("n", ">", 1), Filter("t", "contains", "tea"), Filter("b", "=", "true")]
    compiled, left = split(*rows, compile_row=some)
    assert compiled == ["n0", "b2"]
    assert [each.number for each in left.rows] == [1]
    [told] = left.explained()
    assert (told.row, told.exact) == (1, False)
    assert "reason 1" in told.approximations[0]
    compiled, left = split(*rows, match="any", compile_row=some)
    assert compiled == []
    assert [(each.number, each.reason) for each in left.rows] == [
        (0, "another row of the same alternative cannot run"), (1, "reason 1"),
        (2, "another row of the same alternative cannot run"),
    ]  # fmt: skip
    assert [told.row for told in left.explained()] == [0, 1, 2]
    assert split(rows[0], rows[2], match="any", compile_row=some) == (["n0", "b1"], None)


@pytest.mark.parametrize(
    "other", [RawQuery("x"), Filter("other", "=", 1), Filter("n", "=", 1, group="1"), Filter("n", "=", "seven")]
)
def test_an_alternative_that_cannot_be_evaluated_here_refuses_the_filter(other):
    def some(number, row):
        return refuse_all(number, row) if row == Filter("t", "=", "tea") else number

    assert split(Filter("t", "=", "tea"), other, compile_row=some)[0] == [1]
    with pytest.raises(FilterNotSupportedError) as caught:
        split(Filter("t", "=", "tea"), other, match="any", compile_row=some)
    assert caught.value.details["row"] == 1


def test_an_operation_on_all_rows_is_refused_with_the_row_and_its_reason():
    left = split(Filter("t", "contains", "tea"))[1]
    error = left.refusal("a count")
    assert isinstance(error, FilterNotSupportedError)
    assert (error.details["row"], error.details["column"], error.details["operator"]) == (0, "t", "contains")
    assert "reason 0" in error.details["reason"]
    rows = Filter("n", "=", 1), Filter("t", "ends", "a")
    for at in (0, 1):

        def all_but(number, row, *, left_over=at):
            return refuse_all(number, row) if number == left_over else number

        assert split(*rows, compile_row=all_but)[1].refusal("a count").details["row"] == at


SCALARS = st.lists(st.fixed_dictionaries({name: st.none() | VALUES[name] for name in KINDS}), max_size=12)
SORTS = st.lists(st.builds(Sort, st.sampled_from([*KINDS, "other"]), st.booleans()), min_size=1, max_size=3,
                 unique_by=lambda sort: sort.column)  # fmt: skip


@given(SCALARS, SORTS, st.integers(1, 12), st.data())
def test_rows_are_in_order_with_those_without_a_value_last(items, sorts, limit, data):
    dropped = [Note(code="sort-dropped", column=sort.column, reason="no") for sort in sorts if data.draw(st.booleans())]
    keys, notes = residual_keys(sorts, dropped, KINDS.get)
    if not any(note.column in KINDS for note in dropped):
        assert (keys, notes) == ([], dropped)
        return
    assert [key.column for key in keys] == [sort.column for sort in sorts if sort.column in KINDS]
    assert [note.column for note in notes] == [sort.column for sort in sorts if sort.column not in KINDS]
    read = items[:limit]
    found = select(read, dict.get, limit=limit, matched=len(items), sort=keys)
    assert sorted(map(repr, found.rows)) == sorted(map(repr, read))
    assert all(_follows(one, other, keys) for one, other in pairwise(found.rows))
    assert (found.total, found.total_exact) == (len(items), True)
    assert [(note.code, bool(note.hint)) for note in found.notes] == [("residual-sort", len(items) > limit)]


def _follows(one, other, keys):
    for key in keys:
        a, b = one[key.column], other[key.column]
        if key.kind is Kind.TIMESTAMP:
            a, b = (each and datetime.fromisoformat(each) for each in (a, b))
        if a == b:
            continue
        return b is None or (a is not None and (a > b if key.descending else a < b))
    return True


def test_a_driver_that_reads_more_rows_than_allowed_is_caught():
    with pytest.raises(ValueError, match="allowed"):
        select([1, 2], lambda row, column: row, limit=1, matched=2, sort=[ResidualKey("n", Kind.NUMBER)])


@pytest.mark.parametrize(
    ("matched", "said", "sorted_"),
    [
        (2, "over all 2 rows", "over all 2 rows"),
        (3, "over the first 2 rows of 3; rows beyond them were not looked at",
         "over the first 2 rows of 3; this is the order among them, not among all"),
        (None, "over the first 2 rows; rows beyond them were not looked at",
         "over the first 2 rows; this is the order among them, not among all"),
    ],
)  # fmt: skip
def test_a_page_says_over_which_rows_it_was_filtered_and_sorted_here(matched, said, sorted_):
    where = ResidualFilter([ResidualRow(0, Filter("n", "=", 1), Kind.NUMBER, "no")], "all", 2)
    keys = [ResidualKey("n", Kind.NUMBER)]
    notes = select([{"n": 1}, {"n": 2}], dict.get, limit=2, matched=matched, where=where, sort=keys).notes
    assert [(note.code, note.reason) for note in notes] == [
        ("residual-filter", f"'n = 1': evaluated here {said}"), ("residual-sort", f"'n': sorted here, {sorted_}"),
    ]  # fmt: skip
    assert [bool(note.hint) for note in notes] == [matched != 2] * 2


def test_rows_that_could_not_be_counted_may_be_more():
    where = ResidualFilter([ResidualRow(0, Filter("n", "=", 1), Kind.NUMBER, "no")], "all", 2)
    for count, whole in ((1, True), (2, False)):
        found = select([{"n": 1}] * count, dict.get, limit=2, matched=None, where=where)
        assert (found.total, found.total_exact) == (count, whole)


@pytest.mark.parametrize(
    ("kind", "value"), [(Kind.NUMBER, "7"), (Kind.NUMBER, True), (Kind.BOOLEAN, "true"), (Kind.BOOLEAN, 1),
                        (Kind.TIMESTAMP, "soon"), (Kind.TIMESTAMP, 7), (Kind.TEXT, 7), (Kind.TEXT, {"a": 1})]
)  # fmt: skip
def test_a_stored_value_of_another_kind_matches_nothing_and_comes_last(kind, value):
    given = {Kind.NUMBER: "7", Kind.BOOLEAN: "true", Kind.TIMESTAMP: INSTANTS[0], Kind.TEXT: "7"}[kind]
    test = ResidualRow(0, Filter("x", "=", given), kind, "no").test()
    assert not test(value)
    fitting = {Kind.NUMBER: 7, Kind.BOOLEAN: True, Kind.TIMESTAMP: INSTANTS[1], Kind.TEXT: "7"}[kind]
    assert test(fitting)
    found = select([value, fitting], lambda row, column: row, limit=2, matched=2, sort=[ResidualKey("x", kind)])
    assert found.rows == [fitting, value]


STORED = {
    Kind.BINARY: [b"\0", b"\x80", b"\xff"],
    Kind.TEXT: ["", "a", "b", "c"],
    Kind.NUMBER: [1, 2.5, 3],
    Kind.BOOLEAN: [True, False],
    Kind.TIMESTAMP: ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"],
}


JAN, FEB, MAR = (f"2026-0{month}-01T00:00:00Z" for month in (1, 2, 3))


@pytest.mark.parametrize(
    ("kind", "row", "stored", "matches"),
    [
        (Kind.TEXT, Filter("x", "=", "Tea"), "tea", False),
        (Kind.TEXT, Filter("x", "=", "Tea", case=False), "tea", True),
        (Kind.TEXT, Filter("x", "in", ["a", "Tea"], case=False), "tea", True),
        (Kind.TEXT, Filter("x", "contains", "EA"), "tea", True),
        (Kind.TEXT, Filter("x", "contains", "EA", case=True), "tea", False),
        (Kind.TEXT, Filter("x", "not-contains", "EA", case=True), "tea", True),
        (Kind.TEXT, Filter("x", "!=", "tea"), ["war", "tea"], False),
        (Kind.TEXT, Filter("x", "!=", "tea"), None, True),
        (Kind.NUMBER, Filter("x", "in", [1, 2]), [0, 2], True),
        (Kind.NUMBER, Filter("x", "between", [2, 4]), [1, 5], False),
        (Kind.NUMBER, Filter("x", "=", 0), 0, True),
        (Kind.BOOLEAN, Filter("x", "=", False), False, True),
        (Kind.BOOLEAN, Filter("x", "null"), False, False),
        (Kind.TEXT, Filter("x", "null"), "", False),
        (Kind.TEXT, Filter("x", "null"), [None], True),
        (Kind.TIMESTAMP, Filter("x", "in", [JAN, FEB]), FEB, True),
        (Kind.TIMESTAMP, Filter("x", "not-in", [JAN, FEB]), FEB, False),
        (Kind.TIMESTAMP, Filter("x", "between", [FEB, FEB]), [JAN, MAR], False),
        (Kind.TIMESTAMP, Filter("x", "=", f"{FEB}/{MAR}"), [JAN, MAR], False),
        (Kind.TIMESTAMP, Filter("x", "!=", f"{FEB}/{MAR}"), [JAN, MAR], True),
        (Kind.TIMESTAMP, Filter("x", "null"), JAN, False),
    ],
)
def test_a_row_means_what_it_says_of_one_value_and_of_several(kind, row, stored, matches):
    assert ResidualRow(0, row, kind, "no").test()(stored) is matches


def test_rows_are_chosen_by_all_or_any_and_ordered_by_every_key_in_its_direction():
    rows = [{"a": a, "b": b} for a, b in ((1, 1), (2, 1), (1, 2), (2, 2), (None, 1))]
    left = [ResidualRow(at, Filter(name, "=", 1), Kind.NUMBER, "no") for at, name in enumerate("ab")]
    for match, wanted in (("all", rows[:1]), ("any", [*rows[:3], rows[4]])):
        where = ResidualFilter(left, match, 9)
        assert select(rows, dict.get, limit=9, matched=5, where=where).rows == wanted
    sorts = [Sort("a", descending=True), Sort("c"), Sort("b", descending=True)]
    dropped = [Note(code="sort-dropped", column=name, reason="the server's") for name in "ac"]
    keys, notes = residual_keys(sorts, dropped, {"a": Kind.NUMBER, "b": Kind.NUMBER}.get)
    assert keys == [ResidualKey("a", Kind.NUMBER, descending=True), ResidualKey("b", Kind.NUMBER, descending=True)]
    assert [(note.column, note.reason) for note in notes] == [("c", "the server's")]
    found = select(rows, dict.get, limit=9, matched=5, sort=keys).rows
    assert [(row["a"], row["b"]) for row in found] == [(2, 2), (2, 1), (1, 2), (1, 1), (None, 1)]
    assert residual_keys(sorts, dropped[1:], {"a": Kind.NUMBER}.get) == ([], dropped[1:])


COMPARED = {
    Kind.TEXT: "= != in not-in contains not-contains starts ends empty not-empty null not-null",
    Kind.NUMBER: "= != in not-in > >= < <= between null not-null",
    Kind.BOOLEAN: "= != in not-in null not-null",
    Kind.TIMESTAMP: "= != in not-in > >= < <= between null not-null",
    Kind.BINARY: "= != in not-in contains not-contains starts ends > >= < <= between null not-null",
}


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_is_compared_by_its_operators_and_no_others(kind):
    operands = {Op.BETWEEN: [STORED[kind][0], STORED[kind][-1]]}
    rows = [Filter("x", op, operands.get(op, STORED[kind][-1])) for op in Op]

    def takes(row):
        try:
            left = split_rows(
                FilterRequest(object="t", rows=[row], residual=9), refuse_all, hint=str, kind=lambda _: kind
            )
        except FilterNotSupportedError:
            return False
        return left[1].rows[0].test() is not None

    assert {str(row.op) for row in rows if takes(row)} == {*COMPARED[kind].split()}


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("op", Operator)
def test_an_operator_tells_values_apart_or_is_refused(op, kind):
    """A test that no value passes would drop every row of a page without a word."""
    stored = [None, *STORED[kind]]
    first, *_, last = STORED[kind][1:] if kind is Kind.TEXT else STORED[kind]
    operand = [first, first] if op in (Operator.BETWEEN, Operator.IN, Operator.NOT_IN) else first
    operand = last if op in (Operator.LT, Operator.LE) else operand
    try:
        test = ResidualRow(0, Filter("x", op, operand), kind, "no").test()
    except ValueError as error:
        assert f"'{op}' on values of kind {kind}" in str(error)  # noqa: PT017
        return
    assert {test(value) for value in stored} == {True, False}


def test_a_page_is_cut_out_of_the_rows_that_were_evaluated():
    request = PageRequest(object="t", offset=1, limit=2, sort=[Sort("a")], residual=5)
    residual, notes = residual_of(request, None, [Note(code="sort-dropped", column="a", reason="no")], KINDS_OF_A.get)
    assert (residual.columns, residual.limit, notes) == (["a"], 5, [])
    rows = [{"a": a} for a in (4, 2, 3, 1)]
    page = residual.cut(request, rows, dict.get, matched=None)
    assert ([row["a"] for row in page.rows], page.total, page.total_exact) == ([2, 3], 4, True)
    full = residual.cut(request, [*rows, {"a": 0}], dict.get, matched=None)
    assert (full.total, full.notes[0].code) == (None, "residual-sort")
    untold = residual.cut(replace(request, total=False), rows, dict.get, matched=4)
    assert ([row["a"] for row in untold.rows], untold.total, untold.total_exact) == ([2, 3], None, True)


def test_the_smaller_limit_of_page_and_filter_holds_and_a_page_that_names_none_is_refused():
    where = ResidualFilter([ResidualRow(0, Filter("a", "=", 1), Kind.NUMBER, "no")], "all", 4)
    for limit, most in ((3, 3), (9, 4)):
        residual, _ = residual_of(PageRequest(object="t", residual=limit), where, [], KINDS_OF_A.get)
        assert (residual.limit, residual.where, residual.columns) == (most, where, ["a"])
    with pytest.raises(FilterNotSupportedError, match="a page that does not allow it"):
        residual_of(PageRequest(object="t"), where, [], KINDS_OF_A.get)
    dropped = [Note(code="sort-dropped", column="a", reason="no")]
    assert residual_of(PageRequest(object="t", sort=[Sort("a")]), None, dropped, KINDS_OF_A.get) == (None, dropped)
    assert residual_of(PageRequest(object="t", residual=9), None, [], KINDS_OF_A.get) == (None, [])
