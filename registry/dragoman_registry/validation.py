"""Faults, and reading incoming files with all their faults at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman_api import json_text
from dragoman_api.errors import WheelRejectedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")


class Unreadable(ValueError):  # noqa: N818 - the name says what is wrong
    """An untrusted text cannot be read, or is too large to read; the message says why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        code: Stable kebab-case identifier.
        reason: One sentence with the faulty value.
        where: The faulty file; empty if there is only one.
    """

    code: str
    reason: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}" if self.where else self.reason


def rejected(subject: str, faults: Sequence[Fault], *, hint: str) -> WheelRejectedError:
    """Build the error for the faults of wheels; its message names the first one and the number of the others."""
    suffix = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    pairs = tuple((fault.code, str(fault)) for fault in faults)
    return WheelRejectedError(f"{subject}: {faults[0]}{suffix}", hint=hint, faults=pairs)


def json_path(location: Iterable[int | str]) -> str:
    """Format a location inside a JSON document.

    >>> json_path(["form", 2, "kind"])
    '$.form[2].kind'
    """
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)


def decode(data: bytes, kind: type[T]) -> T:
    """Read JSON text quickly as a struct or dataclass.

    Raises:
        Unreadable: It is truncated, malformed, nested too deeply, not UTF-8, or has a number out of range.
    """
    try:
        return json_text.decode(data, kind)
    except ValueError as error:
        raise Unreadable(str(error)) from error


_adapters: dict[object, Any] = {}


def load(kind: type[T], data: bytes, *, code: str) -> tuple[T | None, list[Fault]]:
    """Read JSON text strictly as a dataclass; each fault carries `code` and its JSON path."""
    from pydantic import TypeAdapter, ValidationError  # the import takes 120 ms, so only incoming files pay for it

    if kind not in _adapters:  # building one takes as long as importing pydantic
        _adapters[kind] = TypeAdapter(kind)
    try:
        return _adapters[kind].validate_json(data, strict=True), []
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        return None, [Fault(code, f"{json_path(entry['loc'])}: {entry['msg']}") for entry in problems]
