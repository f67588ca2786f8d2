"""A registry on the web: however its server answers, a request ends in time, within its bounds and at its origin."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import pytest

from dragoman_api.errors import RegistryError
from dragoman_registry import sources
from dragoman_registry.http_requests import _origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Answer = Callable[["Talk"], None]

OK = b"HTTP/1.1 200 OK\r\n"
PATIENCE = 20  # seconds that only a wait without an end takes


class Talk:
    """One connection of a server, which ends with the test.

    Attributes:
        request: What the client sent.
    """

    def __init__(self, sock: socket.socket, over: threading.Event) -> None:
        self.sock, self._over = sock, over
        self.request = b""

    def say(self, data: bytes) -> None:
        self.sock.sendall(data)

    def trickle(self, data: bytes = b"a") -> None:
        """Send the same again and again, slowly, as long as somebody is there."""
        while not self._over.wait(0.02):
            self.say(data)

    def flood(self, data: bytes) -> None:
        while not self._over.is_set():
            self.say(data * 64)

    def silence(self) -> None:
        self._over.wait(PATIENCE)


@contextmanager
def serving(answer: Answer, *, greets: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """Answer each connection; yield the port, and the requests as they come."""
    over, requests, threads = threading.Event(), list[bytes](), list[threading.Thread]()

    def talk(sock: socket.socket) -> None:
        with closing(sock), suppress(OSError):
            talk = Talk(sock, over)
            if not greets:
                talk.request = sock.recv(65536)
                requests.append(talk.request)
            answer(talk)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threads.append(threading.Thread(target=talk, args=(listener.accept()[0],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield listener.getsockname()[1], requests
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            for thread in (accepting, *threads):
                thread.join()


def ended(location: str) -> RegistryError:
    """Read a file in a thread, wait for a limited time, and return the error."""
    found: list[BaseException] = []

    def read() -> None:
        try:
            sources.read(sources.open_source(location), "metadata/x.json", limit=1 << 20)
        except BaseException as error:  # noqa: BLE001 - the test judges it
            found.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, f"nothing ended it within {PATIENCE} s"
    assert isinstance(found[0], RegistryError), repr(found[0])
    return found[0]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit a whole request to one second."""
    monkeypatch.setattr(sources, "DEADLINE", 1.0)


def gave_up(location: str) -> bool:
    """Check whether reading ends at the deadline of the whole request, not at the limit for one silence."""
    return ended(location).message.endswith(f" {sources.DEADLINE:g} s")


def in_head(talk: Talk) -> None:
    talk.say(OK + b"X-A: ")
    talk.trickle()


def in_interim(talk: Talk) -> None:
    talk.trickle(b"HTTP/1.1 100 Continue\r\n\r\n")


def in_body(talk: Talk) -> None:
    talk.say(OK + b"\r\n")
    talk.trickle(b"{")


def in_chunks(talk: Talk) -> None:
    talk.say(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    talk.trickle(b"1\r\n{\r\n")


def in_trailers(talk: Talk) -> None:
    talk.say(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n")
    talk.trickle(b"X-A: b\r\n")


def in_redirects(talk: Talk) -> None:
    talk.say(b"HTTP/1.1 302 Found\r\nLocation: /again\r\n\r\n")
    talk.trickle()


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("part", [in_head, in_interim, in_body, in_chunks, in_trailers])
def test_a_server_that_trickles_is_given_up_at_the_deadline(part: Answer):
    with serving(part) as (port, _):
        assert gave_up(f"http://127.0.0.1:{port}")


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
def test_one_deadline_holds_over_all_redirects():
    def again(talk: Talk) -> None:
        threading.Event().wait(0.4)
        talk.say(b"HTTP/1.1 302 Found\r\nLocation: /%d\r\n\r\n" % len(requests))

    with serving(again) as (port, requests):
        assert gave_up(f"http://127.0.0.1:{port}")
        assert 2 <= len(requests) <= 4


@pytest.mark.parametrize("data", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n"])
def test_interim_answers_without_an_end_are_bounded_by_their_bytes(data: bytes):
    with serving(lambda talk: talk.flood(data)) as (port, _):
        assert "65,536" in ended(f"http://127.0.0.1:{port}").message


@pytest.mark.parametrize("line", [b"X-A: b\r\n", b"X-A: " + b"b" * 60_000 + b"\r\n"])
def test_headers_without_an_end_are_refused(line: bytes):
    def answer(talk: Talk) -> None:
        talk.say(OK)
        talk.flood(line)

    with serving(answer) as (port, _):
        assert "headers" in ended(f"http://127.0.0.1:{port}").message


@pytest.mark.usefixtures("hurried")
def test_a_name_that_is_looked_up_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch):
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(PATIENCE + 5))
    try:
        assert gave_up("http://registry.example")
    finally:
        over.set()


@pytest.mark.usefixtures("hurried")
def test_a_tls_handshake_that_does_not_end_is_given_up():
    with serving(lambda talk: talk.trickle(b"\x16"), greets=True) as (port, _):
        assert "127.0.0.1" in ended(f"https://127.0.0.1:{port}").message


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
def test_a_proxy_that_trickles_its_answer_is_given_up(monkeypatch: pytest.MonkeyPatch):
    def tunnel(talk: Talk) -> None:
        talk.say(b"HTTP/1.1 200 Connection established\r\nX-A: ")
        talk.trickle()

    with serving(tunnel) as (port, requests):
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        assert gave_up("https://registry.example")
        assert requests[0].startswith(b"CONNECT registry.example:443 ")


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch):
    with serving(lambda talk: talk.say(OK + b"Content-Length: 2\r\n\r\n{}")) as (port, requests):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        source = sources.open_source("http://registry.example/team")
        assert sources.read(source, "metadata/x.json", limit=10) == b"{}"
        assert requests[0].startswith(b"GET http://registry.example/team/metadata/x.json ")


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1:{other}/x",
        "http://localhost:{port}/x",
        "http://127.0.0.1.:{port}/x",
        "//127.0.0.1:{other}/x",
        "https://127.0.0.1:{port}/x",
        "ftp://127.0.0.1:{port}/x",
        "http://127.0.0.1:{port}@127.0.0.1:{other}/x",
        "http://127.0.0.1/x",
        "http://evil.example:80@127.0.0.1:{port}/x",
        "//user:password@127.0.0.1:{port}/x",
    ],
)
def test_a_redirect_to_another_scheme_host_or_port_is_refused(to: str):
    with serving(lambda talk: talk.say(OK + b"\r\n")) as (other, reached):

        def answer(talk: Talk) -> None:
            location = to.format(port=port, other=other).encode()
            talk.say(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")

        with serving(answer) as (port, requests):
            error = ended(f"http://127.0.0.1:{port}")
            assert error.code == "registry-unreachable"
            assert to.format(port=port, other=other) in error.message
            assert len(requests) == 1
        assert reached == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a/x", "http://a:80/y", True), ("https://a/x", "https://a:443/y", True),
        ("https://a", "https://a:80", False), ("http://a", "http://a:443", False), ("https://a", "https://a:1", False),
    ],
)  # fmt: skip
def test_an_origin_has_the_port_of_its_scheme(one: str, other: str, *, same: bool):
    assert (_origin(one) == _origin(other)) is same


def test_what_a_server_says_of_its_failure_is_not_told_at_any_length():
    with serving(lambda talk: talk.say(b"HTTP/1.1 500 " + b"A" * 60_000 + b"\r\n\r\n")) as (port, _):
        assert len(ended(f"http://127.0.0.1:{port}").message) < 1_000


@pytest.mark.parametrize("address", ["http://me:hunter2@{}/x", "https://hunter2@{}", "http://{}/x?token=hunter2"])
def test_an_address_with_a_secret_in_it_is_refused_and_not_repeated(address: str):
    with serving(lambda talk: talk.say(OK + b"\r\n")) as (port, requests):
        with pytest.raises(RegistryError, match=r"127\.0\.0\.1") as caught:
            sources.read(sources.open_source(address.format(f"127.0.0.1:{port}")), "x", limit=9)
        assert caught.value.code == "registry-unreachable"
        assert "hunter2" not in json.dumps(caught.value.to_dict())
        assert requests == []


@pytest.mark.parametrize("address", ["http://[::1", "http://127.0.0.1:x/", "https://127.0.0.1:99999"])
def test_an_address_that_is_none_is_named(address: str):
    with pytest.raises(RegistryError) as caught:
        sources.read(sources.open_source(address), "x", limit=9)
    assert caught.value.code == "registry-unreachable"
    assert caught.value.message.startswith(repr(address))


def test_a_redirect_within_the_origin_is_followed_and_its_own_body_is_not_read():
    def answer(talk: Talk) -> None:
        if b"/there " in talk.request:
            talk.say(OK + b"Content-Length: 2\r\n\r\n{}")
        else:
            talk.say(b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:%d/there\r\n\r\n" % port)
            talk.flood(bytes(1 << 10))

    with serving(answer) as (port, requests):
        source = sources.open_source(f"http://127.0.0.1:{port}")
        assert sources.read(source, "metadata/x.json", limit=10) == b"{}"
        assert len(requests) == 2


def test_redirects_in_a_circle_end():
    with serving(lambda talk: talk.say(b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n")) as (port, requests):
        assert "302" in ended(f"http://127.0.0.1:{port}").message
        assert len(requests) <= 11


@pytest.mark.parametrize("part", [in_head, in_body, lambda talk: talk.silence()])
async def test_a_command_that_is_interrupted_does_not_wait_for_the_server(part: Answer):
    with serving(part) as (port, requests):
        source = sources.open_source(f"http://127.0.0.1:{port}")
        read, cancelled = anyio.Event(), False

        async def install() -> None:
            nonlocal cancelled
            try:
                await anyio.to_thread.run_sync(lambda: sources.read(source, "metadata/x.json", limit=1 << 20))
            finally:
                cancelled = True
                read.set()

        with anyio.fail_after(sources.STALL - 2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(install)
                while not requests:
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
        assert cancelled
