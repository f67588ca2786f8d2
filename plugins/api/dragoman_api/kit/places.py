"""Places in filter rows: a circle for ``near``, a rectangle for ``in-box``. Degrees are WGS 84, distances in metres."""

from __future__ import annotations

import re
from math import isfinite
from typing import NamedTuple

from . import operands

_DISTANCE = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?(m|km|mi|nmi|ft)")
_METRES = {"m": 1.0, "km": 1_000.0, "mi": 1_609.344, "nmi": 1_852.0, "ft": 0.3048}
_MOST = 20_100_000.0  # further than any place from any other


class Circle(NamedTuple):
    """The places around a centre; its border belongs to it."""

    latitude: float
    longitude: float
    metres: float


class Box(NamedTuple):
    """The places between two parallels and two meridians; its border belongs to it. West may be east of east."""

    south: float
    west: float
    north: float
    east: float


def circle(value: object) -> Circle:
    """Read the operand of ``near``: latitude, longitude, distance with its unit.

    Args:
        value: ``52.52,13.405,5km``, or a list of the three; the units are m, km, mi, nmi and ft.

    Raises:
        ValueError: It is no circle.

    >>> circle("52.52, 13.405, 5km")
    Circle(latitude=52.52, longitude=13.405, metres=5000.0)
    """
    parts = operands.listed(value)
    if len(parts) != 3:
        raise ValueError("it takes a latitude, a longitude and a distance: 52.52,13.405,5km")
    match = _DISTANCE.fullmatch(str(parts[2]).strip())
    if match is None:
        raise ValueError(f"{str(parts[2])[:100]!r} is not a distance such as 500m, 5km or 3mi")
    metres = float(match[1]) * _METRES[match[2]]
    if not 0 < metres <= _MOST:
        raise ValueError("a distance is more than 0, and at most half the way around the Earth")
    return Circle(_degrees(parts[0], 90, "latitude"), _degrees(parts[1], 180, "longitude"), metres)


def box(value: object) -> Box:
    """Read the operand of ``in-box``: the south-western corner and the north-eastern one, each by latitude, longitude.

    Args:
        value: ``52.3,13.1,52.7,13.8``, or a list of the four. A box across longitude 180 has its west east of its east.

    Raises:
        ValueError: It is no box.

    >>> box("52.3,13.1,52.7,13.8")
    Box(south=52.3, west=13.1, north=52.7, east=13.8)
    """
    parts = operands.listed(value)
    if len(parts) != 4:
        raise ValueError("it takes two corners as south,west,north,east: 52.3,13.1,52.7,13.8")
    south, north = (_degrees(parts[at], 90, "latitude") for at in (0, 2))
    west, east = (_degrees(parts[at], 180, "longitude") for at in (1, 3))
    if south > north:
        raise ValueError(f"its south, {south}, is north of its north, {north}; write south,west,north,east")
    if south == north or west == east or (west, east) == (180, -180):
        raise ValueError("a box has a height and a width; for one point use near with a small distance")
    return Box(south, west, north, east)


def _degrees(value: object, limit: int, axis: str) -> float:
    degrees = operands.floating(value)
    if not isfinite(degrees) or abs(degrees) > limit:
        raise ValueError(f"{degrees} is no {axis}: it is between -{limit} and {limit}")
    return degrees
