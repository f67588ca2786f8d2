"""Errors and notes as an agent reads them: what failed, and the call of a tool that mends it."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import structs

from dragoman_api.remedies import RemedyKind

from .answers import harmless
from .schemas import Remark, ToolCall, ToolFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from dragoman_api import DragomanError, Note
    from dragoman_api.remedies import Remedy

LONGEST = 1_000
"""Characters of one text of a failure; a server wrote some of them."""

UNSAID = "the reason could name what is hidden from agents"
_RETRIES = frozenset({"explain_rows", "read_rows", "count_rows", "summarize_column", "similar_rows"})


def bounded(text: str) -> str:
    """Return a text harmless, and not too long."""
    text = harmless(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def without_hosts(text: str, addresses: str) -> str:
    """Return a text without the hosts of addresses, in whichever case and alphabet it names them."""
    pattern = _hosts_in(addresses)
    return pattern.sub("(host)", text) if pattern else text


@cache
def _hosts_in(addresses: str) -> re.Pattern[str] | None:
    """Return what finds the hosts of addresses in a text, in whichever case and alphabet; None if there are none."""
    hosts = set[str]()
    for address in re.split(r"[\s,]+", addresses):
        place = re.split("[/?#]", address.rpartition("://")[2])[0].rpartition("@")[2]
        host = place[1:].partition("]")[0] if place.startswith("[") else re.sub(r"(?<!:):[0-9]*\Z", "", place)
        hosts.add(host)
        with suppress(UnicodeError):
            hosts.add(host.encode("idna").decode())
    longest_first = sorted(hosts - {""}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE) if longest_first else None


class Helper:
    """Says what helps against what went wrong in one call.

    Attributes:
        tool: The tool that was called.
        arguments: With what.
        connection: The connection; empty if there is none.
        safe: Takes secrets and hosts out of a text.
        hides: Says of a column's name whether it does not exist for agents.
    """

    def __init__(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        connection: str,
        safe: Callable[[str], str],
        hides: Callable[[str], bool],
    ) -> None:
        self.tool, self.arguments, self.connection = tool, dict(arguments), connection
        self._safe, self._hides = safe, hides

    def text(self, text: str) -> str:
        """Return a text for an agent: without secrets and hosts, harmless, and not too long."""
        return bounded(self._safe(text))

    def failure(self, error: DragomanError) -> ToolFailure:
        """Return an error as an agent reads it."""
        column = error.details.get("column")
        calls = self._calls(error.remedies, column if isinstance(column, str) else None)
        if error.code == "column-unknown" and not calls and "object" in self.arguments:
            calls = [self._describing("see which columns there are", str(self.arguments["object"]), "*")]
        return ToolFailure(
            code=error.code, message=self.text(error.message), hint=self.text(error.hint), calls=calls
        )  # fmt: skip

    def remarks(self, notes: Iterable[Note], hidden: Collection[str] = ()) -> list[Remark]:
        """Return notes as an agent reads them, without those about columns that it does not see.

        Args:
            notes: The notes.
            hidden: Columns that it does not see, beside those whose names say so; no reason names one of them.
        """
        names = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, hidden))})(?!\w)") if hidden else None
        return [
            structs.replace(self._remark(note), reason=UNSAID) if names and names.search(note.reason)
            else self._remark(note)
            for note in notes
            if note.column is None or not (note.column in hidden or self._hides(note.column))
        ]  # fmt: skip

    def _remark(self, note: Note) -> Remark:
        """Return a note as an agent reads it."""
        calls = self._calls(note.remedies, note.column)
        if note.hint:
            calls.append(ToolCall(why=self.text(note.hint)))
        column = None if note.column is None else bounded(note.column)
        return Remark(code=note.code, reason=self.text(note.reason), column=column, calls=calls)

    def _calls(self, remedies: Iterable[Remedy], column: str | None) -> list[ToolCall]:
        """Return remedies as calls, without those that name columns which an agent does not see."""
        return [
            self._call(remedy, column)
            for remedy in remedies
            if not self._hides(str(remedy.arguments.get("column", "")))
        ]

    def _call(self, remedy: Remedy, column: str | None) -> ToolCall:
        """Return a remedy as the call that carries it out, or as words if only a person can."""
        words, arguments = self.text(str(remedy)), remedy.arguments
        object_name = str(arguments.get("object") or self.arguments.get("object", ""))
        match remedy.kind:
            case RemedyKind.LIST_OBJECTS if self.connection:
                return ToolCall(why=words, tool="list_objects", arguments={"connection": self.connection})
            case RemedyKind.DESCRIBE_OBJECT if object_name:
                return self._describing(words, object_name, "*")
            case RemedyKind.OPEN_OBJECT if self.tool in _RETRIES and object_name:
                return self._again(words, {"object": object_name})
            case RemedyKind.USE_COLUMN if object_name:
                name = str(arguments["column"])
                if column is not None and self.tool in _RETRIES:
                    changed = _with_column(self.arguments, column, name)
                    if changed != self.arguments:
                        return self._again(words, changed)
                return self._describing(words, object_name, name)
            case RemedyKind.FILTER_ROWS if object_name:
                row = {name: arguments[name] for name in ("column", "operator", "value") if name in arguments}
                return self._again(words, {"object": object_name, "filters": [row]}, tool="read_rows")
            case RemedyKind.QUERY_ROWS if object_name:
                return self._again(words, {"object": object_name, "raw": [arguments["query"]]}, tool="read_rows")
        return ToolCall(why=words)

    def _describing(self, words: str, object_name: str, pattern: str) -> ToolCall:
        arguments = {"connection": self.connection, "object": object_name, "columns": pattern}
        return ToolCall(why=words, tool="describe_object", arguments=_harmless_arguments(arguments))

    def _again(self, words: str, changes: Mapping[str, Any], *, tool: str = "") -> ToolCall:
        """Return the same call with other arguments, or another call of this connection."""
        arguments = {"connection": self.connection} if tool else dict(self.arguments)
        return ToolCall(why=words, tool=tool or self.tool, arguments=_harmless_arguments({**arguments, **changes}))


def _with_column(arguments: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return the arguments of a call in which one column takes the place of another."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [new if item == old else changed(item) for item in value]
        if isinstance(value, dict):
            return {name: new if name == "column" and item == old else item for name, item in value.items()}
        return value

    return {
        name: new if name == "column" and value == old
        else changed(value) if name in ("filters", "sort", "columns") else value
        for name, value in arguments.items()
    }  # fmt: skip


def _harmless_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without names that a server wrote to act on who reads them."""
    return {name: bounded(value) if isinstance(value, str) else value for name, value in arguments.items()}
