"""The documents beside a release: its readme, changelog and conformance report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_registry.validation import Unreadable, decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from .catalog import Release

    Read = Callable[[str], bytes | None]
    """Returns a file by its path below `targets/`, or None if it is missing."""


class ConformanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """A conformance report; missing or additional fields in the file are not a fault.

    Attributes:
        api: Version of `dragoman-api` that defines the contract.
        sandbox: The level the driver ran at.
        denied: Addresses that the sandbox kept it from reaching.
        engines: Passed, skipped and failed tests by the engine they ran on.
        hooks: Hooks the driver does not implement; their tests were skipped.
        skips: Why tests were skipped, and how many each time.
        deviations: Conformance tests that the author replaced, and why.
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


MAX_TEXT = 64 << 10
"""Maximum characters of a text to render; the file holds the rest."""

MAX_MARKS = 4000
"""Maximum brackets and bars in a text to render; with many of them a Markdown parser takes minutes."""


def is_renderable(text: str) -> bool:
    """Check whether an untrusted text is safe to parse as Markdown."""
    return len(text) <= MAX_TEXT and sum(map(text.count, "[]|")) <= MAX_MARKS


class Documents(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of a release.

    Attributes:
        readme: Markdown; empty if there is none.
        changelog: Markdown; empty if there is none.
        report: The first readable report among its wheels; None if there is none.
    """

    readme: str = ""
    changelog: str = ""
    report: ConformanceReport | None = None


def read_documents(release: Release, read: Read) -> Documents:
    """Read the texts of a release."""
    readme, changelog = (
        (read(f"docs/{release.project}/{release.version}/{name}") or b"").decode(errors="replace")
        for name in ("README.md", "CHANGELOG.md")
    )
    reports = (read(f"{wheel.path}.report.json") for wheel in release.wheels)
    report = next((conformance_report for data in reports if data and (conformance_report := _report(data))), None)
    return Documents(readme=readme, changelog=changelog, report=report)


def _report(data: bytes) -> ConformanceReport | None:
    try:
        return decode(data, ConformanceReport)
    except Unreadable:
        return None
