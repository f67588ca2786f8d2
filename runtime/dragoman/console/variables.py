"""Variables of a console text: `${name}`, filled in before a driver sees the text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError, ConsoleSyntaxError

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN = re.compile(
    r"""
      (?P<block> \"{3} .*? \"{3} )
    | (?P<string> " (?: [^"\\\n] | \\[^\n] )* " )
    | (?P<comment> /\* .*? \*/ | (?: (?: ^ | (?<=\s) ) (?: \# | // ) | (?: \# | // ) (?= [^\S\n]* expect\b ) ) [^\n]* )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
"""What stands apart in the text of a console: strings of one and of several lines, and comments."""

EXPECT = re.compile(r"(?:\#|//)[^\S\n]*expect\b")
"""How a comment begins that is an expectation."""

NAME = re.compile(r"[A-Za-z_]\w*")
_VARIABLE = re.compile(r"\$(\$\{)|\$\{(?:([^}\n]*)\}|[^\n]*)")


def fill(text: str, variables: Mapping[str, str]) -> str:
    r"""Put values in the place of `${name}`; `$${` stands for `${` itself.

    Inside a string a value is escaped as JSON wants it. Outside it goes in as it is, so that a number, an object or a
    part of a path can be a variable; a line break is refused there, because behind one another request may begin.
    Comments are left alone, but for expectations. Variables of the environment are not read: a file of somebody
    else's would send them wherever the connection leads.

    Raises:
        ConfigurationError: There is no such variable (code ``variable-unknown``); all of them are named.
        ConsoleSyntaxError: A value would end the string or the line it stands in.

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
            found = variables[match[2]]
            if kind == "string":
                return json.dumps(found, ensure_ascii=False)[1:-1]
            if kind != "block" and ("\n" in found or "\r" in found):
                raise _fault(text, at + match.start(), f"the value of {match[0]} has a line break, and stands outside")
            return found

        filled = _VARIABLE.sub(value, part)
        if kind == "block" and filled.index('"""', 3) != len(filled) - 3:
            raise _fault(text, at, 'the value of a variable would end the """ string it stands in')
        return filled

    filled, end = "", 0
    for token in TOKEN.finditer(text):
        filled += put(end, text[end : token.start()], None)
        plain = token.lastgroup == "comment" and not EXPECT.match(token[0])
        filled += token[0] if plain else put(token.start(), token[0], token.lastgroup)
        end = token.end()
    filled += put(end, text[end:], None)
    if unknown:
        raise _unknown(unknown)
    return filled


def _unknown(unknown: Mapping[str, int]) -> ConfigurationError:
    said = ", ".join(f"{name} (line {line})" for name, line in unknown.items())
    first = next(iter(unknown))
    name = first[2:-1].removeprefix("env:")
    hint = f"write ${first} for the text itself"
    if NAME.fullmatch(name):
        hint = f'--var {name}="${name}"' if "env:" in first else f"--var {name}=VALUE, or {hint}"
    return ConfigurationError(
        f"no value is given for {said}; nothing was sent", hint=hint, code="variable-unknown", details={"name": name}
    )


def _fault(text: str, at: int, reason: str) -> ConsoleSyntaxError:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    details = {"line": line, "column": column}
    return ConsoleSyntaxError(f"line {line}, column {column}: {reason}; nothing was sent", details=details)
