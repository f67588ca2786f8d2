"""Users, roles and API keys of a secured node, and the files and requests that make them."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from servers.faults import EngineError

if TYPE_CHECKING:
    from pathlib import Path

    from servers.rest import Rest

READABLE = "readable-*"
"""The only indices that the reader and the reading API key may see."""

_READ = {"indices": [{"names": [READABLE], "privileges": ["read", "view_index_metadata"]}]}


def make_users() -> dict[str, dict[str, Any]]:
    """Invent the users, with fresh passwords; the last one's is hard to send: colon, blank, letters beyond ASCII."""
    return {
        "superuser": {"username": "elastic", "password": secrets.token_urlsafe(12)},
        "reader": {"username": "reader", "password": secrets.token_urlsafe(12), "indices": [READABLE]},
        "nobody": {"username": "nobody", "password": f"pä:ss wörd {secrets.token_urlsafe(6)}"},
    }


def write_user_files(config: Path, users: dict[str, dict[str, Any]]) -> None:
    """Write the users for the file realm, which needs neither a keystore nor a running node."""
    hashes = (f"{user['username']}:{_pbkdf2(user['password'])}\n" for user in users.values())
    (config / "users").write_text("".join(hashes))
    (config / "users_roles").write_text("superuser:elastic\nreads:reader\n")
    (config / "roles.yml").write_text(
        f"reads:\n  indices:\n    - names: ['{READABLE}']\n      privileges: ['read', 'view_index_metadata']\n"
    )


def make_api_keys(rest: Rest) -> dict[str, dict[str, str]]:
    """Make a key with all rights, one that reads some indices and has no cluster rights, and one that was revoked.

    Raises:
        EngineError: The node refused.
    """
    keys = {
        "full": _make_key(rest, "full", {}),
        "reader": _make_key(rest, "reader", {"reader": _READ}),
        "revoked": _make_key(rest, "revoked", {}),
    }
    _ask(rest, "DELETE", {"ids": [keys["revoked"]["id"]]})
    return keys


def _make_key(rest: Rest, name: str, roles: dict[str, Any]) -> dict[str, str]:
    made = _ask(rest, "POST", {"name": name, "role_descriptors": roles})
    pair = f"{made['id']}:{made['api_key']}"
    # Nodes before 7.16 do not give the encoded form, so it is always made here.
    return {
        "id": made["id"],
        "api_key": made["api_key"],
        "pair": pair,
        "encoded": base64.b64encode(pair.encode()).decode(),
    }


def _ask(rest: Rest, method: str, body: dict[str, Any]) -> dict[str, Any]:
    # Refreshed at once: to wait for the next refresh takes a second per key. DELETE does not know the parameter.
    path = "/_security/api_key" + ("?refresh=true" if method == "POST" else "")
    status, answer = rest.send(method, path, body)
    if status != 200:
        raise EngineError("API keys", f"the node answered {status}", tail=str(answer))
    return answer


def _pbkdf2(password: str) -> str:
    salt, rounds = secrets.token_bytes(32), 10_000
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, rounds, 32)
    return f"{{PBKDF2}}{rounds}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"
