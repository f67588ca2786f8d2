"""Processes from a fork server are like spawned ones, survive it, and cannot be told apart by how they end."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from dragoman import Runtime
from dragoman.sandbox import bare_process, fork_server, levels
from dragoman.sandbox.fork_server import ForkClaim, ForkServer, ThreadForks
from dragoman.sandbox.host_imports import find_host_imports
from dragoman_api.connections import Health
from dragoman_api.errors import DriverCrashedError, SandboxError
from dragoman_worker.main import FORK_SERVER
from slow_cases import mostly_slow

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

    from dragoman.sandbox.driver_process import Worker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT SHOWN HERE: only Linux has fork servers")

STATE = """
import ctypes, gc, locale, resource, signal, stat, threading
descriptors = []
for number in range(64):
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        continue
    descriptors.append((stat.S_IFMT(mode), os.get_inheritable(number)))
limits = {kind: resource.getrlimit(getattr(resource, kind)) for kind in dir(resource) if kind.startswith("RLIMIT")}
umask = os.umask(0)
return {
    "parent": os.getppid(), "session": os.getsid(0) == os.getpid(), "group": os.getpgid(0) == os.getpid(),
    "folder": os.getcwd(), "umask": umask, "environment": dict(os.environ), "words": [sys.argv[0], sys.argv[3:]],
    "path": sys.path, "flags": str(sys.flags), "bytecode": sys.dont_write_bytecode, "finders": len(sys.meta_path),
    "locale": locale.setlocale(locale.LC_ALL), "encoding": sys.stdout.encoding, "collector": gc.get_threshold(),
    "collects": gc.isenabled(), "threads": threading.active_count(), "main": threading.main_thread().name,
    "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
    "handlers": [str(signal.getsignal(number)).partition(" at ")[0] for number in (2, 13, 15, 17)],
    "limits": limits, "descriptors": sorted(descriptors), "user": [os.getresuid(), os.getresgid(), os.getgroups()],
    "nice": os.getpriority(os.PRIO_PROCESS, 0), "affinity": sorted(os.sched_getaffinity(0)),
}
"""

CHANCE = """
import random, secrets, ssl, tempfile, uuid
return [random.random(), ssl.RAND_bytes(8).hex(), secrets.token_hex(8), uuid.uuid4().hex,
        next(tempfile._get_candidate_names())]
"""

PING = """
class Driver:
    @hookimpl
    async def ping(self):
        return Health(ok=True)
"""


async def attempt(worker: Worker, name: str = "x") -> Any:
    """Run what an attempting driver holds."""
    return json.loads((await worker.call("describe_object", name)).structure)


def children() -> set[int]:
    """Return the processes that this thread has started and not reaped."""
    return set(map(int, Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()))


def server_of(forks: ThreadForks) -> ForkServer:
    """Return the server that a test has."""
    assert forks.server is not None
    return forks.server


async def test_a_forked_process_differs_in_nothing_from_a_spawned_one(workshop: Workshop, forks: ThreadForks) -> None:
    states = {}
    for way, claims in (("fork", 1), ("spawn", 0)):
        forks.claims = claims
        if not claims:
            forks._end()
        async with workshop.attempting(STATE) as worker:
            assert (worker._child.origin is not None) == (way == "fork")
            states[way] = await attempt(worker)
            status = Path(f"/proc/{worker._child.process.pid}/status").read_text().splitlines()
            names = (
                "Uid",
                "Groups",
                "NoNewPrivs",
                "Threads",
                "CapEff",
                "CapBnd",
                "CapAmb",
                "SigIgn",
                "SigCgt",
                "Seccomp",
            )
            states[way] |= {line: "" for line in status if line.split(":")[0] in names}
    forks.claims = 1
    assert states["fork"]["parent"] == os.getpid(), "the kernel ends it with the host, and tells the host how it ended"
    assert states["fork"] == states["spawn"]


@pytest.mark.slow
async def test_no_two_forks_draw_the_same_numbers(workshop: Workshop, forks: ThreadForks) -> None:
    draws = []
    for _ in range(3):
        async with workshop.attempting(CHANCE) as worker:
            draws.append(await attempt(worker))
    assert [len(set(column)) for column in zip(*draws, strict=True)] == [3] * 5


@pytest.fixture(params=["fork", "spawn"])
def way(request: pytest.FixtureRequest) -> str:
    """Start drivers' processes in both ways; what these tests fork comes from the server of all tests."""
    if request.param == "spawn":
        request.getfixturevalue("forks").claims = 0
    return str(request.param)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("os._exit(7)", "exit status 7"),
        ("os.abort()", "signal SIGABRT"),
        (  # which the C library sends to the thread id that it remembers
            (
                "import signal, threading; main = threading.main_thread().ident\n"
                "threading.Thread(target=signal.pthread_kill, args=(main, 15)).start(); time.sleep(2)"
            ),
            "signal SIGTERM",
        ),
        ("import ctypes; ctypes.string_at(1)", "signal SIGSEGV"),
        ("os.kill(os.getpid(), 15)", "signal SIGTERM"),
        ("import threading; threading.Thread(target=os._exit, args=(5,)).start(); time.sleep(9)", "exit status 5"),
    ],
)
@pytest.mark.slow
async def test_the_host_learns_how_a_process_ended(workshop: Workshop, way: str, end: str, status: str) -> None:
    async with workshop.attempting(end) as worker:
        with pytest.raises(DriverCrashedError) as caught:
            await attempt(worker)
    assert caught.value.details["status"] == status
    assert worker._child.process.pid not in children()


@pytest.mark.slow
async def test_a_server_that_dies_is_replaced_and_open_connections_live_on(
    workshop: Workshop, forks: ThreadForks, caplog: pytest.LogCaptureFixture
) -> None:
    async with workshop.worker(PING) as first:
        server = server_of(forks)
        os.kill(server.process.pid, signal.SIGKILL)
        while Path(f"/proc/{server.process.pid}/stat").read_text().split()[2] != "Z":
            await anyio.sleep(0.01)
        assert await first.call("ping") == Health(ok=True)
        async with workshop.worker(PING) as second:
            assert second._child.origin is not None
            assert server_of(forks) is not server
            assert await first.call("ping") == await second.call("ping") == Health(ok=True)
    [record] = caplog.records
    assert (record.name, record.levelno) == ("dragoman.sandbox", logging.WARNING)
    assert "it ended with signal 9" in record.getMessage()
    assert server.process.pid not in children()


def boot_server(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """Change what a fork server runs, and leave spawned processes as they are."""
    only_there = f"sys.argv[2].startswith({FORK_SERVER!r}) and exec({change!r}); from dragoman_worker.main"
    monkeypatch.setattr(bare_process, "BOOT", bare_process.BOOT.replace("from dragoman_worker.main", only_there))


@pytest.mark.slow
async def test_servers_that_die_leave_their_starts_to_spawned_processes(
    workshop: Workshop, forks: ThreadForks, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot_server(monkeypatch, "raise SystemExit('no \\x1b[31mroom')")
    before = children()
    for number in range(fork_server.MOST_FAILURES + 1):
        async with workshop.worker(PING) as worker:
            assert worker._child.origin is None
            assert await worker.call("ping") == Health(ok=True)
        assert len(caplog.records) == min(number + 1, fork_server.MOST_FAILURES)
    assert "exit status 1: 'no \\x1b[31mroom'; the next one is started" in caplog.records[0].getMessage()
    assert "drivers' processes are spawned now" in caplog.records[-1].getMessage()
    assert children() == before


@pytest.mark.slow
async def test_a_machine_that_cannot_fork_in_this_way_spawns_and_says_nothing(
    workshop: Workshop, forks: ThreadForks, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A C library that keeps its thread id elsewhere, or a kernel that does not tell where."""
    boot_server(monkeypatch, "import dragoman_worker.lockdown.kernel as k; k.prctl = lambda *_: 0")
    for _ in range(2):
        async with workshop.worker(PING) as worker:
            assert worker._child.origin is None
        assert forks.server is None
    assert caplog.records == []


def answer(code: int) -> str:
    """Return a change of a fork server whose kernel refuses its call with an error."""
    return f"""
import dragoman_worker.fork_server as served
def refuse(self):
    raise OSError({code}, "refused")
served.Fork.__call__ = refuse
"""


@pytest.mark.parametrize("code", mostly_slow([errno.EINVAL, errno.EPERM, errno.ENOSYS], fast=[errno.EPERM]))
async def test_an_environment_that_refuses_this_way_to_fork_spawns(
    workshop: Workshop, forks: ThreadForks, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """An emulator or a container's filter may know no `CLONE_PARENT`."""
    boot_server(monkeypatch, answer(code))
    before = children()
    async with workshop.worker(PING) as worker:
        assert worker._child.origin is None
        assert await worker.call("ping") == Health(ok=True)
    assert (forks.server, forks._failures) == (None, fork_server.MOST_FAILURES), "no other server is tried"
    assert children() == before


@pytest.mark.parametrize("code", mostly_slow([errno.EAGAIN, errno.ENOMEM], fast=[errno.EAGAIN]))
async def test_a_machine_without_room_for_a_process_is_an_error_and_keeps_its_server(
    workshop: Workshop, forks: ThreadForks, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    boot_server(monkeypatch, answer(code))
    with pytest.raises(SandboxError, match="the driver's process cannot be started"):
        async with workshop.worker(PING):
            pass
    assert not server_of(forks).process.ended


@pytest.mark.parametrize("status", [None, "Seccomp:\t2\n"])
@pytest.mark.slow
async def test_a_server_whose_filters_cannot_be_counted_is_not_used(
    workshop: Workshop, forks: ThreadForks, monkeypatch: pytest.MonkeyPatch, status: str | None
) -> None:
    """Its filter would pass for that of a process that has none of its own."""
    read_status, before = levels.read_status, children()

    def read(pid: int) -> str | None:
        server = forks.server
        return status if server is not None and pid == server.process.pid else read_status(pid)

    monkeypatch.setattr(levels, "read_status", read)
    async with workshop.worker(PING) as worker:
        assert worker._child.origin is None
        assert await worker.call("ping") == Health(ok=True)
        assert (forks.server, forks._failures) == (None, fork_server.MOST_FAILURES), "no other server is tried"
    assert children() == before


def reap(pid: int) -> None:
    """Reap a process behind the back of its owner, as a program's own handler of SIGCHLD does."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("descriptors", [True, False], ids=["with pidfd", "without pidfd"])
@pytest.mark.slow
async def test_processes_that_the_program_reaps_have_ended(
    workshop: Workshop, forks: ThreadForks, monkeypatch: pytest.MonkeyPatch, descriptors: bool
) -> None:
    if not descriptors:
        monkeypatch.delattr(os, "pidfd_open")
    signals: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number, kill=os.kill: signals.append(pid) or kill(pid, number))
    async with workshop.worker(PING) as first:
        server = server_of(forks)
        reap(server.process.pid)
        async with workshop.worker(PING) as second:
            assert second._child.origin is not None
            assert server_of(forks) is not server
            if descriptors:  # else a thread waits for it, and may be the one that reaps it
                reap(first._child.process.pid)
                with anyio.fail_after(5):
                    await first.ended.wait()
                assert first.obituary().details["status"] == "an unknown status"
            assert await second.call("ping") == Health(ok=True)
    reap(server_of(forks).process.pid)
    signals.clear()
    forks.release()
    forks.claims = 1
    assert signals == [], "the numbers may be those of other processes"


def test_a_number_that_another_child_has_meanwhile_does_not_make_it_ours() -> None:
    first = subprocess.Popen(["/bin/true"])
    process = bare_process.Process(first.pid)
    assert first.wait() == 0
    with subprocess.Popen(["/bin/sleep", "60"]) as stranger:
        process.pid = stranger.pid  # as if the kernel had used the number again
        process.end()
        assert (process.ended, process.returncode) == (True, None)
        assert stranger.poll() is None
        stranger.kill()


async def test_a_runtime_closes_although_its_server_cannot_be_ended(
    home: Path, forks: ThreadForks, monkeypatch: pytest.MonkeyPatch
) -> None:
    forks.claims = 0
    runtime = await anyio.to_thread.run_sync(Runtime)

    def fail() -> None:
        raise PermissionError

    await runtime.__aenter__()
    server = server_of(forks)
    monkeypatch.setattr(server, "end", fail)
    with pytest.raises(PermissionError):
        await runtime.__aexit__(None, None, None)
    ForkServer.end(server)
    async with runtime:  # it refuses if the tasks of its first life have not ended
        assert server_of(forks) is not server, "a second life has a server, too"
    forks.claims = 1


async def test_a_server_that_hangs_is_killed_and_the_start_goes_on(
    workshop: Workshop, forks: ThreadForks, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workshop.worker(PING) as first:
        server = server_of(forks)
        os.kill(server.process.pid, signal.SIGSTOP)
        monkeypatch.setattr(fork_server, "SECONDS", 0.2)
        async with workshop.worker(PING) as second:
            assert second._child.origin is None
            assert await first.call("ping") == await second.call("ping") == Health(ok=True)
    assert "did not answer within 0.2 s and was killed" in caplog.text
    assert server.process.pid not in children()


@pytest.mark.parametrize("reply", mostly_slow(["os.getppid()", "1", "os.getpid() + 100_000"], fast=["os.getppid()"]))
async def test_a_server_that_names_a_foreign_process_is_killed_and_that_process_is_left_alone(
    workshop: Workshop,
    forks: ThreadForks,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    reply: str,
) -> None:
    change = f"""
import os, struct
import dragoman_worker.channel as channel
class Reply:
    def pack(self, pid):
        return struct.pack("=i", {reply})
channel.FORK_REPLY = Reply()
"""
    boot_server(monkeypatch, change)
    async with workshop.worker(PING) as worker:
        assert worker._child.origin is None
        assert await worker.call("ping") == Health(ok=True)
    assert "which is no child of this one, and was killed" in caplog.text


@pytest.mark.slow
async def test_a_process_whose_server_died_before_it_told_of_it_is_ended(
    workshop: Workshop, forks: ThreadForks, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = """
import os
import dragoman_worker.channel as channel
class Reply:
    done = []
    def pack(self, pid, pack=channel.FORK_REPLY.pack):
        self.done.append(pid)
        return pack(pid) if len(self.done) == 1 else os._exit(1)
channel.FORK_REPLY = Reply()
"""
    boot_server(monkeypatch, change)
    before = children()
    async with workshop.worker(PING) as first:
        assert first._child.origin is not None
        async with workshop.worker(PING) as second:
            assert second._child.origin is None
            assert children() - before == {first._child.process.pid, second._child.process.pid}
            async with workshop.worker(PING) as third:  # of another server, which tells of its first one
                assert third._child.origin is not None
                async with workshop.worker(PING) as fourth:
                    assert fourth._child.origin is None
                    for worker in (first, second, third, fourth):
                        assert await worker.call("ping") == Health(ok=True)
    assert children() == before


async def test_a_process_is_told_by_its_command_line_to_be_of_one_server_alone() -> None:
    host_imports = await anyio.to_thread.run_sync(find_host_imports)
    servers = [ForkServer(host_imports) for _ in range(2)]
    try:
        first, second = (server.process.words for server in servers)
        assert first != second
        for server in servers:
            with anyio.fail_after(10):
                while Path(f"/proc/{server.process.pid}/cmdline").read_bytes() != server.process.words:
                    await anyio.sleep(0.01)
    finally:
        for server in servers:
            server.end()


@pytest.mark.slow
async def test_many_starts_at_once_share_one_server(workshop: Workshop, forks: ThreadForks) -> None:
    make = workshop.again(PING)
    pids: set[int] = set()

    async def start() -> None:
        async with make() as worker:
            assert worker._child.origin is not None
            pids.add(worker._child.process.pid)
            assert await worker.call("ping") == Health(ok=True)

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(start)
    assert len(pids) == 12
    assert children() - pids == children(), "all are reaped"


async def test_a_start_that_is_cancelled_at_any_moment_leaves_no_process(
    workshop: Workshop, forks: ThreadForks
) -> None:
    make = workshop.again(PING)
    async with make():
        pass
    before, descriptors = children(), len([*Path("/proc/self/fd").iterdir()])
    for seconds in (0, 0.001, 0.003, 0.006, 0.01, 0.02):
        with anyio.move_on_after(seconds):
            async with make():
                await anyio.sleep_forever()
    with anyio.fail_after(5):  # a thread may still wait for the server, with descriptors and no process yet
        while children() != before or len([*Path("/proc/self/fd").iterdir()]) > descriptors + 1:
            await anyio.sleep(0.02)


async def test_a_start_that_is_cancelled_does_not_wait_for_the_server(workshop: Workshop, forks: ThreadForks) -> None:
    make = workshop.again(PING)
    async with make():
        pass
    server, before = server_of(forks), children()
    os.kill(server.process.pid, signal.SIGSTOP)
    with anyio.move_on_after(0.05) as scope:
        async with make():
            pass
    assert scope.cancelled_caught
    assert not server.process.ended, "nothing waited until it was killed"
    os.kill(server.process.pid, signal.SIGCONT)
    async with make():  # which waits until the late child is discarded
        assert server_of(forks) is server
    with anyio.fail_after(5):
        while children() != before:
            await anyio.sleep(0.02)


async def test_a_claim_keeps_a_spare_where_no_server_can_be(workshop: Workshop, forks: ThreadForks) -> None:
    before = children()
    with ForkClaim(await anyio.to_thread.run_sync(find_host_imports)) as claim:
        forks._failures = fork_server.MOST_FAILURES
        claim.fill()
        child = claim._child
        assert child is not None
        async with workshop.worker(PING, spare=claim) as worker:
            assert worker._child is child
            assert await worker.call("ping") == Health(ok=True)
        claim.fill()
    assert children() == before


async def test_a_runtime_without_a_sandbox_keeps_a_spare(home: Path, forks: ThreadForks) -> None:
    forks.claims = 0
    before = children()
    async with await anyio.to_thread.run_sync(lambda: Runtime(sandbox="off")) as runtime:
        assert forks.server is None
        assert runtime._spare is not None
        assert runtime._spare._child is not None
    assert children() == before
    forks.claims = 1


async def test_the_last_claim_ends_the_server_and_leaves_the_processes(workshop: Workshop, forks: ThreadForks) -> None:
    forks.claims = 0
    host_imports = await anyio.to_thread.run_sync(find_host_imports)
    with ForkClaim(host_imports) as outer:
        with ForkClaim(host_imports) as inner:
            inner.fill()
            server = server_of(forks)
        outer.fill()
        assert forks.server is server, "one server for both"
        async with workshop.worker(PING) as worker:
            outer.__exit__(None, None, None)
            assert server.process.returncode == -signal.SIGKILL
            assert await worker.call("ping") == Health(ok=True)
    assert forks.claims == 0
    forks.claims = 1


def test_a_thread_that_ends_takes_its_server_along() -> None:
    pids: list[int] = []

    def claim() -> None:
        lease = ForkClaim(find_host_imports())
        lease.fill()
        pids.append(server_of(fork_server.forks_here()).process.pid)

    thread = threading.Thread(target=claim)
    thread.start()
    thread.join()
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], os.WNOHANG)


async def test_without_a_sandbox_a_process_is_spawned_because_a_server_has_given_up_too_much(
    workshop: Workshop, forks: ThreadForks
) -> None:
    async with workshop.attempting("return os.fork() and 1 or os._exit(0)", policy="off", trusted=True) as worker:
        assert worker._child.origin is None
        assert await attempt(worker) == 1


async def test_a_server_has_given_up_all_that_its_forks_do_not_need(
    workshop: Workshop, forks: ThreadForks, full_level: None
) -> None:
    async with workshop.worker(PING, secrets={"password": "hunter2"}):
        process = Path(f"/proc/{server_of(forks).process.pid}")
        status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
        none = dict.fromkeys(("CapEff", "CapPrm", "CapInh"), f"{0:016x}")
        expected = {"Threads": "1", "NoNewPrivs": "1", "Seccomp": "2", **none}
        assert {name: status[name] for name in expected} == expected
        assert process.joinpath("environ").stat().st_uid == 0, "it is not dumpable"
        if os.geteuid() != 0:
            return  # nobody but root reads more of such a process
        kinds = [str(link.readlink()).partition(":")[0] for link in (process / "fd").iterdir()]
        assert sorted(kinds) == ["/dev/null", "pipe", "pipe", "socket"]
        assert b"hunter2" not in memory_of(process)


async def test_the_servers_filter_cannot_stand_in_for_that_of_a_process(
    workshop: Workshop, forks: ThreadForks, full_level: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = """
import os
from dragoman_worker.lockdown import seccomp
install, server = seccomp.install, os.getpid()
seccomp.install = lambda program: install(program) if os.getpid() == server else None
"""
    boot_server(monkeypatch, change)
    with pytest.raises(SandboxError, match="Seccomp_filters"):
        async with workshop.worker("print('loaded')\nclass Driver: ...", policy="require"):
            pass
    assert workshop.lines == [], "no driver code ran"


def memory_of(process: Path) -> bytes:
    """Return what a process has in its writable memory."""
    found = bytearray()
    with (process / "mem").open("rb", buffering=0) as memory:
        for line in (process / "maps").read_text().splitlines():
            low, high = (int(text, 16) for text in line.split()[0].split("-"))
            if " rw" in line and "[v" not in line:
                memory.seek(low)
                found += memory.read(high - low)
    return bytes(found)


HOST = """
import sys
from pathlib import Path
import anyio
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.fork_server import ForkClaim, forks_here
from dragoman.sandbox.host_imports import find_host_imports
from dragoman.sandbox.launch import Launch

async def main():
    with ForkClaim(find_host_imports()):
        async with Worker(Launch(driver="tiny_driver:Driver", trees=(Path(sys.argv[1]),))) as worker:
            assert worker._child.origin is not None
            print(worker._child.process.pid, forks_here().server.process.pid, flush=True)
            await worker.call("describe_object", "x")

anyio.run(main)
"""


@pytest.mark.slow
def test_the_death_of_the_host_ends_the_server_and_a_driver_that_blocks(workshop: Workshop) -> None:
    from tests.worker.conftest import attempts

    tree = workshop.write(attempts("while True: pass"))
    with subprocess.Popen([sys.executable, "-c", HOST, str(tree)], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        processes = [Path(f"/proc/{pid}") for pid in host.stdout.readline().split()]
        time.sleep(0.3)  # into the block
        assert all(process.exists() for process in processes)
        host.kill()
        host.wait()
    for _ in range(100):
        if not any(process.exists() and "\nState:\tZ" not in (process / "status").read_text() for process in processes):
            return
        time.sleep(0.05)
    pytest.fail("one outlived its host by 5 s")


@pytest.mark.parametrize("processes", ["fork", "spawn"])
async def test_the_settings_say_how_a_runtimes_processes_start(home: Path, forks: ThreadForks, processes: str) -> None:
    forks.claims = 0
    (home / "config").mkdir(parents=True)
    (home / "config/config.toml").write_text(f'processes = "{processes}"\n')
    async with await anyio.to_thread.run_sync(Runtime):
        assert (forks.server is not None) == (processes == "fork")
        assert forks.claims == (processes == "fork")
    assert forks.server is None
    forks.claims = 1
