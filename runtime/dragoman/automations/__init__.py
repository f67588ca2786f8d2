"""Automations: those that `config.toml` names, and those that come with dragoman, switched by connection."""

from __future__ import annotations

from .call_limits import Meter
from .guards import ProductionLocks, named, shipped

__all__ = ["Meter", "ProductionLocks", "named", "shipped"]
