"""Modules that wait until something of them is used, in the process of a driver."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from dragoman_worker.late_imports import LateName, late_imports

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop


def told(code: str) -> str:
    """Run code in a process that has imported aiohttp and anyio as a driver's process does."""
    start = "import sys\nfrom dragoman_worker.late_imports import LATE, late_imports\nbefore = set(sys.modules)\n"
    start += "with late_imports():\n    import anyio._backends._asyncio, aiohttp\n"
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_none_of_them_is_loaded_by_the_imports_and_each_can_be_imported_then() -> None:
    assert told("print(sorted(set(LATE) & set(sys.modules) - before))") == "[]"
    assert told("import importlib\nfor name in LATE: importlib.import_module(name)\nprint('all')") == "all"


def test_what_stands_in_for_a_name_is_the_real_one_when_it_is_used() -> None:
    checks = """
import aiohttp.helpers, anyio, anyio.abc, attr, attr.validators
assert attr.validators.instance_of(int)
assert aiohttp.helpers.parse_content_type('text/html; charset=utf-8')[0] == 'text/html'
assert isinstance(aiohttp.helpers.getproxies(), dict)
class Own(aiohttp.TraceConfig): pass
import aiohttp.tracing
assert issubclass(Own, aiohttp.tracing.TraceConfig) and isinstance(Own(), aiohttp.TraceConfig)
assert issubclass(Own, aiohttp.TraceConfig)
assert aiohttp.DigestAuthMiddleware(login='a', password='b')
async def session():
    send, receive = anyio.create_memory_object_stream[int](1)
    await send.send(1)
    assert await receive.receive() == 1
    send.close(), receive.close()
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener: assert listener
    task = __import__("anyio.to_thread").to_thread.run_sync(len, "ab")
    assert await task == 2
    async with aiohttp.ClientSession(trace_configs=[aiohttp.TraceConfig()]): pass
anyio.run(session)
print('real')
"""
    assert told(checks) == "real"


def test_a_name_without_a_stand_in_is_taken_from_its_module_at_once() -> None:
    code = "with late_imports():\n    from urllib.request import Request\nimport urllib.request as real\n"
    code += "print(Request is real.Request)"
    done = subprocess.run(
        [sys.executable, "-c", f"from dragoman_worker.late_imports import late_imports\n{code}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "True"


def test_a_module_that_is_loaded_already_is_left_alone() -> None:
    import email.policy

    with late_imports():
        assert sys.modules["email.policy"] is email.policy
    assert isinstance(LateName("email.policy", "HTTP")._real(), email.policy.EmailPolicy)


async def test_a_confined_driver_uses_them(workshop: Workshop) -> None:
    body = """
import aiohttp, email.policy, urllib.request
aiohttp.TraceConfig(), urllib.request.Request("http://x"), email.policy.HTTP.clone()
return aiohttp.helpers.parse_content_type("text/html; charset=utf-8")[0]
"""
    async with workshop.attempting(body) as worker:
        assert "text/html" in (await worker.call("describe_object", "x")).structure
