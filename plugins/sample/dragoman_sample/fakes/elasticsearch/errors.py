"""Refusals in the shapes in which the server writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Body = dict[str, Any]

# Types of the server's own exception classes. `root_cause` lists the innermost of these; any other type is a plain Java
# exception, which the coordinating node wraps once more.
ELASTIC_TYPES = frozenset({
    "query_shard_exception", "search_exception", "parsing_exception", "search_context_missing_exception",
    "index_closed_exception", "cluster_block_exception", "exception", "parse_exception", "mapper_parsing_exception",
    "document_parsing_exception", "no_shard_available_action_exception", "index_not_found_exception",
})  # fmt: skip


class ServerError(Exception):
    """A refusal: `type`, `reason`, HTTP status, extra members, and what caused it."""

    def __init__(
        self,
        kind: str,
        reason: str | None,
        *,
        status: int = 400,
        caused_by: ServerError | None = None,
        root: list[ServerError] | None = None,
        fault: bool = False,
        headers: list[tuple[str, str]] | None = None,
        lucene: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind, self.reason, self.status, self.extra = kind, reason, status, dict(extra or {})
        self.caused_by, self.root, self.fault = caused_by, root, fault
        self.headers = headers or []
        # Lucene's own parse_exception has the same name as the server's, but is a different class.
        self.elastic = kind in ELASTIC_TYPES and not lucene

    def describe(self) -> Body:
        """Return the members of this exception, with its causes nested."""
        body: Body = {"type": self.kind, "reason": self.reason, **self.extra}
        if self.caused_by is not None:
            body["caused_by"] = self.caused_by.describe()
        return body

    def bare(self) -> Body:
        """Return the members without causes, as `root_cause` lists them."""
        return {"type": self.kind, "reason": self.reason, **self.extra}

    def innermost(self) -> ServerError:
        """Return the deepest cause that is one of the server's own exceptions."""
        cause = self
        while cause.caused_by is not None and cause.caused_by.elastic:
            cause = cause.caused_by
        return cause

    def body(self) -> Body:
        """Return the whole answer."""
        causes = [self.innermost()] if self.root is None else self.root
        described = self.describe()
        return {"error": {"root_cause": [cause.bare() for cause in causes], **described}, "status": self.status}


class PlainError(ServerError):
    """A refusal whose `error` member is a string; "no handler" lacks `status` as well."""

    def __init__(
        self,
        text: str,
        *,
        status: int,
        with_status: bool = True,
        fault: bool = False,
        headers: list[tuple[str, str]] | None = None,
    ) -> None:
        super().__init__("plain", text, status=status, fault=fault, headers=headers)
        self.text, self.with_status = text, with_status

    def body(self) -> Body:
        """Return the whole answer."""
        return {"error": self.text, "status": self.status} if self.with_status else {"error": self.text}


def illegal(reason: str, *, status: int = 400, fault: bool = False) -> ServerError:
    """Return an illegal_argument_exception."""
    return ServerError("illegal_argument_exception", reason, status=status, fault=fault)


def invalid(*reasons: str) -> ServerError:
    """Return the validation error that lists every fault of a request."""
    listed = "".join(f"{number}: {reason};" for number, reason in enumerate(reasons, 1))
    return ServerError("action_request_validation_exception", f"Validation Failed: {listed}")


def parsing(reason: str, *, fault: bool = True) -> ServerError:
    """Return the error for a body that the server's parsers do not know."""
    return ServerError("parsing_exception", reason, fault=fault, extra={"line": 1, "col": 1})


def not_reproduced(feature: str) -> ServerError:
    """Return the refusal of something that the real server can do and the fake cannot."""
    return ServerError("not_reproduced", f"the fake does not reproduce {feature}", fault=True)


def no_such_index(name: str, *, single: bool = False) -> ServerError:
    """Return the 404 for a name that resolves to nothing."""
    extra = {
        "resource.type": "index_expression" if single else "index_or_alias",
        "resource.id": name,
        "index_uuid": "_na_",
        "index": name,
    }
    return ServerError("index_not_found_exception", f"no such index [{name}]", status=404, extra=extra)


def all_shards_failed(failures: list[Body], causes: list[ServerError]) -> ServerError:
    """Return the error of a search in which no shard answered."""
    first = causes[0]
    root: ServerError | None = first.innermost()
    if root is first:
        # What a failed shard says already is not repeated; a plain Java exception is, wrapped.
        again = first.caused_by or ServerError(first.kind, first.reason)
        root = None if first.elastic else ServerError(first.kind, first.reason, caused_by=again)
    status = max((cause.status for cause in causes), key=lambda code: (code >= 500, code == first.status))
    return ServerError(
        "search_phase_execution_exception",
        "all shards failed",
        status=status,
        caused_by=root,
        root=[cause.innermost() for cause in causes],
        extra={"phase": "query", "grouped": True, "failed_shards": failures},
    )
