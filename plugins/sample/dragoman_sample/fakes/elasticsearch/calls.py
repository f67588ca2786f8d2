"""One request as a handler sees it, and what a handler gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch.errors import ServerError
from dragoman_sample.fakes.elasticsearch.jsontext import decode
from dragoman_sample.fakes.elasticsearch.security import Principal
from dragoman_sample.fakes.elasticsearch.store import Cluster

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.store import Index
    from dragoman_sample.fakes.elasticsearch.versions import Release


@dataclass
class Reply:
    """An answer: JSON, or text where `text` is given."""

    body: Any = None
    status: int = 200
    text: str | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    # An error is written whole: filter_path does not reach it.
    is_error: bool = False


def unreadable(fault: ServerError, release: Release) -> ServerError:
    """Return a fault of the JSON parser as the release tells it; 8.x wraps it."""
    if release.types:
        return fault
    if fault.kind == "json_e_o_f_exception":
        modern = release.parts >= (8, 19)
        reason = (
            "[1:1] Unexpected end of file"
            if modern
            else f"com.fasterxml.jackson.core.io.JsonEOFException: {fault.reason}"
        )
        return ServerError("x_content_e_o_f_exception", reason, status=400 if modern else 500, caused_by=fault)
    return ServerError("x_content_parse_exception", f"[1:1] {fault.reason}", caused_by=fault)


@dataclass
class Call:
    """A request whose route and parameters are known."""

    cluster: Cluster
    method: str
    path: dict[str, str]
    params: dict[str, str]
    raw: bytes
    accept: str = ""
    principal: Principal | None = None
    action: str = ""

    def indices(self, expression: str | None = None) -> list[Index]:
        """Return the indices that the path means; of a wildcard only those that the sender may see.

        Raises:
            ServerError: index_not_found_exception.
        """
        expression = self.path.get("index", "_all") if expression is None else expression
        wide = {"all", "hidden"} & set(self.params.get("expand_wildcards", "").split(","))
        targets = self.cluster.resolve(expression, hidden=bool(wide), lenient=self.flag("ignore_unavailable"))
        if "*" in expression.replace("_all", "*"):
            targets = [index for index in targets if self.visible(index.name)]
        return targets

    def visible(self, name: str) -> bool:
        """Tell whether a wildcard of this sender includes a name."""
        return self.principal is None or self.principal.allows(self.action, name)

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
        try:
            return decode(self.raw)
        except ServerError as fault:
            raise unreadable(fault, self.cluster.release) from None

    def members(self, allowed: set[str]) -> dict[str, Any]:
        """Return the body after a check of its keys."""
        body = self.json()
        for key in body if isinstance(body, dict) else ():
            if key not in allowed:
                raise ServerError(
                    "parsing_exception", f"request does not support [{key}]", fault=True, extra={"line": 1, "col": 1}
                )
        members: dict[str, Any] = body
        return members
