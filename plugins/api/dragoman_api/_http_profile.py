"""A profile's address, extra headers and compression for HTTP."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from yarl import URL

from . import http_settings
from .errors import ConfigurationError

if TYPE_CHECKING:
    from .connections import Profile

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
            field_headers = http_settings.headers(text)
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
