"""A profile's address and compression for HTTP."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from yarl import URL

from .errors import ConfigurationError

if TYPE_CHECKING:
    from .connections import Profile

_HOST = re.compile(r"[^\s/\\@?#\[\]]+")


def origin(profile: Profile) -> str:
    """Return scheme, host and port, the host as sent; raise ConfigurationError if they are not an origin."""
    try:
        if ":" in profile.host:
            ipaddress.IPv6Address(profile.host)
        if _HOST.fullmatch(profile.host):
            return str(URL(profile.base_url)).rstrip("/")
    except ValueError:
        pass
    raise ConfigurationError(
        f"{profile.host!r} and port {profile.port} are not an address",
        hint="enter only a name or an address as Host, without http:// and without a path",
    )


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
