"""The options by which a person agrees to servers: pinned certificates, and a token endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

if TYPE_CHECKING:
    from dragoman.connections.saved_connections import SavedConnection

PIN = click.option(
    "--pin-certificate",
    "pins",
    metavar="FINGERPRINT",
    multiple=True,
    help="Trust the server's certificate with this SHA-256 fingerprint, and no other. Repeatable.",
)
SIGN_IN_AT = click.option(
    "--sign-in-at", metavar="HOST:PORT", help="Agree to the token endpoint there, a second server that is reached."
)
UNPIN = click.option("--unpin", is_flag=True, help="Forget the pinned certificates.")

_ELSEWHERE = frozenset({"host", "port", "hosts", "cloud_id", "ca_file"})
"""Fields that say which servers there are, or how they are trusted: a new value ends what was pinned before."""


def kept_pins(saved: SavedConnection, before: SavedConnection, *, unpin: bool, given: set[str]) -> SavedConnection:
    """Return an edited connection with the pins that still hold.

    Args:
        saved: The connection as it was edited.
        before: The connection before.
        unpin: A person wants no pins.
        given: The fields that were entered.
    """
    changed = any(saved.values.get(name) != before.values.get(name) for name in given & _ELSEWHERE)
    return replace(saved, pinned={} if unpin or changed else before.pinned)


def pins_of(saved: SavedConnection) -> dict[str, str]:
    """Return the fingerprints of pinned certificates by host and port."""
    from base64 import b64decode

    from dragoman_api.tls import fingerprint

    return {server: fingerprint(b64decode(pin)) for server, pin in saved.pinned.items()}


def agreed_of(saved: SavedConnection) -> dict[str, object]:
    """Return pins and the agreed token endpoint as members of a document; empty for none."""
    agreed = {"sign_in_at": saved.sign_in_at} if saved.sign_in_at else {}
    return {**({"pinned": pins_of(saved)} if saved.pinned else {}), **agreed}


def check_pin_options(pins: tuple[str, ...], *, no_connect: bool) -> None:
    """Refuse options that exclude each other. Raises ConfigurationError."""
    from dragoman_api.errors import ConfigurationError

    if pins and no_connect:
        reason = "--pin-certificate asks the server for its certificate, and --no-connect forbids that"
        raise ConfigurationError(reason, hint="leave out --no-connect")
