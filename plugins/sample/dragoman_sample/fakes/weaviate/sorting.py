"""The order of rows: how the server compares values, and what it refuses to sort by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.errors import InvalidError
from dragoman_sample.fakes.weaviate.values import parse_date

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_sample.fakes.weaviate.store import Collection, Stored

IDS = {"_id", "id"}
TIMESTAMPS = {"_creationTimeUnix": "created", "_lastUpdateTimeUnix": "updated"}
INTERNAL = IDS | set(TIMESTAMPS)


@dataclass(frozen=True)
class Key:
    """One sort criterion."""

    path: tuple[str, ...]
    order: str = "asc"


def check_sort(collection: Collection, keys: list[Key]) -> None:
    """Refuse what cannot be sorted by, naming all of it.

    Raises:
        InvalidError: with the server's text.
    """
    wrong = []
    for position, key in enumerate(keys):
        try:
            _check(collection, key)
        except InvalidError as reason:
            wrong.append(f"sort parameter at position {position}: {reason}")
    if wrong:
        raise InvalidError(", ".join(wrong))


def _check(collection: Collection, key: Key) -> None:
    if not key.path:
        raise InvalidError("path parameter cannot be empty")
    if len(key.path) > 1:
        raise InvalidError("sorting by reference not supported, path must have exactly one argument")
    name = key.path[0]
    if name in INTERNAL:
        return
    definition = collection.properties.get(name)
    if not definition:
        raise InvalidError(
            f"no such prop with name '{name}' found in class '{collection.name}' in the schema. Check your schema files"
            " for which properties in this class are available"
        )
    kind = definition["dataType"][0]
    if kind in ("uuid", "uuid[]"):
        raise InvalidError(
            f'prop "{name}" is of type uuid/uuid[]: sorting by uuid is currently not supported - if you believe it'
            " should be, please open a feature request on github.com/weaviate/weaviate"
        )
    if kind[0].isupper():
        raise InvalidError(f'sorting by reference not supported, property "{name}" is a ref prop to the class "{kind}"')


def ordered(
    items: Iterable[Stored], collection: Collection, keys: list[Key], *, selected: set[str] | None = None
) -> list[Stored]:
    """Sort rows; equal ones stay as they came.

    Args:
        items: The rows.
        collection: Their collection.
        keys: What to sort by, the most important first.
        selected: The properties that were read; any other counts as null. All, if not given.
    """
    rows = list(items)
    for key in reversed(keys):
        name = key.path[0]
        kind = "" if name in INTERNAL else collection.properties[name]["dataType"][0]
        unread = selected is not None and name not in INTERNAL and name not in selected
        values = {id(row): None if unread else _comparable(row, name, kind) for row in rows}

        # Absent values come before all others.
        rows.sort(
            key=lambda row, values=values: (0,) if values[id(row)] is None else (1, values[id(row)]),  # type: ignore[misc]
            reverse=key.order == "desc",
        )
    return rows


def _comparable(row: Stored, name: str, kind: str) -> Any:
    if name in IDS:
        return row.id
    if name in TIMESTAMPS:
        return getattr(row, TIMESTAMPS[name])
    value = row.properties.get(name)
    if value is None or value == []:
        return None
    if kind in ("text", "blob"):
        return value.lower()
    if kind == "text[]":
        return [member.lower() for member in value]
    if kind == "date":
        return _moment(value)
    if kind == "date[]":
        return [_moment(member) for member in value]
    if kind == "geoCoordinates":
        return [value["longitude"], value["latitude"]]
    if kind == "phoneNumber":
        return [value["countryCode"], value["national"]]
    return None if kind in ("object", "object[]") else value


def _moment(text: str) -> int:
    date = parse_date(text)
    assert date is not None
    return date[0]
