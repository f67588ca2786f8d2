"""The conformance report beside a wheel, as the index reads it."""

from __future__ import annotations

import msgspec


class ConformanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """A conformance report; missing or additional fields in the file are not a fault.

    Attributes:
        api: Version of `dragoman-api` that defines the contract.
        python: Version of Python.
        system: Operating system and machine.
        sandbox: The level the driver ran at.
        denied: Addresses that the sandbox kept it from reaching.
        engines: Passed, skipped and failed tests by the engine they ran on.
        hooks: Hooks the driver does not implement; their tests were skipped.
        skips: Why tests were skipped, and how many each time.
        deviations: Conformance tests that the author replaced, and why.
        failures: Tests that failed, and why.
    """

    api: str = ""
    python: str = ""
    system: str = ""
    sandbox: str = "none"
    denied: tuple[str, ...] = ()
    engines: dict[str, dict[str, int]] = {}
    hooks: tuple[str, ...] = ()
    skips: dict[str, int] = {}
    deviations: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    def count(self, outcome: str) -> int:
        """Count the conformance tests with an outcome, on every engine."""
        return sum(engine.get(outcome, 0) for engine in self.engines.values())

    def __str__(self) -> str:
        counts = ", ".join(f"{self.count(word)} {word}" for word in ("passed", "failed", "skipped"))
        return f"{counts} · sandbox {self.sandbox} · dragoman-api {self.api or 'of an unknown version'}"
