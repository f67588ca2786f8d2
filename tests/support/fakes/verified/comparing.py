"""Sending the table to a server, and making answers of two servers comparable."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import aiohttp
from yarl import URL

if TYPE_CHECKING:
    from fakes.verified.table import Ask

_GONE = {
    "took", "index_uuid", "node", "cluster_uuid", "cluster_name", "build_hash", "build_date", "line", "col", "uuid",
    "pit_id", "_scroll_id", "skipped", "phase", "ingest_took", "creation_date",
}  # fmt: skip
_SIZES = {"store.size", "pri.store.size", "dataset.size"}
_TEXTS = (
    (re.compile(r"^(\[-?\d+:-?\d+\] )+"), ""),
    (re.compile(r"\[([\w.-]+)/[\w-]{22}\]"), r"[\1/uuid]"),
    (re.compile(r"context found for id \[(\d+|\[[\w-]+\]\[\d+\] searcherId \[null\])\]"), "context found for id [n]"),
    (re.compile(r"associated with it \[.*?\]"), "associated with it [names]"),
    (re.compile(r"(Was expecting one of:).*", re.DOTALL), r"\1"),
    (re.compile(r"allowed: \[[A-Z, ]+\]"), "allowed: [methods]"),
    (re.compile(r"; for more information, see .*\];"), "; for more information];"),
    (re.compile(r"Accept-?[\w=]*"), "Accept"),
)


def plain(value: Any) -> Any:
    """Return a JSON value without what differs between two runs of one server."""
    if isinstance(value, dict):
        kept = {}
        for key, member in value.items():
            if key in _GONE:
                continue
            if key in _SIZES and member is not None:
                kept[key] = "size"
            elif key in ("_score", "max_score") and member:
                kept[key] = "score"
            elif key == "id" and isinstance(member, str) and len(member) > 60:
                kept[key] = "context"
            else:
                kept[key] = plain(member)
        return kept
    if isinstance(value, list):
        return [plain(member) for member in value]
    if isinstance(value, str):
        for pattern, replacement in _TEXTS:
            value = pattern.sub(replacement, value)
    return value


def essence(ask: Ask, status: int, body: bytes) -> Any:
    """Return what must be alike in two answers to one request."""
    if ask.alike == "status" or ask.method == "HEAD":
        return [status]
    if ask.alike == "bytes":
        return [status, body.decode()]
    try:
        value = json.loads(body)
    except ValueError:
        return [status, "no JSON"] if ask.alike == "broken" else [status, body.decode()]
    if ask.path == "/":
        version = value["version"]
        return [status, value["tagline"], version["number"], version["build_flavor"], sorted(version), sorted(value)]
    if "error" in value and isinstance(value["error"], dict):
        return [status, _error(value["error"], whole=ask.alike == "all")]
    if ask.alike in ("hits", "pit", "error", "broken", "blocked"):
        return [status, _hits(value, ask)]
    if ask.alike == "items":
        return [status, [next(iter(item.values()))["status"] for item in value["items"]]]
    if ask.alike == "caps":
        return [status, _caps(value)]
    return [status, plain(value)]


def _error(error: dict[str, Any], *, whole: bool) -> Any:
    found = plain(error)
    for shard in found.get("failed_shards", []):
        shard.pop("shard")
    if whole:
        return found
    deepest = found
    while isinstance(deepest.get("caused_by"), dict):
        deepest = deepest["caused_by"]
    roots = [[cause["type"], cause["reason"]] for cause in found.get("root_cause", [])]
    return {"type": found["type"], "roots": sorted(roots, key=str), "deepest": deepest["type"]}


def _hits(value: dict[str, Any], ask: Ask) -> Any:
    if "hits" not in value:
        return sorted(value)
    rows = []
    for hit in value["hits"]["hits"]:
        sort = hit.get("sort")
        if sort is not None:
            # Positions inside Lucene are the server's own affair; that there are as many values is not.
            private = ask.alike == "pit" or '"_doc"' in json.dumps(ask.body)
            sort = [*sort[:-1], "position"] if private else sort
        rows.append([hit["_index"], hit["_id"], sort])
    shards = {key: value["_shards"][key] for key in ("total", "failed")}
    return {"rows": rows, "total": value["hits"].get("total"), "shards": shards}


_METADATA = ("_id", "_index", "_seq_no", "_source", "_ignored", "_routing", "_version")


def _caps(value: dict[str, Any]) -> Any:
    fields = {name: kinds for name, kinds in value["fields"].items() if name[0] != "_" or name in _METADATA}
    return {"indices": value["indices"], "fields": dict(sorted(plain(fields).items()))}


async def send(base: str, table: list[Ask], version: str) -> dict[str, Any]:
    """Send the fitting requests of the table, and return what each answer comes down to."""
    answers: dict[str, Any] = {}
    kept: dict[str, str] = {}
    parts = tuple(int(part) for part in version.split("."))
    async with aiohttp.ClientSession(headers={"Accept-Encoding": "identity"}) as session:
        for ask in table:
            if not ask.fits(parts):
                continue
            body = ask.raw(kept)
            media = {"Content-Type": ask.media} if body is not None else {}
            url = URL(base + ask.path, encoded=True)
            async with session.request(ask.method, url, data=body, headers=media) as response:
                raw = await response.read()
                answers[ask.name] = essence(ask, response.status, raw)
                for name, member in ask.keep:
                    kept[name] = json.loads(raw).get(member, "")
    return answers


def differences(left: dict[str, Any], right: dict[str, Any]) -> list[str]:
    """Return a readable line per request whose answers differ."""
    found = []
    for name in {**left, **right}:
        mine, theirs = (json.loads(json.dumps(side.get(name))) for side in (left, right))
        if mine != theirs:
            texts = (json.dumps(side, ensure_ascii=False, sort_keys=True) for side in (mine, theirs))
            found.append("{}\n    fake {}\n    real {}".format(name, *texts))
    return found
