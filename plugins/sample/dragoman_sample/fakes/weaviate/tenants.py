"""Finding the shard a request means, where a class may have tenants."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman_sample.fakes.weaviate.errors import InvalidError

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.store import Collection, Shard

Wrap = Callable[[InvalidError], Exception]


def check(collection: Collection, tenant: str) -> None:
    """Refuse a tenant where there is none, none where there is one, an unknown one, and one that sleeps.

    Raises:
        InvalidError: in the words that every route wraps in its own.
    """
    if not collection.has_tenants:
        if tenant:
            raise InvalidError(f"class {collection.name} has multi-tenancy disabled, but request was with tenant")
        return
    if not tenant:
        raise InvalidError(f"class {collection.name} has multi-tenancy enabled, but request was without tenant")
    if tenant not in collection.tenants:
        raise InvalidError(f'tenant not found: "{tenant}"')
    if collection.tenants[tenant] != "HOT":
        raise InvalidError(f"tenant not active: '{tenant}'")


def reach(collection: Collection, tenant: str, identifier: str, *, wrap: Wrap) -> Shard:
    """Return the shard of an object.

    Raises:
        Exception: what `wrap` makes of the refusal.
    """
    try:
        check(collection, tenant)
    except InvalidError as reason:
        raise wrap(reason) from None
    return collection.shard_of(identifier, tenant)
