"""Which requests which kind of server is asked, and how they are recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakes.verified.weaviate.asks import SETUP
from fakes.verified.weaviate.comparing import Client
from fakes.verified.weaviate.documents import DOCUMENTS
from fakes.verified.weaviate.people import ELSEWHERE, PEOPLE, headers, mode_of
from fakes.verified.weaviate.queries import QUERIES
from fakes.verified.weaviate.rest import REST
from fakes.verified.weaviate.walks import WALKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakes.verified.weaviate.asks import Ask

TABLES: dict[str, list[Ask]] = {
    "reads": [*SETUP, *QUERIES, *DOCUMENTS],
    "writes": [*SETUP, *REST],
    "walks": WALKS,
    "people": PEOPLE,
    **ELSEWHERE,
}
"""The requests by table: the first four are for a server with keys, the others for one of their name."""

_FOLDER = Path(__file__).with_name("recorded")


def tables_of(server: Mapping[str, Any]) -> list[str]:
    """Name the tables that a server is asked."""
    mode = mode_of(server)
    return [mode] if mode in ELSEWHERE else [name for name in TABLES if name not in ELSEWHERE]


async def ask(url: str, server: Mapping[str, Any], table: str, ssl: Any = True) -> dict[str, Any]:
    """Send a table to a server, and clean up what it leaves."""
    client = Client(url, headers(dict(server)), ssl)
    await client.clean()
    try:
        return await client.ask_all(TABLES[table])
    finally:
        await client.clean()


def read(table: str) -> dict[str, Any]:
    """Return what a real server answered."""
    lines = (_FOLDER / f"{table}.ndjson").read_text().splitlines()
    return {entry["request"]: entry["answer"] for entry in map(json.loads, lines)}


def write(table: str, answers: Mapping[str, Any]) -> None:
    """Keep what a real server answered, one line per request."""
    _FOLDER.mkdir(exist_ok=True)
    entries = ({"request": name, "answer": answer} for name, answer in answers.items())
    text = "".join(json.dumps(entry, ensure_ascii=False, sort_keys=True) + "\n" for entry in entries)
    (_FOLDER / f"{table}.ndjson").write_text(text)
