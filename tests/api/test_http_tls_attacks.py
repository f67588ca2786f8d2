"""TLS servers that are broken or hostile: each ends in an error that says what happened, and nothing cut is whole."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import warnings
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest
from api.certificates import chained
from api.loopback import Reply, http, serving, serving_tls_in_a_thread
from api.test_http_tls import SKIP, profile, reach, refused

from dragoman_api.connections import SslMode
from dragoman_api.errors import ConnectionFailedError
from dragoman_api.http import Http

VERIFYING = [SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY]


@contextmanager
def cutting(context, data):
    """Serve one request over TLS and end the connection below TLS, without a farewell."""
    listener = socket.create_server(("localhost", 0))
    listener.settimeout(10)

    def serve():
        connection = listener.accept()[0]
        connection.settimeout(10)
        secured = context.wrap_socket(connection, server_side=True)
        secured.recv(65536)
        secured.sendall(data)
        with socket.socket(fileno=secured.detach()) as raw, suppress(OSError):
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(65536):
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        thread.join()
        listener.close()


@pytest.mark.parametrize(
    "how",
    [
        "",
        "Content-Length: 900\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "Content-Encoding: gzip\r\n",
    ],
)
async def test_an_answer_cut_off_without_a_farewell_is_never_taken_for_whole(wording, certs, how):
    """Anybody between can end a connection, and nothing else would tell the end of such a body."""
    body = "b\r\nfirst line\n\r\n" if "chunked" in how else "first line\n"
    with cutting(certs.server("good"), f"HTTP/1.1 200 X\r\n{how}\r\n{body}".encode()) as port:
        async with Http(profile(port, SslMode.REQUIRED)) as client:
            with pytest.raises(ConnectionFailedError) as caught:
                await client.request("GET", "/")
    wording(caught.value.hint)
    assert caught.value.details == {"sent": True}


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_that_has_no_body_needs_no_end(certs, status):
    def reply(request):
        return Reply(f"HTTP/1.1 {status} X\r\n\r\n".encode())

    async with (
        serving(reply, tls=certs.server("good"), host="localhost") as server,
        Http(profile(server.port, SslMode.REQUIRED)) as client,
    ):
        assert (await client.request("GET", "/")).status == status
        assert (await client.request("HEAD", "/")).status == status


async def test_the_headers_of_a_body_without_a_length_are_an_answer_to_head(certs):
    async with (
        serving(lambda request: Reply(b"HTTP/1.1 200 X\r\n\r\n"), tls=certs.server("good"), host="localhost") as server,
        Http(profile(server.port, SslMode.REQUIRED)) as client,
    ):
        assert (await client.request("HEAD", "/")).status == 200


def outdated(certs, newest):
    context = certs.server("good")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


@pytest.mark.parametrize("mode", [SslMode.PREFERRED, SslMode.VERIFY_IDENTITY])
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_a_server_whose_tls_is_too_old_is_refused_in_every_mode(wording, certs, newest, mode):
    with serving_tls_in_a_thread(outdated(certs, newest)) as port:
        async with Http(profile(port, mode, ca_pem=certs.text("ca"))) as client:
            with pytest.raises(ConnectionFailedError) as caught:
                await client.get_json("/")
            wording(caught.value.message, caught.value.hint)


@pytest.mark.parametrize("mode", VERIFYING)
@pytest.mark.parametrize("trusted", ["ca", "good"])
async def test_a_server_certificate_is_no_authority_whether_its_ca_or_it_is_trusted(wording, certs, mode, trusted):
    """The key of a server, even of one that a person trusts by its certificate, signs for no other."""
    chained(certs.folder, "forged", signer="good")
    error = await refused(certs.server("forged"), mode, ca_pem=certs.text(trusted))
    wording(error.message)
    assert SKIP in error.hint


@pytest.mark.parametrize("mode", VERIFYING)
@pytest.mark.parametrize("certificate", ["self", "good"])
async def test_without_a_ca_file_the_systems_authorities_alone_are_trusted(certs, mode, certificate):
    error = await refused(certs.server(certificate), mode)
    assert "self-signed" in error.message or "not trusted here" in error.message


@asynccontextmanager
async def greeting(serve):
    """Serve one connection by a function, below TLS."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def talk(reader, writer):
        begun.set()
        with suppress(OSError):
            await serve(reader, writer)
        writer.close()
        over.set()

    server = await asyncio.start_server(talk, "localhost", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        server.close()
        if begun.is_set():  # the time of a client on a busy machine may be over before it connects
            await over.wait()


@pytest.mark.parametrize("begun", [b"", b"\x16", b"\x16\x03\x03\x00\x7a\x02", b"\x15\x03\x03\x00\x02\x01"])
async def test_a_handshake_that_stalls_ends_in_time(wording, begun):
    async def stall(reader, writer):
        await reader.read(1)
        writer.write(begun)
        await reader.read()

    async with greeting(stall) as port, Http(profile(port, SslMode.REQUIRED)) as client:
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request("GET", "/", timeout=0.3)
        wording(caught.value.message)


@pytest.mark.slow
async def test_a_handshake_that_is_trickled_ends_in_time():
    async def trickle(reader, writer):
        writer.write(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")  # a greeting of 16 kB
        while not writer.transport.is_closing():
            writer.write(b"\x03")
            await asyncio.sleep(0.05)

    async with greeting(trickle) as port, Http(profile(port, SslMode.REQUIRED)) as client:
        with pytest.raises(ConnectionFailedError, match=r"within|TLS"):
            await client.request("GET", "/", timeout=0.5)


async def test_a_server_that_speaks_http_2_alone_is_refused(wording, certs):
    context = certs.server("good")
    context.set_alpn_protocols(["h2"])
    settings = Reply(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64", "close")
    async with (
        serving(lambda request: settings, tls=context, host="localhost") as server,
        Http(profile(server.port, SslMode.REQUIRED)) as client,
    ):
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request("GET", "/")
        wording(caught.value.hint)


async def test_a_client_certificate_is_shown_to_no_server_that_fails_the_check(wording, certs):
    """Its name may say who a person is: the handshake ends first."""
    with serving_tls_in_a_thread(certs.server("misnamed", clients="ca")) as port:
        given = profile(port, SslMode.VERIFY_IDENTITY, ca_pem=certs.text("ca"), client_certificate=certs.pem("client"))
        async with Http(given) as client:
            with pytest.raises(ConnectionFailedError) as caught:
                await client.get_json("/")
            wording(caught.value.message)


async def test_a_redirect_to_plain_http_is_not_followed(certs):
    plain = http(status=302, headers="Location: http://localhost:1/\r\n")
    assert (await status_of(certs, plain)) == 302


async def status_of(certs, reply):
    async with (
        serving(lambda request: reply, tls=certs.server("good"), host="localhost") as server,
        Http(profile(server.port, SslMode.REQUIRED)) as client,
    ):
        return (await client.request("GET", "/")).status


async def test_it_is_the_same_server_that_is_reached_where_nothing_is_wrong(certs):
    assert await reach(certs.server("good"), SslMode.VERIFY_IDENTITY, ca_pem=certs.text("ca")) == "ok"
