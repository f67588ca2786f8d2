"""A proxy in front of a server, fake or real, that can lose answers after the server did the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from yarl import URL

from dragoman_sample.fakes.serving import FakeServer

_OWN = ("Content-Length", "Transfer-Encoding", "Connection", "Date", "Server")


@dataclass
class Proxy(FakeServer):
    """A server that passes every request on, unless it is told to misbehave.

    Attributes:
        upstream: the address of the server behind it.
        prefix: the path below which that server is; all other paths are not found.
        required: headers without which it refuses a request.
        refusal: the status with which it does; with 401 it keeps the Authorization header for itself.
    """

    upstream: str = ""
    prefix: str = ""
    required: Mapping[str, str] = field(default_factory=dict)
    refusal: int = 403

    async def answer(self, request: web.BaseRequest, path: str, query: str, raw: bytes) -> web.Response:
        """Pass a request on, and its answer back, byte for byte."""
        if not path.startswith(f"{self.prefix}/"):
            return web.Response(body=b"<html>404 Not Found</html>", status=404)
        if any(request.headers.get(name) != value for name, value in self.required.items()):
            return web.Response(body=f"<html>{self.refusal} No</html>".encode(), status=self.refusal)
        path = path.removeprefix(self.prefix)
        url = URL(self.upstream + path + (f"?{query}" if query else ""), encoded=True)
        kept = ("Host", "Content-Length", *(("Authorization",) if self.refusal == 401 else ()))
        headers = {name: value for name, value in request.headers.items() if name not in kept}
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(request.method, url, data=raw or None, headers=headers, allow_redirects=False) as reply,
        ):
            body = await reply.read()
        answer = web.Response(body=body, status=reply.status)
        for name, value in reply.headers.items():
            if name not in _OWN:
                answer.headers[name] = value
        return answer
