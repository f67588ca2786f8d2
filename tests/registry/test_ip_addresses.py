"""Hosts have one spelling, and an address leads as near as what it stands for."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_registry.ip_addresses import Nearness, canonical, is_literal, is_metadata, nearness

NEAR = {
    Nearness.LOOPBACK: (
        "127.0.0.1 127.255.0.9 ::1 0.0.0.0 0.1.2.3 :: ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: "
        "::ffff:0:127.0.0.1 ::ffff:0.0.0.0 64:ff9b:1::127.0.0.1 fe80::5efe:127.0.0.1 "
        "fe80::200:5efe:127.0.0.1"
    ),
    Nearness.LINK_LOCAL: "169.254.1.1 fe80::1 fe80::1%eth0 ::ffff:169.254.1.1 2002:a9fe:101::",
    Nearness.PRIVATE: (
        "10.1.2.3 172.18.0.5 192.168.65.254 100.64.0.7 fd12:3456::1 fc00::1 fec0::1 198.18.0.1 240.240.0.1 "
        "::ffff:10.0.0.1 64:ff9b::10.0.0.1 2002:a00:1:: 224.0.0.1 ff02::1 255.255.255.255"
    ),
    Nearness.PUBLIC: "8.8.8.8 2001:4860:4860::8888 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::",
}
METADATA = (
    "169.254.169.254 169.254.170.2 169.254.170.23 169.254.0.23 169.254.42.42 100.100.100.200 168.63.129.16 192.0.0.192 "
    "fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 fd00:a9fe:a9fe::1 fd00:ec2::254%eth0 ::ffff:169.254.169.254 "
    "64:ff9b::169.254.169.254 2002:a9fe:a9fe:: ::169.254.169.254 fe80::5efe:169.254.169.254 "
    "fe80::200:5efe:169.254.169.254"
)


@pytest.mark.parametrize(("near", "address"), [(near, each) for near, text in NEAR.items() for each in text.split()])
def test_an_address_leads_as_near_as_what_it_stands_for(near: Nearness, address: str):
    assert nearness(ip_address(address)) is near


def test_the_nearer_an_address_the_greater_and_each_distance_has_its_words():
    near = [nearness(ip_address(each)) for each in ("8.8.8.8", "10.0.0.1", "169.254.1.1", "127.0.0.1")]
    assert near == sorted(set(near))
    assert [*map(str, near)] == [
        "a public address", "an address of a private network", "a link-local address", "this machine itself",
    ]  # fmt: skip


@pytest.mark.parametrize("address", METADATA.split())
def test_addresses_of_clouds_credentials_are_known_in_every_wrapping(address: str):
    assert is_metadata(ip_address(address))


def test_others_are_not_taken_for_them():
    assert not any(is_metadata(ip_address(each)) for text in NEAR.values() for each in text.split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Example.ORG.", "example.org"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("127.0.0.1.", "127.0.0.1"),
        ("LOCALHOST.", "localhost"),
        *((each, "127.0.0.1") for each in ("0x7f.1", "2130706433", "127.1", "0177.0.0.1", "0x7f000001", "127.0.1")),
        ("\uff11\uff12\uff17.0.0.1", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("::0001", "::1"),
        ("[::1]", "::1"),
        ("[::1].", "::1"),
        ("FE80::1%Eth0", "fe80::1%Eth0"),
        ("0:0:0:0:0:0:0:1", "::1"),
    ],
)
def test_spellings_of_one_host_are_the_same(one: str, other: str):
    assert canonical(one) == canonical(other) == other


@pytest.mark.parametrize("host", ["127.0.0.1%2e", "localhost%2e", "127.0.0.1..", "localhost..", "[127.0.0.1", "a@b"])
def test_what_is_no_spelling_of_a_host_is_not_taken_for_it(host: str):
    assert canonical(host) not in ("127.0.0.1", "localhost", "b")


@pytest.mark.parametrize("host", ["0x7f.1", "127.1", "127.0.0.1.", "::ffff:127.0.0.1", "64:ff9b::1", "localhost", ""])
def test_only_the_usual_spelling_of_an_address_is_one_that_a_person_reads(host: str):
    assert not is_literal(host)


@given(st.text(max_size=30))
@example("..")
@example("ü。")
@example("ü。.")
@example("::0001.")
@example("[[::1]]")
@example("\uff05Ab.")
@example("0x.")
def test_one_form_stays_as_it_is(name: str):
    assert canonical(canonical(name)) == canonical(name)
