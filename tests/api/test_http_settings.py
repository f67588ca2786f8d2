"""What a person enters for every request: a path prefix, a token, extra headers; and what may not be entered."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from api.loopback import Request, http, serving
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_api import changes, endpoints
from dragoman_api.changes import HttpRequest
from dragoman_api.connections import AuthScheme, Profile, Secrets
from dragoman_api.errors import (
    AuthenticationError,
    ConfigurationError,
    ConnectionFailedError,
    ConsoleSyntaxError,
    QueryError,
)
from dragoman_api.http import Http
from dragoman_api.kit.console_text import rest_requests
from dragoman_api.kit.sign_in import own_path
from dragoman_api.remedies import Remedy
from dragoman_api.replies import turned_away


def profile(port: int = 9200, *, secrets: dict[str, str] | None = None, **options: Any) -> Profile:
    return Profile(
        name="shop", type="memory", host="127.0.0.1", port=port, options=options, secrets=Secrets(values=secrets or {})
    )


async def seen(given: dict[str, Any], path: str = "/books/_search?q=a%2Fb") -> Request:
    """Send one request with these settings, and return what arrived."""
    async with serving(lambda _: http()) as server, Http(profile(server.port, **given)) as client:
        await client.request("GET", path)
    return server.requests[0]


# a path prefix --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entered", "sent"),
    [("/es", "/es"), ("es", "/es"), ("/es/", "/es"), ("/search/v8.1/x_y~z", "/search/v8.1/x_y~z"), ("/", ""), ("", "")],
)
async def test_a_prefix_precedes_the_path_of_every_request(entered: str, sent: str):
    assert (await seen({"path_prefix": entered})).target == f"{sent}/books/_search?q=a%2Fb"


@pytest.mark.parametrize(
    "prefix",
    [
        "/..", "/es/..", "/es/../admin", "../es", ".", "/./es", "/es//x", "//evil.example", "///", "//", "/es?x=1",
        "/es#x", "/es%2f..", "/%2e%2e", "/es%20x", "/es x", "\\evil", "/es\\..", "/es\r\nX: 1", "/es\n",
        "https://evil.example/es", "/é", "/es\x00", "/" + "e" * 200,
    ],
)  # fmt: skip
def test_a_prefix_that_escapes_or_is_no_path_is_refused_before_anything_is_sent(prefix: str):
    with pytest.raises(ConfigurationError, match="path_prefix"):
        Http(profile(path_prefix=prefix))


async def test_a_prefix_that_looks_like_a_user_and_a_host_is_a_plain_segment():
    assert (await seen({"path_prefix": "@evil.example/es"})).target.startswith("/@evil.example/es/books")


@given(st.text(max_size=30))
@example("a/%2e%2e/b")
@example("a/../b")
def test_no_prefix_leads_to_another_server_or_out_of_itself(text: str):
    try:
        prefix = endpoints.path_prefix(text)
    except ValueError:
        return
    assert prefix == "" or (prefix.startswith("/") and not prefix.endswith("/"))
    assert "%" not in prefix
    assert not {"", ".", ".."} & {*prefix.split("/")[1:]}
    assert prefix.isascii()
    assert prefix.isprintable()


@pytest.mark.parametrize(
    "path",
    ["/../admin", "/a/../../admin", "/..", "/%2e%2e/admin", "/a/%2E./b", "/a%2f..%2fb", "/..;/admin"],
)
async def test_a_path_that_climbs_out_of_the_prefix_is_not_sent(path: str):
    async with serving(lambda _: http()) as server:
        async with Http(profile(server.port, path_prefix="/es")) as client:
            with pytest.raises(QueryError, match="out of the path prefix /es") as caught:
                await client.request("GET", path)
        assert caught.value.details == {"sent": False}
        assert server.requests == []
        async with Http(profile(server.port)) as client:  # a whole server has no outside
            await client.request("GET", path)
    assert [each.target for each in server.requests] == [path]


async def test_errors_name_the_prefix():
    async with serving(lambda _: http(status=401)) as server, Http(profile(server.port, path_prefix="/es")) as client:
        with pytest.raises(AuthenticationError, match=f"127.0.0.1:{server.port}/es "):
            await client.get_json("/")
    async with Http(profile(server.port, path_prefix="/es")) as client:
        with pytest.raises(ConnectionFailedError, match=f"127.0.0.1:{server.port}/es: nothing listens there"):
            await client.get_json("/")


@pytest.mark.parametrize("to", ["/es/", "http://127.0.0.1:9200/es"])
def test_a_redirect_into_a_path_of_the_same_server_names_the_prefix(to: str):
    class Redirect:
        status, headers, body = 302, {"Location": to}, b""

    error = turned_away(Redirect, profile())
    assert error is not None
    assert error.remedies == (Remedy("edit-field", {"field": "path_prefix", "value": "/es"}),)
    elsewhere = turned_away(Redirect, profile(path_prefix="/es"))
    assert elsewhere is not None
    assert elsewhere.hint
    assert not elsewhere.remedies


@pytest.mark.parametrize("to", ["http://evil.example/es", "//evil.example/es", "/es/../x", "/", "/login?next=/"])
def test_a_redirect_elsewhere_proposes_no_prefix(to: str):
    class Redirect:
        status, headers, body = 302, {"Location": to}, b""

    error = turned_away(Redirect, profile())
    assert error is not None
    assert not error.remedies


def test_a_token_endpoint_lies_below_the_prefix():
    given = profile(path_prefix="/es")
    assert own_path("http://127.0.0.1:9200/es/oauth/token", given) == "/oauth/token"
    for elsewhere in ("http://127.0.0.1:9200/oauth/token", "http://127.0.0.1:9200/espresso/token"):
        with pytest.raises(ConfigurationError, match="9200/es"):
            own_path(elsewhere, given)


# tokens ---------------------------------------------------------------------------------------------------------------


def signed(port: int = 9200, token: str = "AAEAAWVsYXN0aWM=") -> Profile:
    return Profile(
        name="shop", type="m", host="127.0.0.1", port=port, auth_scheme=AuthScheme.BEARER,
        secrets=Secrets(values={"token": token}),
    )  # fmt: skip


async def test_a_token_goes_as_bearer_and_appears_in_no_error():
    said = "no AAEAAWVsYXN0aWM= here"
    async with serving(lambda _: http(said, status=401)) as server, Http(signed(server.port)) as client:
        with pytest.raises(AuthenticationError, match="the token was rejected by") as caught:
            await client.get_json("/")
    assert server.requests[0].headers["authorization"] == "Bearer AAEAAWVsYXN0aWM="
    assert "AAEAAW" not in caught.value.message


@pytest.mark.parametrize("token", ["", "Bearer abc", "bearer abc", "a\r\nX-Evil: 1", "ä"])
def test_what_is_no_token_is_refused_and_not_shown(token: str):
    with pytest.raises(ConfigurationError, match="token") as caught:
        Http(signed(token=token))
    assert not token or token not in caught.value.message


# extra headers --------------------------------------------------------------------------------------------------------


async def test_extra_headers_go_with_every_request():
    request = await seen({"headers": "X-Tenant: blue; es-security-runas-user: ada"})
    assert (request.headers["x-tenant"], request.headers["es-security-runas-user"]) == ("blue", "ada")
    request = await seen({"headers": "Prefer: a; b\nUser-Agent: mine", "secrets": {"secret_headers": "X-Key: s3cr3t"}})
    assert (request.headers["prefer"], request.headers["x-key"]) == ("a; b", "s3cr3t")
    assert request.headers["user-agent"] == "mine"


async def test_the_value_of_a_secret_header_is_masked():
    given = {"secrets": {"secret_headers": "X-Gate: gate-s3cr3t-9\nX-Two: second-s3cr3t"}}
    said = "bad key gate-s3cr3t-9, second-s3cr3t"
    async with serving(lambda _: http(said, status=500)) as server, Http(profile(server.port, **given)) as client:
        with pytest.raises(QueryError) as caught:
            await client.get_json("/")
    assert "s3cr3t" not in caught.value.message
    assert "bad key ***, ***" in caught.value.message


@pytest.mark.parametrize(
    "name",
    [
        "Host", "host", "Authorization", "AUTHORIZATION", "Content-Length", "Transfer-Encoding", "Connection",
        "Cookie", "Set-Cookie", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Upgrade", "Expect",
        "Accept-Encoding", "Content-Encoding", "Content-Type", "Keep-Alive", "X-HTTP-Method-Override",
        "X-Method-Override", "X-HTTP-Method", "HTTP2-Settings", "Accept", "Range",
    ],
)  # fmt: skip
def test_no_extra_header_frames_a_request_signs_in_or_turns_a_read_into_a_write(name: str):
    with pytest.raises(ConfigurationError, match="is not an extra header"):
        Http(profile(headers=f"X-Fine: 1\n{name}: x"))
    with pytest.raises(ConfigurationError, match="secret_headers"):
        Http(profile(secrets={"secret_headers": f"{name}: x"}))


@pytest.mark.parametrize(
    "text",
    [
        "X", "X:", "X: ", ": x", "X Y: z", "X\x00: y", "X: a\rHost: evil", "X: a\x00b", "X: \x7f", "X: ä", "Ä: x",
        "X: a\x0bHost: evil", "X: a\u2028Host: evil", "X: 1\nx: 2", "a" * 65 + ": 1", "X: " + "a" * 9000,
        "\n".join(f"X-{at}: 1" for at in range(21)), " X : 1\n continued",
    ],
)  # fmt: skip
def test_a_header_that_could_smuggle_another_one_is_refused(text: str):
    with pytest.raises(ConfigurationError, match="headers: ") as caught:
        Http(profile(headers=text))
    assert len(caught.value.message) < 200


def test_a_header_that_is_both_open_and_secret_is_refused():
    with pytest.raises(ConfigurationError, match="x-key"):
        Http(profile(headers="X-Key: 1", secrets={"secret_headers": "X-Fine: 1\nx-key: 2"}))


@given(st.text(max_size=60))
@example("X: a\r\n\r\nGET / HTTP/1.1")
@example("Host : evil")
def test_whatever_is_entered_no_header_holds_a_line_break_or_a_name_that_is_ours(text: str):
    try:
        found = endpoints.headers(text)
    except ValueError:
        return
    ours = ("host", "authorization", "content-length", "transfer-encoding", "connection", "cookie")
    for name, value in found.items():
        assert not {*"\r\n\0"} & {*name, *value}
        assert name.lower() not in ours


ELSEWHERE = (
    "@127.0.0.2:1/x", "//127.0.0.2:1/x", "/\\127.0.0.2/x", "\\\\127.0.0.2/x", "http://127.0.0.2/x", "x@127.0.0.2",
    ".evil.example/", ":80@127.0.0.2/", "", "?a", "/a b", "/a\tb", "/a\nb", "/a\x1b[201~", "/\u202ea", "/a#b",
    "/a\\b", "/a?", "/a?b#c", "/é", "/a\x7f",
    "/" + "x" * 200_000,
)  # fmt: skip
"""Texts that are no path; most of them lead to another server if they are joined to an address."""


@pytest.mark.parametrize("text", ELSEWHERE, ids=lambda text: text[:20])
def test_a_text_that_could_lead_elsewhere_is_no_path_however_a_request_is_made(text: str) -> None:
    whole = HttpRequest("GET", "/")
    for make in (
        lambda: changes.request_path(text),
        lambda: HttpRequest("GET", text),
        lambda: msgspec.structs.replace(whole, path=text),
        lambda: msgspec.convert({"method": "GET", "path": text}, HttpRequest),
        lambda: msgspec.msgpack.decode(msgspec.msgpack.encode({"method": "GET", "path": text}), type=HttpRequest),
    ):
        with pytest.raises(ValueError, match="path"):
            make()


@given(st.text(max_size=12), st.sampled_from(["http://h:1", "https://[::1]:9200/es"]))
def test_whatever_is_a_path_stays_on_the_host_it_is_joined_to(text: str, address: str) -> None:
    for candidate in (text, f"/{text}", f"/a{text}", f"/a?b={text}"):
        try:
            path = changes.request_path(candidate)
        except ValueError:
            continue
        parts, base = urlsplit(address + path), urlsplit(address)
        assert (parts.scheme, parts.netloc, parts.fragment) == (base.scheme, base.netloc, "")
        assert address + path == parts.geturl()


@pytest.mark.parametrize(
    ("method", "kind"), [("G T", "x"), ("", "x"), ("GET\n", "x"), ("G" * 99, "x"), ("GET", "a\nb"), ("GET", "é")]
)
def test_method_and_content_type_of_a_request_are_one_word_and_one_line(method: str, kind: str) -> None:
    with pytest.raises(ValueError, match=r"method|content type"):
        HttpRequest(method, "/", None, kind)


@pytest.mark.parametrize("typed", ["//evil/x", "@x", "@evil:9200/_search", "http://evil/x", "/\\evil/x", "\\\\evil"])
def test_a_console_text_that_leads_elsewhere_is_refused_in_words(typed: str) -> None:
    with pytest.raises(ConsoleSyntaxError, match="begins with one '/': requests go to the connection's host only"):
        rest_requests(f"GET {typed}", lambda request: True)
    [request] = rest_requests("GET /a\\b", lambda request: True)
    assert request.request.path == "/a%5Cb"
