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


KNOWN: tuple[Known, ...] = (
    Known(
        name="unsigned-sort",
        driver="opensearch",
        reason="the server orders an unsigned_long wrongly, so that a sort by one is dropped with a note (O16)",
        holds=lambda found: found.error.kind == "sort" and "orders arrays of unsigned_long" in str(found.error.got),
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
