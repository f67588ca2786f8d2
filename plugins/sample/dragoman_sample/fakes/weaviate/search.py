"""Reading pages of a collection, with everything that goes wrong on the way.

A filter of one clause stops reading its index as soon as it has `offset + limit` documents, before anything is sorted.
Several shards each give their first `offset + limit` rows by an order of their own, and are merged by another: by the
id where nothing is sorted, else by the properties that were read, which are those that the query selects.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from dragoman_sample.fakes.weaviate.sorting import Key, ordered

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.clauses import Clause
    from dragoman_sample.fakes.weaviate.store import Collection, Shard, Stored

_SORTED_BY_INSERTION = 12


def page(
    collection: Collection,
    tenant: str,
    *,
    sort: list[Key],
    limit: int,
    offset: int,
    after: str | None,
    where: Clause | None = None,
    selected: set[str] | None = None,
) -> list[Stored]:
    """Return one page.

    Args:
        collection: The collection.
        tenant: The tenant; empty for a collection without tenants.
        sort: The order; empty for that of the ids.
        limit: The maximum number of objects.
        offset: The number of objects to leave out first.
        after: Read after this id, from the start if it is empty; `None` without a cursor.
        where: The filter.
        selected: The properties that a filtered query selects.

    Raises:
        InvalidError: the filter needs an index that is not there.
    """
    total = offset + limit
    shards = collection.parts(tenant)
    items: list[Stored] = []
    # They answer in no order of their own.
    for shard in sorted(shards, key=lambda item: zlib.crc32(f"{shards.index(item)} {total}".encode())):
        items += _of_shard(collection, shard, sort, total, after, where)
    if len(shards) > 1:
        if sort:
            items = _merged(items, collection, sort, total, selected if where else None)
        else:
            items.sort(key=lambda item: item.id)
    return items[offset:total]


def _merged(
    rows: list[Stored], collection: Collection, sort: list[Key], total: int, selected: set[str] | None
) -> list[Stored]:
    in_order = ordered(rows, collection, sort, selected=selected)
    if len(rows) > _SORTED_BY_INSERTION and in_order != rows:
        # Unless it has nothing to do, the sort of Go's library leaves equal rows in any order, which changes with their
        # number.
        rows = sorted(rows, key=lambda row: zlib.crc32(f"{row.id} {total}".encode()))
        return ordered(rows, collection, sort, selected=selected)
    return in_order


def _of_shard(
    collection: Collection, shard: Shard, sort: list[Key], total: int, after: str | None, where: Clause | None
) -> list[Stored]:
    if where is not None:
        documents = where.documents(collection, shard, limit=total)
        rows = sorted((item for item in shard.objects.values() if item.doc in documents), key=lambda item: item.doc)
        return (ordered(rows, collection, sort) if sort else rows)[:total]
    if sort:
        return ordered((shard.objects[item] for item in shard.ids()), collection, sort)[:total]
    return shard.after(after or "", total)
