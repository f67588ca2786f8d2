"""The index of a registry as its publisher edits it: a record and a row for each driver, and what follows from them.

Only the records that change are decoded and encoded; all others pass as the text that is signed already.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import IndexInvalidError
from dragoman_registry.index import search_summaries
from dragoman_registry.index.catalog import Advisories, Catalog, Project, read_advisories
from dragoman_registry.index.catalog_parser import RawCatalog
from dragoman_registry.index.search_summaries import summarise
from dragoman_registry.validation import Unreadable, decode
from dragoman_registry.wheels.wheel_file import WheelFile, project_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dragoman_registry.index.search_summaries import Summary

FILES = ("advisories", "catalog", search_summaries.NAME)
"""The files that follow from the catalog."""
_STATUSES = ("quarantined", "yanked", "deprecated")


class _Name(msgspec.Struct, frozen=True, gc=False):
    project: str


class _Outline(msgspec.Struct, frozen=True):
    projects: tuple[_Name, ...]
    libraries: tuple[WheelFile, ...] = ()


class Index:
    """The drivers and libraries of a registry. Immutable.

    Attributes:
        records: Maps each project to its record in the catalog, as text, in the order of the catalog.
        rows: Maps each project to its row for searches, in the same order.
        libraries: The libraries of the drivers' closed sets.
        advisories: The marks against versions.
    """

    def __init__(
        self,
        records: Mapping[str, bytes],
        rows: Mapping[str, Summary],
        libraries: tuple[WheelFile, ...],
        advisories: Advisories,
        *,
        decoded: Mapping[str, Project] | None = None,
    ) -> None:
        self.records, self.rows, self.libraries, self.advisories = records, rows, libraries, advisories
        self._decoded = decoded or {}

    @classmethod
    def of(cls, catalog: Catalog) -> Index:
        """Build the index of a catalog from nothing."""
        return cls({}, {}, (), Advisories()).with_drivers(catalog.projects, libraries=catalog.libraries, order=False)

    @classmethod
    def read(cls, files: Mapping[str, bytes]) -> Index:
        """Take over the `FILES` of an index, which the caller knows to come from `files` of an earlier one.

        Raises:
            Unreadable: A file is malformed, or two of them name different drivers.
        """
        outline = decode(files["catalog"], _Outline)
        texts = decode(files["catalog"], RawCatalog).projects
        records = {name.project: bytes(text) for name, text in zip(outline.projects, texts, strict=True)}
        rows = {row.project: row for row in search_summaries.decode_rows(files[search_summaries.NAME])}
        if list(rows) != list(records):
            raise Unreadable("the catalog and the rows for searches name different drivers")
        advisories = read_advisories(files["advisories"])
        if any(getattr(advisories, status).keys() - records.keys() for status in _STATUSES):
            raise Unreadable("the advisories name drivers that the catalog lacks")
        return cls(records, rows, outline.libraries, advisories)

    def with_drivers(
        self, projects: Iterable[Project], *, libraries: Iterable[WheelFile] | None = None, order: bool = True
    ) -> Index:
        """Return the index with other records of some drivers, or with more drivers.

        Args:
            projects: The drivers that change.
            libraries: All libraries; by default those of this index.
            order: Sort the drivers by project; otherwise, new ones come last.
        """
        records, rows, decoded = dict(self.records), dict(self.rows), dict(self._decoded)
        marks: dict[str, dict[str, dict[str, str]]] = {s: dict(getattr(self.advisories, s)) for s in _STATUSES}
        for project in projects:
            records[project.project], rows[project.project] = _record(project), summarise(project)
            decoded[project.project] = project
            for status, marked_projects in marks.items():
                marked_projects.pop(project.project, None)
                if reasons := _reasons(project, status):
                    marked_projects[project.project] = reasons
        names = sorted(records) if order else list(records)
        places = {name: place for place, name in enumerate(names)}
        return Index(
            {name: records[name] for name in names},
            {name: rows[name] for name in names},
            self.libraries if libraries is None else tuple(libraries),
            msgspec.convert({status: {name: by[name] for name in sorted(by, key=places.__getitem__)}
                             for status, by in marks.items()}, Advisories),
            decoded=decoded,
        )  # fmt: skip

    def project(self, name: str) -> Project | None:
        """Return a driver by its project, or None.

        Raises:
            IndexInvalidError: Its record is malformed.
        """
        if name in self._decoded:
            return self._decoded[name]
        if name not in self.records:
            return None
        try:
            return decode(self.records[name], Project)
        except Unreadable as error:
            text = f"the record of {name} in the catalog is malformed: {error}"
            raise IndexInvalidError(text, hint="dragoman registry verify FOLDER") from error

    def wheels(self, project: str) -> list[WheelFile]:
        """List the published wheels of a driver or library by its project. Raises as `project`."""
        driver = self.project(project)
        own = [wheel for release in driver.releases for wheel in release.wheels] if driver else []
        return own + self._libraries_by_project.get(project, [])

    @cached_property
    def _libraries_by_project(self) -> dict[str, list[WheelFile]]:
        libraries = defaultdict[str, list[WheelFile]](list)
        for wheel in self.libraries:
            libraries[project_of(wheel.file)].append(wheel)
        return dict(libraries)

    def catalog(self) -> Catalog:
        """Decode every record. Raises as `project`."""
        projects = tuple(project for name in self.records if (project := self.project(name)) is not None)
        return Catalog(projects=projects, libraries=self.libraries)

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The files of the index by name: the same bytes, whether the records were made anew or taken over."""
        return {
            "advisories": encode(self.advisories),
            "catalog": _joined(self.records.values(), self.libraries),
            search_summaries.NAME: search_summaries.encode(self.rows.values()),
        }

    @cached_property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of each of the files."""
        return {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}


def _record(project: Project) -> bytes:
    return _indented(project, by=4)


def _joined(records: Iterable[bytes], libraries: tuple[WheelFile, ...]) -> bytes:
    """Write a catalog as `encode` does, from the texts of its records."""
    before, between, after = encode(Catalog()).split(b"[]")
    texts: list[bytes] = []
    for record in records:
        texts += (b",\n    " if texts else b"[\n    ", record)
    texts.append(b"\n  ]" if texts else b"[]")
    return b"".join((before, *texts, between, _indented(libraries, by=2), after))


def _indented(value: object, *, by: int) -> bytes:
    return encode(value).rstrip(b"\n").replace(b"\n", b"\n" + b" " * by)


def _reasons(project: Project, status: str) -> dict[str, str]:
    """Map the versions of a driver that are marked so to the reasons, with replacements."""
    reasons = {}
    for release in project.releases:
        instead = f"; use {release.replaced_by} instead" if release.replaced_by else ""
        if (reason := getattr(release, status)) is not None:
            reasons[release.version] = reason + instead
    return reasons


def encode(value: object) -> bytes:
    """Encode a file that people may read, too."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
