"""How text becomes tokens, and how `Like` patterns match them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import Any

_STOPWORDS = {
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
}  # fmt: skip


_LIGATURES = str.maketrans({"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "ø": "o", "Ø": "O", "ł": "l"})


def tokenize(text: str, how: str, *, wildcards: bool = False) -> list[str]:
    """Split text as the tokenization says; with wildcards, `?` and `*` stay part of a word."""
    if how == "field":
        return [text.strip()]
    if how == "whitespace":
        return text.split()
    if how == "lowercase":
        return lowered(text).split()
    wildcard_characters = "?*" if wildcards else ""
    words = [
        "".join(part)
        for good, part in groupby(
            text, lambda character: _is_alphanumeric(character) or character in wildcard_characters
        )
        if good
    ]
    if how == "word":
        return [lowered(word) for word in words]
    joined = lowered("".join(words))
    return [joined[start : start + 3] for start in range(len(joined) - 2)]


def lowered(text: str) -> str:
    """Return a text in lower case, each character by itself; İ becomes a plain i."""
    return "".join("i" if character == "İ" else character.lower() for character in text)


def search_terms(text: str, how: str, left_out: set[str]) -> list[str]:
    """Split the value of a filter; words that carry no meaning are left out where text is split into words."""
    terms = tokenize(text, how)
    return [term for term in terms if term not in left_out] if how == "word" else terms


def stopwords(index: dict[str, Any], definition: dict[str, Any]) -> set[str]:
    """Return the words that carry no meaning in a property, in the letter case in which they were configured."""
    usual = {"en": _STOPWORDS, "none": set[str]()}
    if preset := definition.get("textAnalyzer", {}).get("stopwordPreset"):
        return {*(index.get("stopwordPresets") or {}).get(preset, ())} or usual[preset]
    own = index["stopwords"]
    return (usual[own.get("preset") or "none"] | {*(own.get("additions") or ())}) - {*(own.get("removals") or ())}


def fold(text: str, definition: dict[str, Any]) -> str:
    """Return a text without its accents, if its property says so."""
    if not definition.get("textAnalyzer", {}).get("asciiFold"):
        return text
    parts = unicodedata.normalize("NFD", text.translate(_LIGATURES))
    return unicodedata.normalize(
        "NFC", "".join(character for character in parts if unicodedata.category(character) != "Mn")
    )


def _is_alphanumeric(character: str) -> bool:
    return character.isalpha() or character.isnumeric()


@lru_cache(maxsize=256)
def like(pattern: str) -> re.Pattern[str]:
    """Compile a pattern: `?` is one character, `*` any number, neither crosses a line break, nothing escapes them."""
    meanings = {"?": ".", "*": ".*"}
    parts = (meanings.get(part, re.escape(part)) for part in re.split(r"([?*])", pattern))
    return re.compile("".join(parts) + r"\Z")


def like_prefix(pattern: str) -> str:
    """Return what stands before the first wildcard."""
    return re.split(r"[?*]", pattern, maxsplit=1)[0]
