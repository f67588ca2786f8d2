"""What is written down or shown of strangers' words: a driver's log, the audit, events; filters that a person types."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from dragoman.automations.audit import Audit
from dragoman.cli import output
from dragoman.sandbox.process_output import LogPipe, Mask
from dragoman.sessions.selection_codec import SelectionTexts
from dragoman_api import events
from dragoman_api.changes import HttpRequest
from dragoman_api.errors import ConfigurationError
from dragoman_api.events import Call, ConnectionInfo
from dragoman_registry.publisher.serve import _negotiated
from dragoman_registry.publisher.upload_requests import phrase as reason_phrase

from ..grammar import SECTION, json_of, pasted, split, text
from ..target import Bounds, Broken, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hypothesis.strategies import SearchStrategy

SECRETS = ("hünter2-Ω", "line one\nline two", "a+b(c)?")
_SHOWN = ("hünter2-Ω", "line one", "line two", "a+b(c)?")  # none ends as a mask does

# the log --------------------------------------------------------------------------------------------------------------


class _Pipe:
    """A child's output that gives what it is told, read by read."""

    def __init__(self) -> None:
        self.reads: list[bytes] = []

    def watch(self, *_: object) -> None: ...
    def unwatch(self, *_: object) -> None: ...
    def close(self) -> None: ...
    def read(self) -> bytes:
        return self.reads.pop(0) if self.reads else b""


def _log(_: Path) -> Callable[[bytes], object]:
    runner, mask = asyncio.Runner(), Mask(SECRETS)

    async def take(data: bytes) -> None:
        pipe, told = _Pipe(), list[str]()
        log = LogPipe(pipe, mask=mask, on_line=told.append)
        for piece in data.split(SECTION):
            if piece:
                pipe.reads = [piece]
                log._read()
        lines = "\n".join(log.finish())
        for secret in _SHOWN:
            if secret in lines or secret in "\n".join(told):
                raise Broken("secret: it is shown")
        if not lines.replace("\n", "").replace("\t", "").isascii() and any(
            ord(each) in range(0x80, 0xA0) for each in lines
        ):
            raise Broken("control: it is shown")
        if "\x1b" in lines or "\u202e" in lines:
            raise Broken("control: an escape is shown")

    return lambda data: runner.run(take(data))


def _printed() -> SearchStrategy[bytes]:
    words = (*_SHOWN, *(word[:5] for word in _SHOWN), *(word[5:] for word in _SHOWN), "hüntéé", "\x1b[", "\x1b]0;",
    "\x07", "\x9b", "\x1b[31m",
             "\n", "\u202e", "x" * 1_990, "a" * 3_000, "\r", "ü", "%%", "\n%%\n", "\\u00fc", "\x00")  # fmt: skip
    cut = st.tuples(pasted(words, glue=("", "", SECTION.decode(), "\n")), st.lists(st.integers(0, 400), max_size=4))
    return cut.map(lambda pair: _cut(*pair))


def _cut(data: bytes, places: list[int]) -> bytes:
    for at in sorted(places, reverse=True):
        data = data[:at] + SECTION + data[at:]
    return data


# audit and events -----------------------------------------------------------------------------------------------------

_BODIES = (
    {"password": "hunter2x"},
    {"a": {"api_key": ["hunter2x", {"x": "hunter2x"}]}},
    {"user": "a", "tokens": ["hunter2x"]},
)


def _audit(folder: Path) -> Callable[[bytes], object]:
    runner, log = asyncio.Runner(), folder / "audit.ndjson"
    info = ConnectionInfo(name="shop", type="elasticsearch", host="h", port=1)

    async def take(data: bytes) -> None:
        log.unlink(missing_ok=True)
        path, body = (part.decode(errors="replace") for part in split(data, 2))
        audit = Audit(log, lambda _: True)
        try:
            request = HttpRequest("PUT", path, body)
        except ValueError:  # there is no request to such a path
            return
        await audit.before_call(
            Call(hook="execute_console", connection=info, object=body[:50], writes=True, requests=(request,))
        )
        await audit.on_event(events.ConnectionFailed(connection="shop", code="x", reason=body[:300]))
        written = log.read_bytes()
        for line in written.splitlines():
            json.loads(line, parse_int=str, parse_float=str)
        if _is_json(body) and b"hunter2x" in written.partition(b"\n")[0] and "hunter2x" not in path:
            raise Broken("secret: the audit holds it")

    return lambda data: runner.run(take(data))


def _is_json(body: str) -> bool:
    """Tell whether all the secrets in a body are values of members that are called like one."""
    if body.count("hunter2x") != body.count('"hunter2x"'):
        return False
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return value in _BODIES


def _recorded() -> SearchStrategy[bytes]:
    paths = pasted(
        ("/a", "/_security/user", "?", "&", "password=", "token=x", "api_key", "=", "%3d", '"', "\\", "#"), glue=("",)
    )
    bodies = st.one_of(
        *(json_of(each) for each in _BODIES),
        *(st.just(json.dumps(each).encode()) for each in _BODIES),
        pasted(('"password"', ":", '"', "\\", "{", "}", "[", "]", "x")),
    )
    return st.tuples(paths, bodies).map(SECTION.join)


def _events(_: Path) -> Callable[[bytes], object]:
    kinds = [
        each
        for each in vars(events).values()
        if isinstance(each, type) and issubclass(each, events.Event) and each is not events.Event
    ]

    def run(data: bytes) -> None:
        kind, said = data[:1], text(data[1:])
        chosen = kinds[kind[0] % len(kinds) if kind else 0]
        values: dict[str, Any] = {}
        for name, annotation in chosen.__annotations__.items():
            if "ClassVar" not in str(annotation):
                values[name] = (
                    said
                    if str(annotation).startswith("str")
                    else 1
                    if str(annotation).startswith(("int", "float"))
                    else None
                )
        line = chosen(**values).to_json()
        if "\n" in line:
            raise Broken("line: an event has two")
        json.loads(line.encode())

    return run


# what is shown, and what is typed -------------------------------------------------------------------------------------


def _terminal(_: Path) -> Callable[[bytes], object]:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    def run(data: bytes) -> None:
        said = data.decode(errors="replace")
        with redirect_stdout(Screen()) as shown:
            output.write_markdown("Readme", said)
            output.write_text(said)
            output.write_table(["a", "b"], [[output.show(said), output.plain(said)]])
        found = shown.getvalue()
        bare = [each for each in output.UNSAFE if chr(each) in found and chr(each) not in "\n\t\x1b"]
        escapes = {each for each in found.split("\x1b")[1:] if not each.startswith("[")}
        if bare or escapes:
            raise Broken(f"control: {bare} {sorted(escapes)[:2]!r} reaches a terminal")

    return run


_PROSE = (
    "# h",
    "* a",
    "[a](http://a.example)",
    "[a](\x1b]8;;x\x07)",
    "```x\n",
    "```",
    "|a|b|\n|-|-|\n|1|2|\n",
    "\x1b[2J",
    "\x9b2J",
    "\u202e",
    "`",
    "> ",
    "- ",
    "1. ",
    "\n",
    "<b>",
    "![i](x)",
    "&#27;[2J",
    "&#x9b;",
    "\x07",
    "~~~\n",
    "    x",
)


def _filter(_: Path) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        row, raw, sort = (text(part) for part in split(data, 3))
        texts = SelectionTexts(object="x", filters=[row], raw=[raw] if raw else [], sort=sort.split())
        selection = texts.read()
        assert SelectionTexts.of(selection).read() == selection

    return run


_ROW = (
    "total",
    "items.sku",
    " ",
    ">=",
    "=",
    "!=",
    "in",
    "not-in",
    "between",
    "contains",
    "null",
    "is-null",
    "starts",
    "@1",
    "@",
    "'",
    '"',
    "\\",
    ",",
    "a,b",
    "100",
    "''",
    "a b",
    "\u2003",
    "\x1c",
)


def _accept(_: Path) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        said = text(data)
        _negotiated(said)
        if (
            "\n" in (phrase := reason_phrase([f"code: {each}" for each in said.split(";")]))
            or "\r" in phrase
            or len(phrase) > 4_000
        ):
            raise Broken(f"header: {phrase!r}")

    return run


_ACCEPT = (
    "text/html",
    "*/*",
    "application/vnd.pypi.simple.v1+json",
    ";q=",
    "0.5",
    "1e400",
    "nan",
    "inf",
    "-1",
    ",",
    ";",
    " ",
    "q=",
    "٣",
    "\r\n",
    "9" * 5_000,
)
_MEANT = (ConfigurationError,)
TARGETS = (
    Target(name="driver-log", parses="dragoman.sandbox.process_output:LogPipe", make=_log, grammar=_printed,
    bounds=Bounds(seconds_per_kb=0.03)),
    Target(name="audit", parses="dragoman.automations.audit:Audit", make=_audit, grammar=_recorded),
    Target(name="events", parses="dragoman_api.events:Event.to_json", make=_events,
           grammar=lambda: st.tuples(st.binary(min_size=1, max_size=1), pasted(_PROSE)).map(b"".join)),
    Target(name="terminal", parses="dragoman.cli.output:write_markdown", make=_terminal,
    grammar=lambda: pasted(_PROSE, glue=("", "\n")),
           bounds=Bounds(seconds=1.5, seconds_per_kb=0.1, mb=48)),
    Target(name="filter", parses="dragoman.sessions.selection_codec:SelectionTexts.read", make=_filter, allowed=_MEANT,
           grammar=lambda: st.tuples(pasted(_ROW, glue=("", " ", " ")), pasted(_ROW, most=2), pasted(_ROW,
           most=2)).map(SECTION.join)),
    Target(name="accept-header", make=_accept,
           parses="dragoman_registry.publisher.serve:_negotiated, dragoman_registry.publisher.upload_requests:phrase",
    grammar=lambda: pasted(_ACCEPT, glue=("",))),
)  # fmt: skip
