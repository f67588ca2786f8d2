"""Record what real servers answer: `python -m fakes.verified FILE.json`, the list that tests/servers prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import aiohttp
import anyio

from fakes.verified import recording
from fakes.verified.comparing import send
from fakes.verified.table import TABLE


async def _record(servers: list[dict[str, str]]) -> None:
    recorded = recording.read() if recording.PATH.exists() else {}
    for server in servers:
        await clean(server["url"])
        version = tuple(int(part) for part in server["version"].split("."))
        recorded[server["version"]] = await send(server["url"], TABLE, version, headers={}, ssl=True)
        print(server["version"], len(recorded[server["version"]]), "answers")
    ordered = sorted(recorded, key=lambda number: [int(part) for part in number.split(".")])
    recording.write({number: recorded[number] for number in ordered})


async def clean(url: str) -> None:
    """Delete what an interrupted run left behind."""
    async with aiohttp.ClientSession() as session:
        for name in recording.INDICES:
            async with session.delete(f"{url}/{name}"):
                pass


if __name__ == "__main__":
    listed = json.loads(Path(sys.argv[1]).read_text())
    anyio.run(_record, [server for server in listed if server["type"] == "elasticsearch" and not server["security"]])
