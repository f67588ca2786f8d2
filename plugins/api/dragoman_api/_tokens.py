"""Tokens of a connection: got when they are needed, and OAuth 2.0 client credentials (RFC 6749, section 4.4)."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Protocol, TypeGuard
from urllib.parse import quote_plus, urlencode

import anyio
import msgspec

from .endpoints import token_url
from .errors import AuthenticationError, ConfigurationError, ConnectionFailedError, DragomanError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .connections import Profile
    from .replies import Response

ANSWER_LIMIT = 2**18
"""Maximum size of the answer of a token endpoint, in bytes."""

TOKEN_LIMIT = 2**13
"""Maximum length of a token in characters."""

_SECONDS = 30
_MARGIN = 30.0  # seconds before its end at which a token is replaced; at most half of its time
REJECTED = (400, 401, 403)  # RFC 6749, section 5.2
_CHECK = "check Client ID, Client Secret and Scope"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRequest:
    """The request that exchanges the credentials for a token, and what in it must not be shown."""

    path: str
    body: str = field(repr=False)
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    hidden: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token, never printed.

    Attributes:
        value: The token itself.
        headers: The headers that requests carry because of it.
        seconds: Seconds for which it is valid; None if the server does not say.
    """

    value: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    seconds: float | None = None


class Tokens:
    """The token of one connection: got when it is needed, replaced before it ends and when it is rejected.

    Calls that need a token at the same time wait for one sign-in, and share its failure: a wrong password is sent once.
    """

    def __init__(self, sign_in: Callable[[], Awaitable[Token]], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without a token; nothing is sent before one is needed.

        Args:
            sign_in: Gets a token from the server.
            clock: Returns a time in seconds.
        """
        self._sign_in, self._clock = sign_in, clock
        self._token: Token | None = None
        self._until = inf
        self._lock = anyio.Lock()
        self._failures = 0
        self._failure: DragomanError | None = None

    async def get(self, *, rejected: Token | None = None) -> Token:
        """Return a token that is valid, as far as is known.

        Args:
            rejected: A token that the server has rejected, so that it is not returned again.

        Raises:
            DragomanError: The sign-in failed.
        """
        failures = self._failures
        if (token := self._current(rejected)) is not None:
            return token
        async with self._lock:
            if (token := self._current(rejected)) is not None:
                return token
            if self._failures > failures and (failure := self._failure) is not None:
                raise copy(failure)
            began, self._token = self._clock(), None
            try:
                token = await self._sign_in()
            except DragomanError as error:
                self._failures, self._failure = self._failures + 1, error
                raise
            self._until = inf if token.seconds is None else began + token.seconds - min(_MARGIN, token.seconds / 2)
            self._token = token
            return token

    def forget(self) -> Token | None:
        """Return the token, if there is one, and keep it no longer."""
        token, self._token = self._token, None
        return token

    def _current(self, rejected: Token | None) -> Token | None:
        return None if self._token is rejected or self._clock() >= self._until else self._token


def client_credentials(profile: Profile, path: str, scope: str = "") -> SignInRequest:
    """Return the token request; client id and secret travel as HTTP Basic, which every server supports (section 2.3.1).

    Args:
        profile: The connection.
        path: The path of the token endpoint.
        scope: The scopes to ask for if the form does not name any.

    Raises:
        ConfigurationError: Client ID or Client Secret is empty.
    """
    client, secret = str(profile.options.get("client_id") or ""), profile.secrets.get("client_secret")
    if not client or not secret:
        raise ConfigurationError("Client ID or Client Secret is empty", hint="enter both")
    pair = b64encode(f"{quote_plus(client)}:{quote_plus(secret)}".encode()).decode()
    scopes = str(profile.options.get("scope") or scope)
    return SignInRequest(
        path=path,
        body=urlencode({"grant_type": "client_credentials"} | ({"scope": scopes} if scopes else {})),
        content_type="application/x-www-form-urlencoded",
        headers={"Authorization": f"Basic {pair}"},
        hidden=(secret, quote_plus(secret), pair),
    )


def is_sendable(token: object) -> TypeGuard[str]:
    """Check whether a header can carry a token."""
    return isinstance(token, str) and 0 < len(token) <= TOKEN_LIMIT and token.isascii() and token.isprintable()


def bearer_token(body: bytes) -> Token:
    """Return the token of a token endpoint's answer.

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
    if not is_sendable(token):
        raise ValueError("no access_token that a header can carry")
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 <= seconds < 2**53:
        seconds = None
    return Token(value=token, headers={"Authorization": f"Bearer {token}"}, seconds=seconds)


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


class Endpoint:
    """The token endpoint of a connection: a server of its own, which gets the client's credentials and nothing else."""

    def __init__(self, profile: Profile, client: EndpointClient, *, hide: Callable[[str], None]) -> None:
        """Prepare the token request.

        Args:
            profile: The connection.
            client: The client of the token endpoint alone.
            hide: Receives each text that must not be shown.

        Raises:
            ConfigurationError: Client ID or Client Secret is empty.
        """
        self._request = client_credentials(profile, token_url(str(profile.options.get("token_url") or "")).path)
        self._client, self._hide = client, hide

    async def sign_in(self) -> Token:
        """Get a token.

        Raises:
            AuthenticationError: The token endpoint rejects the credentials.
            ConnectionFailedError: It cannot be reached, or answers without a token. Nothing was sent to the server.
        """
        for text in self._request.hidden:
            self._hide(text)
            self._client.hide(text)
        where = f"the token endpoint {self._client.profile.where}"
        try:
            response = await self._client.request(
                "POST",
                self._request.path,
                body=self._request.body,
                content_type=self._request.content_type,
                headers={"Accept": "application/json", **self._request.headers},
                timeout=_SECONDS,
                limit=ANSWER_LIMIT,
            )
        except DragomanError as error:
            text = error.message.removeprefix(error.prefix).removeprefix(f"{self._client.profile.where}: ")
            raise _failed(f"{where}: {text}", "check Token URL", **error.details) from error
        token = self._read(response, where)
        self._hide(token.value)
        return token

    def _read(self, response: Response, where: str) -> Token:
        quotation = self._client.quote(response)
        if response.status in REJECTED:
            message = f"{where} rejected the client's credentials ({response.status}){quotation}"
            raise AuthenticationError(message, hint=_CHECK, details={"sent": False})
        if response.status != 200:
            raise _failed(
                f"{where} answered HTTP {response.status}{quotation}", "check Token URL; redirects are not followed"
            )
        try:
            return bearer_token(response.body)
        except ValueError as error:
            raise _failed(
                f"{where} answered with {error}", "check Token URL: something else may answer there"
            ) from None


def _failed(message: str, hint: str, **details: str | int | float | bool | None) -> ConnectionFailedError:
    return ConnectionFailedError(message, hint=hint, details={**details, "sent": False})
