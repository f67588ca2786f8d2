"""Questions that wait for an answer in any tab, and how long."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import anyio

from .messages.routes import OpenQuestion, ServerEvent

if TYPE_CHECKING:
    from dragoman import Question

    from .event_stream import EventStream

ANSWER_SECONDS = 600.0
"""Seconds for an answer; then it counts as no."""


class Questions:
    """The open questions; the first answer of any tab counts."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._open: dict[str, OpenQuestion] = {}
        self._answered: dict[str, anyio.Event] = {}
        self._yes: set[str] = set()

    @property
    def open(self) -> list[OpenQuestion]:
        """The questions that wait."""
        return [*self._open.values()]

    async def ask(self, question: Question) -> bool:
        """Ask in every tab, and wait for the first answer; the runtime's `confirm`."""
        number = secrets.token_urlsafe(8)
        message = OpenQuestion(id=number, subject=question.subject, text=question.text, details=[*question.details])
        self._open[number], self._answered[number] = message, anyio.Event()
        self._stream.send(ServerEvent(kind="question", question=message))
        try:
            with anyio.move_on_after(ANSWER_SECONDS):
                await self._answered[number].wait()
            return number in self._yes
        finally:
            del self._open[number], self._answered[number]
            self._yes.discard(number)
            self._stream.send(ServerEvent(kind="answered", answered=number))

    def answer(self, number: str, *, yes: bool) -> bool:
        """Answer a question; False if it no longer waits."""
        if (answered := self._answered.get(number)) is None or answered.is_set():
            return False
        if yes:
            self._yes.add(number)
        answered.set()
        return True
