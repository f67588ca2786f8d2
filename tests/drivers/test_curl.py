"""What a command would send as commands of curl, run by a shell against servers that compare it with the driver's."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from drivers.elasticsearch import rig as elasticsearch
from drivers.weaviate import rig as weaviate

from connect_proxy import ConnectProxy
from dragoman.connections.curl_commands import LONGEST, CurlCommands
from dragoman.references import Reference
from dragoman.sandbox.reach.route import HttpProxy, parse_ssh
from dragoman_api import CountRequest, Filter, HttpRequest, Insert, PageRequest, Profile, Sort
from dragoman_api.connections import AuthScheme, Secrets, SslMode
from dragoman_api.errors import UnsupportedOperationError
from dragoman_api.grid import PreviewRequest
from dragoman_sample.fakes.elasticsearch import ApiKey, FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from dragoman_sample.fakes.weaviate import User as WeaviateUser
from fakes.certificates import make_certificates

if TYPE_CHECKING:
    from pathlib import Path

    from drivers import rigging

    from fakes.certificates import Certificates

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
COMPARED = ("Authorization", "Content-Type")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"), "localhost")


def of(profile: Profile, **more: Any) -> CurlCommands:
    return CurlCommands.of(profile, **more)


def arrived(fake: Any, since: int) -> list[tuple[object, ...]]:
    return [
        (each.method, each.path, each.query, each.body, *(each.headers.get(name) for name in COMPARED))
        for each in fake.requests[since:]
    ]


async def run(command: str, **secrets: str) -> bytes:
    """Paste a command into a shell."""
    environment = {"PATH": "/usr/bin:/bin", "CURL_HOME": "/", **secrets}
    return (await anyio.run_process(["bash"], input=f"{command}\n".encode(), env=environment)).stdout


async def check_same(fake: Any, rig: rigging.Rig, curl: CurlCommands, page: PageRequest, **secrets: str) -> None:
    """A page that the driver fetches and the commands of its preview arrive as the same requests."""
    await rig.driver.fetch_page(page)
    named = await rig.driver.preview_read(PreviewRequest(page=page))
    before = len(fake.requests)
    await rig.driver.fetch_page(page)
    sent = [each for each in arrived(fake, before) if any(each[0] == one.method and one.body and
            each[3] == one.body.encode() for one in named)]  # fmt: skip
    before = len(fake.requests)
    for request in named:
        await run(curl.command(request), **secrets)
    typed = arrived(fake, before)
    assert typed
    assert sorted(map(str, typed)) == sorted(map(str, sent))


@needs_curl
async def test_a_page_a_count_and_a_write_with_a_password() -> None:
    async with FakeElasticsearch(users={"ada": "pä:'$ss"}) as fake:
        secrets = Secrets(values={"password": "pä:'$ss"})
        profile = elasticsearch.profile(
            fake.url, auth_scheme=AuthScheme.BASIC, options={"username": "ada"}, secrets=secrets
        )
        curl, typed = of(profile), {"SHOP_USER": "ada", "SHOP_PASSWORD": "pä:'$ss"}
        async with elasticsearch.connected(profile, version="8.19.21") as es:
            name = await es.index({"t": {"type": "keyword"}, "n": {"type": "long"}}, [{"t": "it's $(x)", "n": 1}])
            compiled = await es.filter(name, Filter("t", "=", "it's $(x)"))
            page = PageRequest(object=name, filter=compiled, sort=[Sort("n")], limit=7)
            await check_same(fake, es, curl, page, **typed)
            [count] = await es.driver.preview_read(PreviewRequest(count=CountRequest(object=name, filter=compiled)))
            assert json.loads(await run(curl.command(count), **typed))["count"] == 1
            plan = await es.plan(Insert(name, {"t": "@new\n'\"\\", "n": 2}, "2"))
            before = len(fake.requests)
            await run(curl.command(plan.planned[0].request), **typed)
            [written] = arrived(fake, before)
            assert written[3] == (plan.planned[0].request.body or "").encode()
            assert await es.source(name, "2") == '{"t":"@new\\n\'\\"\\\\","n":2}'
            assert "pä" not in curl.command(count)


@needs_curl
async def test_extra_headers_a_token_and_a_path_prefix() -> None:
    secrets = Secrets(values={"token": "t0ken", "secret_headers": "X-$HOME`: hid'den"})
    async with FakeElasticsearch() as fake:
        options = {"headers": "X-Team: it's $HOME", "path_prefix": "/es"}
        profile = elasticsearch.profile(fake.url, auth_scheme=AuthScheme.BEARER, options=options, secrets=secrets)
        curl = of(profile)
        command = curl.command(HttpRequest("GET", "/_cat/indices"))
        assert "t0ken" not in command
        assert "hid" not in command
        await run(command, **dict.fromkeys(curl.variables, "typed"), HOME="/nowhere")
        [request] = fake.requests
        assert (request.path, request.headers["X-Team"]) == ("/es/_cat/indices", "it's $HOME")
        assert (request.headers["Authorization"], request.headers["X-$HOME`"]) == ("Bearer typed", "typed")


@needs_curl
async def test_an_api_key_over_tls_with_a_ca_file(certificates: Certificates) -> None:
    key = ApiKey("id1", "secret")
    async with FakeElasticsearch(tls=certificates, api_keys=[key]) as fake:
        profile = elasticsearch.profile(
            fake.url.replace("127.0.0.1", "localhost"), ssl_mode=SslMode.VERIFY_IDENTITY,
            ca_pem=certificates.ca.read_text(), auth_scheme=AuthScheme.API_KEY,
            secrets=Secrets(values={"api_key": key.encoded}),
        )  # fmt: skip
        curl = of(profile, ca_file=str(certificates.ca))
        async with elasticsearch.connected(profile, version="8.19.21") as es:
            name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
            await check_same(fake, es, curl, PageRequest(object=name), SHOP_API_KEY=key.encoded)
        unchecked = of(msgspec.structs.replace(profile, ssl_mode=SslMode.PREFERRED))
        for commands in (curl, unchecked):
            found = await run(commands.command(HttpRequest("GET", "/")), SHOP_API_KEY=key.encoded)
            assert json.loads(found)["tagline"]


@pytest.mark.slow
@needs_curl
async def test_a_page_of_weaviate_with_its_key() -> None:
    async with FakeWeaviate(keys={"a key": WeaviateUser("admin", admin=True)}) as fake:
        profile = weaviate.profile(fake.url, **weaviate.keyed("a key"))
        async with weaviate.connected(profile) as wv:
            name = await wv.collection({"t": "text", "i": "int"}, [{"t": "tea", "i": 1}, {"t": "sea", "i": 2}])
            compiled = await wv.filter(name, Filter("i", ">=", "2"))
            for page in (PageRequest(object=name, filter=compiled), PageRequest(object=name, sort=[Sort("i")])):
                await check_same(fake, wv, of(profile), page, LIBRARY_API_KEY="a key")
            [listed, _] = await wv.driver.preview_read(PreviewRequest(page=PageRequest(object=name)))
            found = json.loads(await run(of(profile).command(listed), LIBRARY_API_KEY="a key"))
            assert len(found["objects"]) == 2


async def test_a_page_past_the_window_has_no_preview() -> None:
    async with elasticsearch.on_fake("8.19.21") as es:
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        await es.driver.describe_object(name)
        with pytest.raises(UnsupportedOperationError, match="takes several requests"):
            await es.driver.preview_read(PreviewRequest(page=PageRequest(object=name, offset=10_000)))


def test_a_preview_is_of_one_read() -> None:
    for given in ({}, {"page": PageRequest(object="a"), "count": CountRequest(object="a")}):
        with pytest.raises(ValueError, match="either"):
            PreviewRequest(**given)


def commands(**more: Any) -> CurlCommands:
    return of(Profile(**{"name": "my-shop", "type": "x", "host": "h", "port": 1} | more))


@pytest.mark.parametrize("path", ["/a'b", "/$(touch%20pwned)", "/a;x|y&`id`", "/-o"])
def test_curl_is_quoted(path: str) -> None:
    words = shlex.split(commands().command(HttpRequest("POST", path, "@it's")))
    assert words[:4] == ["curl", "-X", "POST", f"http://h:1{path}"]
    assert words[-2:] == ["--data-raw", "@it's"]


@pytest.mark.parametrize("body", ['{"a":\n1}\n', "\x1b[201~\nid\n", "\u202ea", "\x9b2J", "it's\r", "a\x00b\\n"])
def test_a_copied_command_holds_nothing_that_a_terminal_acts_on_and_carries_the_body_unchanged(body: str) -> None:
    command = commands().command(HttpRequest("POST", "/", body))
    assert command.isprintable()
    read = 'curl() { for word; do last=$word; done; if [ "$last" = @- ]; then cat; else printf %s "$last"; fi; }; '
    assert subprocess.run(["bash", "-c", read + command], capture_output=True, check=True).stdout == body.encode()


@pytest.mark.parametrize(
    ("more", "words", "variables"),
    [
        ({}, [], []),
        ({"auth_scheme": AuthScheme.BASIC}, [], []),
        ({"auth_scheme": AuthScheme.BASIC, "options": {"username": "ada"}}, ["-u", "$MY_SHOP_USER:$MY_SHOP_PASSWORD"],
         ["MY_SHOP_USER", "MY_SHOP_PASSWORD"]),
        ({"auth_scheme": AuthScheme.BEARER}, ["-H", "Authorization: Bearer $MY_SHOP_API_KEY"], ["MY_SHOP_API_KEY"]),
        ({"name": "1a.é", "auth_scheme": AuthScheme.API_KEY}, ["-H", "Authorization: ApiKey $_1A___API_KEY"],
         ["_1A___API_KEY"]),
        ({"ssl_mode": SslMode.PREFERRED}, ["-k"], []),
        ({"ssl_mode": SslMode.REQUIRED}, ["-k"], []),
        ({"ssl_mode": SslMode.VERIFY_IDENTITY, "skip_tls_verification": True}, ["-k"], []),
        ({"ssl_mode": SslMode.VERIFY_IDENTITY}, [], []),
        ({"ssl_mode": SslMode.VERIFY_CA, "client_certificate": "/a b.pem"}, ["--cert", "/a b.pem"], []),
        ({"ssl_mode": SslMode.REQUIRED, "client_certificate": "/a.pem",
          "secrets": Secrets(values={"client_key_password": "x"})},
         ["-k", "--cert", "/a.pem", "--pass", "$MY_SHOP_KEY_PASSWORD"], ["MY_SHOP_KEY_PASSWORD"]),
    ],
)  # fmt: skip
def test_secrets_are_variables_and_tls_is_as_the_mode_says(
    more: dict[str, Any], words: list[str], variables: list[str]
) -> None:
    made = commands(**more)
    assert shlex.split(made.command(HttpRequest("GET", "/")))[4:] == words
    assert list(made.variables) == variables


def test_what_curl_cannot_do_alike_is_said() -> None:
    made = of(Profile(name="a", type="x", host="h", port=1, ssl_mode=SslMode.VERIFY_CA), ca_file="/ca.pem")
    assert len(made.notes) == 2
    assert "--cacert /ca.pem" in made.command(HttpRequest("GET", "/"))


@needs_curl
@pytest.mark.parametrize("user", ["", "me"])
async def test_an_http_proxy_is_asked_to_connect_whatever_the_environment_says(
    certificates: Certificates, user: str
) -> None:
    far, password = "localhost", "pr$xy 'pass"
    async with FakeElasticsearch() as plain, FakeElasticsearch(tls=certificates) as tls:
        with ConnectProxy(names={far: "127.0.0.1"}, user=f"{user}:{password}" if user else "") as proxy:
            via = HttpProxy(
                host=proxy.host, port=proxy.port, user=user, password=Reference("env", "X") if user else None
            )
            secrets = {"SHOP_PROXY_USER": user, "SHOP_PROXY_PASSWORD": password} if user else {}
            ports = []
            for fake, more in ((plain, {}), (tls, {"ssl_mode": SslMode.VERIFY_IDENTITY})):
                profile = elasticsearch.profile(fake.url.replace("127.0.0.1", far), **more)
                ports.append(f"{far}:{profile.port}")
                curl = of(profile, ca_file=str(certificates.ca), via=via)
                assert list(curl.variables) == list(secrets)
                command = curl.command(HttpRequest("GET", "/"))
                assert json.loads(await run(command, NO_PROXY="*", **secrets))["tagline"]
            assert proxy.targets == ports
            assert [request.headers.get("Proxy-Authorization") for request in plain.requests] == [None]


def test_an_ssh_tunnel_is_said_to_be_what_curl_cannot_use() -> None:
    made = of(Profile(name="a", type="x", host="h", port=1), via=parse_ssh("me@bastion:2222"))
    assert made.command(HttpRequest("GET", "/")) == "curl -X GET http://h:1/"
    assert made.notes == (
        "curl cannot use the SSH tunnel over me@bastion:2222: paste the commands there, after ssh -p 2222 me@bastion",
    )


@pytest.mark.slow
@needs_curl
async def test_bodies_arrive_byte_for_byte_however_long_and_paths_unchanged(tmp_path: Path) -> None:
    async with FakeElasticsearch() as fake:
        made = of(elasticsearch.profile(fake.url))
        body = json.dumps({"x": "%s 'ä\\n' " * LONGEST})
        for request in (
            HttpRequest("POST", "/_bulk", body),
            HttpRequest("POST", "/_bulk", '{"a":1}\n', "application/x-ndjson"),
            HttpRequest("GET", "/a/../b?x=[1-3]{a,b}"),
            HttpRequest("HEAD", "/"),
        ):
            before = len(fake.requests)
            await run(f"cd {tmp_path} && {made.command(request)}")
            [one] = fake.requests[before:]
            assert (one.method, one.body) == (request.method, (request.body or "").encode())
            assert f"{one.path}{'?' if one.query else ''}{one.query}" == request.path
        assert list(tmp_path.iterdir()) == []
