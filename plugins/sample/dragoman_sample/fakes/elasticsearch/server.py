"""The server: HTTP around the cluster, its request log, its faults, and its bad days."""

from __future__ import annotations

import gzip
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from aiohttp import web

from dragoman_sample.fakes.elasticsearch import jsontext, routes
from dragoman_sample.fakes.elasticsearch.calls import Call, Reply
from dragoman_sample.fakes.elasticsearch.errors import PlainError, ServerError
from dragoman_sample.fakes.elasticsearch.security import CLUSTER_ACTIONS, ApiKey, Principal, Security, User
from dragoman_sample.fakes.elasticsearch.store import Cluster
from dragoman_sample.fakes.elasticsearch.versions import release
from dragoman_sample.fakes.serving import FakeServer, Fault

if TYPE_CHECKING:
    import ssl

    from dragoman_sample.fakes.elasticsearch.routes import Route

_BODY_LIMIT = 100 * 2**20
_LINE_LIMIT = 4_096


@dataclass
class FakeElasticsearch(FakeServer):
    """An Elasticsearch server on loopback, as an async context manager.

    Attributes:
        cluster: the data, for tests that need to reach behind HTTP.
        security: the users and keys, when security is on.
        opensearch: the version of OpenSearch that it is instead, with the paths of that.
    """

    version: str = "8.19.21"
    users: Mapping[str, User | str] = field(default_factory=dict)
    api_keys: Sequence[ApiKey] = ()
    require_client_certificate: bool = False
    opensearch: str = ""

    def __post_init__(self) -> None:
        if self.opensearch:  # a release that knows `_shard_doc`, which came to OpenSearch with 3.3
            self.version = "7.17.29" if tuple(map(int, self.opensearch.split("."))) >= (3, 3) else "7.10.2"
        self.cluster = Cluster(release(self.version), opensearch=bool(self.opensearch))
        secured = bool(self.users or self.api_keys)
        self.security = Security(self.users, list(self.api_keys)) if secured else None

    def context(self) -> ssl.SSLContext | None:
        """Return what TLS is spoken with."""
        return self.tls.server_context(require_client=self.require_client_certificate) if self.tls else None

    async def read(self, request: web.BaseRequest) -> bytes | web.Response:
        """Read a body; a too long one is never read, and its answer has neither body nor product header."""
        if (request.content_length or 0) > _BODY_LIMIT:
            response = web.Response(status=413)
            response.force_close()
            return response
        return await super().read(request)  # what is compressed comes out of it whole

    async def answer(self, request: web.BaseRequest, path: str, query: str, raw: bytes) -> web.Response:
        """Answer as the server would."""
        params = dict(parse_qsl(query, keep_blank_values=True))
        forks = self.opensearch and path.endswith("/_search/point_in_time")
        if forks:
            path, raw = path.replace("/_search/point_in_time", "/_pit"), raw.replace(b'"pit_id"', b'"id"')
            params.pop("allow_partial_pit_creation", None)
        elif self.opensearch and path.endswith("/_pit"):
            path = "/_no_such_path"
        try:
            reply = await self._reply(request, path, params, raw)
            if forks and isinstance(reply.body, dict):
                pit = reply.body.get("id")
                reply.body = {"pit_id": pit} if pit else {"pits": [{"successful": True}]}
        except ServerError as fault:
            if fault.fault:
                self.faults.append(Fault(request.method, request.raw_path, str(fault.reason)))
            reply = Reply(fault.body(), fault.status, headers=fault.headers, is_error=True)
        return self._write(request, reply, params, path)

    async def _reply(self, request: web.BaseRequest, raw_path: str, params: dict[str, str], raw: bytes) -> Reply:
        if len(request.raw_path) + len(request.method) + len(" HTTP/1.1 ") > _LINE_LIMIT:
            reason = f"An HTTP line is larger than {_LINE_LIMIT} bytes."
            raise ServerError("too_long_http_line_exception", reason)
        self._check_content_type(request, raw)
        if request.method == "OPTIONS":  # browsers ask before they send credentials
            allowed = routes.methods(raw_path, self.cluster)
            return Reply(text="", headers=[("Allow", ",".join(allowed))] if allowed else [])
        modern = self.cluster.release.parts >= (8,)
        principal = None
        if self.security is not None and modern:
            principal = self._who(request)
        route, names = routes.find(request.method, raw_path, self.cluster)
        routes.check_params(route, raw_path, params, self.cluster.release)
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
            answered.body["version"] |= {"distribution": "opensearch", "number": self.opensearch}
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
        headers = request.headers.getall("Content-Type", [])
        if len(headers) > 1:
            raise ServerError("media_type_header_exception", "Invalid media-type value on headers [Content-Type]")
        media = (headers[0] if headers else "").split(";")[0].strip().lower()
        if media in ("application/json", "application/x-ndjson", "application/ndjson"):
            return
        if media.startswith("application/vnd.elasticsearch+"):
            if self.cluster.release.types or "compatible-with" in request.headers.get("Accept", ""):
                return
            both = f"Accept={request.headers.get('Accept')}, Content-Type={headers[0]}"
            reason = "A compatible version is required on both Content-Type and Accept headers if either one has "
            reason += f"requested a compatible version. {both}"
            raise ServerError("media_type_header_exception", reason)
        text = headers[0] if headers else ""
        raise PlainError(f"Content-Type header [{text}] is not supported", status=406)

    def _write(self, request: web.BaseRequest, reply: Reply, params: dict[str, str], raw_path: str) -> web.Response:
        current = self.cluster.release
        if reply.text is not None:
            body, media = reply.text.encode(), "text/plain; charset=UTF-8"
        else:
            body, media = self._json(reply, params, raw_path), current.content_type
        response = web.Response(body=body, status=reply.status)
        response.headers["content-type"] = media
        if current.names_product and not self.opensearch and reply.status not in (401, 403):
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
