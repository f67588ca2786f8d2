"""Measuring things side by side: run in turn, medians beside the best, and ratios that survive a noisy machine."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

Times = dict[str, list[float]]
"""Seconds of each round, by side."""

INTERPRETER = "bare interpreter"


def measure(sides: Mapping[str, Callable[[], object]], *, rounds: int = 9) -> Times:
    """Run each side once per round, in turn, after one warm-up."""
    times: Times = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, run in sides.items():
            began = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - began)
    return times


async def measure_async(sides: Mapping[str, Callable[[], Awaitable[object]]], *, rounds: int = 9) -> Times:
    """Do the same for coroutines."""
    times: Times = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, run in sides.items():
            began = time.perf_counter()
            await run()
            if number:
                times[name].append(time.perf_counter() - began)
    return times


def report(title: str, found: Times, *, baseline: str, target: str = "") -> None:
    """Print one table: medians, the best in brackets, in a fitting unit, and their ratios to the baseline."""
    print(f"\n{title}" + (f"   (target: {target})" if target else ""))
    for name, seconds in found.items():
        unit, factor = ("ms", 1e3) if median(seconds) >= 0.001 else ("µs", 1e6)
        other = found[baseline]
        times = f"{median(seconds) * factor:9.2f} [{min(seconds) * factor:8.2f}] {unit}"
        print(f"  {name:<46} {times} {median(seconds) / median(other):8.2f} [{min(seconds) / min(other):.2f}] x")


def start_interpreter() -> None:
    """Start an interpreter that does nothing, and wait for its end."""
    subprocess.run([sys.executable, "-c", ""], check=True)


def introduce() -> None:
    """Tell how fast this machine starts an interpreter, so that figures of different machines can be compared."""
    seconds = measure({INTERPRETER: start_interpreter}, rounds=15)[INTERPRETER]
    print(f"A {INTERPRETER} starts in {median(seconds) * 1e3:.1f} ms [{min(seconds) * 1e3:.1f}] here")
