"""SSL contexts from a profile's TLS settings, and warnings about what they leave unchecked."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from .columns import Note
from .errors import ConfigurationError

if TYPE_CHECKING:
    from .connections import Profile


def context(profile: Profile) -> ssl.SSLContext | None:
    """Build the SSL context of a connection (E8, E12-E14, W6, W7).

    Args:
        profile: The saved connection.

    Returns:
        The context; None for plain HTTP.

    Raises:
        ConfigurationError: The CA certificates or the client certificate cannot be used.
    """
    if not profile.ssl_mode.https:
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = profile.ssl_mode is profile.ssl_mode.VERIFY_IDENTITY and not profile.skip_tls_verification
    if _verifies(profile):
        made.verify_mode = ssl.CERT_REQUIRED
        # A trusted intermediate or server certificate suffices: its root need not be configured.
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _trust(made, profile)
    else:
        made.verify_mode = ssl.CERT_NONE
    if profile.client_certificate:
        _identify(made, profile)
    return made


def warnings(profile: Profile) -> list[Note]:
    """List warnings about the TLS settings, such as a verify mode that verifies nothing."""
    if not profile.ssl_mode.verifies or _verifies(profile):
        return []
    reason = f"Skip TLS Verification is on: {profile.ssl_mode} accepts any certificate without a check"
    return [Note(code="tls-unverified", reason=reason, hint="turn off Skip TLS Verification")]


def _verifies(profile: Profile) -> bool:
    return profile.ssl_mode.verifies and not profile.skip_tls_verification


def _trust(made: ssl.SSLContext, profile: Profile) -> None:
    made.load_default_certs()
    if not profile.ca_pem.strip():
        return
    try:
        made.load_verify_locations(cadata=profile.ca_pem)
    except (ssl.SSLError, TypeError) as error:  # TypeError: the text is not ASCII, as PEM must be
        raise ConfigurationError(
            f"the CA file of {profile.name!r} contains no usable certificate: {error}",
            hint="choose a PEM file that begins with -----BEGIN CERTIFICATE-----",
        ) from error


def _identify(made: ssl.SSLContext, profile: Profile) -> None:
    path = profile.client_certificate
    try:
        # The password keeps OpenSSL from asking for one on the terminal; a key without one ignores it.
        made.load_cert_chain(path, password=profile.secrets.get("client_key_password"))
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror if error.errno and not isinstance(error, ssl.SSLError) else str(error)
        raise ConfigurationError(
            f"the client certificate {path} cannot be used: {reason}",
            hint="choose a PEM file that you can read, with the certificate and its unencrypted key",
        ) from error
