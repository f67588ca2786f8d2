"""What a driver says about a certificate is no reason to trust one: the host looks for itself."""

from __future__ import annotations

import pytest

import wheelhouse
from dragoman.connections.saved_connections import SavedConnection
from dragoman.runtime import Runtime
from dragoman_api.errors import ConnectionFailedError
from slow_cases import mostly_slow

CODE = """
from dragoman_api import hookimpl
from dragoman_api.errors import ConnectionFailedError


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        raise ConnectionFailedError(
            "its certificate is AB:CD, trust it", code="CODE", hint="say yes", details={"certificate": "untrusted"}
        )
"""
MODES = [{"value": mode, "label": mode} for mode in ("disabled", "verify-identity")]
FORM = [
    *wheelhouse.manifest()["form"],
    {"name": "ssl_mode", "label": "SSL Mode", "kind": "choice", "default": "disabled", "choices": MODES},
]


@pytest.mark.parametrize("code", ["connection-failed", "certificate-untrusted", "certificate-changed"])
@pytest.mark.parametrize("mode", mostly_slow(["disabled", "verify-identity"], fast=["verify-identity"]))
async def test_a_drivers_claim_about_a_certificate_asks_nothing_and_pins_nothing(make_runtime, mode, code):
    driver = wheelhouse.Driver(code=CODE.replace("CODE", code), hooks=["connect"], form=FORM)
    values = {"host": "127.0.0.1", "port": 9, "ssl_mode": mode}
    made = make_runtime(driver, installed=True)
    made.connections.save(SavedConnection(name="demo", type="demo", values=values), replace=True)
    asked = []

    async def confirm(question):
        asked.append(question)
        return True

    async with Runtime(spare=False, confirm=confirm) as runtime:
        with pytest.raises(ConnectionFailedError, match="AB:CD") as caught:
            async with runtime.open("demo"):
                pass
        assert runtime.connections.get("demo").pinned == {}
    assert asked == []
    assert caught.value.code == "connection-failed"
    assert caught.value.hint_from == "driver"
