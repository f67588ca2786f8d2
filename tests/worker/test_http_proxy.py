"""An HTTP proxy on the way: what it is asked, and every answer that is none."""

from __future__ import annotations

import asyncio
import base64
import errno
import gc
import socket
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.worker.test_broker import CLIENT, ask, server

from connect_proxy import ConnectProxy
from dragoman.references import Reference
from dragoman.sandbox.reach import http_proxy
from dragoman.sandbox.reach.address_resolver import AddressResolver, NearerError
from dragoman.sandbox.reach.http_proxy import MAX_ANSWER, ProxyConnector
from dragoman.sandbox.reach.route import HttpProxy, RouteError, parse_proxy
from dragoman_api.columns import ObjectsRequest
from dragoman_api.connections import SslMode
from dragoman_api.errors import ConfigurationError, DragomanError
from dragoman_registry.ip_addresses import Nearness
from fake_network import Names
from fakes.certificates import make_certificates

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

    from fakes.certificates import Certificates

FAR = "es.internal"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Make a certificate for the server's name, which this machine cannot look up."""
    return make_certificates(tmp_path_factory.mktemp("certificates"), FAR)


def way(proxy: Any, password: str = "", **about: Any) -> ProxyConnector:
    saved = HttpProxy(host=proxy.host, port=proxy.port, **about)
    return ProxyConnector(saved, password, AddressResolver([(saved.host, saved.port)], remembered={}))


async def failure(proxy: Any, *, host: str = FAR, port: int = 9200, **about: Any) -> RouteError:
    with pytest.raises(RouteError) as caught, anyio.fail_after(10):
        (await way(proxy, **about).connect(host, port)).close()
    return caught.value


def saying(*pieces: bytes, pause: float = 0.0, end: bool = True) -> Any:
    async def misbehave(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        if not end:
            await asyncio.sleep(60)

    return misbehave


# what it is asked -----------------------------------------------------------------------------------------------------


async def test_a_server_is_reached_by_a_name_that_the_proxy_alone_knows() -> None:
    async with server() as port:
        with ConnectProxy(names={FAR: "127.0.0.1"}) as proxy:
            sock = await way(proxy).connect(FAR, port)
            with sock:
                await asyncio.get_running_loop().sock_sendall(sock, b"ping")
                assert await asyncio.get_running_loop().sock_recv(sock, 10) == b"pong"
    assert proxy.heads == [f"CONNECT {FAR}:{port} HTTP/1.1\r\nHost: {FAR}:{port}\r\n\r\n"]


async def test_credentials_go_to_the_proxy() -> None:
    async with server() as port:
        with ConnectProxy(names={FAR: "127.0.0.1"}, user="me:pä:ss") as proxy:
            (await way(proxy, "pä:ss", user="me").connect(FAR, port)).close()
    expected = base64.b64encode("me:pä:ss".encode()).decode()
    assert f"\r\nProxy-Authorization: Basic {expected}\r\n" in proxy.heads[0]


async def test_an_ipv6_address_is_asked_for_in_brackets() -> None:
    with ConnectProxy(misbehave=saying(b"HTTP/1.1 200 OK\r\n\r\n")) as proxy:
        (await way(proxy).connect("2001:db8::1", 9200)).close()
    assert proxy.targets == ["[2001:db8::1]:9200"]


@pytest.mark.parametrize("host", ["a b", "a\r\nX: y", "a/b", "user@host", "fe80::1%eth0", "a:b.c", "", "-x.example"])
async def test_a_host_that_would_change_the_request_is_asked_of_no_proxy(host: str) -> None:
    with ConnectProxy() as proxy:
        met = await failure(proxy, host=host)
    assert "cannot be asked for such a host" in met.reason
    assert proxy.heads == []


async def test_what_follows_the_answer_is_the_servers_first_word() -> None:
    """Some servers speak first; the host takes not one byte of that."""
    with ConnectProxy(misbehave=saying(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n220 hello\r\n\r\n")) as proxy:
        await asyncio.sleep(0)
        with await way(proxy).connect(FAR, 25) as sock:
            assert await asyncio.get_running_loop().sock_recv(sock, 100) == b"220 hello\r\n\r\n"


async def test_an_answer_may_arrive_letter_by_letter() -> None:
    answer = b"HTTP/1.0 200 Fine\r\nContent-Length: 0\r\n\r\n"
    letters = saying(*(bytes([each]) for each in answer), b"!", pause=0.002)
    with ConnectProxy(misbehave=letters) as proxy, await way(proxy).connect(FAR, 25) as sock:
        assert await asyncio.get_running_loop().sock_recv(sock, 100) == b"!"


# what it answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 400 Bad\r\n\r\n", "does not understand a request for es.internal:9200 (HTTP 400): Bad"),
        (b"HTTP/1.1 403 By policy\r\n\r\n", "does not allow connections to es.internal:9200 (HTTP 403): By policy"),
        (b"HTTP/1.1 405 \r\n\r\n", "does not allow CONNECT; it may be an ordinary web server (HTTP 405)"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "cannot reach es.internal:9200 (HTTP 502): Bad Gateway"),
        (b"HTTP/1.1 503 x\r\n\r\n", "cannot reach es.internal:9200 at the moment (HTTP 503): x"),
        (b"HTTP/1.1 504 x\r\n\r\n", "got no connection to es.internal:9200 in time (HTTP 504): x"),
        (b"HTTP/1.1 500\r\n\r\n", "refuses a connection to es.internal:9200 (HTTP 500)"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://evil/\r\n\r\n", "redirects to another address (HTTP 302): Found"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "refuses a connection to es.internal:9200 (HTTP 100): Continue"),
        (b"HTTP/1.1 407 x\r\nProxy-Authenticate: Basic realm=a\r\n\r\n", "wants credentials (HTTP 407): x"),
        (
            b"HTTP/1.1 407 x\r\nProxy-Authenticate: NTLM\r\nproxy-authenticate: Negotiate abc\r\n\r\n",
            "wants another kind of credentials than Basic (HTTP 407): ntlm, negotiate",
        ),
        (b"HTTP/2 200\r\n\r\n", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nnot a header\r\n\r\n", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", "does not speak HTTP/1.1"),
        (b"HTTP/1.1  200 OK\r\n\r\n", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 999 OK\r\n\r\n", "does not speak HTTP/1.1"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP/1.1"),
        (b"\x05\x00", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "a page where the connection should begin"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "a page where the connection should begin"),
        (b"", "gave no answer"),
        (b"HTTP/1.1 200 OK\r\n", "ended the connection before its answer was complete"),
        (b"HTTP/1.1 403 \x1b[31m" + b"a" * 200 + b"\r\n\r\n", f"(HTTP 403): [31m{'a' * 96}"),
    ],
)  # fmt: skip
async def test_an_answer_that_opens_nothing_is_told_by_name(answer: bytes, reason: str) -> None:
    with ConnectProxy(misbehave=saying(answer)) as proxy:
        met = await failure(proxy)
    assert met.reason.endswith(reason)
    assert met.reason.startswith(f"the HTTP proxy 127.0.0.1:{proxy.port} ")
    assert met.errno == errno.EPROTO
    assert str(proxy.port) not in str(met.strerror), "the driver's process learns the proxy's address"


async def test_wrong_credentials_are_no_missing_ones() -> None:
    with ConnectProxy(user="me:right") as proxy:
        met = await failure(proxy, password="wrong", user="me")
        assert "rejects the credentials (HTTP 407)" in met.reason
        assert met.hint == "dragoman connections edit {name} --proxy-user NAME --proxy-password env:NAME"
        assert "wrong" not in str(vars(met)) + str(met)


@pytest.mark.parametrize("line", [b"A: " + b"b" * 1000 + b"\r\n", b"x" * 1000, b"A: b\r\n" * 100])
async def test_headers_without_end_are_read_up_to_a_bound(line: bytes) -> None:
    sent = 0

    async def flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(line)
            await writer.drain()
            sent += len(line)

    with ConnectProxy(misbehave=flood) as proxy:
        assert (await failure(proxy)).reason.endswith(f"sends more than {MAX_ANSWER:,} bytes of headers")
    assert sent < 64 << 20


async def test_a_proxy_that_drips_is_given_up_and_costs_no_time_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_proxy, "SECONDS", 0.6)
    drip = saying(b"HTTP/1.1 200 OK\r\n", *[b"A: b\r\n"] * 1000, pause=0.05)
    with ConnectProxy(misbehave=drip) as proxy:
        began, busy = time.monotonic(), time.thread_time()
        assert (await failure(proxy)).reason.endswith("gave no answer within 0.6 s")
    assert time.monotonic() - began < 5
    assert time.thread_time() - busy < 0.3


async def test_a_proxy_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_proxy, "SECONDS", 0.1)
    with ConnectProxy(misbehave=saying(end=False)) as proxy:
        assert (await failure(proxy)).reason.endswith("gave no answer within 0.1 s")


async def test_a_proxy_that_does_not_listen_or_has_no_address_is_told() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        closed = taken.getsockname()[1]
    nowhere = HttpProxy(host="127.0.0.1", port=closed)
    assert (await failure(nowhere)).reason == f"the HTTP proxy 127.0.0.1:{closed} does not listen"
    unknown = HttpProxy(host="proxy.invalid", port=3128)
    assert (await failure(unknown)).reason == "the HTTP proxy proxy.invalid:3128 has a name that cannot be resolved"


async def test_a_proxys_name_leads_no_nearer_than_before(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch)
    names.answers["proxy.example"] = ["127.0.0.1"]
    saved, remembered = HttpProxy(host="proxy.example", port=3128), {"proxy.example": Nearness.PUBLIC}
    to = ProxyConnector(saved, "", AddressResolver([("proxy.example", 3128)], remembered=remembered))
    with pytest.raises(RouteError) as caught:
        await to.connect(FAR, 9200)
    assert isinstance(caught.value.nearer, NearerError)
    assert names.tried == []


@pytest.mark.parametrize("tls", [False, True])
async def test_servers_of_these_tests_that_end_amid_a_connection_leave_nothing_open(
    certificates: Certificates, *, tls: bool
) -> None:
    for _ in range(20):
        with ConnectProxy() as proxy, socket.create_connection((proxy.host, proxy.port)):
            pass
        async with server(tls=certificates.server_context() if tls else None) as port:
            with socket.create_connection(("127.0.0.1", port)):
                await anyio.sleep(0.001)
    gc.collect(1)  # what was left open is a warning now, and a warning an error


# through the broker ---------------------------------------------------------------------------------------------------


async def test_a_driver_reaches_its_server_and_nothing_else_through_a_proxy(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(monkeypatch)
    async with server() as port, server() as other:
        with ConnectProxy(names={FAR: "127.0.0.1"}) as proxy:
            via = HttpProxy(host=proxy.host, port=proxy.port)
            options: dict[str, Any] = {"approved": ((FAR, port),), "route": via, "host": FAR, "port": port}
            async with workshop.worker(CLIENT, **options) as worker:
                assert (await ask(worker, FAR, port))[0] == "pong"
                await worker.call("connect")
                [page] = await worker.call("list_objects", ObjectsRequest())
                assert (page.name, page.rows) == ("hello", 200)
                for host, number in ((FAR, other), ("other.internal", port), (proxy.host, proxy.port)):
                    assert await ask(worker, host, number) == ["PermissionError", errno.EACCES]
    assert proxy.targets == [f"{FAR}:{port}"] * 2
    assert workshop.denied == [(FAR, other), ("other.internal", port), (proxy.host, proxy.port)]
    assert set(names.looked_up) == {"127.0.0.1"}, "the server's name was looked up on this machine"


async def test_an_address_of_another_family_than_the_proxys_is_reached(workshop: Workshop) -> None:
    """The socket that a library made is of the server's family, and what the host passes of the proxy's."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    async with server() as port:
        with ConnectProxy(host="::1") as proxy:
            via = HttpProxy(host="::1", port=proxy.port)
            options: dict[str, Any] = {
                "approved": (("127.0.0.1", port),),
                "route": via,
                "host": "127.0.0.1",
                "port": port,
            }
            async with workshop.worker(CLIENT, **options) as worker:
                assert (await ask(worker, "127.0.0.1", port))[0] == "pong"
                await worker.call("connect")
                [page] = await worker.call("list_objects", ObjectsRequest())
                assert page.name == "hello"


async def test_a_host_of_the_manifest_is_reached_directly(workshop: Workshop) -> None:
    async with server() as port:
        with ConnectProxy() as proxy:
            via = HttpProxy(host=proxy.host, port=proxy.port)
            options: dict[str, Any] = {"approved": ((FAR, 9200),), "further": (("127.0.0.1", port),), "route": via}
            async with workshop.worker(CLIENT, **options) as worker:
                assert (await ask(worker, "127.0.0.1", port))[0] == "pong"
    assert proxy.heads == []


async def test_a_failure_tells_the_drivers_process_neither_the_proxys_name_nor_its_words(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names(monkeypatch).answers["proxy.example"] = ["127.0.0.1"]
    source = CLIENT.replace("return [type(error).__name__, error.errno]", "return str(error)")
    with ConnectProxy(user="me:right") as proxy:
        options: dict[str, Any] = {
            "route": HttpProxy(host="proxy.example", port=proxy.port, user="me-at-the-proxy"),
            "route_password": "correct-horse",
        }
        async with workshop.worker(source, approved=((FAR, 9200),), **options) as worker:
            said = await ask(worker, FAR, 9200)
    words = "what is between this machine and the server rejects the credentials (HTTP 407)"
    assert said == f"[Errno {errno.EPROTO}] {words}"


@pytest.mark.parametrize(("name", "found"), [(FAR, "hello"), ("other.internal", "made for another host name")])
async def test_tls_ends_in_the_drivers_process_and_checks_the_servers_own_name(
    workshop: Workshop, certificates: Certificates, name: str, found: str
) -> None:
    names = {FAR: "127.0.0.1", "other.internal": "127.0.0.1"}
    async with server(tls=certificates.server_context()) as port:
        with ConnectProxy(names=names) as proxy:
            via = HttpProxy(host=proxy.host, port=proxy.port)
            tls = {"ssl_mode": SslMode.VERIFY_IDENTITY, "ca_pem": certificates.ca.read_text()}
            async with workshop.worker(
                CLIENT, approved=((name, port),), route=via, host=name, port=port, tls=tls
            ) as worker:
                await worker.call("connect")
                try:
                    [page] = await worker.call("list_objects", ObjectsRequest())
                    said = page.name
                except DragomanError as error:
                    said = str(error)
    assert found in said
    assert proxy.targets == [f"{name}:{port}"]


# as it is saved -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://proxy.example:3128", "TLS to the proxy would have to end in the host"),
        ("socks5://proxy.example:1080", "socks5:// is not supported"),
        ("http://me:hunter2@proxy.example:3128", "a URL with a user in it"),
        ("http://proxy.example", "names no port"),
        ("http://proxy.example:3128/path", "not a path"),
        ("http://proxy.example:3128?x", "not a path or a query"),
        ("http://proxy.example:99999", "not a URL"),
        ("http://proxy.example:0", "is not a TCP port"),
        ("http://:3128", "is not a host"),
        ("http://-proxy:3128", "is not a host"),
        ("http://pro xy:3128", "is not a host"),
    ],
)
def test_what_is_no_address_of_a_proxy_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_proxy(url)
    assert reason in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("user", ["a:b", "a\nb", "a" * 256])
def test_a_user_that_no_proxy_can_read_is_refused(user: str) -> None:
    with pytest.raises(ConfigurationError, match="proxy-user"):
        HttpProxy(host="p", port=1, user=user)


def test_a_password_belongs_to_a_user_and_is_a_reference_to_a_secret() -> None:
    with pytest.raises(ConfigurationError, match="no user"):
        HttpProxy(host="p", port=1, password=Reference("env", "X"))
    with pytest.raises(ConfigurationError, match="not a reference to a secret"):
        HttpProxy(host="p", port=1, user="u", password=Reference("path", "/x"))


def test_a_proxy_reads_as_an_address() -> None:
    assert parse_proxy("proxy.example:3128") == parse_proxy("http://proxy.example:3128/")
    assert str(parse_proxy("http://[::1]:3128")) == "the HTTP proxy [::1]:3128"
