"""Questions that wait for a person's answer in one of the tabs."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import anyio

from .messages import Question, ServerEvent

if TYPE_CHECKING:
    from dragoman import Question as RuntimeQuestion

    from .event_stream import EventStream


ANSWER_SECONDS = 600.0
"""Seconds for an answer; then it counts as no."""


class Questions:
    """The open questions; the first answer of any tab counts."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._open: dict[str, Question] = {}
        self._answered: dict[str, anyio.Event] = {}
        self._yes: set[str] = set()

    @property
    def open(self) -> list[Question]:
        """The questions that wait."""
        return [*self._open.values()]

    async def ask(self, runtime_question: RuntimeQuestion) -> bool:
        """Ask in every tab, and wait for the first answer; the runtime's `confirm`."""
        number = secrets.token_urlsafe(8)
        question = Question(
            id=number, about=runtime_question.about, text=runtime_question.text, details=[*runtime_question.details]
        )
        self._open[number], self._answered[number] = question, anyio.Event()
        self._stream.send(ServerEvent(kind="question", question=question))
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
