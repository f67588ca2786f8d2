"""Measuring two things side by side: run in turn, medians, and a ratio that survives a noisy machine."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


def medians(sides: Mapping[str, Callable[[], object]], *, rounds: int = 9) -> dict[str, float]:
    """Run each side once per round, in turn, after one warm-up, and give the median seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, run in sides.items():
            began = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in times.items()}


async def async_medians(sides: Mapping[str, Callable[[], Awaitable[object]]], *, rounds: int = 9) -> dict[str, float]:
    """Do the same for coroutines."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, run in sides.items():
            began = time.perf_counter()
            await run()
            if number:
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in times.items()}


def report(title: str, found: Mapping[str, float], *, baseline: str, target: str = "") -> None:
    """Print one table: seconds in a fitting unit, and the ratio to the baseline."""
    print(f"\n{title}" + (f"   (target: {target})" if target else ""))
    for name, seconds in found.items():
        unit, factor = ("ms", 1e3) if seconds >= 0.001 else ("µs", 1e6)
        print(f"  {name:<46} {seconds * factor:9.1f} {unit}   {seconds / found[baseline]:7.2f} x")
