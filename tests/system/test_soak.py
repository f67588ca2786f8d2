"""Recipes run unattended for a long time: nothing is left behind, and nothing grows.

DRAGOMAN_SOAK=3600 makes it an hour; without it a short while shows that nothing is left behind, and that little grows.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from dragoman_sample import servers as samples
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from stranger import ROOT, stranger
from thorough import THOROUGH

SECONDS = int(os.environ.get("DRAGOMAN_SOAK", "60" if THOROUGH else "20"))
ROUNDS = 15
"""As many at least, however slow the machine."""

RECIPES = ROOT / "docs/how-to/recipes"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 600)]

RUNTIME = """
import gc, json, os, runpy, sys
from contextlib import redirect_stdout
from pathlib import Path
import anyio
from dragoman import Update

RECIPES = Path(sys.argv[1])
export, move, watch = (
    runpy.run_path(str(RECIPES / f"{name}.py"))["main"]
    for name in ("nightly_export", "move_documents", "watch_health")
)

async def recipe(main, runtime, *words):
    sys.argv = ["recipe", *words]
    with redirect_stdout(sys.stderr):
        return await main(runtime)

def children():
    return sorted(pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split())

def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def measure(worker):
    gc.collect()  # what is only waiting for its collection has not grown
    return {
        "host": resident("self"), "worker": resident(worker), "children": len(children()),
        "files": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task")),
    }

async def main(runtime):
    kept = children()
    async with runtime.open("shop") as held:
        [worker] = {*children()} - {*kept}
        while not Path("stop").exists():
            row = (await held.rows("books").page(limit=1)).rows[0]
            await held.apply(await held.plan(Update(row.key, {"price": 12.5})))
            await recipe(export, runtime, "shop", "nights")
            for here, there in (("shop", "attic"), ("attic", "shop")):
                assert await recipe(move, runtime, here, "books", there) == 0
            with anyio.move_on_after(0.3):
                await recipe(watch, runtime, "shop", "0.1")
            await anyio.sleep(0.2)
            print(json.dumps(measure(worker)), flush=True)
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Serve two pairs of clusters, a full and an empty one each: for one runtime, and for commands beside it."""
    folder = tmp_path_factory.mktemp("soak")
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    shell = stranger(folder / "home", cwd=folder, port=0, more={"TMPDIR": str(folder / "tmp")})
    with start_blocking_portal() as portal, ExitStack() as servers:
        for name in ("shop", "attic", "store", "cellar"):
            server = FakeElasticsearch(version="8.19.21")
            servers.enter_context(portal.wrap_async_context_manager(server))
            if name in ("shop", "store"):
                portal.call(samples.load, server.url)
                books = json.load(urllib.request.urlopen(f"{server.url}/books"))["books"]["mappings"]
            else:
                data, head = json.dumps({"mappings": books}).encode(), {"Content-Type": "application/json"}
                wanted = urllib.request.Request(f"{server.url}/books", data, head, method="PUT")
                urllib.request.urlopen(wanted).close()
            shell(f"dragoman connections add {name} --type elasticsearch --port {server.port} --auth none --yes")
        yield shell


def test_recipes_that_run_for_long_leave_nothing_behind_and_do_not_grow(machine):
    (machine.cwd / "soak.py").write_text(RUNTIME)
    (machine.cwd / "changes.ndjson").write_text('{"op": "delete", "object": "orders", "id": "1177"}\n')
    words = machine.words("run", "soak.py", str(RECIPES))
    log = machine.cwd / "log"
    ends = time.monotonic() + SECONDS
    with (machine.cwd / "figures").open("w") as figures, log.open("w+") as said:
        runtime = subprocess.Popen(words, stdout=figures, stderr=said, cwd=machine.cwd, env=machine.variables())
        try:
            commands = 0
            while time.monotonic() < ends or len(figures_of(machine)) < ROUNDS:
                commands += run_commands(machine)
                assert runtime.poll() is None, log.read_text()
            workers = descendants(runtime.pid)
            (machine.cwd / "stop").touch()
            assert runtime.wait(120) == 0, log.read_text()
        finally:
            runtime.kill()
            runtime.wait()
    rounds = figures_of(machine)
    assert workers
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert left_over(machine) == []
    told = growth(rounds)
    print(f"\n{len(rounds)} rounds on one runtime, {commands} commands beside it, {SECONDS} s: {told}")
    for what, (first, second) in told.items():
        margin = 2_000_000 + first * 0.03 if what in ("host", "worker") else 2
        assert second <= first + margin, f"{what} grew from {first:,} to {second:,}"


def figures_of(machine):
    return [json.loads(line) for line in (machine.cwd / "figures").read_text().splitlines()]


def run_commands(machine):
    """Run each recipe once as a command, and look that each takes its processes with it."""
    ran = 0
    for words in (
        ("run", str(RECIPES / "nightly_export.py"), "store", "backup"),
        ("run", str(RECIPES / "move_documents.py"), "store", "books", "cellar"),
        ("run", str(RECIPES / "move_documents.py"), "cellar", "books", "store"),
        ("console", "store", "-f", str(RECIPES / "smoke.es"), "--stop-on-error", "--var", "index=orders"),
        ("apply", "store", "changes.ndjson", "--undo", "undo.ndjson", "--yes"),
        ("apply", "store", "undo.ndjson", "--yes"),
    ):
        process = subprocess.Popen(
            machine.words(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=machine.cwd,
            env=machine.variables(), start_new_session=True,
        )  # fmt: skip
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, f"{words}\n{out}\n{err}"
        assert not session_of(process.pid), words
        ran += 1
    (machine.cwd / "undo.ndjson").unlink()  # the one thing that is never overwritten
    return ran


def session_of(leader):
    """Return the processes of a session that live."""
    alive = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            alive += [entry.name] if int(session) == leader and state != "Z" else []
    return alive


def descendants(pid):
    try:
        texts = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # it ended meanwhile
        return []
    children = [child for text in texts for child in text.split()]
    return children + [below for child in children for below in descendants(child)]


def left_over(machine):
    """Return what nobody would miss: temporary files, and unfinished ones beside the results."""
    places = [machine.cwd / "tmp", machine.cwd / "nights", machine.cwd / "backup"]
    found = [path for place in places for path in place.rglob("*") if path.is_file()]
    return [path for path in found if path.name.startswith(".") or path.is_relative_to(places[0])]


def growth(rounds):
    """Return what the earlier and the later half needed, after a fifth to warm up: memory as a rule, else at most."""
    steady = rounds[len(rounds) // 5 :]
    halves = steady[: len(steady) // 2], steady[len(steady) // 2 :]
    measures = {what: statistics.median if what in ("host", "worker") else max for what in rounds[0]}
    return {what: [round(take([one[what] for one in half])) for half in halves] for what, take in measures.items()}
