"""The releases the fake can pretend to be, and what differs between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Release:
    """One Elasticsearch release: its number and the constants of its `GET /`."""

    number: str
    lucene: str
    wire: str
    index: str
    build_hash: str
    build_date: str

    @property
    def parts(self) -> tuple[int, ...]:
        """Return the number as integers, for comparisons such as `release.parts >= (7, 14)`."""
        return _integers(self.number)

    @property
    def types(self) -> bool:
        """Tell whether answers carry `_type` (7.x does)."""
        return self.parts < (8,)

    @property
    def names_product(self) -> bool:
        """Tell whether answers carry X-Elastic-Product."""
        return self.parts >= (7, 14)

    @property
    def content_type(self) -> str:
        """Return the media type of a JSON answer."""
        return "application/json; charset=UTF-8" if self.types else "application/json"


@cache
def _integers(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


RELEASES = {
    release.number: release
    for release in (
        Release("7.10.2", "8.7.0", "6.8.0", "6.0.0-beta1", "747e1cc7", "2021-01-13T00:42:12.435326Z"),
        Release("7.17.29", "8.11.3", "6.8.0", "6.0.0-beta1", "580aff1a", "2025-06-19T01:37:57.847711500Z"),
        Release("8.7.1", "9.5.0", "7.17.0", "7.0.0", "f229ed3f", "2023-04-27T04:33:42.127815583Z"),
        Release("8.19.21", "9.12.2", "7.17.0", "7.0.0", "4fe44c25", "2026-08-26T22:10:47.574903747Z"),
        Release("9.5.3", "10.5.1", "8.19.0", "8.0.0", "367ec317", "2026-09-01T16:11:59.322249404Z"),
    )
}


def release(number: str) -> Release:
    """Return the release of this number, or of the nearest known one below it under the number asked for.

    Raises:
        ValueError: if the number is older than every known release.
    """
    if number in RELEASES:
        return RELEASES[number]
    parts = _integers(number)
    below = [candidate for candidate in RELEASES.values() if candidate.parts <= parts] or [RELEASES["7.10.2"]]
    if parts < (7,):
        raise ValueError(f"the fake knows 7.x and newer, not {number}")
    base = below[-1]
    return Release(number, base.lucene, base.wire, base.index, base.build_hash, base.build_date)
