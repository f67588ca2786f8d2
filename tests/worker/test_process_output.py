"""What a driver prints cannot harm a terminal, fill memory, or show a secret."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.sandbox.bare_process import Output
from dragoman.sandbox.process_output import KEPT, LogPipe
from dragoman.sandbox.sanitizing import harmless
from dragoman_api.masking import Mask

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jcleared", "cleared"),
        ("a\x00b\x08c\x7fd\x85e", "abcde"),
        ("tab\there", "tab\there"),
        ("abc\u202edef\u2066ghi", "abcdefghi"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("half \x1b[", "half "),
    ],
)
def test_escapes_and_controls_are_stripped(raw: str, clean: str) -> None:
    assert harmless(raw) == clean


@given(st.text())
def test_nothing_that_moves_a_terminal_survives(text: str) -> None:
    clean = harmless(text)
    assert not any((ord(char) < 32 and char not in "\t\n") or 127 <= ord(char) < 160 for char in clean)


async def drain(
    *pieces: bytes, secrets: tuple[str, ...] = (), tell: Callable[[str], None] | None = None, pause: float = 0.005
) -> list[str]:
    reading, writing = os.pipe()
    log = LogPipe(Output(reading), mask=Mask(secrets), on_line=tell)
    for piece in pieces:
        os.write(writing, piece)
        await anyio.sleep(pause)
    os.close(writing)
    return log.finish()


async def test_lines_are_whole_however_they_were_written() -> None:
    assert await drain(b"one\ntw", b"o\r\nthr", b"ee") == ["one", "two", "three"]


async def test_secrets_are_masked_also_where_escapes_or_long_lines_would_hide_them() -> None:
    secret = "hunter2-and-more"
    lines = await drain(
        f"key {secret} end\n".encode(),
        b"hun\x1b[1mter2-and\x1b[0m-more\n",
        b"x" * 2_030 + secret[:8].encode(),
        secret[8:].encode() + b"y" * 3_000 + b"\n",
        secrets=(secret,),
    )
    assert lines[0] == "key *** end"
    assert lines[1] == "***"
    assert not any(secret[:8] in line or secret[8:] in line for line in lines)


async def test_only_the_last_lines_are_kept_and_each_is_told_once() -> None:
    told: list[str] = []
    lines = await drain(*[b"%04d " % at + b"z" * 900 + b"\n" for at in range(200)], tell=told.append)
    assert len(told) == 200
    assert sum(map(len, lines)) <= KEPT
    assert lines[-1].startswith("0199")


async def test_a_line_without_an_end_does_not_grow() -> None:
    told: list[str] = []
    await drain(*[b"a" * 20_000 for _ in range(10)], tell=told.append)
    assert max(map(len, told)) <= 2_000


@pytest.mark.parametrize("secret", ["münchen-😀-geheim", "line one\nline two", "a.b*c+d\\n"])
async def test_a_secret_is_masked_at_whatever_byte_two_reads_divide_it(secret: str) -> None:
    """Also inside a character, and where a secret goes on in the next line."""
    data = f"key {secret} end\n".encode()
    for at in range(1, len(data)):
        told: list[str] = []
        assert await drain(data[:at], data[at:], secrets=(secret,), tell=told.append, pause=0.001) == ["key *** end"]
        assert told == ["key *** end"]


async def test_a_secret_is_masked_across_lines() -> None:
    assert await drain(b"key hunter2-\nand-more end\nnext\n", secrets=("hunter2-and-more",)) == ["key *** end", "next"]


async def test_half_a_secret_at_the_end_of_a_log_is_masked() -> None:
    assert await drain(b"key hunter2-an", secrets=("hunter2-and-more",)) == ["key ***"]


async def test_what_is_dropped_does_not_lay_half_a_secret_bare() -> None:
    secret = "hunter2-and-more"
    flood = [b"z" * 60_000 + b"\n"] * 4 + [
        b"x" * 21_000 + secret[:12].encode(),
        secret[12:].encode() + b"\n" + b"y\n" * 9,
    ]
    lines = await drain(*flood, b"y" * 60_000, b"and-more", secrets=(secret,))
    text = "\n".join(lines)
    assert "dropped" in text
    assert secret[:6] not in text
    assert secret[-6:] not in text
