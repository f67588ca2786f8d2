"""What a class of a GraphQL document means: rows of a search, or those that a filter matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate import filters, near, paging, search, wherecheck
from dragoman_sample.fakes.weaviate.errors import InvalidError, MissingIndexError, PanicError
from dragoman_sample.fakes.weaviate.references import parse_beacon
from dragoman_sample.fakes.weaviate.sorting import Key, check_sort
from dragoman_sample.fakes.weaviate.tenants import check
from dragoman_sample.fakes.weaviate.wherecheck import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dragoman_sample.fakes.weaviate.calls import Call
    from dragoman_sample.fakes.weaviate.clauses import Clause
    from dragoman_sample.fakes.weaviate.store import Collection, Shard, Stored

_LISTED = "explorer: list class: search: "
_PAGE = 100


def rows(
    call: Call, collection: Collection, arguments: dict[str, Any], selected: set[str]
) -> list[tuple[Stored, float | None]]:
    """Return the rows of a `Get`, with their distances if it is a search for what is near.

    Raises:
        InvalidError: the server answers this error in place of the class.
    """
    _authorise(call, collection)
    sort = [
        Key(tuple(listed(entry.get("path", []))), entry.get("order") or "asc")
        for entry in listed(arguments.get("sort") or [])
    ]
    clause = _clause(call, collection, arguments)
    limit, offset = _limit(arguments, call.settings.page), arguments.get("offset") or 0
    after = _after(arguments)
    try:
        check_sort(collection, sort)
    except InvalidError as reason:
        raise InvalidError(f"invalid 'sort' parameter: {reason}") from None
    try:
        paging.check_window(offset, limit, call.settings)
    except InvalidError as reason:
        raise InvalidError(f"{_LISTED}invalid pagination params: {reason}") from None
    tenant = arguments.get("tenant") or ""
    try:
        check(collection, tenant)
        where = clause() if clause else None
        if {"nearVector", "nearObject"} & arguments.keys():
            return near.rows(collection, tenant, arguments, where)[offset : offset + limit]
        page = search.page(
            collection, tenant, sort=sort, limit=limit, offset=offset, after=after, where=where, selected=selected
        )
        return [(row, None) for row in page]
    except near.VectorError:
        raise
    except MissingIndexError:
        raise
    except InvalidError as reason:
        at = f"object search at index {collection.name.lower()}: "
        shard = "" if _is_of_tenant(reason) else f"local shard object search {collection.name.lower()}_shard: "
        raise InvalidError(f"{_LISTED}{at}{shard}{reason}") from None


def _is_of_tenant(reason: InvalidError) -> bool:
    return "tenant" in str(reason)


def _clause(call: Call, collection: Collection, arguments: dict[str, Any]) -> Callable[[], Clause] | None:
    if "where" not in arguments:
        return None
    where = arguments["where"]
    try:
        wherecheck.check_form(where, call.settings)
    except PanicError:
        raise
    except InvalidError as reason:
        raise InvalidError(f"could not extract filters: {reason}") from None
    wrong = wherecheck.validate(where, collection, call.database)
    if wrong:
        raise InvalidError(f"invalid 'where' filter: {wrong}")
    # What the types allow may still fail where the index is read.
    return lambda: filters.build(where, collection, call.database)


def _limit(arguments: dict[str, Any], default: int) -> int:
    limit = arguments.get("limit")
    if limit == 0:
        raise InvalidError(f"{_LISTED}invalid pagination params: invalid default limit: 0")
    if limit is None:
        return default if "offset" in arguments else _PAGE
    return int(limit) if limit > 0 else default


def _after(arguments: dict[str, Any]) -> str | None:
    if arguments.get("after") is None:
        return None
    try:
        return paging.check_cursor(
            arguments["after"],
            limit=arguments.get("limit"),
            offset=arguments.get("offset") or 0,
            where="where" in arguments,
            sort="sort" in arguments,
        )
    except InvalidError as reason:
        raise InvalidError(f"cursor api: invalid 'after' parameter: {reason}") from None


def matched(call: Call, collection: Collection, arguments: dict[str, Any]) -> Iterator[tuple[Shard, list[Stored]]]:
    """Yield each shard with the objects that a filter matches; no limit applies, so none is left out.

    Raises:
        InvalidError: the server answers this error in place of the class.
    """
    _authorise(call, collection)
    prepared = _clause(call, collection, arguments)
    tenant = arguments.get("tenant") or ""
    check(collection, tenant)
    try:
        clause = prepared() if prepared else None
        for shard in collection.parts(tenant):
            documents = clause.documents(collection, shard, limit=0) if clause else None
            items = [item for item in shard.objects.values() if documents is None or item.doc in documents]
            yield shard, items
    except MissingIndexError:
        raise
    except InvalidError as reason:
        raise InvalidError(f"shard shard: retrieve doc IDs from searcher: {reason}") from None


def _authorise(call: Call, collection: Collection) -> None:
    if not call.principal.may("read_data", collection.name):
        raise InvalidError(call.principal.refusal("read_data", collection.name))


def source(
    call: Call,
    row: Stored,
    collection: Collection,
    *,
    tenant: str = "",
    selected: set[str] | None = None,
    distance: float | None = None,
) -> dict[str, Any]:
    """Return what the fields of a row are read from; references are followed where they are selected.

    Raises:
        InvalidError: the server answers this error in place of the class.
    """
    values = dict(row.properties)
    for name, definition in collection.properties.items():
        kind = definition["dataType"][0]
        if kind[0].isupper() and name in values:
            links = values[name] if selected is None or name in selected else []
            values[name] = [target for link in links if (target := _target(call, link["beacon"], tenant))] or None
        if kind == "phoneNumber" and name in values:
            values[name] = {"defaultCountry": "", **values[name]}
    values["_additional"] = {
        "id": row.id,
        "creationTimeUnix": str(row.created),
        "lastUpdateTimeUnix": str(row.updated),
        "vector": row.vector or [],
        "vectors": row.vectors,
        "score": "0",
        "explainScore": "",
        "certainty": None,
        "distance": distance,
    }
    return values


def _target(call: Call, beacon: str, tenant: str) -> dict[str, Any] | None:
    """Follow a reference with the tenant of the request, which its collection may not have (seen on 1.38.11)."""
    parsed = parse_beacon(beacon)
    assert parsed is not None
    collection = call.database.resolve(parsed[0])
    if collection and tenant:
        try:
            check(collection, tenant)
        except InvalidError as reason:
            at = "resolve cross-refs: build reference cache: build request cache: fetch job list: "
            index = f'index "{collection.name.lower()}": determine shard: '
            raise InvalidError(f"{_LISTED}{at}{index}{reason}") from None
    reachable = collection and (tenant or not collection.has_tenants)
    item = collection.find(parsed[1], tenant) if collection and reachable else None
    if not collection or not item:
        return None
    return {**source(call, item, collection, tenant=tenant), "__typename": collection.name}
