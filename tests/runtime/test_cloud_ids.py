"""Elastic Cloud IDs: decoded by the host, without code of a driver, and never to anything but a name on a network."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dragoman
from dragoman.connections.form_values import check_values, to_save
from dragoman.connections.profiles import make_profile
from dragoman.connections.saved_connections import SavedConnection
from dragoman_api import endpoints
from dragoman_api.connections import AuthScheme, FormField, SslMode
from dragoman_api.errors import ConfigurationError
from dragoman_registry.ip_addresses import canonical, is_literal

PLUGINS = Path(dragoman.__file__).parents[2] / "plugins"
MANIFEST = json.loads((PLUGINS / "elasticsearch/dragoman_elasticsearch/driver.json").read_bytes())
FORM = msgspec.convert(MANIFEST["form"], list[FormField])
HOST = "0123abcd.eu-west-1.aws.found.io"


def encoded(text: str, label: str = "shop:") -> str:
    return label + b64encode(text.encode()).decode()


GOOD = encoded("eu-west-1.aws.found.io$0123abcd$4567ef")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (GOOD, (HOST, 443)),
        (GOOD.rstrip("="), (HOST, 443)),
        (encoded("eu-west-1.aws.found.io:443$0123abcd$"), (HOST, 443)),
        (encoded("eu-west-1.aws.found.io:9243$0123abcd$4567:9244"), (HOST, 9243)),
        (encoded("eu-west-1.aws.found.io:9243$0123abcd:9999$4567"), (HOST, 9999)),
        (encoded("eu-west-1.aws.found.io$0123abcd", label=""), (HOST, 443)),
        (encoded("192.168.44.10.ip.es.io:9243$0123$4567"), ("0123.192.168.44.10.ip.es.io", 9243)),
        (encoded("Found.IO$ABC"), ("abc.found.io", 443)),
    ],
)
def test_a_cloud_id_means_a_host_and_a_port(text: str, meant: tuple[str, int]):
    assert endpoints.cloud_id(text) == meant


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "nothing after its label"),
        ("shop:", "nothing after its label"),
        ("shop:not base64!", "not base64"),
        ("shop:A", "not base64"),
        (GOOD[:9] + "!\n" + GOOD[9:], "not base64"),
        ("shop:" + b64encode(b"\xff\xfe$x$y").decode(), "not base64"),
        (encoded("found.io"), "a domain and a cluster"),
        (encoded("found.io$"), "a domain and a cluster"),
        (encoded("$abc$def"), "a domain and a cluster"),
        (encoded("a.io$b$c$d$e"), "a domain and a cluster"),
        (encoded("found.io:0$abc$"), "TCP port"),
        (encoded("found.io:65536$abc$"), "TCP port"),
        (encoded("found.io:443/x$abc$"), "TCP port"),
        (encoded("found.io:$abc$"), "TCP port"),
        ("x" * 1001, "1,001 characters"),
        # hosts that no Cloud ID may mean
        (encoded("0.0.1$127$"), "host on the internet"),
        (encoded("254.169.254$169$"), "host on the internet"),
        (encoded("0.0.0x1$0x7f$"), "host on the internet"),
        (encoded("localhost$abc$"), "host on the internet"),
        (encoded("x.localhost$abc$"), "host on the internet"),
        (encoded("LOCALHOST$abc$"), "host on the internet"),
        (encoded("found.io$user@evil.example/$"), "not a host name"),
        (encoded("found.io/..$abc$"), "not a host name"),
        (encoded("found.io$a b$"), "not a host name"),
        (encoded("found.io$a\r\nHost: x$"), "TCP port|not a host name"),
        (encoded("[::1]$abc$"), "not a host name|TCP port"),
        (encoded("found..io$abc$"), "not a host name"),
        (encoded("found.io.$abc$"), "not a host name"),
        (encoded("*.found.io$abc$"), "not a host name"),
        (encoded("-found.io$abc$"), "not a host name"),
        (encoded("a" * 64 + ".io$abc$"), "not a host name"),
        (encoded(".".join(["a" * 60] * 5) + ".io$abc$"), "host on the internet"),
    ],
)
def test_a_malformed_cloud_id_says_what_is_wrong(text: str, reason: str):
    with pytest.raises(ValueError, match=reason) as caught:
        endpoints.cloud_id(text)
    assert len(str(caught.value)) < 250
    if text:
        with pytest.raises(ConfigurationError, match="cloud_id: ") as refused:
            check_values(FORM, {"cloud_id": text}, name="shop")
        assert refused.value.details["field"] == "cloud_id"


@given(st.text(max_size=60), st.text(max_size=30))
@example("0.0.1", "127")
@example("0x1", "0x7f")
def test_whatever_it_holds_it_never_means_an_address_of_this_machine_or_of_a_cloud(domain: str, cluster: str):
    try:
        host, port = endpoints.cloud_id("x:" + b64encode(f"{domain}${cluster}$".encode(errors="replace")).decode())
    except ValueError:
        return
    assert not is_literal(canonical(host))
    assert host == canonical(host)
    assert 1 <= port <= 65535
    assert "localhost" not in host.split(".")[-1]


def test_it_is_saved_as_the_host_that_it_means_and_never_as_plain_http():
    saved = to_save(FORM, {"cloud_id": GOOD}, name="shop")
    assert (saved["host"], saved["port"], saved["ssl_mode"]) == (HOST, 443, "verify-identity")
    assert to_save(FORM, saved, name="shop") == saved
    assert to_save(FORM, {"cloud_id": GOOD, "ssl_mode": "disabled"}, name="shop")["ssl_mode"] == "verify-identity"
    assert to_save(FORM, {"cloud_id": GOOD, "ssl_mode": "verify-ca"}, name="shop")["ssl_mode"] == "verify-ca"


def test_what_may_be_reached_is_computed_from_it_when_the_connection_opens():
    """Also where a person wrote it into the file: the host decodes it again."""
    values = check_values(FORM, {"cloud_id": GOOD, "host": "localhost", "port": 9200}, name="shop")
    connection = SavedConnection(name="shop", type="elasticsearch", values={})
    profile = make_profile(connection, values, scheme=AuthScheme.NONE, secrets={}, files={})
    assert profile.endpoints == [(HOST, 443)]
    assert profile.ssl_mode is SslMode.VERIFY_IDENTITY


@pytest.mark.parametrize("besides", [{"host": "evil.example"}, {"port": 9999}, {"host": "127.0.0.1"}])
def test_another_host_or_port_besides_is_a_contradiction(besides: dict[str, str | int]):
    with pytest.raises(ConfigurationError, match=f"means {HOST}:443, but {next(iter(besides))} is"):
        check_values(FORM, {"cloud_id": GOOD, **besides}, name="shop")
    assert (
        check_values(FORM, {"cloud_id": GOOD, "host": HOST.upper() + ".", "port": "443"}, name="shop")["host"] == HOST
    )


def test_the_command_line_shows_what_it_means_before_it_is_saved_and_a_new_one_replaces_the_old_host(capsys):
    from dragoman.cli.connection_form import replaced_fields
    from dragoman.cli.connections import _saved

    _saved("shop", "elasticsearch", FORM, {"cloud_id": GOOD}, via=None, sign_in_at="")
    assert f"the Cloud ID means https://{HOST}:443, SSL Mode verify-identity" in capsys.readouterr().err
    _saved("shop", "elasticsearch", FORM, {"host": "es.example"}, via=None, sign_in_at="")
    assert capsys.readouterr().err == ""
    assert replaced_fields({"cloud_id": GOOD}) == {"host", "port"}
    assert not replaced_fields({"cloud_id": ""})
