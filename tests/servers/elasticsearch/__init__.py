"""Elasticsearch from ordinary Maven artifacts: five lines, with real security where it is published."""

from __future__ import annotations

from servers.elasticsearch.catalog import ENGINES

__all__ = ["ENGINES"]
