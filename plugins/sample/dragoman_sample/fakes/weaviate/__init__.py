"""A server that answers as Weaviate does, wrong pages included."""

from __future__ import annotations

from dragoman_sample.fakes.weaviate.security import VIEWER, Role, User
from dragoman_sample.fakes.weaviate.server import FakeWeaviate

__all__ = ["VIEWER", "FakeWeaviate", "Role", "User"]
