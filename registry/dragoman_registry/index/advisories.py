"""A registry's advisories against published versions; an unreadable advisory applies to every version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman_registry.validation import Unreadable, decode

from .catalog import Advisories

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERY = "*"
"""Key for every version of a project, used if its advisory cannot be read."""


class _Said(msgspec.Struct, frozen=True):
    advisories_version: Literal[1] = 1
    quarantined: dict[str, msgspec.Raw] = {}
    yanked: dict[str, msgspec.Raw] = {}
    deprecated: dict[str, msgspec.Raw] = {}


def read_advisories(data: bytes) -> Advisories:
    """Read the file, or each project alone if the whole is malformed. Raises Unreadable if it is not such a file."""
    try:
        return decode(data, Advisories)
    except Unreadable:
        document = decode(data, _Said)
        return Advisories(
            quarantined=_each(document.quarantined),
            yanked=_each(document.yanked),
            deprecated=_each(document.deprecated),
        )


def _each(projects: Mapping[str, msgspec.Raw]) -> dict[str, dict[str, str]]:
    reasons: dict[str, dict[str, str]] = {}
    for project, versions in projects.items():
        try:
            reasons[project] = decode(bytes(versions), dict[str, str])
        except Unreadable as error:
            reasons[project] = {EVERY: f"its advisory cannot be read: {error}"}
    return reasons


def held_against(projects: Mapping[str, Mapping[str, str]], project: str, version: str) -> str | None:
    """Return the reason of the advisory against a version, or None.

    >>> held_against({"x": {"1.0": "leaks"}, "y": {"*": "unreadable"}}, "y", "2.0")
    'unreadable'
    """
    versions = projects.get(project, {})
    return versions.get(version, versions.get(EVERY))
