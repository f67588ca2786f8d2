"""What an export does about each kind of trouble, page by page and without a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.replies import Answers, Canned, reply

from dragoman_api import ConnectionFailedError, ExportRequest, QueryError
from dragoman_api.kit import retries
from dragoman_elasticsearch.exporting import slices
from dragoman_elasticsearch.exporting.export import ExportReader
from dragoman_elasticsearch.exporting.slices import ExportQuery, Slice, SlicePage

if TYPE_CHECKING:
    from wording import Wording

QUERY = msgspec.Raw(b'{"match_all":{}}')


def slice_of(number: int = 0, of: int = 1, **more: Any) -> Slice:
    return Slice(ExportQuery("x", QUERY, slices.DOCUMENTS, "300s", "p1"), number, of, **more)


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
    export = ExportReader(ExportRequest(object="x"), QUERY, scrolls=False)
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
    export = ExportReader(ExportRequest(object="x"), QUERY, scrolls=scrolls)
    count = {"hits": {"total": {"value": rows, "relation": "eq"}, "hits": []}, "_shards": {"total": shards}}
    Answers(*[reply({"id": "p"})] * (not scrolls), reply(count)).run(export.open())
    assert len(export.slices) == slices


def test_where_documents_are_large_the_first_pages_are_small() -> None:
    export = ExportReader(ExportRequest(object="x"), QUERY, scrolls=False)
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
    export = ExportReader(ExportRequest(object="x"), QUERY, scrolls=True)
    count = {"hits": {"total": {"value": 0, "relation": "eq"}, "hits": []}, "_shards": {"total": 1}}
    Answers(reply(count)).run(export.open())
    assert export._total == 0


@pytest.mark.parametrize("more", [{"_shards": {"total": 2, "failed": 1}}, {"timed_out": True}])
def test_rows_that_were_counted_in_part_begin_no_export(more: dict[str, Any]) -> None:
    export = ExportReader(ExportRequest(object="x"), QUERY, scrolls=False)
    count = {"hits": {"total": {"value": 20, "relation": "eq"}, "hits": []}, "_shards": {"total": 2}} | more
    asking = Answers(reply({"id": "p"}), reply(count))
    with pytest.raises(QueryError, match="incomplete"):
        asking.run(export.open())
    assert asking.asked[-1].path == "/_search?allow_partial_search_results=false"
