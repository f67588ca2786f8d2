"""OpenSearch from ordinary Maven artifacts, started as Elasticsearch is: it is a fork of 7.10."""

from __future__ import annotations

from servers.opensearch.catalog import ENGINES

__all__ = ["ENGINES"]
