"""Templates as package data, filled by an engine that escapes every value."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError

from .escaping import clean, digest

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "templates"


class Markup(str):
    """Text that is already safe HTML; the engine escapes all other text."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the text unchanged, for the engine."""
        return self


def fill(name: str, *, script: str = "", **values: object) -> bytes:
    """Fill a template and add the style, the script, and a policy that allows only these two.

    Raises:
        ConfigurationError: The engine is not installed (code ``extra-missing``).
    """
    style, code = _source("style.css"), _source(script) if script else ""
    ours = {"style": style, "style_digest": digest(style), "script": code, "script_digest": digest(code)}
    marked = {key: Markup(value) for key, value in ours.items()}
    return _environment().get_template(name).render(values, **marked).encode()


@cache
def _source(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as error:
        text = "the pages of a registry need the package Jinja2, which is not installed"
        raise ConfigurationError(text, hint="pip install 'dragoman[publish]'", code="extra-missing") from error
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {"size": size, "words": words, "capitalised": capitalised}
    return environment


def _shown(value: object) -> object:
    """Make control characters visible in every text of a value."""
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def size(count: int) -> str:
    """Format a number of bytes for people, in powers of 1000."""
    return f"{count / 1000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"


def words(capability: str) -> str:
    """Format a capability for people."""
    return capability.replace("-", " ")


def capitalised(text: str) -> str:
    """Capitalise the first letter of a text, and leave the rest as it is."""
    return text[:1].upper() + text[1:]
