"""The Solr engines: one version of published jars, open, and behind basic authentication."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from servers.engines import Engine, Server
from servers.faults import EngineError, EngineUnavailableError, Obstacle, narrate
from servers.folders import build_once, cache
from servers.jdks import Jdk, find_jdk
from servers.solr.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from servers.engines import Options

VERSION = "9.10.1"
_HERE = Path(__file__).parent
_POM, _SOURCE = _HERE / "pom.xml", _HERE / "java/launch/Launch.java"
_CLASSPATH = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
_JAVA = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class SolrEngine(Engine):
    """One server without ZooKeeper.

    Attributes:
        secured: It asks for a user name and a password.
    """

    secured: bool = False

    @property
    def _folder(self) -> Path:
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in (_POM, _SOURCE, Path(__file__))))
        return cache() / "solr" / f"{VERSION}-{digest.hexdigest()[:12]}"

    def obstacle(self) -> Obstacle | None:
        """Look for Java, and for Maven while the jars are not here."""
        if not find_jdk(_JAVA):
            remedy = f"apt-get install openjdk-{_JAVA}-jdk-headless, or name one: JAVA_HOME=…"
            return Obstacle(reason=f"needs a JDK of Java {_JAVA} or newer", remedy=remedy)
        if not self._folder.is_dir() and not shutil.which("mvn"):
            return Obstacle(reason="Maven (mvn) is not on the path", remedy="apt-get install maven")
        return None

    def install(self) -> tuple[Path, bool]:
        """Fetch the jars, checksums checked, and compile the launcher; both engines share it."""
        return self._folder, build_once(self._folder, self._assemble, shared="maven")

    def _assemble(self, folder: Path) -> None:
        narrate(f"fetching Solr {VERSION} …")
        repository, listing = cache() / "maven", folder / "classpath"
        maven = ["mvn", "--batch-mode", "--quiet", "--strict-checksums", "--file", str(_POM), _CLASSPATH]
        options = [f"-Dmaven.repo.local={repository}", f"-Dmdep.outputFile={listing}", "-Dmdep.includeScope=runtime"]
        self._run([*maven, *options])
        compiler = [self._jdk().tool("javac"), "-nowarn", "-proc:none", "-d", str(folder / "classes")]
        self._run([*compiler, "-cp", listing.read_text(), str(_SOURCE)])

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            tail = "\n".join(done.stdout.splitlines()[-15:])
            raise EngineError(self.id, f"`{Path(command[0]).name}` ended with {done.returncode}", tail=tail)

    @contextmanager
    def serve(self, folder: Path, options: Options) -> Iterator[Server]:
        """Run one server."""
        home, _ = self.install()
        classes = os.pathsep.join([str(home / "classes"), (home / "classpath").read_text()])
        java = [self._jdk().tool("java"), f"-Xmx{options.heap}", "-XX:+UseSerialGC", "-cp", classes]
        node = Node(self.id, java, version=VERSION, folder=folder, secured=self.secured, options=options)
        with node.running() as (process, record):
            yield Server(process=process, record=record)

    def _jdk(self) -> Jdk:
        if jdk := find_jdk(_JAVA):
            return jdk
        raise EngineUnavailableError(self.id, f"no Java {_JAVA} or newer")


ENGINES = [
    SolrEngine(
        id=f"solr-{VERSION}",
        type="solr",
        version=VERSION,
        proves="a search engine whose schema says what can be read, and whose writes are seen after a commit",
    ),
    SolrEngine(
        id=f"solr-{VERSION}-secured",
        type="solr-secured",
        version=VERSION,
        proves="a user name and a password, and a user who may only read",
        secured=True,
    ),
]
