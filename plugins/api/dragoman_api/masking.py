"""Make untrusted texts harmless: mask secrets in every spelling, and escape terminal control characters."""

from __future__ import annotations

import json
import re
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARK = "***"
"""The mark that replaces a secret."""

SHORTEST = 4
"""Minimum length of a value to mask, in characters; shorter ones occur in ordinary words."""

LEARNED = 8
"""Number of tokens to mask besides the secrets known from the start; the oldest have expired by then."""

DEEPEST = 64
"""Maximum depth of a structure to search; deeper levels are left out."""

UNSAFE = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x61C, 0x200E, 0x200F),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
"""Characters that could move a cursor, recolour, or reorder what is read: C0, DEL, C1, line and direction marks."""

_TRIES = 32  # places that are looked at one by one
_SPARE = 8  # what is held is read again when it has grown by one part of so many

_ESCAPED = {code: f"\\u{code:04x}" for code in UNSAFE if code >= 0x20}
_BREAKS = str.maketrans("", "", "\r\n")
_CALLED = re.compile(
    r"pass(word|wd|phrase)|secret|credential|apikey|accesskey|privatekey|authorization|cookie|tokens?(?![a-z])"
)
_SCHEME = re.compile(r"\b((?:basic|bearer|apikey)(?:\s++|%20|\+))[\w.~+/=%-]{8,}", re.IGNORECASE)
_USER = re.compile(r"(://)[^/\s?#@\"'<>]{1,1000}@")
_NAME = re.compile(r"""([A-Za-z_][\w.%-]{0,99}+)\\?["']?\s*+[:=]\s*+""")
_VALUE = re.compile(
    r"""
    \\"(?:[^\\]|\\{3}"|\\(?!"))*(?:\\")?  # between quotes that are escaped, in a text inside a text
    | "(?:[^"\\]|\\.)*+"? | '(?:[^'\\]|\\.)*+'?
    | \[[^\]]*+\]? | \{[^}]*+\}?
    | [^\s,;&}\])"'\#]+
    """,
    re.DOTALL | re.VERBOSE,
)


def escaped(json_text: str) -> str:
    """Escape terminal control characters in a JSON text, without changing its value."""
    return json_text if json_text.isascii() and "\x7f" not in json_text else json_text.translate(_ESCAPED)


def is_secret(name: str) -> bool:
    """Check whether a member, parameter or header has the name of a secret.

    >>> [name for name in ("access_token", "apiKey", "X-Api-Key", "tokenizer", "title") if is_secret(name)]
    ['access_token', 'apiKey', 'X-Api-Key']
    """
    from urllib.parse import unquote_plus  # imported late to keep the command line fast

    words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", unquote_plus(name[:200]))
    joined = re.sub(r"(api|access|private)[^a-z]+(?=key)", r"\1", words.lower())
    return _CALLED.search(joined) is not None


class Mask:
    """Replaces secrets with a mark; more can be added at any time.

    Line breaks do not hide a secret, whether in its definition or in the text.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secret_forms: set[str] = set()
        self._learned: deque[str] = deque(maxlen=LEARNED)
        self._all_forms: list[str] | None = None
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Add secrets to mask from now on."""
        self._secret_forms.update(form for secret in secrets for form in _forms(secret))
        self._all_forms = None

    def learn(self, token: str) -> None:
        """Mask a token, which is replaced by others later: the last `LEARNED` are masked."""
        if token in self._learned:
            self._learned.remove(token)
        self._learned.append(token)
        self._all_forms = None

    @property
    def _forms(self) -> list[str]:
        """All spellings; made when a text is masked, so that learning is cheap however often a driver learns."""
        if self._all_forms is None:
            self._all_forms = sorted(self._secret_forms.union(*map(_forms, self._learned)))
        return self._all_forms

    def __call__(self, text: str) -> str:
        """Return a text with a mark in place of each known secret."""
        stream = MaskedStream(self)
        return stream.feed(text) + stream.end() if self._forms else text

    def request(self, text: str) -> str:
        """Return a path, header or free text without known secrets and without values named like secrets."""
        text = _USER.sub(rf"\1{MARK}@", _SCHEME.sub(rf"\1{MARK}", text))
        parts, at = [], 0
        for match in _NAME.finditer(text):
            if match.start() >= at and is_secret(match[1]) and (value := _VALUE.match(text, match.end())):
                parts += [text[at : value.start()], _marked(value[0])]
                at = value.end()
        return self("".join([*parts, text[at:]]))

    def structure(self, value: Any, depth: int = 0) -> Any:
        """Return decoded JSON without known secrets and values named like secrets, at any depth."""
        if depth > DEEPEST:
            return f"(deeper than {DEEPEST} levels)"
        match value:
            case dict():
                return {
                    self(str(key)): MARK if is_secret(str(key)) else self.structure(item, depth + 1)
                    for key, item in value.items()
                }
            case list() | tuple():
                if len(value) == 2 and isinstance(value[0], str) and is_secret(value[0]):  # a header as a pair
                    return [value[0], MARK]
                return [self.structure(item, depth + 1) for item in value]
            case str():
                return self._inner(value, depth)
        return value if self(str(value)) == str(value) else MARK

    def _inner(self, text: str, depth: int) -> str:
        """Mask a text inside a structure; the text may itself hold a structure."""
        if text.lstrip()[:1] in ("{", "["):
            try:
                inner = json.loads(text, parse_int=str, parse_float=str)
            except (ValueError, RecursionError):
                return self.request(text)
            masked = self.structure(inner, depth + 1)
            return text if masked == inner else json.dumps(masked, ensure_ascii=False)
        return self.request(text)

    # for `MaskedStream` -----------------------------------------------------------------------------------------------

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Find all secrets in a text without line breaks, overlapping ones included.

        A secret that repeats itself (``abab``) would be found at each repetition: these count as one find.
        """
        for form in self._forms:
            at = text.find(form)
            while at >= 0:
                end, following = at + len(form), text.find(form, at + 1)
                if 0 <= following - at <= len(form) // 2:
                    repeated = re.compile(f"(?:{re.escape(form[at - following :])}|)*+")
                    if match := repeated.match(text, end):
                        end = match.end()
                    following = text.find(form, end - len(form) + 1)
                yield at, end
                at = following

    def unfinished(self, text: str) -> int:
        """Find where a secret may begin that continues beyond the end of a text."""
        begins = len(text)
        for form in self._forms:
            begins = min(begins, _beginning(form, text))
        return begins


def _beginning(form: str, text: str) -> int:
    """Find the first place from which on the rest of a text is the beginning of a longer form; its end for none."""
    at = max(0, len(text) - len(form) + 1)
    for _ in range(_TRIES):
        if (at := text.find(form[0], at)) < 0:
            return len(text)
        if form.startswith(text[at:]):
            return at
        at += 1
    # Texts such as `aaa…b` would take a look at every place, each as long as the rest.
    table, matched = _borders(form), 0
    for letter in text[at:]:
        while matched and form[matched] != letter:
            matched = table[matched - 1]
        matched += form[matched] == letter
    return len(text) - matched


@lru_cache(maxsize=8)
def _borders(form: str) -> list[int]:
    """Return for each beginning of a form how long its longest proper beginning is that also ends it."""
    table, matched = [0], 0
    for letter in form[1:]:
        while matched and form[matched] != letter:
            matched = table[matched - 1]
        matched += form[matched] == letter
        table.append(matched)
    return table


class MaskedStream:
    """Masks a text that arrives in pieces; a possible beginning of a secret waits for the next piece."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._text = ""
        self._waiting: list[str] = []  # pieces not yet looked at, short beside what is held
        self._covered = 0  # its leading characters that belong to a secret whose mark was already returned

    def feed(self, text: str) -> str:
        """Take a piece and return the masked text that is final."""
        self._waiting.append(text)
        if _SPARE * sum(map(len, self._waiting)) < len(self._text):  # else a long secret is read again for each letter
            return ""
        self._take()
        return self._give(whole=False)

    def end(self, *, torn: bool = False) -> str:
        """Return the rest; if the text is `torn`, also mask the beginning of a secret at its end."""
        self._take()
        rest = self._text.translate(_BREAKS)
        half = self._mask.unfinished(rest) if torn else len(rest)
        masked_text = self._give(whole=len(rest) - half < SHORTEST)
        self._text, self._covered = "", 0
        return masked_text if len(rest) - half < SHORTEST else masked_text + MARK

    def _take(self) -> None:
        self._text += "".join(self._waiting)
        self._waiting.clear()

    def _give(self, *, whole: bool) -> str:
        text, compact = self._text, self._text.translate(_BREAKS)
        cut = len(compact) if whole else self._mask.unfinished(compact)
        if len(compact) == len(text):
            places: Any = range(len(text) + 1)
        else:
            places = [at for at, letter in enumerate(text) if letter not in "\r\n"] + [len(text)]
        parts, at, covered = [], 0, max(0, self._covered - cut)
        for begin, end in _merged([(0, self._covered), *self._mask.find(compact)]):
            if begin >= cut:
                break
            parts += [text[at : places[begin]], MARK if begin or not self._covered else ""]
            at = places[min(end, cut) - 1] + 1
            covered = max(0, end - cut)
        stop = len(text) if cut == len(compact) else places[cut]
        parts.append(text[at:stop])
        self._text, self._covered = text[max(at, stop) :], covered
        return "".join(parts)


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and begin < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def _marked(value: str) -> str:
    """Replace a value with the mark and keep its quotes."""
    begin = re.match(r"""\\?["']?""", value)
    quote_mark = begin[0] if begin else ""
    return f"{quote_mark}{MARK}{quote_mark}"


def _forms(secret: str) -> Iterator[str]:
    """List the spellings of a secret."""
    from urllib.parse import quote, quote_plus

    whole = secret.translate(_BREAKS)
    forms = {whole, *(line.strip() for line in secret.splitlines())}
    forms.add("".join(filter(str.isprintable, whole)))
    for text in (secret, secret.strip()):
        forms |= {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]}
        encoded = text.encode(errors="surrogatepass")
        forms |= {quoted for safe in ("", "/") for quoted in _spelled(quote(encoded, safe=safe))}
        forms |= set(_spelled(quote_plus(encoded)))
        forms |= set(_in_base64(encoded))
    return (form for form in forms if len(form) >= SHORTEST and form.strip())


def _spelled(quoted: str) -> Iterator[str]:
    yield quoted
    yield re.sub("%..", lambda escape: escape[0].lower(), quoted)


def _in_base64(secret: bytes) -> Iterator[str]:
    """Yield the base64 text of the secret for each alignment, since text such as a user name may precede it."""
    from base64 import b64encode

    for before in range(3):
        text = b64encode(bytes(before) + secret).decode()
        inside = text[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]
        if len(inside) >= 2 * SHORTEST:
            yield inside
            yield inside.translate(str.maketrans("+/", "-_"))
