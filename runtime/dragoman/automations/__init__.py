"""Automations: those that `config.toml` names, and those that come with dragoman, switched by connection."""

from __future__ import annotations

from .choose import named, shipped

__all__ = ["named", "shipped"]
