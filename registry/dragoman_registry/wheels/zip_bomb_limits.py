"""Limits on the size of a wheel, against zip bombs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelLimits:
    """Limits against zip bombs.

    Attributes:
        members: Maximum entries of the archive.
        size: Maximum unpacked bytes.
        ratio: Maximum expansion of a member larger than `ratio_from` bytes.
        ratio_from: Size in bytes up to which high expansion is harmless.
        record: Maximum bytes of RECORD.
    """

    members: int = 5_000
    size: int = 256 << 20
    ratio: int = 100
    ratio_from: int = 1 << 20
    record: int = 8 << 20
