"""Questions that need a person's consent, and the callback that answers them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

import anyio
import msgspec

from dragoman_api.errors import Refused
from dragoman_api.wording import failure

PERSONAL = frozenset({"address", "certificate", "sign-in"})
"""Questions that no blanket consent answers: it may be older than what they are about."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs a person's consent.

    Attributes:
        subject: ``permissions``, ``publisher``, ``sandbox``, ``download``, ``change``; ``address``: a host's name leads
            nearer; ``certificate``: a server's certificate is not trusted, and would be pinned; or ``sign-in``: the
            driver would reach a token endpoint besides the database.
        text: The question.
        details: What a person should see before answering.
        object: The object whose name a person types to agree; empty for yes or no.
        default: What an empty answer means.
    """

    subject: str
    text: str
    details: tuple[str, ...] = ()
    object: str = ""
    default: bool = False


Confirm = Callable[[Question], Awaitable[bool]]


async def ask_consent(confirm: Confirm | None, question: Question) -> bool:
    """Ask a question, and return whether a person agreed: only an answer of True is consent.

    Args:
        confirm: Asks; None, when nobody can be asked, is no consent.
        question: The question.

    Raises:
        Refused: Asking ended otherwise than by an answer or an error: by an exit, or by a cancellation of its own.
        Exception: What `confirm` raised.
    """
    if confirm is None:
        return False
    try:
        return await confirm(question) is True
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if anyio.current_effective_deadline() == -math.inf or (task is not None and task.cancelling()):
            raise  # the caller is cancelled
        raise Refused(f"nobody answered {question.text!r}: {failure(error)}") from error
