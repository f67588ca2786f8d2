"""The console: requests in the server's own language, their answers, and expectations on them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

from dragoman_api.cells import Json
from dragoman_api.json_text import indented

from . import output
from .command_files import command_file
from .errors import FAILED
from .opening import opens
from .options import CONNECTION, Command
from .read_options import AS_CURL, formatted, viewed, write_curl
from .vertical_rows import write_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dragoman.console.expectations import Verdict
    from dragoman.sessions.session import Session
    from dragoman_api.console import Answer, ConsoleRequest

    from .options import Options

ERRORS = 400
"""The lowest HTTP status that is a failure, unless a request expects another one."""


class _Ended(NamedTuple):
    """A request, its answer, and its failures, each with its line in the text."""

    number: int
    line: int
    answer: Answer
    verdicts: Sequence[Verdict]
    failures: list[tuple[str, int]]


@click.command(cls=Command)
@CONNECTION
@click.argument("text", required=False)
@click.option(
    "-f",
    "--file",
    metavar="FILE",
    callback=command_file(),
    help="Requests from a file; - is stdin. Shows one line per request.",
)
@click.option("--bodies", is_flag=True, help="With -f, show the whole answers, too.")
@click.option("--var", "pairs", multiple=True, metavar="NAME=VALUE", help="The value of ${NAME}. Repeatable.")
@click.option("--stop-on-error", is_flag=True, help="Stop after the first failure.")
@click.option("--table", is_flag=True, help="Show aggregations as tables, too, and fail if an answer has none.")
@AS_CURL
@formatted
@viewed
@opens
async def console(
    options: Options, session: Session, *, text: str | None, file: str | None, pairs: tuple[str, ...],
    stop_on_error: bool, bodies: bool, table: bool, as_curl: bool,
    format: str,
) -> int | None:  # fmt: skip
    """Send requests in the server's own language, from TEXT or a file.

    A comment "# expect status 200" or "# expect hits.total.value >= 5" below a request fails the
    command if the answer differs.
    """
    from dragoman.console import expectations
    from dragoman.console.variables import fill

    shape = options.format_or(format)
    tabular = table or shape in output.SEPARATED
    filled = fill(await _read(text, file), _variables(pairs))
    requests = await session.parse(filled)
    if as_curl:
        write_curl(options, session, [request.request for request in requests])
        return None
    expected, notes = expectations.read(filled, requests), expectations.near_misses(filled)
    if shape != "json":
        output.say_notes(notes)
    ended: list[_Ended] = []
    try:
        for number, request in enumerate(requests, 1):
            answer = await session.execute(replace(request, tabular=tabular))
            verdicts = expectations.judge(answer, expected[number - 1])
            misshapen = _misshapen(request, answer, "--table" if table else f"--format {shape}") if tabular else ()
            failures = [*_failures(request, answer, verdicts), *misshapen]
            ended.append(_Ended(number, request.line, answer, verdicts, failures))
            if shape != "json":
                _tell(options, ended[-1], shape, None if bodies or tabular else file, alone=len(requests) == 1)
            if ended[-1].failures and stop_on_error:
                break
    finally:
        failed = sum(bool(outcome.failures) for outcome in ended)
        if shape == "json" and (ended or not requests):  # report the answers received, whatever ended the rest
            document: dict[str, Any] = {"answers": [_document(outcome) for outcome in ended], "requests": len(requests)}
            output.write_json(document | {"failed": failed} | ({"notes": notes} if notes else {}))
    return FAILED if failed else None


def _variables(pairs: Sequence[str]) -> dict[str, str]:
    from dragoman.console.variables import NAME

    variables = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (equals and NAME.fullmatch(name)):
            raise click.UsageError(f"--var {pair!r} is not of the form NAME=VALUE")
        variables[name] = value
    return variables


async def _read(text: str | None, file: str | None) -> str:
    if (text is None) == (file is None):
        raise click.UsageError("use either TEXT or -f FILE")
    if text is not None:
        return text
    import anyio
    import anyio.to_thread

    try:
        if file == "-":
            return await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        read = partial(Path(str(file)).read_text, encoding="utf-8")
        return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)  # it may be a pipe
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is not UTF-8 text: {error}") from None


def _failures(request: ConsoleRequest, answer: Answer, verdicts: Sequence[Verdict]) -> Iterator[tuple[str, int]]:
    from dragoman.console.expectations import STATUS

    if answer.status >= ERRORS and not any(verdict.expectation.subject == STATUS for verdict in verdicts):
        yield _shortened(answer.text), request.line
    if answer.failed:
        yield _shortened(answer.failed), request.line
    yield from ((str(verdict), verdict.expectation.line) for verdict in verdicts if verdict.got)


def _misshapen(request: ConsoleRequest, answer: Answer, option: str) -> Iterator[tuple[str, int]]:
    """Yield that an answer without rows was asked for as a table; an answer that reports an error fails for that."""
    if answer.status < ERRORS and any(part.page is None and part.text for part in _parts(answer)):
        yield f"the answer is not a table: leave out {option}, or use --json", request.line


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:120]}…"


def _tell(options: Options, ended: _Ended, shape: str, file: str | None, *, alone: bool) -> None:
    answer = ended.answer
    if file and shape == "table":
        _summarise(ended, file)
        output.say_notes(answer.notes)
        return
    _show(options, answer, shape, first=ended.number == 1)
    if ended.failures or not alone:
        options.say(f"{ended.number} {answer.request.method} {answer.request.path}  {answer.status}")
    for reason, line in ended.failures:
        if (
            answer.status < ERRORS or line != ended.line or shape in output.SEPARATED
        ):  # else the error's own text was shown already
            output.say(f"failed: {reason}   line {line}")


def _summarise(ended: _Ended, file: str) -> None:
    request = f"{output.plain(ended.answer.request.method)} {output.plain(ended.answer.request.path)}"
    head = f"{ended.number} {request:<24}  {ended.answer.status}  "
    for reason, line in ended.failures:
        sys.stdout.write(f"{head}FAILED  {output.plain(reason)}   {output.plain(file)}:{line}\n")
        head = " " * len(head)
    if not ended.failures:
        sys.stdout.write(f"{head}ok\n")


def _parts(answer: Answer | None) -> Iterator[Answer]:
    while answer is not None:
        yield answer
        answer = answer.next


def _show(options: Options, answer: Answer, format: str, *, first: bool) -> None:
    for number, part in enumerate(_parts(answer)):
        if (number or not first) and part.page is not None and format in output.SEPARATED:
            sys.stdout.write("\n")  # between tables of different columns
        if part.title and format == "table":
            output.write_text(output.plain(part.title))
        if part.page is not None:
            write_rows(
                part.page, format=format, escape=options.escape_formulas, vertical=options.vertical, wide=options.wide
            )
            if format == "table" and not part.page.cells:
                output.say("no rows")
        elif format in output.SEPARATED:
            pass  # it is not a table, which `_failures` or `_misshapen` says
        elif part.kind == "json" and format == "ndjson":
            sys.stdout.write(output.dumps(_body(part)) + "\n")
        elif part.kind == "json":
            sys.stdout.write(_formatted(part.text) + "\n")
        elif part.text:
            output.write_text(part.text.removesuffix("\n"))
        output.say_notes([*part.notes, *(part.page.notes if part.page else ())])


def _formatted(text: str) -> str:
    try:
        return output.safe_json(indented(text.encode()))
    except ValueError:  # JSON by its content type only, or too deep
        return output.plain_lines(text)


def _body(answer: Answer) -> object:
    return Json(answer.text) if answer.kind == "json" else answer.text


def _document(ended: _Ended) -> dict[str, Any]:
    answer = ended.answer
    return {
        "request": {"method": answer.request.method, "path": answer.request.path, "body": answer.request.body},
        "line": ended.line,
        "status": answer.status,
        "failures": [{"reason": reason, "line": line} for reason, line in ended.failures],
        "expectations": [
            {
                "line": verdict.expectation.line,
                "text": verdict.expectation.text,
                "holds": not verdict.got,
                "got": verdict.got,
            }
            for verdict in ended.verdicts
        ],
        **_part(answer),
    } | ({"more": [_part(part) for part in _parts(answer.next)]} if answer.next else {})


def _part(answer: Answer) -> dict[str, Any]:
    document: dict[str, Any] = {"title": answer.title} if answer.title else {}
    document |= {"kind": answer.kind, "notes": list(answer.notes)}
    return document | ({"body": _body(answer)} if answer.page is None else {"page": output.page_document(answer.page)})
