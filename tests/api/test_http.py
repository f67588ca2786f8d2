"""The HTTP client against real servers on loopback that answer, close, hang and lie."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import anyio.lowlevel
import pytest
from api.loopback import Reply, Request, http, serving

from dragoman_api.connections import AuthScheme, Profile, Secrets, SslMode
from dragoman_api.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ConnectionFailedError,
    DragomanError,
    QueryError,
)
from dragoman_api.http import Http
from dragoman_api.remedies import Remedy

if TYPE_CHECKING:
    from wording import Wording


def profile(port: int = 9200, **changes: Any) -> Profile:
    return Profile(**{"name": "shop", "type": "memory", "host": "127.0.0.1", "port": port, **changes})


def always(reply: Reply):
    return lambda request: reply


async def failing(reply: Reply, **arguments: Any) -> ConnectionFailedError:
    """Send one request to a server that answers so, and give the error."""
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request("GET", "/", **arguments)
    assert caught.value.message.startswith(f"Connection failed: 127.0.0.1:{server.port}: ")
    return caught.value


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/books/_doc/a%2Fb",
        "/books/_doc/a%2fb%zz",
        "/a/../b/./c",
        "/a+b?q=c+d%20e&f=%2B&f=",
        "/a?b?c=/../",
        "/%3Clogs-%7Bnow%2Fd%7D%3E/<x>|^`",
        "/a//b;c:d@e",
    ],
)
async def test_a_path_goes_out_byte_for_byte(path):
    async with serving(always(http())) as server, Http(profile(server.port)) as client:
        await client.request("GET", path)
    assert server.requests[0].target == path


@pytest.mark.parametrize(
    "path",
    ["", "books", "//evil.example/x", "http://evil.example/", "@evil.example/", "/a b", "/a\r\nX: y", "/\x00", "/ä",
     "/a#b", "/a?"],
)  # fmt: skip
async def test_a_path_that_would_not_arrive_as_written_is_refused(wording: Wording, path):
    async with serving(always(http())) as server, Http(profile(server.port)) as client:
        with pytest.raises(QueryError) as caught:
            await client.request("GET", path)
        wording(caught.value.message)
    assert server.connections == 0


@pytest.mark.parametrize("method", ["", "GET / HTTP/1.1\r\nX:", "G T", "GÉT"])
async def test_a_method_that_is_no_word_is_refused(wording: Wording, method):
    async with Http(profile()) as client:
        with pytest.raises(QueryError) as caught:
            await client.request(method, "/")
        wording(caught.value.message)


@pytest.mark.parametrize("status", [200, 201, 204, 301, 302, 400, 401, 403, 404, 409, 429, 500, 503])
async def test_request_gives_every_status_and_follows_no_redirect(status):
    body = b"" if status == 204 else b'{"status": 1}'
    answer = http(body, status=status, headers="Location: /elsewhere\r\nX-Two: a\r\nx-two: b\r\n")
    async with serving(always(answer)) as server, Http(profile(server.port)) as client:
        response = await client.request("GET", "/")
    assert (response.status, response.body, len(server.requests)) == (status, body, 1)
    assert response.headers["x-TWO"] == "a"
    assert response.headers.getall("X-Two") == ["a", "b"]


async def test_a_body_and_its_content_type_arrive_as_given():
    async with serving(always(http())) as server, Http(profile(server.port)) as client:
        await client.request("POST", "/_bulk", body='{"a":"ä"}\n', content_type="application/x-ndjson")
        await client.request("GET", "/_search", body=b'{"size":1e3}', headers={"X-Opaque-Id": "d"})
        await client.request("DELETE", "/books")
    first, second, third = server.requests
    assert (first.body, first.headers["content-type"]) == ('{"a":"ä"}\n'.encode(), "application/x-ndjson")
    assert (second.body, second.headers["content-type"]) == (b'{"size":1e3}', "application/json")
    assert second.headers["x-opaque-id"] == "d"
    assert third.body == b""
    assert "content-type" not in third.headers


async def test_a_body_of_several_megabytes_arrives_whole():
    body = b"x" * (3 * 2**20 + 17)
    async with serving(always(http())) as server, Http(profile(server.port)) as client:
        await client.request("POST", "/_bulk", body=body)
    assert server.requests[0].body == body


async def test_requests_share_a_kept_connection_and_cookies_are_not_kept():
    async with (
        serving(always(http(headers="Set-Cookie: a=b; Path=/\r\n"))) as server,
        Http(profile(server.port, host="localhost")) as client,
    ):
        for _ in range(3):
            await client.request("GET", "/")
    assert server.connections == 1
    assert not any("cookie" in request.headers for request in server.requests)


async def test_proxies_of_the_environment_are_ignored(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serving(always(http())) as server, Http(profile(server.port)) as client:
        assert (await client.request("GET", "/")).status == 200


async def test_long_warning_headers_are_read():
    async with (
        serving(always(http(headers=f"Warning: {'w' * 50_000}\r\n"))) as server,
        Http(profile(server.port)) as client,
    ):
        assert len((await client.request("GET", "/")).headers["Warning"]) == 50_000


# credentials ----------------------------------------------------------------------------------------------------------

SECRET = "s3cret-key-value=="


async def sent_authorization(**changes: Any) -> str | None:
    async with serving(always(http())) as server, Http(profile(server.port, **changes)) as client:
        await client.request("GET", "/")
    return server.requests[0].headers.get("authorization")


async def test_E9_user_name_and_password_go_out_as_http_basic():
    value = await sent_authorization(
        auth_scheme=AuthScheme.BASIC, options={"username": "zoë"}, secrets=Secrets(values={"password": "p:ä"})
    )
    assert value == "Basic " + b64encode("zoë:p:ä".encode()).decode()


async def test_an_empty_user_name_sends_no_basic_header():
    assert await sent_authorization(auth_scheme=AuthScheme.BASIC, secrets=Secrets(values={"password": "x"})) is None


@pytest.mark.parametrize("scheme", [AuthScheme.API_KEY, AuthScheme.BEARER])
async def test_E10_W5_an_api_key_goes_out_verbatim_behind_its_scheme(scheme):
    value = await sent_authorization(auth_scheme=scheme, secrets=Secrets(values={"api_key": SECRET}))
    assert value == f"{scheme} {SECRET}"


async def test_E11_W5_none_sends_no_credentials_even_where_a_key_is_saved():
    assert await sent_authorization(secrets=Secrets(values={"api_key": SECRET, "password": "x"})) is None


@pytest.mark.parametrize("key", ["", "ApiKey abc", "apikey abc", "abc\r\nX: y", "abc\n", "schlüssel"])
def test_an_api_key_that_cannot_be_sent_is_refused_without_showing_it(key):
    with pytest.raises(ConfigurationError) as caught:
        Http(profile(auth_scheme=AuthScheme.API_KEY, secrets=Secrets(values={"api_key": key})))
    assert "abc" not in str(caught.value.to_dict())
    assert "schl" not in str(caught.value.to_dict())


def test_a_user_name_with_a_colon_is_refused(wording: Wording):
    with pytest.raises(ConfigurationError) as caught:
        Http(profile(auth_scheme=AuthScheme.BASIC, options={"username": "a:b"}))
    wording(caught.value.message)


@pytest.mark.parametrize("host", ["http://x", "a b", "user@x", "x/y", "x?y", "x#y", "", "x:1"])
def test_a_host_that_is_no_host_is_refused(wording: Wording, host):
    with pytest.raises(ConfigurationError) as caught:
        Http(profile(host=host))
    wording(caught.value.message)


@pytest.mark.parametrize("scheme", [AuthScheme.BASIC, AuthScheme.API_KEY, AuthScheme.BEARER])
async def test_no_secret_appears_in_a_log_an_error_or_a_repr(scheme, caplog):
    given = {
        "auth_scheme": scheme,
        "options": {"username": "u"},
        "secrets": Secrets(values={"password": SECRET, "api_key": SECRET}),
    }
    shown = []
    with caplog.at_level(logging.DEBUG):

        def echo(request: Request) -> Reply:
            return http(request.headers["authorization"], status=401 if request.target == "/401" else 400)

        async with serving(echo) as server, Http(profile(server.port, **given)) as client:
            shown.append(repr(client))
            for path in ("/401", "/400"):
                with pytest.raises(DragomanError) as caught:
                    await client.get_json(path)
                shown += [str(caught.value.to_dict()), repr(caught.value)]
        with pytest.raises(ConnectionFailedError) as gone:
            async with Http(profile(server.port, **given)) as client:
                await client.get_json("/")
        shown += [str(gone.value.to_dict()), repr(gone.value.__cause__)]
    text = "".join([*shown, caplog.text])
    assert SECRET not in text
    assert b64encode(f"u:{SECRET}".encode()).decode() not in text


# statuses -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "prefix"),
    [
        (401, AuthenticationError, "Authentication failed: "),
        (403, AccessDeniedError, "127.0.0.1:"),
        (400, QueryError, "127.0.0.1:"),
        (302, QueryError, "127.0.0.1:"),
        (503, QueryError, "127.0.0.1:"),
    ],
)
async def test_E39_W36_get_json_and_post_json_raise_what_a_status_means_with_the_servers_text(status, kind, prefix):
    said = '{"error": "no\n  such thing"}' + "x" * 5000
    async with serving(always(http(said, status=status))) as server, Http(profile(server.port)) as client:
        for call in (client.get_json("/"), client.post_json("/", {})):
            with pytest.raises(DragomanError) as caught:
                await call
            assert type(caught.value) is kind
            assert caught.value.message.startswith(prefix)
            assert '{"error": "no such thing"}x' in caught.value.message
            assert len(caught.value.message) < 500


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_told_with_where_it_leads_and_takes_no_credentials_there(wording: Wording, status):
    async with serving(always(http())) as other:
        to = f"http://127.0.0.1:{other.port}/books?key={SECRET}"
        redirect = http(b"", status=status, headers=f"Location: {to}\r\n")
        given = {"auth_scheme": AuthScheme.API_KEY, "secrets": Secrets(values={"api_key": SECRET})}
        async with serving(always(redirect)) as server, Http(profile(server.port, **given)) as client:
            with pytest.raises(QueryError) as caught:
                await client.get_json("/books")
    assert other.requests == []
    assert len(server.requests) == 1
    assert f"http://127.0.0.1:{other.port}/books?key=***" in caught.value.hint
    wording(caught.value.hint)
    assert SECRET not in str(caught.value.to_dict())


async def test_W36_a_missing_key_is_told_from_a_rejected_one(wording: Wording):
    async with serving(always(http("", status=401))) as server, Http(profile(server.port)) as client:
        with pytest.raises(AuthenticationError) as caught:
            await client.get_json("/")
        wording(caught.value.message)


async def test_post_json_encodes_values_and_passes_bytes_on():
    big = http('{"big": 123456789012345678901234567890}')
    async with serving(always(big)) as server, Http(profile(server.port)) as client:
        answer = await client.post_json("/", {"a": 2**70, "b": [None]})
        await client.post_json("/", b'{"b":1,"a":1e400}')
    assert answer == {"big": 123456789012345678901234567890}
    assert [request.body for request in server.requests] == [
        b'{"a":1180591620717411303424,"b":[null]}',
        b'{"b":1,"a":1e400}',
    ]


async def test_an_html_page_in_place_of_json_is_told_with_its_beginning():
    page = "<html><title>Gateway\n login</title></html>"
    async with serving(always(http(page))) as server, Http(profile(server.port)) as client:
        with pytest.raises(QueryError, match=r"<html><title>Gateway.login") as caught:
            await client.get_json("/")
        assert (await client.request("GET", "/")).text == page
    assert "proxy" in caught.value.hint


# size and compression -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", ["Content-Length: 5000\r\n", "", "Content-Encoding: gzip\r\n"])
async def test_an_answer_above_the_limit_is_refused_with_the_limit(wording: Wording, headers):
    body = gzip.compress(b"x" * 5000) if "gzip" in headers else b"x" * 5000
    chunked = f"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n{headers}\r\n{len(body):x}\r\n".encode()
    plain = f"HTTP/1.1 200 X\r\n{headers}\r\n".encode()
    reply = Reply(plain + body if "Length" in headers else chunked + body + b"\r\n0\r\n\r\n")
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        for _ in range(2):
            with pytest.raises(QueryError) as caught:
                await client.request("GET", "/", limit=4999)
            wording(caught.value.message)
        assert len((await client.request("GET", "/", limit=5000)).body) == 5000


async def test_no_request_may_raise_the_limit_of_an_answer(monkeypatch):
    monkeypatch.setattr("dragoman_api.http.BODY_LIMIT", 4999)
    reply = Reply(b"HTTP/1.1 200 X\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000)
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        for limit in (None, 5000):
            with pytest.raises(QueryError, match="longer than 4,999 bytes"):
                await client.request("GET", "/", limit=limit)


async def test_an_answer_that_announces_too_much_is_refused_before_it_is_read(wording: Wording):
    reply = Reply(b"HTTP/1.1 200 X\r\nContent-Length: 5000\r\n\r\n", "hang")
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        with anyio.fail_after(5), pytest.raises(QueryError) as caught:
            await client.request("GET", "/", limit=4999)
        wording(caught.value.message)


@pytest.mark.parametrize(
    ("host", "choice", "encoding"),
    [
        ("127.0.0.1", None, "identity"),
        ("127.0.0.1", "auto", "identity"),
        ("localhost", "auto", "identity"),
        ("::1", "auto", "identity"),
        ("10.1.2.3", "auto", "identity"),
        ("192.168.0.9", "auto", "identity"),
        ("fd00::1", "auto", "identity"),
        ("8.8.8.8", "auto", "gzip"),
        ("es.example", "auto", "gzip"),
        ("127.0.0.1", "on", "gzip"),
        ("es.example", "off", "identity"),
    ],
)
def test_compression_follows_the_link(host, choice, encoding):
    client = Http(profile(host=host, options={"compression": choice}))
    assert client._headers["Accept-Encoding"] == encoding


async def test_a_compressed_answer_arrives_decompressed():
    reply = http(gzip.compress(b'{"a":1}'), headers="Content-Encoding: gzip\r\n")
    async with (
        serving(always(reply)) as server,
        Http(profile(server.port, options={"compression": "on"})) as client,
    ):
        assert await client.get_json("/") == {"a": 1}
    assert server.requests[0].headers["accept-encoding"] == "gzip"


# what goes wrong on the way -------------------------------------------------------------------------------------------


async def test_E40_W37_nothing_listening_is_named_and_nothing_was_sent(wording: Wording):
    async with serving(always(http())) as server:
        pass
    async with Http(profile(server.port)) as client:
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request("GET", "/")
        wording(caught.value.message)
    assert caught.value.details == {"sent": False}
    assert "Port" in caught.value.hint


async def test_E40_W37_an_unknown_host_name_is_named(wording: Wording):
    async with Http(profile(host="no-such-host.invalid")) as client:
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request("GET", "/")
        wording(caught.value.message)
    assert caught.value.details == {"sent": False}


@pytest.mark.parametrize("then", ["close", "reset"])
async def test_E40_W37_a_server_that_ends_the_connection_without_an_answer_is_told(wording: Wording, then):
    error = await failing(Reply(b"", then))
    wording(error.hint)
    assert error.details == {"sent": True}


async def test_a_server_that_hangs_is_left_at_the_deadline(wording: Wording):
    with anyio.fail_after(5):
        error = await failing(Reply(b"", "hang"), timeout=0.05)
    wording(error.message)


async def test_a_tls_handshake_that_hangs_is_left_and_nothing_was_sent(wording: Wording, monkeypatch):
    monkeypatch.setattr("dragoman_api.http._CONNECT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        async with Http(profile(mute.getsockname()[1], ssl_mode=SslMode.REQUIRED)) as client:
            with pytest.raises(ConnectionFailedError) as caught:
                await client.request("GET", "/", timeout=1)
            wording(caught.value.message)
    assert caught.value.details == {"sent": False}


async def test_a_server_that_hangs_within_the_body_is_left_at_the_deadline(wording: Wording):
    error = await failing(Reply(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{", "hang"), timeout=0.05)
    wording(error.message)


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize("framing", ["Content-Length: 900\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nff\r\n"])
async def test_an_answer_that_stops_within_its_body_is_never_taken_for_whole(framing, then):
    error = await failing(Reply(f'HTTP/1.1 200 X\r\n{framing}{{"hits":'.encode(), then))
    assert "stopped" in error.message
    assert error.details == {"sent": True}


@pytest.mark.parametrize("data", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\x15\x03\x03\x00\x02\x02\x46", b"-ERR unknown\r\n\r\n"])
async def test_a_server_of_another_protocol_is_told(wording: Wording, data):
    wording((await failing(Reply(data, "close"))).hint)


async def test_a_body_that_is_not_compressed_as_it_says_is_told():
    error = await failing(http(b"no gzip at all", headers="Content-Encoding: gzip\r\n"))
    assert "decode" in error.message


def stale(request: Request) -> Reply:
    """Answer the first request of a connection and end it at the second, as an idle time-out would."""
    return Reply(b"", "close") if request.connection == 1 and request.target != "/first" else http(b"")


@pytest.mark.parametrize(("method", "read"), [("GET", None), ("HEAD", None), ("POST", True)])
async def test_a_read_is_sent_again_once_when_a_kept_connection_was_closed(method, read):
    async with serving(stale) as server, Http(profile(server.port)) as client:
        await client.request("GET", "/first")
        response = await client.request(method, "/again", body=None if method == "HEAD" else b"{}", read=read)
    assert response.status == 200
    assert [request.connection for request in server.requests] == [1, 1, 2]
    assert server.requests[1].body == server.requests[2].body


async def test_a_read_goes_past_all_connections_that_its_server_closed():
    """A server that restarts closes every kept connection, and each of them would fail one more attempt."""

    def reply(request: Request) -> Reply:
        first = request.target == "/first" or request.connection > 8
        return http() if first else Reply(b"", "close")

    async with serving(reply) as server, Http(profile(server.port)) as client:
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(client.request, "GET", "/first")
        kept = server.connections
        assert (await client.request("GET", "/again")).status == 200
    assert kept > 2
    assert [request.target for request in server.requests].count("/again") == 2


@pytest.mark.parametrize("size", [900_000, 2**21])
async def test_a_connection_whose_body_was_not_read_is_not_used_again(size):
    """Its server would take the rest of the body for the next request, or the next request for the rest of the body."""
    heads = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(http(status=413 if b"/large" in heads[-1] else 200).data)
        await writer.drain()
        await ended.wait()
        writer.close()

    ended = asyncio.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # else the kernel takes the whole body
    server = await asyncio.start_server(refuse, sock=listener, limit=2**16)
    async with server, Http(profile(listener.getsockname()[1])) as client:
        try:
            with anyio.fail_after(5):
                assert (await client.request("PUT", "/large", body=b"x" * size)).status == 413
                assert (await client.request("PUT", "/small", body=b"{}")).status == 200
        finally:
            ended.set()
    assert [head.split(b" ")[1] for head in heads] == [b"/large", b"/small"]


async def test_a_document_that_reads_is_posted_again_once():
    def reply(request: Request) -> Reply:
        return Reply(b"", "close") if request.connection == 1 and request.target != "/first" else http(b"5")

    async with serving(reply) as server, Http(profile(server.port)) as client:
        await client.request("GET", "/first")
        assert await client.post_json("/again", {}, read=True) == 5
    assert [request.connection for request in server.requests] == [1, 1, 2]


async def test_a_read_is_sent_again_only_once():
    def reply(request: Request) -> Reply:
        return http() if request.target == "/first" else Reply(b"", "close")

    async with serving(reply) as server, Http(profile(server.port)) as client:
        await client.request("GET", "/first")
        with pytest.raises(ConnectionFailedError):
            await client.request("GET", "/again")
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("method", "read"), [("PUT", None), ("DELETE", None), ("POST", None), ("POST", False), ("GET", False)]
)
async def test_a_write_is_never_sent_twice(method, read):
    async with serving(stale) as server, Http(profile(server.port)) as client:
        await client.request("GET", "/first")
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request(method, "/write", body=b"{}", read=read)
    assert len(server.requests) == 2
    assert caught.value.details == {"sent": True}


@pytest.mark.parametrize("value", ["a\r\nX-B: b", "a\nX-B: b", "a\rb", "a\0b"])
async def test_a_header_that_would_be_several_is_not_sent(value):
    async with serving(lambda request: http()) as server, Http(profile(server.port)) as client:
        with pytest.raises(QueryError, match="line break") as caught:
            await client.request("GET", "/", headers={"X-A": value})
    assert caught.value.details == {"sent": False}
    assert server.requests == []


@pytest.mark.parametrize("turns", [0, 1, 5])
@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_an_answer_that_nobody_asked_for_is_never_taken_for_that_of_the_next_request(method, turns):
    """It came after another answer on a kept connection: every answer after it would be that of the request before."""
    async with serving(lambda request: http(request.target)) as server, Http(profile(server.port)) as client:
        answers = [(await client.request(method, "/0")).text]
        server.writers[0].write(http("stale").data)  # has arrived when the call returns
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        answers += [(await client.request(method, path)).text for path in ("/1", "/2")]
    assert answers == ["/0", "/1", "/2"]
    assert [each.target for each in server.requests] == answers
    assert server.connections == 2


async def test_the_deadline_covers_a_request_and_its_repetition(wording: Wording):
    def reply(request: Request) -> Reply:
        if request.target == "/first":
            return http()
        return Reply(b"", "close" if request.connection == 1 else "hang")

    async with serving(reply) as server, Http(profile(server.port)) as client:
        await client.request("GET", "/first")
        with anyio.fail_after(5), pytest.raises(ConnectionFailedError) as caught:
            await client.request("GET", "/", timeout=0.1)
        wording(caught.value.message)


async def test_a_cancelled_request_leaves_the_client_usable():
    def reply(request: Request) -> Reply:
        return Reply(b"", "hang") if request.target == "/hang" else http()

    async with serving(reply) as server, Http(profile(server.port)) as client:
        with anyio.move_on_after(0.05):
            await client.request("GET", "/hang")
        assert (await client.request("GET", "/")).status == 200


async def test_many_requests_at_once_all_arrive():
    async with serving(lambda request: http(f'"{request.target}"')) as server, Http(profile(server.port)) as client:
        answers: dict[str, str] = {}

        async def ask(path: str) -> None:
            answers[path] = await client.get_json(path)

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(ask, f"/{number}")
    assert answers == {f"/{number}": f"/{number}" for number in range(100)}
    assert server.connections <= 32


async def test_a_client_that_is_not_open_says_so(wording: Wording):
    with pytest.raises(RuntimeError) as caught:
        await Http(profile()).request("GET", "/")
    wording(str(caught.value))


@pytest.mark.parametrize(
    "said",
    [
        "Client sent an HTTP request to an HTTPS server.\n",
        "<center>The plain HTTP request was sent to HTTPS port</center>",
        "Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
    ],
)
async def test_E40_W37_a_tls_port_that_answers_plain_http_with_a_400_is_told(wording: Wording, said):
    error = await failing(http(said, status=400, then="close"))
    wording(error.message)
    assert error.remedies == (Remedy("edit-field", {"field": "ssl_mode", "value": "verify-identity"}),)


def test_ssl_modes_but_disabled_are_https():
    assert repr(Http(profile())) == "Http(http://127.0.0.1:9200)"
    for mode in set(SslMode) - {SslMode.DISABLED}:
        assert repr(Http(profile(ssl_mode=mode, host="::1"))) == "Http(https://[::1]:9200)"
