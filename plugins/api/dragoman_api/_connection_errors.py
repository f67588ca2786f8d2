"""Errors of the network and of TLS as sentences that a person can act on (E40, W37)."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import TYPE_CHECKING

from . import tls
from .connections import SslMode
from .errors import ConnectionFailedError
from .remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .connections import Profile
    from .errors import Detail

    _Diagnosis = tuple[str, str] | tuple[str, str, Remedy]  # the reason, what to do in words, and as data

_SKIP = "set SSL Mode to Required (skip verify) or turn on Skip TLS Verification"
_CLIENT = "configure a client certificate that the server's CA has signed, or ask the server's operator"
_TRUST_CA = "save that CA's certificate to a file and enter it as CA File"
_DATES = "renew the server's certificate and compare the clocks; to connect without the check, " + _SKIP

# OpenSSL's verify codes, stable since 1.0 (x509_vfy.h).
_UNVERIFIED = {
    9: ("its certificate is not valid yet", _DATES),
    10: ("its certificate has expired", _DATES),
    18: ("its certificate is self-signed", "if it is the right one, save it to a file and enter it as CA File"),
    19: ("its certificate chain ends in a CA that is not trusted here", _TRUST_CA),
    20: ("its certificate was signed by a CA that is not trusted here", _TRUST_CA),
    21: ("its certificate was signed by a CA that is not trusted here", _TRUST_CA),
    **dict.fromkeys((24, 79), ("its certificate was signed by a certificate that is not a CA", _SKIP)),
    62: ("its certificate was made for another host name", "use the name in the certificate as Host"),
    64: ("its certificate was made for another address", "use the name in the certificate as Host"),
}

# Alerts that a server sends about a client certificate or its absence, as OpenSSL spells them in a reason.
_ALERTS = {
    "CERTIFICATE_REQUIRED": "the server asks for a client certificate",
    "HANDSHAKE_FAILURE": "the server ended the TLS handshake; it may ask for a client certificate",
    "ALERT_UNKNOWN_CA": "the server does not trust the CA of the client certificate",
    "ALERT_BAD_CERTIFICATE": "the server rejected the client certificate",
    "ALERT_CERTIFICATE_EXPIRED": "the client certificate has expired",
    "ALERT_CERTIFICATE_UNKNOWN": "the server rejected the client certificate",
    "ALERT_ACCESS_DENIED": "the server rejected the client certificate",
}

# OpenSSL's errors when it reads a plain HTTP server's bytes as a TLS record.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "UNEXPECTED_MESSAGE", "RECORD_LAYER")

_OLD_TLS = ("ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "LEGACY_SIGALG", "legacy sigalg")
# The last two: signatures with MD5 and SHA-1, which TLS below 1.2 needs; Pythons older than the reason print its text.

_REFUSALS = {
    errno.ECONNREFUSED: ("nothing listens there", "check Host and Port, and that the server is running"),
    errno.EHOSTUNREACH: ("the host cannot be reached", "check Host and the network"),
    errno.ENETUNREACH: ("the network cannot be reached", "check the network"),
    errno.ETIMEDOUT: ("the connection attempt timed out", "check Host, Port and the firewalls on the way"),
}

HTTPS_PORT = (b"HTTP request to an HTTPS server", b"plain HTTP request was sent to HTTPS port", b"SSL-enabled server")
"""Texts that Go, nginx and Apache send, with status 400, for plain HTTP on a TLS port."""

CLIENT_CERTIFICATE = (b"No required SSL certificate was sent", b"The SSL certificate error")
"""Texts that nginx sends, with status 400, to a client without a certificate, or with one that it rejects."""

TEXT_LIMIT = 300
"""Characters of a server's text that an error quotes."""


def shorten(text: str) -> str:
    """Return a text on one line, cut before an error becomes unreadable."""
    flat = " ".join(text.split())
    return flat if len(flat) <= TEXT_LIMIT else flat[:TEXT_LIMIT] + "…"


def _set_mode(mode: SslMode) -> Remedy:
    return Remedy(RemedyKind.EDIT_FIELD, {"field": "ssl_mode", "value": str(mode)})


def failure(
    profile: Profile,
    reason: str,
    *,
    hint: str = "",
    remedies: Iterable[Remedy] = (),
    sent: bool,
    untrusted: bool = False,
) -> ConnectionFailedError:
    """Build the error of a connection that did not work.

    Args:
        profile: The saved connection.
        reason: One clause; its subject is the server or "it".
        hint: What to do, in words.
        remedies: What to do, as data.
        sent: Whether the server may have received the request; False only if it certainly has not.
        untrusted: Whether the server's certificate is one that a person could pin.
    """
    details: dict[str, Detail] = {"sent": sent} | ({"certificate": "untrusted"} if untrusted else {})
    return ConnectionFailedError(f"{profile.where}: {reason}", hint=hint, remedies=remedies, details=details)


def diagnose(error: BaseException, profile: Profile, *, sent: bool) -> ConnectionFailedError:
    """Build the error that says why no answer arrived.

    Args:
        error: The exception that aiohttp, ssl or the operating system raised.
        profile: The saved connection.
        sent: Whether the server may have received the request.
    """
    chain = list(_chain(error))
    reason, hint, *remedies = (
        _certificate(chain, profile)
        or _handshake(chain, profile)
        or _network(chain, profile)
        or _closed(error, profile)
    )
    untrusted = any(map(_is_untrusted, chain))
    return failure(profile, reason, hint=hint, remedies=remedies, sent=sent, untrusted=untrusted)


def plain_on_tls(profile: Profile) -> ConnectionFailedError:
    """Build the error for plain HTTP on a TLS port."""
    reason, hint = "it expects HTTPS, but SSL Mode is Disabled", "set SSL Mode to Verify Identity"
    return failure(profile, reason, hint=hint, remedies=[_set_mode(SslMode.VERIFY_IDENTITY)], sent=False)


def certificate_wanted(profile: Profile) -> ConnectionFailedError:
    """Build the error for a gateway that turns a client away for its certificate; nothing came past it."""
    reaction = "rejects the client certificate" if profile.client_certificate else "asks for a client certificate"
    return failure(profile, f"the server, or a gateway before it, {reaction} (HTTP 400)", hint=_CLIENT, sent=False)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_untrusted(error: BaseException) -> bool:
    unknown = isinstance(error, ssl.SSLCertVerificationError) and getattr(error, "verify_code", 0) in tls.UNTRUSTED
    return unknown or isinstance(error, tls.OtherCertificateError)


def _certificate(chain: list[BaseException], profile: Profile) -> _Diagnosis | None:
    for error in chain:
        if _is_untrusted(error) and (pinned := profile.pinned_certificate):
            reason = f"its certificate is not the pinned one, whose SHA-256 fingerprint is {tls.fingerprint(pinned)}"
            return reason, "test the connection: that shows the new certificate", Remedy(RemedyKind.TEST_CONNECTION)
        if isinstance(error, ssl.SSLCertVerificationError) and hasattr(error, "verify_code"):
            reason, hint = _UNVERIFIED.get(error.verify_code, (f"TLS: {error.verify_message}", _SKIP))
            if error.verify_code in (62, 64):
                return reason, f"{hint}, or skip the check of the name", _set_mode(SslMode.VERIFY_CA)
            if _SKIP not in hint:
                hint += f", or {_SKIP}"
            return reason, hint
    return None


def _handshake(chain: list[BaseException], profile: Profile) -> _Diagnosis | None:
    # aiohttp rebuilds the exception of an alert after the handshake, so only its text is left.
    texts = [str(error) for error in chain if isinstance(error, ssl.SSLError) or "[SSL" in str(error)]
    text = next(iter(texts), "")
    if not text:
        return None
    for name, reason in _ALERTS.items():
        if name in text:
            return reason, _CLIENT
    if any(name in text for name in _OLD_TLS):
        return "it only supports TLS below 1.2", "enable TLS 1.2 or 1.3 on the server"
    if any(name in text for name in _NOT_TLS):
        reason = f"it speaks plain HTTP, but SSL Mode is {profile.ssl_mode}"
        return reason, "set SSL Mode to Disabled", _set_mode(SslMode.DISABLED)
    return f"TLS failed: {text}", ""


def _network(chain: list[BaseException], profile: Profile) -> _Diagnosis | None:
    for error in chain:
        if isinstance(error, socket.gaierror):
            return f"the name {profile.host!r} cannot be resolved", "check Host"
        if isinstance(error, OSError) and error.errno == errno.EACCES:  # the sandbox refused
            return error.strerror or "the sandbox does not allow it", ""
        if isinstance(error, OSError) and error.errno in _REFUSALS:
            return _REFUSALS[error.errno]
    return None


def _closed(error: BaseException, profile: Profile) -> _Diagnosis:
    detail = shorten(str(getattr(error, "message", error))).removesuffix(" ^") or "connection reset"
    if profile.ssl_mode.https:
        hint = "check Port, and that it serves HTTPS; a server that asks for a client certificate may fail so too"
        return f"it gave no HTTP answer ({detail})", hint
    hint = "if it serves HTTPS, set SSL Mode to Verify Identity"
    return f"it gave no HTTP answer ({detail})", hint, _set_mode(SslMode.VERIFY_IDENTITY)
