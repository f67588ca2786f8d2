"""An OAuth token endpoint (RFC 6749, section 4.4) on the loopback, in a thread; it can be told to misbehave."""

from __future__ import annotations

import json
import ssl
import threading
from base64 import b64decode
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote_plus

if TYPE_CHECKING:
    from typing import Self

CLIENT, SECRET = "dragoman-client", "s3cret/of+the client"


class NewestToken(dict[str, str]):
    """The headers that a gateway asks for: the token that an endpoint has handed out last."""

    def __init__(self, endpoint: TokenEndpoint) -> None:
        super().__init__()
        self.endpoint = endpoint

    def items(self) -> Any:
        """Return them as they are now."""
        return [("Authorization", f"Bearer {(self.endpoint.tokens or ['none'])[-1]}")]


@dataclass
class TokenEndpoint:
    """Hands out numbered tokens to one client; a context manager.

    Attributes:
        tls: What TLS is spoken with; None for plain HTTP.
        seconds: What it says about a token's life; None for nothing.
        answer: Status and body that take the place of a token.
        forms: The forms that clients posted to it, in order.
        heads: The headers of these requests.
        tokens: The tokens that it has handed out and that are still valid.
        port: Where it listens on 127.0.0.1.
    """

    tls: ssl.SSLContext | None = None
    seconds: object = 3600
    answer: tuple[int, bytes, dict[str, str]] | None = None
    forms: list[dict[str, str]] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """The address that a person enters."""
        return f"{'https' if self.tls else 'http'}://localhost:{self.port}/realms/shop/token"

    @property
    def server(self) -> str:
        """Its host and port, which a person agrees to."""
        return f"localhost:{self.port}"

    def __enter__(self) -> Self:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.forms.append({key: value for key, [value] in parse_qs(body).items()})
                endpoint.heads.append(dict(self.headers))
                status, data, more = endpoint.answer or endpoint._answer(self.path, self.headers)
                self.send_response(status)
                for name, value in (
                    {"Content-Type": "application/json", "Content-Length": str(len(data))} | more
                ).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that refuse the certificate
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def _answer(self, path: str, headers: Any) -> tuple[int, bytes, dict[str, str]]:
        scheme, _, pair = headers.get("Authorization", "").partition(" ")
        client, _, secret = b64decode(pair).decode().partition(":")
        sound = scheme == "Basic" and (unquote_plus(client), unquote_plus(secret)) == (CLIENT, SECRET)
        if path != "/realms/shop/token":
            return 404, b"{}", {}
        if not sound:
            said = {"error": "invalid_client", "error_description": f"no client has the secret {unquote_plus(secret)}"}
            return 401, json.dumps(said).encode(), {}
        self.tokens.append(f"token-number-{len(self.forms):04}")
        told = {"access_token": self.tokens[-1], "token_type": "Bearer", "expires_in": self.seconds}
        return 200, json.dumps({key: value for key, value in told.items() if value is not None}).encode(), {}
