"""Solr: the vendor's published jars, started over an empty folder, with and without a user."""

from __future__ import annotations

from servers.solr.catalog import ENGINES

__all__ = ["ENGINES"]
