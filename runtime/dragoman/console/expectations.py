"""Expectations in a console text: comments under a request that say what its answer must be."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.spellings import near_names
from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError

from .variables import EXPECT, tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.console import Answer, ConsoleRequest

STATUS = "status"
_ROW = re.compile(r"(?P<subject>\S+)\s+(?:(?P<alone>exists|missing)|(?P<op>=|!=|>=|<=|>|<|contains)\s+(?P<value>\S.*))")
_SHORT = re.compile(rf"{STATUS}\s+(?P<value>\d+)")
_FIRST = re.compile(r"(?:\#|//|/\*)[\s*]*(?P<word>[^\W\d_]+)(?P<rest>[^\n]*)")
_WORD = "expect"
_NOTES = 20  # maximum near misses that are noted
_SHOWN = 80  # characters shown of an actual value
_ABSENT: Any = object()


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """One comment's requirement on an answer.

    Attributes:
        line: Of the text, from 1.
        text: As it is written, from the word ``expect`` on.
        subject: ``status``, the HTTP status, or a dotted path into the JSON answer; a leading dot is left out, so
            ``.status`` is a member of that name. Numbers and ``[n]`` choose from an array.
        op: ``= != > >= < <= contains exists missing``.
        value: JSON, or else a text.
    """

    line: int
    text: str
    subject: str
    op: str
    value: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an expectation.

    Attributes:
        expectation: The one.
        got: The actual value as truncated JSON; empty if the expectation holds.
    """

    expectation: Expectation
    got: str = ""

    def __str__(self) -> str:
        return f"{self.expectation.text}, got {self.got}" if self.got else self.expectation.text


def read(text: str, requests: Sequence[ConsoleRequest]) -> list[list[Expectation]]:
    """Find the expectations of a text, for each of its requests those between it and the next one.

    Raises:
        ConfigurationError: One cannot be read, or is above the first request (code ``expectation-syntax``); all
            such are named, for one that is passed over would seem to hold.
    """
    expectations: list[list[Expectation]] = [[] for _ in requests]
    faults = []
    for token in tokens(text):
        if token.lastgroup != "comment" or not (begins := EXPECT.match(token[0])):
            continue
        line = text.count("\n", 0, token.start()) + 1
        statement = token[0][begins.end() :].strip()
        at = max((at for at, request in enumerate(requests) if request.line <= line), default=-1)
        row = _SHORT.fullmatch(statement) or _ROW.fullmatch(statement)
        if row is None:
            faults.append(f"line {line}: 'expect {statement}' cannot be read")
        elif at < 0:
            faults.append(f"line {line}: 'expect {statement}' is above the first request")
        else:
            parts = row.groupdict()
            op = parts.get("alone") or parts.get("op") or "="
            subject, value = parts.get("subject") or STATUS, parts["value"] or ""
            expectations[at].append(
                Expectation(line=line, text=f"expect {statement}", subject=subject, op=op, value=value)
            )
    if faults:
        hint = "write it below its request: # expect status 200, # expect hits.total.value >= 5"
        raise ConfigurationError(f"{'; '.join(faults)}; nothing was sent", hint=hint, code="expectation-syntax")
    return expectations


def near_misses(text: str) -> list[Note]:
    r"""Return a note ``expectation-like`` for each comment that reads like an expectation but is not one.

    >>> [note.reason for note in near_misses("GET /\n# Expects status 200\n# now the orders")]
    ["line 2: '# Expects status 200' is a comment that checks nothing"]
    """
    notes = []
    for token in tokens(text):
        if token.lastgroup not in ("comment", "spread") or EXPECT.match(token[0]):
            continue
        first = _FIRST.match(token[0])
        if first and _resembles(first["word"].lower()):
            line = text.count("\n", 0, token.start()) + 1
            comment = " ".join(first[0].split())
            comment = comment if len(comment) <= _SHOWN else f"{comment[:_SHOWN]}…"
            hint = "an expectation is written so: # expect status 200"
            reason = f"line {line}: '{comment}' is a comment that checks nothing"
            notes.append(Note(code="expectation-like", reason=reason, hint=hint))
            if len(notes) == _NOTES:
                break
    return notes


def _resembles(word: str) -> bool:
    return word.startswith(_WORD) or bool(word[:2] == _WORD[:2] and near_names(word, [_WORD], least=0.9))


def judge(answer: Answer, expectations: Sequence[Expectation]) -> list[Verdict]:
    """Check an answer against expectations."""
    body = _body(answer.text) if expectations else None
    verdicts = []
    for expectation in expectations:
        answer_value = answer.status if expectation.subject == STATUS else _find(body, expectation.subject)
        got = "" if _holds(expectation.op, answer_value, expectation.value) else _shown(answer_value)
        verdicts.append(Verdict(expectation=expectation, got=got))
    return verdicts


def _body(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):  # plain text, or a number beyond what Python reads
        return _ABSENT


def _find(value: Any, subject: str) -> Any:
    """Follow a dotted path; at each step the longest name that fits, for names hold dots: `index.max_result_window`."""
    path = ".".join(part for part in re.split(r"[.\[\]]", subject) if part) + "."
    at = 0
    while at < len(path) - 1:
        if isinstance(value, list):
            part = path[at : path.index(".", at)]
            index = int(part) if re.fullmatch(r"\d{1,9}", part) else len(value)
            if index >= len(value):
                return _ABSENT
            value, at = value[index], at + len(part) + 1
        elif isinstance(value, dict):
            names = (name for name in value if path.startswith(name, at) and path.startswith(".", at + len(name)))
            if (name := max(names, key=len, default=None)) is None:
                return _ABSENT
            value, at = value[name], at + len(name) + 1
        else:
            return _ABSENT
    return value


def _holds(op: str, answer_value: Any, value: str) -> bool:
    if op in ("exists", "missing") or answer_value is _ABSENT:
        return (answer_value is _ABSENT) is (op == "missing")
    if op == "contains":
        if isinstance(answer_value, list):
            return any(_same(element, value) for element in answer_value)
        return isinstance(answer_value, (str, dict)) and _text(value) in answer_value
    if op in ("=", "!="):
        return _same(answer_value, value) is (op == "=")
    left, right = _number(answer_value), _number(_text(value))
    if left is not None and right is not None:
        order = (left > right) - (left < right)
    elif (
        isinstance(answer_value, str) and right is None
    ):  # dates that are written alike are in the order of their texts
        order = (answer_value > _text(value)) - (answer_value < _text(value))
    else:
        return False
    return {">": order > 0, ">=": order >= 0, "<": order < 0, "<=": order <= 0}[op]


def _same(answer_value: Any, value: str) -> bool:
    if isinstance(answer_value, str):
        return answer_value == _text(value)
    expected_value = _body(value)
    return isinstance(answer_value, bool) is isinstance(expected_value, bool) and bool(answer_value == expected_value)


def _text(value: str) -> str:
    json_value = _body(value)
    return json_value if isinstance(json_value, str) else value


def _number(value: Any) -> Decimal | None:
    """Read a number, or a text that is one: lists for people, as of `_cat`, hold nothing else."""
    try:
        number = None if isinstance(value, bool) else Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return None
    return number if number is not None and number.is_finite() else None


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default="\0{}\0".format)  # numbers with their digits, not as texts
    text = re.sub(r'"\\u0000([^"\\]*)\\u0000"', r"\1", text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
