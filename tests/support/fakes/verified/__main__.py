"""Record what real servers answer: `python -m fakes.verified FILE.json`, the list that tests/servers prints."""

from __future__ import annotations

import json
import ssl
import sys
from pathlib import Path
from typing import Any

import aiohttp
import anyio

from fakes.verified import recording, strangers
from fakes.verified.comparing import send
from fakes.verified.table import TABLE


async def ask(server: dict[str, Any]) -> dict[str, Any]:
    """Send the table to an open server, and everybody's requests to one with security."""
    if server["security"]:
        trusted = ssl.create_default_context(cafile=server["ca_file"]) if server["tls"] else True
        return await strangers.knock(server["url"], server, trusted)
    async with aiohttp.ClientSession() as session:
        # An interrupted run leaves indices behind.
        for name in recording.INDICES:
            async with session.delete(f"{server['url']}/{name}"):
                pass
    return await send(server["url"], TABLE, server["version"])


async def _record(servers: list[dict[str, Any]]) -> None:
    for server in servers:
        path = recording.STRANGERS if server["security"] else recording.TABLE
        recorded = recording.read(path) if path.exists() else {}
        recorded[server["version"]] = await ask(server)
        recording.write(path, recorded)
        print(server["engine"], len(recorded[server["version"]]), "answers")


if __name__ == "__main__":
    listed = json.loads(Path(sys.argv[1]).read_text())
    anyio.run(_record, [server for server in listed if server["type"] == "elasticsearch"])
