"""SSL contexts from a profile's TLS settings, pinned certificates, and warnings about what is left unchecked."""

from __future__ import annotations

import hashlib
import re
import ssl
from typing import TYPE_CHECKING, Any

from .columns import Note
from .errors import ConfigurationError
from .remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from .connections import Profile


UNTRUSTED = frozenset({18, 19, 20, 21, 24, 79})
"""OpenSSL's verify codes that mean a missing trust in the issuer, which a pinned certificate does not need."""

_DIGITS = re.compile(r"[0-9A-F]{64}")


class OtherCertificateError(ssl.SSLCertVerificationError):
    """A server shows another certificate than the pinned one, although that one has signed it."""


class _PinnedObject(ssl.SSLObject):
    """A TLS connection whose handshake fails unless the server shows exactly the pinned certificate."""

    pinned = b""

    def do_handshake(self) -> None:
        """Shake hands; nothing is sent to a server that shows another certificate."""
        super().do_handshake()
        if self.getpeercert(binary_form=True) != self.pinned:
            raise OtherCertificateError("another certificate than the pinned one")


def fingerprint(certificate: bytes) -> str:
    """Return the SHA-256 fingerprint of a DER certificate, as ``openssl x509 -fingerprint -sha256`` prints it.

    >>> len(fingerprint(b"").split(":"))
    32
    """
    return read_fingerprint(hashlib.sha256(certificate).hexdigest())


def read_fingerprint(text: str) -> str:
    """Return a SHA-256 fingerprint as `fingerprint` writes it; colons, case and what precedes a ``=`` do not matter.

    >>> read_fingerprint("sha256 Fingerprint=" + "ab" * 32) == ":".join(["AB"] * 32)
    True

    Raises:
        ValueError: It is not the fingerprint of a SHA-256 digest.
    """
    digits = text.rpartition("=")[2].strip().upper().replace(":", "")
    if not _DIGITS.fullmatch(digits):
        raise ValueError(f"{text[:120]!r} is not a SHA-256 fingerprint: 64 hexadecimal digits, with or without colons")
    return ":".join(digits[at : at + 2] for at in range(0, 64, 2))


def context(profile: Profile) -> ssl.SSLContext | None:
    """Build the SSL context of a connection (E8, E12-E14, W6, W7).

    A pinned certificate replaces every authority under the verify modes: the server must show exactly that one. Its
    dates are checked, and under Verify Identity its name too, as those of any other.

    Args:
        profile: The saved connection.

    Returns:
        The context; None for plain HTTP.

    Raises:
        ConfigurationError: The CA certificates or the client certificate cannot be used.
    """
    if not profile.ssl_mode.https:
        return None
    ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ssl_context.check_hostname = (
        profile.ssl_mode is profile.ssl_mode.VERIFY_IDENTITY and not profile.skip_tls_verification
    )
    if _verifies(profile):
        ssl_context.verify_mode = ssl.CERT_REQUIRED
        # A trusted intermediate or server certificate suffices: its root need not be configured.
        ssl_context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if pinned := profile.pinned_certificate:
            _pin(ssl_context, profile, pinned)
        else:
            _trust(ssl_context, profile)
    else:
        ssl_context.verify_mode = ssl.CERT_NONE
    if profile.client_certificate:
        _identify(ssl_context, profile)
    return ssl_context


def warnings(profile: Profile) -> list[Note]:
    """List warnings about the TLS settings, such as a verify mode that verifies nothing."""
    if not profile.ssl_mode.verifies or _verifies(profile):
        return []
    reason = f"Skip TLS Verification is on: {profile.ssl_mode} accepts any certificate without a check"
    return [Note(code="tls-unverified", reason=reason, hint="turn off Skip TLS Verification")]


def _verifies(profile: Profile) -> bool:
    return profile.ssl_mode.verifies and not profile.skip_tls_verification


def _pin(ssl_context: ssl.SSLContext, profile: Profile, certificate: bytes) -> None:
    try:
        ssl_context.load_verify_locations(cadata=certificate)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError(
            f"the certificate that is pinned for {profile.where} cannot be read: {error}",
            hint="remove the pinned certificate, and pin the server's",
            remedies=[Remedy(RemedyKind.UNPIN_CERTIFICATE)],
        ) from error
    # A pinned certificate may be an authority's: what it has signed is another certificate.
    members: dict[str, Any] = {"pinned": certificate}
    ssl_context.sslobject_class = type("PinnedObject", (_PinnedObject,), members)


def _trust(ssl_context: ssl.SSLContext, profile: Profile) -> None:
    ssl_context.load_default_certs()
    if not profile.ca_pem.strip():
        return
    try:
        ssl_context.load_verify_locations(cadata=profile.ca_pem)
    except (ssl.SSLError, TypeError) as error:  # TypeError: the text is not ASCII, as PEM must be
        raise ConfigurationError(
            f"the CA file of {profile.name!r} contains no usable certificate: {error}",
            hint="choose a PEM file that begins with -----BEGIN CERTIFICATE-----",
        ) from error


def _identify(ssl_context: ssl.SSLContext, profile: Profile) -> None:
    path = profile.client_certificate
    try:
        # The password keeps OpenSSL from asking for one on the terminal; a key without one ignores it.
        ssl_context.load_cert_chain(path, password=profile.secrets.get("client_key_password"))
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror if error.errno and not isinstance(error, ssl.SSLError) else str(error)
        raise ConfigurationError(
            f"the client certificate {path} cannot be used: {reason}",
            hint="choose a PEM file that you can read, with the certificate and its unencrypted key",
        ) from error
