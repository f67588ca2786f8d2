"""The Authorization header of a profile's credentials."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from .connections import AuthScheme
from .errors import ConfigurationError

if TYPE_CHECKING:
    from .connections import Profile


def authorization(profile: Profile) -> str | None:
    """Return the Authorization header (E9-E11, W5); raise ConfigurationError for an unsendable credential."""
    if profile.auth_scheme is AuthScheme.NONE:
        return None
    if profile.auth_scheme is AuthScheme.BASIC:
        user = str(profile.options.get("username") or "")
        if ":" in user:
            raise ConfigurationError(f"the user name {user!r} contains a ':', which HTTP Basic does not allow")
        pair = f"{user}:{profile.secrets.get('password')}"
        return f"Basic {b64encode(pair.encode()).decode()}" if user else None
    key, scheme = profile.secrets.get("api_key"), profile.auth_scheme.value
    if not key:
        raise ConfigurationError("Auth Method is API Key, but the API key is empty", hint="enter the key")
    if key.casefold().startswith(f"{scheme.casefold()} "):
        raise ConfigurationError(f"the API key begins with {scheme!r}", hint="enter the key alone, without that word")
    if not key.isprintable() or not key.isascii():
        raise ConfigurationError(
            "the API key contains a line break or a character that keys never contain", hint="copy it again"
        )
    return f"{scheme} {key}"
