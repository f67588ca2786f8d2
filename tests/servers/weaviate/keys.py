"""API keys of a secured server, and the roles and users that only requests can make."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from servers.faults import EngineError

if TYPE_CHECKING:
    from servers.rest import Rest

READABLE = "Readable*"
"""The only collections that the user `limited` may see, where there are roles."""

_LIMITED = [
    {"action": "read_collections", "collections": {"collection": READABLE}},
    {"action": "read_data", "data": {"collection": READABLE, "tenant": "*", "object": "*"}},
]


def make_keys() -> dict[str, str]:
    """Invent the keys that are known from the start."""
    return {name: f"{name}-{secrets.token_urlsafe(12)}" for name in ("admin", "reader")}


def make_users(rest: Rest) -> dict[str, str]:
    """Make users with rights on everything to read, on some collections, and on none, and three keys gone bad.

    Raises:
        EngineError: The server refused.
    """
    _ask(rest, "POST", "/v1/authz/roles", {"name": "limited", "permissions": _LIMITED})
    _ask(rest, "POST", "/v1/authz/users/reader/assign", {"roles": ["viewer"], "userType": "db"})
    names = ("limited", "nobody", "rotated", "deactivated", "deleted")
    keys = {name: str(_ask(rest, "POST", f"/v1/users/db/{name}", {})["apikey"]) for name in names}
    _ask(rest, "POST", "/v1/authz/users/limited/assign", {"roles": ["limited"], "userType": "db"})
    _ask(rest, "POST", "/v1/users/db/rotated/rotate-key", {})
    _ask(rest, "POST", "/v1/users/db/deactivated/deactivate", {})
    _ask(rest, "DELETE", "/v1/users/db/deleted", None)
    return keys


def _ask(rest: Rest, method: str, path: str, body: object) -> dict[str, Any]:
    status, answer = rest.send(method, path, body)
    if status >= 300:
        raise EngineError("users", f"{method} {path}: the server answered {status}", tail=str(answer))
    return answer
