"""OAuth 2.0 client credentials (RFC 6749, section 4.4): Client ID and Client Secret for a token, and for the next."""

from __future__ import annotations

import time
from base64 import b64encode
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote_plus, urlencode

import anyio
import msgspec

from .endpoints import token_url
from .errors import AuthenticationError, ConfigurationError, ConnectionFailedError, DragomanError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .connections import Profile
    from .http_responses import Response

ANSWER_LIMIT = 2**18
"""Maximum size of the answer of a token endpoint, in bytes."""

TOKEN_LIMIT = 2**13
"""Maximum length of a token in characters."""

_SECONDS = 30
MARGIN = 30.0  # seconds before its end at which a token is replaced; at most half of its time
REJECTED = (400, 401, 403)  # RFC 6749, section 5.2
_CHECK = "check Client ID, Client Secret and Scope"


def basic(client: str, secret: str) -> str:
    """Return what follows the word ``Basic`` for a client (RFC 6749, section 2.3.1)."""
    return b64encode(f"{quote_plus(client)}:{quote_plus(secret)}".encode()).decode()


def form(scope: str) -> str:
    """Return the body of a token request."""
    return urlencode({"grant_type": "client_credentials"} | ({"scope": scope} if scope else {}))


def read_token(body: bytes) -> tuple[str, float | None]:
    """Return the token of an answer, and the seconds for which it is valid; None if the answer does not say.

    Raises:
        ValueError: The answer has no token that a header can carry. The reason contains no part of the answer, which
            may hold one.
    """
    try:
        document = msgspec.json.decode(body)
    except ValueError:
        raise ValueError("no JSON") from None
    members = document if isinstance(document, dict) else {}
    kind, token, seconds = (members.get(name) for name in ("token_type", "access_token", "expires_in"))
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise ValueError("a token that is not of type Bearer")
    if not (isinstance(token, str) and 0 < len(token) <= TOKEN_LIMIT and token.isascii() and token.isprintable()):
        raise ValueError("no access_token that a header can carry")
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 <= seconds < 2**53:
        return token, None
    return token, float(seconds)


class EndpointClient(Protocol):
    """What is needed of the `Http` of the token endpoint."""

    profile: Profile

    @property
    def request(self) -> Callable[..., Awaitable[Response]]:
        """What sends one request."""

    def hide(self, token: str) -> None:
        """Mask a text from now on."""

    def quote(self, response: Response) -> str:
        """Return the beginning of an answer, without secrets."""


class Tokens:
    """The token of one connection: asked for when it is needed, replaced before it ends and when it is rejected.

    Calls that need a token at the same time wait for one request, and share its failure.

    Attributes:
        endpoint: The client of the token endpoint alone.
    """

    def __init__(
        self,
        profile: Profile,
        endpoint: EndpointClient,
        *,
        hide: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without a token; nothing is sent before one is needed.

        Args:
            profile: The connection.
            endpoint: The client of the token endpoint alone.
            hide: Receives each text that must not be shown.
            clock: Returns a time in seconds.

        Raises:
            ConfigurationError: Client ID or Client Secret is empty.
        """
        client, secret = str(profile.options.get("client_id") or ""), profile.secrets.get("client_secret")
        if not client or not secret:
            raise ConfigurationError("Client ID or Client Secret is empty", hint="enter both")
        self._basic, self._form = basic(client, secret), form(str(profile.options.get("scope") or ""))
        self._path = token_url(str(profile.options.get("token_url") or "")).path
        self.endpoint, self._hide, self._clock = endpoint, hide, clock
        self._token, self._until = "", float("inf")
        self._lock = anyio.Lock()
        self._failures = 0
        self._failure: DragomanError | None = None
        self._hidden = (secret, quote_plus(secret), self._basic)

    async def get(self, *, rejected: str = "") -> str:
        """Return a token that is valid, as far as is known.

        Args:
            rejected: A token that the server has rejected, so that it is not returned again.

        Raises:
            AuthenticationError: The token endpoint rejects the credentials.
            ConnectionFailedError: It cannot be reached, or answers without a token. Nothing was sent to the server.
        """
        failures = self._failures
        if token := self._current(rejected):
            return token
        async with self._lock:
            if token := self._current(rejected):
                return token
            if self._failures > failures and (failed := self._failure) is not None:
                raise type(failed)(failed.message, hint=failed.hint, remedies=failed.remedies, details=failed.details)
            try:
                return await self._ask()
            except DragomanError as error:
                self._failures, self._failure = self._failures + 1, error
                raise

    def _current(self, rejected: str) -> str:
        return "" if self._token == rejected or self._clock() >= self._until else self._token

    async def _ask(self) -> str:
        began, self._token = self._clock(), ""
        for text in self._hidden:
            self._hide(text)
            self.endpoint.hide(text)
        where = f"the token endpoint {self.endpoint.profile.where}"
        try:
            response = await self.endpoint.request(
                "POST",
                self._path,
                body=self._form,
                content_type="application/x-www-form-urlencoded",
                headers={"Accept": "application/json", "Authorization": f"Basic {self._basic}"},
                timeout=_SECONDS,
                limit=ANSWER_LIMIT,
            )
        except DragomanError as error:
            text = error.message.removeprefix(error.prefix).removeprefix(f"{self.endpoint.profile.where}: ")
            raise _failed(f"{where}: {text}", "check Token URL", **error.details) from error
        self._token, seconds = self._read(response, where)
        self._hide(self._token)
        self._until = float("inf") if seconds is None else began + seconds - min(MARGIN, seconds / 2)
        return self._token

    def _read(self, response: Response, where: str) -> tuple[str, float | None]:
        quotation = self.endpoint.quote(response)
        if response.status in REJECTED:
            message = f"{where} rejected the client's credentials ({response.status}){quotation}"
            raise AuthenticationError(message, hint=_CHECK, details={"sent": False})
        if response.status != 200:
            raise _failed(
                f"{where} answered HTTP {response.status}{quotation}", "check Token URL; redirects are not followed"
            )
        try:
            return read_token(response.body)
        except ValueError as error:
            raise _failed(
                f"{where} answered with {error}", "check Token URL: something else may answer there"
            ) from None


def _failed(message: str, hint: str, **details: str | int | float | bool | None) -> ConnectionFailedError:
    return ConnectionFailedError(message, hint=hint, details={**details, "sent": False})
