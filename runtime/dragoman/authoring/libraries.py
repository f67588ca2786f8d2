"""Libraries that the author of a driver writes, too: working trees beside it, whose wheels join its closed set."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import zipfile
from typing import TYPE_CHECKING

import msgspec

from dragoman.settings import MAX_TOML, parse_toml
from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import read_plain
from dragoman_registry.wheels.archive_checks import inspect
from dragoman_registry.wheels.wheel_file import project_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    """The table `tool.dragoman`."""

    libraries: list[str] = []


def read_project(path: Path) -> dict[str, Any]:
    """Read the `pyproject.toml` of a working tree.

    Raises:
        ConfigurationError: The file is missing or cannot be read; the message names the line.
    """
    file = path / "pyproject.toml"
    try:
        return parse_toml(read_plain(file, limit=4 * MAX_TOML).decode())
    except FileNotFoundError as error:
        hint = "dragoman driver new NAME --type TYPE --port PORT"
        raise ConfigurationError(f"{path} is not a driver's folder: it has no pyproject.toml", hint=hint) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}", hint="correct that line") from error


def library_folders(path: Path) -> list[Path]:
    """List the working trees of a driver's libraries, which `libraries` in `[tool.dragoman]` names.

    Raises:
        ConfigurationError: The file is missing or cannot be read, or names what is not a folder.
    """
    table = read_project(path).get("tool", {})
    try:
        settings = msgspec.convert(table.get("dragoman", {}) if isinstance(table, dict) else {}, _Settings)
    except msgspec.ValidationError as error:
        reason = f"{path / 'pyproject.toml'}: [tool.dragoman] {error}"
        raise ConfigurationError(reason, hint="correct that line") from error
    folders = [path / name for name in settings.libraries]
    for name, folder in zip(settings.libraries, folders, strict=True):
        if "\0" in name or not folder.is_dir():
            reason = f"{path / 'pyproject.toml'}: [tool.dragoman] names the library {name[:200]!r}, which is no folder"
            raise ConfigurationError(reason, hint="name a folder, as seen from the driver's own")
    return folders


def list_dependencies(manifest: str, entries: Sequence[tuple[str, str]]) -> str:
    """Return the text of a `driver.json` with another list of dependencies; the layout of the rest stays.

    Args:
        manifest: The text.
        entries: The file name and the SHA-256 of each wheel.
    """
    lines = ",\n".join(f"    {json.dumps({'file': file, 'sha256': digest})}" for file, digest in entries)
    listed = f'"dependencies": [\n{lines}\n  ]'
    text, replacements = re.subn(r'"dependencies"\s*:\s*\[[^\]]*\]', lambda _: listed, manifest)
    return text if replacements else f"{text.rstrip().removesuffix('}').rstrip()},\n  {listed}\n}}\n"


def record_libraries(wheel: Path, libraries: Sequence[Path]) -> None:
    """Add the wheels of libraries to the manifest in a driver's wheel.

    A wheel without a sound manifest or RECORD stays as it is: `inspect` says what is wrong with it.

    The working tree's manifest does not name them: their digests change with every edit of a library.
    """
    report = inspect(wheel, driver=True)
    if not libraries or report.manifest is None:
        return
    own = {project_of(library.name) for library in libraries}
    entries = [
        (entry.file, entry.sha256) for entry in report.manifest.dependencies if project_of(entry.file) not in own
    ]
    entries += [(library.name, hashlib.sha256(library.read_bytes()).hexdigest()) for library in libraries]
    manifest = list_dependencies(report.manifest_data.decode(), sorted(entries)).encode()
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = {info: archive.read(info) for info in archive.infolist()}
            lines = io.StringIO(archive.read(f"{report.dist_info}/RECORD").decode())
        rows = [[name, digest, size] for name, digest, size in csv.reader(lines, strict=True)]
    except (zipfile.BadZipFile, KeyError, ValueError, csv.Error):
        return
    names = {info.filename for info, content in members.items() if content == report.manifest_data}
    digest = base64.urlsafe_b64encode(hashlib.sha256(manifest).digest()).rstrip(b"=").decode()
    with zipfile.ZipFile(wheel, "w") as archive:
        for info, content in members.items():
            written = manifest if info.filename in names else content
            if info.filename == f"{report.dist_info}/RECORD":
                rows = [[row[0], f"sha256={digest}", str(len(manifest))] if row[0] in names else row for row in rows]
                text = io.StringIO()
                csv.writer(text, lineterminator="\n").writerows(rows)
                written = text.getvalue().encode()
            archive.writestr(info, written)
