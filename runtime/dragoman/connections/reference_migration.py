"""Texts that dragoman once read as references: recorded as such only if a person confirms having entered them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.questions import Question
from dragoman.secret_references import STORED, Reference, entered_path, typed
from dragoman_api.forms import FieldKind

from .form_values import usual, visible
from .saved_connections import SavedConnection, expect_unedited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.forms import FormField

    from .saved_connections import Connections

ABOUT = "reference"
"""What such a question is about: a blanket consent does not answer it."""


class Texts(msgspec.Struct, frozen=True):
    """Texts of a saved connection that may become references.

    A text that a person wrote as a reference looks the same as a choice that an earlier driver version offered: it is
    `uncertain`. A text that names the secret stored for its own field yields only that secret: it is `certain`.
    """

    connection: SavedConnection
    certain: dict[str, Reference]
    uncertain: dict[str, Reference]

    def __bool__(self) -> bool:
        return bool(self.certain or self.uncertain)

    @property
    def details(self) -> tuple[str, ...]:
        """Each uncertain text, and what the host would do with it."""
        values = self.connection.values
        return tuple(f"{key} = {str(values[key])!r}: {each.act}" for key, each in self.uncertain.items())

    def question(self, driver: str) -> Question:
        """Build the question whether a person entered them."""
        text = f"Did you enter this yourself? Each time {self.connection.name} opens, {driver} gets the result"
        return Question(about=ABOUT, text=text, details=self.details)

    @property
    def recorded(self) -> SavedConnection:
        """The connection with references in place of the texts."""
        values = {**self.connection.values, **self.certain, **self.uncertain}
        return msgspec.structs.replace(self.connection, values=values)


def record(texts: Texts, connections: Connections) -> None:
    """Save the references.

    Raises:
        ConfigurationError: The connection was edited or removed since the texts were found; nothing was saved.
    """

    def edit(saved: SavedConnection) -> SavedConnection:
        expect_unedited(texts.connection, saved)
        return msgspec.structs.replace(texts.recorded, pinned=saved.pinned, sign_in_at=saved.sign_in_at)

    connections.amend(texts.connection.name, edit)


def find_texts(connection: SavedConnection, form: Sequence[FormField], connections: Connections) -> Texts:
    """Find the texts in fields of a form that want references; none in a file of today's format. Resolves nothing.

    Raises:
        ConfigurationError: A file of connections or stored secrets cannot be used.
    """
    found = Texts(connection, {}, {})
    if not connections.may_hold_texts():
        return found
    for field in visible(form, {each.name: connection.values.get(each.name, usual(each)) for each in form}):
        text = connection.values.get(field.name)
        if not isinstance(text, str) or not text or field.kind not in (FieldKind.SECRET, FieldKind.FILE):
            continue
        own = text == f"stored:{connection.name}.{field.name}" and connections.stored(connection.name, field.name)
        if field.kind is FieldKind.FILE:
            found.uncertain[field.name] = entered_path(text)
        elif own:
            found.certain[field.name] = STORED
        elif (reference := typed(text)) is not None:
            found.uncertain[field.name] = reference
    return found
