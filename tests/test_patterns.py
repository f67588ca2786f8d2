"""Regular expressions match the same on every Python that the project runs on.

Python 3.11.0 to 3.11.4 forget where a possessive group was when its last repetition fails after a part of it matched
(https://github.com/python/cpython/issues/106052): `(?:ab?c)*+` takes too much. A repetition that may match nothing,
`(?:ab?c|)*+`, does not fail, and matches the same.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path for folder in ("runtime", "plugins") for path in (ROOT / folder).glob("**/*.py")
    if "node_modules" not in path.parts
)  # fmt: skip
UNKNOWN = "(?:un)*(?:known)"
"""What stands for a value that an f-string puts in: it may be anything."""
_POSSESSIVE = re.compile(r"\)(?:[*+?]|\{[\d,]+\})\+")
_ONE = {"LITERAL", "NOT_LITERAL", "ANY", "IN"}


def texts(source: str) -> list[tuple[int, str]]:
    """Return each text of a module with its line; what f-strings put in is unknown, `%` leaves its own mark."""
    found, inside = [], set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else UNKNOWN for part in node.values]
            found.append((node.lineno, "".join(map(str, parts))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in inside:
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            found.append((node.lineno, text.replace("%b", UNKNOWN)))
    return found


def groups(text: str) -> list[str]:
    """Return what stands in each group of a pattern that is repeated possessively."""
    bodies, opened, at = [], [], 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "[":  # a set, in which the first bracket is a character
            at = text.find("]", at + (3 if text[at + 1 : at + 2] == "^" else 2))
            if at < 0:
                break
        elif text[at] == "(":
            opened.append(at)
        elif text[at] == ")" and opened:
            begins = opened.pop()
            if _POSSESSIVE.match(text, at):
                bodies.append(re.sub(r"^\?(?::|P<\w+>)", "", text[begins + 1 : at]))
        at += 1
    return bodies


def keeps_its_place(body: str) -> bool:
    """Say whether a repetition fails only where it knows its place.

    So it is where each way through it is a row of single characters, with a possessive run of them first or last: a
    run that is not first may be empty.
    """
    if body.endswith("|"):
        return True
    parsed = list(re._parser.parse(body))
    ways = parsed[0][1][1] if len(parsed) == 1 and str(parsed[0][0]) == "BRANCH" else [parsed]
    return all(
        str(kind) in _ONE
        or (str(kind) == "POSSESSIVE_REPEAT" and str(value[2][0][0]) in _ONE and len(value[2]) == 1
            and (place == 0 or (place == len(way) - 1 and value[0] == 0)))
        for way in ways for place, (kind, value) in enumerate(way)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (r"[^\"]++|\\.", True),
        (r"\"\"[^\"]*+", True),
        (r"ab?c", False),
        (r"ab?c|", True),
        (r"\"{1,2}+[^\"]++", False),
        (r"\"(?:[^\"]++|\\.)*+\"", False),
        (r"\"(?!\"\")", False),
        (r"\s*,", False),
    ],
)
def test_a_group_that_may_lose_its_place_is_known(body: str, kept: bool):
    assert keeps_its_place(body) is kept


def test_no_possessive_group_loses_its_place_on_an_early_python():
    lost = [
        f"{path.relative_to(ROOT)}:{line}: {body}"
        for path in FILES
        for line, text in texts(path.read_text("utf-8"))
        for body in groups(text)
        if not keeps_its_place(body)
    ]
    assert lost == [], 'let the group end with "|"'
