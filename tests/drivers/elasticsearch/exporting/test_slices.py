"""What an export does about each kind of trouble, page by page and without a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.replies import Answers, Canned, reply

from dragoman_api import ConnectionFailedError, DragomanError, ExportRequest, QueryError
from dragoman_api.exports import ExportForm, SnapshotHold
from dragoman_api.kit import cursors, retries
from dragoman_elasticsearch.connect import POINTS
from dragoman_querydsl import export_shares as shares
from dragoman_querydsl.export import DOCUMENTS, ExportQuery, ExportReader, Slice, SlicePage

if TYPE_CHECKING:
    from wording import Wording

QUERY = msgspec.Raw(b'{"match_all":{}}')
ORDER = [{"_doc": {"order": "asc"}}, *POINTS.order]


def slice_of(number: int = 0, of: int = 1, **more: Any) -> Slice:
    return Slice(ExportQuery("x", QUERY, DOCUMENTS, "300s", ORDER, "p1"), number, of, **more)


def hits(count: int, **more: Any) -> dict[str, Any]:
    rows = [{"_index": "x", "_id": str(at), "_source": {}, "sort": [at, 2**33 + at]} for at in range(count)]
    return {"hits": {"hits": rows}, **more}


def failure(kind: str, status: int, after: str = "") -> Canned:
    error = {"root_cause": [{"type": kind, "reason": "r"}], "type": kind, "reason": "r"}
    return reply({"error": error, "status": status}, status, {"Retry-After": after} if after else None)


BUSY = failure("circuit_breaking_exception", 429)


def page(one: Slice, answer: Canned) -> Any:
    asking = Answers(answer)
    found = asking.run(one.page())
    return found, json.loads(asking.asked[0].body or "")


def test_a_slice_goes_on_behind_its_last_row_with_the_tiebreaker_and_the_newest_context() -> None:
    one = slice_of(1, 4)
    found, first = page(one, reply(hits(1000, pit_id="p2")))
    assert isinstance(found, SlicePage)
    assert (found.slice, len(found.hits), found.mark) == (1, 1000, (999, 2**33 + 999))
    assert [next(iter(key)) for key in first["sort"]] == ["_doc", "_shard_doc"]
    assert first["slice"] == {"id": 1, "max": 4}
    assert (first["pit"]["id"], "search_after" in first) == ("p1", False)
    found, second = page(one, reply(hits(3)))
    assert second["search_after"] == [999, 2**33 + 999]
    assert second["pit"] == {"id": "p2", "keep_alive": "300s"}
    assert found.mark is True


def test_an_answer_in_part_is_refused_by_the_server_and_by_us(wording: Wording) -> None:
    asking = Answers(reply(hits(1)))
    asking.run(slice_of().page())
    assert "allow_partial_search_results=false" in asking.asked[0].path
    for more in ({"_shards": {"total": 2, "failed": 1}}, {"timed_out": True}):
        with pytest.raises(QueryError) as caught:
            page(slice_of(), reply(hits(1, **more)))
        wording(caught.value.message)


def test_a_busy_server_is_given_time_and_asked_for_less(wording: Wording) -> None:
    one = slice_of()
    asked, waits = [], []
    for _ in retries._BUSY:
        wait, body = page(one, BUSY)
        asked.append(body["size"])
        waits.append(wait)
    assert asked == [1000, 500, 250, 125, 62, 31, 15, 7]
    assert waits == sorted(waits)
    assert 0 < waits[0] < waits[-1]
    with pytest.raises(QueryError, match="circuit_breaking_exception") as caught:
        page(one, BUSY)
    wording(caught.value.hint)


@pytest.mark.parametrize("other", [failure("cluster_block_exception", 403), reply("", 503)], ids=["403", "503"])
def test_patience_with_a_busy_server_is_not_patience_with_any_failure(other: Canned) -> None:
    one = slice_of()
    for _ in range(4):
        page(one, BUSY)
    with pytest.raises((QueryError, ConnectionFailedError), match=r"cluster_block_exception|503"):
        page(one, other)


def test_after_a_good_page_patience_begins_anew() -> None:
    one = slice_of()
    first, _ = page(one, BUSY)
    page(one, BUSY)
    found, body = page(one, reply(hits(250)))
    one.source.fit(250, 25_000)
    assert (len(found.hits), body["size"], one.source.size) == (250, 250, 1000)
    again, _ = page(one, BUSY)
    assert again == first


@pytest.mark.parametrize(
    "answer",
    [failure("es_rejected_execution_exception", 429, "7"), reply("", 429, {"Retry-After": "7"})],
    ids=["server", "proxy"],
)
def test_the_servers_own_word_on_how_long_to_wait_is_taken(answer: Canned) -> None:
    assert page(slice_of(), answer)[0] == 7


def test_a_word_beyond_all_patience_ends_the_export_while_it_can_still_be_resumed() -> None:
    with pytest.raises(ConnectionFailedError, match="503") as caught:
        page(slice_of(), reply("", 503, {"Retry-After": "86400"}))
    assert "resume" in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("cluster_block_exception", 429),
        ("illegal_argument_exception", 400),
        ("no_shard_available_action_exception", 503),
    ],
)
def test_what_waiting_does_not_help_ends_the_export_at_once(kind: str, status: int) -> None:
    with pytest.raises(QueryError, match=kind):
        page(slice_of(), failure(kind, status, "7"))


def test_a_page_of_a_scroll_that_went_wrong_is_not_asked_for_again() -> None:
    one = slice_of(scroll="")
    assert page(one, BUSY)[0] > 0, "nothing was opened yet"
    page(one, reply(hits(10, _scroll_id="s1")))
    with pytest.raises(QueryError, match="circuit_breaking"):
        page(one, BUSY)


def test_the_window_an_index_allows_is_kept_to() -> None:
    text = "Result window is too large, from + size must be less than or equal to: [50] but was [1000]"
    error = {"root_cause": [{"type": "illegal_argument_exception", "reason": text}], "type": "x", "reason": text}
    one = slice_of()
    assert page(one, reply({"error": error}, 400))[0] == 0
    found, body = page(one, reply(hits(50)))
    assert (body["size"], found.mark) == (50, (49, 2**33 + 49))
    one.source.fit(50, 50)
    assert one.source.size == 50


def test_pages_grow_to_the_room_there_is() -> None:
    source = slice_of().source
    sizes = []
    for _ in range(4):
        source.fit(source.size, source.size * 1000)
        sizes.append(source.size)
    assert sizes == [4_000, 4_194, 4_194, 4_194]
    source.fit(10, 50 * 2**20)
    assert source.size == 1, "one row at least"


@pytest.mark.parametrize(("lost", "ok"), [(0, True), (1, False)])
def test_an_export_counts_what_came(wording: Wording, lost: int, ok: bool) -> None:
    export = ExportReader(ExportRequest(object="x"), QUERY, points=POINTS)
    count = {"hits": {"total": {"value": 20, "relation": "eq"}, "hits": []}, "_shards": {"total": 1}}
    Answers(reply({"id": "p"}), reply(count)).run(export.open())
    (one,) = export.slices
    got = Answers(reply(hits(20 - lost))).run(one.page())
    if ok:
        assert export.part(got).rows == 20  # type: ignore[union-attr, arg-type]
        return
    with pytest.raises(QueryError) as caught:
        export.part(got)  # type: ignore[arg-type]
    wording(caught.value.message)


@pytest.mark.parametrize(
    ("shards", "rows", "scrolls", "slices"),
    [(1, 400_000, False, 4), (2, 400_000, False, 4), (3, 400_000, False, 6), (5, 400_000, False, 5),
     (40, 10**9, False, 16), (4, 9_000, False, 2), (4, 0, False, 0), (1, 400_000, True, 1), (40, 10**9, True, 8)],
)  # fmt: skip
def test_slices_are_a_multiple_of_the_shards_as_far_as_the_rows_are_worth_it(
    shards: int, rows: int, scrolls: bool, slices: int
) -> None:
    export = ExportReader(ExportRequest(object="x"), QUERY, points=None if scrolls else POINTS)
    count = {"hits": {"total": {"value": rows, "relation": "eq"}, "hits": []}, "_shards": {"total": shards}}
    Answers(*[reply({"id": "p"})] * (not scrolls), reply(count)).run(export.open())
    assert len(export.slices) == slices


def test_where_documents_are_large_the_first_pages_are_small() -> None:
    export = ExportReader(ExportRequest(object="x"), QUERY, points=POINTS)
    row = {"_index": "x", "_id": "1", "_source": {"t": "x" * 2**19}}
    count = {"hits": {"total": {"value": 20_000, "relation": "eq"}, "hits": [row]}, "_shards": {"total": 1}}
    Answers(reply({"id": "p"}), reply(count)).run(export.open())
    assert page(export.slices[0], reply(hits(3)))[1]["size"] == 3


def test_a_connection_that_fails_is_tried_again_a_few_times() -> None:
    one = slice_of()
    for _ in retries._AWAY:
        asking = one.page()
        next(asking)
        with pytest.raises(StopIteration) as end:
            asking.throw(ConnectionFailedError("reset"))
        assert end.value.value > 0
    asking = one.page()
    next(asking)
    with pytest.raises(ConnectionFailedError, match="reset") as caught:
        asking.throw(ConnectionFailedError("reset"))
    assert "resume" in caught.value.hint


def test_the_bookmark_of_a_page_is_its_last_row() -> None:
    one = slice_of()
    one.source.size = 3
    found, _ = page(one, reply(hits(3)))
    assert found.mark == one.mark == (2, 2**33 + 2)


def test_an_export_of_nothing_ends_without_a_part() -> None:
    export = ExportReader(ExportRequest(object="x"), QUERY, points=None)
    count = {"hits": {"total": {"value": 0, "relation": "eq"}, "hits": []}, "_shards": {"total": 1}}
    Answers(reply(count)).run(export.open())
    assert export._total == 0


@pytest.mark.parametrize("more", [{"_shards": {"total": 2, "failed": 1}}, {"timed_out": True}])
def test_rows_that_were_counted_in_part_begin_no_export(more: dict[str, Any]) -> None:
    export = ExportReader(ExportRequest(object="x"), QUERY, points=POINTS)
    count = {"hits": {"total": {"value": 20, "relation": "eq"}, "hits": []}, "_shards": {"total": 2}} | more
    asking = Answers(reply({"id": "p"}), reply(count))
    with pytest.raises(QueryError, match="incomplete"):
        asking.run(export.open())
    assert asking.asked[-1].path == "/_search?allow_partial_search_results=false"


# several slices, and what each of them leaves


def rows(*numbers: int, **more: Any) -> dict[str, Any]:
    found = [{"_index": "x", "_id": str(at), "_source": {"n": at}, "sort": [at, at]} for at in numbers]
    return {"hits": {"hits": found, "total": {"value": more.pop("total", 0), "relation": "eq"}}, **more}


def counted(total: int, shards: int = 1) -> Canned:
    return reply({"hits": {"total": {"value": total, "relation": "eq"}, "hits": []}, "_shards": {"total": shards}})


@pytest.mark.parametrize("lost", [0, 1])
def test_rows_of_several_scrolls_are_counted_together_and_all_of_them_are_freed(lost: int) -> None:
    """Each counts its own rows; the newest name of each goes into its next request and into the last one."""
    export = ExportReader(ExportRequest(object="x"), QUERY, points=None)
    Answers(counted(10_000, shards=2)).run(export.open())
    first, second = export.slices
    got, body = page(first, reply(rows(0, 1, total=3, _scroll_id="a1")))
    assert (body["slice"], export.part(got).rows) == ({"id": 0, "max": 2}, 2)  # type: ignore[union-attr]
    got, body = page(second, reply(rows(2, 3, total=2 + lost, _scroll_id="b1")))
    assert (body["slice"], export.part(got).rows) == ({"id": 1, "max": 2}, 2)  # type: ignore[union-attr]
    got, body = page(first, reply(rows(4, total=3, _scroll_id="a2")))
    assert (body["scroll_id"], export.part(got).rows) == ("a1", 1)  # type: ignore[union-attr]
    got, body = page(first, reply(rows(total=3)))
    assert (body["scroll_id"], got.mark, export.part(got), export.finished) == ("a2", True, None, False)
    got, body = page(second, reply(rows(total=2 + lost)))
    assert (body["scroll_id"], got.mark) == ("b1", True)
    if lost:
        with pytest.raises(QueryError, match="5 of 6 rows arrived"):
            export.part(got)
    else:
        assert (export.part(got), export.finished) == (None, True)
    closing = export.close()
    assert closing is not None
    assert json.loads(closing.body or "") == {"scroll_id": ["a2", "b1"]}


def resumed(total: int = 10, **more: Any) -> tuple[ExportReader, Answers]:
    """Resume an export of three slices: one is done, one is in its middle, one has not begun; 7 rows were taken."""
    request = ExportRequest(object="x", keep_alive=300)
    position = {"pit": "p0", "total": 10, "rows": 7, "marks": [True, [5, 6], False]}
    checkpoint = cursors.seal(cursors.query_of(request), position)
    export = ExportReader(msgspec.structs.replace(request, checkpoint=checkpoint), QUERY, points=POINTS)
    script = Answers(counted(total))
    script.run(export.open())
    return export, script


def test_an_export_goes_on_behind_each_slices_own_place() -> None:
    export, script = resumed()
    assert json.loads(script.asked[0].body or "")["pit"] == {"id": "p0", "keep_alive": "300s"}
    assert [(one.number, one.of, one.mark) for one in export.slices] == [(1, 3, (5, 6)), (2, 3, False)]
    middle, last = export.slices
    got, body = page(last, reply(rows(0, pit_id="p1")))
    assert (body["slice"], "search_after" in body) == ({"id": 2, "max": 3}, False)
    part = export.part(got)
    assert part is not None
    assert (part.rows, part.total, export.finished) == (1, 10, False)
    position = cursors.unseal(part.checkpoint or "", cursors.query_of(ExportRequest(object="x")), dict[str, Any])
    assert position == {"pit": "p1", "total": 10, "rows": 8, "marks": [True, [5, 6], True]}
    assert export.close() is None, "the checkpoint needs it"
    got, body = page(middle, reply(rows(7, 8)))
    assert (body["slice"], body["search_after"], body["pit"]["id"]) == ({"id": 1, "max": 3}, [5, 6], "p1")
    assert export.part(got).rows == 2  # type: ignore[union-attr]
    assert export.finished
    closing = export.close()
    assert closing is not None
    assert json.loads(closing.body or "") == {"id": "p1"}


@pytest.mark.parametrize("numbers", [(7,), (7, 8, 9)])
def test_an_export_that_goes_on_counts_the_rows_that_it_had(numbers: tuple[int, ...]) -> None:
    export, _ = resumed()
    middle, last = export.slices
    export.part(page(last, reply(rows(0)))[0])
    with pytest.raises(QueryError, match=f"{8 + len(numbers)} of 10 rows arrived"):
        export.part(page(middle, reply(rows(*numbers)))[0])


@pytest.mark.parametrize("total", [0, 9, 11])
def test_an_export_goes_on_only_with_as_many_rows_as_it_counted(total: int) -> None:
    with pytest.raises(QueryError, match=f"counts 10 rows, but the server finds {total}") as caught:
        resumed(total)
    assert caught.value.code == "export-not-resumable"


@pytest.mark.parametrize(
    ("keep_alive", "hold"), [(0, "120s"), (60, "120s"), (120, "120s"), (121, "121s"), (3600, "3600s")]
)
def test_a_context_is_held_as_long_as_was_asked_for_and_long_enough_for_a_page(keep_alive: int, hold: str) -> None:
    request = ExportRequest(object="x", keep_alive=keep_alive)
    export = ExportReader(request, QUERY, points=POINTS)
    script = Answers(reply({"id": "p"}), counted(2))
    script.run(export.open())
    assert script.asked[0].path == f"/x/_pit?keep_alive={hold}"
    assert json.loads(script.asked[1].body or "")["pit"] == {"id": "p", "keep_alive": hold}
    assert export.close() is not None, "nothing was taken, so no checkpoint needs it"
    got, _ = page(export.slices[0], reply(rows(0, 1)))
    part = export.part(got)
    assert part is not None
    assert (part.checkpoint is not None) is bool(keep_alive)


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        (ExportForm.DOCUMENTS, ['{"n":0}', '{"n":1}']),
        (ExportForm.ROWS, [
            '{"_index":"x","_id":"0","_source":{"n":0}}', '{"_index":"y","_id":"1","_source":{"n":1},"_routing":"r"}',
        ]),
        (ExportForm.BULK, [
            '{"index":{"_index":"x","_id":"0"}}', '{"n":0}',
            '{"index":{"_index":"y","_id":"1","routing":"r"}}', '{"n":1}',
        ]),
    ],
)  # fmt: skip
def test_each_row_leaves_with_its_own_address_and_one_without_a_document_ends_the_export(
    form: ExportForm, lines: list[str]
) -> None:
    hits_ = [{"_index": "x", "_id": "0", "_source": {"n": 0}, "sort": [0, 0]},
             {"_index": "y", "_id": "1", "_routing": "r", "_source": {"n": 1}, "sort": [1, 1]}]  # fmt: skip
    for last, whole in ((hits_[1], True), ({**hits_[1], "_source": None} | {"_id": "1"}, False)):
        if not whole:
            del last["_source"]
        export = ExportReader(ExportRequest(object="x", form=form), QUERY, points=POINTS)
        Answers(reply({"id": "p"}), counted(2)).run(export.open())
        got = Answers(reply({"hits": {"hits": [hits_[0], last]}}, 200)).run(export.slices[0].page())
        if whole:
            part = export.part(got)  # type: ignore[arg-type]
            assert part is not None
            assert [json.loads(line) for line in part.data.splitlines()] == [json.loads(line) for line in lines]
        else:
            with pytest.raises(QueryError, match="_source"):
                export.part(got)  # type: ignore[arg-type]


def test_a_page_that_was_turned_away_says_so_once() -> None:
    one = slice_of()
    page(one, BUSY)
    assert one.turned_away
    page(one, reply(hits(500)))
    assert not one.turned_away
    asking = one.page()
    next(asking)
    with pytest.raises(StopIteration):
        asking.throw(ConnectionFailedError("reset"))
    assert not one.turned_away, "nobody turned it away"


LOST = failure("search_context_missing_exception", 404)


@pytest.mark.parametrize(
    ("seconds", "answer", "told"),
    [
        (0, reply({"succeeded": True}), True), (0, reply({"succeeded": True, "num_freed": 0}, 404), False),
        (0, reply("", 500), None), (0, reply("", 503), None), (0, reply("", 403), None), (0, reply("", 400), None),
        (60, reply(hits(0)), True), (60, LOST, False), (60, failure("x_exception", 404), None),
        (60, failure("index_not_found_exception", 404), None), (60, reply("", 500), None),
    ],
)  # fmt: skip
def test_only_a_context_that_the_server_does_not_know_is_said_to_be_gone(
    seconds: int, answer: Canned, told: bool | None
) -> None:
    exchange = shares.hold(SnapshotHold(snapshot="p", seconds=seconds), POINTS)
    script = Answers(answer)
    if told is None:
        with pytest.raises(DragomanError):
            script.run(exchange)
    else:
        assert script.run(exchange) is told
    sent = json.loads(script.asked[0].body or "")
    assert (sent.get("pit") or sent) == ({"id": "p", "keep_alive": "60s"} if seconds else {"id": "p"})
