"""A server that answers as Weaviate does, wrong pages included."""

from __future__ import annotations

from fakes.weaviate.security import VIEWER, Role, User
from fakes.weaviate.server import FakeWeaviate

__all__ = ["VIEWER", "FakeWeaviate", "Role", "User"]
