"""Templates as package data, filled by an engine that escapes every value."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dragoman_registry.index.release_documents import MAX_TEXT, is_renderable

if TYPE_CHECKING:
    from jinja2 import Environment
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FOLDER = Path(__file__).parent / "page_templates"
# C0 except tab and line feed, DEL, C1, and the controls that reorder or hide text.
_HIDDEN = [*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F)]
_SHOWN = {code: f"\\u{code:04x}" for code in [*_HIDDEN, *range(0x2060, 0x2070), 0xFEFF, *range(0xD800, 0xE000)]}
_ADDRESS = re.compile(r"(https?://[^\s/]|mailto:[^\s@]+@)", re.IGNORECASE)


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


def list_row(
    *,
    file: str = "",
    label: str = "",
    version: str = "",
    summary: str = "",
    types: str = "",
    can: str = "",
    reaches: str = "",
) -> Markup:
    """Build the row of a driver in a list; without texts, the empty row that a script fills.

    A list has thousands of rows, and the engine would take most of the time of a publication for them.
    """
    texts = (file, label, version, summary, types, can, reaches)
    safe = escape(clean("|".join(texts))).split("|")  # once for all of them
    if len(safe) != len(texts):
        safe = [escape(clean(text)) for text in texts]
    file, label, version, summary, types, can, reaches = safe
    return Markup(
        f'<li><h2><a href="{file}" data-at="label">{label}</a> <span class="version" data-at="version">{version}</span>'
        f'</h2><p data-at="summary">{summary}</p><p class="facts"><code data-at="types">{types}</code>'
        f'<span data-at="can">{can}</span><span data-at="reaches">{reaches}</span></p></li>'
    )


@cache
def _source(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as error:
        text = "the pages of a registry need the package Jinja2, which is not installed"
        from dragoman_api.installation import packages_missing

        raise packages_missing(text, "dragoman[publish]") from error
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


def clean(text: str) -> str:
    """Make control characters visible, since they could reorder or hide text."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_SHOWN)


def embedded(value: object) -> str:
    """Encode a value as JSON that cannot close its HTML element."""
    written = msgspec.json.encode(value).decode()
    return clean(written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@cache
def digest(source: str) -> str:
    """Return the source expression with which a content security policy allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def address(url: str) -> str | None:
    """Return an address if a page may link to it (web or mail only), else None."""
    return url if _ADDRESS.match(url) and url.isprintable() else None


def markdown(source: str) -> str:
    """Render Markdown: show HTML as text, pictures as their descriptions, and only links that `address` allows."""
    source = clean(source[:MAX_TEXT])[:MAX_TEXT]
    if not is_renderable(source):
        return f'<pre tabindex="0">{escape(source)}</pre>'
    parser = _parser()
    tokens = parser.parse(source)
    for token in tokens:
        _restrain(token)
    return str(parser.renderer.render(tokens, parser.options, {}))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("js-default", {"html": False, "linkify": False, "typographer": False})
    # `_restrain` decides on links below, and keeps the text of a refused one.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


_HEADINGS = {"h1": "h3", "h2": "h4", "h3": "h5"}


def _restrain(token: Token) -> None:
    """Restrict a token and its children to what a page may contain."""
    if token.type in ("heading_open", "heading_close"):
        token.tag = _HEADINGS.get(token.tag, "h6")
    elif token.type in ("fence", "code_block"):  # if wider than the screen, it scrolls by keyboard
        token.content = f'<pre tabindex="0"><code>{escape(token.content)}</code></pre>\n'
        token.type = "html_block"
    elif token.type == "table_open":
        token.attrs = {"tabindex": 0}
    elif token.type not in ("ordered_list_open", "link_open"):
        token.attrs = {}
    opened: list[bool] = []
    for child in token.children or ():
        if child.type == "link_open":
            url = address(str(child.attrGet("href") or ""))
            opened.append(url is not None)
            child.attrs = {} if url is None else {"href": url, "rel": "noopener noreferrer nofollow ugc"}
        if child.type in ("link_open", "link_close"):
            child.tag = "a" if (opened[-1] if child.type == "link_open" else opened.pop()) else "span"
        elif child.type == "image":
            child.type, child.tag = "text", ""
            child.content = f"[picture: {child.content}]"
            child.children = None
        else:
            child.attrs = {}
