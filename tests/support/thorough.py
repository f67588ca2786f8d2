"""What takes long and finds little more: continuous integration tries a part, a release all of it (`THOROUGH=1`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

THOROUGH = bool(os.environ.get("THOROUGH"))


def one_in(number: int, cases: Iterable[T]) -> list[T]:
    """Take every n-th case, the first one first; all of them in a thorough run."""
    return list(cases)[:: 1 if THOROUGH else number]
