"""The file name of a wheel: its parts, and how well its tags fit a host."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_registry.names import PROJECT, VERSION, WHEEL

from .packaging_parsers import Unreadable, parse_wheel_name
from .zip_structure import NotAWheel


@dataclass(frozen=True, slots=True)
class WheelName:
    """The parts of a wheel's file name, and whether its spelling is canonical.

    Attributes:
        project: The project in its canonical spelling.
        version: The version in its canonical spelling.
        tags: All its tags, expanded.
        canonical: Whether the name has its canonical spelling.
        stem: Project and version as written.
    """

    project: str
    version: str
    tags: frozenset[str]
    canonical: bool
    stem: str


def parse_name(file: str) -> WheelName:
    """Parse a wheel's file name.

    Raises:
        NotAWheel: It is not the name of a wheel.
    """
    try:
        project, version, tags = parse_wheel_name(file)
    except Unreadable as error:
        raise NotAWheel(str(error)) from error
    canonical = file.startswith(f"{project.replace('-', '_')}-{version}-") and all(
        kind.fits(name) for kind, name in ((WHEEL, file), (PROJECT, project), (VERSION, version))
    )
    return WheelName(project, version, tags, canonical, "-".join(file.split("-")[:2]))


def rank(file: str, tags: tuple[str, ...]) -> int | None:
    """Return how well a wheel fits: 0 for best, None if it does not fit."""
    mine = parse_name(file).tags
    return next((index for index, tag in enumerate(tags) if tag in mine), None)
