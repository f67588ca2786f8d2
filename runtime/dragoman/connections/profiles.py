"""Build the profile that a driver receives from a connection's checked values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.references import MAX_PEM, Reference, read_file, regular_file
from dragoman_api.connections import AuthScheme, Profile, Secrets, SslMode
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.references import NamedFile, Saved
    from dragoman_api.connections import FieldValue

    from .saved_connections import SavedConnection


def open_files(values: Mapping[str, Saved]) -> dict[str, NamedFile]:
    """Find the regular files that a person entered, by field, following links. Raises ConfigurationError."""
    return {
        key: regular_file(value.target, where=key)
        for key, value in values.items()
        if isinstance(value, Reference) and value.scheme == "path"
    }


def make_profile(
    connection: SavedConnection,
    values: Mapping[str, Saved],
    *,
    scheme: AuthScheme,
    secrets: Mapping[str, str],
    files: Mapping[str, NamedFile],
) -> Profile:
    """Build the profile that a driver receives.

    Args:
        connection: Provides the name and type.
        values: Checked values.
        scheme: How the credential is sent.
        secrets: Resolved secrets by field.
        files: The result of `open_files`: the only files that are read or passed on.

    Raises:
        ConfigurationError: The CA file cannot be read, the client certificate is too large, or the SSL mode is unknown.
    """
    options: dict[str, FieldValue] = {key: value for key, value in values.items() if not isinstance(value, Reference)}
    options |= {key: str(file.path) for key, file in files.items()}
    for key in ("ca_file", "client_certificate", *secrets):
        options.pop(key, None)
    transport = {key: options.pop(key, None) for key in ("host", "port", "ssl_mode", "skip_tls_verification")}
    authority, certificate = files.get("ca_file"), files.get("client_certificate")
    if certificate is not None and certificate.path.stat().st_size > MAX_PEM:
        reason = f"client_certificate: {certificate.path} has more than {MAX_PEM:,} bytes"
        raise ConfigurationError(reason, hint="name a PEM file with certificate and key")
    return Profile(
        name=connection.name,
        type=connection.type,
        host=str(transport["host"] or "localhost").strip("[]"),
        port=int(transport["port"] or 0),
        ssl_mode=_ssl_mode(str(transport["ssl_mode"] or "disabled"), connection.name),
        skip_tls_verification=bool(transport["skip_tls_verification"]),
        auth_scheme=scheme,
        ca_pem=read_file(authority, where="ca_file", limit=MAX_PEM) if authority else "",
        client_certificate=str(certificate.path) if certificate else "",
        pinned=dict(connection.pinned),
        options=options,
        secrets=Secrets(values=dict(secrets)),
    )


def _ssl_mode(text: str, name: str) -> SslMode:
    try:
        return SslMode(text)
    except ValueError:
        hint = f"dragoman connections edit {name} --ssl-mode {SslMode.VERIFY_IDENTITY}"
        raise ConfigurationError(f"ssl_mode {text!r} is not one of {', '.join(SslMode)}", hint=hint) from None
