"""The Elasticsearch engines: each line, with the security that it can have."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servers.elasticsearch import lines
from servers.elasticsearch.build import build, build_folder
from servers.elasticsearch.node import Node, Security
from servers.engines import Engine, Server
from servers.faults import EngineUnavailableError, Obstacle
from servers.jdks import Jdk, find_jdk, known_jdks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.engines import Options

_COMMON_JAVA = 17
"""The Java that a machine for these tests has; what needs a newer one is excused where it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticsearchEngine(Engine):
    """One line of Elasticsearch, or of OpenSearch, with one kind of protection."""

    line: lines.Line
    security: Security

    def obstacle(self) -> Obstacle | None:
        """Look for Java, for openssl where there is TLS, and for Maven while the jars are not here."""
        needed = self.line.java
        if not find_jdk(needed):
            found = ", ".join(f"Java {kit.release} in {kit.home}" for kit in known_jdks()) or "no JDK at all"
            return Obstacle(
                reason=f"needs a JDK of Java {needed} or newer; found {found}",
                remedy=f"install one (Debian: apt-get install openjdk-{needed}-jdk-headless), or name it: JAVA_HOME=…",
                excused=needed > _COMMON_JAVA,
            )
        if self.security is Security.TLS and not shutil.which("openssl"):
            return Obstacle(reason="openssl is not on the path", remedy="apt-get install openssl")
        if not build_folder(self.line).is_dir() and not shutil.which("mvn"):
            return Obstacle(reason="Maven (mvn) is not on the path", remedy="apt-get install maven")
        return None

    def install(self) -> tuple[Path, bool]:
        """Fetch the jars and compile what they lack; engines of the same version share it."""
        made = build(self.line, self._jdk())
        return build_folder(self.line), made

    @contextmanager
    def serve(self, folder: Path, options: Options) -> Iterator[Server]:
        """Run one node."""
        self.install()
        node = Node(self.id, self.line, security=self.security, folder=folder, options=options)
        with node.running(self._jdk()) as (process, record):
            yield Server(process=process, record=record)

    def _jdk(self) -> Jdk:
        jdk = find_jdk(self.line.java)
        if not jdk:
            raise EngineUnavailableError(self.id, f"no Java {self.line.java} or newer")
        return jdk


def engine_of(line: lines.Line, security: Security, proves: str, *, suffix: str = "") -> ElasticsearchEngine:
    """Describe an engine; its name is that of its product, its version and the suffix."""
    return ElasticsearchEngine(
        id=f"{line.product}-{line.version}{suffix}",
        type=line.product,
        version=line.version,
        proves=proves,
        line=line,
        security=security,
    )


ENGINES = [
    engine_of(lines.V7_17, Security.NONE, "the 7.x line"),
    engine_of(lines.V8_7, Security.NONE, "an older 8.x"),
    engine_of(lines.V8_19, Security.TLS, "the newest 8.x: real 401 and 403, API keys, TLS"),
    engine_of(lines.V8_19, Security.HTTP, "the same security over plain HTTP", suffix="-http-security"),
    engine_of(lines.V8_19, Security.NONE, "the newest 8.x, open", suffix="-plain"),
    engine_of(lines.V7_10, Security.TLS, "an early 7.x: 401 and 403 without product header, first PIT, TLS"),
    engine_of(lines.V7_10, Security.NONE, "an early 7.x, open: paging where there is no _shard_doc", suffix="-plain"),
    engine_of(lines.V9_5, Security.NONE, "9.x, which is an extension of ours"),
]
