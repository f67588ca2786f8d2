"""Export the indices that changed since the last run: nightly_export.py CONNECTION FOLDER.

Each index goes to FOLDER/<day>/<index>.ndjson.gz with its manifest beside it. FOLDER/exported.json records an index
only after its file is complete, so the next run catches up after a killed one.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from dragoman import Runtime


async def main(runtime: Runtime) -> None:
    connection, folder = sys.argv[1], Path(sys.argv[2])
    record = folder / "exported.json"
    exported = json.loads(record.read_text()) if record.exists() else {}
    day = folder / datetime.now(UTC).strftime("%Y-%m-%d")
    day.mkdir(parents=True, exist_ok=True)
    async with runtime.open(connection) as session:
        for name in [found.name for found in await session.objects(counts=False)]:
            [answer] = await session.console(f"GET /{name}/_stats?level=shards")
            index = json.loads(answer.text)["indices"][name]
            # Every write gives its shard a new sequence number, updates and deletes included.
            changes = sorted(copy["seq_no"]["max_seq_no"] for copies in index["shards"].values() for copy in copies)
            state = [index.get("uuid"), changes]
            if exported.get(name) == state:
                continue
            result = await session.rows(name).export(to=day / f"{name}.ndjson.gz")
            exported[name] = state
            record.with_suffix(".new").write_text(json.dumps(exported))
            record.with_suffix(".new").replace(record)
            print(f"{name}: {result.rows:,} documents, {result.bytes:,} bytes", flush=True)
