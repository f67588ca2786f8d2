"""What is asked of a person, and by whom it is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs a person's consent.

    Attributes:
        about: ``permissions``, ``sandbox``, or ``change``.
        text: The question.
        details: What a person should see before answering.
    """

    about: str
    text: str
    details: tuple[str, ...] = ()


Confirm = Callable[[Question], Awaitable[bool]]
