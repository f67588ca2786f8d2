"""Completion in a console: a text and the place of the cursor become suggestions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

MAX_SUGGESTIONS = 200
"""Maximum number of suggestions for one place."""

SUGGESTION_TEXT = 1_000
"""Maximum length of a suggestion in characters."""


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place in a console text.

    Attributes:
        text: The whole console text.
        position: Number of characters (code points) before the cursor, 0 to the length of the text.
    """

    text: str
    position: int


class SuggestionKind(StrEnum):
    """What a suggestion is."""

    METHOD = "method"
    PATH = "path"
    OBJECT = "object"
    FIELD = "field"
    KEYWORD = "keyword"


class Suggestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to continue: `text` replaces the characters from `start` to `end`.

    Attributes:
        text: Without line breaks and control characters.
        kind: What it is.
        start: Number of characters before the replaced ones.
        end: Number of characters before the first one after them; at least `start`.
        detail: A few words beside it, such as a field's type; may be empty.
    """

    text: str
    kind: SuggestionKind
    start: Annotated[int, msgspec.Meta(ge=0)]
    end: Annotated[int, msgspec.Meta(ge=0)]
    detail: str = ""


class Completion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The suggestions for one place, the likeliest first.

    Attributes:
        suggestions: At most `MAX_SUGGESTIONS`.
        more: There are further ones, which more typed characters bring.
    """

    suggestions: Annotated[list[Suggestion], msgspec.Meta(max_length=MAX_SUGGESTIONS)] = []
    more: bool = False
