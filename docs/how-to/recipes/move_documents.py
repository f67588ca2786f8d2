"""Move the documents of an index to another connection, ids included: move_documents.py FROM INDEX TO.

The script deletes a document only after its copy has arrived, and only if the document has not changed since. A
changed document stays, and the output counts it. The script overwrites nothing at the target. Run it again after an
interruption.
"""

import sys
from collections import Counter
from contextlib import aclosing

from dragoman import Delete, Insert, RowKey, Runtime, Session

BATCH = 500


async def main(runtime: Runtime) -> int:
    source, index, target = sys.argv[1:]
    told: Counter[str] = Counter()
    async with runtime.open(source) as here, runtime.open(target) as there:
        async with aclosing(here.rows(index).stream(form="rows")) as rows:
            batch = []
            async for row in rows:
                batch.append(Delete(RowKey(row["_index"], row["_id"], row.get("_routing"))))
                if len(batch) == BATCH:
                    told.update(await move(here, there, batch))
                    batch = []
        if batch:
            told.update(await move(here, there, batch))
    print(", ".join(f"{status} {count:,}" for status, count in sorted(told.items())) or "nothing there")
    return 4 if told.keys() - {"moved"} else 0


async def move(here: Session, there: Session, deletes: list[Delete]) -> list[str]:
    plan = await here.plan(*deletes, undo=True)  # reads the rows: their bytes, and guards for exactly these bytes
    rows = [was for was in plan.undo if isinstance(was, Insert)]
    copies = [Insert(was.object, id=was.id, routing=was.routing, document=was.document) for was in rows]
    outcomes = await there.apply(await there.plan(*copies))
    late = [copies[outcome.change] for outcome in outcomes if outcome.status != "applied"]
    if late:  # from an interrupted run, or another writer's: a plan to delete them reads them
        keys = [RowKey(copy.object, copy.id or "", copy.routing) for copy in late]
        found = (await there.plan(*map(Delete, keys), undo=True)).undo
        same = {twin.id for twin in found if isinstance(twin, Insert) and twin in copies}
        others = {copy.id for copy in late} - same
        if others:
            rest = [delete for delete in deletes if delete.key.id not in others]
            return ["not copied"] * len(others) + (await move(here, there, rest) if rest else [])
    return ["moved" if gone.status == "applied" else f"copied, {gone.status}" for gone in await here.apply(plan)]
