"""The form of a connection: data in a driver's manifest, rendered before any of its code runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

FieldValue = str | int | bool | None


class FieldKind(StrEnum):
    """The kind of a field, which decides how its value is entered and checked."""

    TEXT = "text"
    INTEGER = "integer"
    SWITCH = "switch"
    CHOICE = "choice"
    SECRET = "secret"  # noqa: S105 - a kind of field
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a choice and its label."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a connection's form.

    Attributes:
        name: Key in `connections.toml`, and option on the command line (``auth_method`` is ``--auth-method``).
        label: The label that a person reads.
        kind: The kind of input.
        default: The initial value; None for an empty field.
        choices: The values of a choice.
        visible_if: Fields and the values they must have for this one to be shown; empty for always.
        advanced: The field belongs to the Advanced section.
        required: The field must not be empty while it is visible.
        help: A help text of one sentence.
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
        """Check whether the field is visible, given these values (E7)."""
        return all(str(values.get(name)) in allowed for name, allowed in self.visible_if.items())
