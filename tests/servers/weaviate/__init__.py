"""Weaviate, built from its published Go module: one version, with and without keys, roles, TLS and GraphQL."""

from __future__ import annotations

from servers.weaviate.catalog import ENGINES

__all__ = ["ENGINES"]
