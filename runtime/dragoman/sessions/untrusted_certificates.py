"""Errors for a server whose certificate is not trusted, or not the pinned one, and how to pin it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from dragoman_api import tls
from dragoman_api.errors import ConfigurationError, ConnectionFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.sandbox.server_certificates import MetCertificate
    from dragoman_api.errors import Detail

UNTRUSTED, CHANGED = "certificate-untrusted", "certificate-changed"
"""Codes that only the host uses, because these errors report what the host saw."""


class CanBePinned(Exception):  # noqa: N818 - a cause that a person can remove, not an error
    """The cause of an error that a person can answer by pinning the certificates."""

    def __init__(self, met: Sequence[MetCertificate]) -> None:
        super().__init__(", ".join(certificate.server for certificate in met))
        self.met = met


def explained(error: ConnectionFailedError, met: Sequence[MetCertificate], *, name: str) -> ConnectionFailedError:
    """Return the error of a connection that was refused for a certificate, with the certificates that the host saw.

    Args:
        error: The driver's error; it is returned unchanged if no certificate explains it.
        met: The certificates that the connection's servers showed.
        name: The connection's name.
    """
    refused = [certificate for certificate in met if not certificate.trusted]
    if changed := [certificate for certificate in refused if certificate.profile.pinned_certificate]:
        return _changed(changed, name)
    if possible := [certificate for certificate in refused if not certificate.obstacle]:
        return _untrusted(possible, name)
    for certificate in refused:
        hint = error.hint
        if "ostname mismatch" in certificate.obstacle or "IP address mismatch" in certificate.obstacle:
            skip = f"dragoman connections edit {shlex.quote(name)} --ssl-mode verify-ca"
            hint = f"use the name in the certificate as Host, or do not check it\n{skip}"
        reason = f"its certificate is not trusted here, and could not be pinned either ({certificate.obstacle})"
        text = f"{certificate.server}: {reason}: {certificate}"
        return ConnectionFailedError(text, code=UNTRUSTED, hint=hint, details=dict(error.details))
    return error


def check_pins(wanted: Sequence[str], met: Sequence[MetCertificate], *, name: str) -> dict[str, str]:
    """Return the pins for the fingerprints that a person entered.

    Args:
        wanted: The fingerprints, as `tls.read_fingerprint` returns them.
        met: The certificates that the connection's servers showed.
        name: The connection's name.

    Raises:
        ConfigurationError: No server shows such a certificate, or it would be refused even if it were pinned.
    """
    edit = f"dragoman connections edit {shlex.quote(name)}"
    if missing := [fingerprint for fingerprint in wanted if fingerprint not in [c.fingerprint for c in met]]:
        answers = "; ".join(f"{c.server} shows {c}" for c in met) or "no server could be reached"
        hint = "compare the fingerprints with the server's operator: the wrong server may answer"
        raise ConfigurationError(f"no server shows the certificate {', '.join(missing)}: {answers}", hint=hint)
    chosen = [certificate for certificate in met if certificate.fingerprint in wanted]
    for certificate in chosen:
        if certificate.obstacle:
            reason = (
                f"{certificate.server}: its certificate would be refused even if it were pinned: {certificate.obstacle}"
            )
            raise ConfigurationError(
                reason, hint=f"{edit} --ssl-mode verify-ca\nchecks no name, but dates all the same"
            )
    return {key: value for certificate in chosen for key, value in certificate.pin.items()}


def _changed(certificates: Sequence[MetCertificate], name: str) -> ConnectionFailedError:
    parts = [
        f"{certificate.server}: it shows another certificate than the pinned one: {certificate}; pinned is SHA-256 "
        f"{tls.fingerprint(certificate.profile.pinned_certificate)}"
        for certificate in certificates
    ]
    edit = _edit(certificates, name)
    hint = f"{edit}\nonly if it was renewed: compare the new fingerprint with the server's operator first"
    return ConnectionFailedError("; ".join(parts), code=CHANGED, hint=hint, details=_details(certificates))


def _untrusted(certificates: Sequence[MetCertificate], name: str) -> ConnectionFailedError:
    parts = [f"{c.server}: its certificate is not trusted here: {c}" for c in certificates]
    hint = (
        f"{_edit(certificates, name)}\nonly if that is the fingerprint of your server's certificate; or trust its CA:\n"
        f"dragoman connections edit {shlex.quote(name)} --ca-file PATH"
    )
    error = ConnectionFailedError("; ".join(parts), code=UNTRUSTED, hint=hint, details=_details(certificates))
    error.__cause__ = CanBePinned(certificates)
    return error


def _edit(certificates: Sequence[MetCertificate], name: str) -> str:
    pins = dict.fromkeys(f"--pin-certificate {certificate.fingerprint}" for certificate in certificates)
    return " ".join([f"dragoman connections edit {shlex.quote(name)}", *pins])


def _details(certificates: Sequence[MetCertificate]) -> dict[str, Detail]:
    first = certificates[0]
    details: dict[str, Detail] = {"sent": False, "server": first.server, "fingerprint": first.fingerprint}
    pinned = first.profile.pinned_certificate
    return details | ({"pinned": tls.fingerprint(pinned)} if pinned else {})
