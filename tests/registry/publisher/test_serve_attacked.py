"""A server for uploads under attack: strangers' bytes hold up no other upload, and it ends when it is told to."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

import wheelhouse
from dragoman_registry import isolation
from dragoman_registry.publisher import inbox as inboxes
from dragoman_registry.publisher import serve, upload_requests
from dragoman_registry.publisher.inbox import Inbox
from slow_cases import mostly_slow
from uploading import (
    TOKENS,
    ask,
    basic,
    command,
    eventually,
    form,
    judge_for_ever,
    left,
    open_upload,
    post,
    served,
    wheel,
)  # fmt: skip

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "w")])


@pytest.fixture
def told() -> list[Any]:
    return []


@pytest.mark.timeout(180)
@pytest.mark.slow
def test_a_wheel_that_takes_for_ever_holds_nobody_up_and_is_refused(tmp_path, root, told, monkeypatch):
    monkeypatch.setattr(upload_requests, "judge", judge_for_ever)
    timers = []

    class Kept(threading.Timer):
        def start(self) -> None:
            timers.append(self)
            super().start()

    monkeypatch.setattr(isolation, "Timer", Kept)
    with served(root, tokens=TOKENS, on_event=told.append) as url, ThreadPoolExecutor(2) as pool:
        first = pool.submit(post, url, form(wheel(tmp_path / "w2", "6.6.6")))
        eventually(lambda: any(name.startswith(".draft-") for name in left(root)))
        assert ask(url, "/targets/catalog")[0] == 200
        assert post(url, form(wheel(tmp_path / "w3")), authorization=basic("bob", TOKENS["bob"]))[0] == 200
        assert not first.done()
        eventually(lambda: len(timers) == 2)
        for timer in timers:
            timer.function()  # the time of the first one is up; the other has ended
        status, reason, _ = first.result(100)
    assert (status, reason.partition(":")[0]) == (400, "work-ended")
    assert not any(name.startswith(".draft-") for name in left(root))


@pytest.mark.parametrize(
    ("busy", "number"),
    mostly_slow(
        product(("judging", "receiving", "sending", "header"), (signal.SIGTERM, signal.SIGINT)),
        fast=[("sending", signal.SIGTERM)],
    ),
)
def test_the_server_ends_at_once_whatever_is_going_on(busy, number, tmp_path, root):
    (root / "targets/simple/big").mkdir()
    with (root / "targets/simple/big/index.html").open("wb") as file:
        file.truncate(1 << 30)
    with command(root, tmp_path) as (process, said), contextlib.ExitStack() as stack:
        url = said["url"]
        if busy == "judging":
            body = form(huge(tmp_path / "w2"))
            stack.enter_context(open_upload(url, body)).sendall(body)
            eventually(lambda: any(".whl" in name for name in left(root)))
        elif busy == "receiving":
            body = form(wheel(tmp_path / "w2"))
            stack.enter_context(open_upload(url, body)).sendall(body[:1000])
            eventually(lambda: any(name.startswith(".draft-") for name in left(root)))
        else:
            connection = stack.enter_context(dialled(url))
            path = b"/targets/simple/big/index.html" if busy == "sending" else b"/"
            connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"\r\n" * (busy == "sending"))
            time.sleep(0.3)
        began = time.monotonic()
        process.send_signal(number)
        assert process.wait(30) == 0
        assert time.monotonic() - began < 20, "it is a second on a quiet machine, and for ever it was"
    assert left(root) == set()


def huge(folder: Path) -> Path:
    """Write a wheel with so many bytes to unpack that judging it takes a while, within every bound."""
    half = b"." + os.urandom(1 << 20) + bytes(50 << 20)
    return wheelhouse.Driver(version="6.6.6", files={f"dragoman_demo/{n}.bin": half for n in range(4)}).write(folder)


def dialled(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


@pytest.mark.slow
def test_a_client_that_trickles_is_cut_off_and_holds_no_other(tmp_path, root, told, monkeypatch):
    monkeypatch.setattr(upload_requests, "STALL", 1.0)
    with served(root, tokens=TOKENS, on_event=told.append) as url, contextlib.ExitStack() as stack:
        body = form(wheel(tmp_path / "w2"))
        for _ in range(6):
            stack.enter_context(open_upload(url, body)).sendall(body[:500])
        eventually(lambda: any(name.startswith(".draft-") for name in left(root)))
        assert post(url, form(wheel(tmp_path / "w3")), authorization=basic("bob", TOKENS["bob"]))[0] == 200
        eventually(lambda: len(told) == 7)
        assert not any(name.startswith(".draft-") for name in left(root))
        assert {event.name for event in told} == {"registry.upload_refused", "registry.upload_received"}


@pytest.mark.slow
def test_a_body_slower_than_its_rate_is_cut_off(tmp_path, root, told, monkeypatch):
    monkeypatch.setattr(upload_requests, "STALL", 1.0)
    with served(root, tokens=TOKENS, on_event=told.append) as url:
        body = form(wheel(tmp_path / "w2"))
        with open_upload(url, body, length=100 << 20) as connection, contextlib.suppress(OSError):
            for at in range(500):  # a byte now and then is no progress
                connection.sendall(body[at : at + 1])
                if told:
                    break
                time.sleep(0.05)
        eventually(lambda: told)
    assert told[0].codes == ["upload-too-slow"]


@pytest.mark.slow
def test_a_header_that_does_not_end_is_cut_off(root, monkeypatch):
    monkeypatch.setattr(serve, "HEADER", 0.5)
    with served(root, tokens=TOKENS) as url:
        for start in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "):
            with dialled(url) as connection:
                connection.sendall(start)
                assert connection.recv(1 << 16) == b""
        with dialled(url) as connection:  # even behind a first one that was answered
            connection.sendall(b"HEAD /targets/catalog HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET / HT")
            said = b""
            while data := connection.recv(1 << 16):
                said += data
            assert said.startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_connections_that_say_nothing_make_way_for_those_that_ask(root, monkeypatch):
    monkeypatch.setattr(serve, "CONNECTIONS", 8)
    with served(root) as url, contextlib.ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(dialled(url))
        for _ in range(3):
            assert ask(url, "/targets/catalog")[0] == 200


@pytest.mark.slow
def test_an_inbox_takes_so_many_wheels_and_no_more(tmp_path, root, monkeypatch):
    monkeypatch.setattr(inboxes, "MAX_WAITING", 2)
    with served(root, tokens=TOKENS) as url:
        answers = [post(url, form(wheel(tmp_path / f"w{n}", f"1.{n}.0")))[:2] for n in (1, 2, 3)]
    assert [status for status, _ in answers] == [200, 200, 507]
    assert answers[2][1].startswith("inbox-full: ")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200), ("localhost:{port}", 200), ("LOCALHOST", 200), ("[::1]:1", 200),
        ("evil.example", 421), ("evil.example:{port}", 421), ("127.0.0.1.evil.example", 421), ("", 421),
        ("169.254.169.254", 421), ("localhost.", 200),
    ],
)  # fmt: skip
def test_a_page_of_somebody_elses_cannot_read_it_under_its_own_name(host, status, root):
    with served(root, tokens=TOKENS) as url, dialled(url) as connection:
        named = host.replace("{port}", str(urlsplit(url).port))
        connection.sendall(f"GET /targets/catalog HTTP/1.1\r\nHost: {named}\r\nConnection: close\r\n\r\n".encode())
        assert connection.recv(100).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_name_that_it_was_told_is_its_own_too(root):
    with served(root, names=["drivers.example"]) as url:
        assert ask_as(url, "drivers.example") == 200
        assert ask_as(url, "other.example") == 421


def ask_as(url: str, host: str) -> int:
    with dialled(url) as connection:
        connection.sendall(f"GET /targets/catalog HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return int(connection.recv(100).split()[1])


@pytest.mark.slow
def test_a_page_in_a_browser_uploads_nothing(tmp_path, root):
    with served(root, tokens=TOKENS) as url:
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
            assert post(url, form(wheel(tmp_path / "w2")), Origin=origin)[0] == 403
        assert post(url, form(wheel(tmp_path / "w2")), Origin=url)[0] == 200


def test_a_pipe_in_the_place_of_a_file_blocks_nothing(root):
    for name in ("index.html", "metadata/timestamp.json", "targets/catalog"):
        (root / name).unlink()
        os.mkfifo(root / name)
    with pytest.raises(serve.ConfigurationError), served(root):
        pass
    Inbox(root).waiting()
