"""The search itself: the kept corpus first, then by turns what the grammar makes and what becomes of spoiled inputs."""

from __future__ import annotations

import hashlib
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings, target
from hypothesis.errors import Flaky

from . import CORPUS
from .mutating import spoiled
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from .server import Result

ROUND = 400
"""Maximum inputs of the grammar in one round; each begins anew, from another seed."""
KEPT_BYTES, KEPT_FILES = 4_000, 24
"""Of an input that is kept for what it reaches, and how many of them for one target."""
_POOL = 2_000  # inputs that are spoiled further
_MINIMISING = 20.0  # seconds for one finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, by its smallest input.

    Attributes:
        kind: As of `Result`.
        where: Function.
        error: What was raised, or what the input took.
        data: The input.
        kept: It was found by an input of the corpus.
    """

    kind: str
    where: str
    error: str
    data: bytes
    kept: bool

    @property
    def key(self) -> str:
        """Return the list of known findings."""
        return f"{self.kind} {self.where}"

    @property
    def file(self) -> str:
        """Name the file it is kept in."""
        return f"found-{self.kind}-{hashlib.sha256(self.data).hexdigest()[:8]}"


@dataclass(slots=True, kw_only=True)
class Report:
    """What was seen of one target.

    Attributes:
        target: Its name.
        inputs: How many were run.
        seconds: For how long.
        lines: Lines of the product that inputs of this run were the first to reach.
        slowest: The most processor seconds that one took.
        largest: The most MB that one took.
        worst: MB per kB, of inputs of at least a kB.
        refused: How many the product refused.
        findings: What is wrong, by kind and function.
    """

    target: str
    inputs: int = 0
    seconds: float = 0
    lines: int = 0
    slowest: float = 0
    largest: float = 0
    worst: float = 0
    refused: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)


def corpus(name: str) -> dict[str, bytes]:
    """Read what is kept for a target: file name → input."""
    folder = CORPUS / name
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.is_dir() else {}


class _OverError(Exception):
    """The time of a round is over."""


class Search:
    """The search in one target."""

    def __init__(self, server: Server, *, number: int, say: Callable[[str], None]) -> None:
        """Begin.

        Args:
            server: Runs the inputs.
            number: Seed.
            say: Told of findings at once.
        """
        self.target, self._server, self._say = server.target, server, say
        self._random = random.Random(number)
        self._kept = corpus(self.target.name)
        self._dearest, self._minimising, self._rate = 0.005, _MINIMISING, 10.0
        self.pool: list[bytes] = []
        self.report = Report(target=self.target.name)

    def run(self, seconds: float) -> Report:
        """Search for so long; return what was seen."""
        began = time.monotonic()
        end = began + seconds
        self._minimising = min(_MINIMISING, seconds / 2)
        for data in self._kept.values():
            self._try(data, trace=True, kept=True)
        while time.monotonic() < end:
            self._grow(min(end, time.monotonic() + max(1.0, seconds / 20)))
            self._spoil(min(end, time.monotonic() + max(1.0, seconds / 20)))
        self.report.seconds = time.monotonic() - began
        return self.report

    def _grow(self, until: float) -> None:
        """Run what the grammar makes, as much as there is time for; what costs more leads it on."""
        began, before = time.monotonic(), self.report.inputs
        most = max(5, min(ROUND, int(self._rate * (until - began))))

        @seed(self._random.randrange(1 << 30))
        @settings(
            max_examples=most, database=None, deadline=None, phases=[Phase.generate, Phase.target],
            suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
        )  # fmt: skip
        @given(self.target.grammar())
        def one(data: bytes) -> None:
            if time.monotonic() > until:
                raise _OverError  # what is only drawn and not run may take minutes
            if len(data) <= self.target.bounds.largest:
                result = self._try(data, trace=self._random.random() < 0.3)
                target(result.told.seconds / (1 + len(data) / 1000), label="seconds per kB")

        with suppress(_OverError, Flaky):
            one()
        self._rate = (self.report.inputs - before + 1) / (time.monotonic() - began)

    def _spoil(self, until: float) -> None:
        while self.pool and time.monotonic() < until:
            # Of two the shorter one: it costs less, and shows more of what is wrong.
            data = spoiled(
                self._random, min(self._random.choices(self.pool, k=2), key=len), self._random.choice(self.pool)
            )
            self._try(data[: self.target.bounds.largest], trace=self._random.random() < 0.2)

    def _try(self, data: bytes, *, trace: bool, kept: bool = False) -> Result:
        result, report = self._server.run(data), self.report
        told = result.told
        report.inputs += 1
        if not result.sound:
            self._note(result, data, kept=kept)
            return result
        report.refused += result.kind == "refused"
        report.slowest, report.largest = max(report.slowest, told.seconds), max(report.largest, told.mb)
        if len(data) >= 1000:
            report.worst = max(report.worst, told.mb / len(data) * 1000)
        lines = self._server.trace(data) if trace and told.seconds < 0.05 else 0
        report.lines += lines
        dearer = told.seconds / (1 + len(data) / 1000) > 1.2 * self._dearest
        if dearer:
            self._dearest = told.seconds / (1 + len(data) / 1000)
        if (lines or dearer) and len(self.pool) < _POOL:
            self.pool.append(data)
        return result

    def _note(self, result: Result, data: bytes, *, kept: bool) -> None:
        key = f"{result.kind} {result.where}"
        known = self.report.findings.get(key)
        if known is not None and len(known.data) <= len(data):
            return
        if known is None and not kept:
            data = self._minimised(data, key, seconds=self._minimising)
        kept = kept or (known is not None and known.kept)
        told = result.told
        cost = f"{told.seconds:.2f} s, {told.mb:.1f} MB for {len(data):,} bytes"
        error = told.error or cost
        self.report.findings[key] = Finding(kind=result.kind, where=result.where, error=error, data=data, kept=kept)
        if known is None:
            self._say(f"{self.target.name}: {key}: {error}")

    def _minimised(self, data: bytes, key: str, *, seconds: float) -> bytes:
        """Leave out pieces, smaller and smaller ones, as long as the same is found."""
        end = time.monotonic() + seconds
        size = len(data) // 2
        while size:
            at = 0
            while at < len(data):
                if time.monotonic() > end:
                    return data
                shorter = data[:at] + data[at + size :]
                result = self._server.run(shorter)
                if f"{result.kind} {result.where}" == key:
                    data = shorter
                else:
                    at += size
            size //= 2
        return data


def keep(search: Search) -> int:
    """Write the findings, and the smallest inputs that reach most, beside what is kept; return how many are new."""
    folder, kept = CORPUS / search.target.name, corpus(search.target.name)
    new = {each.file: each.data for each in search.report.findings.values()}
    with Server(search.target) as server:
        for data in kept.values():
            server.trace(data) if server.run(data).sound else None
        room = KEPT_FILES - sum(not name.startswith("found-") for name in kept)
        for data in sorted((each for each in search.pool if len(each) <= KEPT_BYTES), key=len):
            if room > 0 and server.run(data).sound and server.trace(data) > 2:
                new[f"input-{hashlib.sha256(data).hexdigest()[:8]}"] = data
                room -= 1
    for name, data in new.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return len(new.keys() - kept.keys())
