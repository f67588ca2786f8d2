"""A connection through a proxy or an SSH host, as a person and a script meet it at the command line."""

from __future__ import annotations

import json
import os
import re
import shlex

import pytest

import wheelhouse
from command_line import Machine
from connect_proxy import ConnectProxy
from fake_network import CODE, Names
from slow_cases import mostly_slow
from ssh_server import serving, user

FAR = "es.internal"


@pytest.fixture
def proxy():
    """Yield a proxy that alone knows the server's name."""
    with ConnectProxy(names={FAR: "127.0.0.1"}) as running:
        yield running


def add(greeted, port, *words, code=0, **variables):
    return greeted(
        "connections", "add", "shop", "--type", "demo", "--host", FAR, "--port", port, *words, code=code, **variables
    )


def saved(greeted):
    return (greeted.home / "config" / "connections.toml").read_text()


@pytest.mark.slow
def test_a_connection_is_saved_and_opened_through_a_proxy_with_credentials(greeted, proxy, port):
    proxy.user = "me:hunter2"
    words = ("--proxy", proxy.url, "--proxy-user", "me", "--proxy-password", "env:PROXY_PASSWORD")
    done = add(greeted, port, *words, PROXY_PASSWORD="hunter2")
    assert f"connected: Demo 1 · through the HTTP proxy 127.0.0.1:{proxy.port} · sandbox" in done.out
    line = f'connect-via = {{ proxy = "{proxy.url}", user = "me", password = {{ env = "PROXY_PASSWORD" }} }}'
    assert line in saved(greeted)
    assert proxy.targets == [f"{FAR}:{port}"]
    shown = greeted("connections", "show", "shop", "--json").json
    assert shown["via"] == {"proxy": proxy.url, "user": "me", "password": {"env": "PROXY_PASSWORD"}}
    assert "proxy" not in shown["values"]
    listed = greeted("connections", "list").out
    assert f"through the HTTP proxy 127.0.0.1:{proxy.port}" in " ".join(listed.split())
    assert "reads the variable PROXY_PASSWORD" in " ".join(listed.split())
    tested = greeted("connections", "test", "shop", "--json", PROXY_PASSWORD="hunter2").json
    assert tested["via"] == {"proxy": proxy.url, "user": "me", "password": {"env": "PROXY_PASSWORD"}}
    found = greeted("doctor", code=None).out
    assert re.search(rf"connection shop +ok +reaches its host through the HTTP proxy 127.0.0.1:{proxy.port}", found)


@pytest.mark.slow
def test_without_credentials_the_error_names_the_command_that_adds_them(greeted, proxy, port):
    proxy.user = "me:hunter2"
    done = add(greeted, port, "--proxy", proxy.url, code=3)
    said = " ".join(done.err.split())
    reason = f"the HTTP proxy 127.0.0.1:{proxy.port} wants credentials (HTTP 407): Who are you"
    assert f"error[connection-failed]: Connection failed: {FAR}:{port}: {reason}" in said
    [hint] = re.findall(r"^  hint: (.*)$", done.err, re.MULTILINE)
    assert hint == "dragoman connections edit shop --proxy-user NAME --proxy-password env:NAME"
    program, *words = shlex.split(hint.replace("env:NAME", "env:VARIABLE").replace("NAME", "me"))
    assert program == "dragoman"
    greeted(*words, VARIABLE="hunter2")
    assert proxy.url in saved(greeted)
    wrong = greeted("connections", "test", "shop", code=3, VARIABLE="hunter3")
    assert "rejects the credentials (HTTP 407)" in " ".join(wrong.err.split())
    assert "hunter3" not in wrong.said


@pytest.mark.slow
def test_a_later_call_tells_what_failed_on_the_way(greeted, proxy, port):
    add(greeted, port, "--proxy", proxy.url)
    greeted("describe", "shop", f"{FAR} {port}")
    proxy.allowed = set()
    with ConnectProxy(names={FAR: "127.0.0.1"}) as once:
        answer = once._serve

        async def serve(reader, writer):
            once.allowed = None if not once.heads else set()
            await answer(reader, writer)

        once._serve = serve
        greeted("connections", "edit", "shop", "--proxy", once.url, "--no-connect")
        done = greeted("describe", "shop", f"{FAR} {port}", code=3)
    said = " ".join(done.err.split())
    reason = f"the HTTP proxy 127.0.0.1:{once.port} does not allow connections to {FAR}:{port} (HTTP 403): By policy"
    assert f"Connection failed: {FAR}:{port}: {reason}" in said


@pytest.mark.slow
def test_editing_keeps_the_proxy_and_direct_takes_it_away(greeted, proxy, port):
    add(greeted, port, "--proxy", proxy.url, "--no-connect")
    greeted("connections", "edit", "shop", "--port", port)
    assert proxy.targets == [f"{FAR}:{port}"]
    done = greeted("connections", "edit", "shop", "--direct", code=3)
    assert "es.internal: Name or service not known" in done.err
    assert "connect-via" not in saved(greeted)
    assert "via" not in greeted("connections", "show", "shop", "--json").json
    done = greeted("connections", "edit", "shop", "--direct", "--proxy", proxy.url, code=2)
    assert "--direct and --proxy exclude each other" in done.err


@pytest.mark.parametrize(
    ("words", "reason"),
    mostly_slow(
        [
            (["--proxy", "https://p:3128"], "https:// is not supported"),
            (["--proxy", "http://me:hunter2@p:3128"], "a URL with a user in it"),
            (["--proxy", "http://p:3128", "--proxy-user", "me", "--proxy-password", "hunter2"], "is a literal secret"),
            (["--proxy-user", "me"], "--proxy-user needs a proxy"),
            (["--direct"], "--direct is not a field of this form"),
            (["--proxy", "http://p:3128", "--proxy-password", "env:X"], "no user that it belongs to"),
        ],
        fast=[(["--proxy", "http://me:hunter2@p:3128"], "a URL with a user in it")],
    ),
)  # fmt: skip
def test_what_cannot_be_a_proxy_is_refused_before_anything_is_saved(greeted, port, words, reason):
    done = add(greeted, port, *words, code=2)
    assert reason in " ".join(done.err.split())
    assert "hunter2" not in done.said
    assert not (greeted.home / "config" / "connections.toml").exists() or "shop" not in saved(greeted)


@pytest.mark.parametrize(
    "table",
    mostly_slow(
        ['"http://p:1"', '{ proxy = "http://example.com" }', "{ proxy = 1 }", '{ env = "X" }', "{}"],
        fast=['{ env = "X" }'],
    ),
)
def test_a_table_that_names_no_proxy_makes_the_connection_unusable_and_no_direct_one(greeted, proxy, port, table):
    add(greeted, port, "--proxy", proxy.url, "--no-connect")
    text = re.sub(r"connect-via = .*", f"connect-via = {table}", saved(greeted))
    (greeted.home / "config" / "connections.toml").write_text(text)
    done = greeted("connections", "test", "shop", code=2)
    assert "[shop]" in done.err
    assert proxy.heads == []


@pytest.mark.slow
def test_the_environments_proxy_is_not_read(greeted, proxy, port):
    done = add(greeted, port, code=3, HTTPS_PROXY=proxy.url, https_proxy=proxy.url, ALL_PROXY=proxy.url)
    assert "es.internal: Name or service not known" in done.err
    assert proxy.heads == []


@pytest.mark.slow
def test_a_proxys_name_that_leads_nearer_is_refused_with_the_command_that_agrees(greeted, proxy, port, monkeypatch):
    names = Names(monkeypatch)
    names.answers["proxy.example"] = ["8.8.8.8"]
    url = f"http://proxy.example:{proxy.port}"
    add(greeted, port, "--proxy", url, "--yes")
    assert set(names.looked_up) == {"proxy.example"}
    assert json.loads((greeted.home / "data" / "reached.json").read_text()) == {"shop": {"proxy.example": "public"}}
    names.answers["proxy.example"], names.tried[:] = ["127.0.0.1"], []
    events = greeted.home / "events"
    done = greeted("connections", "test", "shop", "--yes", "--events", events, code=1)
    assert names.tried == []
    said = " ".join(done.err.split())
    assert "error[address-refused]: proxy.example leads to 127.0.0.1, this machine itself" in said
    [denied] = [
        event for event in map(json.loads, events.read_text().splitlines()) if event["name"] == "connection.denied"
    ]
    assert (denied["host"], denied["port"], denied["address"]) == ("proxy.example", proxy.port, "127.0.0.1")
    [hint] = re.findall(r"^  try: (.*)$", done.err, re.MULTILINE)
    assert shlex.split(hint) == ["dragoman", "connections", "edit", "shop", "--proxy", url]
    greeted(*shlex.split(hint)[1:])
    assert set(names.tried) == {"127.0.0.1"}


@pytest.mark.slow
def test_a_field_of_a_form_may_be_called_like_an_option(tmp_path, proxy, port):
    form = [*wheelhouse.manifest()["form"], {"name": "proxy", "label": "Proxy"}]
    driver = wheelhouse.Driver(code=CODE, hooks=["connect", "describe_object"], form=form).write(tmp_path / "wheels")
    greeted = Machine(tmp_path / "home")
    greeted("registry", "add", wheelhouse.registry(tmp_path / "team", [driver]))
    add(greeted, port, "--proxy", proxy.url, "--set", "proxy=mine", "--yes")
    shown = greeted("connections", "show", "shop", "--json").json
    assert (shown["values"]["proxy"], shown["via"]["proxy"]) == ("mine", proxy.url)


@pytest.mark.slow
def test_a_connection_is_saved_and_opened_through_an_ssh_host(greeted, port, tmp_path):
    (tmp_path / "sshd").mkdir()
    with serving(tmp_path / "sshd") as sshd:
        path = {"PATH": f"{sshd.tools}:{os.environ['PATH']}", "SSH_AUTH_SOCK": ""}
        there = f"{user()}@127.0.0.1:{sshd.port}"
        words = ["--type", "demo", "--host", "localhost", "--port", port, "--ssh", there, "--ssh-identity", sshd.key]
        done = greeted("connections", "add", "shop", *words, "--yes", **path)
        assert f"connected: Demo 1 · through the SSH tunnel over {there} · sandbox" in done.out
        assert f'connect-via = {{ ssh = "{there}", identity = {{ path = "{sshd.key}" }} }}' in saved(greeted)
        shown = greeted("connections", "show", "shop", "--json").json
        assert shown["via"] == {"ssh": there, "identity": {"path": str(sshd.key)}}
        assert "opens the file" in " ".join(greeted("connections", "list").out.split())
        sshd.forget()
        failed = greeted("connections", "test", "shop", code=3, **path)
        said = " ".join(failed.err.split())
        reason = f"the SSH tunnel over {there} meets a host key that is not known"
        assert f"Connection failed: localhost:{port}: {reason}" in said
        [hint] = re.findall(r"^  try: (.*)$", failed.err, re.MULTILINE)
        assert shlex.split(hint) == ["ssh", "-i", str(sshd.key), "-p", str(sshd.port), f"{user()}@127.0.0.1"]
        missing = greeted("connections", "test", "shop", code=2, PATH="")
        assert "needs the program ssh, which is not found" in " ".join(missing.err.split())
        assert re.search(r"connection shop +fault", greeted("doctor", code=1, PATH="").out)


@pytest.mark.parametrize(
    "address", mostly_slow(["-oProxyCommand=id", "a b@host", "host:0", "$(id)@host"], fast=["-oProxyCommand=id"])
)
def test_what_cannot_be_an_ssh_host_is_refused_before_anything_is_saved(greeted, port, address):
    done = add(greeted, port, f"--ssh={address}", code=2)
    assert "error[configuration-invalid]: ssh: " in done.err
    done = add(greeted, port, "--ssh", "host", "--proxy", "http://p:3128", code=2)
    assert "--proxy and --ssh exclude each other" in done.err
