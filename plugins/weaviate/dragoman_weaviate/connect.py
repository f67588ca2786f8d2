"""Which server answers and accepts the credentials, what its version can do, and whether it still answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from dragoman_api import AuthenticationError, DragomanError, Health, Profile, QueryError, Server, replies
from dragoman_api.connections import AuthScheme
from dragoman_api.errors import ServerNotSupportedError
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.remedies import Argument, Remedy, RemedyKind

from . import protocol
from .protocol import Features

if TYPE_CHECKING:
    from dragoman_api.replies import Reply

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?", re.ASCII)
_HOSTED = (".weaviate.cloud", ".weaviate.network", ".weaviate.io", ".semi.technology")
OWN_INFO = get("/v1/users/own-info")
HOSTED_HINT = "the hosted service needs HTTPS on port 443 (SSL Mode Required or Verify Identity) and an API key"


class _Meta(msgspec.Struct, frozen=True):
    version: str


class _Scope(msgspec.Struct, frozen=True):
    collection: str = ""


class _Right(msgspec.Struct, frozen=True):
    action: str = ""
    collections: _Scope | None = None


class _Role(msgspec.Struct, frozen=True):
    permissions: list[_Right] | None = None


class _Own(msgspec.Struct, frozen=True):
    roles: list[_Role] | None = None


def identify(profile: Profile) -> Exchange[tuple[Server, Features]]:
    """Check, with a request that needs the credentials, that Weaviate answers (W25).

    Raises:
        AuthenticationError: 401.
        AccessDeniedError: 403.
        ConnectionFailedError: The answer redirects, or the server takes no more requests.
        ServerNotSupportedError: Something else answered.
    """
    meta, own = yield [get("/v1/meta"), OWN_INFO]
    if error := replies.turned_away(meta, profile):
        raise error
    number, version = _version(meta)
    notes = [f"Weaviate {number} is older than 1.19 and untested"] if version < (1, 19, 0) else []
    return Server("Weaviate", number, [*notes, *_rights(own)]), Features(version)


def _version(meta: Reply) -> tuple[str, tuple[int, int, int]]:
    """Return the version in an answer to `GET /v1/meta`, as text and as numbers.

    Raises:
        AuthenticationError: 401.
        AccessDeniedError: 403.
        ServerNotSupportedError: Something else answered.
    """
    try:
        number = protocol.decode(meta, _Meta).version
        match = _VERSION.match(number)
    except QueryError:
        match = None
    if match is None:
        raise ServerNotSupportedError(
            f"GET /v1/meta was answered with HTTP {meta.status} by something other than Weaviate",
            hint="check Host and Port of the connection",
        )
    return number, (int(match[1]), int(match[2]), int(match[3] or 0))


def _rights(own: Reply) -> list[str]:
    """Return notes on the key's rights, known only with role-based access: no rights at all, or read only."""
    if (roles := _roles(own)) is None:
        return []
    actions = {right.action for role in roles for right in role.permissions or []}
    if not actions:
        return ["the key has no rights on this server: it sees no collection"]
    return ["the key has read access only"] if all(action.startswith("read_") for action in actions) else []


def _roles(own: Reply) -> list[_Role] | None:
    try:
        return protocol.decode(own, _Own).roles
    except DragomanError:
        return None


def hidden_collections(own: Reply) -> str:
    """Return why the key may not see all collections, from the answer to `GET /v1/users/own-info`; empty if it may."""
    if own.status != 200:  # an anonymous server, or one that is too old for roles
        return ""
    rights = [right for role in _roles(own) or [] for right in role.permissions or []]
    if any(right.action == "read_collections" and right.collections == _Scope("*") for right in rights):
        return ""
    if rights:
        return "the key may not read all collections, so there may be some that are not shown"
    return "there is no collection, or the key has no right to see any"


def ping() -> Exchange[Health]:
    """Check the connection; the readiness endpoints would ignore the key (W25, W35).

    Raises:
        AuthenticationError: 401.
        ServerNotSupportedError: Something else answered.
    """
    meta = yield from ask(get("/v1/meta"))
    protocol.check(meta)
    _version(meta)
    return Health(ok=True)


def credentials_rejected(error: AuthenticationError, profile: Profile) -> AuthenticationError:
    """Build the error for rejected credentials; it says what the hosted service needs (W34, W36)."""
    if error.details.get("sent") is False:  # the token endpoint rejected the client; the server was not asked
        return error
    server_message = error.message.removeprefix(error.prefix)
    where = profile.where
    edited: dict[str, Argument] = {"field": "api_key"}
    if profile.auth_scheme is AuthScheme.NONE:
        reason, hint = f"{where} asks for a key, but Auth Method is None", "set Auth Method to API Key"
        edited = {"field": "auth_method", "value": "api-key"}
    elif profile.auth_scheme is AuthScheme.CLIENT_CREDENTIALS:
        reason, hint = f"the token of the token endpoint was rejected by {where}", "check Token URL and Scope"
        edited = {"field": "token_url"}
    elif "no authentication scheme is configured" in server_message:
        reason, hint = f"{where} takes no key", "set Auth Method to None"
        edited = {"field": "auth_method", "value": "none"}
    else:
        reason, hint = f"the API key was rejected by {where}", "enter the new key and connect again"
    remedy = Remedy(RemedyKind.EDIT_FIELD, edited)
    text, hint = f"{reason} (401): {server_message}", f"{hint}; {HOSTED_HINT}"
    return AuthenticationError(text, hint=hint, remedies=[remedy], details=error.details)


def advise(error: DragomanError, profile: Profile) -> DragomanError:
    """Add to a failed connection what the hosted service needs (W34)."""
    if profile.host.lower().endswith(_HOSTED) and HOSTED_HINT not in error.hint:
        error.hint = f"{error.hint}; {HOSTED_HINT}" if error.hint else HOSTED_HINT
    return error
