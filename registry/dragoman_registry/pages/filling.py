"""Templates as package data, filled with texts that are escaped already."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template

from .safe import digest

FOLDER = Path(__file__).parent / "templates"


@cache
def source(name: str) -> str:
    """Read a template, a script or a style as it is."""
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _template(name: str) -> Template:
    return Template(source(name))


def fill(name: str, *, script: str = "", **values: str) -> bytes:
    """Fill a template; the style, the script and the policy that allows these two alone come along."""
    style = source("style.css")
    code = source(script) if script else ""
    return (
        _template(name)
        .substitute(values, style=style, style_digest=digest(style), script=code, script_digest=digest(code))
        .encode()
    )
