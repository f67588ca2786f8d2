"""The console: requests in the server's own language, and their answers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from .errors import FAILED
from .grid import FORMAT
from .options import CONNECTION, Command, opens
from .output import dumps, page_document, plain, plain_lines, safe_json, say_notes, write_json, write_page, write_text

if TYPE_CHECKING:
    from dragoman.session import Session
    from dragoman_api.console import Answer

    from .options import Options

ERRORS = 400
"""The HTTP status from which an answer is a failure."""


@click.command(cls=Command)
@CONNECTION
@click.argument("text", required=False)
@click.option("-f", "--file", metavar="FILE", help="Requests from a file; - is stdin. Shows one line per request.")
@click.option("--stop-on-error", is_flag=True, help="Send nothing more after the first failure.")
@FORMAT
@opens
async def console(
    options: Options, session: Session, *, text: str | None, file: str | None, stop_on_error: bool, format: str
) -> int | None:
    """Send requests in the server's own language: TEXT, or those of a file."""
    shape = options.format_or(format)
    requests = await session.parse(await _read(text, file))
    documents, failed = [], False
    for number, request in enumerate(requests, 1):
        answer = await session.execute(request)
        bad = answer.status >= ERRORS
        failed = failed or bad
        if shape == "json":
            documents.append(_document(answer))
        elif file and shape == "table":
            _summarise(number, answer, f"{plain(file)}:{request.line}" if bad else "")
        else:
            _show(answer, shape)
            if bad or len(requests) > 1:
                options.say(f"{number} {answer.request.method} {answer.request.path}  {answer.status}")
        if shape != "json":
            say_notes([*answer.notes, *(answer.page.notes if answer.page else ())])
        if bad and stop_on_error:
            break
    if shape == "json":
        write_json({"answers": documents})
    return FAILED if failed else None


async def _read(text: str | None, file: str | None) -> str:
    if (text is None) == (file is None):
        raise click.UsageError("give either TEXT or -f FILE")
    if text is not None:
        return text
    import anyio

    if file == "-":
        return await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
    return await anyio.Path(str(file)).read_text(encoding="utf-8")


def _summarise(number: int, answer: Answer, where: str) -> None:
    request = f"{plain(answer.request.method)} {plain(answer.request.path)}"
    outcome = f"FAILED  {_reason(answer)}  {where}" if where else "ok"
    sys.stdout.write(f"{number} {request:<24}  {answer.status}  {outcome}\n")


def _reason(answer: Answer) -> str:
    text = plain(" ".join(answer.text.split()))
    return text if len(text) <= 120 else f"{text[:120]}…"


def _show(answer: Answer, format: str) -> None:
    if answer.page is not None:
        write_page(answer.page, format=format)
    elif answer.kind == "json" and format == "ndjson":
        sys.stdout.write(dumps(_body(answer)) + "\n")
    elif answer.kind == "json":
        sys.stdout.write(_formatted(answer.text) + "\n")
    elif answer.text:
        write_text(answer.text.removesuffix("\n"))


def _formatted(text: str) -> str:
    import msgspec

    try:
        return safe_json(msgspec.json.format(text, indent=2))
    except msgspec.DecodeError:  # JSON by its content type only
        return plain_lines(text)


def _body(answer: Answer) -> object:
    from dragoman_api.cells import Json

    return Json(answer.text) if answer.kind == "json" else answer.text


def _document(answer: Answer) -> dict[str, Any]:
    about = {
        "request": {"method": answer.request.method, "path": answer.request.path, "body": answer.request.body},
        "status": answer.status,
        "kind": answer.kind,
        "notes": list(answer.notes),
    }
    if answer.page is not None:
        return about | {"page": page_document(answer.page)}
    return about | {"body": _body(answer)}
