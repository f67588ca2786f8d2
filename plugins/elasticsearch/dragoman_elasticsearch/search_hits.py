"""Hits, the rows of an answer: address, guard and document."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Raw

from dragoman_api import RowKey

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A count or a sequence number; anything else in an answer is invalid."""


class Hit(msgspec.Struct, frozen=True):
    """A row of an answer without its document; sort values stay bytes, to be sent back unchanged."""

    index: str = msgspec.field(name="_index", default="")
    id: str = msgspec.field(name="_id", default="")
    score: float | None = msgspec.field(name="_score", default=None)
    seq_no: Count | None = msgspec.field(name="_seq_no", default=None)
    primary_term: Count | None = msgspec.field(name="_primary_term", default=None)
    routing: str | None = msgspec.field(name="_routing", default=None)
    ignored: tuple[str, ...] = msgspec.field(name="_ignored", default=())
    fields: dict[str, list[Any]] = {}
    sort: tuple[Raw, ...] = ()

    @property
    def key(self) -> RowKey:
        """The row's address, with the guard that protects a change of it."""
        guard: dict[str, int | str] = {}
        if self.seq_no is not None and self.primary_term is not None:
            guard = {"seq_no": self.seq_no, "primary_term": self.primary_term}
        return RowKey(self.index, self.id, self.routing, guard)


class DecodedHit(Hit, frozen=True):
    """A row with its document decoded; floats are Raw, to keep their digits."""

    source: dict[str, Any] | None = msgspec.field(name="_source", default=None)


class StoredHit(Hit, frozen=True):
    """A row with its document as bytes; empty if the index keeps none."""

    source: Raw = msgspec.field(name="_source", default=Raw())
