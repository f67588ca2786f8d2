"""The collections with exact counts, the aliases, and the tenants of one."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

from dragoman_api import AuthenticationError, DragomanError, Note, Object, ObjectList, ObjectsRequest, QueryError
from dragoman_api.columns import Condition
from dragoman_api.kit.exchanges import Exchange, ask, ask_all, get
from dragoman_api.kit.object_lists import choose, describe_span
from dragoman_api.remedies import Remedy, RemedyKind

from . import graphql, protocol
from .columns.field_types import Schema, is_collection
from .connect import OWN_INFO, hidden_collections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .protocol import Features

TENANTS = Condition("with tenants")
"""What a listing says of a collection whose rows are those of its tenants."""

ALL_OBJECTS = ObjectsRequest()
"""The request for the names and rows of the first collections and aliases."""

_BATCH = 50  # collections counted by one request
_AT_ONCE = 4  # requests that count
_NAME, _TENANTS = 100, 1_000  # characters of a tenant's name, and tenants, that are compared


class _Alias(msgspec.Struct):
    alias: str


class _Aliases(msgspec.Struct):
    aliases: list[_Alias] | None = None


def list_objects(features: Features, request: ObjectsRequest = ALL_OBJECTS) -> Exchange[ObjectList]:
    """List a part of the collections by name (W8), as the server's order varies, and of the aliases after them.

    Objects are counted for the part only.
    """
    replies = yield [get("/v1/schema"), *([get("/v1/aliases")] if features.aliases else [])]
    collections = protocol.decode(replies[0], Schema).classes or []
    aliases: list[_Alias] = []
    notes = []
    if not collections and (reason := hidden_collections((yield from ask(OWN_INFO)))):
        notes.append(Note(code="objects-hidden", reason=reason))
    if features.aliases and replies[1].status == 200:
        aliases = protocol.decode(replies[1], _Aliases).aliases or []
    elif features.aliases:
        reason = f"the aliases cannot be listed (HTTP {replies[1].status}), so none are shown"
        notes.append(Note(code="objects-hidden", reason=reason))
    choice = choose(request, (collection.name for collection in collections), (alias.alias for alias in aliases))
    shown_collections, shown_aliases = choice.groups
    rows: dict[str, int] = {}
    with_tenants = {collection.name for collection in collections if collection.tenancy.enabled}
    if request.counts:
        countable = [name for name in shown_collections if name not in with_tenants]
        rows, reasons = yield from _counts([name for name in countable if is_collection(name)])
        if uncounted := [name for name in countable if name not in rows]:
            cause = f": {reasons[0]}" if reasons else ""
            reason = f"the rows of {describe_span(uncounted)} could not be counted{cause}"
            notes.append(Note(code="rows-unknown", reason=reason))
    objects = [
        *(
            Object(name, rows.get(name), kind="collection", state=TENANTS if name in with_tenants else None)
            for name in shown_collections
        ),
        *(Object(name, kind="alias") for name in shown_aliases),
    ]
    return ObjectList(objects=objects, notes=notes, next=choice.next, total=choice.total)


def properties() -> Exchange[dict[str, list[tuple[str, str]]]]:
    """Read the properties of every collection, with their types."""
    reply = yield from ask(get("/v1/schema"))
    collections = sorted(protocol.decode(reply, Schema).classes or [], key=lambda collection: collection.name)
    return {
        collection.name: [(spec.name, ", ".join(spec.data_type)) for spec in collection.properties or []]
        for collection in collections
    }


def _counts(names: Sequence[str]) -> Exchange[tuple[dict[str, int], list[str]]]:
    """Count objects; the numbers stay unknown if the key, or the server, has no GraphQL.

    Returns:
        The counts by name, and the reasons of requests that counted nothing.
    """
    batches = [names[start : start + _BATCH] for start in range(0, len(names), _BATCH)]
    counts: dict[str, int] = {}
    # Too slow, or no answer: the names are worth showing all the same.
    replies, reason = yield from ask_all([graphql.count(batch) for batch in batches], at_once=_AT_ONCE)
    reasons = [reason] if reason else []
    for reply in replies:
        try:
            counts |= graphql.counted(reply)
        except AuthenticationError:
            raise
        except DragomanError as error:
            reasons.append(error.message)
    return {name: counts[name] for name in names if name in counts}, reasons


class _Tenant(msgspec.Struct, frozen=True):
    name: str


def tenants(name: str) -> Exchange[list[str]]:
    """List the names of a collection's tenants."""
    reply = yield from ask(get(f"/v1/schema/{name}/tenants"))
    return [tenant.name for tenant in protocol.decode(reply, list[_Tenant])]


def tenant_unknown(name: str, collection: str, tenants: Sequence[str]) -> QueryError:
    """Build the error for a tenant that a collection does not have."""
    near = get_close_matches(name[:_NAME], tenants[:_TENANTS], n=3)
    suggestion = f" (did you mean {' or '.join(near)}?)" if near else ""
    text = f"'{collection}' has no tenant {name!r}{suggestion}"
    remedy = Remedy(RemedyKind.SEND_REQUEST, {"request": f"GET /v1/schema/{collection}/tenants"})
    return QueryError(text, code="tenant-unknown", hint="list the tenants", remedies=[remedy], details={"tenant": name})
