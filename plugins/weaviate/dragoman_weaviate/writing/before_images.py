"""Before-images: what a row held, the change that brings it back, and the digest that finds the row as a plan left it.

The server compares nothing itself, so a digest is compared just before a change is sent.
"""

from __future__ import annotations

import re
import struct
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman_api import Delete, Insert, RowKey
from dragoman_api.json_text import decode_once, encode
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.kit.row_changes import NotSentError
from dragoman_api.wording import failure
from dragoman_weaviate import stored_objects
from dragoman_weaviate.columns.field_types import Family, family_of
from dragoman_weaviate.protocol import object_path
from dragoman_weaviate.stored_objects import filled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman_api.changes import Change
    from dragoman_weaviate.columns.field_types import PropertyBase
    from dragoman_weaviate.columns.grid_columns import View
    from dragoman_weaviate.stored_objects import StoredObject

SHA = "sha256"
"""The guard of a row whose next timestamp is not known yet: the digest of its content."""

IMAGE_BYTES = 3 * 2**20 - 4096
"""Maximum size of a before-image in bytes; one line of an undo file has 3 MiB."""

_PHONE_TYPED = ("input", "defaultCountry")
_DATE = re.compile(r"(.*:\d\d)(?:\.(\d+))?(.*)")
_FRACTION = 9  # digits of a second that the server keeps


class Image(msgspec.Struct):
    """A row as its change carries it: what `document` holds if the row has a vector, and the content of a digest."""

    properties: Raw = Raw(b"{}")
    vector: Raw | UnsetType = UNSET
    vectors: Raw | UnsetType = UNSET

    @property
    def parts(self) -> dict[str, Raw]:
        """The members of the request's body."""
        members = {"properties": self.properties, "vector": self.vector, "vectors": self.vectors}
        return {name: value for name, value in members.items() if not isinstance(value, UnsetType)}


def opened(view: View, document: str) -> tuple[Image, object]:
    """Read a document: the properties of a row, or an object of `properties` with `vector` or `vectors`.

    A collection that has a property called `properties` takes the first form only.

    Returns:
        The row, and its properties as they are decoded.

    Raises:
        ValueError: It is not a JSON object, or holds a name twice; the server would keep only one of the values.
    """
    value = decode_once(document, object)
    if not isinstance(value, dict):
        raise ValueError("the document is not a JSON object")  # noqa: TRY004 - a fault of the value
    if _takes_whole(view) and "properties" in value and set(value) <= set(Image.__struct_fields__):
        return msgspec.json.decode(document, type=Image), value["properties"]
    return Image(Raw(document.encode())), value


def _takes_whole(view: View) -> bool:
    return all(spec.name != "properties" for spec in view.collection.properties or [])


def read(view: View, key: str, tenant: str | None) -> Exchange[StoredObject | None]:
    """Read a row with its vectors; None if there is none."""
    reply = yield from ask(get(object_path(view.target, key), include="vector", tenant=tenant))
    return stored_objects.read_one(reply, view.target, key)


def guard_of(view: View, item: StoredObject) -> dict[str, int | str]:
    """Return the guard that a stored row fits."""
    return guard(view, item.properties or {}, [item.vector, item.vectors])


def guard(view: View, properties: Mapping[str, object], vectors: Sequence[Raw | UnsetType]) -> dict[str, int | str]:
    """Return the guard that a row fits once the server holds it.

    Vectors that modules compute are left out: they are not known before.

    Raises:
        NotSentError: A value does not have the form of its property.
    """
    specs = {spec.name: spec for spec in view.collection.properties or []}
    try:
        forms = {name: _form(specs[name], value) for name, value in properties.items() if value is not None}
        floats = [] if view.collection.vectorizers else [_floats(vector) for vector in vectors]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"the row could not be found again to take it back: {failure(error)}"
        raise NotSentError(reason) from None
    return {SHA: sha256(encode([sorted(forms.items()), floats]).encode()).hexdigest()}


def undo(view: View, key: RowKey, before: StoredObject | None, after: dict[str, int | str] | None) -> Change:
    """Return the change that brings a row back.

    Args:
        view: The collection.
        key: The row's address.
        before: The row; None if there was none.
        after: The guard of the row that the plan leaves; None if it leaves none.

    Raises:
        NotSentError: The row cannot be brought back as it was.
    """
    if before is None:
        return Delete(RowKey(view.target, key.id, key.routing, after or {}))
    document = _document(view, before)
    if len(document.encode()) > IMAGE_BYTES:
        raise NotSentError(f"the row has more than {IMAGE_BYTES:,} bytes, so it could not be taken back")
    row_remains = after is not None
    return Insert(
        view.target, {}, key.id, replace=row_remains, routing=key.routing, guard=after or {}, document=document
    )  # fmt: skip


def _document(view: View, item: StoredObject) -> str:
    """Return what brings a row back; the server computes parts of a phone number anew."""
    specs = {spec.name: spec for spec in view.collection.properties or []}
    properties: dict[str, Any] = {}
    for name, value in (item.properties or {}).items():
        if name in specs and specs[name].data_type[:1] == ["blobHash"]:
            raise NotSentError(f"'{name}' holds a hash of bytes that the server does not keep, so no undo restores it")
        phone = name in specs and family_of(specs[name].data_type)[0] is Family.PHONE
        properties[name] = {part: value[part] for part in _PHONE_TYPED if part in value} if phone else value
    vectors = {name: value for name in ("vector", "vectors") if filled(value := getattr(item, name))}
    if not vectors:
        return encode(properties)
    if not _takes_whole(view):
        raise NotSentError("the collection has a property called 'properties', so no undo can hold the row's vector")
    return encode({"properties": properties} | vectors)


def _form(spec: PropertyBase, value: Any) -> Any:
    """Return a value in one form, however it was written."""
    family, array = family_of(spec.data_type)
    if family is Family.REFERENCE:
        return [reference["beacon"] for reference in value]
    return [_element(spec, family, element) for element in value] if array else _element(spec, family, value)


def _element(spec: PropertyBase, family: Family, value: Any) -> Any:
    match family:
        case Family.INT | Family.NUMBER:
            return float(_number(value))  # the server rounds integers, too
        case Family.DATE:
            return _date(value)
        case Family.UUID:
            return value.lower()
        case Family.GEO:
            return sorted((name, _short(coordinate)) for name, coordinate in value.items())
        case Family.PHONE:
            return [value["input"], value.get("defaultCountry", "").upper()]
        case Family.OBJECT:
            specs = {nested.name: nested for nested in spec.nested}
            return sorted((name, _form(specs[name], member)) for name, member in value.items() if member is not None)
    return value


def _number(value: Any) -> Any:
    return float(bytes(value)) if isinstance(value, Raw) else value


def _short(value: Any) -> float:
    """Return a number as the 32-bit float that the server keeps of it."""
    return float(struct.unpack("f", struct.pack("f", _number(value)))[0])


def _date(text: str) -> str:
    """Return an instant as the server writes it: at most nine digits of a second, without zeros at the end."""
    if (match := _DATE.fullmatch(text)) is None:
        raise ValueError(f"{text!r} is no instant")
    digits = (match[2] or "")[:_FRACTION].rstrip("0")
    return match[1] + (f".{digits}" if digits else "") + match[3]


def _floats(vector: Raw | UnsetType) -> Any:
    """Return vectors as the 32-bit floats that the server keeps; null for none."""
    if isinstance(vector, UnsetType) or not filled(vector):
        return None

    def narrow(value: Any) -> Any:
        if isinstance(value, dict):
            return sorted((name, narrow(element)) for name, element in value.items() if element)
        return [narrow(element) for element in value] if isinstance(value, list) else _short(value)

    return narrow(msgspec.json.decode(vector))
