"""A wheel as a registry lists it: its name, digests and requirements."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from dragoman_registry.names import Digest, WheelName

from .packaging_parsers import project_name

MOST = 1 << 50
"""Maximum file size that an index may state: larger than any disk, and still an integer for every reader."""


class _Bounds:
    """The bounds of a number of bytes for pydantic; msgspec has its own beside it."""

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> Any:
        return {"type": "int", "ge": 0, "le": MOST}


ByteCount = Annotated[int, msgspec.Meta(ge=0, le=MOST), _Bounds()]
"""An untrusted number of bytes."""


@lru_cache(maxsize=1 << 15)  # each wheel of a large catalog is asked about several times
def project_of(file: str) -> str:
    """Return the project of a wheel, from its file name.

    >>> project_of("dragoman_elasticsearch-1.0.0-py3-none-any.whl")
    'dragoman-elasticsearch'
    """
    return project_name(file.partition("-")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """One wheel of a registry.

    Attributes:
        metadata_sha256: Digest of its METADATA, which is beside it.
        requires_python: Range of Python versions, empty for any.
        uploaded: Time of publication, UTC.
        requires: Projects it needs, without extras.
    """

    file: WheelName
    size: ByteCount
    sha256: Digest
    metadata_sha256: str = ""
    requires_python: str = ""
    uploaded: str = ""
    summary: str = ""
    requires: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path below `targets/`."""
        return f"wheels/{project_of(self.file)}/{self.file}"

    @property
    def version(self) -> str:
        """The version, from the file name."""
        return self.file.split("-")[1]
