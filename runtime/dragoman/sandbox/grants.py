"""What the permissions of a manifest give a process beyond its own connection, once a person agreed to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dragoman_api.forms import FieldValue

    from .broker import Endpoint
    from .launch import Launch

DEFAULT_PORT = 443
"""Of a host that a permission names without one."""


def granted(launch: Launch, permissions: Iterable[str], *, chosen: Mapping[str, FieldValue] | None = None) -> Launch:
    """Add to a launch what permissions give. Looks at the file system.

    Args:
        launch: With the baseline: the connection's own address and credentials.
        permissions: Of an installed driver, so each of them was agreed to.
        chosen: What a person entered in the fields of the form; a default is nobody's choice.

    Raises:
        ConfigurationError: What was chosen as a file is none.
    """
    for permission in permissions:
        kind, _, value = permission.partition("=")
        match kind:
            case "net:host":
                launch = replace(launch, approved=(*launch.approved, *map(_endpoint, value.split(","))))
            case "fs:read" if path := (chosen or {}).get(value):
                launch = replace(launch, readable=(*launch.readable, _file(value, str(path))))
            case "memory":
                launch = replace(launch, memory=int(value.removesuffix("MiB")) << 20)
            case "cpu":
                launch = replace(launch, cpu=int(value.removesuffix("s")))
    return launch


def _endpoint(text: str) -> Endpoint:
    host, _, port = text.partition(":")
    return host, int(port or DEFAULT_PORT)


def _file(field: str, text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_file():  # a directory would open all that lies below it
        raise ConfigurationError(f"{field}: {text} is no file", hint="name one file; it is what the driver may read")
    return path
