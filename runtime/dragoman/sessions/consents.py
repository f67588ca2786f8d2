"""What a person may consent to while a connection opens: a certificate, an address, a second server to sign in at."""

from __future__ import annotations

from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

import anyio.to_thread
from msgspec.structs import replace

from dragoman.automations.consent import Question, ask_consent
from dragoman.connections.saved_connections import check_unedited
from dragoman.sandbox.reach.address_resolver import NearerError
from dragoman_api import tls
from dragoman_api.endpoints import endpoint_name
from dragoman_api.errors import ConfigurationError, ConnectionFailedError, PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.automations.consent import Confirm
    from dragoman.connections.saved_connections import Connections, SavedConnection
    from dragoman.sandbox.server_certificates import MetCertificate
    from dragoman_api.connections import Profile
    from dragoman_api.errors import Detail, DragomanError

UNTRUSTED, CHANGED = "certificate-untrusted", "certificate-changed"
"""Codes that only the host uses, because these errors report what the host saw."""
_NONE: Mapping[str, str] = {}


class CanBePinned(Exception):  # noqa: N818 - a cause that a person can remove, not an error
    """The cause of an error that a person can answer by pinning the certificates."""

    def __init__(self, certificates: Sequence[MetCertificate]) -> None:
        super().__init__(", ".join(certificate.server for certificate in certificates))
        self.met = certificates


def explained(
    error: ConnectionFailedError, certificates: Sequence[MetCertificate], *, name: str
) -> ConnectionFailedError:
    """Return the error of a connection that was refused for a certificate, with the certificates that the host saw."""
    refused = [certificate for certificate in certificates if not certificate.trusted]
    if changed := [certificate for certificate in refused if certificate.profile.pinned_certificate]:
        return _changed(changed, name)
    if possible := [certificate for certificate in refused if not certificate.obstacle]:
        return _untrusted(possible, name)
    for certificate in refused:
        hint = error.hint
        if "ostname mismatch" in certificate.obstacle or "IP address mismatch" in certificate.obstacle:
            skip = f"dragoman connections edit {quote(name)} --ssl-mode verify-ca"
            hint = f"use the name in the certificate as Host, or do not check it\n{skip}"
        reason = f"its certificate is not trusted here, and could not be pinned either ({certificate.obstacle})"
        text = f"{certificate.server}: {reason}: {certificate}"
        return ConnectionFailedError(text, code=UNTRUSTED, hint=hint, details=dict(error.details))
    return error


def check_pins(fingerprints: Sequence[str], certificates: Sequence[MetCertificate], *, name: str) -> dict[str, str]:
    """Return the pins for the fingerprints that a person entered.

    Raises:
        ConfigurationError: No server shows such a certificate, or it would be refused even if it were pinned.
    """
    edit = f"dragoman connections edit {quote(name)}"
    if missing := [
        fingerprint for fingerprint in fingerprints if fingerprint not in [c.fingerprint for c in certificates]
    ]:
        answers = "; ".join(f"{c.server} shows {c}" for c in certificates) or "no server could be reached"
        hint = "compare the fingerprints with the server's operator: the wrong server may answer"
        raise ConfigurationError(f"no server shows the certificate {', '.join(missing)}: {answers}", hint=hint)
    chosen = [certificate for certificate in certificates if certificate.fingerprint in fingerprints]
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
        f"dragoman connections edit {quote(name)} --ca-file PATH"
    )
    error = ConnectionFailedError("; ".join(parts), code=UNTRUSTED, hint=hint, details=_details(certificates))
    error.__cause__ = CanBePinned(certificates)
    return error


def _edit(certificates: Sequence[MetCertificate], name: str) -> str:
    pins = dict.fromkeys(f"--pin-certificate {certificate.fingerprint}" for certificate in certificates)
    return " ".join([f"dragoman connections edit {quote(name)}", *pins])


def _details(certificates: Sequence[MetCertificate]) -> dict[str, Detail]:
    first = certificates[0]
    details: dict[str, Detail] = {"sent": False, "server": first.server, "fingerprint": first.fingerprint}
    pinned = first.profile.pinned_certificate
    return details | ({"pinned": tls.fingerprint(pinned)} if pinned else {})


class SignsInElsewhere(Exception):  # noqa: N818 - a cause that a person can remove, not an error
    """The cause of an error that a person can answer by agreeing to a token endpoint, ``HOST:PORT``."""


def check_sign_in(connection: SavedConnection, profile: Profile) -> None:
    """Refuse a token endpoint that a person has not agreed to: the driver's process would reach it.

    Raises:
        PermissionDeniedError: It is another server than those of the database, and was not agreed to.
    """
    token = profile.token_endpoint
    if token is None or (token.host, token.port) in profile.endpoints:
        return
    where = endpoint_name(token.host, token.port)
    if connection.sign_in_at == where:
        return
    before = f"; you agreed to {connection.sign_in_at}" if connection.sign_in_at else ""
    error = PermissionDeniedError(
        f"{connection.name} signs in at {where}, a second server that the driver would reach{before}; nothing was sent",
        code="sign-in-not-agreed",
        hint=f"dragoman connections edit {quote(connection.name)} --sign-in-at {quote(where)}",
        details={"server": where},
    )
    raise error from SignsInElsewhere(where)


class Consents:
    """Asks about an error that a person's consent removes, and records the consent with the connection."""

    def __init__(self, connections: Connections, confirm: Confirm | None) -> None:
        """Prepare to ask."""
        self._connections, self._confirm = connections, confirm

    async def after(self, error: DragomanError, connection: SavedConnection, *, trial: bool) -> SavedConnection | None:
        """Return the connection with what a person agreed to; None if the error stays.

        Args:
            error: Its cause, which no error of a driver has, says what can be agreed to.
            connection: The connection that did not open.
            trial: It was entered but may not be saved; it is recorded only if it is saved as it is.

        Raises:
            ConfigurationError: The saved connection was edited or removed before the person answered.
        """
        match error.__cause__:
            case NearerError() as nearer if nearer.now is not None:  # never to a cloud's credential endpoint
                if await self._agree("address", f"Let {connection.name} connect there from now on?", error):
                    note = partial(self._connections.reached.note, connection.name, {nearer.host: nearer.now})
                    await anyio.to_thread.run_sync(note)
                    return connection
            case CanBePinned() as rejection:
                text = f"Trust {'this certificate' if len(rejection.met) == 1 else 'these certificates'} from now on?"
                if await self._agree("certificate", text, error):
                    pins = {key: pin for certificate in rejection.met for key, pin in certificate.pin.items()}
                    return await self.record(connection, pins=pins, trial=trial)
            case SignsInElsewhere() as elsewhere:
                text = f"Let {connection.name} sign in there from now on?"
                if await self._agree("sign-in", text, error):
                    return await self.record(connection, sign_in_at=str(elsewhere), trial=trial)
        return None

    async def _agree(self, subject: str, text: str, error: DragomanError) -> bool:
        question = Question(subject=subject, text=text, details=(error.message,))
        return await ask_consent(self._confirm, question)

    async def record(
        self, connection: SavedConnection, *, pins: Mapping[str, str] = _NONE, sign_in_at: str = "", trial: bool = False
    ) -> SavedConnection:
        """Return a connection with what a person agreed to, and save it beside consents that were saved meanwhile.

        Raises:
            ConfigurationError: The saved connection was edited or removed meanwhile, so that the consent may be to a
                server that it no longer names.
        """

        def agreed(to: SavedConnection) -> SavedConnection:
            return replace(to, pinned={**to.pinned, **pins}, sign_in_at=sign_in_at or to.sign_in_at)

        def edit(saved: SavedConnection) -> SavedConnection:
            check_unedited(connection, saved)
            return agreed(saved)

        try:
            return await anyio.to_thread.run_sync(self._connections.amend, connection.name, edit)
        except ConfigurationError:
            if trial:
                return agreed(connection)
            raise
