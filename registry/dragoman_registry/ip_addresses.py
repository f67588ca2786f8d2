"""Hosts and addresses: one canonical spelling for each, and how near to this machine an address is."""

from __future__ import annotations

import ipaddress
import re
import socket
from contextlib import suppress
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address, ip_network

Address = IPv4Address | IPv6Address

MAX_HOST = 253
"""Maximum characters of a host name in DNS."""


class Nearness(IntEnum):
    """How near an address is; nearer services trust their callers more."""

    PUBLIC = 0
    PRIVATE = 1
    LINK_LOCAL = 2
    LOOPBACK = 3

    def __str__(self) -> str:
        return _WORDS[self]


_WORDS = {
    Nearness.PUBLIC: "a public address",
    Nearness.PRIVATE: "an address of a private network",
    Nearness.LINK_LOCAL: "a link-local address",
    Nearness.LOOPBACK: "this machine itself",
}

_METADATA = tuple(
    map(
        ip_network,
        (
            "169.254.169.0/24",  # AWS, Azure, Google, Oracle and most others; AWS has name and time servers beside it
            "169.254.170.0/24",  # AWS containers
            "169.254.0.23/32",  # Tencent
            "169.254.42.42/32",  # Scaleway
            "100.100.100.200/32",  # Alibaba
            "168.63.129.16/32",  # Azure, for its agents
            "192.0.0.192/32",  # Oracle, classic
            "fd00:ec2::/32",  # AWS
            "fd20:ce::254/128",  # Google
            "fd00:42::42/128",  # Scaleway
            "fd00:a9fe:a9fe::1/128",  # Linode
        ),
    )
)
_NUMBERS = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}")
_WRAPPED = tuple(map(ip_network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")))
"""IPv6 prefixes whose last 32 bits are an IPv4 address."""
_SITE = ip_network("fec0::/10")
_ISATAP = (0x5EFE, 0x0200_5EFE)


def canonical(host: str) -> str:
    """Return the canonical form of a host name or address, which is compared, looked up and connected to.

    >>> canonical("Example.ORG."), canonical("::0001"), canonical("bücher.example"), canonical("0x7f.1")
    ('example.org', '::1', 'xn--bcher-kva.example', '127.0.0.1')
    """
    name, percent, zone = host.partition("%")  # interface names may have capitals
    name = name.lower()
    if not name.isascii():
        try:
            name = name.encode("idna").decode()
        except UnicodeError:
            return name + percent + zone
    if not percent and not name.endswith(".."):  # no name ends with two dots
        name = name.removesuffix(".")
    whole = name + percent + zone
    with suppress(ValueError):
        return str(ipaddress.ip_address(whole[1:-1] if whole.startswith("[") and whole.endswith("]") else whole))
    if _NUMBERS.fullmatch(whole):  # every system's resolver reads these as IPv4
        with suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(whole))
    return whole


def is_literal(host: str) -> bool:
    """Check whether a host is an address in its usual spelling, which a reader recognizes.

    >>> is_literal("127.0.0.1"), is_literal("2130706433"), is_literal("::ffff:127.0.0.1"), is_literal("localhost")
    (True, False, False, False)
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return behind(address) == (_without_zone(address),)


def behind(address: Address) -> tuple[Address, ...]:
    """Return the IPv4 addresses that an IPv6 address wraps (ISATAP: with itself), or else the address alone."""
    address = _without_zone(address)
    if isinstance(address, IPv4Address) or int(address) <= 1:
        return (address,)
    last = IPv4Address(int(address) & 0xFFFF_FFFF)
    if any(address in network for network in _WRAPPED):
        return (last,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    return (address, last) if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP else (address,)


def nearness(address: Address) -> Nearness:
    """Return how near an address is; a wrapped address is as near as the one it wraps.

    >>> nearness(ipaddress.ip_address("64:ff9b::10.0.0.1")).name, nearness(ipaddress.ip_address("0.0.0.0")).name
    ('PRIVATE', 'LOOPBACK')
    """
    return max(map(_nearness, behind(address)))


def is_metadata(address: Address) -> bool:
    """Check whether a cloud serves credentials at an address to any program that asks."""
    return any(target in network for target in behind(address) for network in _METADATA)


def _nearness(address: Address) -> Nearness:
    if address.is_loopback or address.is_unspecified or (address.version == 4 and address.packed[0] == 0):
        return Nearness.LOOPBACK
    if address.is_link_local:
        return Nearness.LINK_LOCAL
    # Every range that is not public counts as private: shared and reserved ranges carry private networks, too.
    public = address.is_global and not address.is_multicast and address not in _SITE
    return Nearness.PUBLIC if public else Nearness.PRIVATE


def _without_zone(address: Address) -> Address:
    return IPv6Address(int(address)) if isinstance(address, IPv6Address) else address
