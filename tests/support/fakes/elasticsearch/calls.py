"""One request as a handler sees it, and what a handler gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakes.elasticsearch.errors import ServerError
from fakes.elasticsearch.jsontext import decode

if TYPE_CHECKING:
    from fakes.elasticsearch.store import Cluster


@dataclass
class Reply:
    """An answer: JSON, or text where `text` is given."""

    body: Any = None
    status: int = 200
    text: str | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Call:
    """A request whose route and parameters are known."""

    cluster: Cluster
    method: str
    path: dict[str, str]
    params: dict[str, str]
    raw: bytes
    accept: str = ""
    principal: Any = None

    def flag(self, name: str) -> bool:
        """Tell whether a parameter is on; a bare name is on."""
        return self.params.get(name, "false") in ("", "true")

    def json(self, *, required: bool = False) -> Any:
        """Return the body, `{}` where there is none.

        Raises:
            ServerError: if it is missing or no JSON.
        """
        if not self.raw.strip():
            if required:
                raise ServerError("parse_exception", "request body is required")
            return {}
        return decode(self.raw)

    def members(self, known: set[str]) -> dict[str, Any]:
        """Return the body after a check of its keys."""
        body = self.json()
        for key in body if isinstance(body, dict) else ():
            if key not in known:
                raise ServerError(
                    "parsing_exception", f"request does not support [{key}]", fault=True, extra={"line": 1, "col": 1}
                )
        found: dict[str, Any] = body
        return found
