"""The forms of untrusted names, checked where they arrive.

A name becomes a folder, a part of a page, or a word of a command. Its type states the check: msgspec and pydantic
enforce it when they decode.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from dragoman_api.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of name.

    Attributes:
        pattern: A regular expression for the whole name, without capturing groups.
        hint: Its form in words.
    """

    word: str
    pattern: str
    most: int
    hint: str
    _match: Callable[[str], object] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_match", re.compile(self.pattern).fullmatch)

    def fits(self, text: str) -> bool:
        """Check whether a text is such a name."""
        return len(text) <= self.most and self._match(text) is not None

    def check(self, text: str) -> str:
        """Return a name if it is valid.

        Raises:
            ConfigurationError: It is not such a name.
        """
        if not self.fits(text):
            raise ConfigurationError(self.reason(text), hint=f"{self.hint}, at most {self.most} characters")
        return text

    def reason(self, text: str) -> str:
        """Return the reason why a text does not fit."""
        return f"{text[:80]!a}{'…' if len(text) > 80 else ''} is not a valid {self.word}"

    @property
    def meta(self) -> msgspec.Meta:
        """The constraints that msgspec enforces."""
        return msgspec.Meta(pattern=rf"\A(?:{self.pattern})\Z", max_length=self.most)

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], Any]) -> Any:
        """Return the constraints that pydantic enforces."""

        def judge(text: str) -> str:
            if not self.fits(text):
                raise ValueError(self.reason(text))
            return text

        return {"type": "function-after", "function": {"type": "no-info", "function": judge}, "schema": handler(source)}


_DEVICES = r"(?!(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?![a-z0-9-]))"
"""Excludes the names that Windows reserves for devices in every folder."""
_SLUG = "lower-case letters, digits and single hyphens, a letter first: my-database"

PROJECT = Kind(
    "project name",
    _DEVICES + r"[a-z0-9]+(?:-[a-z0-9]+)*",
    100,
    "lower-case letters, digits and single hyphens: dragoman-demo",
)
PLUGIN = Kind("plugin id", _DEVICES + r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", 64, _SLUG)
TYPE = Kind("database type", PLUGIN.pattern, 64, _SLUG)
PUBLISHER = Kind("publisher name", PROJECT.pattern, 64, "lower-case letters, digits and dashes")
ROLE = Kind("role", rf"targets|index|advisories|pub-{PUBLISHER.pattern}", 68, "index, advisories or pub-NAME")
VERSION = Kind(
    "version",
    r"(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc)[0-9]+)?(?:\.post[0-9]+)?(?:\.dev[0-9]+)?"
    r"(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?",
    64,
    "the canonical spelling of a version: 1.2.0rc1",
)
WHEEL = Kind(
    "wheel file name",
    r"(?!(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])\.)"  # device names again; Windows ends them at the first dot
    r"[A-Za-z0-9]+(?:[_.]+[A-Za-z0-9]+)*-[0-9][A-Za-z0-9_.!+]*(?:-[0-9][A-Za-z0-9_.]*)?(?:-[A-Za-z0-9_.]+){3}\.whl",
    160,  # with a digest prefix and a suffix it must still be a valid file name
    "NAME-VERSION-PYTHON-ABI-PLATFORM.whl",
)
DIGEST = Kind("SHA-256 digest", r"[0-9a-f]{64}", 64, "64 hexadecimal digits")
BESIDE = r"(?:\.metadata|\.driver\.json|\.report\.json)?"
"""Suffixes of the files beside a wheel; the wheel's name comes before them."""
LISTING = "tree.json"
"""Listing in an unpacked tree: the path and SHA-256 of every other file. Its digest names the tree; wheels lack it."""
INDEX = ("types", "advisories", "catalog", "browse")
"""Files of the index."""
TARGET = Kind(
    "path in a registry",
    rf"{'|'.join(INDEX)}|wheels/{PROJECT.pattern}/{WHEEL.pattern}{BESIDE}"
    rf"|docs/{PROJECT.pattern}/{VERSION.pattern}/(?:README|CHANGELOG)\.md",
    300,
    "wheels/PROJECT/FILE.whl, docs/PROJECT/VERSION/README.md",
)

ProjectName = Annotated[str, PROJECT.meta, PROJECT]
PluginId = Annotated[str, PLUGIN.meta, PLUGIN]
TypeName = Annotated[str, TYPE.meta, TYPE]
ReleaseVersion = Annotated[str, VERSION.meta, VERSION]
WheelName = Annotated[str, WHEEL.meta, WHEEL]
Digest = Annotated[str, DIGEST.meta, DIGEST]


_TOGETHER = {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"}
"""Scripts that are normally mixed."""


def marked(label: str) -> str:
    r"""Return a label, with a remark if it mixes scripts that are not normally mixed: their letters may look alike.

    >>> marked("Weaviate"), ascii(marked("We\u0430viate"))
    ('Weaviate', "'We\\u0430viate [letters of CYRILLIC and LATIN]'")
    """
    if label.isascii():
        return label
    # The first word of a letter's name is its script, or a word for letters made to look like others: FULLWIDTH.
    scripts = {
        re.split("[ -]", unicodedata.name(character, "UNNAMED"))[0] for character in label if character.isalpha()
    }
    return (
        label if len(scripts) < 2 or scripts <= _TOGETHER else f"{label} [letters of {' and '.join(sorted(scripts))}]"
    )


def called(label: str, name: str) -> str:
    """Return a label followed by its name, which is ASCII and so cannot imitate another.

    >>> called("Weaviate", "dragoman-weaviate")
    'Weaviate (dragoman-weaviate)'
    """
    return f"{marked(label)} ({name})"


def plain_name(path: str) -> str:
    """Return a path without the digest that its file name may begin with.

    >>> plain_name(f"wheels/demo/{64 * '0'}.x.whl"), plain_name("wheels/demo/x.whl")
    ('wheels/demo/x.whl', 'wheels/demo/x.whl')
    """
    folder, slash, name = path.rpartition("/")
    digest, dot, rest = name.partition(".")
    return f"{folder}{slash}{rest}" if dot and DIGEST.fits(digest) else path


_FIELD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NO_FIELDS = frozenset({"name", "type", "types", "plugin", "version"})


def is_field_name(name: str) -> bool:
    """Check whether a driver's form may have a field of this name: the keys of the host beside it cannot be one.

    >>> is_field_name("objects"), is_field_name("object-defaults"), is_field_name("type")
    (True, False, False)
    """
    return _FIELD.fullmatch(name) is not None and name not in _NO_FIELDS
