"""The versions that can be had: their artifacts, the Java they need, and how the server is put together."""

from __future__ import annotations

from dataclasses import dataclass

_NETTY = "transport-netty4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A plugin that the server reads from a folder of its own.

    Attributes:
        artifacts: Published jars that leave the class path for this folder.
        shares: Published jars of another module whose classes it uses as well.
        sources: Our own code in it.
    """

    name: str
    classname: str
    artifacts: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    extends: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One version, as its jars want to be started.

    Attributes:
        product: The family's folder, which holds its sources and POMs; also the type of its records, and the name of
            the server's settings file.
        java: The lowest Java that runs it, and the one our code is compiled for.
        sources: Folders of our code that belong on the class path.
        plugins: Plugin classes of the class path (up to 8.8).
        modules: Plugins in folders (from 8.9 on).
        archives: Zip archives of the POM whose checksums not every mirror has, each with the SHA-256 digest of ours.
    """

    product: str = "elasticsearch"
    version: str
    java: int = 17
    sources: tuple[str, ...]
    main: str = "launch.Main"
    plugins: tuple[str, ...] = ()
    modules: tuple[Module, ...] = ()
    archives: tuple[tuple[str, str], ...] = ()


V7_10 = Line(
    version="7.10.2",
    java=11,
    sources=("launch", "7", "analysis", "saml"),
    plugins=(
        "org.elasticsearch.transport.Netty4Plugin",
        "org.elasticsearch.xpack.core.XPackPlugin",
        "org.elasticsearch.xpack.security.Security",
        "analysis.SecurityIndexAnalysis",
    ),
)

V7_17 = Line(
    version="7.17.29",
    java=11,
    sources=("launch", "7"),
    plugins=(
        "org.elasticsearch.transport.Netty4Plugin",
        "org.elasticsearch.reindex.ReindexPlugin",
        "org.elasticsearch.join.ParentJoinPlugin",
        "org.elasticsearch.index.mapper.MapperExtrasPlugin",
        "org.elasticsearch.script.mustache.MustachePlugin",
    ),
)

V8_7 = Line(
    version="8.7.1",
    sources=("launch", "8.7"),
    main="org.elasticsearch.plugins.Main",
    plugins=("org.elasticsearch.transport.netty4.Netty4Plugin",),
)

_TRANSPORT = Module(name=_NETTY, classname="org.elasticsearch.transport.netty4.Netty4Plugin", artifacts=(_NETTY,))

V8_19 = Line(
    version="8.19.21",
    sources=("launch", "8.19"),
    modules=(
        _TRANSPORT,
        Module(name="x-pack-core", classname="org.elasticsearch.xpack.core.XPackPlugin", artifacts=("x-pack-core",)),
        Module(
            name="x-pack-security",
            classname="org.elasticsearch.xpack.security.Security",
            artifacts=("x-pack-security",),
            shares=(_NETTY,),
            sources=("saml",),
            extends="x-pack-core",
        ),
        Module(name="rest-root", classname="root.RootPlugin", sources=("root", "root-8.19")),
        # Plugins that share a class loader are offered each other's services and refuse to start: one folder each.
        Module(name="security-analysis", classname="analysis.SecurityIndexAnalysis", sources=("analysis",)),
    ),
)

V9_5 = Line(
    version="9.5.3",
    java=21,
    sources=("launch", "9.5"),
    modules=(_TRANSPORT, Module(name="rest-root", classname="root.RootPlugin", sources=("root", "root-9.5"))),
)
