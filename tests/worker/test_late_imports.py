"""While trusted modules are imported, TLS contexts load no certificates, and some modules are not read."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys

import pytest

from dragoman_worker.late_imports import LateContext, late_certificates

START = """
import sys
from dragoman_worker.late_imports import LATE_MODULES, late_imports
loaded = lambda: [name for name in LATE_MODULES if type(sys.modules.get(name)).__name__ == "module"]
with late_imports():
    import aiohttp, dragoman_worker.service
assert loaded() == [], loaded()
"""
USES = {
    "aiohttp.tracing": [
        "assert type(aiohttp.TraceConfig()).__name__ == 'TraceConfig'",
        "class Mine(aiohttp.TraceConfig): pass\nassert isinstance(Mine(), aiohttp.TraceConfig)",
        "assert issubclass(sys.modules['aiohttp'].tracing.TraceConfig, aiohttp.TraceConfig)",
        "import aiohttp.tracing\nassert aiohttp.tracing.TraceConfig().on_request_start == []",
        "assert aiohttp.TraceConfig.freeze",
    ],
    "attr.validators": [
        "import attr\nassert attr.validators.instance_of(int)",
        "from attr.validators import instance_of\nassert instance_of(int)",
        "from attr import validators\nassert validators.instance_of(int)",
        "import attrs\nassert attrs.validators.instance_of(int)",
        "from attrs.validators import instance_of\nassert instance_of(int)",
    ],
    "aiohttp.multipart": [
        "import aiohttp\nassert type(aiohttp.MultipartWriter()).__name__ == 'MultipartWriter'",
        "from aiohttp import MultipartWriter\nassert isinstance(MultipartWriter(), MultipartWriter)",
        "from aiohttp import multipart\nassert multipart.MultipartWriter()",
    ],
    "email.policy": [
        "from aiohttp.helpers import parse_content_type\nassert parse_content_type('text/x') == ('text/x', {})",
        "import email.policy\nassert email.policy.HTTP.max_line_length is None",
        "from email.policy import HTTP\nassert HTTP.clone(max_line_length=7).max_line_length == 7",
    ],
    "idna": [
        "import idna.core\nassert idna.core.encode('ü')",
        "from yarl import URL\nassert URL('http://bücher.example/').raw_host == 'xn--bcher-kva.example'",
        "import idna\nassert idna.__file__",
        "import importlib.util\nassert importlib.util.find_spec('idna')\nimport idna\nassert idna.encode('ü')",
    ],
    "anyio._core._sockets": [
        "import anyio\nassert anyio.wait_readable.__name__ == 'wait_readable'",
        "from anyio import connect_tcp\nassert connect_tcp.__name__ == 'connect_tcp'",
    ],
    "anyio._core._streams": ["import anyio\nassert anyio.create_memory_object_stream"],
    "msgspec.inspect": ["import msgspec\nassert msgspec.inspect.type_info(int)"],
    "msgspec.toml": ["import msgspec\nassert msgspec.toml.decode(b'a = 1') == {'a': 1}"],
    "netrc": ["from netrc import NetrcParseError\nassert issubclass(NetrcParseError, Exception)"],
    "urllib.request": [
        "from urllib.request import Request\nassert Request('http://h/').host == 'h'",
        "from urllib.request import *\nassert Request('http://h/').host == 'h'",
        "import urllib.request\nassert urllib.request.Request('http://h/').host == 'h'",
        "from aiohttp.helpers import proxies_from_env\nassert proxies_from_env() == {}",
    ],
}


ALL_LATE = """
from aiohttp.client_reqrep import FormData
assert FormData | None == None | FormData
assert not isinstance("text", FormData)
assert loaded() == [], loaded()
assert isinstance(aiohttp.FormData(), FormData)
assert isinstance(aiohttp.FormData(), FormData | None)
assert not isinstance("text", FormData | None)
assert issubclass(aiohttp.ClientWebSocketResponse[bool].__origin__, aiohttp.ClientWebSocketResponse)
"""
REAL = """
import copy, functools
from aiohttp import client, client_reqrep
assert copy.copy(client.ClientWSTimeout) is not None and loaded() == [], loaded()
assert all(type(getattr(aiohttp, name)).__name__ != "_LateName" for name in aiohttp.__all__)
assert not [name for name, value in vars(client).items() if type(value).__name__ == "_LateName" and name[:2] == "WS"]
try:
    raise ValueError
except aiohttp.WebSocketError: assert False
except ValueError: pass
match aiohttp.FormData():
    case aiohttp.FormData(): pass
    case other: assert False, other
functools.singledispatch(print).register(aiohttp.MultipartWriter, print)
try: aiohttp.nothing
except AttributeError as error: assert "nothing" in str(error)
else: assert False
"""
HANDSHAKE = """
import asyncio
from aiohttp import web

async def echo(request):
    answers = web.WebSocketResponse()
    await answers.prepare(request)
    async for message in answers:
        await answers.send_str(message.data)
    return answers

async def main():
    app = web.Application()
    app.router.add_get("/", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    async with aiohttp.ClientSession() as session, session.ws_connect(f"http://127.0.0.1:{port}/") as messages:
        await messages.send_str("a")
        assert (await messages.receive()).data == "a"
    await runner.cleanup()

asyncio.run(main())
"""


def test_an_annotation_or_a_comparison_of_types_imports_no_late_module() -> None:
    subprocess.run([sys.executable, "-c", START + ALL_LATE], check=True)


@pytest.mark.parametrize("code", [REAL, HANDSHAKE], ids=["names", "websocket"])
@pytest.mark.slow
def test_what_a_driver_takes_from_a_package_is_the_real_thing(code: str) -> None:
    subprocess.run([sys.executable, "-c", START + code], check=True)


BESIDE = """
import threading
from dragoman_worker import late_imports as late
names, entered, go_on = {}, threading.Event(), threading.Event()

def slow(name, real=late.import_module):
    if name == "aiohttp.multipart":
        entered.set()
        assert go_on.wait(10)
    return real(name)

late.import_module = slow
first = threading.Thread(target=lambda: names.update(a=aiohttp.MultipartWriter))
first.start()
assert entered.wait(10)
policy = sys.modules["email.policy"]
assert type(policy.HTTP).__name__ == "EmailPolicy", type(policy.HTTP)
second = threading.Thread(target=lambda: names.update(b=aiohttp.MultipartWriter))
second.start()
go_on.set()
first.join(), second.join()
assert names["a"] is names["b"] is sys.modules["aiohttp.multipart"].MultipartWriter, names
"""
AT_ONCE = """
import threading, time
from dragoman_worker import late_imports as late

looked = threading.local()

def slow(value, kinds, real=isinstance):
    answer = real(value, kinds)
    if kinds is late._LateModule and not hasattr(looked, "once"):
        looked.once = True
        time.sleep(0.05)
    return answer

late.isinstance = slow
failures, names, tracing = [], [], sys.modules["aiohttp.tracing"]

def touch():
    try: names.append(tracing.TraceConfig)
    except BaseException as error: failures.append(error)

threads = [threading.Thread(target=touch) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failures, failures
assert len({*names}) == 1 and names[0] is sys.modules["aiohttp.tracing"].TraceConfig
"""
SET = """
from aiohttp import client
tracing, name = sys.modules["aiohttp.tracing"], client.ClientWSTimeout
tracing.TraceConfig = "mine"
assert sys.modules["aiohttp.tracing"].TraceConfig == tracing.TraceConfig == "mine"
assert type(sys.modules["aiohttp.tracing"]).__name__ == "module"
del tracing.TraceConfig
assert not hasattr(sys.modules["aiohttp.tracing"], "TraceConfig")
name.mine = 7
assert sys.modules["aiohttp.client_ws"].ClientWSTimeout.mine == 7
del name.mine
assert not hasattr(sys.modules["aiohttp.client_ws"].ClientWSTimeout, "mine")
"""
FAILS = """
from aiohttp import client
from dragoman_worker import late_imports as late
name, fails, real = vars(client)["ClientWSTimeout"], [True], late.import_module

def failing(module):
    if fails and module == "aiohttp.client_ws":
        raise ImportError("out of descriptors")
    return real(module)

late.import_module = failing
for _ in range(2):
    try: name.__doc__ and name()
    except ImportError as error: assert "descriptors" in str(error)
    else: assert False
    assert "aiohttp.client_ws" not in loaded()
    assert type(sys.modules["aiohttp.client_ws"]).__name__ == "_LateModule"
fails.clear()
assert type(name()).__name__ == "ClientWSTimeout"
assert "aiohttp.client_ws" in loaded()
assert vars(client)["ClientWSTimeout"] is sys.modules["aiohttp.client_ws"].ClientWSTimeout
"""


@pytest.mark.parametrize("code", [BESIDE, AT_ONCE, SET, FAILS], ids=["beside", "at-once", "set", "fails"])
@pytest.mark.slow
def test_a_late_module_is_whole_for_every_thread_and_after_a_failed_import(code: str) -> None:
    subprocess.run([sys.executable, "-c", START + code], check=True)


def test_a_late_module_of_a_package_that_was_not_imported_is_imported_as_any_other() -> None:
    code = (
        "from dragoman_worker.late_imports import late_modules\nwith late_modules(): import json\n"
        "import email.policy, attr\nassert email.policy.HTTP and attr.validators.instance_of(int)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_every_late_module_can_be_imported_after_the_start() -> None:
    use = "from importlib import import_module\nfor name in LATE_MODULES: assert import_module(name).__file__\n"
    subprocess.run([sys.executable, "-c", f"{START}{use}assert loaded() == [*LATE_MODULES]"], check=True)


def test_a_default_context_loads_certificates_at_its_first_handshake_only() -> None:
    loaded: list[ssl.SSLContext] = []

    class Watched(LateContext):
        def load_default_certs(self, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
            loaded.append(self)

    context = Watched(ssl.PROTOCOL_TLS_CLIENT)
    assert not loaded
    for _ in range(2):
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="localhost")
    assert loaded == [context]


def test_what_is_imported_loads_nothing_and_everything_is_as_before_afterwards() -> None:
    before = ssl.create_default_context
    with late_certificates():
        other = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        other.set_default_verify_paths()
        assert other.cert_store_stats()["x509"] == 0
        assert isinstance(ssl.create_default_context(), LateContext)
    assert ssl.create_default_context is before
    assert "set_default_verify_paths" not in vars(ssl.SSLContext)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "use"), [(module, use) for module, uses in USES.items() for use in uses])
def test_a_late_module_is_not_imported_before_it_is_used_and_is_then_the_real_one(module: str, use: str) -> None:
    code = f"{START}{use}\nassert {module!r} in loaded(), loaded()"
    variables = {**os.environ, "no_proxy": "*"} | dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "")
    subprocess.run([sys.executable, "-c", code], check=True, env=variables)
