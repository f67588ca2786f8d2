"""The console: many requests in one text, the answers, and a history without secrets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman import DragomanError
from dragoman_api.errors import ConfigurationError
from dragoman_workbench.background_work import nobody_waits
from dragoman_workbench.cells import answer_page
from dragoman_workbench.failures import failure_of
from dragoman_workbench.messages.work import (
    Completed,
    ConsoleAnswer,
    Executed,
    History,
    Parsed,
    ParsedRequest,
    UnsentRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman import Answer
    from dragoman_api import ConsoleRequest
    from dragoman_workbench.messages.base import RequestFailure
    from dragoman_workbench.messages.connections import OnConnection
    from dragoman_workbench.messages.work import CompleteAsked, ExecuteAsked, ParseAsked
    from dragoman_workbench.open_connections import OpenConnections
    from dragoman_workbench.remembered import Remembered

FAILED_STATUS = 400


class ConsoleRoutes:
    """Routes of the console."""

    def __init__(self, connections: OpenConnections, remembered: Remembered) -> None:
        self._open, self._remembered = connections, remembered

    async def parse(self, request: ParseAsked) -> Parsed:
        """Split a text into requests; nothing is sent."""
        session = await self._open.session(request.connection)
        console_requests = await session.parse(request.text, variables=request.variables)
        return Parsed(
            requests=[
                ParsedRequest(
                    request=console_request.request,
                    writes=console_request.writes,
                    line=console_request.line,
                    curl=session.curl.command(console_request.request),
                    docs=session.request_docs(console_request),
                )
                for console_request in console_requests
            ]
        )

    async def execute(self, request: ExecuteAsked) -> Executed:
        """Send requests in order, until a person stops waiting for them."""
        session = await self._open.session(request.connection)
        if request.remember:
            await self._remembered.note(request.connection, request.text)
        parsed = await session.parse(request.text, variables=request.variables)
        following = sorted({console_request.line for console_request in parsed})
        console_requests = _chosen(parsed, request.line)
        answers: list[ConsoleAnswer] = []
        error: RequestFailure | None = None
        sent = 0
        for console_request in console_requests:
            if nobody_waits():
                break
            sent += 1
            began = time.perf_counter()
            try:
                parts = [*_chain(await session.execute(replace(console_request, tabular=True)))]
            except DragomanError as failure:
                error = failure_of(failure, connection=request.connection)
                break
            seconds = time.perf_counter() - began
            until = next((line - 1 for line in following if line > console_request.line), 0)
            answers += [_describe_answer(part, console_request, until=until, seconds=seconds) for part in parts]
            if request.stop_on_error and any(part.failed or part.status >= FAILED_STATUS for part in parts):
                break
        return Executed(answers=answers, error=error, unsent=[_unsent(unsent) for unsent in console_requests[sent:]])

    async def complete(self, request: CompleteAsked) -> Completed:
        """Suggest how to continue a text."""
        session = await self._open.session(request.connection)
        completions = await session.complete(request.text, request.position)
        return Completed(suggestions=completions.suggestions)

    async def history(self, request: OnConnection) -> History:
        """Return what was run on a connection."""
        return History(entries=await self._remembered.history(request.connection))


def _chosen(requests: list[ConsoleRequest], line: int | None) -> list[ConsoleRequest]:
    """Return the request that holds a line, or all."""
    if line is None:
        return requests
    before = [request for request in requests if request.line <= line]
    if not before:
        raise ConfigurationError(f"no request begins at or above line {line}", code="console-syntax")
    return before[-1:]


def _chain(answer: Answer | None) -> Iterator[Answer]:
    while answer is not None:
        yield answer
        answer = answer.next


def _unsent(request: ConsoleRequest) -> UnsentRequest:
    return UnsentRequest(line=request.line, method=request.request.method, path=request.request.path)


def _describe_answer(answer: Answer, request: ConsoleRequest, *, until: int, seconds: float) -> ConsoleAnswer:
    return ConsoleAnswer(
        line=request.line,
        until=until,
        kind=answer.kind.value,
        status=answer.status,
        request=answer.request,
        page=None if answer.page is None else answer_page(answer.page, seconds=seconds),
        text=answer.text,
        notes=answer.notes,
        title=answer.title,
        failed=answer.failed,
        seconds=seconds,
        writes=request.writes,
    )
