"""Questions that need a person's consent, and the callback that answers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

PERSONAL = frozenset({"address", "certificate", "reference", "sign-in"})
"""Questions that no blanket consent answers: it may be older than what they are about."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs a person's consent.

    Attributes:
        about: ``permissions``, ``publisher``, ``sandbox``, ``change``; ``reference``: a text that may be a driver's
            would be read as a reference, which could run a command; ``address``: a host's name leads nearer;
            ``certificate``: a server's certificate is not trusted, and would be pinned; or ``sign-in``: the driver
            would reach a token endpoint besides the database.
        text: The question.
        details: What a person should see before answering.
    """

    about: str
    text: str
    details: tuple[str, ...] = ()


Confirm = Callable[[Question], Awaitable[bool]]
