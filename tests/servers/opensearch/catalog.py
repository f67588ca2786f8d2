"""The OpenSearch engines: the newest 2.x and the newest 3.x, with what is published of their modules."""

from __future__ import annotations

from servers.elasticsearch.catalog import engine_of
from servers.elasticsearch.lines import Line
from servers.elasticsearch.node import Security

_CLASSES = (
    "transport.Netty4",
    "index.reindex.Reindex",
    "painless.Painless",
    "index.mapper.MapperExtras",
    "join.ParentJoin",
    "script.mustache.Mustache",
)

V2_19 = Line(
    product="opensearch",
    version="2.19.6",
    java=11,
    sources=("launch", "2"),
    plugins=tuple(f"org.opensearch.{name}Plugin" for name in (*_CLASSES, "knn.plugin.KNN")),
    archives=(
        (
            "org.opensearch.plugin:opensearch-knn:2.19.6.0",
            "c21b9565624d29fd4024e3a3902712349006cb7894a73c45d976756a761e628f",
        ),
    ),
)

V2_19_1 = Line(
    product="opensearch",
    version="2.19.1",
    java=11,
    sources=("launch", "2"),
    plugins=tuple(f"org.opensearch.{name}Plugin" for name in (*_CLASSES, "security.OpenSearchSecurity")),
    archives=(
        (
            "org.opensearch.plugin:opensearch-security:2.19.1.0",
            "94a04f12ac6033902209fac1e4e512618d45beee604bbf0e42c3ed79c55220cf",
        ),
    ),
)
"""The last one whose security plugin is published."""

V3_9 = Line(
    product="opensearch",
    version="3.9.0",
    java=21,
    sources=("launch", "3"),
    plugins=tuple(f"org.opensearch.{name}ModulePlugin" for name in _CLASSES),
)

ENGINES = [
    engine_of(V2_19, Security.NONE, "the newest 2.x, with the k-NN plugin: vectors"),
    engine_of(V2_19_1, Security.TLS, "the security plugin: users, TLS"),
    engine_of(V3_9, Security.NONE, "the newest 3.x"),
]
