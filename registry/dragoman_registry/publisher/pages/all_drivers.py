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
    drivers = sorted(map(summarise, catalog.projects), key=lambda one: one.plugin)
    rows = [_row(one) for one in drivers]
    count = f"{len(rows):,} driver{'' if len(rows) == 1 else 's'}" if rows else "No driver is published here yet."
    if len(rows) > SHOWN:
        yield ALL, fill("all.html", count=count, rows=rows)
    apis, can = _apis(drivers), sorted({name for one in drivers for name in one.capabilities})
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


def _row(one: Summary) -> dict[str, object]:
    return {
        "file": page_of(one.project),
        "label": marked(one.label),
        "version": _version(one),
        "summary": one.summary,
        "types": one.types,
        "can": list(map(words, one.capabilities)),
        "reaches": _reaches(one),
    }


def _version(one: Summary) -> str:
    return one.candidates[0].version if one.candidates else f"{one.newest} withdrawn"


def _reaches(one: Summary) -> str:
    return f"reaches {describe_reach(one.candidates[0].permissions)}" if one.candidates else ""


def _apis(drivers: Sequence[Summary]) -> dict[str, set[str]]:
    """Map each API version that the drivers' ranges name to the ranges that include it."""
    ranges = {one.host_api: parse_range(one.host_api) for driver in drivers for one in driver.candidates}
    named = {spec.version.removesuffix(".*") for found in ranges.values() for spec in found}
    held = {
        version: {text for text, found in ranges.items() if found.contains(version, prereleases=True)}
        for version in sorted(named, key=parse_version)
    }
    return {version: found for version, found in held.items() if found}


def _data(drivers: Sequence[Summary], apis: dict[str, set[str]], can: list[str]) -> dict[str, object]:
    reaches = sorted({_reaches(one) for one in drivers})
    held = list(apis.values())
    return {
        "apis": list(apis),
        "can": list(map(words, can)),
        "reaches": list(map(clean, reaches)),
        "drivers": [
            (
                page_of(one.project),
                one.plugin,
                clean(marked(one.label)),
                clean(one.summary),
                one.types,
                [can.index(name) for name in one.capabilities],
                _version(one),
                [at for at, found in enumerate(held) if any(each.host_api in found for each in one.candidates)],
                reaches.index(_reaches(one)),
            )
            for one in drivers
        ],
    }
