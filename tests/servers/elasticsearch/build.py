"""Puts one version together in the cache: Maven fetches its jars, javac compiles what they lack."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from servers.faults import EngineError, narrate
from servers.folders import build_once, cache

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from servers.elasticsearch.lines import Line, Module
    from servers.jdks import Jdk

_FAMILIES = Path(__file__).parent.parent
_PLUGINS = "plugins"
_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"


def build_folder(line: Line) -> Path:
    """Name the folder for this version; its name changes with everything it is made from."""
    digest = hashlib.sha256(repr(line).encode())
    for file in [_pom(line), *_java_files(_all_sources(line), line), Path(__file__)]:
        digest.update(file.read_bytes())
    return cache() / line.product / f"{line.version}-{digest.hexdigest()[:12]}"


def build(line: Line, jdk: Jdk) -> bool:
    """Make the folder of this version unless it is there; tell whether this call made it."""
    return build_once(build_folder(line), lambda folder: _assemble(folder, line, jdk), shared="maven")


def java_arguments(line: Line, home: Path) -> list[str]:
    """Return what follows `java` and its options to start a node of this version."""
    folder = build_folder(line)
    jars = os.pathsep.join([(folder / "classpath").read_text(), *map(str, sorted(folder.glob(f"{_PLUGINS}/*/*.jar")))])
    last = list(line.plugins) or [str(folder / "modules")]
    return ["-cp", os.pathsep.join([str(folder / "classes"), jars]), line.main, str(home), *last]


def _assemble(folder: Path, line: Line, jdk: Jdk) -> None:
    narrate(f"fetching and compiling {line.product} {line.version} …")
    jars = _unpacked(_resolve(line), folder / _PLUGINS)
    moved = {_jar(artifact, jars) for module in line.modules for artifact in module.artifacts}
    (folder / "classpath").write_text(os.pathsep.join(str(jar) for jar in jars if jar not in moved))
    _compile(line.sources, folder / "classes", jars=jars, line=line, jdk=jdk)
    for module in line.modules:
        _assemble_module(folder / "modules" / module.name, module, jars=jars, line=line, jdk=jdk)


def _resolve(line: Line) -> list[Path]:
    """Let Maven download the jars, checksums checked, into a repository inside the cache."""
    program = shutil.which("mvn")
    if not program:
        raise EngineError(f"{line.product} {line.version}", "Maven is not on the path", remedy="install `mvn`")
    repository = cache() / "maven"
    listing = repository / f"{line.product}-{line.version}.classpath"
    repository.mkdir(parents=True, exist_ok=True)
    maven = [program, "--batch-mode", "--quiet", f"-Dmaven.repo.local={repository}"]
    remedy = f"a look at what Maven says, with the network up: mvn -f {_pom(line)} verify"
    for archive, digest in line.archives:
        fetch_archive(archive, digest, repository, maven=maven, line=line)
    goal = [f"{_DEPENDENCIES}:build-classpath", f"-Dmdep.outputFile={listing}", "-Dmdep.includeScope=runtime"]
    _run([*maven, "--strict-checksums", "--file", str(_pom(line)), *goal], line=line, remedy=remedy)
    return [Path(jar) for jar in listing.read_text().split(os.pathsep)]


def fetch_archive(archive: str, digest: str, repository: Path, *, maven: Sequence[str], line: Line) -> None:
    """Let Maven download a zip archive whose checksum it may not find, and compare it with one we have tested.

    Args:
        archive: ``group:artifact:version``.
        digest: SHA-256, in hexadecimal digits.
        repository: Maven's own, in which the archive stays.
        maven: The command, without a goal.
        line: The version that needs it.

    Raises:
        EngineError: It cannot be had, or has other bytes; it is deleted then.
    """
    group, artifact, version = archive.split(":")
    path = repository.joinpath(*group.split("."), artifact, version, f"{artifact}-{version}.zip")
    remedy = f"another try, with the network up; the digest of {archive} is in the catalog of {line.product}"
    if not path.exists():
        goal = [f"{_DEPENDENCIES}:get", f"-Dartifact={archive}:zip", "-Dtransitive=false"]
        _run([*maven, *goal], line=line, remedy=remedy)
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        path.unlink()
        raise EngineError(f"{line.product} {line.version}", f"{archive} has other bytes", remedy=remedy)


def plugin_configuration(line: Line) -> Path:
    """Return the folder of the settings that a plugin of the line is published with."""
    return next(build_folder(line).glob(f"{_PLUGINS}/*/config"))


def _unpacked(paths: Sequence[Path], folder: Path) -> list[Path]:
    """Return the jars among published files; plugins that are published as archives go into a folder."""
    jars = [path for path in paths if path.suffix != ".zip"]
    names = {jar.name for jar in jars}
    for path in paths:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder / path.stem, [name for name in archive.namelist() if name not in names])
    return jars


def _compile(sources: Sequence[str], into: Path, *, jars: Iterable[Path], line: Line, jdk: Jdk) -> None:
    into.mkdir(parents=True)
    command = [jdk.tool("javac"), "-nowarn", "-proc:none", "--release", str(line.java), "-d", str(into)]
    command += ["-cp", os.pathsep.join(map(str, jars)), *map(str, _java_files(sources, line))]
    _run(command, line=line, remedy=f"another JDK than {jdk.home}, through JAVA_HOME")


def _assemble_module(folder: Path, module: Module, *, jars: Sequence[Path], line: Line, jdk: Jdk) -> None:
    folder.mkdir(parents=True)
    for artifact in module.artifacts + module.shares:
        shutil.copy(_jar(artifact, jars), folder)
    if module.sources:
        classes = folder.parent.parent / "compiled" / module.name
        _compile(module.sources, classes, jars=jars, line=line, jdk=jdk)
        with zipfile.ZipFile(folder / "own.jar", "w") as jar:
            for file in sorted(classes.rglob("*.class")):
                jar.write(file, file.relative_to(classes))
    (folder / "plugin-descriptor.properties").write_text(
        # No `modulename`: with one, the server would have to be on the module path.
        f"name={module.name}\ndescription={module.name}\nversion={line.version}\n"
        f"elasticsearch.version={line.version}\njava.version={line.java}\nclassname={module.classname}\n"
        f"extended.plugins={module.extends}\n"
    )


def _run(command: Sequence[str], *, line: Line, remedy: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        problem = f"`{Path(command[0]).name}` ended with {done.returncode}"
        raise EngineError(f"{line.product} {line.version}", problem, tail=tail, remedy=remedy)


def _jar(artifact: str, jars: Iterable[Path]) -> Path:
    return next(jar for jar in jars if jar.parent.parent.name == artifact)


def _pom(line: Line) -> Path:
    return _FAMILIES / line.product / "poms" / f"{line.version}.xml"


def _java_files(sources: Iterable[str], line: Line) -> list[Path]:
    folder = _FAMILIES / line.product / "java"
    return [file for source in sources for file in sorted((folder / source).rglob("*.java"))]


def _all_sources(line: Line) -> list[str]:
    return [*line.sources, *(source for module in line.modules for source in module.sources)]
