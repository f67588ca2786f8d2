"""Permissions in plain words, for terminals, questions and pages."""

from __future__ import annotations

_WORDS = {
    "net:connection": "reaches the connection's host and port",
    "secrets:connection": "is given that connection's credentials",
    "native-code": "brings compiled code",
}
_VERBS = {"net:host": "reaches", "fs:read": "reads the file chosen as", "memory": "uses up to", "cpu": "computes up to"}


def plain_permissions(permissions: tuple[str, ...]) -> tuple[str, ...]:
    """Say in plain words what a driver may do.

    >>> plain_permissions(("net:connection", "net:host=example.org"))
    ("reaches the connection's host and port", 'reaches example.org')
    """
    return tuple(_WORDS.get(name) or _in_words(name) for name in permissions)


def _in_words(permission: str) -> str:
    kind, _, value = permission.partition("=")
    return f"{_VERBS.get(kind, kind)} {value.replace(',', ', ')}".rstrip()


def describe_reach(permissions: tuple[str, ...]) -> str:
    """Say what a driver can reach, as one cell of a list."""
    found = [words for words in plain_permissions(permissions) if words.startswith("reaches ")]
    return ", ".join(words.removeprefix("reaches ") for words in found) or "nothing"
