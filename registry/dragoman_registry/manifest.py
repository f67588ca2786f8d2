"""The manifest of a driver, `driver.json`: what it claims, readable without running any of its code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal

import msgspec

from dragoman_api.connections import AuthScheme
from dragoman_api.forms import FieldValue, FormField

FORBID: dict[str, str] = {"extra": "forbid"}
MAX_MANIFEST = 1 << 20
"""Bytes of a manifest at most."""

BASELINE = frozenset({"net:connection", "secrets:connection"})
"""Permissions that are granted without asking: the opened connection's address and its own credentials."""

Capability = Literal["browse", "sort", "filter", "edit", "drop", "console", "export", "tenants", "raw-filter"]


class Surface(StrEnum):
    """Where a person meets a driver (P6)."""

    CLI = "cli"
    DESKTOP = "desktop"
    PHONE = "phone"
    TABLET = "tablet"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseType:
    """A type of database as a saved connection names it, and the words it is shown with."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID

    name: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthMethod:
    """One way to authenticate: its value in the form, and how the credential is sent."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID

    value: str
    label: str
    scheme: AuthScheme


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One wheel of the closed set a release was published with, for one platform or for all."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID

    file: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a driver claims; the smoke test checks the claim, and hooks decide at run time.

    Attributes:
        manifest_version: Of this format.
        id: The plugin's id, also the name of its entry point.
        label: As a person reads it, with the product's name (P4).
        summary: One sentence.
        types: Database types it serves.
        host_api: Range of `dragoman-api` versions, equal to the wheel's own requirement.
        entry: Where the driver class lies, ``package.module:Class``.
        import_names: Top-level modules the wheel may bring.
        hooks: Hooks it implements.
        capabilities: What a person can do with it.
        server_versions: Served versions of the product, as its makers write them.
        form: Fields of a connection, rendered before install.
        auth_methods: How each choice of the field `auth_method` is sent.
        permissions: Wanted, out of a closed vocabulary; nothing else is possible.
        excluded_surfaces: Where it is not available (P6).
        dependencies: Wheels beyond the API's own dependencies, every platform.
        licence: An SPDX expression.
        docs: A URL, or the name of a file in the release's documentation.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID

    manifest_version: Literal[1]
    id: str
    label: str
    summary: str
    types: tuple[DatabaseType, ...]
    host_api: str
    entry: str
    import_names: tuple[str, ...]
    hooks: tuple[str, ...]
    capabilities: tuple[Capability, ...]
    server_versions: tuple[str, ...]
    form: tuple[FormField, ...]
    auth_methods: tuple[AuthMethod, ...]
    permissions: tuple[str, ...]
    licence: str
    docs: str = ""
    excluded_surfaces: tuple[Surface, ...] = ()
    dependencies: tuple[Dependency, ...] = ()

    @property
    def beyond_baseline(self) -> tuple[str, ...]:
        """Give the permissions that need a person's consent."""
        return tuple(name for name in self.permissions if name not in BASELINE)

    def default(self, field: str) -> FieldValue:
        """Give what stands in a field of the form before anybody types, None for nothing."""
        return next((entry.default for entry in self.form if entry.name == field), None)

    def scheme(self, auth_method: str | None) -> AuthScheme:
        """Give how the credential of an authentication method is sent."""
        return next((entry.scheme for entry in self.auth_methods if entry.value == auth_method), AuthScheme.NONE)


def decode(data: bytes) -> Manifest:
    """Read a manifest that was checked when it came in."""
    return msgspec.json.decode(data, type=Manifest)


def encode(manifest: Manifest) -> bytes:
    """Write a manifest, every key present, in one fixed order."""
    return msgspec.json.encode(manifest)
