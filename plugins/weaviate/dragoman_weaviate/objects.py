"""What can be browsed: collections with their exact counts, and aliases where the server has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api import DragomanError, Object

from . import faults, graphql
from .definitions import Collection
from .exchange import Exchange, ask, get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .server import Features

_BATCH = 100  # collections counted by one request


class _Schema(msgspec.Struct):
    classes: list[Collection] | None = None


class _Alias(msgspec.Struct):
    alias: str


class _Aliases(msgspec.Struct):
    aliases: list[_Alias] | None = None


def list_objects(features: Features) -> Exchange[list[Object]]:
    """List collections by name (W8): the server gives them in another order each time."""
    replies = yield [get("/v1/schema"), *([get("/v1/aliases")] if features.aliases else [])]
    found = sorted(faults.decode(replies[0], _Schema).classes or [], key=lambda each: each.name)
    counts = yield from _counts([each.name for each in found if not each.tenancy.enabled])
    aliases: list[_Alias] = []
    if features.aliases and replies[1].status == 200:  # without the right to read them there are none to show
        aliases = faults.decode(replies[1], _Aliases).aliases or []
    return [
        *(Object(each.name, counts.get(each.name), kind="collection") for each in found),
        *(Object(name, kind="alias") for name in sorted(each.alias for each in aliases)),
    ]


def _counts(names: Sequence[str]) -> Exchange[dict[str, int]]:
    """Count objects; the numbers stay unknown where the key, or the server, has no GraphQL."""
    counts: dict[str, int] = {}
    for start in range(0, len(names), _BATCH):
        reply = yield from ask(graphql.count(names[start : start + _BATCH]))
        try:
            counts |= graphql.counted(reply)
        except DragomanError:
            return {}
    return counts
