"""One spelling of row ids: on the command line, in change files, in JSON, in events.

A text stands for itself. Bytes are ``{"base64": "…"}``, and a composite id is a JSON array of texts, integers and such
bytes. On the command line, a text that would be read as one of these is a JSON string.
"""

from __future__ import annotations

import json
import shlex
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.grid import check_id

if TYPE_CHECKING:
    from dragoman_api.grid import RowId


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
