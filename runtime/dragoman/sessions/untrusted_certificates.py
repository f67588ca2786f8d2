"""The errors for a server whose certificate is not trusted, or not the pinned one, and how to pin it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from dragoman_api import tls
from dragoman_api.errors import ConfigurationError, ConnectionFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.sandbox.reach.server_certificates import MetCertificate
    from dragoman_api.errors import Detail

UNTRUSTED, CHANGED = "certificate-untrusted", "certificate-changed"
"""Codes that the host alone uses, because these errors say what the host met."""


class CanBePinned(Exception):  # noqa: N818 - a cause that a person can remove, not an error
    """The cause of an error that a person can answer by pinning the certificates."""

    def __init__(self, met: Sequence[MetCertificate]) -> None:
        super().__init__(", ".join(each.server for each in met))
        self.met = met


def explained(error: ConnectionFailedError, met: Sequence[MetCertificate], *, name: str) -> ConnectionFailedError:
    """Return the error of a connection that was refused for a certificate, with what the host met.

    Args:
        error: The driver's error; it stays as it is if the host met nothing that explains it.
        met: The certificates of the connection's servers.
        name: The connection's name.
    """
    refused = [each for each in met if not each.trusted]
    if changed := [each for each in refused if each.profile.pinned_certificate]:
        return _changed(changed, name)
    if possible := [each for each in refused if not each.obstacle]:
        return _untrusted(possible, name)
    for each in refused:
        hint = error.hint
        if "ostname mismatch" in each.obstacle or "IP address mismatch" in each.obstacle:
            skip = f"dragoman connections edit {shlex.quote(name)} --ssl-mode verify-ca"
            hint = f"use the name in the certificate as Host, or do not check it\n{skip}"
        reason = f"{each.server}: its certificate is not trusted here, and could not be pinned either ({each.obstacle})"
        return ConnectionFailedError(f"{reason}: {each}", code=UNTRUSTED, hint=hint, details=dict(error.details))
    return error


def check_pins(wanted: Sequence[str], met: Sequence[MetCertificate], *, name: str) -> dict[str, str]:
    """Return the pins for the fingerprints that a person entered.

    Args:
        wanted: The fingerprints, as `tls.read_fingerprint` returns them.
        met: The certificates of the connection's servers.
        name: The connection's name.

    Raises:
        ConfigurationError: No server shows such a certificate, or it would be refused even if it were pinned.
    """
    edit = f"dragoman connections edit {shlex.quote(name)}"
    if missing := [each for each in wanted if each not in [one.fingerprint for one in met]]:
        shown = "; ".join(f"{each.server} shows {each}" for each in met) or "no server could be reached"
        hint = "compare the fingerprints with the server's operator: the wrong server may answer"
        raise ConfigurationError(f"no server shows the certificate {', '.join(missing)}: {shown}", hint=hint)
    chosen = [each for each in met if each.fingerprint in wanted]
    for each in chosen:
        if each.obstacle:
            reason = f"{each.server}: its certificate would be refused even if it were pinned: {each.obstacle}"
            raise ConfigurationError(
                reason, hint=f"{edit} --ssl-mode verify-ca\nchecks no name, but dates all the same"
            )
    return {key: value for each in chosen for key, value in each.pin.items()}


def _changed(met: Sequence[MetCertificate], name: str) -> ConnectionFailedError:
    parts = [
        f"{each.server}: it shows another certificate than the pinned one: {each}; pinned is SHA-256 "
        f"{tls.fingerprint(each.profile.pinned_certificate)}"
        for each in met
    ]
    hint = f"{_edit(met, name)}\nonly if it was renewed: compare the new fingerprint with the server's operator first"
    return ConnectionFailedError("; ".join(parts), code=CHANGED, hint=hint, details=_details(met))


def _untrusted(met: Sequence[MetCertificate], name: str) -> ConnectionFailedError:
    parts = [f"{each.server}: its certificate is not trusted here: {each}" for each in met]
    hint = (
        f"{_edit(met, name)}\nonly if that is the fingerprint of your server's certificate; or trust its CA:\n"
        f"dragoman connections edit {shlex.quote(name)} --ca-file PATH"
    )
    made = ConnectionFailedError("; ".join(parts), code=UNTRUSTED, hint=hint, details=_details(met))
    made.__cause__ = CanBePinned(met)
    return made


def _edit(met: Sequence[MetCertificate], name: str) -> str:
    pins = dict.fromkeys(f"--pin-certificate {each.fingerprint}" for each in met)
    return " ".join([f"dragoman connections edit {shlex.quote(name)}", *pins])


def _details(met: Sequence[MetCertificate]) -> dict[str, Detail]:
    details: dict[str, Detail] = {"sent": False, "server": met[0].server, "fingerprint": met[0].fingerprint}
    pinned = met[0].profile.pinned_certificate
    return details | ({"pinned": tls.fingerprint(pinned)} if pinned else {})
