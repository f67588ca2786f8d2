"""A token endpoint as a person and a script meet it: named, agreed to by itself, and then reached (E6, W5)."""

from __future__ import annotations

import pytest
from anyio.from_thread import start_blocking_portal

from command_line import Machine
from connect_proxy import ConnectProxy
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from fakes.proxy import Proxy
from terminal import Terminal
from token_endpoint import CLIENT, SECRET, NewestToken, TokenEndpoint

KINDS = {"elasticsearch": FakeElasticsearch, "weaviate": FakeWeaviate}


@pytest.fixture
def endpoint():
    """Run a token endpoint."""
    with TokenEndpoint() as made:
        yield made


@pytest.fixture(params=KINDS)
def kind(request):
    """Yield each driver."""
    return request.param


@pytest.fixture
def gate(endpoint, kind):
    """Run a server of that kind behind a gateway that lets only the newest token in."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(KINDS[kind]()) as fake,
        portal.wrap_async_context_manager(
            Proxy(upstream=fake.url, required=NewestToken(endpoint), refusal=401)
        ) as proxy,
    ):
        yield proxy


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Return a home in which both drivers are installed."""
    made = Machine(tmp_path_factory.mktemp("tokens") / "home")
    for name in KINDS:
        made("plugins", "install", name, "--yes")
    return made


@pytest.fixture
def house(homes):
    """Return the home without a connection."""
    (homes.home / "config" / "connections.toml").unlink(missing_ok=True)
    return homes


def add(house, kind, port, endpoint, *more, code=0, secret=SECRET, **options):
    words = ("--type", kind, "--host", "127.0.0.1", "--port", port, "--auth-method", "client-credentials", "--yes")
    given = {"token-url": endpoint.url, "client-id": CLIENT, "client-secret": "env:CLIENT_SECRET", **options}
    fields = [text for name, value in given.items() for text in (f"--{name}", value)]
    return house("connections", "add", "shop", *words, *fields, *more, code=code, CLIENT_SECRET=secret)


def run(house, *words, code=0):
    return house(*words, code=code, CLIENT_SECRET=SECRET)


def saved(house):
    return (house.home / "config" / "connections.toml").read_text()


@pytest.mark.slow
def test_a_token_endpoint_that_was_not_agreed_to_is_refused_and_not_reached(house, gate, endpoint, kind):
    done = add(house, kind, gate.port, endpoint, code=1)
    assert f"error[sign-in-not-agreed]: shop signs in at {endpoint.server}, a second server" in done.err
    assert f"try: dragoman connections edit shop --sign-in-at {endpoint.server}\n" in done.err
    assert endpoint.forms == []
    assert "sign-in-at" not in saved(house)  # `--yes` is no consent to it

    done = run(house, "connections", "edit", "shop", "--sign-in-at", endpoint.server)
    assert "connected: " in done.out
    assert f'sign-in-at = "{endpoint.server}"' in saved(house)
    assert run(house, "objects", "shop").code == 0
    assert f"signs in at {endpoint.server}" in house("connections", "list").out
    assert f"sign-in-at {endpoint.server}" in " ".join(house("connections", "show", "shop").out.split())
    assert house("connections", "show", "shop", "--json").json["sign_in_at"] == endpoint.server


def test_an_agreement_holds_for_one_server_alone(house, gate, endpoint, kind):
    add(house, kind, gate.port, endpoint, "--sign-in-at", endpoint.server)
    with TokenEndpoint() as other:
        done = run(house, "connections", "edit", "shop", "--token-url", other.url, code=1)
        assert f"signs in at {other.server}, a second server" in done.err
        assert f"you agreed to {endpoint.server}" in done.err
        assert other.forms == []


@pytest.mark.slow
def test_the_agreement_does_not_lead_a_driver_there_with_another_auth_method(house, gate, endpoint, kind):
    add(house, kind, gate.port, endpoint, "--sign-in-at", endpoint.server)
    before = len(endpoint.forms)
    run(house, "connections", "edit", "shop", "--auth-method", "none", code=None)
    assert len(endpoint.forms) == before


@pytest.mark.slow
def test_at_a_terminal_a_yes_agrees(house, gate, endpoint, kind):
    add(house, kind, gate.port, endpoint, "--no-connect")
    shell = Terminal(house, "connections", "test", "shop", CLIENT_SECRET=SECRET)
    shell.answer("Let shop sign in there from now on? [y/N]", "no")
    assert shell.end()[0] == 1
    assert endpoint.forms == []
    shell = Terminal(house, "connections", "test", "shop", CLIENT_SECRET=SECRET)
    assert endpoint.server in shell.answer("Let shop sign in there from now on? [y/N]", "y")
    code, rest = shell.end()
    assert (code, "connected: " in rest) == (0, True)


def test_a_wrong_secret_is_an_error_of_authentication_that_does_not_show_it(house, gate, endpoint, kind):
    done = add(house, kind, gate.port, endpoint, "--sign-in-at", endpoint.server, code=3, secret="wrong-secret-of-mine")
    assert f"Authentication failed: the token endpoint {endpoint.server} rejected the client's credentials" in done.err
    assert "invalid_client" in done.err
    assert "wrong-secret" not in done.said


def test_a_token_endpoint_that_is_away_ends_with_the_code_of_a_connection(house, gate, endpoint, kind):
    add(house, kind, gate.port, endpoint, "--sign-in-at", endpoint.server, "--no-connect")
    endpoint.__exit__()
    try:
        done = run(house, "objects", "shop", code=3)
        assert f"the token endpoint {endpoint.server}: nothing listens there" in done.err
    finally:
        endpoint.__enter__()


@pytest.mark.parametrize("kind", ["elasticsearch"], indirect=True)
def test_the_token_endpoint_is_reached_on_the_same_way_as_the_database(house, gate, endpoint, kind):
    with ConnectProxy() as proxy:
        add(house, kind, gate.port, endpoint, "--sign-in-at", endpoint.server, "--proxy", proxy.url)
        assert {*proxy.targets} == {f"127.0.0.1:{gate.port}", endpoint.server}


@pytest.mark.parametrize("kind", ["elasticsearch"], indirect=True)
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://auth.example.com/token", "token_url: 'http://auth.example.com/token' is plain HTTP"),
        ("https://me:hunter2@auth.example.com/token", "token_url: names a user"),
        ("", "token_url: must not be empty"),
    ],
)
def test_what_is_no_token_url_is_not_saved(house, gate, endpoint, kind, url, reason):
    done = add(house, kind, gate.port, endpoint, code=2, **{"token-url": url})
    assert reason in done.err
    assert "hunter2" not in done.err
