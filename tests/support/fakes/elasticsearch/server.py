"""The server: HTTP around the cluster, its request log, its faults, and its bad days."""

from __future__ import annotations

import gzip
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl

import anyio
from aiohttp import web

from fakes.certificates import Certificates
from fakes.elasticsearch import jsontext, misbehaviour, routes
from fakes.elasticsearch.calls import Call, Reply
from fakes.elasticsearch.errors import PlainError, ServerError
from fakes.elasticsearch.misbehaviour import Kind, Misbehaviour
from fakes.elasticsearch.security import CLUSTER_ACTIONS, ApiKey, Principal, Security, User
from fakes.elasticsearch.store import Cluster
from fakes.elasticsearch.versions import release

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

    from fakes.elasticsearch.routes import Route

_BODY_LIMIT = 100 * 2**20
_LINE_LIMIT = 4_096


@dataclass(frozen=True)
class Logged:
    """One request as it came in."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body."""
        return jsontext.decode(self.body)


@dataclass(frozen=True)
class Fault:
    """A request that no real server would have understood, or that the fake does not reproduce."""

    method: str
    target: str
    reason: str


@dataclass
class FakeElasticsearch:
    """An Elasticsearch server on loopback, as an async context manager.

    Attributes:
        requests: every request, in order.
        faults: the requests that were refused because route, parameter or body key is unknown; a test that did not
            mean to send such a request fails when there are any.
        cluster: the data, for tests that need to reach behind HTTP.
        security: the users and keys, when security is on.
    """

    version: str = "8.19.21"
    port: int = 0
    host: str = "127.0.0.1"
    users: Mapping[str, User | str] = field(default_factory=dict)
    api_keys: Sequence[ApiKey] = ()
    tls: Certificates | None = None
    require_client_certificate: bool = False
    opensearch: bool = False
    requests: list[Logged] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    troubles: list[Misbehaviour] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster = Cluster(release(self.version))
        secured = bool(self.users or self.api_keys)
        self.security = Security(self.users, list(self.api_keys)) if secured else None
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """Return the base address."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def misbehave(
        self,
        kind: Kind,
        *,
        on: str = "",
        after: int = 0,
        times: int | None = None,
        status: int = 502,
        seconds: float = 1.0,
    ) -> None:
        """Break the server from now on; see `Misbehaviour`."""
        self.troubles.append(Misbehaviour(kind, on, after, times, status, seconds))

    def behave(self) -> None:
        """Be a good server again."""
        self.troubles.clear()

    async def __aenter__(self) -> Self:
        context: ssl.SSLContext | None = None
        if self.tls is not None:
            context = self.tls.server_context(require_client=self.require_client_certificate)
        # The limits of the real server are higher than aiohttp's defaults.
        server = web.Server(self._handle, access_log=None, max_line_size=16_384, max_field_size=16_384)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port, ssl_context=context)
        await site.start()
        assert site._server is not None
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw_path, _, query = request.raw_path.partition("?")
        length = request.content_length or 0
        if length > _BODY_LIMIT:
            self.requests.append(Logged(request.method, raw_path, query, request.headers, b""))
            # No body, no product header, and the upload is never read.
            response = web.Response(status=413)
            response.force_close()
            return response
        raw = await request.content.read()
        if request.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        self.requests.append(Logged(request.method, raw_path, query, request.headers, raw))
        trouble = next((found for found in self.troubles if found.applies(raw_path)), None)
        if trouble is not None and trouble.kind not in ("slow", "cut"):
            return await self._break(trouble, request)
        if trouble is not None and trouble.kind == "slow":
            await anyio.sleep(trouble.seconds)
        response = await self._answer(request, raw_path, query, raw)
        if trouble is not None and trouble.kind == "cut":
            return await self._cut(request, response)
        return response

    async def _break(self, trouble: Misbehaviour, request: web.BaseRequest) -> web.StreamResponse:
        if trouble.kind == "hang":
            await anyio.sleep_forever()
        if trouble.kind == "html":
            return web.Response(body=misbehaviour.HTML, status=trouble.status, content_type="text/html")
        if trouble.kind == "status":
            return web.Response(status=trouble.status)
        if trouble.kind == "garbage":
            return web.Response(body=b'{"hits":{"hits":[{"_id":', content_type="application/json")
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    @staticmethod
    async def _cut(request: web.BaseRequest, whole: web.Response) -> web.StreamResponse:
        body = whole.body
        assert isinstance(body, bytes)
        response = web.StreamResponse(status=whole.status, headers=whole.headers)
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()
        return response

    async def _answer(self, request: web.BaseRequest, raw_path: str, query: str, raw: bytes) -> web.Response:
        params = dict(parse_qsl(query, keep_blank_values=True))
        try:
            reply = await self._reply(request, raw_path, params, raw)
        except ServerError as fault:
            if fault.fault:
                self.faults.append(Fault(request.method, request.raw_path, str(fault.reason)))
            reply = Reply(fault.body(), fault.status, headers=fault.headers, is_error=True)
        return self._write(request, reply, params, raw_path)

    async def _reply(self, request: web.BaseRequest, raw_path: str, params: dict[str, str], raw: bytes) -> Reply:
        if len(request.raw_path) + len(request.method) + len(" HTTP/1.1 ") > _LINE_LIMIT:
            reason = f"An HTTP line is larger than {_LINE_LIMIT} bytes."
            raise ServerError("too_long_http_line_exception", reason)
        self._check_content_type(request, raw)
        modern = self.cluster.release.parts >= (8,)
        principal = None
        if self.security is not None and modern:
            principal = self._who(request)
        route, names = routes.find(request.method, raw_path, self.cluster)
        routes.check_params(route, raw_path, params)
        bodiless = request.method in ("DELETE", "GET") and self.cluster.release.parts >= (7, 11)
        if raw.strip() and bodiless and route.path.startswith("/{index}/_doc"):
            raise ServerError(
                "illegal_argument_exception", f"request [{request.method} {raw_path}] does not support having a body"
            )
        if self.security is not None:
            # 7.x looks for the handler first, so an unknown path is told to strangers too.
            principal = principal or self._who(request)
            self._authorise(principal, route, names)
        elif route.path == "/_security/_authenticate":
            raise routes.without_security(request.method, raw_path, self.cluster.release)
        accept = request.headers.get("Accept", "")
        call = Call(self.cluster, request.method, names, params, raw, accept, principal, route.action)
        reply = route.handler(call)
        answered = await reply if inspect.isawaitable(reply) else reply
        if self.opensearch and route.path == "/":
            answered.body["version"] |= {"distribution": "opensearch", "number": "2.19.1"}
            answered.body["version"].pop("build_flavor")
            answered.body["tagline"] = "The OpenSearch Project: https://opensearch.org/"
        return answered

    def _who(self, request: web.BaseRequest) -> Principal:
        assert self.security is not None
        return self.security.authenticate(request.headers.get("Authorization"), request.raw_path, self.cluster.release)

    def _authorise(self, principal: Principal, route: Route, names: dict[str, str]) -> None:
        if not route.action:
            return
        if route.action in CLUSTER_ACTIONS:
            principal.check_cluster(route.action, self.cluster.release)
            return
        index = names.get("index", "")
        if route.action == "indices:data/write/bulk" or "*" in index or index in ("", "_all"):
            index = ""
        for name in index.split(","):
            principal.check_index(route.action, name, self.cluster.release)

    def _check_content_type(self, request: web.BaseRequest, raw: bytes) -> None:
        if not raw:
            return
        given = request.headers.getall("Content-Type", [])
        if len(given) > 1:
            raise ServerError("media_type_header_exception", "Invalid media-type value on headers [Content-Type]")
        media = (given[0] if given else "").split(";")[0].strip().lower()
        if media in ("application/json", "application/x-ndjson", "application/ndjson"):
            return
        if media.startswith("application/vnd.elasticsearch+"):
            if self.cluster.release.types or "compatible-with" in request.headers.get("Accept", ""):
                return
            both = f"Accept={request.headers.get('Accept')}, Content-Type={given[0]}"
            reason = "A compatible version is required on both Content-Type and Accept headers if either one has "
            reason += f"requested a compatible version. {both}"
            raise ServerError("media_type_header_exception", reason)
        text = given[0] if given else ""
        raise PlainError(f"Content-Type header [{text}] is not supported", status=406)

    def _write(self, request: web.BaseRequest, reply: Reply, params: dict[str, str], raw_path: str) -> web.Response:
        known = self.cluster.release
        if reply.text is not None:
            body, media = reply.text.encode(), "text/plain; charset=UTF-8"
        else:
            body, media = self._json(reply, params, raw_path), known.content_type
        response = web.Response(body=body, status=reply.status)
        response.headers["content-type"] = media
        if known.names_product and not self.opensearch and reply.status not in (401, 403):
            response.headers["X-elastic-product"] = "Elasticsearch"
        for name, value in reply.headers:
            response.headers.add(name, value)
        # HTTPS switches compression off by default.
        if self.tls is None and "gzip" in request.headers.get("Accept-Encoding", "") and request.method != "HEAD":
            response.body = gzip.compress(body, 3)
            response.headers["content-encoding"] = "gzip"
        return response

    @staticmethod
    def _json(reply: Reply, params: dict[str, str], raw_path: str) -> bytes:
        value = reply.body
        if "filter_path" in params and not reply.is_error:
            patterns = params["filter_path"].split(",")
            includes = [pattern for pattern in patterns if not pattern.startswith("-")]
            excludes = [pattern[1:] for pattern in patterns if pattern.startswith("-")]
            value = jsontext.pick(jsontext.parsed(value), includes, excludes)
        if params.get("pretty", "false") in ("", "true") or (raw_path == "/" and params.get("pretty") != "false"):
            return (jsontext.pretty(jsontext.parsed(value)) + "\n").encode("utf-8", "surrogatepass")
        return jsontext.encode(value).encode("utf-8", "surrogatepass")
