"""Reading GraphQL the way the server's old parser does: what it refuses, and what it makes of a string."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from graphql import GraphQLSyntaxError, Lexer, Source, TokenKind, get_location, parse

if TYPE_CHECKING:
    from graphql import DocumentNode, SourceLocation

_ESCAPE = re.compile(r'\\(u[0-9A-Fa-f]{4}|["\\/bfnrt])')
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
        strings = _strings(source)
        return parse(source), strings
    except GraphQLSyntaxError as error:
        described = error.message.removeprefix("Syntax Error: ").replace("'", '"').replace("<EOF>", "EOF")
        described = re.sub(r'(found|Unexpected) "(\W+)"\.$', r"\1 \2", described)
        described = re.sub(r"(found .*[^.])\.$", r"\1", described)
        raise SyntaxFaultError(described, source, next(iter(error.positions or ()), 0)) from None


def _strings(source: Source) -> dict[int, str]:
    lexer, found = Lexer(source), {}
    while (token := lexer.advance()).kind is not TokenKind.EOF:
        if token.kind is TokenKind.NAME and token.value == "null" and source.body[: token.start].rstrip()[-1:] in ":[,":
            raise SyntaxFaultError('Unexpected Name "null"', source, token.start)
        if token.kind is TokenKind.STRING:
            raw = source.body[token.start + 1 : token.end - 1]
            control = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", raw)
            if control:
                shown = f'"\\\\u{ord(control[0]):04X}"'
                raise SyntaxFaultError(
                    f"InvalidError character within String: {shown}.", source, token.start + 1 + control.start()
                )
            if brace := re.search(r"(?<!\\)(?:\\\\)*\\u\{", raw):
                start = token.start + 1 + brace.end() - 3
                shown = source.body[start + 1 : start + 6]
                raise SyntaxFaultError(f'InvalidError character escape sequence: "\\\\{shown}".', source, start)
            if "\\u" in raw:
                found[token.start] = _ESCAPE.sub(_unescape, raw)
    return found


def _shown(source: Source, place: SourceLocation) -> str:
    """Show the line with a mark under the place, between its neighbours."""
    lines = re.split(r"\r\n|[\n\r]", source.body)
    width = len(str(place.line + 1))
    numbered = {number: f"{number:>{width}}: {text}\n" for number, text in enumerate(lines, 1)}
    mark = " " * (width + place.column + 1) + "^\n"
    return numbered.get(place.line - 1, "") + numbered[place.line] + mark + numbered.get(place.line + 1, "")


def _unescape(escape: re.Match[str]) -> str:
    if escape[1][0] != "u":
        return _SIMPLE.get(escape[1], escape[1])
    code = int(escape[1][1:], 16)
    # The two halves of a pair are never joined: each becomes a replacement character of its own.
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)


def go_print(node: Any) -> str:
    """Print a value the way the server's messages do."""
    from graphql import print_ast

    return print_ast(node).replace("{ ", "{").replace(" }", "}")
