"""The driver: which servers are Elasticsearch, and what each of them has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_querydsl.driver import QueryDslDriver

from . import connect

if TYPE_CHECKING:
    from dragoman_api import AuthenticationError, Profile, Server
    from dragoman_api.kit.exchanges import Exchange
    from dragoman_api.replies import Reply
    from dragoman_querydsl.protocol import Dialect


class Driver(QueryDslDriver):
    """One connection to one Elasticsearch cluster."""

    dialect = connect.dialect_of()

    def identify(self, profile: Profile) -> Exchange[tuple[Server, Dialect]]:
        """Check the product and the key, see `connect.identify`."""
        connect.check_key(profile)
        return connect.identify(profile)

    def check_product(self, reply: Reply) -> None:
        """Check that an answer to `GET /` is Elasticsearch's."""
        connect.product(reply)

    def rejected(self, error: AuthenticationError, profile: Profile) -> AuthenticationError:
        """Return the error for rejected credentials."""
        return connect.credentials_rejected(error, profile)
