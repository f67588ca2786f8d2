"""Spoiling inputs: bytes, words and pieces put in, left out, repeated, nested and mixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

WORDS = (
    b"", b"\x00", b"\xff", b"\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\t", b" ", b'"', b"'", b"\\",
    b"\\u0000", b"\\ud800", b"/", b"../", b"..\\", b"//", b":", b";", b",", b"=", b"#", b"${", b"%", b"%00", b"@", b"<",
    b"<script>", b"-->", b"0", b"-1", b"1e400", b"1e-400", b"NaN", b"9" * 400, b"9" * 4_400, b"1" + b"0" * 20,
    b"18446744073709551616", b"null", b"true", b"{}", b"[]", b"[[", b"{\"a\":", b"((", b"))", b"=1 or ", b" and ",
    b"\xe2\x80\xae", b"\xe2\x80\x8b", b"\x1b]0;x\x07", b"\xc2\x9b", b"\xf0\x9f\x92\xa9", b"a" * 300,
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff", b"\xc7\x08\x01", b"PK\x05\x06", b"\"\"\"", b"/*", b"/* ", b"*/", b"http://127.0.0.1:1/",
    b"command:x",
)  # fmt: skip
_TIMES = (2, 2, 2, 10, 10, 10, 100, 100, 1_000, 10_000)
"""Long inputs cost most of the time there is, so most are short."""


def spoiled(random: Random, data: bytes, other: bytes) -> bytes:
    """Change some things of an input."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        data = _spoil(random, data, other)
    return data


def _spoil(random: Random, data: bytes, other: bytes) -> bytes:
    start = random.randrange(len(data) + 1)
    end = min(len(data), start + random.choice((0, 1, 2, 8, 40, 200)))
    piece = data[start:end]
    match random.randrange(8):
        case 0:
            return data[:start] + bytes([random.randrange(256)]) + data[start + 1 :]
        case 1:
            return data[:start] + random.choice(WORDS) + data[end:]
        case 2:
            return data[:start] + data[end:]
        case 3:
            return data[:end] + piece * _times(random, piece) + data[end:]
        case 4:
            at = random.randrange(len(other) + 1)
            return data[:start] + other[at : at + random.choice((4, 40, 400))] + data[end:]
        case 5:
            word = random.choice(WORDS)
            return data[:start] + word * _times(random, word) + data[end:]
        case 6:
            opening, closing = random.choice(
                ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"\x91", b""), (b"> ", b""))
            )
            times = _times(random, opening)
            return data[:start] + opening * times + piece + closing * times + data[end:]
        case _:
            lines = data.split(b"\n")
            at = random.randrange(len(lines))
            lines[at:at] = [lines[random.randrange(len(lines))]] * random.choice((1, 1, 20, 500))
            return b"\n".join(lines)


def _times(random: Random, piece: bytes) -> int:
    return min(random.choice(_TIMES), 60_000 // (len(piece) + 1))
