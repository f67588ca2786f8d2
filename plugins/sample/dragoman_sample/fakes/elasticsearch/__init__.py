"""A server that answers as Elasticsearch does, traps included."""

from __future__ import annotations

from dragoman_sample.fakes.elasticsearch.security import ApiKey, User
from dragoman_sample.fakes.elasticsearch.server import FakeElasticsearch

__all__ = ["ApiKey", "FakeElasticsearch", "User"]
