"""Chroma's own server, from the wheel `chromadb` in an environment of its own in the cache."""

from __future__ import annotations

from servers.chroma.catalog import ENGINES

__all__ = ["ENGINES"]
