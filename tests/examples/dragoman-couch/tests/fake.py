"""A small CouchDB to test against: databases, documents with revisions, `_find`. Run it: python tests/fake.py."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman_api.testing import Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

RANKS = (type(None), bool, (int, float), str, list, dict)  # how CouchDB orders values of different types
TYPES = {"null": type(None), "boolean": bool, "number": (int, float), "string": str, "array": list, "object": dict}
MISSING = object()

BOOKS = {
    f"book-{number:02}": {
        "title": f"Book {number:02} (a.b)" if number != 4 else "",
        "price": [9.5, 12, 2**53 + number, None][number % 4],
        "stock": number % 5,
        "for sale": number % 2 == 0,
        "tags": ["a", "ä", None] if number != 7 else [f"tag {at}" for at in range(2_000)],
        "odd": number if number % 2 else f"text {number}",
        **({"author.name": f"Ada {number}"} if number % 3 else {}),
    }
    for number in range(1, 24)
}


def rank(value: Any) -> tuple[int, Any]:
    """Return what orders a value among those of all types."""
    at = next(at for at, kind in enumerate(RANKS) if isinstance(value, kind))
    return at, json.dumps(value) if at > 3 else value or 0 if at < 3 else value


CONDITIONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, wanted: rank(value) == rank(wanted),
    "$ne": lambda value, wanted: rank(value) != rank(wanted),
    "$gt": lambda value, wanted: rank(value) > rank(wanted),
    "$gte": lambda value, wanted: rank(value) >= rank(wanted),
    "$lt": lambda value, wanted: rank(value) < rank(wanted),
    "$lte": lambda value, wanted: rank(value) <= rank(wanted),
    "$in": lambda value, wanted: any(rank(value) == rank(each) for each in wanted),
    "$nin": lambda value, wanted: all(rank(value) != rank(each) for each in wanted),
    "$regex": lambda value, wanted: isinstance(value, str) and re.search(wanted, value) is not None,
    "$type": lambda value, wanted: (
        isinstance(value, TYPES[wanted]) and (wanted == "boolean") == isinstance(value, bool)
    ),
}


def matches(document: dict[str, Any], selector: dict[str, Any]) -> bool:
    """Tell whether a document satisfies a selector; what this server does not know is an error."""
    for name, wanted in selector.items():
        if name in ("$and", "$or"):
            if not (all if name == "$and" else any)(matches(document, each) for each in wanted):
                return False
            continue
        if re.search(r"(?<!\\)\.", name) or name.startswith("$"):
            raise web.HTTPBadRequest(text=f'{{"error": "unknown {name}"}}', content_type="application/json")
        value = document.get(re.sub(r"\\(.)", r"\1", name), MISSING)
        for operator, operand in wanted.items():
            if operator == "$exists":
                if (value is not MISSING) is not operand:
                    return False
            elif value is MISSING or not CONDITIONS[operator](value, operand):
                return False
    return True


class Fake:
    """The databases."""

    def __init__(self) -> None:
        self.databases: dict[str, dict[str, dict[str, Any]]] = {"books": {}, "scratch": {}, "_users": {}}
        for key, book in BOOKS.items():
            self._write("books", key, book)
        self._write("scratch", "first", {"title": "First", "price": 1, "stock": 1})  # what its columns are learnt from
        self.app = web.Application()
        self.app.router.add_get("/", self._welcome)
        self.app.router.add_get("/_all_dbs", self._all_dbs)
        self.app.router.add_post("/_dbs_info", self._dbs_info)
        self.app.router.add_post("/{db}/_find", self._find)
        self.app.router.add_post("/{db}", self._insert)
        self.app.router.add_delete("/{db}", self._drop)
        self.app.router.add_get("/{db}/{id}", self._get)
        self.app.router.add_put("/{db}/{id}", self._put)
        self.app.router.add_delete("/{db}/{id}", self._delete)

    def _write(self, name: str, key: str, values: dict[str, Any]) -> web.Response:
        documents = self.databases[name]
        old = documents.get(key, {}).get("_rev")
        if values.get("_rev") != old:
            return answer({"error": "conflict", "reason": "Document update conflict."}, 409)
        body = {"_id": key, **{name: value for name, value in values.items() if name not in ("_id", "_rev")}}
        number = int(old.partition("-")[0]) + 1 if old else 1
        revision = f"{number}-{hashlib.md5(json.dumps(body).encode()).hexdigest()}"
        documents[key] = {"_id": key, "_rev": revision, **body}
        return answer({"ok": True, "id": key, "rev": revision}, 201)

    def _database(self, request: web.Request) -> dict[str, dict[str, Any]]:
        if request.match_info["db"] not in self.databases:
            reason = '{"error": "not_found", "reason": "Database does not exist."}'
            raise web.HTTPNotFound(text=reason, content_type="application/json")
        return self.databases[request.match_info["db"]]

    async def _welcome(self, request: web.Request) -> web.Response:
        return answer({"couchdb": "Welcome", "version": "3.3.3"})

    async def _all_dbs(self, request: web.Request) -> web.Response:
        return answer(sorted(self.databases)[: int(request.query.get("limit", 1000))])

    async def _dbs_info(self, request: web.Request) -> web.Response:
        keys = (await request.json())["keys"]
        infos = {key: {"doc_count": len(self.databases[key]), "sizes": {"file": 4096}} for key in keys}
        return answer([{"key": key, "info": infos[key]} for key in keys])

    async def _find(self, request: web.Request) -> web.Response:
        asked = await request.json()
        assert asked.keys() <= {"selector", "skip", "limit", "fields", "bookmark"}, asked
        documents = sorted(self._database(request).values(), key=lambda document: document["_id"])
        found = [document for document in documents if matches(document, asked["selector"])]
        start = asked.get("skip", 0) + int(asked.get("bookmark", 0))
        page = found[start : start + asked.get("limit", 25)]
        fields = asked.get("fields")
        shown = [{name: each[name] for name in fields if name in each} for each in page] if fields else page
        return answer({"docs": shown, "bookmark": str(start + len(page))})

    async def _insert(self, request: web.Request) -> web.Response:
        self._database(request)
        return self._write(request.match_info["db"], uuid.uuid4().hex, await request.json())

    async def _put(self, request: web.Request) -> web.Response:
        self._database(request)
        return self._write(request.match_info["db"], request.match_info["id"], await request.json())

    async def _get(self, request: web.Request) -> web.Response:
        document = self._database(request).get(request.match_info["id"])
        return answer(document) if document else answer({"error": "not_found", "reason": "missing"}, 404)

    async def _delete(self, request: web.Request) -> web.Response:
        documents, key = self._database(request), request.match_info["id"]
        if key not in documents:
            return answer({"error": "not_found", "reason": "deleted"}, 404)
        if documents[key]["_rev"] != request.query["rev"]:
            return answer({"error": "conflict", "reason": "Document update conflict."}, 409)
        del documents[key]
        return answer({"ok": True, "id": key, "rev": request.query["rev"]})

    async def _drop(self, request: web.Request) -> web.Response:
        self._database(request)
        del self.databases[request.match_info["db"]]
        return answer({"ok": True})


def answer(document: Any, status: int = 200) -> web.Response:
    """Answer as CouchDB does."""
    return web.json_response(document, status=status)


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Fake, Proxy]]:
    """Serve a fake; gives it with a proxy before it, which records requests and loses answers."""
    fake = Fake()
    async with TestServer(fake.app) as server, Proxy(f"http://{server.host}:{server.port}") as proxy:
        yield fake, proxy


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=5984)
    web.run_app(Fake().app, host="127.0.0.1", port=parser.parse_args().port)
