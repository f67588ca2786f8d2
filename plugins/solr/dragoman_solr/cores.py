"""Cores: the connection to a server, and what it says of the schema of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from dragoman_api import Http, HttpRequest, Profile, QueryError, Server, hookimpl
from dragoman_api.errors import ObjectNotFoundError, ServerNotSupportedError
from dragoman_api.json_text import decode, encode
from dragoman_api.kit.derived_hooks import PingByPath
from dragoman_api.kit.exchanges import send_all

from .fields import Field, IndexedField, Schema, View, view_of

if TYPE_CHECKING:
    from collections.abc import Sequence

BASE = "/solr"
_NAME = re.compile(r"[A-Za-z0-9._-]+")  # what the server takes for a core (S4)
_SCHEMA = ("schema", "schema/fields?showDefaults=true", "schema/dynamicfields?showDefaults=true",
           "admin/luke?numTerms=0")  # fmt: skip


class _Rows(msgspec.Struct, rename="camel"):
    num_found: int
    docs: list[dict[str, Any]]
    num_found_exact: bool = True


class SearchAnswer(msgspec.Struct, rename="camel"):
    """The answer to a search."""

    response: _Rows
    next_cursor_mark: str = ""
    response_header: dict[str, Any] = {}
    facets: dict[str, Any] = {}


class _Documents(msgspec.Struct):
    """The answer to a request for documents: one, None if there is none, or several."""

    doc: dict[str, Any] | None = None
    response: _Rows | None = None


class Cores(PingByPath):
    """One connection: its hooks of opening, and what the other hooks send."""

    ping_path = f"{BASE}/admin/info/system?wt=json"

    @hookimpl
    async def connect(self, profile: Profile, http: Http) -> Server:
        """Check that a Solr of 9 or newer answers, and that the credentials hold (S1-S2)."""
        self.http, self.views = http, dict[str, View]()
        reply = await self.send(HttpRequest("GET", self.ping_path), read=True)
        if reply.status in (401, 403):
            raise self.http.error(reply)
        try:
            system = decode(reply.body, dict[str, Any]) if reply.status == 200 else {}
            version, mode = str(system["lucene"]["solr-spec-version"]), system.get("mode")
            major = int(version.partition(".")[0])
        except (ValueError, LookupError, TypeError):
            reason = f"GET {self.ping_path} was answered with HTTP {reply.status} by something other than Solr"
            raise ServerNotSupportedError(reason, hint="check Host, Port and Path Prefix of the connection") from None
        if major < 9 or mode == "solrcloud":
            reason = f"Solr {version} answered{' with ZooKeeper' if mode == 'solrcloud' else ''}"
            raise ServerNotSupportedError(f"{reason}; this driver needs Solr 9 or newer without ZooKeeper")
        return Server("Solr", version)

    async def view(self, name: str) -> View:
        """Return a core as it was read last."""
        if name not in self.views:
            self.views[name], _ = await self.read_view(name)
        return self.views[name]

    async def read_view(self, name: str) -> tuple[View, str]:
        """Return a core as it is now, and its schema as JSON text."""
        base = self.path(name)
        schema, declared, patterns, luke = await send_all(
            _SCHEMA, lambda path: self.get(f"{base}/{path}{'&' if '?' in path else '?'}wt=json", dict[str, msgspec.Raw])
        )
        try:
            view = view_of(
                name, decode(bytes(schema["schema"]), Schema), decode(bytes(declared["fields"]), list[Field]),
                decode(bytes(patterns["dynamicFields"]), list[Field]),
                decode(bytes(luke.get("fields", b"{}")), dict[str, IndexedField]),
            )  # fmt: skip
        except (ValueError, LookupError) as error:
            raise QueryError(f"the schema of '{name}' cannot be read: {error}") from error
        return view, bytes(schema["schema"]).decode()

    def path(self, name: str) -> str:
        """Return the path of a core; ObjectNotFoundError if its name can be none."""
        if name in (".", "..") or not _NAME.fullmatch(name):
            raise ObjectNotFoundError(f"there is no core {name!r}")
        return f"{BASE}/{quote(name, safe='')}"

    async def search(self, name: str, body: str) -> SearchAnswer:
        """Send a search; what the server could not finish in time is no result (S8)."""
        answer: SearchAnswer = await self.get(f"{self.path(name)}/select", SearchAnswer, body)
        if answer.response_header.get("partialResults"):
            raise QueryError("the server gave a part of the result only: it ran out of time")
        return answer

    async def stored(self, view: View, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return documents as they are now, seen by searches or not, by their keys (S25)."""
        if not keys:
            return {}
        body = encode({"params": {"id": [*keys], "fl": "*", "wt": "json"}})
        answer: _Documents = await self.get(f"{self.path(view.name)}/get", _Documents, body)
        documents = answer.response.docs if answer.response is not None else [answer.doc] if answer.doc else []
        return {str(document[view.key]): document for document in documents}

    async def get(self, path: str, kind: Any, body: str | None = None) -> Any:
        """Get a path, or post what only reads, and return the answer."""
        reply = await self.send(HttpRequest("GET" if body is None else "POST", path, body), read=True)
        if reply.status == 404:
            name = path.split("/")[2]
            self.views.pop(name, None)
            raise ObjectNotFoundError(f"there is no core {name!r}{self.http.quote(reply)}")
        return self.read(reply, kind)
