"""Samples of every kind, the same on each server, and what a server makes of them."""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from remote_write import STALE, finds, histogram, send, series, settle

BEGIN = 1_795_132_800_000
"""2026-11-20T00:00:00Z, in milliseconds."""

STEP = 15_000
LAST = "utf8 name.ü"


class Stored(NamedTuple):
    """One sample, and its labels without the name."""

    at: int
    labels: dict[str, str]
    value: float


ODD = {
    "nan": math.nan,
    "inf": math.inf,
    "minus": -math.inf,
    "tiny": 5e-324,
    "big": 1.7976931348623157e308,
    "third": 1 / 3,
    "zero": -0.0,
}
ROOM = 'ü "x"\\\n{}.*'


def is_stale(value: float) -> bool:
    """Return whether a NaN marks the end of a series."""
    return struct.pack("<d", value) == struct.pack("<d", STALE)


def samples() -> dict[str, list[Stored]]:
    """Return the samples by metric, in the order of time."""
    stored: dict[str, list[Stored]] = {}

    def add(metric: str, at: int, number: float, /, **labels: str) -> None:
        stored.setdefault(metric, []).append(Stored(at, labels, number))

    for number in range(240):
        at = BEGIN + number * STEP
        for instance in ("a:1", "b:1"):
            add("http_requests_total", at, number * 3.0, instance=instance, code="200", job="api")
            if number % 2:
                add("http_requests_total", at, number / 4, instance=instance, code="500", job="api", zone="Eu")
        add("http_duration_seconds", at, math.sin(number), room=ROOM)
        if number % 60 == 0:
            add("job:rate:sum", at, 1.0, job="x")
    for number, (kind, value) in enumerate(ODD.items()):
        add("odd", BEGIN + number * STEP, value, kind=kind)
    for number, value in enumerate((1.0, 1.0, STALE, 1.0)):
        add("gone", BEGIN + number * STEP, value, k="a")
    add("plain", BEGIN, 2.0)
    add("clash", BEGIN, 9_007_199_254_740_993.0, value="v", timestamp="t", series="s", le="+Inf")
    add("breaks", BEGIN, 1.0, a="x\ny")
    add("breaks", BEGIN, 2.0, a="xzy")
    add("breaks", BEGIN, 3.0, b="B")
    return stored


def load(url: str) -> None:
    """Send all samples, unless the server has them: the ones of one time together, as it takes none that are late."""
    if finds(url, LAST):
        return
    stored = [(name, *sample) for name, group in samples().items() for sample in group]
    stored.sort(key=lambda sample: sample[1])
    send(url, *(series({"__name__": name, **labels}, [(at, value)]) for name, at, labels, value in stored))
    after = BEGIN + 3_600_000
    send(url, series({"__name__": "sizes"}, histograms=[histogram(after, count=10, total=12.5, zero=1, deltas=[4, 1])]))
    send(url, series({"__name__": LAST, "lab.el": "x"}, [(after, 1.0)]))
    settle(url, LAST)
