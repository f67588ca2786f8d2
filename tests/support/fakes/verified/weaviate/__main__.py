"""Record what real servers answer: `python -m fakes.verified.weaviate FILE.json`, where tests/servers lists them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from fakes.verified.weaviate import tables


async def _record(servers: list[dict[str, Any]]) -> None:
    for server in servers:
        if server["tls"]:
            continue
        for table in tables.tables_of(server):
            answers = await tables.ask(server["url"], server, table)
            tables.write(table, answers)
            print(server["engine"], table, len(answers), "answers")


if __name__ == "__main__":
    listed = json.loads(Path(sys.argv[1]).read_text())
    anyio.run(_record, [server for server in listed if server["type"] == "weaviate"])
