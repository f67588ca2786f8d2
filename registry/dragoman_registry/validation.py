"""Faults, and reading a file that came in: everything wrong with it at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        code: Stable kebab-case identifier.
        reason: One sentence with the value that is wrong.
        where: The file it is about, empty when there is only one.
    """

    code: str
    reason: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}" if self.where else self.reason


def json_path(location: Iterable[int | str]) -> str:
    """Write a place inside a JSON document.

    >>> json_path(["form", 2, "kind"])
    '$.form[2].kind'
    """
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)


_adapters: dict[object, Any] = {}


def load(kind: type[T], data: bytes, *, code: str) -> tuple[T | None, list[Fault]]:
    """Read JSON text strictly as a dataclass; the faults, if there are any, carry `code` and their JSON path."""
    from pydantic import TypeAdapter, ValidationError  # 120 ms: only where something comes in

    if kind not in _adapters:  # building one takes as long as importing pydantic
        _adapters[kind] = TypeAdapter(kind)
    try:
        return _adapters[kind].validate_json(data, strict=True), []
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        return None, [Fault(code, f"{json_path(entry['loc'])}: {entry['msg']}") for entry in found]
