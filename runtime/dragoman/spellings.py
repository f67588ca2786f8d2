"""How values, row ids and remedies are spelled as texts, and which names resemble a misspelt one; each way is exact.

A field of a table is a text without a type, so the column says what it stands for. In a column of JSON, a field that is
JSON is that value. In another one that may hold arrays, a field that is a JSON array is one, and a text that looks like
an array is spelled as a JSON string. All other fields stand for themselves.

Row ids have one spelling on the command line, in change files, in JSON and in events. A text stands for itself. Bytes
are ``{"base64": "…"}``, and a composite id is a JSON array of texts, integers and such bytes. On the command line, a
text that would be read as one of these is a JSON string.
"""

from __future__ import annotations

import json
import re
import shlex
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api.cells import Json
from dragoman_api.columns import ColumnKind
from dragoman_api.grid import check_id
from dragoman_api.json_text import MAX_DIGITS, decode, exact_number
from dragoman_api.remedies import RemedyKind
from dragoman_api.wording import as_typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dragoman_api.columns import Column
    from dragoman_api.grid import RowId
    from dragoman_api.remedies import Remedy

_string = msgspec.json.Decoder(str)
_encode = msgspec.json.Encoder(decimal_format="number", enc_hook=lambda _json: None).encode
_scalar = msgspec.json.Decoder(float_hook=exact_number)
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,%d}" % (MAX_DIGITS - 1))
_READ_OTHERWISE = re.compile(
    r"\s*(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|true|false|)\s*", re.IGNORECASE
)
"""Texts that a column of another kind than texts may read as its own: numbers, booleans, nothing."""

SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false")
"""Texts that look like a number or a boolean of JSON."""

SCALAR_SIGNS = frozenset("-0123456789tf")
"""What a text that looks like a number or a boolean of JSON begins with."""

_SCALAR_ENDS = frozenset("0123456789e")
_scalars = msgspec.json.Decoder(list[int | float | bool]).decode
_scalars_or_none = msgspec.json.Decoder(list[int | float | bool | None]).decode
_json = msgspec.json.Decoder(Raw)
_BLANKS = " \t\r\n"
_AS_TEXT = (ColumnKind.TEXT, ColumnKind.TIMESTAMP, ColumnKind.DATE, ColumnKind.TIME, ColumnKind.BINARY)
_JSON_KINDS = (ColumnKind.JSON, ColumnKind.RANGE, ColumnKind.GEO, ColumnKind.OTHER)
LONGEST_NAME = 100
"""Characters of a name that is compared; a longer one resembles nothing."""

MOST_NAMES = 10_000
"""Maximum number of names that are considered."""

COMPARED_NAMES = 20
"""Names that are compared letter by letter, which takes milliseconds each: those that share most pairs of letters."""
TAKEN = frozenset(
    ("direct", "driver_log", "events", "help", "home", "json", "no_connect", "pin_certificate", "proxy",
     "proxy_password", "proxy_user", "quiet", "sandbox", "set", "sign_in_at", "ssh", "ssh_identity", "type", "unpin",
     "use", "yes")
)  # fmt: skip
"""Fields that a form may have, but whose options mean something else to the commands that save a connection."""


class Quoted(str):
    """A field of a table that looks like a number or a boolean and stands in quotes, as no number does."""

    __slots__ = ()


def value_of(data: bytes) -> Any:
    """Return the value of a change that a JSON text spells; kind and digits stay.

    >>> value_of(b"1.10"), value_of(b"1e3"), value_of(b'"a"'), value_of(b'"12"')
    (Decimal('1.10'), '1e3', 'a', '"12"')
    """
    if data[:1] in (b"[", b"{"):
        return Json(data.decode())
    if data[:1] == b'"':
        return exact_text(_string.decode(data))
    if data[:1] not in b"-0123456789" or _INTEGER.fullmatch(data):
        return _scalar.decode(data)
    text = data.decode()
    number = exact_number(text)  # also -0: no integer has its sign
    return number if _encode(number) == data else Json(text)


def exact_json(json: str) -> Any:
    """Return the value of a JSON text for a column that takes any JSON: a text there is no JSON that was typed."""
    return Json(json) if json[:1] == '"' else value_of(json.encode())


def exact_text(text: str) -> str:
    r"""Return a text as a value that is a text in a column of any kind.

    Others stay as they are, so that a guard sees what is written, and the beginning of a cut cell can be told.

    >>> exact_text("a"), exact_text("[1]"), exact_text("[draft]"), exact_text("True")
    ('a', '"[1]"', '[draft]', '"True"')
    """
    begins = text.lstrip()[:1]
    read_otherwise = _is_json(text) if begins and begins in "[{" else _READ_OTHERWISE.fullmatch(text)
    return Json(_encode(text).decode()) if read_otherwise else text


class Spelling(msgspec.Struct, frozen=True):
    """How the fields of one column spell its values.

    Attributes:
        opens: The characters that begin JSON which is no text there.
        json: Any field that is JSON is that value.
        texts: The column holds texts, and reads none as anything else.
    """

    opens: str = ""
    json: bool = False
    texts: bool = False

    @property
    def mixed(self) -> bool:
        """Whether the column may hold both a number and a text with its digits."""
        return bool(self.opens) or not (self.texts or self.json)

    def reader(self, *, exact: bool) -> Callable[[str], Any]:
        """Return `value` for many fields."""
        value, opens, match = self.value, self.opens, SCALAR.fullmatch

        def read(field: str) -> Any:
            if field and field.__class__ is str:
                if (sign := field[0]) not in opens:
                    if field[-1] not in _SCALAR_ENDS or not match(field):
                        return field
                elif sign != '"':
                    return Json(field) if _is_json(field) else field
            return value(field, exact=exact)

        return read if self.texts else lambda field: value(field, exact=exact)

    def signs(self, *, exact: bool) -> str | None:
        """Return what a field begins with that may stand for more than its own text; None if any may.

        A `Quoted` field and an empty one may in any case.

        Args:
            exact: The file is an export as it was written.
        """
        if self.json or (exact and not self.texts):
            return None
        return self.opens + "".join(SCALAR_SIGNS) if exact and self.mixed else self.opens

    def field(self, text: str) -> str:
        """Return the field that stands for a text."""
        return _encode(text).decode() if self._misread(text) else text

    def value(self, field: str, *, exact: bool) -> Any:
        """Return the value that a field stands for.

        Args:
            field: The field.
            exact: The file is an export as it was written, so a field without quotes that looks like a number or a
                boolean is one; else the column decides.
        """
        if not self.json and (begins := field[:1]) not in self.opens and begins not in SCALAR_SIGNS:  # most texts
            return str(field) if self.texts or not exact else exact_text(str(field))
        if self.json:
            return exact_json(field.strip(_BLANKS) if _is_json(field) else _encode(str(field)).decode())
        if field[:1] in self.opens:
            if field[:1] == '"':
                text = _text(field)
                if text is not None and self._misread(text):
                    return text if self.texts else exact_text(text)
            elif field and _is_json(field):
                return Json(field)
        if not (exact and self.mixed):
            return str(field)
        if field.__class__ is not Quoted and SCALAR.fullmatch(field):
            return int(field) if field.isdecimal() and len(field) < _SHORT else value_of(field.encode())
        return str(field) if self.texts else exact_text(str(field))

    def _misread(self, text: str) -> bool:
        """Return whether a field that is this text would stand for something else."""
        if self.json:
            return _is_json(text)
        if not text or text[0] not in self.opens:
            return False
        if text[0] != '"':
            return _is_json(text)
        inner = _text(text)
        return inner is not None and self._misread(inner)


_SHORT = 1_000  # digits of an integer that needs no further look
_ANY = Spelling(json=True)
_PLAIN_TEXT = Spelling(texts=True)
_TEXT_OR_ARRAY = Spelling(opens='["', texts=True)


def scalars_of(fields: Sequence[str | None]) -> list[Any] | None:
    """Return the values of fields that all are numbers, booleans or None; each has the digits of its field.

    Returns:
        None if a field stands for something else, has other digits, or may have: `Spelling.value` tells of each.

    >>> scalars_of(["1", None, "true", "1.5"]), scalars_of(["1.10"]), scalars_of(["1,2", "3"])
    ([1, None, True, 1.5], None, None)
    """
    decode_all: Callable[[str], list[Any]] = _scalars
    try:
        json = f"[{','.join(fields)}]"  # type: ignore[arg-type]
    except TypeError:  # some are None
        if "null" in fields:
            return None
        json = f"[{','.join(['null' if field is None else field for field in fields])}]"
        decode_all = _scalars_or_none
    try:
        values = decode_all(json)
    except ValueError:
        return None
    return values if len(values) == len(fields) and _encode(values) == json.encode() else None


def spelling_of(column: Column | None) -> Spelling:
    """Return how fields spell the values of a column; None is a key of a column that takes any, which holds texts."""
    if column is None:
        return _TEXT_OR_ARRAY
    if column.kind in _JSON_KINDS:
        return _ANY
    arrays = column.multiple or column.repeated or bool(column.arrays)
    if column.kind is ColumnKind.TEXT:
        return _TEXT_OR_ARRAY if arrays else _PLAIN_TEXT
    return Spelling(opens='[{"' if arrays else "", texts=column.kind in _AS_TEXT)


def _is_json(text: str) -> bool:
    try:
        decode(text, _json)
    except ValueError:
        return False
    return True


def _text(json: str) -> str | None:
    """Return the text that a JSON string spells; None if it is none. Its own quotes may be nested at any depth."""
    try:
        return decode(json, _string)
    except ValueError:
        return None


class Base64(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes in JSON."""

    base64: bytes


JsonId = str | int | Base64 | list[str | int | Base64]
"""An id in JSON; a single integer is the text of its digits."""

_decoder = msgspec.json.Decoder(JsonId)


def id_of(value: JsonId) -> RowId:
    """Return the id that a JSON value spells.

    Raises:
        ValueError: No row has such an id.
    """
    if isinstance(value, list):
        return check_id([part.base64 if isinstance(part, Base64) else part for part in value])
    return value.base64 if isinstance(value, Base64) else str(value)


def json_of(id: RowId) -> JsonId:  # noqa: A002 - the contract's word
    """Return the JSON value that spells an id."""
    if isinstance(id, list):
        return [Base64(part) if isinstance(part, bytes) else part for part in id]
    return Base64(id) if isinstance(id, bytes) else id


def read_id(text: str) -> RowId:
    r"""Read an id from the command line.

    >>> read_id("17"), read_id('["eu", 17]'), read_id('{"base64": "AP8="}')
    ('17', ['eu', 17], b'\x00\xff')
    """
    if text[:1] not in ("[", "{", '"'):
        return text
    try:
        return id_of(_decoder.decode(text))
    except (ValueError, RecursionError):
        return text


def spell_id(id: RowId) -> str:  # noqa: A002 - the contract's word
    r"""Spell an id for the command line and for people.

    >>> spell_id("17"), spell_id(["eu", b"a"]), spell_id('["eu"]')
    ('17', '["eu", {"base64": "YQ=="}]', '"[\\"eu\\"]"')
    """
    if isinstance(id, str) and read_id(id) == id:
        return id
    return json.dumps(msgspec.to_builtins(json_of(id)), ensure_ascii=False)


def plain_document(value: Any) -> Any:
    """Return a document as dicts, lists and scalars; bytes and decimals stay, and the ids of rows are spelled for JSON.

    The id of a row is the field `id` of a struct; a column named ``id`` is a key of a dict, whose value stays.
    """
    return _spelled(value, msgspec.to_builtins(value, builtin_types=(bytes, Decimal)))


def _spelled(value: Any, plain: Any) -> Any:
    """Return the plain form of a value, with the ids inside it spelled."""
    if isinstance(value, list | tuple):
        return [_spelled(*pair) for pair in zip(value, plain, strict=True)]
    if isinstance(value, dict):
        return {name: _spelled(item, plain[name]) for name, item in zip(plain, value.values(), strict=True)}
    if not isinstance(value, msgspec.Struct):
        return plain
    for name, encoded in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        item = getattr(value, name)
        if name == "id" and _has_bytes(item):
            plain[encoded] = msgspec.to_builtins(json_of(item))
        elif encoded in plain:  # a default may be omitted
            plain[encoded] = _spelled(item, plain[encoded])
    return plain


def _has_bytes(value: object) -> bool:
    return isinstance(value, bytes) or (isinstance(value, list) and any(isinstance(part, bytes) for part in value))


def cell_command(connection: str, object: str, id: RowId, column: str) -> str:  # noqa: A002 - the contract's words
    """Return the command that prints a whole cell, to be pasted.

    >>> cell_command("shop", "orders", "17", "note"), cell_command("shop", "orders", "-x1", "note")
    ('dragoman cell shop orders 17 note', 'dragoman cell shop -- orders -x1 note')
    """
    words = [object, spell_id(id), column]
    end = ["--"] if any(word.startswith("-") for word in words) else []
    return shlex.join(["dragoman", "cell", connection, *end, *words])


def map_option(column: str, name: str = "") -> str:
    """Return the option of a load that gives a column another name, or leaves it out, as a shell reads it.

    >>> map_option("total", "sum"), map_option("unit price")
    ('--map total=sum', "--map 'unit price='")
    """
    return f"--map {shlex.quote(f'{column}={name}')}"


def near_names(name: str, candidates: Iterable[str], *, most: int = 3, least: float = 0.6) -> list[str]:
    """Return the known names that resemble one, the nearest first.

    Args:
        name: The unknown name.
        candidates: The known names, possibly untrusted.
        most: The maximum number of names.
        least: Likeness from 0 to 1.
    """
    if not 0 < len(name) <= LONGEST_NAME:
        return []
    from difflib import get_close_matches
    from heapq import nlargest
    from itertools import islice

    pairs = _pairs(name)
    # Two names are alike by at most twice the shorter length over both.
    fitting = [
        candidate
        for candidate in islice(candidates, MOST_NAMES)
        if len(candidate) <= LONGEST_NAME and 2 * min(len(candidate), len(name)) >= least * (len(candidate) + len(name))
    ]
    nearest = nlargest(COMPARED_NAMES, fitting, key=lambda candidate: len(pairs & _pairs(candidate)))
    return get_close_matches(name, nearest, n=most, cutoff=least)


def _pairs(name: str) -> set[str]:
    padded = f" {name.lower()} "
    return {padded[at : at + 2] for at in range(len(padded) - 1)}


def did_you_mean(near: Iterable[str]) -> str:
    """Return a suggestion to append to a sentence; empty if no name is near."""
    names = " or ".join(near)
    return f" (did you mean {names}?)" if names else ""


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
