"""The few requests that starting a server takes, with the standard library."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Rest:
    """Talks JSON to one server."""

    def __init__(self, url: str, *, authority: Path | None = None, authorization: str = "") -> None:
        """Trust the authority, whatever name the certificate has: some tests want a wrong one."""
        self._url = url
        self._headers = {"Content-Type": "application/json"}
        if authorization:
            self._headers["Authorization"] = authorization
        # A proxy of the environment has no business between this machine and itself.
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if authority:
            context = ssl.create_default_context(cafile=str(authority))
            context.check_hostname = False
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def send(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """Send a request; give the status and the answer, `{}` where it is empty.

        Raises:
            OSError: Nobody listens, or the connection broke.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, headers=self._headers, method=method)
        try:
            with self._opener.open(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, {"error": refusal.read().decode(errors="replace")}
        except HTTPException as broken:
            raise ConnectionError(str(broken)) from broken
