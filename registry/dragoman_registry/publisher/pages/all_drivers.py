"""The page of all drivers: a list that works without JavaScript, and the rows that the script searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_registry.index.search_summaries import summarise
from dragoman_registry.names import marked
from dragoman_registry.permission_wording import describe_reach
from dragoman_registry.wheels.packaging_parsers import parse_range, parse_version

from .escaping import clean, embedded
from .rendering import Markup, fill, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman_registry.index.catalog import Catalog
    from dragoman_registry.index.search_summaries import Summary

FRONT, ALL = "../index.html", "../all.html"
"""Pages for people, at the root of the registry beside `targets/`."""

SHOWN = 50
"""Number of drivers first shown on the front page; the script adds as many at a time."""


def page_of(project: str) -> str:
    """Return the path of a driver's page below the root of the registry."""
    return f"drivers/{project}.html"


def catalogue_pages(catalog: Catalog) -> Iterator[tuple[str, bytes]]:
    """Build the front page, and a full page if the front page cannot show every driver without JavaScript."""
    drivers = sorted(map(summarise, catalog.projects), key=lambda driver: driver.plugin)
    rows = [_row(driver) for driver in drivers]
    count = f"{len(rows):,} driver{'' if len(rows) == 1 else 's'}" if rows else "No driver is published here yet."
    if len(rows) > SHOWN:
        yield ALL, fill("all.html", count=count, rows=rows)
    apis, can = _apis(drivers), sorted({name for driver in drivers for name in driver.capabilities})
    yield (
        FRONT,
        fill(
            "catalog.html",
            script="catalog.js",
            count=count,
            rows=rows[:SHOWN],
            empty=dict.fromkeys(("file", "label", "version", "summary", "types", "can", "reaches"), ""),
            more=len(rows) if len(rows) > SHOWN else 0,
            apis=apis,
            capabilities=can,
            data=Markup(embedded(_data(drivers, apis, can))),
        ),
    )


def _row(driver: Summary) -> dict[str, object]:
    return {
        "file": page_of(driver.project),
        "label": marked(driver.label),
        "version": _version(driver),
        "summary": driver.summary,
        "types": driver.types,
        "can": list(map(words, driver.capabilities)),
        "reaches": _reaches(driver),
    }


def _version(driver: Summary) -> str:
    return driver.candidates[0].version if driver.candidates else f"{driver.newest} withdrawn"


def _reaches(driver: Summary) -> str:
    return f"reaches {describe_reach(driver.candidates[0].permissions)}" if driver.candidates else ""


def _apis(drivers: Sequence[Summary]) -> dict[str, set[str]]:
    """Map each API version that the drivers' ranges name to the ranges that include it."""
    ranges = {
        candidate.host_api: parse_range(candidate.host_api) for driver in drivers for candidate in driver.candidates
    }
    versions = {spec.version.removesuffix(".*") for version_range in ranges.values() for spec in version_range}
    texts_by_version = {
        version: {text for text, version_range in ranges.items() if version_range.contains(version, prereleases=True)}
        for version in sorted(versions, key=parse_version)
    }
    return {version: texts for version, texts in texts_by_version.items() if texts}


def _data(drivers: Sequence[Summary], apis: dict[str, set[str]], can: list[str]) -> dict[str, object]:
    reaches = sorted({_reaches(driver) for driver in drivers})
    range_sets = list(apis.values())
    return {
        "apis": list(apis),
        "can": list(map(words, can)),
        "reaches": list(map(clean, reaches)),
        "drivers": [
            (
                page_of(driver.project),
                driver.plugin,
                clean(marked(driver.label)),
                clean(driver.summary),
                driver.types,
                [can.index(name) for name in driver.capabilities],
                _version(driver),
                [
                    at
                    for at, ranges in enumerate(range_sets)
                    if any(candidate.host_api in ranges for candidate in driver.candidates)
                ],
                reaches.index(_reaches(driver)),
            )
            for driver in drivers
        ],
    }
