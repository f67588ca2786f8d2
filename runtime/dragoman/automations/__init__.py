"""Automations: those that `config.toml` names, and those that come with dragoman, switched by connection."""

from __future__ import annotations

from .choose import named, shipped
from .limits import Meter

__all__ = ["Meter", "named", "shipped"]
