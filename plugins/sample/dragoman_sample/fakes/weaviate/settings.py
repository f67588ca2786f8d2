"""The settings of a server that change its answers, under names of our own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What the environment of a real server says.

    Attributes:
        version: the release that `GET /v1/meta` tells; operators that came later are refused.
        host: the address that `GET /v1/meta` tells.
        graphql: false is DISABLE_GRAPHQL.
        window: QUERY_MAXIMUM_RESULTS.
        page: QUERY_DEFAULTS_LIMIT, for lists.
        auto_schema: AUTOSCHEMA_ENABLED.
    """

    version: str = "1.38.11"
    host: str = "127.0.0.1"
    graphql: bool = True
    window: int = 10_000
    page: int = 10
    auto_schema: bool = True

    @property
    def release(self) -> tuple[int, ...]:
        """Return the version for comparisons."""
        return tuple(map(int, self.version.split(".")[:3]))
