"""Remedies as a person can use them: as the words of a command line, and as a call in Python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman_api.remedies import ABOUT_PLUGINS, RemedyKind
from dragoman_api.wording import as_typed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman_api.remedies import Remedy

_PLAIN = re.compile(r"[\w.+-][\w.+:/-]*")
TAKEN = frozenset(
    ("direct", "events", "help", "home", "json", "no_connect", "pin_certificate", "proxy", "proxy_password",
     "proxy_user", "quiet", "sandbox", "set", "sign_in_at", "ssh", "ssh_identity", "type", "unpin", "use", "yes")
)  # fmt: skip
"""Fields that a form may have, but whose options mean something else to the commands that save a connection."""
_LISTS = ("in", "not-in", "between")


def command_words(remedy: Remedy) -> list[str]:
    """Return the words of the command that does it, not quoted; none if no command does.

    >>> from dragoman_api.remedies import Remedy
    >>> arguments = {"connection": "shop", "object": "-a b", "column": "sku", "operator": "=", "value": "A 17"}
    >>> command_words(Remedy("filter-rows", arguments))
    ['dragoman', 'page', 'shop', '--filter', 'sku = "A 17"', '--', '-a b']
    """
    if remedy.fault or not ("connection" in remedy.arguments or remedy.kind in ABOUT_PLUGINS):
        return []
    arguments = {name: value if isinstance(value, bool) else str(value) for name, value in remedy.arguments.items()}
    if remedy.kind == RemedyKind.EDIT_FIELD:
        return _line("connections edit", [str(arguments["connection"])], _edited(arguments))
    if remedy.kind == RemedyKind.FILTER_ROWS:
        row = filter_text(str(arguments["column"]), str(arguments["operator"]), arguments.get("value"))
        return _line("page", [str(arguments[name]) for name in ("connection", "object")], ["--filter", row])
    if remedy.kind not in _COMMANDS:
        return []
    command, names, option = _COMMANDS[remedy.kind]
    switch, _, value = option.partition("=")
    options = (
        [switch, *([str(arguments[value])] if value else [])] if option and arguments.get(value, not value) else []
    )
    return _line(command, [str(arguments[name]) for name in names.split()], options)


def python_call(remedy: Remedy) -> str:
    """Return the call that does it, with `session` and `runtime` for what it is called on; empty if no call does.

    >>> from dragoman_api.remedies import Remedy
    >>> python_call(Remedy("filter-rows", {"object": "books", "column": "sku", "operator": "=", "value": "A 17"}))
    "session.rows('books', filters=[Filter('sku', '=', 'A 17')]).page()"
    """
    if remedy.fault or remedy.kind not in _CALLS:
        return ""
    return _CALLS[remedy.kind].format(**{"value": None} | remedy.arguments)


def filter_text(column: str, operator: str, value: object = None) -> str:
    r"""Spell a filter row as the command line takes it.

    >>> print(filter_text("a b", "contains", 'a "b"'), filter_text("x", "null"), sep="\n")
    "a b" contains "a \"b\""
    x null
    """
    words = [_word(column), operator]
    if value is not None:
        items = as_typed(value).split(",") if operator in _LISTS else [as_typed(value)]
        words.append(",".join(map(_word, items)))
    return " ".join(words)


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _line(command: str, names: list[str], options: list[str]) -> list[str]:
    start, names = ["dragoman", *command.split(), *names[:1]], names[1:]
    if any(name.startswith("-") for name in names):  # it would be read as an option
        return [*start, *options, "--", *names]
    return [*start, *names, *options]


def _edited(arguments: Mapping[str, str | bool]) -> list[str]:
    value = arguments.get("value")
    return [] if value is None else field_words(str(arguments["field"]), value=value)


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


# For each kind: the command, its names, and its options with their values.
_COMMANDS: dict[str, tuple[str, str, str]] = {
    RemedyKind.PIN_CERTIFICATE: ("connections edit", "connection", "--pin-certificate=fingerprint"),
    RemedyKind.UNPIN_CERTIFICATE: ("connections edit", "connection", "--unpin"),
    RemedyKind.TEST_CONNECTION: ("connections test", "connection", ""),
    RemedyKind.SIGN_IN: ("connections edit", "connection", "--sign-in-at=server"),
    RemedyKind.LIST_OBJECTS: ("objects", "connection", ""),
    RemedyKind.DESCRIBE_OBJECT: ("describe", "connection object", ""),
    RemedyKind.OPEN_OBJECT: ("page", "connection object", ""),
    RemedyKind.QUERY_ROWS: ("page", "connection object", "--raw=query"),
    RemedyKind.RAISE_SETTING: ("console", "connection request", ""),
    RemedyKind.SEND_REQUEST: ("console", "connection request", ""),
    RemedyKind.INSTALL: ("plugins install", "plugin", "--version=version"),
    RemedyKind.UPDATE: ("plugins update", "plugin", ""),
    RemedyKind.REPAIR: ("plugins repair", "plugin", ""),
    RemedyKind.ENABLE: ("plugins enable", "plugin", ""),
}

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
