"""A TCP connection to an approved host, at the first of its permitted addresses that answers."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .address_resolver import AddressResolver, Place


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
