"""What the server refuses in a filter before it reads anything, in its order and its words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.errors import InvalidError, PanicError, not_reproduced
from dragoman_sample.fakes.weaviate.sorting import IDS, TIMESTAMPS

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.settings import Settings
    from dragoman_sample.fakes.weaviate.store import Collection, Database

Where = dict[str, Any]

VALUES = {
    "valueInt": "int", "valueNumber": "number", "valueText": "text", "valueString": "string", "valueDate": "date",
    "valueBoolean": "boolean", "valueGeoRange": "geoCoordinates",
}  # fmt: skip
_NAME = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,230}", re.ASCII)
_NESTED = (
    "filtering on nested properties is a preview feature, disabled by default; set"
    " WEAVIATE_PREVIEW_NESTED_FILTERING=true to enable"
)
_SINCE = {"ContainsAny": (1, 21), "ContainsAll": (1, 21), "Not": (1, 33), "ContainsNone": (1, 33)}


def check_form(where: Where, settings: Settings) -> None:
    """Refuse a filter that is malformed, whatever the collection."""
    operator = where.get("operator", "")
    if not operator or settings.release < _SINCE.get(operator, ()):
        raise InvalidError(f"unrecognized operator: {operator}")
    try:
        if operator in ("And", "Or", "Not"):
            _check_operands(where, operator, settings)
        else:
            _check_clause(where, operator)
    except PanicError:
        raise
    except InvalidError as reason:
        raise InvalidError(f"invalid where filter: {reason}") from None


def _check_clause(where: Where, operator: str) -> None:
    keys = [key for key in VALUES if key in where and where[key] != []]
    if len(keys) > 1:
        raise not_reproduced("several values in one clause")
    if not keys:
        raise InvalidError(f"got operator '{operator}', but no value<Type> field set")
    path = listed(where.get("path", []))
    if not path:
        raise InvalidError("field 'path': must have at least one element")
    for name in path[::2]:
        bare = name[4:-1] if len(name) > 5 and name.startswith("len(") and name.endswith(")") else name
        nested = len(path) == 1 and re.search(r"[.\[]", name)
        if not name:
            raise PanicError("runtime error: slice bounds out of range [:1] with length 0")
        if not _NAME.fullmatch(bare) and not nested:
            raise InvalidError(f"expected a valid property name in 'path' field for the filter, but got '{bare}'")
    if len(path) % 2 == 0:
        raise InvalidError(f"missing an argument after '{path[-1]}'")


def _check_operands(where: Where, operator: str, settings: Settings) -> None:
    if "path" in where:
        raise InvalidError(
            f"operator '{operator}' not compatible with field 'path', remove 'path' or switch to compare operator (eg."
            " Equal, NotEqual, etc.)"
        )
    if any(key in where for key in VALUES):
        raise InvalidError(
            f"operator '{operator}' not compatible with field 'value<Type>', remove value field or switch to compare"
            " operator (eg. Equal, NotEqual, etc.)"
        )
    operands = listed(where.get("operands") or [])
    if not operands:
        raise InvalidError(f"operator '{operator}', but no operands set - add at least one operand")
    for position, operand in enumerate(operands):
        try:
            check_form(operand, settings)
        except PanicError:
            raise
        except InvalidError as reason:
            raise InvalidError(f"operand {position}: {reason}") from None


def listed(value: Any) -> list[Any]:
    """Return a list; GraphQL takes a single value where a list is wanted."""
    return value if isinstance(value, list) else [value]


def value_of(where: Where) -> tuple[str, Any]:
    """Return the type and the value that a clause compares with."""
    key = next(key for key in VALUES if key in where and where[key] != [])
    return VALUES[key], where[key]


def _named(kind: str) -> str:
    return f"value{kind[0].upper()}{kind[1:]}"


def validate(where: Where, collection: Collection, database: Database) -> str:
    """Return what is wrong with the types of a filter, of all its clauses."""
    if where.get("operands"):
        wrong = [validate(operand, collection, database) for operand in listed(where["operands"])]
        return ", ".join(f"child operand at position {place}: {text}" for place, text in enumerate(wrong) if text)
    try:
        _validate_clause(where, collection, database)
    except InvalidError as reason:
        return str(reason)
    return ""


def _validate_clause(where: Where, collection: Collection, database: Database) -> None:
    kind, value = value_of(where)
    path, operator = listed(where["path"]), where["operator"]
    if len(path) > 1:
        target = database.resolve(path[-2])
        if not target:
            raise InvalidError(f'class "{path[-2]}" does not exist in schema')
        collection = target
    name = path[-1]
    if name in IDS:
        if kind not in ("text", "string"):
            raise InvalidError('using ["_id"] to filter by uuid: must use "valueText" to specify the id')
        return
    if name in TIMESTAMPS:
        if kind not in ("text", "string", "date"):
            raise InvalidError(f'using ["{name}"] to filter by timestamp: must use "valueText" or "valueDate"')
        return
    of_length = name.startswith("len(")
    definition = known_property(collection, re.split(r"[.\[]", name[4:-1] if of_length else name)[0])
    if definition["dataType"][0] in ("object", "object[]"):
        raise InvalidError(_NESTED)
    if operator == "IsNull":
        if kind != "boolean":
            raise InvalidError(f"operator IsNull requires a booleanValue, got {_named(kind)} instead")
        return
    if of_length:
        _validate_length(kind, value, operator)
        return
    _validate_type(name, kind, operator, definition["dataType"][0])


def known_property(collection: Collection, name: str) -> dict[str, Any]:
    """Return a property.

    Raises:
        InvalidError: no property has that name.
    """
    definition = collection.properties.get(name)
    if not definition:
        raise InvalidError(
            f"no such prop with name '{name}' found in class '{collection.name}' in the schema. Check your schema files"
            " for which properties in this class are available"
        )
    return definition


def _validate_length(kind: str, value: Any, operator: str) -> None:
    if kind != "int":
        raise InvalidError(f'Filtering for property length requires IntValue, got "{_named(kind)}" instead')
    if operator not in ("Equal", "NotEqual", "GreaterThan", "GreaterThanEqual", "LessThan", "LessThanEqual"):
        raise not_reproduced(f"the refusal of {operator} for a length")
    if value < 0:
        raise InvalidError(f"Can only filter for positive property length got {value} instead")


def _validate_type(name: str, kind: str, operator: str, declared: str) -> None:
    alias = "text" if kind == "string" else kind
    if declared in ("uuid", "uuid[]"):
        if alias != "text":
            raise InvalidError(
                f'property "{name}" is of type "uuid" or "uuid[]": specify uuid as string using "valueText"'
            )
        if operator in ("Like", "WithinGeoRange"):
            raise InvalidError(f'operator "{operator}" cannot be used on uuid/uuid[] props')
    elif declared[0].isupper():
        if kind != "int":
            raise InvalidError(
                f'Property "{name}" is a ref prop to the class "{declared}". Only "valueInt" can be used on a ref prop'
                " directly to count the number of refs. Or did you mean to filter on a primitive prop of the referenced"
                " class? In this case make sure your path contains 3 elements in the form of [<propName>,"
                " <ClassNameOfReferencedClass>, <primitvePropOnClass>]"
            )
    elif alias != declared.removesuffix("[]"):
        expected = _named(declared.removesuffix("[]"))
        raise InvalidError(
            f'data type filter cannot use "{_named(kind)}" on type "{declared}", use "{expected}" instead'
        )
