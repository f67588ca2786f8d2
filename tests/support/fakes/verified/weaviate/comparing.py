"""Sending a table to a server, and making the answers of two servers comparable."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import aiohttp
from yarl import URL

from fakes.verified.weaviate.asks import CLASSES, Ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TIMES = {"creationTimeUnix", "lastUpdateTimeUnix", "_creationTimeUnix", "_lastUpdateTimeUnix"}
_TEXTS = (
    (re.compile(r"(local shard object search \w+?)_\w+:"), r"\1_shard:"),
    (re.compile(r"(object vector search at index \w+: shard \w+?)_\w+:"), r"\1_shard:"),
    (re.compile(r'shard="[^"]*"'), 'shard="shard"'),
    (re.compile(r"^shard \w+:"), "shard shard:"),
    (re.compile(r"\[[A-Z,]+\] are$"), "[methods] are"),
    (re.compile(r"only \[.*\] are allowed"), "only [media types] are allowed"),
    (re.compile(r"(auto-schema feature on ).*"), r"\1some day"),
    # Which names the server's library finds alike is its own affair.
    (re.compile(r" Did you mean.*"), ""),
    # Ids of the tables begin with zeros; another one was made by the server.
    (re.compile(r"\b(?!000000)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "some uuid"),
    (re.compile(r"(Expected type \"\w+\", found .*?)\.\n.*", re.DOTALL), r"\1"),
)
_TEST_ID = re.compile(r"00000000-0000-0000-\d{4}-abc0*(\d+)")
_UNORDERED = {"classes", "tenants", "aliases"}


def plain(value: Any, *, unordered: bool = False) -> Any:
    """Return a JSON value without what differs between two runs of one server."""
    if isinstance(value, dict):
        if set(value) == {"_additional"} and set(value["_additional"]) == {"id"}:
            return plain(value["_additional"]["id"])
        kept = {}
        for key, member in value.items():
            if key in _TIMES:
                kept[key] = f"a {type(member).__name__}"
            elif key == "hostname":
                kept[key] = "host"
            else:
                kept[key] = plain(member, unordered=unordered or key in _UNORDERED)
        return kept
    if isinstance(value, list):
        members = [plain(member, unordered=unordered) for member in value]
        return sorted(members, key=json.dumps) if unordered else members
    if isinstance(value, str):
        for pattern, replacement in _TEXTS:
            value = pattern.sub(replacement, value)
        value = _TEST_ID.sub(r"#\1", value)
    return value


def essence(ask: Ask, status: int, media: str, body: bytes) -> Any:
    """Return what must be alike in two answers to one request."""
    if ask.alike == "status" or not body.strip():
        return [status] if ask.alike == "status" else [status, None]
    if media != "application/json":
        return [status, media, plain(body.decode())]
    value = plain(json.loads(body), unordered=ask.alike == "set")
    if ask.alike == "head" and "errors" in value:
        return [status, [each["message"].splitlines()[0] for each in value["errors"]]]
    return [status, value]


def _ids(body: bytes) -> list[str] | None:
    value = json.loads(body)
    rows = value.get("objects")
    if rows is None:
        if not (value.get("data") or {}).get("Get"):
            return None
        ((rows),) = value["data"]["Get"].values()
    return None if rows is None else [row.get("id") or row["_additional"]["id"] for row in rows]


class Client:
    """Talks to one server as several people."""

    def __init__(self, base: str, people: Mapping[str, Mapping[str, str]], ssl: Any = True) -> None:
        self._base, self._people, self._ssl = base, people, ssl

    async def ask_all(self, table: Iterable[Ask]) -> dict[str, Any]:
        """Send the requests of a table, and return what each answer comes down to."""
        answers: dict[str, Any] = {}
        connector = aiohttp.TCPConnector(ssl=self._ssl)
        async with aiohttp.ClientSession(connector=connector, headers={"Accept-Encoding": "identity"}) as session:
            for ask in table:
                if ask.pages:
                    answers[ask.name] = await self._walk(session, ask)
                else:
                    answers[ask.name] = essence(ask, *await self._send(session, ask, ask.path, ask.raw()))
        return answers

    async def _walk(self, session: aiohttp.ClientSession, ask: Ask) -> Any:
        ids: list[str] = []
        for offset in range(0, 1000, ask.pages):
            path, raw = ask.path.replace("$offset", str(offset)), ask.raw()
            raw = raw.replace(b"$offset", str(offset).encode()) if raw else None
            status, media, body = await self._send(session, ask, path, raw)
            page = _ids(body)
            if page is None:
                return essence(ask, status, media, body)
            ids += page
            if len(page) < ask.pages:
                break
        if ask.alike != "all" and len(set(ids)) < len(ids):
            return {"rows": len(ids), "doubled": True, "by chance": ask.alike == "order"}
        return [each[19:23] for each in ids]

    async def _send(
        self, session: aiohttp.ClientSession, ask: Ask, path: str, raw: bytes | None
    ) -> tuple[int, str, bytes]:
        headers = {"Content-Type": ask.media} if raw is not None else {}
        url = URL(self._base + path, encoded=True)
        who = self._people[ask.who]
        async with session.request(ask.method, url, data=raw, headers={**headers, **who}) as response:
            return response.status, response.content_type, await response.read()

    async def clean(self) -> None:
        """Drop the classes of the tables."""
        drop = [Ask(name, "DELETE", f"/v1/schema/{name}") for name in CLASSES]
        await self.ask_all(drop)


def _is_chance(mine: Any, theirs: Any, *, live: bool) -> bool:
    """Tell whether rows are doubled on one side only, where they need not be on either."""
    sides = [side for side in (mine, theirs) if isinstance(side, dict) and "doubled" in side]
    doubled = [side for side in sides if side["by chance"] or live]
    whole = [side for side in (mine, theirs) if isinstance(side, list)]
    return bool(doubled and whole) and doubled[0]["rows"] == len(whole[0])


def differences(fake: Mapping[str, Any], real: Mapping[str, Any], *, live: bool = False) -> list[str]:
    """Return a readable line per request whose answers differ.

    Args:
        fake: Answers by request.
        real: The same of a real server.
        live: It answered just now: the rows lie among its shards as it chose this time, so that one may hold too few
            to double any.
    """
    found = []
    for name in {**fake, **real}:
        mine, theirs = (json.loads(json.dumps(side.get(name))) for side in (fake, real))
        if mine != theirs and not _is_chance(mine, theirs, live=live):
            texts = (json.dumps(side, ensure_ascii=False, sort_keys=True) for side in (mine, theirs))
            found.append("{}\n    fake {}\n    real {}".format(name, *texts))
    return found
