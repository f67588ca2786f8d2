"""Automations: those that `config.toml` names, and those that come with dragoman, switched by connection."""

from __future__ import annotations

from .guards import Meter, ProductionLocks, named, shipped

__all__ = ["Meter", "ProductionLocks", "named", "shipped"]
