"""A key-value store as etcd's HTTP gateway shows it, with its traps.

Keys and values are base64, int64 are texts, zeros and empty lists are left out of answers, a put without `ignoreLease`
takes the lease away, a wrong password is HTTP 400, and a lost token 401. An unknown route or member is an error.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

USER, PASSWORD = "ada", "a-password-of-etcd"


@dataclass(frozen=True)
class Stored:
    """What the store holds of a key."""

    value: bytes
    version: int
    created: int
    modified: int
    lease: int = 0

    def shown(self, key: bytes) -> dict[str, str]:
        """Return the key as the gateway writes it: without zeros."""
        numbers = {
            "create_revision": self.created, "mod_revision": self.modified, "version": self.version,
            "lease": self.lease,
        }  # fmt: skip
        told = {"key": b64encode(key).decode(), "value": b64encode(self.value).decode()}
        return {name: text for name, text in told.items() if text} | {
            name: str(number) for name, number in numbers.items() if number
        }


class KeyValues:
    """The store; every revision of it can still be read.

    Attributes:
        compacted: The last revision that can no longer be read.
        leases: The seconds that each lease has left.
    """

    def __init__(self, *, auth: bool = False) -> None:
        self.app = web.Application()
        self.tokens: set[str] | None = set() if auth else None
        self._signed_in = count()
        self.revisions: list[dict[bytes, Stored]] = [{}, {}]
        self.compacted = 0
        self.leases: dict[int, int] = {}
        for path, answer in (
            ("/v3/kv/range", self._range),
            ("/v3/kv/deleterange", self._delete_range),
            ("/v3/kv/txn", self._transaction),
            ("/v3/lease/timetolive", self._time_to_live),
            ("/v3/maintenance/status", self._status),
            ("/v3/auth/authenticate", self._authenticate),
        ):
            self.app.router.add_post(path, self._answering(answer))

    def put(self, key: bytes, value: bytes, *, lease: int = 0) -> None:
        """Store a value as a revision of its own."""
        self.revisions.append(self._with(self.revisions[-1], key, value, lease))

    def expire(self, lease: int) -> None:
        """End a lease: its keys are gone in the next revision."""
        del self.leases[lease]
        self.revisions.append({key: kept for key, kept in self.revisions[-1].items() if kept.lease != lease})

    def _with(self, keys: dict[bytes, Stored], key: bytes, value: bytes, lease: int) -> dict[bytes, Stored]:
        now, old = len(self.revisions), keys.get(key)
        stored = Stored(value, old.version + 1 if old else 1, old.created if old else now, now, lease)
        return {**keys, key: stored}

    def _answering(self, answer: Callable[[dict[str, Any]], Any]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            token, open_to_all = request.headers.get("Authorization", ""), answer == self._authenticate
            if self.tokens is not None and not open_to_all and token not in self.tokens:
                return web.json_response({"code": 16, "message": f"invalid auth token {token}"}, status=401)
            try:
                told = answer(json.loads(await request.text()))
            except (KeyError, ValueError, TypeError) as error:
                return web.json_response({"code": 3, "message": str(error)}, status=400)
            return web.json_response({"header": {"revision": str(len(self.revisions) - 1)}, **told})

        return handle

    def _status(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"version": "3.6.1"}

    def _authenticate(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.tokens is None or asked != {"name": USER, "password": PASSWORD}:
            raise ValueError("authentication failed, invalid user ID or password")
        token = f"etcd-token-{next(self._signed_in)}.1234"
        self.tokens.add(token)
        return {"token": token}

    def _time_to_live(self, asked: dict[str, Any]) -> dict[str, Any]:
        [number] = _members(asked, "ID")
        return {"ID": number, "TTL": str(self.leases.get(int(number), -1))}

    def _range(self, asked: dict[str, Any]) -> dict[str, Any]:
        key, end, limit, revision = _members(asked, "key", range_end="", limit="0", revision="0")
        if int(revision) >= len(self.revisions):
            raise ValueError("mvcc: required revision is a future revision")
        if 0 < int(revision) <= self.compacted:
            raise ValueError("mvcc: required revision has been compacted")
        keys = self.revisions[int(revision) or -1]
        found = _between(keys, b64decode(key), b64decode(end))
        told: dict[str, Any] = {"count": str(len(found))} if found else {}
        if int(limit) and int(limit) < len(found):
            found, told["more"] = found[: int(limit)], True
        return told | ({"kvs": [keys[each].shown(each) for each in found]} if found else {})

    def _delete_range(self, asked: dict[str, Any]) -> dict[str, Any]:
        key, end = _members(asked, "key", range_end="")
        gone = _between(self.revisions[-1], b64decode(key), b64decode(end))
        if gone:
            self.revisions.append({key: kept for key, kept in self.revisions[-1].items() if key not in gone})
        return {"deleted": str(len(gone))} if gone else {}

    def _transaction(self, asked: dict[str, Any]) -> dict[str, Any]:
        compare, success = _members(asked, compare=[], success=[])
        if not all(self._holds(each) for each in compare):
            return {}
        keys = self.revisions[-1]
        for operation in success:
            [(kind, given)] = operation.items()
            if kind == "requestDeleteRange":
                key = b64decode(_members(given, "key")[0])
                keys = {each: kept for each, kept in keys.items() if each != key}
                continue
            if kind != "requestPut":
                raise ValueError(f"unknown operation {kind}")
            key, value, lease, ignored, same = _members(
                given, "key", value="", lease="0", ignoreLease=False, ignoreValue=False
            )
            old = keys.get(b64decode(key))
            if (ignored or same) and old is None:
                raise ValueError("etcdserver: key not found")
            if (ignored and int(lease)) or (same and value):
                raise ValueError("etcdserver: value or lease is provided")
            kept = old.lease if ignored and old else int(lease)
            if kept and kept not in self.leases:
                raise ValueError("etcdserver: requested lease not found")
            keys = self._with(keys, b64decode(key), old.value if same and old else b64decode(value), kept)
        if keys is not self.revisions[-1]:
            self.revisions.append(keys)
        return {"succeeded": True}

    def _holds(self, compare: dict[str, Any]) -> bool:
        key, target, created, modified = _members(compare, "key", "target", createRevision="0", modRevision="0")
        stored = self.revisions[-1].get(b64decode(key)) or Stored(b"", 0, 0, 0)
        return {"CREATE": stored.created == int(created), "MOD": stored.modified == int(modified)}[target]


def _members(asked: dict[str, Any], *needed: str, **usual: Any) -> list[Any]:
    if unknown := {*asked} - {*needed, *usual}:
        raise ValueError(f"unknown field {min(unknown)}")
    return [*(asked[name] for name in needed), *(asked.get(name, default) for name, default in usual.items())]


def _between(keys: dict[bytes, Stored], begin: bytes, end: bytes) -> list[bytes]:
    """Return keys in the order of their bytes; without an end the one key, and with the end NUL all from the key on."""
    if not end:
        return [begin] if begin in keys else []
    return sorted(key for key in keys if begin <= key and (end == b"\0" or key < end))
