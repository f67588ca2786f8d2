"""The form of a connection: data in a driver's manifest, rendered before any of its code runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

FieldValue = str | int | bool | None


class FieldKind(StrEnum):
    """How a field is asked for and checked."""

    TEXT = "text"
    INTEGER = "integer"
    SWITCH = "switch"
    CHOICE = "choice"
    SECRET = "secret"  # noqa: S105 - a kind of field
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a choice and the words it is shown with."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a connection's form.

    Attributes:
        name: Key in `connections.toml`, and option on the command line (``auth_method`` is ``--auth-method``).
        label: As a person reads it.
        kind: How it is asked for.
        default: What stands there before anybody types; None for nothing.
        choices: Of a choice.
        visible_if: Fields and the values they must have for this one to be shown; empty for always.
        advanced: It belongs to the Advanced section.
        required: It may not be left empty while it is visible.
        help: One sentence.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    label: str
    kind: FieldKind = FieldKind.TEXT
    default: FieldValue = None
    choices: tuple[Choice, ...] = ()
    visible_if: dict[str, tuple[str, ...]] = field(default_factory=dict)
    advanced: bool = False
    required: bool = False
    help: str = ""

    def visible(self, values: Mapping[str, FieldValue]) -> bool:
        """Tell whether the field is shown beside these values (E7)."""
        return all(str(values.get(name)) in allowed for name, allowed in self.visible_if.items())
