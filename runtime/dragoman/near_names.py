"""Near names: suggestions for a misspelt name, found in bounded time among untrusted names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 100
"""Characters of a name that is compared; a longer one resembles nothing."""

LOOKED_AT = 10_000
"""Maximum number of names that are considered."""

COMPARED = 20
"""Names that are compared letter by letter, which takes milliseconds each: those that share most pairs of letters."""


def near_names(wanted: str, known: Iterable[str], *, most: int = 3, least: float = 0.6) -> list[str]:
    """Return the known names that resemble one, the nearest first.

    Args:
        wanted: The unknown name.
        known: The known names, possibly untrusted.
        most: The maximum number of names.
        least: Likeness from 0 to 1.
    """
    if not 0 < len(wanted) <= LONGEST:
        return []
    from difflib import get_close_matches
    from heapq import nlargest
    from itertools import islice

    pairs = _pairs(wanted)
    # Two names are alike by at most twice the shorter length over both.
    fitting = [
        name
        for name in islice(known, LOOKED_AT)
        if len(name) <= LONGEST and 2 * min(len(name), len(wanted)) >= least * (len(name) + len(wanted))
    ]
    nearest = nlargest(COMPARED, fitting, key=lambda name: len(pairs & _pairs(name)))
    return get_close_matches(wanted, nearest, n=most, cutoff=least)


def _pairs(name: str) -> set[str]:
    padded = f" {name.lower()} "
    return {padded[at : at + 2] for at in range(len(padded) - 1)}


def did_you_mean(near: Iterable[str]) -> str:
    """Return a suggestion to append to a sentence; empty if no name is near."""
    names = " or ".join(near)
    return f" (did you mean {names}?)" if names else ""
