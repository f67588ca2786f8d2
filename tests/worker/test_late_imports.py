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
loaded = lambda: [name for name in LATE_MODULES if getattr(sys.modules.get(name), "__file__", None)]
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
        "assert aiohttp.TraceConfig | None == None | aiohttp.TraceConfig",
        "assert aiohttp.TraceConfig.freeze",
    ],
    "attr.validators": [
        "import attr\nassert attr.validators.instance_of(int)",
        "from attr.validators import instance_of\nassert instance_of(int)",
        "from attr import validators\nassert validators.instance_of(int)",
        "import attrs\nassert attrs.validators.instance_of(int)",
        "from attrs.validators import instance_of\nassert instance_of(int)",
    ],
    "urllib.request": [
        "from urllib.request import Request\nassert Request('http://h/').host == 'h'",
        "from urllib.request import *\nassert Request('http://h/').host == 'h'",
        "import urllib.request\nassert urllib.request.Request('http://h/').host == 'h'",
        "from aiohttp.helpers import proxies_from_env\nassert proxies_from_env() == {}",
    ],
}


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
    code = f"{START}{use}\nassert loaded() == [{module!r}], loaded()"
    variables = {**os.environ, "no_proxy": "*"} | dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "")
    subprocess.run([sys.executable, "-c", code], check=True, env=variables)
