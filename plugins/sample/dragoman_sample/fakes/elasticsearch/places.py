"""Points on the Earth: the forms in which documents write them, how the index keeps them, and circles and boxes."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch.errors import ServerError, illegal

if TYPE_CHECKING:
    from collections.abc import Callable

Point = tuple[float, float]  # latitude, longitude

RADIUS = 6_371_008.7714
_WKT = re.compile(r"\s*POINT\s*\(\s*(\S+)\s+(\S+?)(?:\s+\S+)?\s*\)\s*", re.IGNORECASE)
_LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"
_UNITS = {"m": 1.0, "km": 1_000.0}


def is_pair(value: Any) -> bool:
    """Tell whether an array is one point, its longitude first, not several."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], int | float)


def indexed(value: Any) -> Point:
    """Read one point of a document, in any form, as the index keeps it.

    Raises:
        ServerError: illegal_argument_exception, parse_exception.
    """
    return _kept(*_read(value))


def _read(value: Any) -> Point:
    latitude: Any
    longitude: Any
    if isinstance(value, dict):
        if "coordinates" in value:
            return _read(value["coordinates"])
        latitude, longitude = value.get("lat"), value.get("lon")
    elif isinstance(value, list):
        if not 2 <= len(value) <= 3 or not all(isinstance(part, int | float) for part in value):
            raise ServerError("parse_exception", "field must be either lat/lon or a pair of numbers")
        longitude, latitude = value[:2]
    elif match := _WKT.fullmatch(str(value)):
        longitude, latitude = match.groups()
    elif "," in str(value):
        latitude, longitude = str(value).split(",")[:2]
    elif value == "" or isinstance(value, int | float):
        raise ServerError("parse_exception", "geo_point expected")
    else:
        return _geohash(str(value))
    try:
        at = float(latitude), float(longitude)
    except (TypeError, ValueError):
        raise ServerError("parse_exception", "latitude must be a number") from None
    _check(*at, "illegal")
    return at


def _check(latitude: float, longitude: float, subject: str) -> None:
    if not abs(latitude) <= 90:
        raise illegal(f"{subject} latitude value [{latitude}]")
    if not abs(longitude) <= 180:
        raise illegal(f"{subject} longitude value [{longitude}]")


def _geohash(text: str) -> Point:
    bounds = [[-180.0, 180.0], [-90.0, 90.0]]
    for at, bit in enumerate(bit for letter in text for bit in _bits(letter, text)):
        low, high = bounds[at % 2]
        bounds[at % 2][not bit] = (low + high) / 2
    return bounds[1][0], bounds[0][0]


def _bits(letter: str, text: str) -> list[int]:
    if letter not in _LETTERS:
        raise ServerError("parse_exception", f"unsupported symbol [{letter}] in geohash [{text}]")
    return [_LETTERS.index(letter) >> place & 1 for place in (4, 3, 2, 1, 0)]


def _kept(latitude: float, longitude: float) -> Point:
    """Return a point with 32 bits for each coordinate, cut off downwards."""
    return _cut(latitude, 90), _cut(longitude, 180)


def _cut(degrees: float, limit: int) -> float:
    step = limit / 2**31
    return min(math.floor(degrees / step), 2**31 - 1) * step


def _ceiling(degrees: float, limit: int) -> float:
    step = limit / 2**31
    return min(math.ceil(degrees / step), 2**31 - 1) * step


def circle_test(options: dict[str, Any], centre: Any) -> Callable[[Point], bool]:
    """Return the test of `geo_distance` for an indexed value."""
    match = re.fullmatch(r"([\d.e+-]+)(k?m)", str(options["distance"]))
    assert match is not None, options
    metres = float(match[1]) * _UNITS[match[2]]
    if metres <= 0:
        raise illegal("distance must be greater than zero")
    middle = centre["lat"], centre["lon"]
    _check(*middle, "[geo_distance] center point")
    return lambda point: distance(point, middle) <= metres


def distance(point: Point, other: Point) -> float:
    """Return the metres between two points, by a formula that takes those a few centimetres apart for one."""
    latitude, other_latitude = math.radians(point[0]), math.radians(other[0])
    across = math.radians(other[1] - point[1])
    twice = (
        1 - math.cos(other_latitude - latitude) + math.cos(latitude) * math.cos(other_latitude) * (1 - math.cos(across))
    )
    return 2 * RADIUS * math.asin(min(1.0, math.sqrt(max(0.0, twice / 2))))


def box_test(corners: Any, *, inner: bool) -> Callable[[Point], bool]:
    """Return the test of `geo_bounding_box` for an indexed value; with `inner`, west and south are rounded up."""
    lower = _ceiling if inner else _cut
    north, west = corners["top_left"]["lat"], corners["top_left"]["lon"]
    south, east = corners["bottom_right"]["lat"], corners["bottom_right"]["lon"]
    for corner in ((north, west), (south, east)):
        _check(*corner, "[geo_bounding_box]")
    if north < south:
        raise illegal(f"top is below bottom corner: {float(north)} vs. {float(south)}")
    if inner and (north == south or west == east):
        sides = f"top cannot be the same as bottom: {float(north)}" if north == south else "left cannot be the same"
        raise illegal(sides)
    spans = [(west, east)] if west <= east else [(west, 180), (-180, east)]
    low, high = lower(south, 90), _cut(north, 90)

    def test(point: Point) -> bool:
        inside = any(lower(a, 180) <= point[1] <= _cut(b, 180) for a, b in spans)
        return low <= point[0] <= high and inside

    return test
