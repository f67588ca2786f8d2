"""One request as a handler sees it, and what a handler gives back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.errors import ServerError, coded, not_reproduced
from dragoman_sample.fakes.weaviate.security import Principal
from dragoman_sample.fakes.weaviate.settings import Settings
from dragoman_sample.fakes.weaviate.store import Database
from dragoman_sample.fakes.weaviate.values import load

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.store import Collection


@dataclass
class Reply:
    """An answer; no body at all for `None`."""

    body: Any = None
    status: int = 200
    empty: bool = False


@dataclass
class Call:
    """A request whose route is known."""

    database: Database
    settings: Settings
    principal: Principal
    method: str
    path: dict[str, str]
    params: dict[str, str]
    raw: bytes

    def json(self, allowed: set[str]) -> dict[str, Any]:
        """Return the body, an object with these keys.

        Raises:
            ServerError: it is missing or no JSON, as the server says it.
        """
        body = self._body()
        if not isinstance(body, dict):
            raise not_reproduced("a body that is no object")
        for key in body:
            if key not in allowed:
                raise not_reproduced(f"the member {key!r} of this body")
        return body

    def list(self) -> list[Any]:
        """Return the body, a list."""
        body = self._body()
        if not isinstance(body, list):
            raise not_reproduced("a body that is no list")
        return body

    def _body(self) -> Any:
        if not self.raw:
            raise ServerError(400)
        try:
            return load(self.raw)
        except json.JSONDecodeError as error:
            raise coded(400, f'parsing body body from "" failed, because {_complaint(self.raw, error)}') from None

    def collection(self, name: str | None = None) -> Collection | None:
        """Return the class that the path, or this name, means."""
        return self.database.resolve(self.path["class"] if name is None else name)


def _complaint(raw: bytes, error: json.JSONDecodeError) -> str:
    """Tell the commonest of the parser's complaints in its words."""
    if error.pos >= len(raw.decode(errors="replace")):
        return "unexpected EOF"
    character = raw.decode(errors="replace")[error.pos]
    if error.msg.startswith("Expecting value"):
        return f"invalid character '{character}' looking for beginning of value"
    raise not_reproduced(f"the complaint about a body that is no JSON ({error})")
