"""What lies beside a release for people: its readme, its changelog and its conformance report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from .index import Release

    Read = Callable[[str], bytes | None]


MAX_TEXT = 64 << 10
"""Characters of a text that is rendered; the file holds the rest."""

MAX_MARKS = 4000
"""Brackets and bars in a text that is rendered; over many of them a parser of Markdown takes minutes."""


def is_renderable(text: str) -> bool:
    """Tell whether a text may be parsed as Markdown, whoever wrote it."""
    return len(text) <= MAX_TEXT and sum(map(text.count, "[]|")) <= MAX_MARKS


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A conformance report as its readers take it: whatever is missing or more in the file is no fault.

    Attributes:
        api: Version of `dragoman-api`, whose contract it is.
        python: Version of Python.
        system: Operating system and machine.
        sandbox: The level the driver ran at.
        denied: Addresses it wanted to reach and must not.
        engines: Passed, skipped and failed tests by what they ran on.
        hooks: Hooks the driver does not implement; their tests were skipped.
        skips: Why tests were skipped, and how many each time.
        deviations: Tests of the contract that the author replaced, and why.
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
        """Count tests of the contract, on every engine."""
        return sum(engine.get(outcome, 0) for engine in self.engines.values())

    def __str__(self) -> str:
        counts = ", ".join(f"{self.count(word)} {word}" for word in ("passed", "failed", "skipped"))
        return f"{counts} · sandbox {self.sandbox} · dragoman-api {self.api or 'of an unknown version'}"


class Documents(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of a release.

    Attributes:
        readme: Markdown, empty where there is none.
        changelog: Markdown, empty where there is none.
        report: The first of its wheels that has one, None where none can be read.
    """

    readme: str = ""
    changelog: str = ""
    report: Report | None = None


def read_documents(release: Release, read: Read) -> Documents:
    """Read the texts of a release.

    Args:
        release: Whose.
        read: Gives a file by its path below `targets/`, None where there is none.
    """
    readme, changelog = (
        (read(f"docs/{release.project}/{release.version}/{name}") or b"").decode(errors="replace")
        for name in ("README.md", "CHANGELOG.md")
    )
    reports = (read(f"{wheel.path}.report.json") for wheel in release.wheels)
    report = next((found for data in reports if data and (found := _report(data))), None)
    return Documents(readme=readme, changelog=changelog, report=report)


def _report(data: bytes) -> Report | None:
    try:
        return msgspec.json.decode(data, type=Report)
    except (msgspec.DecodeError, RecursionError):
        return None
