"""The driver: which servers are OpenSearch, and what each of them has.

What the servers do is in docs/reference/drivers/opensearch.md, measured.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dragoman_api import Server, replies
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_querydsl import connect, protocol
from dragoman_querydsl.driver import QueryDslDriver
from dragoman_querydsl.protocol import Dialect, PointInTime, Words

if TYPE_CHECKING:
    from dragoman_api import AuthenticationError, Profile
    from dragoman_api.replies import Reply
    from dragoman_querydsl.connect import Release

DISTRIBUTION = "opensearch"
TAGLINE = "The OpenSearch Project: https://opensearch.org/"
OLDEST, NEWEST = 2, 3
"""Major versions that were tried."""

SUPPORTED = "OpenSearch 2.x and 3.x"
SORTS_BY_SHARD = (3, 3, 0)
"""The first version whose points in time sort by `_shard_doc`, which is unique within one index only."""

POINTS = PointInTime(
    "_search/point_in_time",
    "pit_id",
    parameters="&allow_partial_pit_creation=false",
    tiebreakers=("_shard_doc", "_index"),
)
WORDS = Words(
    paths=(
        "_search/point_in_time", "_search/point_in_time/_all", "_search/pipeline", "_cat/segment_replication?v",
        "_list/indices?v", "_list/shards?v", "_plugins/_asynchronous_search", "_plugins/_ism/explain",
        "_plugins/_knn/stats", "_plugins/_ppl", "_plugins/_security/authinfo", "_plugins/_sql",
    ),
    of_index=("_search/point_in_time?keep_alive=1m",),
    types=("flat_object", "knn_vector"),
    search=("derived", "search_pipeline"),
    mappings=("derived",),
)  # fmt: skip
"""`_plugins` and `knn_vector` are those of plugins, which the stock distribution has."""
_refusal = partial(connect.refusal, supported=SUPPORTED)


def dialect_of(release: Release = (OLDEST, 0, 0)) -> Dialect:
    """Return what a version has; by default what all have.

    No version finds strings that are longer than `ignore_above`, and none takes the parameter for vectors. Vectors come
    with a plugin, without which there is no column of them.
    """
    return Dialect(
        points=POINTS,
        words=WORDS,
        point_in_time=release >= SORTS_BY_SHARD,
        case_insensitive=True,
        resolves_names=True,
        orders_unsigned=False,
        skips_rightly=False,
        counts_wordless=False,
        reads_any_bound=False,
        finds_near=True,
        nears_by_clause=True,
    )


def identify(profile: Profile) -> Exchange[tuple[Server, Dialect]]:
    """Check that a supported product and version answers to the credentials.

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
    number, release = product(reply)
    if release is None:
        note = f"the server says {number} (compatibility.override_main_response_version): the features of 2.0 are used"
        return Server("OpenSearch", number, [note]), dialect_of()
    if release[0] < OLDEST:
        raise _refusal(f"OpenSearch {number}")
    if release[0] <= NEWEST:
        return Server("OpenSearch", number), dialect_of(release)
    if profile.options.get("untested_versions") is not True:
        raise connect.try_untested(f"OpenSearch {number}", supported=SUPPORTED)
    return Server("OpenSearch", number, [f"OpenSearch {number} is newer than this driver and untested"]), dialect_of(
        release
    )


def product(reply: Reply) -> tuple[str, Release | None]:
    """Return the version as the server says it, and the version; None if it says that of Elasticsearch.

    Raises:
        DragomanError: It is an error.
        ServerNotSupportedError: Another product answered.
    """
    identity = connect.read_identity(reply)
    if identity is None:
        raise _refusal("something that answers no JSON")
    number = identity.number
    if identity.distribution == DISTRIBUTION and identity.release is not None:
        return number, identity.release
    if not identity.distribution and identity.tagline == TAGLINE:
        return number, None
    if identity.distribution:
        raise _refusal(f"{identity.distribution} {number}")
    if identity.tagline == "You Know, for Search":
        raise connect.another_driver(f"Elasticsearch {number}", supported=SUPPORTED, kind="elasticsearch")
    raise _refusal(f"a server that calls itself {number or 'nothing'} and is not OpenSearch")


def _limited() -> Exchange[tuple[Server, Dialect]]:
    # A user without `cluster:monitor/main` may still read; the security plugin tells anybody who they are.
    reply = yield from ask(get("/_plugins/_security/authinfo"))
    if reply.status == 401:
        protocol.check(reply)
    if reply.status != 200:
        raise _refusal(f"a server that says 403 to GET / and {reply.status} to GET /_plugins/_security/authinfo")
    note = "the credentials lack the permission cluster:monitor/main: version unknown, the features of 2.0 are used"
    return Server("OpenSearch", "", [note]), dialect_of()


class Driver(QueryDslDriver):
    """One connection to one OpenSearch cluster."""

    dialect = dialect_of()

    def identify(self, profile: Profile) -> Exchange[tuple[Server, Dialect]]:
        """Check the product, see `identify`."""
        return identify(profile)

    def check_product(self, reply: Reply) -> None:
        """Check that an answer to `GET /` is OpenSearch's."""
        product(reply)

    def rejected(self, error: AuthenticationError, profile: Profile) -> AuthenticationError:
        """Return the error for rejected credentials; the security plugin serves HTTPS unless told otherwise."""
        return connect.credentials_rejected(error, profile, https="the security plugin serves HTTPS")
