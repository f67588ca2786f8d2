"""Permissions in plain words, for terminals, questions and pages."""

from __future__ import annotations

from ipaddress import ip_address

from .ip_addresses import Nearness, is_literal, nearness

_WORDS = {
    "net:connection": "reaches the connection's host and port",
    "net:sign-in": "reaches the token endpoint that you agree to",
    "secrets:connection": "is given that connection's credentials",
    "native-code": "contains compiled code",
}
_VERBS = {"net:host": "reaches", "fs:read": "reads the file chosen as", "memory": "uses up to", "cpu": "computes up to"}


def plain_permissions(permissions: tuple[str, ...]) -> tuple[str, ...]:
    """Describe a driver's permissions in plain words.

    >>> plain_permissions(("net:connection", "net:host=example.org"))
    ("reaches the connection's host and port", 'reaches example.org')
    >>> plain_permissions(("net:host=example.org,127.0.0.1:6379",))
    ('reaches example.org, 127.0.0.1:6379 (this machine itself)',)
    """
    return tuple(_WORDS.get(name) or _in_words(name) for name in permissions)


def _in_words(permission: str) -> str:
    kind, _, value = permission.partition("=")
    parts = [_host(part) if kind == "net:host" else part for part in value.split(",")]
    return f"{_VERBS.get(kind, kind)} {', '.join(parts)}".rstrip()


def _host(text: str) -> str:
    host = text.partition(":")[0]
    is_local = host == "localhost" or host.endswith(".localhost")
    is_local = is_local or (is_literal(host) and nearness(ip_address(host)) is Nearness.LOOPBACK)
    return f"{text} (this machine itself)" if is_local else text


def describe_reach(permissions: tuple[str, ...]) -> str:
    """Describe what a driver can reach, as one cell of a list.

    >>> describe_reach(("net:connection", "net:sign-in"))
    "the connection's host and port, and the token endpoint that you agree to"
    """
    phrases = [words for words in plain_permissions(permissions) if words.startswith("reaches ")]
    *first, last = [words.removeprefix("reaches ") for words in phrases] or ["nothing"]
    return ", ".join([*first, f"and {last}"]) if first else last
