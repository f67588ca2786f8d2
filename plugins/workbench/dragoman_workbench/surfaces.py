"""The kind of device whose browser sends a request: some drivers are not available on phones and tablets (P6)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

DESKTOP = "desktop"
surface: ContextVar[str] = ContextVar("surface", default=DESKTOP)
"""``desktop``, ``tablet`` or ``phone``, of the request that is being answered."""


def read_surface(headers: Mapping[str, str]) -> str:
    """Return the surface that a browser's headers tell of; a tablet that claims to be a computer counts as one."""
    agent = headers.get("User-Agent", "")
    if "iPad" in agent or "Tablet" in agent or ("Android" in agent and "Mobile" not in agent):
        return "tablet"
    return "phone" if "Mobi" in agent or headers.get("Sec-CH-UA-Mobile") == "?1" else DESKTOP


def check_surface(plugin: str, excluded: Collection[str]) -> None:
    """Refuse a driver on a surface that it excludes; raises ConfigurationError."""
    if surface.get() in excluded:
        reason = f"{plugin} is not available on a {surface.get()}"
        raise ConfigurationError(reason, hint="use a browser of a computer", code="surface-excluded")
