"""The kind of device whose browser sends a request: some drivers are not available on phones and tablets (P6)."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from dragoman_api.errors import ConfigurationError
from dragoman_api.events import PluginInstalled, PluginRemoved, PluginRolledBack

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from dragoman import Runtime
    from dragoman_api.events import Event

DESKTOP = "desktop"
surface: ContextVar[str] = ContextVar("surface", default=DESKTOP)
"""``desktop``, ``tablet`` or ``phone``, of the request that is being answered."""


def read_surface(headers: Mapping[str, str]) -> str:
    """Return the surface that a browser's headers indicate; a tablet that claims to be a computer counts as one."""
    agent = headers.get("User-Agent", "")
    if "iPad" in agent or "Tablet" in agent or ("Android" in agent and "Mobile" not in agent):
        return "tablet"
    return "phone" if "Mobi" in agent or headers.get("Sec-CH-UA-Mobile") == "?1" else DESKTOP


def why_not_here(plugin: str, excluded: Collection[str]) -> str:
    """Return why a driver is not available on the surface that asks; empty if it is."""
    return f"{plugin} is not available on a {surface.get()}" if surface.get() in excluded else ""


def check_surface(plugin: str, excluded: Collection[str]) -> None:
    """Refuse a driver on a surface that it excludes; raises ConfigurationError."""
    if reason := why_not_here(plugin, excluded):
        raise ConfigurationError(reason, hint="use a browser on a computer", code="surface-excluded")


KNOWN_SECONDS = 900.0
"""Seconds for which the driver of a type is remembered; its own installation ends that earlier."""


class SurfaceRules:
    """Which types a surface excludes, asked of the registries once and not for every request of a phone."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._known: dict[str, tuple[float, str, tuple[str, ...]]] = {}
        runtime.add_sink(self._forget)

    def _forget(self, event: Event) -> None:
        if isinstance(event, PluginInstalled | PluginRemoved | PluginRolledBack):
            self._known.clear()

    async def check_connection(self, name: str) -> None:
        """Refuse a saved connection whose driver excludes the surface that asks.

        Raises:
            ConfigurationError: It does (code ``surface-excluded``), or there is no such connection.
            PluginNotFoundError: No driver serves its type.
        """
        if surface.get() != DESKTOP:
            await self.check_type((await run_sync(self._runtime.connections.get, name)).type)

    async def check_type(self, kind: str) -> None:
        """Refuse a type whose driver excludes the surface that asks; raises as `check_connection`."""
        if surface.get() == DESKTOP:
            return
        until, plugin, excluded = self._known.get(kind, (0.0, "", ()))
        if until < time.monotonic():
            listing = await self._runtime.plugins.for_type(kind)
            plugin, excluded = listing.id, listing.excluded_surfaces
            self._known[kind] = (time.monotonic() + KNOWN_SECONDS, plugin, excluded)
        check_surface(plugin, excluded)
