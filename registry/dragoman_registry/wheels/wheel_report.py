"""The report of the wheel checks: every fault of a wheel, and what was read of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from packaging.requirements import Requirement  # readers of the report resolve this type

from dragoman_registry.validation import Fault

from .manifest import Manifest
from .packaging_parsers import WheelNameParts


@dataclass(slots=True, kw_only=True)
class WheelReport:
    """The result of the wheel checks.

    Attributes:
        faults: Every fault; empty for a wheel that may be unpacked.
        size: Size of the file in bytes.
        sha256: Digest of the file.
        name: The parsed file name.
        placed: Maps each member to its path below the installation folder.
        dist_info: The one metadata folder.
        manifest: The manifest of a driver; None for any other wheel.
        manifest_data: The bytes of `driver.json`.
        metadata: The bytes of METADATA.
        requires_python: Range of Python versions, empty for any.
        requires: Requirements that apply without an extra.
        summary: The summary from METADATA.
        readme: The long description from METADATA.
        machine_code: Members that begin like native programs or libraries.
    """

    faults: list[Fault] = field(default_factory=list)
    size: int = 0
    sha256: str = ""
    name: WheelNameParts | None = None
    placed: dict[str, str] = field(default_factory=dict)
    dist_info: str = ""
    manifest: Manifest | None = None
    manifest_data: bytes = b""
    metadata: bytes = b""
    requires_python: str = ""
    requires: list[Requirement] = field(default_factory=list)
    summary: str = ""
    readme: str = ""
    machine_code: list[str] = field(default_factory=list)

    def add(self, code: str, reason: str) -> None:
        """Add a fault."""
        self.faults.append(Fault(code, reason))
