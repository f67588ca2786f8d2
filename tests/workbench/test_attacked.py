"""What a page of another site, another user of the machine, or a hostile text tries, and does not get."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from contextlib import AsyncExitStack
from types import SimpleNamespace
from unittest.mock import patch

import aiohttp
import anyio
import pytest

from browsing import signed_in, tab_of
from dragoman import RowKey
from dragoman_api.errors import (
    DRIVER,
    AuthenticationError,
    ConfigurationError,
    ConnectionFailedError,
    DriverFaultError,
    ExportError,
    ObjectNotFoundError,
    Refused,
)
from dragoman_api.installation import add_command, packages_missing
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_workbench.access import BUSY_SECONDS, DESCRIPTORS, FAILURES, Door, raise_descriptors
from dragoman_workbench.cells import key_text
from dragoman_workbench.event_stream import BUFFER, MAX_TABS, EventStream, encode
from dragoman_workbench.failures import CLOSED, failure_of
from dragoman_workbench.messages.routes import ROUTES, ServerEvent
from dragoman_workbench.server import HEADERS, MAX_BODY, RefusedError, _decode, find_assets
from extreme_bodies import extreme_bodies

SECRET = "hunter2 of a server"
FOREIGN_HOSTS = [
    "evil.example", "evil.example:PORT", "127.0.0.1.evil.example:PORT", "localhost.evil.example", "192.168.0.1:PORT",
    "0.0.0.0:PORT", "[::]:PORT", "127.0.0.1@evil.example", "127.0.0.1, evil.example", "", " ", "2130706433:PORT",
    "[::ffff:10.0.0.1]:PORT", "localhost.:PORT.evil", "127.0.0.1:PORT/evil.example\\",
]  # fmt: skip
OWN_HOSTS = ["127.0.0.1:PORT", "localhost:PORT", "[::1]:PORT", "localhost:9999"]
FOREIGN_ORIGINS = [
    "null", "http://evil.example", "https://127.0.0.1:PORT", "http://127.0.0.1", "http://127.0.0.1:1",
    "http://localhost:PORT", "http://127.0.0.1:PORT.evil.example", "http://127.0.0.1:PORT@evil.example", "file://",
    "chrome-extension://abcdef", "http://127.0.0.1:PORT/", "",
]  # fmt: skip
PATHS = [
    "/../messages.py", "/..%2fmessages.py", "/%2e%2e/messages.py", "/%2e%2e%2fmessages.py", "/assets/../../server.py",
    "//etc/passwd", "/etc/passwd", "/assets/%00", "/..\\messages.py", "/C:/Windows/win.ini", "/index.html%00.js",
    "/.git/config", "/secret.html", "/link.js", "/assets", "/assets/", "/page/index.html", "/api", "/download/",
]  # fmt: skip
BODIES = [
    b"", b"null", b"[]", b"{", b'{"x":1}', b'{"connection":1}', b'{"connection":"' + b"a" * 65 + b'"}', b"\xff\xfe",
    b"[" * 100_000, b'{"connection":"shop","connection":"shop","x":{}}', b'{"a":' * 50_000, b'{"connection":"\\ud800"}',
]  # fmt: skip


@pytest.fixture
def page(tmp_path):
    """Build a page of a few files, and lay others beside it."""
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "assets" / "index-1f2e.js").write_text("export {}")
    (folder / "notes.txt").write_text("not served")
    (tmp_path / "secret.html").write_text("outside")
    (folder / "link.js").symlink_to(tmp_path / "secret.html")
    return folder


@pytest.fixture
async def tab(home, page):
    async with signed_in(home, page=page) as tab:
        yield tab


def port_of(tab):
    return tab.place.url.rpartition(":")[2]


async def raw(tab, text):
    """Send bytes as they are, and return the answer's head and body."""
    stream = await anyio.connect_tcp("127.0.0.1", int(port_of(tab)))
    async with stream:
        await stream.send(text.encode() if isinstance(text, str) else text)
        data = b""
        with anyio.move_on_after(5):
            try:
                while True:
                    data += await stream.receive()
            except anyio.EndOfStream:
                pass
    return data.decode("latin-1")


def code_of(answer):
    """Return the code of the error in an answer."""
    return json.loads(answer.partition("\r\n\r\n")[2])["error"]["code"]


def post(tab, host, *, origin=None, secret=None, route="state"):
    lines = [f"POST /api/{route} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", "Content-Length: 2"]
    lines += [f"Origin: {origin}"] if origin is not None else []
    lines += [f"Dragoman-Secret: {secret or tab.secret}", "Connection: close", "", "{}"]
    return "\r\n".join(lines).replace("PORT", port_of(tab))


@pytest.mark.parametrize("host", OWN_HOSTS)
async def test_the_page_is_answered_under_the_names_of_this_machine(tab, host):
    assert (await raw(tab, post(tab, host, origin=f"http://{host}"))).startswith("HTTP/1.1 200")


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
async def test_another_name_for_this_machine_is_refused(tab, host):
    """DNS rebinding: a page of that name would be same-origin."""
    answer = await raw(tab, post(tab, host, origin=f"http://{host}"))
    assert answer.startswith(("HTTP/1.1 403", "HTTP/1.1 400", "HTTP/1.0 400"))
    assert "sandbox" not in answer
    assert " 403 " not in answer[:13] or code_of(answer) == "foreign"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_another_name_for_this_machine_gets_not_even_the_page(tab, method):
    answer = await raw(tab, f"{method} / HTTP/1.1\r\nHost: evil.example:{port_of(tab)}\r\nConnection: close\r\n\r\n")
    assert answer.startswith("HTTP/1.1 403")


async def test_two_hosts_or_none_are_refused(tab):
    own = f"127.0.0.1:{port_of(tab)}"
    both = post(tab, own, origin=f"http://{own}").replace("Content-Type", "Host: evil.example\r\nContent-Type", 1)
    assert not (await raw(tab, both)).startswith("HTTP/1.1 200")
    assert not (await raw(tab, "GET / HTTP/1.0\r\n\r\n")).startswith("HTTP/1.0 200")


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
async def test_a_page_of_another_site_is_refused(tab, origin):
    answer = await raw(tab, post(tab, "127.0.0.1:PORT", origin=origin))
    assert answer.startswith("HTTP/1.1 403")
    assert code_of(answer) == "foreign"


async def test_a_post_without_an_origin_is_refused(tab):
    answer = await raw(tab, post(tab, "127.0.0.1:PORT"))
    assert answer.startswith("HTTP/1.1 403")
    assert code_of(answer) == "foreign"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/api/events", "/download/x", "/assets/index-1f2e.js"])
async def test_another_site_cannot_embed_or_fetch(tab, site, path):
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Dragoman-Secret": tab.secret}
    async with aiohttp.ClientSession(tab.place.url) as http, http.get(path, headers=headers) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (403, "foreign")


async def test_a_link_from_another_site_opens_the_page_and_no_more(tab):
    """The entry file itself is another site: it has the scheme ``file``."""
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    async with aiohttp.ClientSession(tab.place.url) as http:
        async with http.get("/", headers=headers) as answer:
            assert answer.status == 200
        async with http.get("/api/events", headers=headers) as answer:
            assert answer.status == 403


async def test_no_answer_allows_another_origin(tab):
    async with tab.http.options("/api/state", headers={"Access-Control-Request-Method": "POST"}) as answer:
        assert answer.status in (403, 404, 405)
        assert not [name for name in answer.headers if name.startswith("Access-Control")]


@pytest.mark.parametrize("secret", ["", "wrong"])
async def test_every_route_wants_the_secret(tab, secret):
    tab.secret = secret
    for route in ROUTES.keys() - {"enter"}:
        assert (await tab.failure(route, status=401))["code"] == "no-secret"


async def test_the_event_stream_wants_the_secret_in_the_header(tab):
    for path, headers in (("/api/events", {}), (f"/api/events?secret={tab.secret}", {"Cookie": f"s={tab.secret}"})):
        async with tab.http.get(path, headers=headers) as answer:
            assert answer.status == 401


async def test_no_cookie_is_set(tab):
    async with tab.http.get("/") as answer:
        assert not answer.cookies


@pytest.mark.parametrize("upgrade", ["websocket", "h2c"])
async def test_nothing_is_upgraded(tab, upgrade):
    headers = {"Connection": "Upgrade", "Upgrade": upgrade, "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Dragoman-Secret": tab.secret}  # fmt: skip
    async with tab.http.get("/api/state", headers=headers) as answer:
        assert answer.status in (400, 403, 404, 405)


@pytest.mark.parametrize("path", PATHS)
async def test_no_address_leads_out_of_the_page(tab, path):
    answer = await raw(tab, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port_of(tab)}\r\nConnection: close\r\n\r\n")
    assert answer.split(" ")[1] in ("404", "400", "405"), answer
    assert not any(text in answer for text in ("outside", "root:", "not served", "import"))


def test_only_files_of_known_kinds_are_served(page):
    assert sorted(find_assets(page)) == ["/", "/assets/index-1f2e.js"]


async def test_the_page_itself_is_served(tab):
    async with tab.http.get("/") as answer:
        assert (answer.status, await answer.text()) == (200, "<!doctype html><title>page</title>")
        assert answer.headers["Cache-Control"] == "no-store"
    async with tab.http.get("/assets/index-1f2e.js") as answer:
        assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"


async def test_every_answer_has_the_headers_that_bind_the_browser(tab):
    own = f"127.0.0.1:{port_of(tab)}"
    heads = [
        await raw(tab, text)
        for text in (
            f"GET / HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n",
            f"GET /nothing HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n",
            f"PUT / HTTP/1.1\r\nHost: {own}\r\nOrigin: http://{own}\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
            f"GET /download/x HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n",
            post(tab, own, origin=f"http://{own}"),
            post(tab, own, origin=f"http://{own}", secret="wrong"),
            post(tab, own, origin=f"http://{own}", route="nothing"),
            post(tab, own, origin=f"http://{own}", route="open"),
        )
    ]
    assert [head.split(" ")[1] for head in heads] == ["200", "404", "405", "403", "404", "200", "401", "404", "400"]
    for head in heads:
        for name, value in HEADERS.items():
            assert f"\r\n{name}: {value}\r\n" in head


def test_the_headers_forbid_what_is_inline_foreign_or_framed():
    assert sorted(HEADERS["Content-Security-Policy"].split("; ")) == [
        "base-uri 'none'", "connect-src 'self'", "default-src 'none'", "font-src 'self'", "form-action 'none'",
        "frame-ancestors 'none'", "img-src 'self' data:", "require-trusted-types-for 'script'", "script-src 'self'",
        "style-src 'self'", "trusted-types dragoman-reader",
    ]  # fmt: skip
    assert HEADERS | {"Content-Security-Policy": ""} == {
        "Content-Security-Policy": "",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Referrer-Policy": "no-referrer",
        "Server": "dragoman",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:20]))
async def test_a_body_that_is_no_request_is_refused(tab, body):
    headers = {"Dragoman-Secret": tab.secret, "Content-Type": "application/json"}
    async with tab.http.post("/api/open", data=body, headers=headers) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["code"] == "bad-request"
    await tab("state")


@pytest.mark.parametrize("route", sorted(ROUTES))
def test_no_part_of_a_body_is_so_extreme_that_reading_it_fails(route):
    """It is a message, or a body that is refused: no check of a struct ends as a fault of the server."""
    usual, *bodies = extreme_bodies(ROUTES[route][0])
    assert _decode(usual, ROUTES[route][0])
    refusals = []
    for body in bodies:
        try:
            assert isinstance(_decode(body, ROUTES[route][0]), ROUTES[route][0])
        except RefusedError as refusal:
            refusals.append(refusal)
    assert all((refusal.status, refusal.failure.code) == (400, "bad-request") for refusal in refusals)
    assert all(refusal.failure.message for refusal in refusals)


@pytest.mark.slow
@pytest.mark.parametrize(
    "route",
    [
        "cell", "changes/plan", "changes/row", "console/complete", "console/history", "console/parse", "describe",
        "explain", "exports/start", "imports/copy", "imports/plan_copy", "imports/preview", "imports/start",
        "objects", "page", "queries/save",
    ],
)  # fmt: skip
async def test_no_part_of_a_body_is_so_extreme_that_the_server_fails(shop_tab, route, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.access.Tab.admit", lambda _: True)
    monkeypatch.setattr("dragoman_workbench.routes.jobs.MAX_RUNNING", 10_000)
    row = {"type": "filter", "column": "total", "op": "in", "value": ["1"], "group": None, "case": None}
    usual = {"connection": "shop", "object": "orders", "column": "total", "columns": ["total"], "tenant": None}
    usual |= {"filters": [row, {"type": "raw", "text": "a"}], "sort": [{"column": "total"}], "residual": None}
    usual |= {"revision": "", "since": None, "until": None, "all_time": True, "cursor": None, "replace": True}
    usual |= {"parent": None, "key": key_text(RowKey("orders", "17")), "text": "GET /"}
    usual |= {"kind": "drop", "typed": "orders"}
    headers = {"Dragoman-Secret": shop_tab.secret, "Content-Type": "application/json"}
    if "copy" in route:
        usual |= {"target": "shop", "object": "books", "making": "", "rows": {"object": "orders", "filters": [row]}}
        usual |= {"renamed": {}, "ids": None}
    elif route.startswith("imports/"):
        csv = {"data": b"total\n1\n", "headers": {**headers, "Content-Type": "application/octet-stream"}}
        async with shop_tab.http.post("/upload?name=a.csv", **csv) as answer:
            usual["upload"] = (await answer.json())["id"]
        usual |= {
            "format": "csv",
            "delimiter": ",",
            "encoding": "utf-8",
            "id": None,
            "renamed": {"a": ""},
            "types": {},
            "readings": {},
        }
    statuses = []
    for body in extreme_bodies(ROUTES[route][0], **usual):
        async with shop_tab.http.post(f"/api/{route}", data=body, headers=headers) as answer:
            statuses.append(answer.status)
            assert answer.status in (200, 400, 422), (body[:300], await answer.text())
    assert statuses[0] == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_body_that_a_form_could_send_is_refused(tab, kind):
    headers = {"Dragoman-Secret": tab.secret, "Content-Type": kind}
    async with tab.http.post("/api/state", data=b"{}", headers=headers) as answer:
        assert answer.status == 400


async def test_a_body_that_is_too_large_is_refused(tab):
    headers = {"Dragoman-Secret": tab.secret, "Content-Type": "application/json"}
    async with tab.http.post("/api/state", data=io.BytesIO(b" " * (MAX_BODY + 1)), headers=headers) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (413, "too-large")


async def test_a_large_body_without_a_secret_is_not_read(tab):
    tab.secret = ""
    status, answer = await tab.send("enter", {"token": "x" * 100_000})
    assert (status, answer["error"]["code"]) == (413, "too-large")


async def test_headers_are_bounded(tab):
    answer = await raw(tab, f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {'a' * 100_000}\r\n\r\n")
    assert answer.split(" ")[1] == "400"


async def test_tabs_that_listen_are_bounded(tab, monkeypatch):
    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_TABS):
            await tasks.start(tab.listen)
        async with tab.http.get("/api/events", headers={"Dragoman-Secret": tab.secret}) as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (429, "too-many")
        tasks.cancel_scope.cancel()


async def test_requests_of_a_tab_are_bounded(tab, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.access.BURST", 2.0)
    monkeypatch.setattr("dragoman_workbench.access.RATE", 0.0)
    answers = [await tab.send("exports", {}) for _ in range(3)]
    assert [status for status, _ in answers] == [200, 200, 429]
    assert answers[-1][1]["error"]["code"] == "too-many"


async def test_requests_that_failed_no_longer_count_as_running(tab, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.access.AT_ONCE", 1)
    answers = [await tab.send(route, {}) for route in ("open", "nothing", "open", "exports")]
    assert [status for status, _ in answers] == [400, 404, 400, 200]


async def test_wrong_tokens_do_not_shut_out_the_right_one(tab, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.server.WRONG_SECONDS", 0.01)
    token = (await tab("token"))["token"]
    async with tab_of(tab.place) as other:
        for _ in range(2 * FAILURES):
            await other.send("enter", {"token": "wrong"})
        assert (await other.send("enter", {"token": "wrong"}))[0] == 429
        await other.enter(token)
        await other("state")


@pytest.fixture
def crowd(monkeypatch):
    """Let in few guests."""
    monkeypatch.setattr("dragoman_workbench.access.MAX_GUESTS", 8)


async def _crowd(stack, place, count):
    """Connect often, and say nothing."""
    port = int(place.url.rpartition(":")[2])
    return [await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port)) for _ in range(count)]


async def _closed(stream):
    """Return whether the other side has ended a connection."""
    try:
        with anyio.move_on_after(0.2):
            return not await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True
    return False


async def test_connections_that_say_nothing_do_not_shut_out_a_tab(crowd, home):
    async with signed_in(home) as tab, AsyncExitStack() as stack:
        held = await _crowd(stack, tab.place, 40)
        await tab("state")  # over the line that it has
        async with tab_of(tab.place) as other:
            await other.enter((await tab("token"))["token"])  # over a new one
            await other("state")
        assert [await _closed(stream) for stream in (held[0], held[-1])] == [True, False]


async def test_a_guest_has_a_few_seconds_and_a_tab_keeps_its_line(home, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.access.GUEST_SECONDS", 0.1)
    monkeypatch.setattr("dragoman_workbench.access.LOOK_SECONDS", 0.05)
    async with signed_in(home) as tab, AsyncExitStack() as stack:
        [silent, slow] = await _crowd(stack, tab.place, 2)
        await slow.send(b"POST /api/state HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        connector = tab.http.connector
        before = {id(one) for lines in connector._conns.values() for one, _ in lines}
        await anyio.sleep(0.4)
        assert [await _closed(stream) for stream in (silent, slow)] == [True, True]
        await tab("state")
        assert before == {id(one) for lines in connector._conns.values() for one, _ in lines} != set()


class Line(asyncio.WriteTransport):
    """A connection that is only ended."""

    def __init__(self):
        self.ended = False

    def abort(self):
        self.ended = True


class Silent(asyncio.Protocol):
    """A server that answers nothing."""


@pytest.fixture
def clock(monkeypatch):
    """Return the moments that the door reads; a test moves them on."""
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr("dragoman_workbench.access.time.monotonic", lambda: clock.now)
    return clock


def connected(door):
    """Let a guest in, and return its connection and what is told of it."""
    line, protocol = Line(), door.before(Silent)()
    protocol.connection_made(line)
    return line, protocol


def show_out(door):
    """Look once who has been there for too long."""
    naps = patch("dragoman_workbench.access.anyio.sleep", side_effect=[None, KeyboardInterrupt])
    with naps, pytest.raises(KeyboardInterrupt):
        door.watch().send(None)


def test_guests_take_at_most_a_quarter_of_the_descriptors(monkeypatch):
    monkeypatch.setattr("dragoman_workbench.access.raise_descriptors", lambda: 16)
    door = Door()
    lines = [connected(door)[0] for _ in range(6)]
    assert [line.ended for line in lines] == [True, True, False, False, False, False]


def test_every_guest_whose_time_is_over_is_shown_out_and_no_other(clock):
    door = Door()
    [(idle, _), (silent, _), (answered, _), (slow, _), (signed_in, _), (left, protocol)] = [
        connected(door) for _ in range(6)
    ]
    protocol.connection_lost(None)
    door.welcome(signed_in)
    clock.now += 5
    with door.answering(slow):
        with door.answering(answered):
            clock.now += 9
        clock.now += 9
        late, _ = connected(door)
        show_out(door)
        ended = {"idle": idle, "silent": silent, "answered": answered, "slow": slow, "own": signed_in, "left": left}
        assert [name for name, line in ended.items() if line.ended] == ["idle", "silent"]
        clock.now += 9
        show_out(door)
        assert [line.ended for line in (answered, slow, late)] == [True, False, False]
        clock.now += BUSY_SECONDS
        show_out(door)
        assert [line.ended for line in (slow, late, signed_in, left)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("soft", "hard", "limit", "raised"),
    [
        (256, 4_096, 4_096, 4_096), (256, 1 << 20, DESCRIPTORS, DESCRIPTORS), (256, -1, DESCRIPTORS, DESCRIPTORS),
        (1 << 15, 1 << 20, 1 << 15, None), (-1, -1, DESCRIPTORS, None), (4_096, 4_096, 4_096, None),
    ],
)  # fmt: skip
def test_descriptors_are_raised_and_never_lowered(monkeypatch, soft, hard, limit, raised):
    resource = pytest.importorskip("resource")
    limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.append(pair))
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    assert raise_descriptors() == limit
    assert limits == ([] if raised is None else [(raised, hard)])


async def test_a_slow_tab_is_told_that_it_lost_messages_and_the_others_lose_none():
    stream = EventStream()
    with stream.listen() as slow, stream.listen() as quick:
        for number in range(BUFFER + 1):
            stream.send(ServerEvent(kind="closed", closed=f"c{number}"))
            assert await quick.next() == encode(ServerEvent(kind="closed", closed=f"c{number}"))
        last = encode(ServerEvent(kind="closed", closed=f"c{BUFFER}"))
        assert await slow.next() == encode(ServerEvent(kind="lost")) + last
        stream.end()
        assert [await slow.next(), await quick.next()] == [encode(ServerEvent(kind="bye"))] * 2
    assert not stream.full


def test_the_soft_limit_of_descriptors_is_raised_as_far_as_it_may_be():
    """Half of a default of 1,024 would be gone with a few drivers."""
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096));"
        "from dragoman_workbench.access import raise_descriptors;"
        "print(raise_descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "4096 (4096, 4096)\n"


UNLOCK = Remedy(RemedyKind.UNLOCK, {"connection": "other"})


@pytest.mark.parametrize("code", ["production-locked", CLOSED])
def test_what_a_driver_names_unlocks_and_opens_nothing(code):
    """A driver's error is about the connection that was asked; its word for another one is only text."""
    forged = DriverFaultError("no", code=code, remedies=[UNLOCK], details={"connection": "other"})
    shown = failure_of(forged, connection="mine").remedy
    assert shown is None or (code == CLOSED and shown.target == "mine")
    assert failure_of(forged).remedy is None
    for error in (Refused("locked", remedies=[UNLOCK]), ConfigurationError("closed", code=CLOSED)):
        assert failure_of(error).remedy is None, "a request about no connection unlocks and opens none"
    real = failure_of(Refused("locked", remedies=[UNLOCK]), connection="mine").remedy
    assert (real.action, real.target) == ("unlock", "mine")


def failing(kind, hint="", **more):
    """Return an error of a kind, as the page shows it."""
    return failure_of(kind("no", hint=hint, **more), connection="mine")


@pytest.mark.parametrize(
    ("hint", "action", "target"),
    [
        ("dragoman plugins install demo", "install", "demo"),
        ("dragoman plugins install demo --version 1.0 --yes", "install", "demo"),
        ("dragoman plugins update demo", "update", "demo"),
        ("dragoman plugins update demo --yes", "update", "demo"),
        ("dragoman plugins repair demo", "repair", "demo"),
        ("dragoman plugins repair demo --yes", "repair", "demo"),
        ("dragoman plugins enable demo", "enable", "demo"),
        ("dragoman connections edit shop --port 9200", "edit", "shop"),
        ("dragoman plugins remove demo", "drivers", "demo"),
        ("dragoman plugins browse", "drivers", ""),
        ("dragoman connections add shop", "new", "shop"),
        ("dragoman connections show shop\nthen repeat the command", "edit", "shop"),
        ("dragoman doctor", "command", "dragoman doctor"),
        ("run dragoman plugins install demo", None, None),
        ("dragoman plugins list\nrm x", None, None),
        ("", None, None),
    ],
)
def test_a_hint_that_the_page_can_carry_out_is_a_button_unless_a_driver_wrote_it(hint, action, target):
    shown = failing(ConfigurationError, hint)
    remedy = shown.remedy
    assert shown.hint == ("" if remedy else hint), "what a button does is no text"
    assert (remedy and (remedy.action, remedy.target)) == (action and (action, target))
    forged = ConfigurationError("no", hint=hint)
    forged.hint_from = DRIVER
    assert failure_of(forged, connection="mine").remedy is None


def test_an_argument_of_python_is_no_hint_of_the_page():
    assert failing(ExportError, "export with resume=True to continue").hint == ""
    assert failing(ExportError, "free some space").hint == "free some space"


def test_the_command_that_installs_what_is_missing_is_copied_by_a_button():
    remedy = failure_of(packages_missing("no pyarrow", "dragoman[arrow]")).remedy
    assert (remedy.action, remedy.target) == ("command", add_command("dragoman[arrow]"))


@pytest.mark.parametrize(
    ("connection", "source", "target"),
    [("mine", "", "mine"), ("", "", "other"), ("mine", DRIVER, "mine"), ("", DRIVER, None)],
)
def test_an_error_about_a_field_leads_to_the_connection_of_the_request_or_to_the_one_that_the_host_names(
    connection, source, target
):
    error = ConfigurationError("no", remedies=[Remedy(RemedyKind.EDIT_FIELD, {"connection": "other", "field": "port"})])
    error.hint_from = source
    remedy = failure_of(error, connection=connection).remedy
    assert (remedy and (remedy.action, remedy.target)) == (target and ("edit", target))


@pytest.mark.parametrize(
    ("kind", "message", "field"),
    [
        (AuthenticationError, "no such user", "auth_method"),
        (ConnectionFailedError, "certificate has expired", "ssl_mode"),
        (ConnectionFailedError, "it speaks no TLS", "ssl_mode"),
        (ConnectionFailedError, "wrong version of SSL", "ssl_mode"),
        (ConnectionFailedError, "connection refused", "host"),
        (ConfigurationError, "connection refused", ""),
    ],
)
def test_an_error_is_shown_at_the_field_that_mends_it(kind, message, field):
    assert failure_of(kind(message)).field == field
    assert failure_of(kind(message, details={"field": "port"})).field == "port"
    named = kind(message, details={"field": "port"})
    named.hint_from = DRIVER
    assert failure_of(named).field == field


def test_an_object_that_is_missing_leads_to_the_objects_of_the_connection_that_was_asked():
    missing = ObjectNotFoundError("no", remedies=[Remedy(RemedyKind.LIST_OBJECTS, {"connection": "other"})])
    missing.hint_from = DRIVER
    shown = failure_of(missing, connection="mine")
    assert (shown.remedy.action, shown.remedy.target, shown.hint) == ("objects", "mine", "")
    assert failure_of(missing).remedy is None


def test_texts_of_a_failure_are_bounded_and_only_a_number_is_a_row():
    long = "x" * 4_001
    shown = failure_of(ConfigurationError(long, hint=long, details={"a": long, "row": True}))
    cut = "x" * 4_000 + "…"
    assert (shown.message, shown.hint, shown.details["a"], shown.row) == (cut, cut, cut, None)
    whole = failure_of(ConfigurationError("x" * 4_000, details={"row": 1}))
    assert (whole.message, whole.row) == ("x" * 4_000, 1)
    assert failure_of(ConfigurationError("x", details={"row": 0})).row == 0


async def test_wrong_tokens_are_slowed_down(tab, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.server.WRONG_SECONDS", 0.01)
    found = [(await tab.send("enter", {"token": f"guess{n}"}))[0] for n in range(25)]
    assert set(found) == {401, 429}
    assert found[-1] == 429


async def test_an_unexpected_error_tells_neither_page_nor_log_its_text(tab, monkeypatch, caplog):
    async def fail(*_, **__):
        raise RuntimeError(SECRET)

    monkeypatch.setattr("dragoman.plugins.lifecycle.Plugins.browse", fail)
    status, answer = await tab.send("plugins/browse", {})
    assert status == 500
    assert "hunter2" not in json.dumps(answer)
    assert "RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text
