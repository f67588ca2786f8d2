"""Comments and byte order marks in stored documents, which the server returns as they were sent."""

from __future__ import annotations

import re

import msgspec

# Possessive, and an unclosed comment reaches to the end: no byte is scanned twice.
_TOKEN = re.compile(
    rb'((?:[^"/{}\[\]\xef]++|"(?:[^"\\]++|\\.)*+")++)|([{\[])|([}\]])|(/\*.*?(?:\*/|\Z)|//[^\r\n]*+|\xef\xbb\xbf)|.',
    re.DOTALL,
)
# What the server writes after a document, if more than closing brackets.
_BEHIND = re.compile(rb',"(?:fields|highlight|ignored_field_values|matched_queries|sort)":|\},\{"_index":"')
_SOURCE = b'"_source":'


class Uncommented(msgspec.Struct, frozen=True):
    """An answer without comments.

    Attributes:
        body: The answer with a blank for each byte of a comment or mark: all others keep their places.
        rows: The documents that held one, by their number in the answer.
        certain: No comment runs into the server's own text. The server puts nothing between a document and what
            follows it, so the end of such a comment is a guess: a comment may hold the text of a row.
    """

    body: bytes
    rows: frozenset[int]
    certain: bool


def uncommented(answer: bytes) -> Uncommented:
    """Remove the comments outside of strings from an answer that holds documents."""
    body, rows, certain = bytearray(answer), set[int](), True
    depth, around, count = 0, -1, 0  # around: the depth of what holds the current document, -1 between two
    at, end, before = 0, len(answer), b""
    while token := _TOKEN.match(answer, at):
        run, opening, closing, comment = token.groups()
        begin, at = token.span()
        if run:
            before = run.rstrip()
        elif opening:
            if around < 0 and before.endswith(_SOURCE):
                around, count = depth, count + 1
            depth, before = depth + 1, b""
        elif closing:
            depth, before = depth - 1, b""
            around = -1 if depth == around else around
        elif comment:
            rows.add(count if around < 0 and before.endswith(_SOURCE) else count - 1)
            if around < 0 and comment.startswith(b"//"):
                seam = _BEHIND.search(answer, begin, at)
                behind = seam.start() if seam else end - depth
                if behind < at:
                    at, certain = max(behind, begin), False
            body[begin:at] = b" " * (at - begin)
            if at == begin:
                break
    return Uncommented(bytes(body), frozenset(rows), certain)
