"""Choosing what of many like cases the default run tries; `make slow` tries the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def mostly_slow(cases: Iterable[Any], *, fast: Iterable[Any]) -> list[Any]:
    """Mark the cases slow that are not in `fast`; each of `fast` stands for the ones that are like it."""
    cases, fast = list(cases), list(fast)
    assert all(case in cases for case in fast), "a case in `fast` does not exist"
    return [case if case in fast else pytest.param(*_values(case), marks=pytest.mark.slow) for case in cases]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
