"""All targets."""

from __future__ import annotations

from .targets import console, drivers, host, registry, texts, wheels, wire

TARGETS = {
    each.name: each for module in (wire, wheels, registry, host, texts, console, drivers) for each in module.TARGETS
}
"""By name, in the order of a report."""
