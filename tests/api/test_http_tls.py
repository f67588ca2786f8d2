"""SSL modes against real TLS servers with certificates made for the run."""

from __future__ import annotations

import asyncio
import gc
import re
import ssl
import warnings
from base64 import b64encode
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from api.certificates import chained
from api.loopback import Reply, http, serving, serving_tls_in_a_thread, tls_without_a_farewell

from dragoman_api._connection_errors import diagnose
from dragoman_api.connections import Profile, Secrets, SslMode
from dragoman_api.errors import ConfigurationError, ConnectionFailedError, QueryError
from dragoman_api.http import Http
from dragoman_api.remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from wording import Wording

UNVERIFIED = (SslMode.PREFERRED, SslMode.REQUIRED, SslMode.REQUIRED_SKIP_VERIFY)
SKIP = "set SSL Mode to Required (skip verify) or turn on Skip TLS Verification"


def profile(port: int, mode: SslMode, **changes: Any) -> Profile:
    return Profile(**{"name": "shop", "type": "memory", "host": "localhost", "port": port, "ssl_mode": mode, **changes})


def ok(request: object) -> Reply:
    return http('"ok"')


async def reach(context: ssl.SSLContext | None, mode: SslMode, **changes: Any) -> str:
    """Ask a server with that context; give its answer, or raise what the client raises."""
    async with (
        serving(ok, tls=context, host="localhost") as server,
        Http(profile(server.port, mode, **changes)) as client,
    ):
        return await client.get_json("/")


async def refused(context: ssl.SSLContext | None, mode: SslMode, **changes: Any) -> ConnectionFailedError:
    with pytest.raises(ConnectionFailedError) as caught:
        await reach(context, mode, **changes)
    assert caught.value.message.startswith("Connection failed: ")
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("certificate", ["good", "self", "misnamed", "expired"])
@pytest.mark.parametrize("mode", UNVERIFIED)
async def test_E13_W7_preferred_and_required_accept_any_certificate(certs, mode, certificate):
    assert await reach(certs.server(certificate), mode) == "ok"


@pytest.mark.parametrize("mode", [SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY])
async def test_E14_W7_verify_modes_accept_a_certificate_of_a_trusted_ca(certs, mode):
    assert await reach(certs.server("good"), mode, ca_pem=certs.text("ca")) == "ok"


@pytest.mark.parametrize("certificate", ["self", "good"])
@pytest.mark.parametrize("mode", [SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY])
async def test_a_servers_own_certificate_can_be_trusted_by_giving_it(certs, mode, certificate):
    assert await reach(certs.server(certificate), mode, ca_pem=certs.text(certificate)) == "ok"


async def test_E14_W7_verify_ca_does_not_look_at_the_host_name(certs):
    assert await reach(certs.server("misnamed"), SslMode.VERIFY_CA, ca_pem=certs.text("ca")) == "ok"


async def test_E14_W7_verify_identity_refuses_another_host_name(wording: Wording, certs):
    error = await refused(certs.server("misnamed"), SslMode.VERIFY_IDENTITY, ca_pem=certs.text("ca"))
    wording(error.message, error.hint)
    error = await refused(certs.server("misnamed"), SslMode.VERIFY_IDENTITY, ca_pem=certs.text("ca"), host="127.0.0.1")
    wording(error.message)


@pytest.mark.parametrize("mode", [SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY])
@pytest.mark.parametrize(
    ("certificate", "reason"),
    [("self", "its certificate is self-signed"), ("good", "not trusted here"), ("expired", "has expired")],
)
async def test_E14_E40_W37_verify_modes_say_what_is_wrong_with_a_certificate(certs, mode, certificate, reason):
    trusted = certs.text("ca" if certificate == "expired" else "stranger")
    error = await refused(certs.server(certificate), mode, ca_pem=trusted)
    assert reason in error.message
    assert SKIP in error.hint
    pinnable = {} if certificate == "expired" else {"certificate": "untrusted"}
    assert error.details == {"sent": False, **pinnable}


def pin(certs, name: str, port: int, host: str = "localhost") -> dict[str, str]:
    return {f"{host}:{port}": b64encode(ssl.PEM_cert_to_DER_cert(certs.text(name))).decode()}


async def pinned(certs, shown: str, wanted: str, mode: SslMode, host: str = "localhost", **changes: Any) -> str:
    """Ask a server that shows one certificate, while another one, or the same, is pinned for it."""
    async with serving(ok, tls=certs.server(shown), host="localhost") as server:
        pins = pin(certs, wanted, server.port, host)
        async with Http(profile(server.port, mode, pinned=pins, **changes)) as client:
            return await client.get_json("/")


@pytest.mark.parametrize("certificate", ["self", "good"])
@pytest.mark.parametrize("mode", [SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY])
async def test_E14_W7_a_pinned_certificate_needs_no_authority(certs, mode, certificate):
    assert await pinned(certs, certificate, certificate, mode) == "ok"


@pytest.mark.parametrize("shown", ["good", "child", "misnamed"])
@pytest.mark.parametrize("mode", [SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY])
async def test_no_other_certificate_than_the_pinned_one_is_accepted(certs, mode, shown):
    """Neither one of a trusted authority, nor one that the pinned certificate has signed."""
    chained(certs.folder, "child", signer="self")
    reason = "not the pinned one, whose SHA-256 fingerprint is ([0-9A-F]{2}:){31}[0-9A-F]{2}"
    with pytest.raises(ConnectionFailedError, match=reason) as caught:
        await pinned(certs, shown, "self", mode, ca_pem=certs.text("ca"))
    assert caught.value.details == {"sent": False, "certificate": "untrusted"}


async def test_a_pin_is_no_way_around_the_name_or_the_dates(certs):
    assert await pinned(certs, "misnamed", "misnamed", SslMode.VERIFY_CA) == "ok"
    with pytest.raises(ConnectionFailedError, match="another host name"):
        await pinned(certs, "misnamed", "misnamed", SslMode.VERIFY_IDENTITY)
    with pytest.raises(ConnectionFailedError, match="expired"):
        await pinned(certs, "expired", "expired", SslMode.VERIFY_CA)


async def test_a_pin_that_is_no_certificate_can_be_removed():
    pins = {"localhost:9": b64encode(b"no certificate").decode()}
    with pytest.raises(ConfigurationError, match="cannot be read") as caught:
        Http(profile(9, SslMode.VERIFY_CA, pinned=pins))
    assert caught.value.remedies == (Remedy(RemedyKind.UNPIN_CERTIFICATE),)


async def test_a_pin_of_another_server_is_none_of_this_one(certs):
    with pytest.raises(ConnectionFailedError, match="self-signed"):
        await pinned(certs, "self", "self", SslMode.VERIFY_CA, host="other.example")


async def test_each_host_has_a_pin_of_its_own(certs):
    async with (
        serving(ok, tls=certs.server("good"), host="localhost") as first,
        serving(ok, tls=certs.server("self"), host="localhost") as second,
    ):
        pins = pin(certs, "self", first.port) | pin(certs, "self", second.port)
        hosts = {"hosts": f"localhost:{second.port}"}
        async with Http(profile(first.port, SslMode.VERIFY_CA, pinned=pins, options=hosts)) as client:
            assert await client.get_json("/") == "ok"
            [note] = client.faults
    assert note.reason.startswith(f"localhost:{first.port}: its certificate is not the pinned one")
    assert not any(request.line for request in first.requests)


@pytest.mark.parametrize("certificate", ["self", "misnamed", "expired"])
@pytest.mark.parametrize("mode", [SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY])
async def test_E8_W6_skip_tls_verification_accepts_any_certificate_and_says_so(certs, mode, certificate):
    assert await reach(certs.server(certificate), mode, skip_tls_verification=True) == "ok"
    [note] = Http(profile(1, mode, skip_tls_verification=True)).warnings
    assert note.code == "tls-unverified"


def test_only_a_verify_mode_that_verifies_nothing_is_warned_of(certs):
    for mode in SslMode:
        assert Http(profile(1, mode, ca_pem=certs.text("ca"))).warnings == []
    assert Http(profile(1, SslMode.REQUIRED, skip_tls_verification=True)).warnings == []


async def test_E12_W7_disabled_never_tries_tls_and_the_others_never_fall_back(certs):
    async with serving(ok) as server:
        async with Http(profile(server.port, SslMode.DISABLED, host="127.0.0.1")) as client:
            assert await client.get_json("/") == "ok"
        for mode in set(SslMode) - {SslMode.DISABLED}:
            async with Http(profile(server.port, mode, host="127.0.0.1")) as client:
                with pytest.raises(ConnectionFailedError):
                    await client.get_json("/", timeout=1)
    assert [request.line != "" for request in server.requests] == [True] + [False] * 5


async def test_E40_W37_plain_http_on_a_tls_port_is_told(wording: Wording, certs):
    error = await refused(certs.server("good"), SslMode.DISABLED)
    wording(error.hint)


@pytest.mark.parametrize("mode", [SslMode.REQUIRED, SslMode.VERIFY_IDENTITY])
async def test_E40_W37_tls_on_a_plain_port_is_told(wording: Wording, mode):
    async with serving(ok) as server, Http(profile(server.port, mode, host="127.0.0.1")) as client:
        with pytest.raises(ConnectionFailedError) as caught:
            await client.get_json("/")
        wording(caught.value.message, caught.value.hint)


async def ask_for_a_client_certificate(certs, newest: ssl.TLSVersion, shown: str) -> str:
    with serving_tls_in_a_thread(certs.server("good", clients="ca", newest=newest)) as port:
        given = profile(port, SslMode.REQUIRED, client_certificate=certs.pem(shown) if shown else "")
        async with Http(given) as client:
            return await client.get_json("/")


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_certificate_is_shown_where_the_server_asks_for_one(certs, newest):
    assert await ask_for_a_client_certificate(certs, newest, "client") == "ok"


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(("shown", "reason"), [("", "client certificate"), ("foreign", "does not trust the CA")])
async def test_a_missing_or_foreign_client_certificate_is_told(wording: Wording, certs, newest, shown, reason):
    with pytest.raises(ConnectionFailedError) as caught:
        await ask_for_a_client_certificate(certs, newest, shown)
    assert reason in caught.value.message
    wording(caught.value.hint)


@pytest.mark.parametrize("path", ["/nowhere/client.pem", "ca.crt", "locked.pem"])
def test_a_client_certificate_that_cannot_be_used_is_refused_before_anything_is_opened(wording: Wording, certs, path):
    with pytest.raises(ConfigurationError, match=re.escape(str(certs.folder / path))) as caught:
        Http(profile(1, SslMode.REQUIRED, client_certificate=str(certs.folder / path)))
    wording(caught.value.hint)


async def test_a_locked_client_key_is_opened_with_its_password(certs):
    context = certs.server("good", clients="ca")
    given = {"client_certificate": certs.pem("locked"), "secrets": Secrets(values={"client_key_password": "word"})}
    assert await reach(context, SslMode.REQUIRED, **given) == "ok"


@pytest.mark.parametrize("pem", ["no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "ä"])
def test_a_ca_file_that_holds_no_certificate_is_refused(wording: Wording, pem):
    with pytest.raises(ConfigurationError) as caught:
        Http(profile(1, SslMode.VERIFY_CA, ca_pem=pem))
    wording(caught.value.hint)


async def test_an_answer_over_tls_that_stops_within_its_body_is_never_taken_for_whole(certs):
    half = Reply(b"HTTP/1.1 200 X\r\nContent-Length: 900\r\n\r\n{", "reset")
    async with (
        serving(lambda request: half, tls=certs.server("good"), host="localhost") as server,
        Http(profile(server.port, SslMode.REQUIRED)) as client,
    ):
        with pytest.raises(ConnectionFailedError, match="stopped"):
            await client.request("GET", "/")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "limit"),
    [
        (b"", None),
        (b"HTTP/1.1 200 X\r\nContent-Length: 900\r\n\r\n{", None),
        (http(b" " * 900).data, 100),
        (http(headers="Connection: close\r\n").data, None),
    ],
    ids=["given-up", "given-up-within-the-body", "too-long", "not-kept"],
)
def test_no_socket_outlives_the_client_where_a_server_leaves_the_tls_farewell_unanswered(certs, answer, limit):
    async def ask(port: int) -> None:
        async with Http(profile(port, SslMode.REQUIRED)) as client:
            with suppress(QueryError, ConnectionFailedError):
                await client.request("GET", "/", timeout=0.5, limit=limit)

    with tls_without_a_farewell(certs.server("good"), answer) as port:
        assert left_open(ask(port)) == []


@pytest.mark.slow
@pytest.mark.parametrize("client_too", [False, True])
def test_no_socket_outlives_the_client_wherever_on_its_way_a_request_is_given_up(certs, client_too):
    async def ask(port: int, seconds: float) -> None:
        both = anyio.move_on_after(seconds) if client_too else nullcontext()
        with both:
            async with Http(profile(port, SslMode.REQUIRED)) as client:
                with anyio.move_on_after(seconds):
                    await client.request("GET", "/")

    with tls_without_a_farewell(certs.server("good"), b"") as port:
        # Name, socket, handshake, request: all within some milliseconds.
        assert left_open(*(ask(port, step / 5_000) for step in range(50))) == []


def left_open(*works: Coroutine[Any, Any, None]) -> list[str]:
    """Run something, each in an event loop of its own, and tell what was left open."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for work in works:
            asyncio.run(work)
        gc.collect()
    return [str(each.message) for each in told if each.category is ResourceWarning]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (9, "is not valid yet"), (10, "has expired"), (18, "is self-signed"), (19, "ends in a CA that is not trusted"),
        (20, "a CA that is not trusted"), (21, "a CA that is not trusted"), (24, "not a CA"), (79, "not a CA"),
        (62, "another host name"), (64, "another address"), (99, "TLS: odd"),
    ],
)  # fmt: skip
def test_every_code_of_openssl_for_a_certificate_has_its_reason(code, reason):
    """From OpenSSL 3 on, 79 is a CA that is none; before, it was 24."""
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, "odd"
    assert reason in diagnose(error, profile(1, SslMode.VERIFY_IDENTITY), sent=False).message
