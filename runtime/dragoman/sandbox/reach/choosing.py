"""The choice of the way to a launch's hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.sandbox.via import HttpProxy

from .address_resolver import AddressResolver

if TYPE_CHECKING:
    from dragoman.sandbox.launch import Launch

    from .ways import Way


def way_of(launch: Launch) -> Way | None:
    """Return the way to the hosts that a person entered, None for the direct one."""
    if launch.via is None:
        return None
    if isinstance(launch.via, HttpProxy):
        from .http_proxy import ProxyWay

        own = ((launch.via.host, launch.via.port),)
        return ProxyWay(launch.via, launch.via_password, AddressResolver(own, remembered=launch.remembered))
    from .ssh_tunnel import TunnelWay

    return TunnelWay(launch.via)
