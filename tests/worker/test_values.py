"""Values cross the wire as they are, in bounded parts, and nonsense does not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.msgpack import Ext

from dragoman_api.cells import MISSING, Cell, CutBytes, CutJson, CutText, Json
from dragoman_api.changes import Delete, HttpRequest, Insert, InsertBatch, Plan, PlannedRequest, PlanRequest, Update
from dragoman_api.columns import Column, Description, Note, Object, ObjectList
from dragoman_api.console import Answer, AnswerKind
from dragoman_api.errors import QueryError
from dragoman_api.filters import Filter, FilterRequest, RawQuery
from dragoman_api.grid import MAX_ROWS, CellColumns, Page, RowKey
from dragoman_worker import values, wire
from dragoman_worker.channel import FROM_CHILD
from dragoman_worker.oversized_results import within_budget
from dragoman_worker.service import MAX_PLANS, KeptPlans
from dragoman_worker.values import FAULTS, Assembly, ValueFaultError, take_apart
from dragoman_worker.wire import PART, Part

decimals = st.decimals(allow_nan=False, allow_infinity=False).filter(lambda n: abs(n.adjusted()) < 4_000)
texts = st.text(max_size=20)
cells = st.one_of(
    st.none(), st.just(MISSING), st.booleans(), st.integers(), st.floats(allow_nan=False), texts, decimals,
    texts.map(Json), texts.map(CutJson), texts.map(CutText), st.binary(max_size=20),
    st.binary(max_size=20).map(CutBytes),
)  # fmt: skip


def carry(value: Any, kind: Any, **options: Any) -> Any:
    parts, rest = take_apart(value, call=1, **options)
    assert all(len(bytes(part.piece)) < FROM_CHILD for part in parts)
    assembly = Assembly(kind)
    for part in parts:
        assembly.add(part)
    return assembly.finish(Raw(rest))


def columns(n: int) -> list[Column]:
    return [Column(name=f"c{at}", type="keyword") for at in range(n)]


def exact(value: Any) -> Any:
    if isinstance(value, list):
        return [exact(item) for item in value]
    return type(value), repr(value) if isinstance(value, bytes) else str(value), value


@pytest.mark.slow
@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), max_size=6)))
def test_cells_arrive_with_their_value_and_their_type(rows: list[list[Cell]]) -> None:
    page = Page(columns=columns(len(rows[0]) if rows else 1), cells=rows)
    assert exact(carry(page, Page | None).cells) == exact(rows)
    kept = Page(columns=page.columns if rows else [], cells=cast("Any", by_column(rows)))
    assert exact(carry(kept, Page | None).cells) == exact(rows)


def by_column(rows: list[list[Cell]]) -> CellColumns:
    """Keep rows by column, and say of each column what can be said."""
    kinds = [{*map(type, column)} for column in zip(*rows, strict=True)]
    json = [at for at, kind in enumerate(kinds) if Json in kind and kind <= {Json, type(None), tuple}]
    stored = [
        [str(cell) if at in json and isinstance(cell, Json) else cell for cell in column]
        for at, column in enumerate(zip(*rows, strict=True))
    ]
    return CellColumns(stored, len(rows), json=json)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[], []],
        [[Json("[1]"), 1, "a"], [None, 2**63, "b"], [MISSING, None, "c"]],
        [[Json("[1]"), 2**64, "a"], [None, 2, "b"]],
        [[Json("[1]"), 2**64, Decimal("1.10")], [Json("{}"), True, None]],
        [[Json("[1]"), CutJson("[1..."), b"a"], ["x", 0.5, CutText("a...")]],
        [["x" * 300_000, Json("[1]")], ["y", None]],
        [[f"{at:0200}", Json("[1]"), Decimal(f"{at}.10")] for at in range(9_000)],
    ],
)
def test_cells_that_are_kept_by_column_arrive_as_their_rows(rows: list[list[Cell]]) -> None:
    page = Page(columns=columns(len(rows[0]) if rows else 0), cells=cast("Any", by_column(rows)))
    assert exact([*page.cells]) == exact(rows)
    assert exact([*page.cells[1:-1]]) == exact(rows[1:-1])
    assert exact(carry(page, Page | None).cells) == exact(rows)
    cut = carry(msgspec.structs.replace(page, cells=cast("Any", by_column(rows))), Page | None, cut=within_budget)
    assert exact(cut.cells) == exact(within_budget(Page(columns=page.columns, cells=rows)).cells)


def test_columns_of_another_length_do_not_leave_the_driver() -> None:
    for stored, length in ([[1], [1, 2]], 2), ([[1]], 1):
        page = Page(columns=columns(2), cells=cast("Any", CellColumns(stored, length)))
        with pytest.raises(ValueFaultError, match="row"):
            take_apart(page, call=1)


@pytest.mark.parametrize("cell", [5, 1.5, True, b"1", 2**70, Json("[1]"), [1]])
def test_a_column_that_is_not_of_texts_as_it_is_marked_does_not_leave_the_driver(cell: Any) -> None:
    page = Page(columns=columns(2), cells=cast("Any", CellColumns([[1, 2], ["[1]", cell]], 2, json=[1])))
    with pytest.raises(ValueFaultError, match=f"'{page.columns[1].name}' is marked as JSON.*{type(cell).__name__}"):
        take_apart(page, call=1)


@pytest.mark.parametrize("at", [2, -1])
def test_a_mark_of_no_column_does_not_leave_the_driver(at: int) -> None:
    page = Page(columns=columns(2), cells=cast("Any", CellColumns([["1"], ["2"]], 1, json=[at])))
    with pytest.raises(ValueFaultError, match=f"{at} is marked as JSON"):
        take_apart(page, call=1)


@pytest.mark.parametrize(
    "value",
    [
        None,
        2**63,
        2**64,
        -(2**70),
        10**4_000,
        Decimal("1.10"),
        Json('{"a":1e400}'),
        "",
        b"",
        b"\xff" * 300,
        bytes(100_000),
        bytes(range(256)) * 40_000,
        "x" * 10_000_000,
        Json("[" + "1," * 3_000_000 + "1]"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_single_cell_arrives_with_its_value_and_its_type(value: Cell) -> None:
    assert exact(carry(value, Cell)) == exact(value)


def test_a_page_of_bytes_and_keys_of_bytes_arrive() -> None:
    """Alone in a page, bytes look like plain values to msgpack."""
    page = Page(columns=columns(2), cells=[[b"\0", "a"]], keys=[RowKey("o", [b"\xff", 1, "x"])])
    assert carry(page, Page | None) == page


def test_a_large_page_travels_in_bounded_parts_and_arrives_whole() -> None:
    rows: list[list[Cell]] = [[at, "x" * 500, None, Json("[1]")] for at in range(8_000)]
    keys = [RowKey("books", f"{at:0200}", guard={"seq_no": at, "primary_term": 1}) for at in range(8_000)]
    page = Page(columns=columns(4), cells=rows, keys=keys, notes=[Note(code="cut", reason="x")], total=9, next="n")
    parts, rest = take_apart(page, call=1)
    paths = [part.path for part in parts]
    assert paths == sorted(paths)
    assert set(paths) == {"cells", "keys"}
    assert max(len(bytes(part.piece)) for part in parts) <= PART >= len(rest)
    assert carry(page, Page | None) == page


@pytest.mark.parametrize("text", ["a" * 3_000_000, "€" * 1_000_000, "😀" * 700_000])
def test_a_long_text_travels_in_parts_by_characters(text: str) -> None:
    parts, _ = take_apart(Json(text), call=1)
    assert len(parts) > 2
    assert max(len(bytes(part.piece)) for part in parts) <= PART + 10
    assert exact(carry(Json(text), Cell)) == exact(Json(text))


def test_rows_of_a_load_travel_by_column_with_every_value() -> None:
    rows: list[Any] = [{"n": 2**70, "d": Decimal("1.10"), "b": b"\xff", "j": Json("1e3")}, {"deep": [{"n": -(2**65)}]}]
    for batch in (
        InsertBatch("o", values=rows, ids=["1", None], replace=[True, False]),
        InsertBatch("o", documents=['{"ž":1}', "{}"], ids=["1", "2"], routings=[None, "r"], tenants=["t", None]),
    ):
        request = PlanRequest(changes=batch, bulk=True, outline=True)
        assert exact([values.decode_request(PlanRequest, Raw(values.encode_request(request)))]) == exact([request])
        plan = Plan(planned=[], changes=batch, bulk=True)
        assert exact([values.decode_request(Plan, Raw(values.encode_request(plan)))]) == exact([plan])


def test_the_outline_of_a_plan_has_no_rows_and_its_number_finds_the_plan_once() -> None:
    plans, batch = KeptPlans(), InsertBatch("o", documents=["{}"] * 3)
    request = PlanRequest(changes=batch, bulk=True, outline=True)
    sent = PlannedRequest(request=HttpRequest("POST", "/_bulk", "…"), changes=[0, 2], rows=[[0], [2]])
    plan = Plan(planned=[sent], notes=[Note(code="a", reason="b")], number=7)
    outline = plans.outline(request, plan)
    assert outline.planned == [PlannedRequest(request=HttpRequest("POST", "/_bulk"), changes=[0, 2])]
    assert (outline.changes, outline.notes) == ([], plan.notes)
    travelled = values.decode_request(Plan, Raw(values.encode_request(msgspec.structs.replace(outline, changes=batch))))
    assert (travelled.planned, travelled.changes) == ([], []), "the rows do not travel again"
    whole = plans.take(travelled.number)
    assert (whole.planned, whole.changes, whole.bulk) == ([sent], batch, True)
    numbers = [plans.outline(request, plan).number for _ in range(MAX_PLANS + 1)]
    for number in (travelled.number, numbers[0], 7):
        with pytest.raises(QueryError) as caught:
            plans.take(number)
        assert caught.value.details == {"sent": False, wire.PLAN_DROPPED: True}
    assert KeptPlans().outline(request, plan).number not in numbers, "another process has other numbers"
    undone = msgspec.structs.replace(plan, undo=[Delete(RowKey("o", "1"))])
    for asked, answer in ((msgspec.structs.replace(request, outline=False), plan), (request, undone)):
        assert plans.outline(asked, answer) == msgspec.structs.replace(answer, number=0)


def test_texts_and_lists_inside_a_result_travel_in_parts_too() -> None:
    request = HttpRequest("POST", "/_bulk", body="b" * 2_000_000)
    page = Page(columns=columns(1), cells=[["z" * 1_000]] * 3_000)
    answer = Answer(kind=AnswerKind.GRID, status=200, request=request, page=page, text="t" * 2_000_000)
    assert carry(answer, Answer | None) == answer
    objects = ObjectList(objects=[Object(f"index-{at}", at) for at in range(100_000)], next="100000")
    assert carry(objects, ObjectList | None) == objects
    description = Description(object="a", columns=columns(4_096), structure="s" * 1_500_000)
    assert carry(description, Description | None) == description


@pytest.mark.parametrize(
    "page",
    [
        Page(columns=columns(2), cells=[[1]]),
        Page(columns=columns(1), cells=[[1], [2]], keys=[RowKey("a", "1")]),
    ],
)
def test_a_page_whose_shape_is_wrong_does_not_leave_the_driver(page: Page) -> None:
    with pytest.raises(ValueFaultError, match="row"):
        take_apart(page, call=1)


@pytest.mark.parametrize("number", [10**5_000, Decimal(10**5_000), Decimal("1e99999")], ids=["int", "long", "high"])
def test_a_number_longer_than_python_prints_arrives_as_its_json_text(number: Cell) -> None:
    assert exact(carry(number, Cell)) == exact(Json(str(Decimal(number))))


@pytest.mark.parametrize("cell", [object(), "\ud800"])
def test_what_cannot_travel_is_a_fault_with_a_reason(cell: Any) -> None:
    with pytest.raises(ValueFaultError):
        take_apart(Page(columns=columns(1), cells=[[cell]]), call=1)


def test_an_element_too_large_for_any_frame_is_a_fault() -> None:
    with pytest.raises(ValueFaultError, match="bytes"):
        take_apart(Page(columns=columns(1), cells=[["x" * (FROM_CHILD + 1)]]), call=1)


def test_values_of_changes_reach_the_driver_with_their_types() -> None:
    wanted = {"a": Decimal("1.10"), "b": 2**70, "c": [Decimal("0.30"), {"d": 2**65}], "e": Json("[1]"), "f": b"\0"}
    request = PlanRequest(changes=[Insert("books", wanted)])
    got = values.decode_request(PlanRequest, Raw(values.encode_request(request)))
    assert exact(list(got.changes[0].values.values())) == exact(list(wanted.values()))


def test_a_plan_comes_back_with_the_values_of_its_changes_and_of_its_undo() -> None:
    content = {"b": b"\xff", "d": Decimal("1.10"), "j": Json("[1]"), "i": 2**70, "l": [b"a", {"x": Decimal("1.0")}]}
    changes = [Insert("o", content), Update(RowKey("o", "1"), content), Delete(RowKey("o", "2"))]
    plan = Plan(planned=[], changes=changes, undo=changes[::-1])
    assert carry(plan, Plan | None) == plan
    assert type(carry(plan, Plan | None).undo[1].values["j"]) is Json


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
        (2**64, "18446744073709551616"),
        (-(2**63) - 1, "-9223372036854775809"),
        ([2**70, "x", None, True, 7], [str(2**70), "x", None, True, 7]),
    ],
)
def test_integers_of_filter_rows_reach_the_driver_at_any_length(value: Any, arrives: Any) -> None:
    request = FilterRequest(object="books", rows=[Filter("n", ">", value), RawQuery("n:1")])
    got = values.decode_request(FilterRequest, Raw(values.encode_request(request)))
    assert got.rows[1] == request.rows[1]
    assert exact([got.rows[0].value]) == exact([arrives])


# what a hostile child may send ----------------------------------------------------------------------------------------

pack = msgspec.msgpack.encode


def add(kind: Any, path: str, piece: bytes, *, extended: bool = False, json: tuple[int, ...] = ()) -> None:
    Assembly(kind).add(Part(1, path, Raw(piece), extended, json))


@pytest.mark.parametrize(
    ("path", "piece", "extended"),
    [
        ("cells", b"\x92\x90" + b"\xc1", False),
        ("cells", pack([[Ext(3, b"x")]]), False),  # extension types, although it said there are none
        ("cells", pack([[Ext(9, b"x")]]), True),
        ("cells", pack([[Ext(2, b"1e999999999")]]), True),
        ("cells", pack([[Ext(2, b"NaN")]]), True),
        ("cells", pack([[Ext(1, b"\x01" * 5_000)]]), True),
        ("cells", pack([[Ext(1, (10**4_300).to_bytes(1_786, signed=True))]]), True),  # 4,301 digits: none can print it
        ("cells", pack([[[None]]]), False),  # an empty array is MISSING
        ("cells", pack([[{}]]), False),
        ("cells", pack([[None] * 4_097]), False),
        ("cells", b"\xdd\xff\xff\xff\xff", False),
        ("cells", pack([[b"bytes"]]), False),
        ("cells", b"\x91\x91\xa2\xff\xff", False),  # no UTF-8, which is no error of msgspec's
        ("columns.name", pack("x"), False),
        ("total", pack(1), False),
        ("nothing", pack([]), False),
        ("", pack([]), False),
    ],
)
def test_a_part_that_makes_no_sense_is_a_fault(path: str, piece: bytes, extended: bool) -> None:
    with pytest.raises(FAULTS):
        add(Page | None, path, piece, extended=extended)


@pytest.mark.parametrize(("cell", "kind"), [(1, "int"), (1.5, "float"), (True, "bool"), (Ext(3, b"[]"), "Json")])
def test_a_column_of_json_texts_that_holds_something_else_is_a_fault(cell: Any, kind: str) -> None:
    with pytest.raises(ValueFaultError, match=kind):
        add(Page | None, "cells", pack([["[]"], [cell]]), extended=True, json=(0,))


def test_a_column_of_json_texts_that_is_not_there_is_a_fault() -> None:
    with pytest.raises(ValueFaultError, match="17"):
        add(Page | None, "cells", pack([["[]"]]), json=(17,))
    with pytest.raises(FAULTS):
        wire.decoder(wire.ChildMessage).decode(wire.pack(Part(1, "cells", Raw(pack([["[]"]])), json=(-1,)))[4:])


def test_deep_nesting_is_a_fault_and_no_crash() -> None:
    with pytest.raises(FAULTS):
        Assembly(Page | None).finish(Raw(b"\x91" * 1_000_000))


def test_rows_and_bytes_of_a_result_are_bounded_as_a_whole() -> None:
    half, mib, nothing = pack([[]] * (MAX_ROWS // 2)), pack("x" * PART), b"\xa0"
    with pytest.raises(ValueFaultError, match="rows"):
        flood(Page | None, "cells", half, times=3)
    with pytest.raises(ValueFaultError, match="bytes"):
        flood(Cell, "", mib, times=100)
    with pytest.raises(ValueFaultError, match="bytes"):
        flood(Cell, "", nothing, times=2_000_000)


def flood(kind: Any, path: str, piece: bytes, *, times: int) -> None:
    assembly = Assembly(kind)
    for _ in range(times):
        assembly.add(Part(1, path, Raw(piece)))


def test_parts_that_do_not_fit_the_rest_are_a_fault() -> None:
    assembly = Assembly(Page | None)
    assembly.add(Part(1, "cells", Raw(pack([[1, 2]]))))
    with pytest.raises(ValueFaultError, match="17"):
        assembly.finish(Raw(pack(Page(columns=columns(17)))))
    assembly = Assembly(Page | None)
    assembly.add(Part(1, "cells", Raw(pack([[1]]))))
    with pytest.raises(FAULTS):
        assembly.finish(Raw(pack(None)))


def test_a_million_empty_rows_cost_nothing() -> None:
    with pytest.raises(msgspec.ValidationError):
        add(Page | None, "cells", b"\xdd" + (1_000_000).to_bytes(4, "big") + b"\x90" * 1_000_000)


def packed_cells(rows: int, columns: int, cell: bytes) -> bytes:
    """Pack a page's cells by hand, as only somebody would who wants to hurt."""
    row = b"\xdc" + columns.to_bytes(2, "big") + cell * columns
    return b"\xdc" + rows.to_bytes(2, "big") + row * rows


def test_a_page_has_two_million_cells_at_most_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(columns=[Column(name=str(at), type="long") for at in range(4_000)], cells=[[None] * 4_000] * 501)
    with pytest.raises(ValueFaultError, match=r"2,004,000.*2,000,000"):
        take_apart(page, call=1)
    assembly, part = Assembly(Page), Part(1, "cells", Raw(packed_cells(50, 4_000, b"\xa2ab")))
    for _ in range(10):
        assembly.add(part)
    with pytest.raises(ValueFaultError, match="2,000,000"):
        assembly.add(part)
    monkeypatch.setattr(values, "MAX_ELEMENTS", 10)
    with pytest.raises(ValueFaultError, match="12"):
        Assembly(list[Object]).add(Part(1, "", Raw(msgspec.msgpack.encode([Object(str(at)) for at in range(12)]))))


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (ObjectList(objects=[Object(str(at)) for at in range(100_001)]), ObjectList, "100,001.*100,000"),
        (
            Description(object="a", columns=[Column(name=str(at), type="") for at in range(4_097)]),
            Description,
            "4,097.*4,096",
        ),
        (Page(columns=[Column(name="a", type="")] * 4_097, cells=[]), Page, "4,097.*4,096"),
    ],
    ids=["objects", "description", "page"],
)
def test_what_can_be_browsed_is_bounded_on_both_sides(
    monkeypatch: pytest.MonkeyPatch, value: Any, kind: Any, said: str
) -> None:
    with pytest.raises(ValueFaultError, match=said):
        take_apart(value, call=1)
    with monkeypatch.context() as driver:
        driver.setattr(values, "_check_shape", lambda value: None)  # a driver that checks nothing
        parts, rest = take_apart(value, call=1)
    assembly = Assembly(kind)
    for part in parts:
        assembly.add(part)
    with pytest.raises(FAULTS):
        assembly.finish(Raw(rest))


@pytest.mark.parametrize("extended", [False, True])
def test_only_a_part_of_one_element_is_longer_than_a_mebibyte(extended: bool) -> None:
    with pytest.raises(ValueFaultError, match=f"{PART:,}"):
        Assembly(Page).add(Part(1, "cells", Raw(packed_cells(100, 4_000, b"\xa2ab")), extended=extended))
    assembly = Assembly(Page)
    assembly.add(Part(1, "cells", Raw(msgspec.msgpack.encode([["x" * (PART * 2)]])), extended=extended))
    rest = msgspec.msgpack.encode(Page(columns=[Column(name="a", type="text")], cells=[]))
    assert len(assembly.finish(Raw(rest)).cells[0][0]) == PART * 2


@pytest.mark.parametrize(
    ("result", "most"),
    [
        (Json("x" * (values.MAX_RESULT + 1)), values.MAX_RESULT),
        (["x" * 100_000] * (values.MAX_RESULT // 100_000 + 1), values.MAX_RESULT),
        (Page(columns=columns(1), cells=[[1]] * (MAX_ROWS + 1)), MAX_ROWS),
    ],
    ids=["text", "list", "rows"],
)
def test_a_result_that_the_host_would_not_take_is_refused_before_it_is_sent(result: object, most: int) -> None:
    """The host ends a driver that sends it; refused here, the connection goes on."""
    with pytest.raises(ValueFaultError, match=f"{most:,}"):
        take_apart(result, call=1)


def test_what_a_driver_changes_in_the_rows_of_its_page_travels() -> None:
    page = Page(columns=columns(1), cells=CellColumns([["a", "b"]], 2))
    for row in page.cells:
        row[0] = "masked"
    assert carry(page, Page).cells == [["masked"], ["masked"]]
