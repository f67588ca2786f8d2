"""The GraphQL endpoint: what is refused before a document is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.calls import Reply
from dragoman_sample.fakes.weaviate.errors import not_reproduced, refused
from dragoman_sample.fakes.weaviate.gqlrun import run

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.calls import Call

_NO_SCHEMA = "no graphql provider present, this is most likely because no schema is present. Import a schema first!"


def answer(call: Call) -> Reply:
    """Answer one document."""
    _check(call)
    body = call.json({"query", "variables", "operationName"})
    if not body.get("query"):
        raise refused(422, "query cannot be empty")
    variables = body.get("variables") or {}
    if not isinstance(variables, dict):
        raise not_reproduced("variables that are no object")
    if not call.database.collections:
        raise refused(422, _NO_SCHEMA)
    return Reply(run(call, body["query"], variables, body.get("operationName")))


def answer_many(call: Call) -> Reply:
    """Refuse every document: this route forgets who sends the request."""
    _check(call)
    if call.principal.access == "open":
        raise not_reproduced("several documents on a server without authentication")
    items: list[Any] = call.list()
    return Reply([_forgotten(call, item["query"]) for item in items])


def _forgotten(call: Call, query: str) -> dict[str, Any]:
    if call.principal.access == "roles":
        raise not_reproduced("several documents with roles")
    whole = run(call, query, {}, None)
    if not whole.get("data"):
        raise not_reproduced("several documents, one of them wrong")
    ((verb, part),) = whole["data"].items()
    ((name, _),) = part.items()
    text = (
        "adminlist: authorization, forbidden action: user 'anonymous' has insufficient permissions to R"
        f" [data/collections/{name}/shards/*/objects/*]"
    )
    column = query.index(name) + 1
    error = {"locations": [{"column": column, "line": 1}], "message": text, "path": [verb, name]}
    return {"data": {verb: {name: None}}, "errors": [error]}


def _check(call: Call) -> None:
    if not call.principal.may("read_collections", "*"):
        reason = call.principal.refusal("read_collections", "*")
        text = (
            "due to GraphQL introspection, this role must have the permission to `read_collections` on `*` (all)"
            f" collections: {reason}"
        )
        raise refused(403, text)
    if not call.settings.graphql:
        raise refused(422, "graphql api is disabled")
