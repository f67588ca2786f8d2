"""Differences that are known and open. An entry that a whole run no longer needs fails the test: remove it then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .run import Found


@dataclass(frozen=True, kw_only=True)
class Known:
    """One known difference.

    Attributes:
        name: A short name for reports.
        driver: The driver.
        reason: What differs, and why it stands.
        holds: Whether a difference is this one.
        on: Parts of the names of the targets that show it in a whole run; empty if a run may miss it.
    """

    name: str
    driver: str
    reason: str
    holds: Callable[[Found], bool]
    on: tuple[str, ...] = ()


FLOATS = {"float", "half_float", "scaled_float", "double"}
FILTERED = {"rows", "count", "export", "total"}


def _named(found: Found, *names: str) -> bool:
    return not {*names}.isdisjoint(each.name for each in found.columns)


def _filtered(found: Found, *types: str) -> bool:
    rows = {each.column for each in found.call.rows}
    return found.error.kind in FILTERED and any(each.name in rows and each.type in types for each in found.columns)


def _of_change(found: Found, *types: str) -> bool:
    return found.error.kind == "change" and found.culprit is not None and found.culprit.type in types


def _sorted(found: Found, *types: str) -> bool:
    keys = {each.column for each in found.call.sort}
    return found.error.kind == "order" and any(each.name in keys and each.type in types for each in found.columns)


KNOWN: tuple[Known, ...] = (
    Known(
        name="null_value",
        driver="elasticsearch",
        reason="a stored null is found as the mapping's null_value, and sorted as it; only `null` says so",
        holds=lambda found: found.error.kind in (*FILTERED, "order") and _named(found, "void"),
        on=("fake", "elasticsearch"),
    ),
    Known(
        name="copy_to",
        driver="elasticsearch",
        reason="a sort takes the values that copy_to adds, which no row holds, and no note says so",
        holds=lambda found: found.error.kind == "order" and _named(found, "gathered"),
        on=("elasticsearch",),
    ),
    Known(
        name="normalizer",
        driver="elasticsearch",
        reason="a normalizer changes what is compared and sorted; the row claims to be exact",
        holds=lambda found: found.error.kind in (*FILTERED, "order") and _named(found, "folded"),
        on=("elasticsearch",),
    ),
    Known(
        name="dates in a sort",
        driver="elasticsearch",
        reason="7.x loses rows, or fails, where shards disagree on the format of a date without a value",
        holds=lambda found: (
            " 7." in found.target.replace("-", " ")
            and any(
                each.type.startswith("date")
                for each in found.columns
                if each.name in {key.column for key in found.call.sort}
            )
            and found.error.kind in (*FILTERED, "error", "order")
        ),
    ),
    Known(
        name="long strings in a sort",
        driver="elasticsearch",
        reason="before 7.11 rows have no _ignored, so no note says that a string over ignore_above sorts as no value",
        holds=lambda found: (
            "7.10" in found.target
            and found.error.kind == "order"
            and not {"short", "title"}.isdisjoint(each.column for each in found.call.sort)
        ),
        on=("7.10",),
    ),
    Known(
        name="-0",
        driver="elasticsearch",
        reason="a cell shows the integer -0 as 0: the decoder has no sign for it",
        holds=lambda found: found.error.kind == "cell" and "-0" in str(found.error.expected),
        on=("fake", "elasticsearch"),
    ),
    Known(
        name="integers of 64 bits",
        driver="weaviate",
        reason="a stored 2^63 - 1 compares as -2^63, and so does such a value; the row does not say so",
        holds=lambda found: (
            _filtered(found, "int", "int[]")
            and (
                "92233720368547758" in str(found.call) or all("9223372036854775807" in row.text for row in found.wrong)
            )
        ),
        on=("fake", "weaviate"),
    ),
    Known(
        name="letters that fold",
        driver="weaviate",
        reason="without letter case the server takes İ for i, so it finds every i; the row claims to be exact",
        holds=lambda found: found.error.kind in FILTERED and "İ" in str(found.call),
        on=("weaviate",),
    ),
)


def known(found: Found) -> Known | None:
    """Return the entry that covers a difference."""
    return next((each for each in KNOWN if each.driver == found.driver and each.holds(found)), None)


def needless(driver: str, target: str, seen: set[str]) -> list[str]:
    """Name the entries that a whole run on a target did not need."""
    return [
        each.name
        for each in KNOWN
        if each.driver == driver and each.name not in seen and any(part in target for part in each.on)
    ]
