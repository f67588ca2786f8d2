"""Automations: those that `config.toml` names, and those that come with dragoman, switched by connection."""

from __future__ import annotations

from .call_limits import Meter
from .guards import named, shipped

__all__ = ["Meter", "named", "shipped"]
