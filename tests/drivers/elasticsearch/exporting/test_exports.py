"""Exports: the whole object, document by document as stored, or an error."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
import pytest
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake
from drivers.elasticsearch.test_objects import view
from msgspec.structs import replace

from dragoman.exports.values import ValueReader, text_of
from dragoman_api import ExportPart, ExportRequest, Filter, QueryError
from dragoman_api.errors import ConnectionFailedError, ObjectNotFoundError
from dragoman_api.exports import ExportForm, SplitRequest
from dragoman_api.kit import cursors
from dragoman_elasticsearch.connect import POINTS
from dragoman_querydsl import driver, export
from dragoman_querydsl.export import ExportReader
from dragoman_querydsl.search import MATCH_ALL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from wording import Wording


async def parts(es: Rig, name: str, **more: Any) -> list[ExportPart]:
    async with aclosing(es.driver.export_rows(ExportRequest(object=name, **more))) as taken:
        return [part async for part in taken]


async def begin(es: Rig, name: str, *, taken: int, **more: Any) -> list[ExportPart]:
    """Take some parts and leave the export."""
    request = ExportRequest(**{"object": name, **more})
    found: list[ExportPart] = []
    async with aclosing(es.driver.export_rows(request)) as given:
        async for part in given:
            found.append(part)
            if len(found) == taken:
                break
    return found


async def exhaust(taken: AsyncIterator[ExportPart]) -> None:
    async for _ in taken:
        pass


def bodies(es: Rig) -> list[dict[str, Any]]:
    return [json.loads(each.body or "{}") for each in es.sent("POST", "/_search")]


def pages(es: Rig) -> list[dict[str, Any]]:
    """Return the requests for pages that the index allows; counting takes one row."""
    return [each for each in bodies(es) if 1 < each.get("size", 200) <= 200]


def renewed(es: Rig) -> list[dict[str, Any]]:
    return [each for each in bodies(es) if each.get("size") == 0]


@pytest.mark.parametrize("checkpoint", ["", "[]", '{"marks":[' + "[" * 50_000], ids=len)
def test_a_checkpoint_that_cannot_be_read_is_refused(wording: Wording, checkpoint: str) -> None:
    request = ExportRequest(object="a", form=ExportForm.ROWS, checkpoint=checkpoint)
    with pytest.raises(QueryError) as caught:
        next(ExportReader(request, MATCH_ALL, points=POINTS).open())
    assert caught.value.code == "export-not-resumable"
    wording(caught.value.hint)


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not condition():
            await anyio.sleep(0.02)


def walkers() -> list[str]:
    return [name for task in asyncio.all_tasks() if "dragoman_" in (name := task.get_name())]


def lines(found: list[ExportPart]) -> list[bytes]:
    return [line for part in found for line in part.data.splitlines()]


class ExportRules:
    async def test_E32_the_whole_index_past_the_window_and_every_row_once(self, es: Rig) -> None:
        rows = ({"n": at} for at in range(10_640))
        name = await es.index({"n": {"type": "long"}}, rows, settings={"number_of_shards": 3})
        found = await parts(es, name)
        assert sorted(json.loads(line)["n"] for line in lines(found)) == list(range(10_640))
        assert [part.total for part in found] == [10_640] * len(found)
        assert len(found) >= 2
        opened = [each for each in es.sent("POST") if "/_pit?" in each.path or "?scroll=" in each.path]
        (closed,) = [each for each in es.log if each.method == "DELETE"]
        if es.version >= (7, 12):
            assert (len(opened), closed.path) == (1, "/_pit")
        else:
            freed = json.loads(closed.body or "")["scroll_id"]
            assert (len(opened), closed.path, len(set(freed))) == (3, "/_search/scroll", 3)

    async def test_E32_documents_leave_as_they_are_stored(self, es: Rig) -> None:
        """Digits, escapes and the order of keys; only line breaks between tokens go."""
        stored = ['{"z":1.10,"a":1e400,"s":"\\u00fc \\n","big":123456789012345678901234567890}', '{"a": 1,  "b":  2}']
        name = await es.index(mapping={"dynamic": False}, documents=stored)
        assert sorted(lines(await parts(es, name))) == sorted(text.encode() for text in stored)

    async def test_documents_that_are_no_proper_json_leave_as_they_are_stored_all_the_same(self, es: Rig) -> None:
        """Halves of surrogate pairs are stored and answered as they were sent."""
        stored = ['{"a":"\\ud800 \\ud83d\\ude00","b":1.10}', '{"a":"\\ufffd"}', '{"x":"{\\"a\\":1}"}', '{"a":1}']
        name = await es.index(mapping={"dynamic": False, "properties": {}}, documents=stored)
        for form in (ExportForm.DOCUMENTS, ExportForm.BULK):
            assert [line for line in lines(await parts(es, name, form=form)) if not line.startswith(b'{"index"')] == [
                text.encode() for text in stored
            ]

    async def test_a_document_on_several_lines_becomes_one(self, es: Rig) -> None:
        name = await es.index(mapping={"dynamic": False})
        reply_ = await es.raw("PUT", f"/{name}/_doc/1?refresh=true", '{\n  "a": 1.10,\n  "t": "x  y"\n}')
        assert reply_.status == 201
        assert lines(await parts(es, name)) == [b'{   "a": 1.10,   "t": "x  y" }']

    async def test_a_comment_in_a_document_leaves_its_neighbours_as_they_are(self, es: Rig) -> None:
        """The server returns comments and byte order marks as stored, so its answer is not JSON."""
        plain = [f'{{"n":{n},"p":1.10,"d":12345678901234567890.123,"u":"// \\ud800 /* */"}}' for n in range(9)]
        odd = {
            "inside": ('{"n":1,', '/* "a":{ */', '"p":1.10}'),
            "on a line": ('{"n":2,', '// "sort":[1]},{"_index":"x\n', '"p":1.10}'),
            "behind": ('{"n":3,"p":1.10}', " /* c } */ ", ""),
            "at the end": ('{"n":4,"p":1.10}', ' // c "', ""),
            "with a line break": ('{"n":5,"p":1.10}', " // c }}\n", ""),
            "a mark": ("", "\ufeff", '{"n":6,"p":1.10}'),
            "last": ('{"n":7,"p":1.10}', " // }],", ""),
        }
        name = await es.index(mapping={"dynamic": False, "properties": {}}, documents=plain)
        for key, texts in odd.items():
            assert (await es.raw("PUT", f"/{name}/_doc/{quote(key)}?refresh=true", "".join(texts))).status == 201
        bare = (f"{before}{' ' * len(comment)}{after}".strip() for before, comment, after in odd.values())
        wanted = sorted(text.encode() for text in (*plain, *bare))
        found = await parts(es, name)
        assert sorted(lines(found)) == wanted
        told = " ".join(note.reason for part in found for note in part.notes)
        assert {note.code for part in found for note in part.notes} == {"documents-rewritten"}
        assert [key for key in (*odd, *map(str, range(9))) if f"'{key}'" in told] == [*odd]
        rows = await parts(es, name, form=ExportForm.ROWS)
        sources = {line["_id"]: line for line in map(json.loads, lines(rows))}
        assert set(sources) == {*odd, *map(str, range(9))}
        assert all(b'"p":1.10' in line for line in lines(rows))

    async def test_a_comment_on_a_later_page_loses_no_row(self, es: Rig) -> None:
        rows = ({"n": at} for at in range(2_300))
        name = await es.index({"n": {"type": "long"}}, rows)
        assert (await es.raw("PUT", f"/{name}/_doc/late?refresh=true", '{"n":9} // c')).status == 201
        found = await parts(es, name)
        assert sorted(json.loads(line)["n"] for line in lines(found)) == sorted([9, *range(2_300)])
        assert [note.reason[-len(name) - 12 :] for part in found for note in part.notes] == [f"'late' of '{name}'"]

    async def test_a_comment_that_reads_like_an_answer_makes_no_row(self, es: Rig) -> None:
        name = await es.index(mapping={"dynamic": False, "properties": {}}, documents=['{"n":1}'])
        forged = f'{{"n":2}} // }},{{"_index":"{name}","_id":"9","_source":{{"n":9}}'
        assert (await es.raw("PUT", f"/{name}/_doc/2?refresh=true", forged)).status == 201
        if es.version < (7, 12):  # a page of a scroll cannot be requested again
            with pytest.raises(QueryError, match="incomplete"):
                await parts(es, name)
        else:
            found = await parts(es, name)
            assert sorted(lines(found)) == [b'{"n":1}', b'{"n":2}']
            assert [note.code for part in found for note in part.notes] == ["documents-rewritten"]

    async def test_with_metadata_a_line_can_be_put_back(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}})
        await es.call("PUT", f"/{name}/_doc/a%22b?routing=r&refresh=true", {"n": 1})
        await es.call("PUT", f"/{name}/_doc/c?refresh=true", {"n": 2})
        found = {line["_id"]: line for line in map(json.loads, lines(await parts(es, name, form=ExportForm.ROWS)))}
        assert found == {
            'a"b': {"_index": name, "_id": 'a"b', "_source": {"n": 1}, "_routing": "r"},
            "c": {"_index": name, "_id": "c", "_source": {"n": 2}},
        }

    async def test_a_columns_path_leads_to_what_the_grid_shows(self, es: Rig) -> None:
        properties = {
            "t": {"type": "text", "fields": {"keyword": {"type": "keyword"}}},
            "o": {"properties": {"a": {"type": "long"}, "b": {"properties": {"c": {"type": "keyword"}}}}},
            "n": {"type": "nested", "properties": {"q": {"type": "long"}}},
            "one": {"type": "nested", "properties": {"q": {"type": "long"}, "p.r": {"type": "long"}}},
            "f": {"type": "flattened" if es.version >= (7, 12) else "object"},
            "off": {"type": "object", "enabled": False},
            "al": {"type": "alias", "path": "o.a"},
            "big": {"properties": {"x": {"type": "keyword"}}},
        }
        mapping: dict[str, Any] = {"properties": properties}
        if es.fake is None:  # which knows neither
            mapping["_source"] = {"excludes": ["big.*"]}
            mapping |= {"runtime": {"r": {"type": "long"}}} if es.version >= (7, 11) else {}
        nested = '"n":[{"q":1},{}],"one":{"q":2,"p":{}}'
        document = (
            f'{{"t":"x \\"y","o":{{"a":1.10,"b.c":"k"}},{nested},"f":{{"z":[1]}},"off":{{"p":1}},"big":{{"x":1}}}}'
        )
        name = await es.index(mapping=mapping, documents=[document])
        page = await es.page(name)
        columns = page.columns
        (line,) = lines(await parts(es, name, form=ExportForm.ROWS))
        missing = [each.name for each in columns if not each.path]
        there = [each.name for each in columns]
        assert missing == [name for name in ("_score", *["big.x"] * (es.fake is None)) if name in there]
        found = ValueReader([replace(each, path=each.path or ("_nowhere",)) for each in columns]).read(line)
        texts = {each.name: text_of(value) for each, value in zip(columns, found, strict=True) if value is not None}
        cells = {each.name: cell for each, cell in zip(columns, page.cells[0], strict=True) if each.name in texts}
        assert texts == {key: str(cell) for key, cell in cells.items()}
        assert set(texts) >= {"_id", "_index", "t", "o.a", "o.b.c", "n", "n.q", "one.q", "one.p.r", "off", "al"}

    async def test_a_filtered_export(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(50)])
        compiled = await es.filter(name, Filter("n", "<", 7))
        assert len(lines(await parts(es, name, filter=compiled))) == 7

    async def test_an_empty_index(self, es: Rig) -> None:
        assert await parts(es, await es.index({"n": {"type": "long"}})) == []

    async def test_a_lowered_window_makes_smaller_requests(self, es: Rig) -> None:
        rows = [{"n": at} for at in range(230)]
        name = await es.index({"n": {"type": "long"}}, rows, settings={"index.max_result_window": 50})
        assert len(lines(await parts(es, name))) == 230

    async def test_a_missing_index_is_told(self, es: Rig) -> None:
        with pytest.raises(ObjectNotFoundError, match="no such index"):
            await parts(es, "t-nosuch")

    async def test_what_bulk_takes_back(self, es: Rig) -> None:
        stored = ['{"z":1.10,"a":1e400,"s":"\\u00fc \\n"}', '{"big":123456789012345678901234567890}']
        name = await es.index(mapping={"dynamic": False}, documents=stored)
        odd = await es.raw("PUT", f"/{name}/_doc/a%22%2F%C3%BC?routing=r%22&refresh=true", '{\n "n": 1.50\n}')
        assert odd.status == 201
        found = await parts(es, name, form=ExportForm.BULK)
        assert [part.rows for part in found] == [3]
        for key in ("0", "1", "a%22%2F%C3%BC?routing=r%22"):
            await es.call("DELETE", f"/{name}/_doc/{key}")
        answer = await es.call("POST", "/_bulk?refresh=true", found[0].data.decode())
        assert not answer["errors"]
        assert [await es.source(name, key) for key in ("0", "1", "a%22%2F%C3%BC?routing=r%22")] == [
            *stored, '{  "n": 1.50 }'
        ]  # fmt: skip

    async def test_documents_that_are_not_kept_cannot_be_exported(self, es: Rig) -> None:
        name = await es.index(mapping={"_source": {"enabled": False}}, documents=[{"n": 1}])
        with pytest.raises(QueryError, match="_source"):
            await parts(es, name)

    async def test_the_rest_behind_a_checkpoint_is_exact_whatever_was_written_since(self, es: Rig) -> None:
        """PIT item 2: slice and last sort values go on in the same point in time, in another process too."""
        name = await es.index({"n": {"type": "long"}}, ({"n": at} for at in range(5_600)))
        first = await begin(es, name, taken=2)
        if es.version < (7, 12):
            assert [part.checkpoint for part in first] == [None, None]
            return
        await es.load(name, ({"n": -at} for at in range(300)))
        await es.call("DELETE", f"/{name}/_doc/5599?refresh=true")
        found = first[:1]  # the second part was lost with the program that took it
        while rest := await begin(es, name, taken=1, checkpoint=found[-1].checkpoint):
            found += rest
        assert sorted(json.loads(line)["n"] for line in lines(found)) == list(range(5_600))
        assert {part.total for part in found} == {5_600}

    async def test_a_checkpoint_whose_point_in_time_is_gone_is_refused(self, es: Rig) -> None:
        if es.version < (7, 12):
            pytest.skip("there are no checkpoints")
        name = await es.index({"n": {"type": "long"}}, ({"n": at} for at in range(6_000)))
        found = await parts(es, name)
        assert es.sent("DELETE", "/_pit"), "an export that came to its end frees what it held"
        assert await parts(es, name, checkpoint=found[-1].checkpoint) == [], "nothing is left to be had"
        with pytest.raises(QueryError, match="no longer holds what was exported") as caught:
            await parts(es, name, checkpoint=found[0].checkpoint)
        assert caught.value.code == "export-not-resumable"

    @pytest.mark.slow
    async def test_an_export_that_is_left_early_leaves_no_task_and_frees_what_nobody_can_use(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "long"}}, ({"n": at} for at in range(6_000)))
        for keep_alive in (0, 300):
            async with aclosing(es.driver.export_rows(ExportRequest(object=name, keep_alive=keep_alive))) as taken:
                first = await anext(taken)
                assert walkers()
            assert not walkers()
            last = es.log[-1]
            kept = keep_alive and es.version >= (7, 12)
            assert (first.checkpoint is not None) == bool(kept)
            assert (last.method == "DELETE" and last.path in ("/_pit", "/_search/scroll")) != bool(kept)

    async def test_a_page_is_asked_for_before_the_one_before_it_is_taken(self, es: Rig) -> None:
        rows = ({"n": at} for at in range(2_000))
        name = await es.index({"n": {"type": "long"}}, rows, settings={"index.max_result_window": 200})
        async with aclosing(es.driver.export_rows(ExportRequest(object=name))) as taken:
            await anext(taken)
            await until(lambda: len(pages(es)) >= 3)
            await anyio.sleep(0.3)  # the taker writes
            assert len(pages(es)) == 3, "one page waits, one is under way, and no more is asked for"
            assert len(lines([part async for part in taken])) == 1_800


class TestExportsOnFake(ExportRules, OnFake):
    pass


class TestExportsOnServer(ExportRules, OnServer):
    pass


@pytest.mark.parametrize(
    ("source", "exported"),
    [
        ({}, {"a": "a", "b.c": "b.c", "k": "k", "r": "b.c", "x": "x"}),
        ({"enabled": False}, {}),
        ({"mode": "disabled"}, {}),
        ({"excludes": ["b"]}, {"a": "a", "k": "k", "x": "x"}),
        ({"includes": ["b*", "a"], "excludes": ["a"]}, {"b.c": "b.c", "r": "b.c"}),
    ],
)
def test_a_column_that_documents_are_kept_without_has_no_path(source: dict[str, Any], exported: dict[str, str]) -> None:
    properties = {
        "a": {"type": "long"},
        "b": {"properties": {"c": {"type": "long"}}},
        "r": {"type": "alias", "path": "b.c"},
        "x": {"type": "long"},
    }
    runtime = {"k": {"type": "long"}, "s": {"type": "long", "script": {"source": "emit(1)"}}}
    found = view({"properties": properties, "runtime": runtime, "_source": source})
    paths = {name: column.path for name, column in found.columns.items() if column.path}
    assert paths == {"_id": ("_id",), "_index": ("_index",)} | {
        name: ("_source", field) for name, field in exported.items()
    }


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"object": "b"}, "another object"),
        ({"form": ExportForm.ROWS}, "another form"),
        ({"filter": True}, "another filter"),
        ({"checkpoint": "{"}, "cannot be read"),
        ({"checkpoint": "{}"}, "cannot be read"),
    ],
)
async def test_a_checkpoint_of_something_else_is_refused(wording: Wording, other: dict[str, Any], reason: str) -> None:
    async with on_fake("8.19.21") as es:
        names = [await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(1100)]) for _ in range(2)]
        (first,) = await begin(es, names[0], taken=1)
        if other.pop("filter", None):
            other["filter"] = await es.filter(names[0], Filter("n", "<", 7))
        if "object" in other:
            other["object"] = names[1]
        mark = len(es.log)
        with pytest.raises(QueryError, match=reason) as caught:
            await begin(es, taken=1, **{"name": names[0], "checkpoint": first.checkpoint, **other})
        assert caught.value.code == "export-not-resumable"
        wording(caught.value.hint)
        assert not [sent.path for sent in es.log[mark:] if "_search" in sent.path or "_pit" in sent.path]


async def test_a_checkpoint_of_another_number_of_rows_is_refused(wording: Wording) -> None:
    async with on_fake("8.19.21") as es:
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(1100)])
        (first,) = await begin(es, name, taken=1)
        query = cursors.query_of(ExportRequest(object=name))
        position = cursors.unseal(first.checkpoint or "", query, dict[str, Any])
        other = cursors.seal(query, position | {"total": 1200})
        with pytest.raises(QueryError) as caught:
            await parts(es, name, checkpoint=other)
        wording(caught.value.message)
        assert caught.value.code == "export-not-resumable"


async def test_a_server_without_points_in_time_resumes_nothing(wording: Wording) -> None:
    async with on_fake("8.19.21") as es, on_fake("7.10.2") as old:
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(1100)])
        (first,) = await begin(es, name, taken=1)
        with pytest.raises(QueryError) as caught:
            await parts(old, name, checkpoint=first.checkpoint)
        wording(caught.value.message)


@pytest.mark.slow
async def test_a_taker_may_take_longer_than_the_server_holds_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_RENEWED", 0.05)
    async with on_fake("8.19.21") as es:
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(4900)])
        async with aclosing(es.driver.export_rows(ExportRequest(object=name))) as taken:
            await anext(taken)
            await until(lambda: len(renewed(es)) >= 2)
    assert all(each["pit"]["keep_alive"] == "300s" for each in renewed(es))


@pytest.mark.fake_only(reason="a server that forgets its contexts")
async def test_a_point_in_time_lost_in_the_middle_ends_the_export_by_name() -> None:
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(4900)])
        async with aclosing(es.driver.export_rows(ExportRequest(object=name))) as taken:
            await anext(taken)
            es.fake.cluster.contexts.clear()
            with pytest.raises(QueryError) as caught:
                await exhaust(taken)
        assert caught.value.code == "context-lost"
        assert "keep-alive" in caught.value.hint


async def test_answers_that_are_too_long_are_asked_for_in_pieces(
    wording: Wording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "LIMIT", 200_000)
    async with on_fake("8.19.21") as es:
        rows = [{"n": at, "t": "x" * (60_000 if at % 50 == 7 else 10)} for at in range(1500)]
        name = await es.index(mapping={"dynamic": False}, documents=rows)
        found = await parts(es, name)
        assert sorted(json.loads(line)["n"] for line in lines(found)) == list(range(1500))
        assert max(len(part.data) for part in found) < 200_000
    monkeypatch.setattr(export, "LIMIT", 50_000)
    async with on_fake("8.19.21") as es:
        name = await es.index(mapping={"dynamic": False}, documents=rows[:10])
        with pytest.raises(QueryError) as caught:
            await parts(es, name)
        wording(caught.value.message)


@pytest.mark.slow
@pytest.mark.fake_only(reason="a network that fails once in the middle of an export")
@pytest.mark.parametrize("trouble", ["cut", "drop"])
async def test_a_page_that_is_lost_on_its_way_is_asked_for_again(trouble: Any) -> None:
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(3000)])
        es.fake.misbehave(trouble, on="/_search", after=2, times=2)
        assert sorted(json.loads(line)["n"] for line in lines(await parts(es, name))) == list(range(3000))


REJECTED = {"type": "es_rejected_execution_exception", "reason": "rejected execution of coordinating operation"}
PHASE = {"type": "search_phase_execution_exception", "reason": "all shards failed", "phase": "query", "grouped": True}


@pytest.mark.slow
@pytest.mark.fake_only(reason="a server that is busy in the middle of an export")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, PHASE | {"root_cause": [REJECTED], "failed_shards": []}),
        (500, PHASE | {"root_cause": [], "failed_shards": [], "caused_by": REJECTED}),
        (503, {"type": "circuit_breaking_exception", "reason": "Data too large", "root_cause": []}),
        (429, None),
        (503, None),
    ],
    ids=["429", "500", "503", "429 of a proxy", "503 of a proxy"],
)
async def test_a_busy_server_in_the_middle_of_an_export_is_asked_again_after_a_pause(
    status: int, error: dict[str, Any] | None
) -> None:
    """E32."""
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(3000)])
        body = {"error": error} if error else {}
        es.fake.misbehave("answer", on="/_search", after=2, times=2, status=status, body=body)
        began = time.monotonic()
        assert sorted(json.loads(line)["n"] for line in lines(await parts(es, name))) == list(range(3000))
        assert time.monotonic() - began > 0.3
        assert es.fake.troubles[0].times < 0, "the server was busy only before the export"


@pytest.mark.slow
@pytest.mark.fake_only(reason="a network that fails in the middle of an export")
@pytest.mark.parametrize("version", ["8.19.21", "7.10.2"])
async def test_an_export_that_breaks_off_raises_and_never_ends_early(version: str) -> None:
    async with on_fake(version) as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(3000)])
        es.fake.misbehave("cut", on="/_search", after=1)
        with pytest.raises(ConnectionFailedError):
            await parts(es, name)
        es.fake.behave()


@pytest.mark.fake_only(reason="a connection that ends between two pages of a scroll")
async def test_a_page_of_a_scroll_is_never_asked_for_twice() -> None:
    """The second time would be the page after it: rows would be missing."""
    async with on_fake("7.10.2") as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": at} for at in range(3000)])
        es.fake.misbehave("drop", on="/_search/scroll", times=1)
        with pytest.raises(ConnectionFailedError):
            await parts(es, name)


@pytest.mark.parametrize(("columns", "codes"), [(None, ["columns-left-out"]), (["m"], [])])
async def test_an_export_of_documents_says_once_what_they_lack_and_a_table_of_columns_says_it_itself(
    columns: list[str] | None, codes: list[str]
) -> None:
    async with on_fake("8.19.21") as es:
        mapping = {"_source": {"excludes": ["s"]}, "properties": {"m": {"type": "keyword"}, "s": {"type": "keyword"}}}
        name = await es.index(mapping=mapping, documents=[{"m": "a", "s": "b"}] * 3)
        other = await es.index({"m": {"type": "keyword"}}, name="other")
        assert (await es.raw("PUT", f"/{other}/_doc/odd?refresh=true", '{"m":"a"} // c')).status == 201
        name += f",{other}"
        await es.driver.describe_object(name)
        async with aclosing(es.driver.export_rows(ExportRequest(object=name, columns=columns))) as parts:
            noted = [note.code async for part in parts for note in part.notes]
        assert noted == [*codes, "documents-rewritten"]
        split = await es.driver.split_export(SplitRequest(export=ExportRequest(object=name, columns=columns), shares=2))
        assert [note.code for note in split.notes] == codes
