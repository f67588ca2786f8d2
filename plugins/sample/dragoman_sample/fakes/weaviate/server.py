"""The fake server: authentication, routing, and the log that tests look at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from aiohttp import web

from dragoman_sample.fakes.serving import FakeServer, Fault
from dragoman_sample.fakes.weaviate import routes
from dragoman_sample.fakes.weaviate.calls import Call, Reply
from dragoman_sample.fakes.weaviate.errors import ServerError, coded
from dragoman_sample.fakes.weaviate.security import Access, Security, User
from dragoman_sample.fakes.weaviate.settings import Settings
from dragoman_sample.fakes.weaviate.store import Database


@dataclass
class FakeWeaviate(FakeServer):
    """A Weaviate server on loopback, as an async context manager.

    Attributes:
        keys: the keys and whose they are; without any, there is no authentication.
        access: `keys` for an administrators' list, `roles` for roles; a server without keys is open.
        gone: keys that were good once, with what the server says of them.
        database: the data, for tests that need to reach behind HTTP.
    """

    version: str = "1.38.11"
    graphql: bool = True
    window: int = 10_000
    page: int = 10
    auto_schema: bool = True
    keys: Mapping[str, User] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)
    access: Access = "keys"
    database: Database = field(default_factory=Database)

    def revoke(self, key: str, why: str = "invalid token") -> None:
        """Make a key bad from now on."""
        self.keys = {token: user for token, user in self.keys.items() if token != key}
        self.gone = {**self.gone, key: why}

    async def answer(self, request: web.BaseRequest, path: str, query: str, raw: bytes) -> web.Response:
        """Answer as the server would."""
        try:
            reply = self._reply(request, path, dict(parse_qsl(query, keep_blank_values=True)), raw)
        except ServerError as error:
            if error.fault:
                self.faults.append(Fault(request.method, request.raw_path, error.fault))
            if error.text:
                return web.Response(text=error.text, status=error.status, content_type=error.media, charset="utf-8")
            reply = Reply(error.body, error.status, empty=error.body is None)
        if reply.empty or request.method == "HEAD":
            return web.Response(status=reply.status)
        text = json.dumps(reply.body, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        body = text.encode("utf-8", "replace") + b"\n"
        return web.Response(body=body, status=reply.status, content_type="application/json")

    def _reply(self, request: web.BaseRequest, path: str, params: dict[str, str], raw: bytes) -> Reply:
        route, handler, names = routes.find(request.method, path)
        access: Access = self.access if self.keys or self.gone else "open"
        security = Security(access, dict(self.keys), dict(self.gone))
        principal = (
            Security().authenticate(None, None)
            if route.open and path != "/v1/"
            else security.authenticate(request.headers.get("Authorization"), params.get("access_token"))
        )
        routes.check_params(route, params)
        if raw:
            _check_media(request.headers.get("Content-Type", ""))
        settings = Settings(
            self.version, f"{self.host}:{self.port}", self.graphql, self.window, self.page, self.auto_schema
        )
        return handler(Call(self.database, settings, principal, request.method, names, params, raw))


def _check_media(content_type: str) -> None:
    media = content_type.split(";")[0].strip().lower()
    if media not in ("application/json", "application/yaml"):
        only = "only [application/json application/yaml] are allowed"
        raise coded(415, f'unsupported media type "{content_type}", {only}')
