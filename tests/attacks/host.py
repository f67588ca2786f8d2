"""One host, attacked at one level: python tests/attacks/host.py LEVEL SENTINEL WHEEL fork|spawn [ATTACK...]

Prints how each attack ended, as JSON. The sentinel stands for the secrets of others: it must also be in the
environment at the start, because that is what `/proc` shows of it.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import zipfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
from tests.attacks.levels import LEVELS, replace_by_nothing
from tests.attacks.place import inherited, lay_out, lying_around, serving
from tests.attacks.table import ATTACKS, Attack

from dragoman.sandbox.bare_process import Spare
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.fork_server import ForkClaim, forks_here
from dragoman.sandbox.host_imports import find_host_imports
from dragoman.sandbox.launch import Launch
from dragoman_api.connections import Profile, Secrets
from dragoman_api.errors import DeadlineExceededError, DragomanError, DriverFaultError
from dragoman_api.exports import ExportRequest
from dragoman_api.grid import PageRequest
from dragoman_registry.ip_addresses import Nearness
from fake_network import Names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.sandbox.bare_process import Child

SENTINEL = sys.argv[2] if len(sys.argv) > 2 else ""
_AT_ONCE = 6


class Ahead(Spare):
    """A spare that is filled again when it is taken."""

    def take(self) -> Child | None:
        child = super().take()
        self.fill()
        return child


STARTS = {"fork": ForkClaim, "spawn": Ahead}


LED = {
    "moved.internal": ["127.0.0.1"],
    "mixed.internal": ["8.8.8.8", "127.0.0.1"],
    "wrapped.internal": ["::ffff:127.0.0.1"],
    "metadata.internal": ["169.254.169.254"],
    "login.internal": ["127.0.0.1"],
}
"""Names that the driver may reach → where they lead now; those that were reached before led to a public address."""


class Lookups(set[str]):
    """Notes which names are looked up; those made up for this have made-up addresses, and no packet goes there."""

    def __init__(self) -> None:
        self._names = Names(SimpleNamespace(setattr=setattr))
        self._names.dead.add("8.8.8.8")
        self._names.answers |= LED | {"localhost.example": ["127.0.0.1"]}
        self._real = anyio.getaddrinfo
        anyio.getaddrinfo = self  # type: ignore[assignment]

    async def __call__(self, host: str, *arguments: Any, **options: Any) -> Any:
        if host not in LED:
            self.add(host)
        if host.endswith(".example"):
            self._names.answers[host] = ["127.0.0.1"]
        return await self._real(host, *arguments, **options)


class House:
    """The host: a worker for the attacks that leave it alive, a fresh one for each of the others."""

    def __init__(self, launch: Launch, spare: Spare, targets: dict[str, Any]) -> None:
        self._launch, self._spare, self._targets = launch, spare, targets
        self.outcomes: dict[str, str] = {}

    def _worker(self, printed: list[str]) -> Worker:
        return Worker(self._launch, spare=self._spare, on_log=printed.append)

    async def attack(self, attacks: Iterable[Attack]) -> str:
        """Make them all; tell how the driver was confined."""
        alone = [attack for attack in attacks if attack.alone]
        rest = [attack for attack in attacks if not attack.alone]
        report, printed = "", list[str]()
        while rest:
            async with self._worker(printed) as worker:
                report = str(worker.report)
                while rest and not worker.ended.is_set():
                    attack = rest.pop(0)
                    self.outcomes[attack.name] = await self._one(worker, attack, printed)
        limiter = anyio.CapacityLimiter(_AT_ONCE)
        async with anyio.create_task_group() as tasks:
            for attack in alone:
                tasks.start_soon(self._alone, attack, limiter)
        return report

    async def _alone(self, attack: Attack, limiter: anyio.CapacityLimiter) -> None:
        printed: list[str] = []
        async with limiter, self._worker(printed) as worker:
            self.outcomes[attack.name] = await self._one(worker, attack, printed)

    async def _one(self, worker: Worker, attack: Attack, printed: list[str]) -> str:
        try:
            end = await self._call(worker, attack)
        except DeadlineExceededError:
            kill = "deadline, killed" in (attack.full, attack.end)
            with anyio.move_on_after(10 if kill else 1.2):
                await worker.ended.wait()
            return "deadline, killed" if worker.ended.is_set() else "deadline"
        except DragomanError as error:
            if not worker.ended.is_set():
                return f"error: {error.message}"
            return (
                "killed"
                if isinstance(error, DriverFaultError)
                else str(error.details["status"]).removeprefix("signal ")
            )
        if end == "succeeded" and attack.full == "dropped":
            loud = sum(map(len, printed)) > 1 << 20 or any("\x1b" in line for line in printed)
            return "succeeded" if loud or "/dev/zero" in _descriptors() else "dropped"
        return end

    async def _call(self, worker: Worker, attack: Attack) -> str:
        if attack.hook == "fetch_page":
            await worker.call("fetch_page", PageRequest(object=attack.name), deadline=attack.deadline)
            return "succeeded"
        if attack.hook == "export_rows":
            async for _ in worker.export(ExportRequest(object=attack.name), deadline=attack.deadline):
                pass
            return "succeeded"
        wanted = json.dumps({"attack": attack.name, "targets": self._targets})
        answer = await worker.call("describe_object", wanted, deadline=attack.deadline)
        return str(answer.structure)


def _descriptors() -> set[str]:
    """Tell which files this host holds open."""
    held = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            held.add(str(link.readlink()))
    return held


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


async def in_process(tree: Path, attacks: Iterable[Attack]) -> dict[str, str]:
    """Make the attacks inside the host, where a driver without a process of its own would be."""
    sys.path.insert(0, str(tree))
    import_module("dragoman_hostile.driver")
    book = import_module("dragoman_hostile.book")
    return {attack.name: await book.outcome(attack.name, SimpleNamespace()) for attack in attacks}


async def main(level: str, wheel: str, way: str, names: list[str]) -> None:
    """Unpack the driver as an installation does, and let it loose."""
    replace_by_nothing(LEVELS[level])
    attacks = [ATTACKS[name] for name in names] if names else list(ATTACKS.values())
    folder = Path(tempfile.mkdtemp(prefix="dragoman-attacks-"))
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "tree")
        print(json.dumps(await attacked(level, attacks, folder, way)))
    finally:
        shutil.rmtree(folder)


async def attacked(level: str, attacks: list[Attack], folder: Path, way: str) -> dict[str, Any]:
    """Prepare everything that is aimed at, and make the attacks."""
    trees = (folder / "tree",)
    if level == "in-process":
        with inherited(lay_out(folder, SENTINEL)["key"]):
            return {"report": "none", "outcomes": await in_process(trees[0], attacks), "lookups": [], "grown_kib": 0}
    targets: dict[str, Any] = lay_out(folder, SENTINEL)
    lookups, driver = Lookups(), "dragoman_hostile.driver:Driver"
    secret = Profile(name="n", type="t", host="db", port=1, secrets=Secrets(values={"password": SENTINEL}))
    neighbour = Launch(driver=driver, trees=trees, profile=secret, trusted=True)
    async with serving(targets) as ports:
        approved = (("127.0.0.1", ports.port), ("localhost.example", ports.port))
        approved += tuple((name, ports.other_port) for name in LED if name != "login.internal")
        launch = Launch(
            driver=driver,
            trees=trees,
            approved=approved,
            further=(("login.internal", ports.other_port),),
            remembered={name: Nearness.PUBLIC for name in LED if name not in ("metadata.internal", "login.internal")},
            trusted=True,
        )
        with inherited(targets["key"]), STARTS[way](find_host_imports()) as spare:
            spare.fill()
            server = forks_here().server
            async with Worker(neighbour) as other:
                targets |= vars(ports)
                targets |= {
                    "neighbour": other._child.process.pid,
                    "origin": server.process.pid if server else os.getpid(),  # that the attacker was started from
                    "may_unshare": os.getuid() == 0,
                    "around": lying_around(),
                }
                house = House(launch, spare, targets)
                before = _peak()
                report = await house.attack(attacks)
                assert not other.ended.is_set(), "the neighbour lives"
                assert forks_here().server is server, "and so does the server"
    return {
        "report": report,
        "outcomes": house.outcomes,
        "lookups": sorted(lookups),
        "grown_kib": _peak() - before,  # of the host's memory at its highest
    }


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], *sys.argv[3:5], sys.argv[5:])
