"""Many sessions of mixed calls: what fails, how long calls take, and what grows: bench_soak.py [MINUTES].

One runtime opens the sessions on the sample servers, the shop (Elasticsearch) and the library (Weaviate) in turns,
each with a forked driver's process of its own. Each session makes one call after another, drawn from a table. Halfway
through, the fork server is killed. Memory is proportional (shared pages are divided among their users), and takes root
to read. The variables SESSIONS, SEED and RATE (calls a second, of all sessions together) change the load.

The command fails if a call fails, if there are more descriptors, threads, processes or files at the end than at any
time in the first half, or if memory grows in the second half by more than the bounds below: with few calls a second, a
driver's process makes some for the first time after half an hour.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import AsyncExitStack, contextmanager
from itertools import count, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

import anyio
from benchmarks.compare import introduce

import dragoman
from dragoman import Delete, Filter, Insert, Runtime, SavedConnection, Sort, Update
from dragoman.sandbox.fork_server import forks_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator

    from dragoman import RowKey, Session

SESSIONS = int(os.environ.get("SESSIONS", "100"))
SEED = int(os.environ.get("SEED", "28"))
RATE = float(os.environ.get("RATE", "50"))
MINUTES = 10.0

HOST_GROWTH = 12.0
"""MB that the host may have at the end beyond the most of the first half: what it has varies with the calls."""

DRIVER_GROWTH = 1.0
"""MB that a driver's process may grow by in the mean in the second half."""

STEPS = 8
"""Measurements from the start to the end."""


class Database(NamedTuple):
    """What the calls say to one of the samples."""

    connection: str
    object: str
    count: str
    flag: str
    console: str
    row: dict[str, Any]
    ids: tuple[str, ...]


_UUID = "00000000-0000-4000-8000-0000000f%04d"
DATABASES = (
    Database("shop", "books", "pages", "in_stock", "GET /books/_count", {"title": "a row"}, ("soak-1", "soak-2")),
    Database("library", "Article", "words", "free", "GET /v1/meta", {"title": "a row"}, (_UUID % 1, _UUID % 2)),
)


class User:
    """One session after another on one of the samples, and its calls by name."""

    def __init__(self, runtime: Runtime, database: Database, draw: random.Random, numbers: Iterator[int]) -> None:
        self._runtime, self.database, self.draw = runtime, database, draw
        self._folder, self._numbers = Path(tempfile.gettempdir()), numbers
        self._stack = AsyncExitStack()
        self._session: Session
        self._key: RowKey | None = None

    async def open(self) -> None:
        """Open a session."""
        self._session = await self._stack.enter_async_context(self._runtime.open(self.database.connection))

    async def close(self) -> None:
        """Close the session."""
        await self._stack.aclose()

    async def reconnect(self) -> None:
        """Close the session, and open another one, twice if the first one fails."""
        await self.close()
        try:
            await self.open()
        except dragoman.DragomanError:
            await self.open()  # without a session, every later call would fail
            raise
        await self.page()

    async def page(self) -> None:
        """Read a page, sorted or not."""
        sort = [Sort(self.database.count, descending=True)] if self.draw.random() < 0.5 else []
        rows = self._session.rows(self.database.object, sort=sort)
        assert len((await rows.page(limit=100, offset=self.draw.randrange(100))).rows) == 100

    async def filtered_page(self) -> None:
        """Read a page of a filter."""
        chosen = [Filter(self.database.count, ">=", self.draw.randrange(200))]
        assert (await self._session.rows(self.database.object, filters=chosen).page(limit=50)).rows

    async def count(self) -> None:
        """Count the rows of a filter."""
        chosen = [Filter(self.database.flag, "=", "true")]
        assert await self._session.rows(self.database.object, filters=chosen).count() > 0

    async def summary(self) -> None:
        """Summarise a column."""
        assert await self._session.rows(self.database.object).summarize(self.database.count)

    async def description(self) -> None:
        """List the objects and describe one."""
        assert self.database.object in [node.name for node in await self._session.objects()]
        assert (await self._session.describe(self.database.object)).columns

    async def console(self) -> None:
        """Send a request of the console."""
        assert await self._session.console(self.database.console)

    async def change(self) -> None:
        """Insert this session's row, then change it, then delete it."""
        if self._key is None:
            change = Insert(self.database.object, self.database.row)
        elif self.draw.random() < 0.5:
            change = Update(self._key, {self.database.count: self.draw.randrange(200, 900)})
        else:
            change = Delete(self._key)
        [outcome] = await self._session.apply(await self._session.plan(change))
        assert outcome.status == "applied", outcome
        self._key = None if isinstance(change, Delete) else outcome.key

    async def export(self) -> None:
        """Export the rows of a filter into a file."""
        rows = self._session.rows(self.database.object, filters=[Filter(self.database.count, ">=", 300)])
        file = self._folder / f"{next(self._numbers)}.{self.draw.choice(('ndjson', 'csv', 'parquet'))}"
        result = await rows.export(file)
        assert result.rows > 0
        for written in self._folder.glob(f"{file.name}*"):
            written.unlink()

    async def load(self) -> None:
        """Load a file over rows of known ids, with a file that takes it back."""
        file = self._folder / f"{next(self._numbers)}.csv"
        lines = [f"{name},a loaded row,{self.draw.randrange(200, 900)}" for name in self.database.ids]
        file.write_text("\n".join([f"_key,title,{self.database.count}", *lines]))
        loaded = await dragoman.load(self._session, self.database.object, file=file, id="_key", on_conflict="overwrite")
        assert loaded.complete, loaded
        assert not loaded.counts["refused"], loaded
        for written in self._folder.glob(f"{file.name}*"):
            written.unlink()


SHARES = {
    User.page: 38, User.filtered_page: 20, User.count: 12, User.summary: 6, User.description: 8,
    User.console: 6, User.change: 5, User.export: 2, User.load: 2, User.reconnect: 1,
}  # fmt: skip
"""Of each call, in a hundred."""


class Record:
    """What happened: the seconds of each call and when it began, and errors."""

    def __init__(self) -> None:
        self.calls: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        self.errors: Counter[str] = Counter()
        self.began = time.perf_counter()

    async def note(self, name: str, call: Callable[[], Awaitable[None]]) -> None:
        """Make a call and note how it ended."""
        began = time.perf_counter()
        try:
            await call()
        except Exception as error:  # noqa: BLE001 - whatever fails is counted
            self.errors[f"{name}: {type(error).__name__}: {str(error)[:200]}"] += 1
            print(f"  at {began - self.began:.0f} s: {name}: {error!r:.300}", flush=True)
        else:
            self.calls[name].append((began - self.began, time.perf_counter() - began))

    def show(self, elapsed: float) -> None:
        """Print calls, percentiles at the start, at the end and of all, and errors."""
        print(f"\n  {'':<16}{'':>9}{'first tenth':>16}{'last tenth':>16}{'all':>26}")
        print(f"  {'call':<16}{'number':>9}" + f"{'p50':>8}{'p99':>8}" * 3 + f"{'most':>10}   ms")
        every = [call for calls in self.calls.values() for call in calls]
        for name, calls in (*self.calls.items(), ("all", every)):
            parts = [
                [seconds for began, seconds in calls if low * elapsed <= began <= high * elapsed]
                for low, high in ((0, 0.1), (0.9, 1), (0, 1))
            ]
            shown = "".join(f"{at(part, 0.5):>8.0f}{at(part, 0.99):>8.0f}" for part in parts)
            print(f"  {name:<16}{len(calls):>9,}{shown}{at(parts[-1], 1):>10.0f}")
        print(f"\n  {len(every) / elapsed:.1f} calls a second; errors: {sum(self.errors.values())}")
        for text, number in self.errors.most_common(10):
            print(f"  {number:>6} x {text}")


def at(seconds: Collection[float], part: float) -> float:
    """Return a percentile in milliseconds; not a number if there are no calls."""
    ordered = sorted(seconds)
    return ordered[int((len(ordered) - 1) * part)] * 1e3 if ordered else float("nan")


def proportional(pid: str) -> float:
    """Return the proportional memory of a process, in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def list_children() -> set[str]:
    """Return the numbers of this process's children that run."""
    numbers = {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}
    return {pid for pid in numbers if Path(f"/proc/{pid}/cmdline").read_bytes()}


def count_entries(folder: str | Path) -> int:
    """Return the number of entries of a folder."""
    return len(os.listdir(folder))  # noqa: PTH208 - strings are enough


class Usage(NamedTuple):
    """What host and children hold at one moment; memory in MB, the children's a mean."""

    descriptors: int
    threads: int
    children: int
    descriptors_of_children: int
    files: int
    host: float
    child: float
    most: float
    objects: int
    state: float


HEADING = (
    f"  {'minute':>7}{'host: MB':>10}{'objects':>10}{'descriptors':>13}{'threads':>9}   "
    f"{'children':>8}{'mean MB':>9}{'most':>7}{'descriptors':>13}   {'files':>7}{'MB':>7}"
)


def measure(home: Path, others: Collection[str]) -> Usage:
    """Return what this process, its children but for some, and the folders below `home` hold."""
    gc.collect()
    children = list_children().difference(others)
    theirs = [proportional(pid) for pid in children]
    files = [file for file in home.rglob("*") if file.is_file()]
    return Usage(
        descriptors=count_entries("/proc/self/fd"),
        threads=count_entries("/proc/self/task"),
        children=len(children),
        descriptors_of_children=sum(count_entries(f"/proc/{pid}/fd") for pid in children),
        files=len(files),
        host=proportional("self"),
        child=sum(theirs) / len(theirs),
        most=max(theirs),
        objects=len(gc.get_objects()),
        state=sum(file.stat().st_size for file in files) / 1e6,
    )


def show(minute: float, usage: Usage) -> None:
    """Print one line of the table."""
    host = f"{usage.host:>10.1f}{usage.objects:>10,}{usage.descriptors:>13}{usage.threads:>9}"
    children = f"{usage.children:>8}{usage.child:>9.2f}{usage.most:>7.1f}{usage.descriptors_of_children:>13}"
    print(f"  {minute:>7.1f}{host}   {children}   {usage.files:>7}{usage.state:>7.1f}", flush=True)


def list_faults(usages: list[Usage]) -> list[str]:
    """Return what grew beyond its bound."""
    first_half, last = usages[: len(usages) // 2 + 1], usages[-1]
    warm = first_half[-1]
    faults = [
        f"{name}: up to {before} in the first half, {after} at the end"
        for name, after in zip(Usage._fields[:5], last, strict=False)
        if name != "descriptors_of_children" and after > (before := max(getattr(usage, name) for usage in first_half))
    ]
    if last.descriptors_of_children > warm.descriptors_of_children + SESSIONS:
        faults.append(f"descriptors of drivers: {warm.descriptors_of_children}, then {last.descriptors_of_children}")
    if last.host > (most := max(usage.host for usage in first_half)) + HOST_GROWTH:
        faults.append(f"the host has up to {most:.1f} MB in the first half, {last.host:.1f} MB at the end")
    if last.child > warm.child + DRIVER_GROWTH:
        faults.append(f"a driver has {warm.child:.2f} MB after half the time, {last.child:.2f} MB at the end")
    return faults


async def soak(home: Path, minutes: float) -> int:
    """Run the sessions; return the exit code."""
    record, draw, numbers = Record(), random.Random(SEED), count()
    others, before = list_children(), count_entries("/proc/self/fd")
    async with Runtime(home) as runtime:
        databases = islice(cycle(DATABASES), SESSIONS)
        users = [User(runtime, database, random.Random(draw.random()), numbers) for database in databases]
        for user in users:
            await user.open()
        for user in users[:2]:
            for call in SHARES:  # whose first one imports modules
                await record.note(call.__name__, lambda call=call, user=user: call(user))
        print(HEADING)
        record.began = time.perf_counter()
        usages = [measure(home, others)]
        show(0, usages[0])
        end = record.began + minutes * 60

        async def use(user: User) -> None:
            while time.perf_counter() < end:
                await anyio.sleep(user.draw.expovariate(RATE / SESSIONS))
                [call] = user.draw.choices([*SHARES], [*SHARES.values()])
                await record.note(call.__name__, lambda call=call: call(user))

        async with anyio.create_task_group() as tasks:
            for user in users:
                tasks.start_soon(use, user)
            for step in range(1, STEPS):
                await anyio.sleep(record.began + minutes * 60 * step / STEPS - time.perf_counter())
                usages.append(measure(home, others))
                show(minutes * step / STEPS, usages[-1])
                if step == STEPS // 2 and (server := forks_here().server) is not None:
                    os.kill(server.process.pid, signal.SIGKILL)
        elapsed = time.perf_counter() - record.began
        for user in users[:2]:
            await record.note("reconnect", user.reconnect)  # so that the fork server runs again, whatever was drawn
        usages.append(measure(home, others))
        show(elapsed / 60, usages[-1])
        record.show(elapsed)
        for user in users:
            await user.close()
    faults = list_faults(usages)
    if (after := count_entries("/proc/self/fd")) > before + 2:
        faults.append(f"{before} descriptors before the runtime, {after} after it")
    if remaining := list_children() - set(others):
        faults.append(f"{len(remaining)} children outlive the runtime")
    for fault in faults:
        print(f"  grew: {fault}")
    return 1 if record.errors or faults else 0


@contextmanager
def serve_samples() -> Iterator[dict[str, int]]:
    """Serve the samples in a process of its own, and yield their ports by name."""
    words = [sys.executable, "-m", "dragoman", "sample", "shop", "library", "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        try:
            assert server.stdout
            yield {sample["name"]: sample["port"] for sample in json.loads(server.stdout.readline())["samples"]}
        finally:
            server.kill()


def main(minutes: float) -> int:
    introduce()
    with tempfile.TemporaryDirectory() as folder, serve_samples() as ports:
        home = Path(folder)
        tempfile.tempdir = os.environ["TMPDIR"] = str(home / "temporary")
        Path(tempfile.tempdir).mkdir()
        for name, kind in (("shop", "elasticsearch"), ("library", "weaviate")):
            values = {"port": ports[name], "host": "127.0.0.1"}
            Runtime(home).connections.save(SavedConnection(name=name, type=kind, values=values))
        print(f"\n{SESSIONS} sessions, {RATE:g} mixed calls a second for {minutes:g} minutes, seed {SEED}")
        return anyio.run(soak, home, minutes)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES))
