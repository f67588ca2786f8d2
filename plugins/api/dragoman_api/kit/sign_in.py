"""Signing in where `Http` cannot do it alone: with a session token, or with OAuth client credentials.

`Http` itself sends user name and password (scheme ``basic``) or a key (``ApiKey``, ``Bearer``) with every request, as
the manifest says. The flows here exchange credentials for a token, which later requests carry:

    signed = SignedIn(http, SessionToken(path="/v3/auth/authenticate", members=("name", "password"), prefix=""))
    response = signed.check(await signed.request("GET", "/v3/members"))

Their token endpoint is on the connection's own host and port. For one that is another server, which a person enters and
agrees to, a method has the scheme ``client-credentials`` (`form_blocks.client_credentials`): `Http` then does it all.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dragoman_api._tokens import (
    ANSWER_LIMIT,
    REJECTED,
    SignInRequest,
    Token,
    Tokens,
    bearer_token,
    client_credentials,
    is_sendable,
)
from dragoman_api.errors import AuthenticationError, ConfigurationError, DragomanError, QueryError
from dragoman_api.replies import PROXY_HINT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dragoman_api.connections import Profile
    from dragoman_api.http import Http
    from dragoman_api.replies import Response

_LOGOUT_SECONDS = 5


class Flow(Protocol):
    """How credentials become a token; it sends nothing itself."""

    def begin(self, profile: Profile) -> SignInRequest:
        """Return the request that asks for a token."""

    def token(self, response: Response) -> Token:
        """Return the token of a successful answer; raise QueryError if it has none."""

    def end(self) -> tuple[str, str] | None:
        """Return method and path of the request that ends the token's validity, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionToken:
    """A user name and a password, posted as JSON for a token.

    The form asks for `username` and `password` (`form_blocks.session`).

    Attributes:
        path: The path to post to.
        members: The names of user name and password in the posted object.
        answer: The names that lead to the token in the JSON answer.
        cookie: The cookie that holds the token instead, and that requests send back; empty for none.
        header: The header in which requests carry the token, unless it is a cookie.
        prefix: The text before the token in that header.
        logout: Method and path of the request that ends the session; None to let it expire.
    """

    path: str
    members: tuple[str, str] = ("username", "password")
    answer: tuple[str, ...] = ("token",)
    cookie: str = ""
    header: str = "Authorization"
    prefix: str = "Bearer "
    logout: tuple[str, str] | None = None

    def begin(self, profile: Profile) -> SignInRequest:
        """Return the request that carries the credentials."""
        credentials = (str(profile.options.get("username") or ""), profile.secrets.get("password"))
        if not credentials[0]:
            raise ConfigurationError("the user name is empty", hint="enter the user name")
        body = msgspec.json.encode(dict(zip(self.members, credentials, strict=True))).decode()
        return SignInRequest(path=own_path(self.path, profile), body=body)

    def token(self, response: Response) -> Token:
        """Return the token of an answer."""
        if self.cookie:
            value = _usable(_cookie(response, self.cookie), f"the cookie {self.cookie}")
            return Token(value=value, headers={"Cookie": f"{self.cookie}={value}"})
        value = _usable(_member(_document(response), self.answer), "a token")
        return Token(value=value, headers={self.header: f"{self.prefix}{value}"})

    def end(self) -> tuple[str, str] | None:
        """Return the request that ends the session."""
        return self.logout


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """OAuth 2.0 client credentials (RFC 6749, section 4.4).

    The form asks for `client_id`, `client_secret` and `scope` (`form_blocks.client_credentials`). Client id and secret
    travel as HTTP Basic, which every server supports (section 2.3.1).

    Attributes:
        path: The token endpoint: a path, or an address on the connection's own host and port.
        scope: The scopes to ask for if the form does not name any.
    """

    path: str
    scope: str = ""

    def begin(self, profile: Profile) -> SignInRequest:
        """Return the token request."""
        return client_credentials(profile, own_path(self.path, profile), self.scope)

    def token(self, response: Response) -> Token:
        """Return the token of an answer."""
        try:
            return bearer_token(response.body)
        except ValueError as error:
            raise QueryError(f"the server answered the sign-in with {error}", hint=PROXY_HINT) from None

    def end(self) -> None:
        """Return nothing: the token expires."""


class SignedIn:
    """Sends requests with a token, and signs in when there is none, when it expires, and when it is rejected.

    Calls that need a token at the same time wait for one sign-in, and share its failure: a wrong password is sent
    once. Tokens are masked (`Http.hide`).
    """

    def __init__(self, http: Http, flow: Flow, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without a token; nothing is sent before the first request.

        Args:
            http: The client of the connection.
            flow: How to sign in.
            clock: Returns a time in seconds.
        """
        self._http, self._flow = http, flow
        self._tokens = Tokens(self._sign_in, clock=clock)

    def __repr__(self) -> str:
        return f"SignedIn({self._http!r}, {type(self._flow).__name__})"

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> Response:
        """Send a request as `Http.request` does, with the token; after a 401, once more with a new one.

        A server that answers 401 has not carried out the request, so a write is repeated too.

        Raises:
            AuthenticationError: The credentials were rejected.
            As `Http.request`.
        """
        token = await self._tokens.get()
        response = await self._http.request(method, path, headers={**(headers or {}), **token.headers}, **options)
        if response.status == 401:
            token = await self._tokens.get(rejected=token)
            response = await self._http.request(method, path, headers={**(headers or {}), **token.headers}, **options)
        return response

    def check(self, response: Response) -> Response:
        """Return the answer, or raise the error of any status that is not a success, as `Http.check` does."""
        if 200 <= response.status < 300:
            return response
        raise self.error(response)

    def error(self, response: Response) -> DragomanError:
        """Build the error that a status stands for; 401 means that even a new token was rejected."""
        if response.status != 401:
            return self._http.error(response)
        return AuthenticationError(
            f"{self._http.profile.where} rejected a new token (401){self._http.quote(response)}",
            hint="check Auth Method and credentials",
        )

    async def close(self) -> None:
        """End the session on the server if the flow says how, and forget the token; a failure changes nothing."""
        token = self._tokens.forget()
        if token is None or (end := self._flow.end()) is None:
            return
        with suppress(DragomanError):  # the session ends by itself
            await self._http.request(*end, headers=token.headers, timeout=_LOGOUT_SECONDS)

    async def _sign_in(self) -> Token:
        request = self._flow.begin(self._http.profile)
        for text in request.hidden:
            self._http.hide(text)
        response = await self._http.request(
            "POST",
            request.path,
            body=request.body,
            content_type=request.content_type,
            headers={"Accept": "application/json", **request.headers},
            limit=ANSWER_LIMIT,
        )
        if response.status in REJECTED:  # 400 also for a wrong password: etcd
            source = f"{self._http.profile.where} ({response.status}){self._http.quote(response)}"
            raise AuthenticationError(
                f"the credentials were rejected by {source}", hint="check Auth Method and credentials"
            )
        token = self._flow.token(self._http.check(response))
        self._http.hide(token.value)
        return token


def own_path(address: str, profile: Profile) -> str:
    """Return the path of an address on the connection's own host and port.

    Raises:
        ConfigurationError: The address is elsewhere, where the sandbox lets no driver connect.
    """
    path = address.removeprefix(profile.base_url)
    if path.startswith("/") and not path.startswith("//"):
        return path
    raise ConfigurationError(
        f"the token endpoint {address!r} is not on {profile.where}, and a driver reaches nothing else",
        hint="name a token endpoint of the same server, or choose an auth method whose key or token you enter yourself",
    )


def _document(response: Response) -> object:
    try:
        return msgspec.json.decode(response.body)
    except ValueError:  # the answer is not quoted: it may hold a token
        raise QueryError(
            f"the server answered the sign-in with HTTP {response.status} and no JSON",
            hint=PROXY_HINT,
        ) from None


def _member(document: object, names: tuple[str, ...]) -> object:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _cookie(response: Response, name: str) -> object:
    pairs = (line.partition(";")[0].partition("=") for line in response.headers.getall("Set-Cookie", ()))
    return next((value.strip() for key, _, value in pairs if key.strip() == name), None)


def _usable(token: object, noun: str) -> str:
    """Return a token that a header can carry."""
    if is_sendable(token):
        return token
    raise QueryError(f"the server answered the sign-in without {noun} that a header can carry")
