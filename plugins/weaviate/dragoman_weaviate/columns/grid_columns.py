"""One collection as the grid sees it: its columns (uuid first, vector last), read from its definition."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from dragoman_api import Column, Description, Note, QueryError
from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.errors import ObjectNotFoundError
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.kit.page_columns import choose, columns_cut
from dragoman_api.kit.views import digest
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_weaviate import protocol
from dragoman_weaviate.protocol import Features

from .field_types import Collection, Family, Field, family_of, is_collection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import HttpRequest

_COMPUTED = ("creationTimeUnix", "lastUpdateTimeUnix")
"""Members of an object that the server sets itself, whatever a request says (seen on 1.38.11)."""


@dataclass(frozen=True)
class View:
    """One collection as a grid sees it.

    Attributes:
        name: The requested name, perhaps an alias.
        collection: Its definition; its own name goes into requests.
        structure: The definition as the server wrote it.
        features: What the server's version can do.
        counts: How many objects there are, as they were last counted, by what was counted.
        unfollowed: Tenants whose searches cannot follow references, and therefore select none.
    """

    name: str
    collection: Collection
    structure: str
    features: Features
    counts: dict[object, int] = field(default_factory=dict, compare=False)
    unfollowed: set[str] = field(default_factory=set, compare=False)

    @property
    def target(self) -> str:
        """The collection's own name."""
        return self.collection.name

    @property
    def objects(self) -> tuple[str]:
        """The collection that its name stands for."""
        return (self.target,)

    @cached_property
    def revision(self) -> str:
        """A digest of the definition."""
        return digest(self.structure)

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The columns by name; a property named `uuid` or `vector` is qualified."""
        columns = [Field(name="uuid", type="uuid", family=Family.ID)]
        for spec in self.collection.properties or []:
            family, array = family_of(spec.data_type)
            columns.append(
                Field(
                    name=f"properties.{spec.name}" if spec.name in ("uuid", "vector") else spec.name,
                    prop=spec.name,
                    type=", ".join(spec.data_type),
                    family=family,
                    array=array,
                    spec=spec,
                    index=self.collection.index,
                )
            )
        type_ = f"vectors {', '.join(self.named_vectors)}" if self.named_vectors else "vector"
        columns.append(
            Field(
                name="vector",
                type=type_,
                family=Family.VECTOR,
                array=bool(self.named_vectors),
                members=tuple(self.collection.single_vectors),
            )
        )
        return {column.name: column for column in columns}

    @cached_property
    def properties(self) -> frozenset[str]:
        """The names of the properties."""
        return frozenset(spec.name for spec in self.collection.properties or [])

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The described columns, by name."""
        return {name: field.column(self.features) for name, field in self.fields.items()}

    @property
    def named_vectors(self) -> list[str]:
        """The names of its vectors, if they have names."""
        return list(self.collection.vector_config or {})

    def choose(self, names: Sequence[str] | None) -> list[Field]:
        """Return the columns of a page.

        Raises:
            QueryError: One of them does not exist.
        """
        return choose(names, self.fields, object=self.name)

    def tenant(self, name: str | None) -> str | None:
        """Check the name of a tenant against the collection (W33).

        Raises:
            QueryError: One is needed and missing, or given where there are none.
        """
        if self.collection.tenancy.enabled and not name:
            raise protocol.tenant_required(f"the rows of '{self.name}' belong to tenants, and none was named")
        if name and not self.collection.tenancy.enabled:
            raise QueryError(f"'{self.name}' has no tenants, and {name!r} was named", code="tenant-unknown")
        return name or None

    def describe(self) -> Description:
        """Describe the columns."""
        notes = []
        if self.collection.tenancy.enabled:
            reason = "rows belong to tenants: a page, a count, an export and a new row name one"
            notes.append(Note(code="tenants", reason=reason, hint="name a tenant"))
        if self.target != self.name:
            notes.append(Note(code="alias", reason=f"'{self.name}' stands for the collection '{self.target}'"))
        columns = [*self.columns.values()]
        notes += columns_cut(len(columns))
        return Description(
            object=self.name,
            columns=columns[:MAX_COLUMNS],
            structure=self.structure,
            notes=notes,
            object_member="class",
            server_members=_COMPUTED,
            tenants=self.collection.tenancy.enabled,
        )


_collection = msgspec.json.Decoder(Collection)


def view(name: str, features: Features) -> Exchange[View]:
    """Fetch the columns of a collection, by its name or an alias.

    Raises:
        ObjectNotFoundError: There is no such collection.
        QueryError: It has names that cannot go into a request.
    """
    missing = ObjectNotFoundError(f"there is no collection '{name}'", remedies=[Remedy(RemedyKind.LIST_OBJECTS)])
    if not is_collection(name):
        raise missing
    reply = yield from ask(_definition_of(name))
    if reply.status == 404:
        raise missing
    collection = protocol.decode(reply, _collection)
    if odd := collection.odd:
        names = protocol.shorten(", ".join(map(repr, odd)))
        raise QueryError(f"'{name}' has {len(odd):,} names that cannot be part of a request: {names}")
    if collection.name.lower() != name.lower() and not features.aliases:
        raise QueryError(f"the server returned the collection '{collection.name}' instead of '{name}'")
    return View(name, collection, _text(reply.body), features)


def current_revision(view: View) -> Exchange[str]:
    """Ask for the revision that a collection has now; empty if there is no such collection any more."""
    reply = yield from ask(_definition_of(view.name))
    return "" if reply.status == 404 else digest(_text(protocol.check(reply)))


def _definition_of(name: str) -> HttpRequest:
    return get(f"/v1/schema/{name}")


def _text(definition: bytes) -> str:
    return definition.decode(errors="replace")
