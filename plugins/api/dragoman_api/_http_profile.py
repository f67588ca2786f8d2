"""What a profile says about HTTP: the address, credentials, extra headers and compression."""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from typing import TYPE_CHECKING

from yarl import URL

from . import endpoints
from .connections import AuthScheme
from .errors import ConfigurationError

if TYPE_CHECKING:
    from .connections import Profile


def authorization(profile: Profile) -> str | None:
    """Return the Authorization header (E9-E11, W5); raise ConfigurationError for an unsendable credential."""
    if profile.auth_scheme in (AuthScheme.NONE, AuthScheme.CLIENT_CREDENTIALS):  # a token comes later
        return None
    if profile.auth_scheme is AuthScheme.BASIC:
        user = str(profile.options.get("username") or "")
        if ":" in user:
            raise ConfigurationError(f"the user name {user!r} contains a ':', which HTTP Basic does not allow")
        pair = f"{user}:{profile.secrets.get('password')}"
        return f"Basic {b64encode(pair.encode()).decode()}" if user else None
    noun, scheme = credential(profile), profile.auth_scheme.value
    key = profile.secrets.get("token" if noun == "token" else "api_key")
    if not key:
        method = "Token" if noun == "token" else "API Key"
        raise ConfigurationError(f"Auth Method is {method}, but the {noun} is empty", hint=f"enter the {noun}")
    if key.casefold().startswith(f"{scheme.casefold()} "):
        hint = f"enter the {noun} alone, without that word"
        raise ConfigurationError(f"the {noun} begins with {scheme!r}", hint=hint)
    if not key.isprintable() or not key.isascii():
        raise ConfigurationError(
            f"the {noun} contains a line break or a character that {noun}s never contain", hint="copy it again"
        )
    return f"{scheme} {key}"


def credential(profile: Profile) -> str:
    """Return what the connection signs in with besides a user name, in words: an API key, or a token."""
    if profile.auth_scheme is not AuthScheme.BEARER or "token" not in profile.secrets.values:
        return "API key"
    chosen = profile.options.get("auth_method") == "token"  # else the token may be left over from another method
    return "token" if chosen or "api_key" not in profile.secrets.values else "API key"


_HOST = re.compile(r"[^\s/\\@?#\[\]]+")


def origin(profile: Profile) -> str:
    """Return scheme, host, port and path prefix, the host as sent.

    Raises:
        ConfigurationError: They are not an address, or the path prefix cannot be one.
    """
    try:
        prefix = profile.path_prefix
    except ValueError as error:
        raise ConfigurationError(f"path_prefix: {error}", hint="enter a path such as /es as Path Prefix") from error
    try:
        if ":" in profile.host:
            ipaddress.IPv6Address(profile.host)
        if _HOST.fullmatch(profile.host):
            return str(URL(profile.base_url.removesuffix(prefix))).rstrip("/") + prefix
    except ValueError:
        pass
    raise ConfigurationError(
        f"{profile.host!r} and port {profile.port} are not an address",
        hint="enter only a name or an address as Host, without http:// and without a path",
    )


def extra_headers(profile: Profile) -> dict[str, str]:
    """Return the extra headers of every request, the secret ones among them.

    Raises:
        ConfigurationError: They cannot be sent; the message contains no value of the secret ones.
    """
    headers: dict[str, str] = {}
    for field, text in (
        ("headers", str(profile.options.get("headers") or "")),
        ("secret_headers", profile.secrets.get("secret_headers")),
    ):
        try:
            field_headers = endpoints.headers(text)
        except ValueError as error:
            hint = "enter them as Name: value, one on each line, or separated by ;"
            raise ConfigurationError(f"{field}: {error}", hint=hint) from error
        if twice := {name.lower() for name in headers} & {name.lower() for name in field_headers}:
            raise ConfigurationError(f"{field}: {', '.join(sorted(twice))} is among the other headers, too")
        headers |= field_headers
    return headers


def compresses(profile: Profile) -> bool:
    """Check whether to request compressed answers; on fast links compression costs more than it saves."""
    choice = profile.options.get("compression") or "auto"
    if choice != "auto":
        return choice == "on"
    if profile.host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(profile.host).is_private
    except ValueError:
        return True  # a name may resolve to any address
