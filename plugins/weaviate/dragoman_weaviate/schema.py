"""Collections as the server defines them, and their columns: uuid first, vector last."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from dragoman_api import Column, Description, Note, QueryError
from dragoman_api.errors import ObjectNotFoundError

from . import faults
from .definitions import Collection, Named
from .exchange import Exchange, ask, get
from .fields import Family, Field, family_of
from .server import Features

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLLECTION = re.compile(r"[A-Za-z][_0-9A-Za-z]{0,254}")
_PROPERTY = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,230}")


@dataclass(frozen=True)
class View:
    """One collection as a grid sees it.

    Attributes:
        name: What was asked for, perhaps an alias.
        collection: Its definition; its own name goes into requests.
        structure: The definition as the server wrote it.
        features: What the server's version can do.
    """

    name: str
    collection: Collection
    structure: str
    features: Features

    @property
    def target(self) -> str:
        """Give the collection's own name."""
        return self.collection.name

    @cached_property
    def fields(self) -> dict[str, Field]:
        """Give the columns by name; a property that is called like one of ours is qualified."""
        found = [Field(name="uuid", type="uuid", family=Family.ID)]
        for each in self.collection.properties or []:
            family, array = family_of(each.data_type)
            found.append(
                Field(
                    name=f"properties.{each.name}" if each.name in ("uuid", "vector") else each.name,
                    prop=each.name,
                    type=", ".join(each.data_type),
                    family=family,
                    array=array,
                    spec=each,
                    index=self.collection.index,
                )
            )
        type_ = f"vectors {', '.join(self.named_vectors)}" if self.named_vectors else "vector"
        found.append(Field(name="vector", type=type_, family=Family.VECTOR, array=bool(self.named_vectors)))
        return {each.name: each for each in found}

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Describe the columns, by name."""
        return {name: field.column(self.features) for name, field in self.fields.items()}

    @property
    def named_vectors(self) -> list[str]:
        """Give the names of its vectors, where they have names."""
        return list(self.collection.vector_config or {})

    def choose(self, names: Sequence[str] | None) -> list[Field]:
        """Give the columns of a page.

        Raises:
            QueryError: One of them does not exist.
        """
        if names is None:
            return list(self.fields.values())
        if missing := [name for name in names if name not in self.fields]:
            raise QueryError(
                f"'{self.name}' has no column {', '.join(map(repr, missing))}", details={"column": missing[0]}
            )
        return [self.fields[name] for name in names]

    def tenant(self, name: str | None) -> str | None:
        """Check the name of a tenant against the collection (W33).

        Raises:
            QueryError: One is needed and missing, or given where there are none.
        """
        if self.collection.tenancy.enabled and not name:
            raise faults.tenant_required(f"the rows of '{self.name}' belong to tenants, and none was named")
        if name and not self.collection.tenancy.enabled:
            raise QueryError(f"'{self.name}' has no tenants, and {name!r} was named", code="tenant-unknown")
        return name or None

    def describe(self) -> Description:
        """Describe the columns."""
        notes = []
        if self.collection.tenancy.enabled:
            reason = "rows belong to tenants: a page, a count, an export and a new row name one"
            notes.append(Note(code="tenants", reason=reason, hint="--tenant NAME"))
        if self.target != self.name:
            notes.append(Note(code="alias", reason=f"'{self.name}' stands for the collection '{self.target}'"))
        return Description(
            object=self.name,
            columns=[*self.columns.values()],
            structure=self.structure,
            notes=notes,
        )


_definition = msgspec.json.Decoder(Collection)


def view(name: str, features: Features) -> Exchange[View]:
    """Learn the columns of a collection or of an alias of one.

    Raises:
        ObjectNotFoundError: There is no such collection.
        QueryError: It has names that cannot be put into a request.
    """
    missing = ObjectNotFoundError(f"there is no collection '{name}'", hint="list what there is: dragoman objects")
    if not _COLLECTION.fullmatch(name):
        raise missing
    reply = yield from ask(get(f"/v1/schema/{name}"))
    if reply.status == 404:
        raise missing
    collection = faults.decode(reply, _definition)
    names = [each.name for each in collection.properties or []]
    if not _COLLECTION.fullmatch(collection.name) or not all(map(_safe, collection.properties or [])):
        raise QueryError(f"'{name}' has names that cannot stand in a request: {collection.name}, {', '.join(names)}")
    return View(name, collection, reply.body.decode(errors="replace"), features)


def _safe(spec: Named) -> bool:
    return _PROPERTY.fullmatch(spec.name) is not None and all(map(_safe, spec.nested))
