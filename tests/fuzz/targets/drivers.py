"""What a database answers, through the whole of what the two drivers make of it, and their checkpoints and cursors."""

from __future__ import annotations

import json
import re
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import msgspec
from drivers.replies import reply
from hypothesis import strategies as st

from dragoman_api import (
    CellRequest,
    ConsoleRequest,
    CountRequest,
    ExportRequest,
    HttpRequest,
    PageRequest,
    Plan,
    PlannedRequest,
    Profile,
    RowKey,
    Sort,
)
from dragoman_api.changes import Delete, Insert, Update
from dragoman_api.errors import DragomanError
from dragoman_api.exports import ExportForm
from dragoman_api.kit import cursors, exchanges
from dragoman_elasticsearch import connect
from dragoman_querydsl import console_answers as es_answers
from dragoman_querydsl import export as es_exports
from dragoman_querydsl import objects, search
from dragoman_querydsl.columns import mapping
from dragoman_querydsl.grid import deep_pages, pages
from dragoman_querydsl.writing.apply import Sender
from dragoman_weaviate import connect as wv_connect
from dragoman_weaviate import console_answers as wv_answers
from dragoman_weaviate import export as wv_exports
from dragoman_weaviate import graphql
from dragoman_weaviate import objects as wv_objects
from dragoman_weaviate import protocol as wv_protocol
from dragoman_weaviate.columns import field_types
from dragoman_weaviate.columns import grid_columns as wv_grid_columns
from dragoman_weaviate.columns.grid_columns import View as WvView
from dragoman_weaviate.grid import pages as wv_paging
from dragoman_weaviate.writing.apply import Sender as WvSender
from dragoman_worker.values import take_apart

from ..grammar import SECTION, hostile_text, json_of
from ..target import Bounds, Broken, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hypothesis.strategies import DrawFn

    from dragoman_querydsl.columns.grid_columns import View as EsView

    Exchange = exchanges.Exchange[Any]

STEPS = 60
"""Maximum requests of one operation; the product's deadline ends one that never stops."""


def carried_out(exchange: Exchange, replies: Iterator[Any]) -> Any:
    """Run an exchange; it is closed when it asks without end."""
    try:
        requests = next(exchange)
        for _ in range(STEPS):
            for request in requests:
                _look_at(request)
            # What cannot be read is a QueryError, as in the product.
            requests = exchanges.pass_on(exchange, [next(replies) for _ in requests])
    except StopIteration as end:
        return end.value
    finally:
        exchange.close()
    return None


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_NAME = re.compile(r"[_A-Za-z]\w*", re.ASCII)
_QUERY = re.compile(r'[\w\s{}()\[\]:,."+-]*', re.ASCII)


def _look_at(request: HttpRequest) -> None:
    """See that no name that a server gave changes the query it stands in."""
    if request.path == "/v1/graphql":
        query = _STRING.sub('""', json.loads(request.body or "")["query"])
        if not _QUERY.fullmatch(query) or query.count("{") != query.count("}"):
            raise Broken(f"query: a name is none: {query[:200]!r}")


def _driver(operations: dict[str, Callable[[], Exchange]]) -> Callable[[Path], Callable[[bytes], object]]:
    """Take the name of an operation in the first line, and the replies after it, each with its status before it."""

    def run(data: bytes) -> None:
        name, _, rest = data.partition(b"\n")
        replies = [_reply(part) for part in rest.split(SECTION)]
        operation = operations.get(name.decode(errors="replace")) or next(iter(operations.values()))
        result = carried_out(operation(), islice(cycle(replies), 10_000))
        try:
            take_apart(result, call=1)
        except ValueError:
            return  # too large, and said to be so

    return lambda _: run


def _reply(part: bytes) -> Any:
    status, found, body = part.partition(b" ")
    number = int(status) if found and len(status) == 3 and status.isdigit() else 200
    return reply(body, number, {"X-Elastic-Product": "Elasticsearch"})


# Elasticsearch --------------------------------------------------------------------------------------------------------

_MAPPING = {
    "books": {"mappings": {"_source": {"excludes": ["x.*"]}, "properties": {
        "title": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
        "price": {"type": "double"}, "at": {"type": "date", "format": "epoch_millis"},
        "o": {"properties": {"p": {"type": "long"}}},
        "items": {"type": "nested", "properties": {"sku": {"type": "keyword"}}}, "flat": {"type": "flattened"},
        "al": {"type": "alias", "path": "title"},
    }, "runtime": {"r": {"type": "long"}}}},
}  # fmt: skip
_CAPS = {
    "indices": ["books"],
    "fields": {
        "title": {"text": {"searchable": True, "aggregatable": False}},
        "o.p": {"long": {}},
        "items.sku": {"keyword": {}},
    },
}
_SEARCH = {
    "took": 1, "timed_out": False, "_shards": {"total": 2, "failed": 1, "failures": [{"reason": {"type": "x",
    "reason": "y"}}]}, "pit_id": "p", "_scroll_id": "s",
    "hits": {"total": {"value": 3, "relation": "gte"}, "hits": [
        {"_index": "books", "_id": "1", "_score": 1.5, "_seq_no": 3, "_primary_term": 1, "_routing": "r",
        "_ignored": ["title.keyword"], "sort": [1.50, "a", 18446744073709551615],
         "_source": {"title": "x", "price": 1.10, "o": {"p": [1, 2]}, "o.p": 3, "items": [{"sku": "a"}, {}, None],
         "flat": {"a": {"b": 1}}}, "fields": {"r": [1]}},
    ]},
}  # fmt: skip
_ERROR = {
    "error": {
        "type": "search_phase_execution_exception",
        "reason": "r",
        "root_cause": [{"type": "a", "reason": "b"}],
        "failed_shards": [{"reason": {"caused_by": {"reason": "c"}}}],
    },
    "status": 400,
}
_ROOT = {"name": "n", "version": {"number": "8.19.21", "build_flavor": "default"}, "tagline": connect.TAGLINE}
_CAT = [{"index": "books", "store.size": "12"}, {"index": ".hidden", "store.size": None}]
_BULK = {
    "errors": True,
    "items": [
        {
            "index": {
                "_index": "books",
                "_id": "1",
                "status": 201,
                "_seq_no": 1,
                "_primary_term": 1,
                "_shards": {"failed": 1},
            }
        },
        {
            "update": {
                "_id": "2",
                "status": 409,
                "error": {
                    "type": "version_conflict_engine_exception",
                    "reason": "required seqNo [1], primary term [1]. current document has seqNo [2] and term [1]",
                },
            }
        },
    ],
}
_MGET = {
    "docs": [{"_index": "books", "_id": "1", "found": True, "_seq_no": 1, "_primary_term": 1, "_source": {"a": 1}}]
}
_SETTINGS = {"books": {"settings": {"index.max_result_window": "10"}, "defaults": {"index.max_result_window": "10000"}}}
_MSEARCH = {"responses": [_SEARCH, _ERROR]}
_CHECKPOINT = {
    "pit": "p",
    "total": 3,
    "rows": 1,
    "marks": [[1, "a"], True, False],
}
_BULK_BODY = '{"index":{"_id":"1"}}\n{"a":1}\n{"update":{"_id":"2"}}\n{"doc":{}}\n'
_PROFILE = Profile(name="shop", type="x", host="localhost", port=1)


def _es_view() -> EsView:
    found = {
        name: mapping.IndexMapping(msgspec.Raw(json.dumps(each["mappings"]).encode()))
        for name, each in _MAPPING.items()
    }
    return mapping.read("books", found, msgspec.convert(_CAPS, mapping.FieldCaps))


def _es_page(**more: Any) -> Callable[[], Exchange]:
    view = _es_view()

    def page() -> Exchange:
        request = PageRequest(object="books", sort=[Sort("price")], **more)
        dialect = connect.dialect_of((8, 0, 0))
        grid = pages.page_query(request, view, dialect, window=1_000, preference="p")
        return grid.deep_page(grid.pager(dialect)) if grid.deep else grid.shallow_page()

    return page


def _es_described() -> Exchange:
    view = yield from objects.view("books")
    view.find("flat.a.b")
    request, dialect = PageRequest(object="books"), connect.dialect_of((8, 0, 0))
    grid = pages.page_query(request, view, dialect, window=1_000, preference="p")
    page = yield from grid.shallow_page()
    return [view.describe(), page] and page


def _es_apply() -> Exchange:
    one, several = (
        HttpRequest("PUT", "/books/_doc/1?routing=r", '{"a":1}'),
        HttpRequest("POST", "/books/_bulk", _BULK_BODY),
    )
    plan = Plan(
        planned=[
            PlannedRequest(request=one, changes=[0]),
            PlannedRequest(request=several, changes=[1, 2], rows=[[1], [2]]),
        ]
    )
    sending = Sender(plan)
    for _ in range(3):
        if not (yield from sending.send()):
            break
    return sending.outcomes


def _es_export(
    checkpoint: str | None = None, *, scrolls: bool = False, form: ExportForm = ExportForm.ROWS
) -> Callable[[], Exchange]:
    def exported() -> Exchange:
        request = ExportRequest(object="books", form=form, checkpoint=checkpoint, keep_alive=60)
        export = es_exports.ExportReader(request, search.MATCH_ALL, points=None if scrolls else connect.POINTS)
        yield from export.open()
        for each in export.slices[:3]:
            page = yield from each.page()
            if not isinstance(page, float):
                export.part(page)
        export.close()

    return exported


def _asked(method: str, path: str, body: str | None = None, *, writes: bool = False) -> ConsoleRequest:
    return ConsoleRequest(request=HttpRequest(method, path, body), writes=writes)


def _es_operations() -> dict[str, Callable[[], Exchange]]:
    view = _es_view()
    key = RowKey("books", "1", "r", {})
    return {
        "page": _es_page(columns=["title", "price", "o.p", "items.sku", "r", "flat.a", "_score"], total=True),
        "deep": _es_page(offset=5_000, limit=10),
        "describe": _es_described,
        "identify": lambda: connect.identify(_PROFILE),
        "list": objects.list_objects,
        "cell": lambda: pages.fetch_cell(CellRequest(key=key, column="o.p"), view),
        "runtime-cell": lambda: pages.fetch_cell(CellRequest(key=key, column="r"), view),
        "window": lambda: pages.window_setting("books"),
        "count": lambda: search.count("books", search.MATCH_ALL),
        "walk": lambda: deep_pages.PointInTimePager(
            "books", search.MATCH_ALL, [], 10, "p", points=connect.POINTS
        ).fetch(30, 10, {}),
        "scroll": lambda: deep_pages.ScrollPager("books", search.MATCH_ALL, [], 10, "p").fetch(30, 10, {}),
        "console": lambda: es_answers.execute(_asked("GET", "/books/_search")),
        "console-several": lambda: es_answers.execute(_asked("POST", "/_msearch", "{}\n{}\n")),
        "console-bulk": lambda: es_answers.execute(_asked("POST", "/_bulk", _BULK_BODY, writes=True)),
        "apply": _es_apply,
        "export": _es_export(),
        "export-documents": _es_export(form=ExportForm.DOCUMENTS),
        "export-scrolled": _es_export(scrolls=True, form=ExportForm.BULK),
    }


_ES = {
    "page": [_SEARCH], "deep": [{"id": "p"}, _SEARCH, _SEARCH], "describe": [_MAPPING, _CAPS, _SEARCH],
    "identify": [_ROOT], "list": [_CAT, _MSEARCH],
    "cell": [_MGET["docs"][0]], "runtime-cell": [_SEARCH], "window": [_SETTINGS], "count": [{"count": 3,
    "_shards": {"failed": 0}}],
    "walk": [{"id": "p"}, _SEARCH], "scroll": [_SEARCH], "console": [_SEARCH], "console-several": [_MSEARCH],
    "console-bulk": [_BULK],
    "apply": [_SETTINGS, _BULK["items"][0]["index"], _BULK, _MGET], "export": [{"id": "p"}, _SEARCH, _SEARCH],
    "export-documents": [{"id": "p"}, _SEARCH],
    "export-scrolled": [_SEARCH, _SEARCH],
}  # fmt: skip

# Weaviate -------------------------------------------------------------------------------------------------------------

_CLASS = {
    "class": "Article", "vectorizer": "none", "vectorConfig": {"v": {"vectorizer": {"none": {}}}},
    "multiTenancyConfig": {"enabled": False},
    "invertedIndexConfig": {"indexNullState": True, "stopwords": {"preset": "en", "additions": None}},
    "properties": [{"name": "title", "dataType": ["text"], "indexFilterable": True}, {"name": "n",
    "dataType": ["int"]}, {"name": "ns", "dataType": ["int[]"]}, {"name": "ref", "dataType": ["Author"]},
                   {"name": "o", "dataType": ["object"], "nestedProperties": [{"name": "p", "dataType": ["int"]}]},
                   {"name": "phone", "dataType": ["phoneNumber"]}, {"name": "uuid", "dataType": ["uuid"]}],
}  # fmt: skip
_OBJECT = {"class": "Article", "id": "00000000-0000-0000-0000-000000000001", "creationTimeUnix": 1,
"lastUpdateTimeUnix": 2, "vectors": {"v": [1.5]}, "tenant": None,
           "properties": {"title": "x", "n": 2**40, "ns": [1, None], "o": {"p": 1}}}  # fmt: skip
_LIST = {"objects": [_OBJECT], "totalResults": 1}
_GET = {"data": {"Get": {"Article": [{"title": "x", "n": None, "ns": [1, None], "o": {"p": 1}, "phone": {"input": "1",
"national": None, "countryCode": 49, "defaultCountry": ""},
        "ref": [{"__typename": "Author", "_additional": {"id": "a"}}],
        "_additional": {"id": "00000000-0000-0000-0000-000000000001", "creationTimeUnix": "1",
        "lastUpdateTimeUnix": "2", "vectors": {"v": [1]}}}]}}}  # fmt: skip
_COUNT = {"data": {"Aggregate": {"Article": [{"meta": {"count": 3}}]}}}
_REFUSED = {
    "errors": [{"message": "query maximum results exceeded: offset '1' and limit '2' over '3'", "path": ["Get"]}],
    "data": {"Get": {"Article": None}},
}
_META = {"version": "1.38.11", "hostname": "x", "modules": {}}
_OWN = {"username": "a", "roles": [{"permissions": [{"action": "read_data"}]}]}
_WV_ERROR = {"error": [{"message": "no"}]}
_LANES = [["", "80"], ["80", ""]]


def _wv_view() -> WvView:
    text = json.dumps(_CLASS)
    return WvView("Article", msgspec.json.decode(text, type=field_types.Collection), text, wv_protocol.Features())


def _wv_export(checkpoint: str | None = None, columns: list[str] | None = None) -> Callable[[], Exchange]:
    def exported() -> Exchange:
        export = wv_exports.ExportReader(
            ExportRequest(object="Article", form=ExportForm.ROWS, checkpoint=checkpoint, columns=columns), _wv_view()
        )
        yield from export.count()
        for span in export.ranges[:3]:
            for piece in (yield from export.pieces(span)):
                export.part(piece)

    return exported


def _wv_described() -> Exchange:
    view = yield from wv_grid_columns.view("Article", wv_protocol.Features())
    if odd := [each.prop for each in view.fields.values() if each.prop and not _NAME.fullmatch(each.prop)]:
        raise Broken(f"query: names are none: {odd[:3]!r}")
    page = yield from wv_paging.page(PageRequest(object="Article", sort=[Sort("title")], total=True), view)
    view.describe()
    return page


def _wv_apply() -> Exchange:
    key = RowKey("Article", _OBJECT["id"], None, {"lastUpdateTimeUnix": 2})
    body = json.dumps({"class": "Article", "id": _OBJECT["id"], "properties": {"title": "y"}})
    path = f"/v1/objects/Article/{_OBJECT['id']}"
    planned = [HttpRequest("PUT", path, body), HttpRequest("POST", "/v1/objects", body), HttpRequest("DELETE", path)]
    changes = [Update(key, {"title": "y"}), Insert("Article", {"title": "y"}, _OBJECT["id"]), Delete(key)]
    plan = Plan(
        planned=[PlannedRequest(request=each, changes=[at]) for at, each in enumerate(planned)], changes=changes
    )
    sending = WvSender(plan, wv_protocol.Features())
    yield from sending.send()
    return sending.outcomes


def _wv_operations() -> dict[str, Callable[[], Exchange]]:
    view, features = _wv_view(), wv_protocol.Features()
    key = RowKey("Article", _OBJECT["id"], None, {})
    return {
        "page": lambda: wv_paging.page(PageRequest(object="Article", total=True, limit=1), view),
        "sorted": lambda: wv_paging.page(PageRequest(object="Article", sort=[Sort("title")], total=True), view),
        "describe": _wv_described,
        "identify": lambda: wv_connect.identify(_PROFILE),
        "list": lambda: wv_objects.list_objects(features),
        "cell": lambda: wv_paging.fetch_cell(CellRequest(key=key, column="vector"), view),
        "count": lambda: wv_paging.count(CountRequest(object="Article"), view),
        "graphql": lambda: wv_answers.execute(
            _asked("POST", "/v1/graphql", '{"query":"{Get{Article{title}}}"}'), features
        ),
        "objects": lambda: wv_answers.execute(_asked("GET", "/v1/objects"), features),
        "apply": _wv_apply,
        "export": _wv_export(),
        "export-vectors": _wv_export(columns=["vector"]),
    }


_WV = {
    "page": [_LIST, _COUNT], "sorted": [_GET, _COUNT, _OBJECT], "describe": [_CLASS, _GET, _COUNT, _OBJECT],
    "identify": [_META, _OWN], "list": [{"classes": [_CLASS]}, {"aliases": [{"alias": "A"}]}, _COUNT],
    "cell": [_OBJECT], "count": [_COUNT], "graphql": [_GET, _CLASS], "objects": [_LIST, _CLASS], "apply": [_CLASS,
    _OBJECT, _OBJECT], "export": [_COUNT, _LIST], "export-vectors": [_COUNT, _LIST],
}  # fmt: skip


@st.composite
def _replies(draw: DrawFn, examples: dict[str, list[Any]], errors: tuple[Any, ...]) -> bytes:
    name = draw(st.sampled_from([*examples]))
    usual = examples[name]
    wrong = draw(st.integers(0, len(usual) - 1))
    parts = []
    for at, example in enumerate(usual):
        status = draw(
            st.sampled_from((b"200",) * 12 + (b"400", b"401", b"403", b"404", b"409", b"413", b"429", b"503", b"204"))
        )
        told = draw(st.sampled_from(errors)) if status >= b"400" else example
        parts.append(status + b" " + (draw(json_of(told)) if at == wrong else json.dumps(told).encode()))
    return name.encode() + b"\n" + SECTION.join(parts)


@st.composite
def _named(draw: DrawFn) -> bytes:
    """Rename a property of a collection, or the collection that it refers to."""
    told = json.loads(json.dumps(_CLASS))
    changed = draw(st.sampled_from(told["properties"]))
    if draw(st.booleans()):
        changed["name"] = draw(hostile_text())
    else:
        changed["dataType"] = [draw(hostile_text())]
    return b"describe\n" + SECTION.join(b"200 " + json.dumps(each).encode() for each in (told, _GET, _COUNT, _OBJECT))


# checkpoints and cursors ----------------------------------------------------------------------------------------------


def _sealed(query: dict[str, object], text: str) -> str:
    """Seal a text as a position, as far as it is JSON."""
    try:
        return cursors.seal(query, msgspec.Raw(msgspec.json.format(text, indent=-1).encode()))
    except (ValueError, RecursionError):
        return text


def _checkpoints(_: Path) -> Callable[[bytes], object]:
    """Go on from what a checkpoint or a cursor says; the server answers as it did before."""
    es, wv = [reply(_SEARCH)], [reply(_COUNT), reply(_LIST)]
    view = _wv_view()

    def run(data: bytes) -> None:
        text = data.decode(errors="replace")
        es_query, wv_query = (
            cursors.query_of(ExportRequest(object=name, form=ExportForm.ROWS)) for name in ("books", "Article")
        )
        for exchange, replies in (
            (_es_export(text), es), (_es_export(_sealed(es_query, text)), es),
            (_wv_export(text), wv), (_wv_export(_sealed(wv_query, text)), wv),
            (lambda: wv_paging.page(PageRequest(object="Article", cursor=text, limit=10), view), [reply(_LIST)]),
            (lambda: graphql.count_of(view, None, text), [reply(_COUNT)]),
        ):  # fmt: skip
            try:
                carried_out(exchange(), cycle(replies))
            except DragomanError:
                continue

    return run


ELASTICSEARCH, WEAVIATE = (_es_operations, _ES), (_wv_operations, _WV)
"""The operations of a driver by name, made anew, and what a server answers to each, request by request."""

_ANSWERS = Bounds(seconds=0.3, mb_per_kb=1)
TARGETS = (
    Target(name="answers-elasticsearch", parses="dragoman_elasticsearch, dragoman_querydsl",
    make=lambda folder: _driver(_es_operations())(folder),
           grammar=lambda: _replies(_ES, (_ERROR, {"error": "x"}, {})), allowed=(DragomanError,), bounds=_ANSWERS),
    Target(name="answers-weaviate", parses="dragoman_weaviate", make=lambda folder: _driver(_wv_operations())(folder),
           grammar=lambda: st.one_of(_replies(_WV, (_WV_ERROR, _REFUSED, "x")), _named()),
           allowed=(DragomanError,), bounds=_ANSWERS),
    Target(name="checkpoints-cursors", make=_checkpoints,
           parses="dragoman_querydsl.export, dragoman_weaviate.export, dragoman_weaviate.grid.pages",
           grammar=lambda: st.one_of(json_of(_CHECKPOINT), json_of(_LANES),
           hostile_text().map(lambda each: each.encode(errors="replace")))),
)  # fmt: skip
