"""What a person may consent to while a connection opens, and where that is recorded."""

from __future__ import annotations

from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

import anyio.to_thread
from msgspec.structs import replace

from dragoman_api.endpoints import endpoint_name
from dragoman_api.errors import ConfigurationError, PermissionDeniedError

from .connections.saved_connections import expect_unedited
from .questions import Question, ask_consent
from .sandbox.reach.address_resolver import NearerError
from .sessions.untrusted_certificates import CanBePinned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman_api.connections import Profile
    from dragoman_api.errors import DragomanError

    from .connections.saved_connections import Connections, SavedConnection
    from .questions import Confirm


_NONE: Mapping[str, str] = {}


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
        """Prepare to ask.

        Args:
            connections: The saved connections.
            confirm: Asks; None refuses.
        """
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
        question = Question(about=subject, text=text, details=(error.message,))
        return await ask_consent(self._confirm, question)

    async def record(
        self, connection: SavedConnection, *, pins: Mapping[str, str] = _NONE, sign_in_at: str = "", trial: bool = False
    ) -> SavedConnection:
        """Return a connection with what a person agreed to, and save it beside consents that were saved meanwhile.

        Args:
            connection: The connection as it was when the person was asked.
            pins: Certificates by ``HOST:PORT``.
            sign_in_at: The token endpoint, ``HOST:PORT``; empty for none.
            trial: It was entered but may not be saved; the consent is recorded only if it is saved as it is.

        Raises:
            ConfigurationError: The saved connection was edited or removed meanwhile, so that the consent may be to a
                server that it no longer names.
        """

        def agreed(to: SavedConnection) -> SavedConnection:
            return replace(to, pinned={**to.pinned, **pins}, sign_in_at=sign_in_at or to.sign_in_at)

        def edit(saved: SavedConnection) -> SavedConnection:
            expect_unedited(connection, saved)
            return agreed(saved)

        try:
            return await anyio.to_thread.run_sync(self._connections.amend, connection.name, edit)
        except ConfigurationError:
            if trial:
                return agreed(connection)
            raise
