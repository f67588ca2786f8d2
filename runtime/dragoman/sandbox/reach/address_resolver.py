"""Resolving approved hosts: every resolved address is checked before a connection to it."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from dragoman_registry.ip_addresses import Nearness, canonical, is_literal, is_metadata, nearness

if TYPE_CHECKING:
    from collections.abc import Iterable


Endpoint = tuple[str, int]
"""A host and a port."""

_FRESH = 10.0  # seconds for which an answer holds, so that a lookup and the connection after it agree


class Place(NamedTuple):
    """One address of a host, as a socket needs it."""

    family: int
    address: tuple[Any, ...]

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        """The address without its port."""
        return ipaddress.ip_address(self.address[0])


class NearerError(OSError):
    """A name resolves to a nearer address than allowed.

    Attributes:
        host: The name.
        address: Its address.
        now: How near that is; None for an address at which a cloud hands out credentials.
        before: How near it may lead, having led there before; None where nothing is remembered.
    """

    def __init__(self, host: str, address: str, *, now: Nearness | None, before: Nearness | None) -> None:
        self.host, self.address, self.now, self.before = host, address, now, before
        super().__init__(errno.EACCES, self._reason())

    def _reason(self) -> str:
        kind = "a cloud's credential endpoint" if self.now is None else str(self.now)
        since = "" if self.now is None or self.before is None else f"; it led to {self.before} before"
        return f"{self.host} leads to {self.address}, {kind}{since}"


class AddressResolver:
    """Compares, looks up and judges the hosts of one connection."""

    def __init__(
        self, own: Iterable[Endpoint], further: Iterable[Endpoint] = (), *, remembered: dict[str, Nearness] | None
    ) -> None:
        """Begin without an answer.

        Args:
            own: Host and port as a person saved them.
            further: Those that a driver's manifest names.
            remembered: Host → how near it was when it was reached; what is reached for the first time is added.
        """
        self._own, further = tuple(own), tuple(further)
        self.remembered = {} if remembered is None else remembered
        self._entered_pairs = frozenset((canonical(host), port) for host, port in self._own)
        self._endpoints = self._entered_pairs | {(canonical(host), port) for host, port in further}
        self._entered = {canonical(host) for host, _ in self._own if is_literal(host)}
        self._manifest_hosts = {canonical(host) for host, _ in further} - {canonical(host) for host, _ in self._own}
        self._literal = self._entered | {canonical(host) for host, _ in further if is_literal(host)}
        self._answers: dict[str, tuple[float, list[Place]]] = {}
        self._asking: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    def allows(self, host: str, port: int | None) -> bool:
        """Return whether a host may be reached at a port; None asks for any port."""
        return _is_among(self._endpoints, host, port)

    def is_own(self, host: str, port: int | None) -> bool:
        """Return whether a person entered a host with a port; None asks for any port."""
        return _is_among(self._entered_pairs, host, port)

    async def find(self, host: str) -> list[Place]:
        """Return the permitted addresses of an approved host.

        Raises:
            NearerError: It resolves to a nearer address, or to a cloud's credential endpoint.
            OSError: The lookup failed.
        """
        name = canonical(host)
        async with self._asking[name]:
            until, places = self._answers.get(name, (0.0, []))
            if anyio.current_time() >= until:
                places = await _look_up(name)
                self._answers[name] = anyio.current_time() + _FRESH, places
        return self._judged(name, places)

    def note(self, host: str, place: Place) -> None:
        """Remember that a host was reached at an address."""
        if (name := canonical(host)) not in self._literal:
            self.remembered.setdefault(name, nearness(place.ip))

    def forget_answer(self, host: str) -> None:
        """Look a host up again next time, since nothing answers there."""
        self._answers.pop(canonical(host), None)

    def _judged(self, name: str, places: list[Place]) -> list[Place]:
        if name in self._entered:
            return places
        before = self.remembered.get(name)
        bound = Nearness.PRIVATE if name in self._manifest_hosts - self._literal else Nearness.LOOPBACK
        bound = bound if before is None else before
        # Drop the nearer addresses from a mixed answer, so adding one later gains nothing.
        good = [place for place in places if nearness(place.ip) <= bound and not is_metadata(place.ip)]
        if good or not places:
            return good
        now = None if is_metadata(places[0].ip) else nearness(places[0].ip)
        raise NearerError(name, places[0].address[0], now=now, before=before)


def _is_among(endpoints: Iterable[Endpoint], host: str, port: int | None) -> bool:
    canonical_host = canonical(host)
    return any(canonical_host == name and port in (None, number) for name, number in endpoints)


async def _look_up(name: str) -> list[Place]:
    try:
        infos = await anyio.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except ValueError as error:  # a label of 64 characters, for example
        raise socket.gaierror(socket.EAI_NONAME, f"{name!r} is not a host name") from error
    return [*dict.fromkeys(Place(int(family), tuple(address)) for family, _, _, _, address in infos)]


async def connect(resolver: AddressResolver, host: str, port: int, *, family: int = 0) -> socket.socket:
    """Connect to a host, and remember how near the address was.

    Args:
        resolver: Looks the host up and judges its addresses.
        host: The host.
        port: The port.
        family: The address family, if the caller needs a certain one; any other number leaves the choice to the host.

    Raises:
        NearerError: It resolves to a nearer address than allowed.
        OSError: The lookup failed, or no address answers.
    """
    places = await resolver.find(host)
    if family in (socket.AF_INET, socket.AF_INET6):
        places = [place for place in places if place.family == family]
    failure: OSError | None = None
    for place in places:
        try:
            sock = await _connect(place, port)
        except OSError as error:
            failure = error
        else:
            resolver.note(host, place)
            return sock
    resolver.forget_answer(host)
    raise failure or OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))


async def _connect(place: Place, port: int) -> socket.socket:
    sock = socket.socket(place.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.settimeout(0)
        host, _, *rest = place.address
        await asyncio.get_running_loop().sock_connect(sock, (host, port, *rest))
    except BaseException:
        sock.close()
        raise
    return sock
