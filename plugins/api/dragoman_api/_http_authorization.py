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
