"""Real wheels and real registries for tests: small drivers, hostile wheels, and the drivers of this repository.

Nothing here needs a network. A driver is described by `Driver`, changed where a test wants it wrong, and written as a
zip file with a correct RECORD, unless the test spoils that too.
"""

from __future__ import annotations

import atexit
import base64
import csv
import hashlib
import io
import json
import os
import runpy
import shutil
import zipfile
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from stat import S_IMODE
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from dragoman_registry.publisher import publish
from dragoman_registry.trust.keys import beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dragoman_registry.index.catalog import Release
    from dragoman_registry.trust.trust import Publisher, SignedFile

ROOT = Path(__file__).parents[2]
SUPPORT = Path(__file__).parent
NOW = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)  # signatures made then still hold

CODE = """\
from dragoman_api import hookimpl
from dragoman_api.columns import Column, ColumnKind, Description, Object, ObjectList
from dragoman_api.connections import Server
from dragoman_api.grid import Page


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        return Server("Demo", "{version}")

    @hookimpl
    async def list_objects(self, request):
        return ObjectList(objects=[Object("things", rows=0)])
"""


def manifest(name: str = "demo", **changes: object) -> dict[str, Any]:
    """Return a valid manifest of a small driver."""
    return {
        "manifest_version": 1,
        "id": name,
        "label": f"{name.title()} Driver",
        "summary": "A driver for tests",
        "types": [{"name": name, "label": name.title()}],
        "host_api": "~=1.0",
        "entry": f"dragoman_{name}.driver:Driver",
        "import_names": [f"dragoman_{name}"],
        "hooks": ["connect", "list_objects"],
        "capabilities": ["browse"],
        "server_versions": ["1.x"],
        "form": [
            {"name": "host", "label": "Host", "default": "localhost", "required": True},
            {"name": "port", "label": "Port", "kind": "integer", "default": 7700, "required": True},
        ],
        "auth_methods": [],
        "permissions": ["net:connection", "secrets:connection"],
        "licence": "Apache-2.0",
        **changes,
    }


@dataclass
class Wheel:
    """Any wheel: its files, and what lies in its dist-info."""

    project: str
    version: str = "1.0.0"
    tag: str = "py3-none-any"
    files: dict[str, bytes] = field(default_factory=dict)
    requires: list[str] = field(default_factory=list)
    requires_python: str = ">=3.11"
    entry_points: str = ""
    readme: str = "A wheel for tests."

    @property
    def stem(self) -> str:
        return f"{self.project.replace('-', '_')}-{self.version}"

    @property
    def dist_info(self) -> str:
        return f"{self.stem}.dist-info"

    @property
    def file(self) -> str:
        return f"{self.stem}-{self.tag}.whl"

    def metadata(self) -> bytes:
        lines = ["Metadata-Version: 2.4", f"Name: {self.project}", f"Version: {self.version}", "Summary: For tests"]
        lines += [f"Requires-Python: {self.requires_python}"] if self.requires_python else []
        lines += [f"Requires-Dist: {requirement}" for requirement in self.requires]
        return "\n".join([*lines, "Description-Content-Type: text/markdown", "", self.readme, ""]).encode()

    def members(self) -> dict[str, bytes]:
        members = dict(self.files)
        members[f"{self.dist_info}/METADATA"] = self.metadata()
        wheel = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {self.tag}\n"
        members[f"{self.dist_info}/WHEEL"] = wheel.encode()
        if self.entry_points:
            members[f"{self.dist_info}/entry_points.txt"] = self.entry_points.encode()
        return members

    def write(
        self,
        folder: Path,
        *,
        file: str | None = None,
        members: Callable[[dict[str, bytes]], None] | None = None,
        record: Callable[[list[list[str]]], None] | None = None,
        entry: Callable[[zipfile.ZipInfo], None] | None = None,
        after: Callable[[zipfile.ZipFile], None] | None = None,
    ) -> Path:
        """Write the wheel.

        Args:
            folder: Where; made when it is not there.
            file: Another name.
            members: Changes the files before RECORD is computed.
            record: Changes the rows of RECORD.
            entry: Changes each entry of the zip file, for example its mode.
            after: Adds entries that RECORD does not know.
        """
        folder.mkdir(parents=True, exist_ok=True)
        content = self.members()
        if members:
            members(content)
        rows = [[name, *hashed(data)] for name, data in content.items()]
        rows.append([f"{self.dist_info}/RECORD", "", ""])
        if record:
            record(rows)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        content[f"{self.dist_info}/RECORD"] = text.getvalue().encode()
        path = folder / (file or self.file)
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in content.items():
                info = zip_entry(name)
                if entry:
                    entry(info)
                archive.writestr(info, data)
            if after:
                after(archive)
        return path


def zip_entry(name: str) -> zipfile.ZipInfo:
    """Return an entry with a fixed time and an ordinary mode."""
    info = zipfile.ZipInfo(name, (2020, 2, 2, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o100644 << 16
    return info


def hashed(data: bytes, algorithm: str = "sha256") -> tuple[str, str]:
    """Return digest and size as a row of RECORD has them."""
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()
    return f"{algorithm}={digest}", str(len(data))


class Driver(Wheel):
    """A small driver that passes every check; change its attributes for one that does not."""

    def __init__(
        self,
        name: str = "demo",
        version: str = "1.0.0",
        *,
        code: str = CODE,
        files: dict[str, bytes] | None = None,
        tag: str = "py3-none-any",
        **changes: object,
    ) -> None:
        package = f"dragoman_{name}"
        self.manifest = manifest(name, **deepcopy(changes))
        super().__init__(
            project=f"dragoman-{name}",
            version=version,
            tag=tag,
            files={
                f"{package}/__init__.py": b"",
                f"{package}/driver.py": code.replace("{version}", version).encode(),
                **(memory_modules(package) if ".memory_driver import" in code else {}),
                **(files or {}),
            },
            requires=["dragoman-api~=1.0"],
            entry_points=f"[dragoman.drivers]\n{name} = {package}:driver.json\n",
        )
        self.manifest_path = f"{package}/driver.json"

    def members(self) -> dict[str, bytes]:
        return {self.manifest_path: json.dumps(self.manifest, indent=1).encode(), **super().members()}


def memory_modules(package: str) -> dict[str, bytes]:
    """Return the modules of `MemoryDriver` as members of a driver's wheel."""
    return {
        f"{package}/{name}.py": SUPPORT.joinpath(f"{name}.py")
        .read_bytes()
        .replace(b"\nfrom memory_", b"\nfrom .memory_")
        for name in ("memory_driver", "memory_server")
    }


def library(
    name: str = "tinylib", version: str = "1.0.0", *, code: str = "VALUE = 1\n", tag: str = "py3-none-any"
) -> Wheel:
    """Describe a library that a driver's closed set may hold."""
    return Wheel(project=name, version=version, tag=tag, files={f"{name}/__init__.py": code.encode()})


def dependency(path: Path) -> dict[str, str]:
    """Return the line of a manifest that names a wheel."""
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


TEMPLATES: dict[tuple[object, ...], Path] = {}
"""Registries that were published, by their name, their wheels, and how many such ones their test had before."""

PUBLISHED: Counter[tuple[object, ...]] = Counter()


def registry(folder: Path, wheels: Iterable[Path]) -> Path:
    """Publish wheels into a registry at one time.

    A new registry is a copy where a test before had one like it; no two of one test share their keys.
    """
    wheels = list(wheels)
    if folder.exists() or beside(folder).exists():
        publish.build(wheels, to=folder, now=NOW)
        return folder
    kind = (folder.name, *((wheel.name, wheel.read_bytes()) for wheel in wheels))
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    PUBLISHED[test, kind] += 1
    if (template := TEMPLATES.get(key := (kind, PUBLISHED[test, kind]))) is None:
        place = template_folder()
        publish.build(wheels, to=place / folder.name, now=NOW)
        template = TEMPLATES[key] = place / folder.name
    folder.parent.mkdir(parents=True, exist_ok=True)
    for original in (template, beside(template)):
        copy(original, folder.with_name(original.name))
    return folder


def template_folder() -> Path:
    """Make a folder for what many tests copy; it is removed at the end of the process."""
    folder = Path(mkdtemp(prefix="dragoman-registry-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def copy(folder: Path, target: Path) -> Path:
    """Copy a folder with modes and times, in a third of the time of `shutil.copytree`.

    Names of one file are names of one file there, too, and links stay links.
    """
    _copy(str(folder), str(target), {})
    return target


def _copy(folder: str, target: str, names: dict[int, str]) -> None:
    Path(target).mkdir(parents=True, exist_ok=True)
    with os.scandir(folder) as entries:
        for entry in entries:
            place, status = f"{target}/{entry.name}", entry.stat(follow_symlinks=False)
            if entry.is_symlink():
                Path(place).symlink_to(Path(entry.path).readlink())
            elif entry.is_dir():
                _copy(entry.path, place, names)
            elif (first := names.setdefault(status.st_ino, place)) != place:
                os.link(first, place)
            else:
                _copy_file(entry.path, place, status)
    status = Path(folder).stat()
    Path(target).chmod(S_IMODE(status.st_mode))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_file(source: str, place: str, status: os.stat_result) -> None:
    original = os.open(source, os.O_RDONLY)
    copied = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        while data := os.read(original, 1 << 20):
            os.write(copied, data)
        os.fchmod(copied, S_IMODE(status.st_mode))
        os.utime(copied, ns=(status.st_atime_ns, status.st_mtime_ns))
    finally:
        os.close(copied)
        os.close(original)


def accept(folder: Path, *, keys: Path | None = None, uploads: Iterable[Path] = ()) -> list[Release]:
    """Accept what publishers have signed, and raise if any of them was refused."""
    done = publish.accept(folder, keys=keys, uploads=uploads)
    publish.refuse(done.refused)
    return done.releases


class TrustedPath:
    """Accepts any bytes at a location, which no host does."""

    def admit(self, target: SignedFile) -> SignedFile:
        return target

    def publishers(self) -> Mapping[str, Publisher]:
        return {}


@cache
def project_wheels(folder: str) -> tuple[Path, ...]:
    """Build a driver of this repository (`plugins/elasticsearch`), once per run: its wheel, then its libraries'."""
    target = mkdtemp(prefix="dragoman-wheels-")
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    return tuple(runpy.run_path(str(ROOT / "plugins/bundle.py"))["driver_wheels"](ROOT / folder, Path(target)))
