"""Remedies as a call in Python, and the options that set a field of a driver's form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.remedies import RemedyKind
from dragoman_api.wording import as_typed

if TYPE_CHECKING:
    from dragoman_api.remedies import Remedy

TAKEN = frozenset(
    ("direct", "events", "help", "home", "json", "no_connect", "pin_certificate", "proxy", "proxy_password",
     "proxy_user", "quiet", "sandbox", "set", "sign_in_at", "ssh", "ssh_identity", "type", "unpin", "use", "yes")
)  # fmt: skip
"""Fields that a form may have, but whose options mean something else to the commands that save a connection."""


def python_call(remedy: Remedy) -> str:
    """Return the call that does it, with `session` and `runtime` for what it is called on; empty if no call does.

    >>> from dragoman_api.remedies import Remedy
    >>> python_call(Remedy("filter-rows", {"object": "books", "column": "sku", "operator": "=", "value": "A 17"}))
    "session.rows('books', filters=[Filter('sku', '=', 'A 17')]).page()"
    """
    if remedy.fault or remedy.kind not in _CALLS:
        return ""
    return _CALLS[remedy.kind].format(**{"value": None} | remedy.arguments)


def field_words(field: str, *, value: str | bool) -> list[str]:
    """Return the words that set a field of a driver's form, which may have the name of another option.

    >>> field_words("path_prefix", value="/es"), field_words("verbose", value=False), field_words("json", value="x")
    (['--path-prefix', '/es'], ['--no-verbose'], ['--set', 'json=x'])
    """
    option = field.replace("_", "-")
    if field in TAKEN or (isinstance(value, bool) and field.startswith("no_")):
        return ["--set", f"{field}={as_typed(value)}"]
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    return [f"--{option}={value}"] if value.startswith("-") else [f"--{option}", value]


_CALLS: dict[str, str] = {
    RemedyKind.TEST_CONNECTION: "session.ping()",
    RemedyKind.LIST_OBJECTS: "session.objects()",
    RemedyKind.DESCRIBE_OBJECT: "session.describe({object!r})",
    RemedyKind.OPEN_OBJECT: "session.rows({object!r}).page()",
    RemedyKind.FILTER_ROWS: "session.rows({object!r}, filters=[Filter({column!r}, {operator!r}, {value!r})]).page()",
    RemedyKind.QUERY_ROWS: "session.rows({object!r}, raw=[{query!r}]).page()",
    RemedyKind.RAISE_SETTING: "session.console({request!r})",
    RemedyKind.SEND_REQUEST: "session.console({request!r})",
}
