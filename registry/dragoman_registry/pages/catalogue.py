"""The page of all drivers: a list that is there without script, and the rows that script searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_registry.permissions import describe_reach
from dragoman_registry.summaries import summarise

from .filling import fill
from .safe import clean, embedded, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman_registry.index import Catalog
    from dragoman_registry.summaries import Summary

FRONT, ALL = "../index.html", "../all.html"
"""The pages for people lie at the root of the registry, beside `targets/`."""

SHOWN = 50
"""Drivers on the front page before anybody asks for more; the script adds as many at a time."""


def page_of(project: str) -> str:
    """Give where the page of a driver lies, below the root of the registry."""
    return f"drivers/{project}.html"


def catalogue_pages(catalog: Catalog) -> Iterator[tuple[str, bytes]]:
    """Make the front page, and where it cannot show every driver without script, one that does."""
    drivers = sorted(map(summarise, catalog.projects), key=lambda one: one.plugin)
    rows = [_row(one) for one in drivers]
    count = f"{len(rows):,} driver{'' if len(rows) == 1 else 's'}" if rows else "No driver is published here yet."
    if hidden := len(rows) > SHOWN:
        yield ALL, fill("all.html", count=count, rows="\n".join(rows))
    apis, can = _apis(drivers), sorted({name for one in drivers for name in one.capabilities})
    yield (
        FRONT,
        fill(
            "catalog.html",
            script="catalog.js",
            count=count,
            rows="\n".join(rows[:SHOWN]),
            row=_row(None),
            more=f'<a href="all.html">All {len(rows):,} drivers on one page</a>' if hidden else "",
            more_hidden="" if hidden else " hidden",
            apis="".join(f"<option>{text(version)}</option>" for version in apis),
            capabilities="".join(
                f'<label><input type="checkbox" value="{text(name)}">{text(_words(name))}</label>' for name in can
            ),
            data=embedded(_data(drivers, apis, can)),
        ),
    )


def _words(capability: str) -> str:
    return capability.replace("-", " ")


def _row(one: Summary | None) -> str:
    """Fill the row of a driver; None gives the empty one that the script copies."""
    values = dict.fromkeys(("file", "label", "version", "summary", "types", "can", "reaches"), "")
    if one is not None:
        values |= {"file": page_of(one.project), "label": one.label, "version": _version(one), "summary": one.summary}
        values |= {"types": ", ".join(one.types), "can": ", ".join(map(_words, one.capabilities))}
        values["reaches"] = _reaches(one)
    return fill("row.html", **{name: text(value) for name, value in values.items()}).decode()


def _version(one: Summary) -> str:
    return one.candidates[0].version if one.candidates else f"{one.newest} withdrawn"


def _reaches(one: Summary) -> str:
    return f"reaches {describe_reach(one.candidates[0].permissions)}" if one.candidates else ""


def _apis(drivers: Sequence[Summary]) -> dict[str, set[str]]:
    """Find the API versions that the drivers' ranges name, and for each the ranges that hold it."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    ranges = {one.host_api: SpecifierSet(one.host_api) for driver in drivers for one in driver.candidates}
    named = {spec.version.removesuffix(".*") for found in ranges.values() for spec in found}
    held = {
        version: {text for text, found in ranges.items() if found.contains(version, prereleases=True)}
        for version in sorted(named, key=Version)
    }
    return {version: found for version, found in held.items() if found}


def _data(drivers: Sequence[Summary], apis: dict[str, set[str]], can: list[str]) -> dict[str, object]:
    reaches = sorted({_reaches(one) for one in drivers})
    held = list(apis.values())
    return {
        "apis": list(apis),
        "can": list(map(_words, can)),
        "reaches": list(map(clean, reaches)),
        "drivers": [
            (
                page_of(one.project),
                one.plugin,
                clean(one.label),
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
