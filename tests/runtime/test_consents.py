"""What a person consents to: which server it is about, and that nothing else comes with it."""

from __future__ import annotations

from typing import Any

import pytest
from anyio import to_thread
from msgspec.structs import replace

from dragoman.connections.saved_connections import Connections, SavedConnection
from dragoman.folders import find_paths
from dragoman.sandbox.reach.address_resolver import NearerError
from dragoman.sandbox.server_certificates import MetCertificate
from dragoman.sessions.consents import CanBePinned, Consents, SignsInElsewhere, check_pins, check_sign_in, explained
from dragoman_api.connections import AuthScheme, Profile
from dragoman_api.errors import ConfigurationError, ConnectionFailedError, DragomanError, PermissionDeniedError
from dragoman_registry.ip_addresses import Nearness

SHOP = SavedConnection(name="shop", type="demo", values={"host": "db.example", "port": 9200})


def profile(token_url: str = "", *, hosts: str = "", scheme: AuthScheme = AuthScheme.CLIENT_CREDENTIALS) -> Profile:
    options: dict[str, Any] = {"token_url": token_url, "hosts": hosts}
    return Profile(name="shop", type="demo", host="db.example", port=9200, auth_scheme=scheme, options=options)


@pytest.mark.parametrize(
    ("url", "agreed", "asked"),
    [
        ("https://db.example:9200/token", "", ""),
        ("https://other.example:9300/token", "", ""),  # the second host of the connection
        ("https://db.example:9300/token", "", "db.example:9300"),  # hosts and ports are not mixed
        ("https://other.example:9200/token", "", "other.example:9200"),
        ("https://db.example:9201/token", "", "db.example:9201"),
        ("https://db.example/token", "", "db.example:443"),
        ("https://id.example/token", "", "id.example:443"),
        ("https://id.example/token", "id.example:443", ""),
        ("https://id.example:8443/token", "id.example:443", "id.example:8443"),
        ("https://id.example/token", "db.example:443", "id.example:443"),
    ],
)
def test_a_token_endpoint_on_another_host_or_port_has_to_be_agreed_to(url, agreed, asked):
    connection, reached = replace(SHOP, sign_in_at=agreed), profile(url, hosts="other.example:9300")
    if not asked:
        check_sign_in(connection, reached)
        return
    with pytest.raises(PermissionDeniedError) as caught:
        check_sign_in(connection, reached)
    assert str(caught.value.__cause__) == caught.value.details["server"] == asked
    assert caught.value.code == "sign-in-not-agreed"
    assert f"--sign-in-at {asked}" in caught.value.hint
    assert (f"you agreed to {agreed}" in caught.value.message) == bool(agreed)


def test_other_ways_to_sign_in_reach_no_token_endpoint():
    check_sign_in(SHOP, profile("https://id.example/token", scheme=AuthScheme.NONE))


class Person:
    """Answers, and remembers what the questions were about."""

    def __init__(self, answer: object) -> None:
        self.answer, self.about = answer, list[str]()

    async def __call__(self, question):
        self.about.append(question.subject)
        return self.answer


def met(host: str, port: int, certificate: bytes, **more: Any) -> MetCertificate:
    about = replace(profile(scheme=AuthScheme.NONE), host=host, port=port, pinned=more.pop("pinned", {}))
    known: dict[str, Any] = {"trusted": False, "names": "CN=x ", "obstacle": ""} | more
    return MetCertificate(profile=about, certificate=certificate, **known)


def caused(cause: Exception) -> DragomanError:
    error = ConnectionFailedError("it cannot be reached")
    error.__cause__ = cause
    return error


A, B = met("db.example", 9200, b"a"), met("other.example", 9300, b"b")
NEARER = NearerError("db.example", "10.0.0.1", now=Nearness.PRIVATE, before=None)


@pytest.mark.parametrize(
    ("cause", "about", "consent"),
    [
        (CanBePinned([A, B]), "certificate", {"pinned": {"h:1": "AAAA", **A.pin, **B.pin}}),
        (CanBePinned([B]), "certificate", {"pinned": {"h:1": "AAAA", **B.pin}}),
        (SignsInElsewhere("id.example:443"), "sign-in", {"sign_in_at": "id.example:443"}),
        (NEARER, "address", {}),
        (NearerError("db.example", "169.254.169.254", now=None, before=None), "", None),
        (ValueError("something else"), "", None),
    ],
)
async def test_a_consent_is_recorded_beside_those_that_were_there(cause, about, consent):
    store = Connections(find_paths())
    saved = replace(SHOP, pinned={"h:1": "AAAA"}, sign_in_at="t:1")
    store.save(saved, replace=True)
    for answer in (False, 1, None):  # only True is consent
        assert await Consents(store, Person(answer)).after(caused(cause), saved, trial=False) is None
        assert store.get("shop") == saved
    assert await Consents(store, None).after(caused(cause), saved, trial=False) is None
    person = Person(True)
    agreed = await Consents(store, person).after(caused(cause), saved, trial=False)
    assert person.about == [about][: bool(about)]
    assert agreed == (None if consent is None else replace(saved, **consent))
    assert store.get("shop") == (agreed or saved)
    near = await to_thread.run_sync(store.reached.of, "shop")
    assert near == ({"db.example": Nearness.PRIVATE} if about == "address" else {})


@pytest.mark.parametrize("trial", [False, True])
@pytest.mark.parametrize("edited", [{"values": {"host": "new"}}, {"type": "other"}])
async def test_a_consent_is_not_recorded_with_a_connection_that_was_edited_meanwhile(trial, edited):
    store = Connections(find_paths())
    now = replace(SHOP, **edited)
    store.save(now, replace=True)
    consents = Consents(store, Person(True))
    if trial:  # it holds for what was entered, and is saved with it alone
        agreed = await consents.after(caused(SignsInElsewhere("t:1")), SHOP, trial=True)
        assert agreed == replace(SHOP, sign_in_at="t:1")
    else:
        with pytest.raises(ConfigurationError, match="was edited elsewhere"):
            await consents.after(caused(SignsInElsewhere("t:1")), SHOP, trial=False)
    assert store.get("shop") == now


def test_of_several_servers_those_that_are_refused_are_shown_and_a_changed_one_first():
    error = ConnectionFailedError("refused")
    fine = met("db.example", 9200, b"a", trusted=True)
    odd = met("odd.example", 1, b"c", obstacle="certificate has expired")
    changed = met("other.example", 9300, b"b", pinned={"other.example:9300": "YQ=="})
    assert explained(error, [fine], name="shop") is error
    untrusted = explained(error, [fine, A, odd, B], name="shop")
    assert isinstance(untrusted.__cause__, CanBePinned)
    assert untrusted.__cause__.met == [A, B]
    assert (untrusted.code, untrusted.details["server"]) == ("certificate-untrusted", "db.example:9200")
    assert all(each.fingerprint in untrusted.hint for each in (A, B))
    other = explained(error, [fine, A, changed], name="shop")
    assert (other.code, other.details["server"]) == ("certificate-changed", "other.example:9300")
    assert other.__cause__ is None  # a changed certificate is never agreed to in passing
    assert A.fingerprint not in other.hint
    alone = explained(error, [fine, odd], name="shop")
    assert (alone.code, alone.__cause__) == ("certificate-untrusted", None)
    assert "could not be pinned either (certificate has expired)" in alone.message


def test_fingerprints_that_a_person_entered_pin_the_servers_that_show_them_and_no_other():
    shown = [A, B, met("third.example", 1, b"a")]
    assert check_pins([A.fingerprint], shown, name="shop") == A.pin | shown[2].pin
    assert check_pins([A.fingerprint, B.fingerprint], shown, name="shop") == A.pin | B.pin | shown[2].pin
    with pytest.raises(ConfigurationError, match="no server shows the certificate") as caught:
        check_pins([A.fingerprint, B.fingerprint], [A], name="shop")
    assert B.fingerprint in caught.value.message.partition(": ")[0]
    expired = met("other.example", 9300, b"b", obstacle="certificate has expired")
    assert check_pins([A.fingerprint], [A, expired], name="shop") == A.pin
    with pytest.raises(ConfigurationError, match="even if it were pinned"):
        check_pins([A.fingerprint, B.fingerprint], [A, expired], name="shop")
