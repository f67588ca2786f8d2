"""A hundred sessions of mixed calls: what fails, how long calls take, and what grows: bench_soak.py [MINUTES].

One runtime opens the sessions on the sample cluster, each with a forked driver's process of its own. Each session makes
one call after another, drawn from a table, with pauses of one second in the mean. Memory is proportional (shared pages
are divided among their users), and takes root to read. SESSIONS and SEED change the number and the draw.

The command fails if a call fails, or if descriptors or processes differ at the end from those at the start.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import anyio
from benchmarks.compare import introduce

from dragoman import Filter, Insert, Runtime, SavedConnection, Sort, Update
from stranger import serve_sample

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator

    from dragoman import RowKey, Session

SESSIONS = int(os.environ.get("SESSIONS", "100"))
SEED = int(os.environ.get("SEED", "28"))
MINUTES = 10.0
PAUSE = 1.0
"""Seconds between the calls of one session, in the mean."""


class Calls:
    """The calls of one session, by name."""

    def __init__(self, session: Session, draw: random.Random, folder: Path, numbers: Iterator[int]) -> None:
        self._session, self._draw = session, draw
        self._folder, self._numbers = folder, numbers
        self._key: RowKey | None = None

    async def page(self) -> None:
        """Read a page, sorted or not."""
        sort = [Sort("price", descending=True)] if self._draw.random() < 0.5 else []
        page = await self._session.rows("books", sort=sort).page(limit=100, offset=self._draw.randrange(100))
        assert len(page.rows) == 100

    async def filtered_page(self) -> None:
        """Read a page of a filter."""
        rows = self._session.rows("books", filters=[Filter("pages", ">=", self._draw.randrange(200))])
        assert (await rows.page(limit=50)).rows

    async def count(self) -> None:
        """Count the rows of a filter."""
        assert await self._session.rows("books", filters=[Filter("in_stock", "=", "true")]).count() > 0

    async def summary(self) -> None:
        """Summarise a column."""
        assert await self._session.rows("books").summarize("price")

    async def description(self) -> None:
        """List the objects and describe one."""
        assert "books" in [node.name for node in await self._session.objects()]
        assert (await self._session.describe("orders")).columns

    async def console(self) -> None:
        """Send a request of the console."""
        assert await self._session.console("GET /books/_count")

    async def change(self) -> None:
        """Insert this session's row, and change it from then on."""
        change = Update(self._key, {"price": 1.5}) if self._key else Insert("books", {"title": "a row of this session"})
        [outcome] = await self._session.apply(await self._session.plan(change))
        assert outcome.status == "applied", outcome
        self._key = outcome.key

    async def export(self) -> None:
        """Export the rows of a filter into a file."""
        rows = self._session.rows("books", filters=[Filter("pages", ">=", 200)])
        result = await rows.export(self._folder / f"{next(self._numbers)}.ndjson")
        assert result.rows > 0


SHARES = {
    Calls.page: 40, Calls.filtered_page: 20, Calls.count: 12, Calls.summary: 6, Calls.description: 8,
    Calls.console: 6, Calls.change: 6, Calls.export: 2,
}  # fmt: skip
"""Of each call, in a hundred."""


class Record:
    """What happened."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.errors: Counter[str] = Counter()

    async def note(self, name: str, call: Callable[[], Awaitable[None]]) -> None:
        """Make a call and note how it ended."""
        began = time.perf_counter()
        try:
            await call()
        except Exception as error:  # noqa: BLE001 - whatever fails is counted
            self.errors[f"{name}: {type(error).__name__}: {str(error)[:200]}"] += 1
        else:
            self.seconds[name].append(time.perf_counter() - began)

    def show(self, elapsed: float) -> None:
        """Print calls, percentiles and errors."""
        every = [seconds for calls in self.seconds.values() for seconds in calls]
        print(f"\n  {'call':<16}{'number':>8}{'a second':>10}{'p50':>9}{'p99':>9}{'most':>9}")
        for name, calls in (*self.seconds.items(), ("all", every)):
            calls.sort()
            p50, p99 = (calls[int((len(calls) - 1) * part)] for part in (0.5, 0.99))
            figures = f"{p50 * 1e3:>6.0f} ms{p99 * 1e3:>6.0f} ms{calls[-1] * 1e3:>6.0f} ms"
            print(f"  {name:<16}{len(calls):>8,}{len(calls) / elapsed:>10.1f}{figures}")
        print(f"\n  errors: {sum(self.errors.values())}")
        for text, number in self.errors.most_common(10):
            print(f"  {number:>6} x {text}")


def proportional(pid: str) -> float:
    """Return the proportional memory of a process, in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def list_children() -> set[str]:
    """Return the numbers of this process's children."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def measure(when: str, others: Collection[str]) -> tuple[int, int]:
    """Print the memory of the host and of its children but for some; return its numbers of descriptors and children."""
    children = list_children().difference(others)
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - strings are enough
    theirs = [proportional(pid) for pid in children]
    opened = [len(os.listdir(f"/proc/{pid}/fd")) for pid in children]  # noqa: PTH208
    print(
        f"  {when:<8} host {proportional('self'):6.1f} MB, {descriptors} descriptors, "
        f"{len(os.listdir('/proc/self/task'))} threads; {len(children)} children of {sum(theirs) / len(theirs):.2f} MB "  # noqa: PTH208
        f"[at most {max(theirs):.2f}], {sum(opened)} descriptors",
        flush=True,
    )
    return descriptors, len(children)


async def soak(home: Path, minutes: float) -> int:
    """Run the sessions; return the exit code."""
    record, draw, numbers = Record(), random.Random(SEED), count()
    others = list_children()
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(Runtime(home))
        await stack.enter_async_context(runtime.open("shop"))  # so that the driver is installed once
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sessions = [
            Calls(await stack.enter_async_context(runtime.open("shop")), random.Random(draw.random()), folder, numbers)
            for _ in range(SESSIONS)
        ]
        for name in ("page", "export", "summary", "console", "change"):  # whose first call imports modules
            await record.note(name, getattr(sessions[0], name))
        before, began = measure("start", others), time.perf_counter()
        end = began + minutes * 60

        async def use(calls: Calls) -> None:
            own = random.Random(draw.random())
            while time.perf_counter() < end:
                await anyio.sleep(own.expovariate(1 / PAUSE))
                [call] = own.choices([*SHARES], [*SHARES.values()])
                await record.note(call.__name__, lambda call=call: call(calls))

        async with anyio.create_task_group() as tasks:
            for calls in sessions:
                tasks.start_soon(use, calls)
            await anyio.sleep(minutes * 30)
            measure("middle", others)
        elapsed = time.perf_counter() - began
        after = measure("end", others)
        record.show(elapsed)
    if after != before:
        print(f"  descriptors and children: {before} at the start, {after} at the end")
    return 1 if record.errors or after != before else 0


def main(minutes: float) -> int:
    introduce()
    with serve_sample() as port, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        Runtime(home).connections.save(SavedConnection(name="shop", type="elasticsearch", values={"port": port}))
        print(f"\n{SESSIONS} sessions of mixed calls for {minutes:g} minutes, seed {SEED}")
        return anyio.run(soak, home, minutes)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES))
