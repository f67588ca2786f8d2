"""Variables of a console text: `${name}`, filled in before a driver sees the text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError, ConsoleSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LINES = r"""
      (?P<block> \"{3} .*? \"{3} )
    | (?P<string> " (?:[^"\\\n]|\\[^\n])*+ " )
    | (?P<comment> (?: (?: ^ | (?<=\s) ) (?: \# | // ) | (?: \# | // ) (?= [^\S\n]* expect\b ) ) [^\n]* )
    | (?P<torn> " (?: (?! (?<=\s) (?: \# | // ) | (?: \# | // ) [^\S\n]* expect\b ) (?: [^"\\\n] | \\[^\n] ) )* )
    """
_FLAGS = re.VERBOSE | re.MULTILINE | re.DOTALL
_LINE_TOKEN = re.compile(_LINES, _FLAGS)
_TOKEN = re.compile(rf"(?P<spread> /\* .*? \*/ ) | (?P<open> /\* ) | {_LINES}", _FLAGS)

EXPECT = re.compile(r"(?:\#|//)[^\S\n]*expect\b")
"""How a comment begins that is an expectation."""

NAME = re.compile(r"[A-Za-z_]\w*")
_VARIABLE = re.compile(r"\$(\$\{)|\$\{(?:([^}\n]*)\}|[^\n]*)")


def tokens(text: str) -> Iterator[re.Match[str]]:
    """Find the strings, of one or several lines, and the comments in a console text.

    An unclosed string is not a string, but still one piece, and after an unclosed comment no other one is searched for;
    so no text is scanned twice.
    """
    pattern, at = _TOKEN, 0
    while token := pattern.search(text, at):
        at = token.end()
        if token.lastgroup == "open":
            pattern = _LINE_TOKEN
        else:
            yield token


def fill(text: str, variables: Mapping[str, str]) -> str:
    r"""Replace each `${name}` with its value; `$${` stands for `${` itself.

    Inside a string, a value is escaped as JSON requires. Outside, it is inserted unchanged, so a number, an object or
    a part of a path can be a variable; a line break is refused there, because another request may begin after it.
    Comments other than expectations are unchanged. Environment variables are not read, since another person's file
    could send them to the connection's server.

    Raises:
        ConfigurationError: There is no such variable (code ``variable-unknown``); all of them are named.
        ConsoleSyntaxError: A value would end the string or the line that contains it.

    >>> print(fill('GET /${index}/_search {"query": "${text}"}', {"index": "books", "text": 'say "so"'}))
    GET /books/_search {"query": "say \"so\""}
    """
    unknown: dict[str, int] = {}

    def put(at: int, part: str, kind: str | None) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1]:
                return "${"
            if match[2] not in variables:  # one without an end has no name
                unknown.setdefault(match[0], text.count("\n", 0, at + match.start()) + 1)
                return ""
            replacement = variables[match[2]]
            if kind == "string":
                return json.dumps(replacement, ensure_ascii=False)[1:-1]
            if kind != "block" and ("\n" in replacement or "\r" in replacement):
                raise _fault(text, at + match.start(), f"the value of {match[0]} has a line break, but is outside")
            return replacement

        filled = _VARIABLE.sub(value, part)
        if kind == "block" and not unknown and filled.index('"""', 3) != len(filled) - 3:
            raise _fault(text, at, 'the value of a variable would end the """ string it is in')
        return filled

    filled, end = "", 0
    for token in tokens(text):
        filled += put(end, text[end : token.start()], None)
        plain = token.lastgroup in ("comment", "spread") and not EXPECT.match(token[0])
        filled += token[0] if plain else put(token.start(), token[0], token.lastgroup)
        end = token.end()
    filled += put(end, text[end:], None)
    if unknown:
        raise _unknown(unknown)
    return filled


def _unknown(unknown: Mapping[str, int]) -> ConfigurationError:
    places = ", ".join(f"{name} (line {line})" for name, line in unknown.items())
    first = next(iter(unknown))
    name = first[2:-1].removeprefix("env:")
    hint = f"write ${first} for the literal text"
    if NAME.fullmatch(name):
        hint = f'--var {name}="${name}"' if "env:" in first else f"--var {name}=VALUE, or {hint}"
    return ConfigurationError(
        f"no value for {places}; nothing was sent", hint=hint, code="variable-unknown", details={"name": name}
    )


def _fault(text: str, at: int, reason: str) -> ConsoleSyntaxError:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    details = {"line": line, "column": column}
    return ConsoleSyntaxError(f"line {line}, column {column}: {reason}; nothing was sent", details=details)
