"""What a person may consent to while a connection opens, and where that is recorded."""

from __future__ import annotations

from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

import anyio.to_thread
from msgspec.structs import replace

from dragoman_api.endpoints import endpoint_name
from dragoman_api.errors import PermissionDeniedError

from .questions import Question
from .sandbox.reach.address_resolver import NearerError
from .sessions.untrusted_certificates import CanBePinned

if TYPE_CHECKING:
    from dragoman_api.connections import Profile
    from dragoman_api.errors import DragomanError

    from .connections.saved_connections import Connections, SavedConnection
    from .questions import Confirm


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

    async def after(self, error: DragomanError, connection: SavedConnection) -> SavedConnection | None:
        """Return the connection with what a person agreed to; None if the error stays.

        Args:
            error: Its cause, which no error of a driver has, says what can be agreed to.
            connection: The connection that did not open.
        """
        match error.__cause__:
            case NearerError() as nearer if nearer.now is not None:  # never to a cloud's credential endpoint
                if await self._agree("address", f"Let {connection.name} connect there from now on?", error):
                    note = partial(self._connections.reached.note, connection.name, {nearer.host: nearer.now})
                    await anyio.to_thread.run_sync(note)
                    return connection
            case CanBePinned() as found:
                text = f"Trust {'this certificate' if len(found.met) == 1 else 'these certificates'} from now on?"
                if await self._agree("certificate", text, error):
                    pins = {key: pin for each in found.met for key, pin in each.pin.items()}
                    return await self.save(replace(connection, pinned={**connection.pinned, **pins}), before=connection)
            case SignsInElsewhere() as elsewhere:
                text = f"Let {connection.name} sign in there from now on?"
                if await self._agree("sign-in", text, error):
                    return await self.save(replace(connection, sign_in_at=str(elsewhere)), before=connection)
        return None

    async def _agree(self, about: str, text: str, error: DragomanError) -> bool:
        question = Question(about=about, text=text, details=(error.message,))
        return self._confirm is not None and await self._confirm(question)

    async def save(self, made: SavedConnection, *, before: SavedConnection) -> SavedConnection:
        """Save a connection with what was agreed to, if it is saved as it was before; return it."""

        def save() -> None:
            names = [each.name for each in self._connections.list()]
            if before.name in names and self._connections.get(before.name) == before:
                self._connections.save(made, replace=True)

        await anyio.to_thread.run_sync(save)
        return made
