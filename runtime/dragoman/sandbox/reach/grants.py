"""Grants beyond a process's own connection, from manifest permissions that a person agreed to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dragoman.sandbox.launch import Endpoint, Launch
    from dragoman.secret_references import NamedFile

DEFAULT_PORT = 443
"""Of a host that a permission names without one."""


def granted(launch: Launch, permissions: Iterable[str], *, files: Mapping[str, NamedFile] | None = None) -> Launch:
    """Add the granted permissions to a launch.

    Args:
        launch: A launch with the baseline, which is the connection's own address and credentials.
        permissions: An installed driver's permissions, to each of which a person agreed.
        files: The regular files that a person entered, by field.
    """
    for permission in permissions:
        kind, _, value = permission.partition("=")
        match kind:
            case "net:host":
                launch = replace(launch, further=(*launch.further, *map(_endpoint, value.split(","))))
            case "fs:read" if file := (files or {}).get(value):
                launch = replace(launch, files=(*launch.files, file))
            case "memory":
                launch = replace(launch, memory=int(value.removesuffix("MiB")) << 20)
            case "cpu":
                launch = replace(launch, cpu=int(value.removesuffix("s")))
    return launch


def _endpoint(text: str) -> Endpoint:
    host, _, port = text.partition(":")
    return host, int(port or DEFAULT_PORT)
