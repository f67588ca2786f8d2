"""Which server answers, whether this driver supports it, and what its version has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dragoman_api import AuthenticationError, Profile, Server, replies
from dragoman_api.connections import AuthScheme
from dragoman_api.errors import ConfigurationError
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_querydsl import connect, protocol
from dragoman_querydsl.protocol import Dialect, PointInTime, Words

if TYPE_CHECKING:
    from dragoman_api.replies import Reply
    from dragoman_querydsl.connect import Release

TAGLINE = "You Know, for Search"
OPENSEARCH = "The OpenSearch Project: https://opensearch.org/"
SUPPORTED = "Elasticsearch 7.x, 8.x and 9.x"
OLDEST, NEWEST = 7, 9
"""Major versions that were tried."""

NAMES_PRODUCT = (7, 14, 0)
"""The first version that names the product in a header of its answers."""

POINTS = PointInTime("_pit", "id")
WORDS = Words(
    paths=("_async_search", "_pit", "_query", "_security/_authenticate", "_sql"),
    of_index=("_pit?keep_alive=1m",),
    queries=("knn",),
    aggregations=("top_metrics",),
    types=("dense_vector", "flattened", "version"),
    search=("knn", "runtime_mappings"),
    mappings=("runtime",),
)
_refusal = partial(connect.refusal, supported=SUPPORTED)


def dialect_of(release: Release = (OLDEST, 0, 0), *, oss: bool = False, hidden: bool = False) -> Dialect:
    """Return what a version has; by default what all have.

    Args:
        release: The version.
        oss: A build without the features of the default distribution.
        hidden: The credentials may not see the version; `release` is the oldest that it can be.
    """
    return Dialect(
        points=POINTS,
        words=WORDS,
        point_in_time=release >= (7, 12, 0) and not oss,
        ties_as_offset=True,
        case_insensitive=release >= (7, 10, 0),
        resolves_names=release >= (7, 9, 0),
        finds_ignored=release >= (7, 11, 0),
        finds_near=release >= (8, 4, 0),
        leaves_out_vectors=None if hidden and release >= NAMES_PRODUCT else release >= (9, 2, 0),
    )


def check_key(profile: Profile) -> None:
    """Refuse a malformed API key before it is sent; never change it (E10).

    Raises:
        ConfigurationError: It holds a colon, so it is `id:api_key` in clear and not the base64 of it.
    """
    key = profile.secrets.get("api_key")
    if profile.auth_scheme is AuthScheme.API_KEY and ":" in key:
        raise ConfigurationError(
            "the API key contains a ':', so it is id:api_key in clear text instead of its base64; it was not sent",
            hint="encode it and save the result: printf %s 'ID:API_KEY' | base64",
        )


def identify(profile: Profile) -> Exchange[tuple[Server, Dialect]]:
    """Check that a supported product and version answers to the credentials (E3).

    Raises:
        AuthenticationError: 401.
        ConnectionFailedError: The answer redirects, or the server takes no more requests.
        ServerNotSupportedError: Another product or version.
    """
    reply = yield from ask(get("/"))
    if error := replies.turned_away(reply, profile):
        raise error
    if reply.status == 403:
        return (yield from _limited())
    release, number, flavor = product(reply)
    if release[0] > NEWEST and profile.options.get("untested_versions") is not True:
        raise connect.try_untested(f"Elasticsearch {number}", supported=SUPPORTED)
    return Server("Elasticsearch", number, _version_notes(release, flavor)), dialect_of(release, oss=flavor == "oss")


def product(reply: Reply) -> tuple[Release, str, str]:
    """Return the version, its text and the flavour of the build, by the answer to `GET /`.

    Raises:
        DragomanError: It is an error.
        ServerNotSupportedError: Another product answered.
    """
    identity = connect.read_identity(reply)
    if identity is None:
        raise _refusal("something that answers no JSON")
    number = identity.number
    # Check this first: a server that calls itself OpenSearch may send Elastic's header too.
    if identity.distribution == "opensearch" or (not identity.distribution and identity.tagline == OPENSEARCH):
        raise connect.another_driver(f"opensearch {number}", supported=SUPPORTED, kind="opensearch")
    if identity.distribution:
        raise _refusal(f"{identity.distribution} {number}")
    if identity.release is None:
        raise _refusal("a server without a version")
    genuine = _header(reply) if identity.release >= NAMES_PRODUCT else identity.tagline == TAGLINE
    if not genuine:
        raise _refusal(f"a server that calls itself {number} and is not Elasticsearch")
    return identity.release, number, identity.flavor


def _header(reply: Reply) -> bool:
    return reply.headers.get("X-Elastic-Product") == "Elasticsearch"


def _version_notes(release: Release, flavor: str) -> list[str]:
    number = ".".join(map(str, release))
    if release[0] < OLDEST:
        raise _refusal(f"Elasticsearch {number}")
    if release[0] > NEWEST:
        return [f"Elasticsearch {number} is newer than this driver and untested"]
    return [f"{flavor} build: untested"] if flavor == "serverless" else []


def _limited() -> Exchange[tuple[Server, Dialect]]:
    # A key without the cluster privilege `monitor` may still read; any valid credential gets 200 here.
    reply = yield from ask(get("/_security/_authenticate"))
    if reply.status == 401:
        protocol.check(reply)
    if reply.status != 200:
        raise _refusal(f"a server that says 403 to GET / and {reply.status} to GET /_security/_authenticate")
    # 401 and 403 never carry the product header; every other answer does from 7.14 on.
    release = NAMES_PRODUCT if _header(reply) else (OLDEST, 0, 0)
    note = "the credentials lack the cluster privilege monitor: version unknown, the features of "
    notes = [f"{note}{'.'.join(map(str, release[:2]))} are used"]
    return Server("Elasticsearch", "", notes), dialect_of(release, hidden=True)


def credentials_rejected(error: AuthenticationError, profile: Profile) -> AuthenticationError:
    """Build the error for rejected credentials; it suggests HTTPS, which 8.x serves by default (E39)."""
    return connect.credentials_rejected(error, profile, https="8.x serves HTTPS")
