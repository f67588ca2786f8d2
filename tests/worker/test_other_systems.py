"""Systems without Linux's layers: what needs none of them works, and nothing is claimed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from dragoman.sandbox import bare_process, levels, machine_level
from dragoman.sandbox.host_imports import find_host_imports
from dragoman_api.errors import SandboxError

if TYPE_CHECKING:
    from pathlib import Path

# What this interpreter has of Linux is taken away, in the host and in the child, before anything else is imported.
ELSEWHERE = """
import ctypes, os, resource, socket, sys, sysconfig
sysconfig.get_config_vars()
sys.platform = "freebsd14"
for module, names in ((os, "pidfd_open pipe2 memfd_create"), (socket, "MSG_CMSG_CLOEXEC"),
                      (resource, "RLIMIT_MSGQUEUE RLIMIT_SIGPENDING")):
    for name in names.split():
        delattr(module, name)
class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in ("prctl", "syscall"):
            def refuse(*arguments):
                raise SystemExit(f"{name} was called")
            return refuse
        return super().__getattr__(name)
ctypes.CDLL = Library
"""

HOST = """
import json, sys
from pathlib import Path
import anyio
from dragoman.sandbox import bare_process
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.launch import Launch
from dragoman.sandbox.levels import achievable_level
from dragoman.sandbox.machine_level import measured_level
from dragoman_api.errors import DragomanError
from dragoman_api.exports import ExportRequest

bare_process.BOOT = ELSEWHERE + bare_process.BOOT

async def main():
    launch = dict(driver="tiny:Driver", trees=(Path(sys.argv[1]),), trusted=True)
    told = {"achievable": str(achievable_level())}
    told["measured"] = str(await anyio.to_thread.run_sync(measured_level))
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        async def greet(stream):
            async with stream:
                await stream.send(b"hello\\n")
        tasks.start_soon(listener.serve, greet)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with Worker(Launch(**launch, approved=(("localhost", port),))) as worker:
            told["level"] = str(worker.report)
            told["states"] = {name: one.state for name, one in worker.report.permissions.items()}
            told["said"] = (await worker.call("describe_object", f"localhost:{port}")).structure
            told["parts"] = [part.rows async for part in worker.export(ExportRequest(object="o"), deadline=20)]
            try:
                await worker.call("ping")
            except DragomanError as error:
                told["crash"] = error.message
        tasks.cancel_scope.cancel()
    for name, options in {"untrusted": {"trusted": False}, "require": {"policy": "require"}}.items():
        try:
            async with Worker(Launch(**launch | options)):
                pass
        except DragomanError as error:
            told[name] = error.message
    print(json.dumps(told))

anyio.run(main)
"""

DRIVER = """
import asyncio, os
from dragoman_api.columns import Description
from dragoman_api.exports import ExportPart
from dragoman_api.hookspecs import hookimpl

class Driver:
    @hookimpl
    async def describe_object(self, name):
        host, port = name.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        said = await reader.readline()
        writer.close()
        return Description(object=name, columns=[], structure=said.decode())

    @hookimpl
    async def export_rows(self, request):
        for rows in (1, 2):
            yield ExportPart(data=b"{}" * rows, rows=rows)

    @hookimpl
    async def ping(self):
        os._exit(7)
"""


@pytest.mark.slow
def test_off_linux_a_driver_works_in_a_process_and_nothing_more_is_claimed(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(DRIVER)
    program = f"ELSEWHERE = {ELSEWHERE!r}\nexec(ELSEWHERE)\n{HOST}"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(tmp_path)],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["achievable"] == told["measured"] == told["level"] == "process: no lock-down on freebsd14"
    assert {name for name, state in told["states"].items() if state != "not_enforced"} == {"memory", "cpu"}
    assert told["said"] == "hello\n", "the broker needs no kernel layer"
    assert told["parts"] == [1, 2]
    assert "exit status 7" in told["crash"]
    assert "cannot be confined here" in told["untrusted"]
    assert "full is required" in told["require"]


def test_no_other_system_is_given_more_than_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    levels.achievable_level.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    try:
        report = levels.achievable_level()
    finally:
        levels.achievable_level.cache_clear()
    assert str(report).startswith("process: no lock-down on darwin")
    assert "Linux" in report.remedies[0]


def test_a_process_that_cannot_even_start_says_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare_process, "BOOT", "raise RuntimeError('there is \x1b[31mno room')")
    with pytest.raises(SandboxError, match="RuntimeError: there is no room"):
        machine_level.tried_level.__wrapped__(find_host_imports())
