"""Remedies: what helps against an error, as data. Each surface shows it in its own way: a command, a button, a call."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .wording import as_typed, quoted

Argument = str | int | bool

LONGEST = 2_000
"""Maximum length of an argument, in characters."""

MOST = 5
"""Maximum number of remedies of an error or a note."""


class RemedyKind(StrEnum):
    """What a person can do; the arguments that each kind takes are in `ARGUMENTS`."""

    EDIT_FIELD = "edit-field"
    PIN_CERTIFICATE = "pin-certificate"
    UNPIN_CERTIFICATE = "unpin-certificate"
    TEST_CONNECTION = "test-connection"
    SIGN_IN = "sign-in"
    UNLOCK = "unlock"
    OPEN_CONNECTION = "open-connection"
    LIST_OBJECTS = "list-objects"
    DESCRIBE_OBJECT = "describe-object"
    OPEN_OBJECT = "open-object"
    USE_COLUMN = "use-column"
    FILTER_ROWS = "filter-rows"
    QUERY_ROWS = "query-rows"
    RAISE_SETTING = "raise-setting"
    SEND_REQUEST = "send-request"
    INSTALL = "install"
    UPDATE = "update"
    REPAIR = "repair"
    ENABLE = "enable"
    ADVICE = "advice"


ARGUMENTS: dict[RemedyKind, tuple[frozenset[str], frozenset[str]]] = {
    kind: (frozenset(required.split()), frozenset(optional.split()))
    for kind, required, optional in (
        (RemedyKind.EDIT_FIELD, "field", "value"),
        (RemedyKind.PIN_CERTIFICATE, "fingerprint", ""),
        (RemedyKind.UNPIN_CERTIFICATE, "", ""),
        (RemedyKind.TEST_CONNECTION, "", ""),
        (RemedyKind.SIGN_IN, "server", ""),
        (RemedyKind.UNLOCK, "", ""),
        (RemedyKind.OPEN_CONNECTION, "", ""),
        (RemedyKind.LIST_OBJECTS, "", ""),
        (RemedyKind.DESCRIBE_OBJECT, "object", ""),
        (RemedyKind.OPEN_OBJECT, "object", ""),
        (RemedyKind.USE_COLUMN, "column", "object"),
        (RemedyKind.FILTER_ROWS, "object column operator", "value"),
        (RemedyKind.QUERY_ROWS, "object query", ""),
        (RemedyKind.RAISE_SETTING, "object setting value request", ""),
        (RemedyKind.SEND_REQUEST, "request", ""),
        (RemedyKind.INSTALL, "plugin", "version"),
        (RemedyKind.UPDATE, "plugin", ""),
        (RemedyKind.REPAIR, "plugin", ""),
        (RemedyKind.ENABLE, "plugin", ""),
        (RemedyKind.ADVICE, "text", ""),
    )
}
"""The arguments of each kind: those that it needs, and those that it may have. A `connection` belongs to all but those
about a plugin; the host fills it in, whatever a driver says."""

ABOUT_PLUGINS = frozenset({RemedyKind.INSTALL, RemedyKind.UPDATE, RemedyKind.REPAIR, RemedyKind.ENABLE})
"""Kinds about a driver's release, which only the host suggests."""


class Remedy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that a person can do about an error or a note.

    Attributes:
        kind: A `RemedyKind`; the host drops others.
        arguments: As `ARGUMENTS` says, in plain values and never quoted or escaped. ``field`` is a field of the
            connection's form, by name; without ``value``, a person has to enter one. ``operator`` is an operator of a
            filter row, ``query`` one in the server's syntax, ``request`` one of the console.
    """

    kind: str
    arguments: dict[str, Argument] = {}

    def __hash__(self) -> int:
        return hash((self.kind, *sorted(self.arguments)))

    @property
    def fault(self) -> str:
        """Why nothing can show it; empty if it is a remedy.

        >>> Remedy(RemedyKind.USE_COLUMN, {"column": "sku"}).fault
        ''
        >>> Remedy(RemedyKind.USE_COLUMN, {"object": "books"}).fault
        "use-column takes other arguments than 'object'"
        """
        if self.kind not in ARGUMENTS:
            return f"{self.kind[:100]!r} is no kind of remedy"
        required, optional = ARGUMENTS[RemedyKind(self.kind)]
        names = self.arguments.keys() - {"connection"}
        if not required <= names <= required | optional:
            return f"{self.kind} takes other arguments than {quoted([name[:100] for name in sorted(names)[:9]])}"
        if any(self.arguments[name] == "" for name in required):
            return f"{self.kind} has an empty argument"
        if any(len(value) > LONGEST for value in self.arguments.values() if isinstance(value, str)):
            return f"an argument of {self.kind} is longer than {LONGEST:,} characters"
        return ""

    def of(self, connection: str) -> Remedy:
        """Return the remedy as one of that connection."""
        arguments = {name: value for name, value in self.arguments.items() if name != "connection"}
        if connection and self.kind not in ABOUT_PLUGINS:
            arguments["connection"] = connection
        return Remedy(self.kind, arguments)

    def __str__(self) -> str:
        """Say it in words.

        >>> print(Remedy(RemedyKind.EDIT_FIELD, {"field": "ssl_mode", "value": "verify-ca"}))
        set 'ssl mode' of the connection to 'verify-ca'
        """
        sentence = _WORDS.get(self.kind, "")
        if self.kind == RemedyKind.EDIT_FIELD:
            value = self.arguments.get("value")
            if isinstance(value, bool):
                sentence = "turn on {field}" if value else "turn off {field}"
            else:
                sentence = "set {field} of the connection to {value}" if value is not None else "check {field}"
        if self.kind == RemedyKind.ADVICE:
            return str(self.arguments.get("text", ""))
        replacements = {name: quoted(value) for name, value in self.arguments.items()}
        replacements["field"] = quoted(str(self.arguments.get("field", "")).replace("_", " "))
        replacements["row"] = quoted(
            " ".join(as_typed(self.arguments[name]) for name in _ROW if name in self.arguments)
        )
        try:
            return sentence.format(**replacements)
        except KeyError:
            return ""


_ROW = ("column", "operator", "value")
_WORDS: dict[str, str] = {
    RemedyKind.PIN_CERTIFICATE: "pin the certificate {fingerprint}",
    RemedyKind.UNPIN_CERTIFICATE: "remove the pinned certificate",
    RemedyKind.TEST_CONNECTION: "test the connection",
    RemedyKind.SIGN_IN: "agree to sign in at {server}",
    RemedyKind.UNLOCK: "unlock the connection",
    RemedyKind.OPEN_CONNECTION: "open the connection",
    RemedyKind.LIST_OBJECTS: "list the existing objects",
    RemedyKind.DESCRIBE_OBJECT: "describe {object} to see its columns and their operators",
    RemedyKind.OPEN_OBJECT: "open {object}",
    RemedyKind.USE_COLUMN: "use the column {column}",
    RemedyKind.FILTER_ROWS: "filter {object} by {row}",
    RemedyKind.QUERY_ROWS: "filter {object} by the Raw row {query}",
    RemedyKind.RAISE_SETTING: "set {setting} of {object} to {value}",
    RemedyKind.SEND_REQUEST: "send {request} in the console",
    RemedyKind.INSTALL: "install the driver {plugin}",
    RemedyKind.UPDATE: "update the driver {plugin}",
    RemedyKind.REPAIR: "repair the driver {plugin}",
    RemedyKind.ENABLE: "enable the driver {plugin}",
}
