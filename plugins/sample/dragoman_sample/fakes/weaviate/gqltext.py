"""Reading GraphQL the way the server's old parser does: what it refuses, and what it makes of a string."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graphql import DocumentNode, GraphQLSyntaxError, Lexer, Source, TokenKind, Visitor, get_location, parse, visit

if TYPE_CHECKING:
    from graphql import SelectionSetNode, SourceLocation

_ESCAPE = re.compile(r'\\(u[0-9A-Fa-f]{4}|["\\/bfnrt])')
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_UNUSUAL = re.compile(r"\\|null|[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class SyntaxFaultError(Exception):
    """What the parser does not understand, with the place where it stands."""

    def __init__(self, description: str, source: Source, position: int) -> None:
        place = get_location(source, min(position, len(source.body)))
        where = f"({place.line}:{place.column})"
        super().__init__(f"Syntax Error GraphQL request {where} {description}\n\n{_shown(source, place)}")
        self.line, self.column = place.line, place.column


def read(text: str) -> tuple[DocumentNode, dict[int, str]]:
    """Parse a document.

    Returns:
        The document, and by position the strings that the server reads differently from the standard.

    Raises:
        SyntaxFaultError: the server would not take it.
    """
    source = Source(text)
    try:
        if Lexer(source).advance().kind is TokenKind.EOF:
            return DocumentNode(definitions=()), {}
        strings = _strings(source) if _UNUSUAL.search(text) else {}
        document = parse(source)
    except GraphQLSyntaxError as error:
        described = error.message.removeprefix("Syntax Error: ").replace("'", '"').replace("<EOF>", "EOF")
        described = re.sub(r'(found|Unexpected) "(\W+)"\.$', r"\1 \2", described)
        described = re.sub(r"(found .*[^.])\.$", r"\1", described)
        raise SyntaxFaultError(described, source, next(iter(error.positions or ()), 0)) from None
    if re.search(r"\{\s*\}", text):
        visit(document, _Empty(source))
    return document, strings


class _Empty(Visitor):
    """Finds selections of nothing, which the standard's parser lets pass."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source

    def enter_selection_set(self, node: SelectionSetNode, *_: object) -> None:
        """Refuse an empty one."""
        if not node.selections and node.loc:
            raise SyntaxFaultError("Unexpected empty IN {}", self._source, node.loc.start)


def _strings(source: Source) -> dict[int, str]:
    lexer, strings = Lexer(source), {}
    for match in re.finditer(r'"(?:[^"\\\n]|\\.)*"', source.body):
        _check_string(source, match.start() + 1, match[0][1:-1])
    while (token := lexer.advance()).kind is not TokenKind.EOF:
        is_null = token.kind is TokenKind.NAME and token.value == "null"
        if is_null and source.body[: token.start].rstrip()[-1:] in ":[,":
            raise SyntaxFaultError('Unexpected Name "null"', source, token.start)
        if token.kind is TokenKind.STRING:
            raw = source.body[token.start + 1 : token.end - 1]
            if "\\u" in raw:
                strings[token.start] = _ESCAPE.sub(_unescape, raw)
    return strings


def _check_string(source: Source, start: int, raw: str) -> None:
    if control := _CONTROL.search(raw):
        escape = f'"\\\\u{ord(control[0]):04X}"'
        raise SyntaxFaultError(f"Invalid character within String: {escape}.", source, start + control.start())
    place = 0
    while (place := raw.find("\\", place)) >= 0:
        if not _ESCAPE.match(raw, place):
            escape = raw[place : place + 6] if raw[place + 1] == "u" else f"\\{raw[place : place + 2]}."
            raise SyntaxFaultError(f"Invalid character escape sequence: {escape}", source, start + place + 1)
        place += 2


def _shown(source: Source, place: SourceLocation) -> str:
    """Show the line with a mark under the place, between its neighbours."""
    lines = re.split(r"\r\n|[\n\r]", source.body)
    width = len(str(place.line + 1))
    escaped = (_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04X}", line) for line in lines)
    numbered = {number: f"{number:>{width}}: {text}\n" for number, text in enumerate(escaped, 1)}
    mark = " " * (width + place.column + 1) + "^\n"
    return numbered.get(place.line - 1, "") + numbered[place.line] + mark + numbered.get(place.line + 1, "")


def _unescape(escape: re.Match[str]) -> str:
    if escape[1][0] != "u":
        return _SIMPLE.get(escape[1], escape[1])
    code = int(escape[1][1:], 16)
    # The two halves of a pair are never joined: each becomes a replacement character of its own.
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
