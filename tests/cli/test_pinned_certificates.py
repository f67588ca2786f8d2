"""A certificate that is trusted on first use: shown, pinned, and refused once it changes (E14, W7)."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field

import pytest
from anyio.from_thread import start_blocking_portal
from api.certificates import Certificates, chained, make

from command_line import Machine
from connect_proxy import ConnectProxy
from dragoman_api import tls
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from slow_cases import mostly_slow
from terminal import Terminal

DIGITS = re.compile(r"SHA-256 ((?:[0-9A-F]{2}:){31}[0-9A-F]{2})")


@dataclass
class Shown:
    """A server's side of TLS whose certificate can be exchanged while it runs."""

    certs: Certificates
    context: ssl.SSLContext = field(default_factory=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))

    def server_context(self, **_: bool) -> ssl.SSLContext:
        return self.context

    def show(self, name: str) -> str:
        """Show another certificate from now on, and return its fingerprint."""
        self.context.load_cert_chain(self.certs.pem(name))
        return tls.fingerprint(ssl.PEM_cert_to_DER_cert(self.certs.text(name)))


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    """Make the certificates once; one of them is signed by the self-signed one."""
    made = make(tmp_path_factory.mktemp("certificates"))
    chained(made.folder, "child", signer="self")
    return made


@pytest.fixture(scope="module")
def running(certs):
    """Run one server; yield it and the certificate that it shows."""
    shown = Shown(certs)
    shown.show("self")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(FakeElasticsearch(tls=shown)) as fake:
        yield fake, shown


@pytest.fixture
def server(running):
    """Show the self-signed certificate at first."""
    running[1].show("self")
    return running


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a home in which the driver is installed."""
    made = Machine(tmp_path_factory.mktemp("pinning") / "home")
    made("plugins", "install", "elasticsearch", "--yes")
    return made


@pytest.fixture
def house(home):
    """Return the home without a connection."""
    (home.home / "config" / "connections.toml").unlink(missing_ok=True)
    return home


def add(house, fake, *more, mode="verify-identity", code=0, host="localhost"):
    words = ("--type", "elasticsearch", "--host", host, "--port", fake.port, "--auth-method", "none", "--yes")
    return house("connections", "add", "shop", *words, "--ssl-mode", mode, *more, code=code)


def edit(run, *words, code=0):
    return run("connections", "edit", "shop", *words, code=code)


def saved(house):
    return (house.home / "config" / "connections.toml").read_text()


@pytest.mark.parametrize("mode", mostly_slow(["verify-ca", "verify-identity"], fast=["verify-identity"]))
def test_E14_an_unknown_certificate_is_shown_and_the_remedy_pins_it(house, server, mode):
    fake, shown = server
    fingerprint = shown.show("self")
    done = add(house, fake, mode=mode, code=3)
    assert "error[certificate-untrusted]: Connection failed: " in done.err
    assert f"localhost:{fake.port}: its certificate is not trusted here: subject commonName self; valid 20" in done.err
    assert f"SHA-256 {fingerprint}" in done.err
    assert f"try: dragoman connections edit shop --pin-certificate {fingerprint}\n" in done.err
    assert "pinned" not in saved(house)  # `--yes` is no consent to it

    done = edit(house, "--pin-certificate", fingerprint)
    assert "connected: Elasticsearch" in done.out
    assert f'pinned-certificates = {{ "localhost:{fake.port}" = "MII' in saved(house)
    assert house("objects", "shop").code == 0
    assert house("connections", "show", "shop", "--json").json["pinned"] == {f"localhost:{fake.port}": fingerprint}
    assert f"localhost:{fake.port} SHA-256 {fingerprint}" in house("connections", "show", "shop").out


def test_a_fingerprint_can_be_given_before_anything_is_met(house, server):
    fake, shown = server
    plain = shown.show("self").replace(":", "").lower()
    assert "connected" in add(house, fake, "--pin-certificate", f"sha256 Fingerprint={plain}").out


def test_a_fingerprint_that_no_server_shows_pins_nothing(house, server):
    fake, shown = server
    there, other = shown.show("self"), shown.show("good")
    done = add(house, fake, "--pin-certificate", there, code=2)
    assert f"no server shows the certificate {there}: localhost:{fake.port} shows subject commonName good" in done.err
    assert f"SHA-256 {other}" in done.err
    assert "pinned" not in saved(house)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--pin-certificate", "AB:CD"), "'AB:CD' is not a SHA-256 fingerprint"),
        (("--pin-certificate", "ab" * 32, "--no-connect"), "leave out --no-connect"),
        (("--pin-certificate", "ab" * 32, "--ssl-mode", "preferred"), "checks no certificate"),
        (("--pin-certificate", "ab" * 32, "--skip-tls-verification"), "checks no certificate"),
    ],
)
def test_what_cannot_be_a_pin_is_refused_with_the_reason(house, server, words, reason):
    assert reason in add(house, server[0], *words, code=2).err


@pytest.mark.parametrize("new", mostly_slow(["good", "child"], fast=["child"]))
def test_a_changed_certificate_is_refused_with_both_fingerprints(house, server, new):
    """One that the pinned certificate has signed is another one, too."""
    fake, shown = server
    before = shown.show("self")
    add(house, fake, "--pin-certificate", before, mode="verify-ca")
    after = shown.show(new)
    done = house("objects", "shop", code=3)
    assert "error[certificate-changed]: Connection failed: " in done.err
    assert f"it shows another certificate than the pinned one: subject commonName {new}" in done.err
    assert f"SHA-256 {after}; pinned is SHA-256 {before}" in done.err
    assert f"try: dragoman connections edit shop --pin-certificate {after}\n" in done.err
    assert "renewed" in done.err
    edit(house, "--pin-certificate", after)
    assert saved(house).count(f"localhost:{fake.port}") == 1
    shown.show("self")
    assert house("objects", "shop", code=3).err.count("SHA-256") == 2


@pytest.mark.slow
def test_a_pin_trusts_no_authority_besides_not_even_a_configured_one(house, server):
    fake, shown = server
    add(house, fake, "--no-connect")
    ca = shown.certs.folder / "ca.crt"
    edit(house.process, "--pin-certificate", shown.show("self"), "--ca-file", ca)
    shown.show("good")
    assert "certificate-changed" in house("objects", "shop", code=3).err


@pytest.mark.slow
def test_E14_a_pinned_certificate_of_another_name_is_refused_under_verify_identity(house, server):
    fake, shown = server
    fingerprint = shown.show("misnamed")
    done = add(house, fake, code=3)
    assert "could not be pinned either (Hostname mismatch" in done.err
    assert f"SHA-256 {fingerprint}" in done.err
    assert "--pin-certificate" not in done.err
    assert "try: dragoman connections edit shop --ssl-mode verify-ca" in done.err
    done = edit(house, "--pin-certificate", fingerprint, code=2)
    assert "would be refused even if it were pinned: Hostname mismatch" in done.err
    edit(house, "--pin-certificate", fingerprint, "--ssl-mode", "verify-ca")
    done = edit(house, "--ssl-mode", "verify-identity", code=3)  # the pin is no way around the name
    assert "another host name" in done.err


def test_an_expired_certificate_cannot_be_pinned(house, server):
    fake, shown = server
    done = add(house, fake, "--pin-certificate", shown.show("expired"), code=2)
    assert "would be refused even if it were pinned: certificate has expired" in done.err


@pytest.mark.slow
def test_a_pin_ends_when_a_person_says_so_or_connects_elsewhere(house, server):
    fake, shown = server
    pin = shown.show("self")
    add(house, fake, "--pin-certificate", pin)
    edit(house, "--window", "index", "--no-connect")
    assert "pinned-certificates" in saved(house)
    edit(house, "--unpin", "--no-connect")
    assert "pinned-certificates" not in saved(house)
    for words in (("--host", "127.0.0.1"), ("--ca-file", shown.certs.folder / "self.crt")):
        edit(house, "--pin-certificate", pin, "--host", "localhost", "--ca-file", "")
        edit(house.process, *words, "--no-connect")
        assert "pinned-certificates" not in saved(house)


@pytest.mark.slow
def test_at_a_terminal_the_certificate_is_shown_and_a_yes_pins_it(house, server):
    fake, shown = server
    fingerprint = shown.show("self")
    add(house, fake, "--no-connect")
    shell = Terminal(house, "connections", "test", "shop")
    before = shell.answer("Trust this certificate from now on? [y/N]", "no")
    assert f"SHA-256 {fingerprint}" in before
    code, _ = shell.end()
    assert (code, "pinned" in saved(house)) == (3, False)
    shell = Terminal(house, "connections", "test", "shop")
    shell.answer("Trust this certificate from now on? [y/N]", "y")
    code, rest = shell.end()
    assert (code, "connected: Elasticsearch" in rest) == (0, True)
    assert house("connections", "show", "shop", "--json").json["pinned"] == {f"localhost:{fake.port}": fingerprint}
    shown.show("good")
    code, rest = Terminal(house, "connections", "test", "shop").end()  # a changed one is no question
    assert (code, "certificate-changed" in rest) == (3, True)


@pytest.mark.slow
def test_a_yes_is_saved_beside_other_consents_and_never_lost_silently_to_an_edit(house, server):
    fake, shown = server
    fingerprint = shown.show("self")
    file = house.home / "config" / "connections.toml"
    add(house, fake, "--no-connect")
    shell = Terminal(house, "connections", "test", "shop")
    shell.until("Trust this certificate from now on? [y/N]")
    other = dict(house("connections", "show", "shop", "--json").json)
    assert "pinned" not in other
    file.write_text(saved(house) + 'sign-in-at = "auth.example.com:443"\n')  # as another command saves a consent
    shell.type("y")
    assert shell.end()[0] == 0
    agreed = house("connections", "show", "shop", "--json").json
    assert agreed["pinned"] == {f"localhost:{fake.port}": fingerprint}
    assert agreed["sign_in_at"] == "auth.example.com:443"

    edit(house, "--unpin", "--no-connect")
    shell = Terminal(house, "connections", "test", "shop")
    shell.until("Trust this certificate from now on? [y/N]")
    edit(house, "--host", "127.0.0.1", "--no-connect")
    shell.type("y")
    code, rest = shell.end()
    assert (code, "pinned" in saved(house)) == (2, False)
    assert "'shop' was edited elsewhere before you answered; your answer was not saved" in " ".join(rest.split())


@pytest.mark.slow
def test_the_certificate_is_met_on_the_way_that_the_connection_takes(house, server):
    fake, shown = server
    fingerprint = shown.show("self")
    with ConnectProxy(names={"es.internal": "127.0.0.1"}) as proxy:
        done = add(house, fake, "--proxy", proxy.url, host="es.internal", mode="verify-ca", code=3)
        assert f"es.internal:{fake.port}: its certificate is not trusted here: " in done.err
        edit(house, "--pin-certificate", fingerprint)
        assert {*proxy.targets} == {f"es.internal:{fake.port}"}


@pytest.mark.parametrize("line", ['"localhost:1" = "no base64"', '"localhost:1" = 7', '"localhost:1" = ""'])
def test_a_damaged_pin_is_refused_and_not_ignored(house, server, line):
    add(house, server[0], "--no-connect")
    path = house.home / "config" / "connections.toml"
    path.write_text(f"{path.read_text()}pinned-certificates = {{ {line} }}\n")
    assert "[shop] pinned-certificates is no table" in house("objects", "shop", code=2).err
