"""Attacks on the host by what is sent to it: bytes that make no sense, or too much of it."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
import time
from typing import Any

import msgspec

from .book import Targets, attack

_RESULT = b"\x83\xa1t\xa3res\xa2id\x01\xa5value"


def _control() -> socket.socket:
    sock = socket.socket(fileno=os.dup(int(sys.argv[1])))
    sock.setblocking(True)
    return sock


def _send(*bodies: bytes) -> None:
    """Send frames, past everything that would keep order in them, and wait to be found out."""
    with _control() as control:
        for body in bodies:
            control.sendall(len(body).to_bytes(4, "little") + body)
    time.sleep(60)


def _message(**fields: Any) -> bytes:
    return msgspec.msgpack.encode(fields)


@attack
def wire_no_msgpack(targets: Targets) -> None:
    _send(b"\xc1" * 10)


@attack
def wire_empty_frame(targets: Targets) -> None:
    _send(b"")


@attack
def wire_four_gigabytes(targets: Targets) -> None:
    with _control() as control:
        control.sendall(b"\xff\xff\xff\xff" + bytes(100_000))
    time.sleep(60)


@attack
def wire_unknown_message(targets: Targets) -> None:
    _send(_message(t="boo"))


@attack
def wire_unsolicited_answer(targets: Targets) -> None:
    _send(_message(t="res", id=99, value=None))


@attack
def wire_forged_report(targets: Targets) -> None:
    """Say once more how well one is confined."""
    _send(_message(t="sandboxed", layers=["landlock"], failures={}, landlock_abi=7, probes={}, missing=[]))


@attack
def wire_second_ready(targets: Targets) -> None:
    _send(_message(t="ready", hooks=["fetch_page"]))


@attack
def wire_a_million_levels(targets: Targets) -> None:
    _send(_RESULT + b"\x91" * 1_000_000)


@attack
def wire_invalid_text(targets: Targets) -> None:
    _send(b"\x81\xa1t\xa2\xff\xff")


@attack
def wire_other_type(targets: Targets) -> None:
    _send(_RESULT + msgspec.msgpack.encode([1, 2]))


@attack
def wire_unsolicited_parts(targets: Targets) -> None:
    body = _message(t="part", id=99, path="", piece=[])
    _send(*[body] * 100_000)


@attack
def wire_part_that_belongs_nowhere(targets: Targets) -> None:
    _send(_message(t="part", id=1, path="x", piece=[]))


@attack
def wire_endless_parts(targets: Targets) -> None:
    """Parts of a text, for a call that waits, without an end."""
    body = _message(t="part", id=1, path="structure", piece="x" * (1 << 20))
    _send(*[body] * 80)


@attack
def wire_long_error(targets: Targets) -> None:
    _send(_message(t="err", id=1, code="x", message="y" * 100_000))


@attack
def wire_amplified_page(targets: Targets) -> None:
    """Cells of three bytes each, of which the host makes sixty."""
    row = b"\xdc\x0f\xa0" + b"\xa2ab" * 4_000
    piece = b"\xdc" + (80).to_bytes(2, "big") + row * 80
    body = b"\x84\xa1t\xa4part\xa2id\x01\xa4path\xa5cells\xa5piece" + piece
    _send(*[body] * 10)


@attack
def wire_amplified_rows(targets: Targets) -> None:
    """Rows of one byte each, of which the host makes lists."""
    body = b"\x84\xa1t\xa4part\xa2id\x01\xa4path\xa5cells\xa5piece" + b"\xdd" + (4_000_000).to_bytes(4, "big")
    _send(body + b"\x90" * 4_000_000)


@attack
def export_without_credit(targets: Targets) -> None:
    with _control() as control:
        body = _message(t="chunk", id=1, size=1000, rows=1)
        for _ in range(50):
            control.sendall(len(body).to_bytes(4, "little") + body)
    time.sleep(60)


@attack
async def export_byte_by_byte(targets: Targets) -> None:
    """Announce a piece, and let it drop into the pipe before each deadline of a read."""
    with _control() as control:
        body = _message(t="chunk", id=1, size=60, rows=1)
        control.sendall(len(body).to_bytes(4, "little") + body)
    pipe = _pipe()
    for _ in range(60):
        os.write(pipe, b"x")
        await asyncio.sleep(0.05)


@attack
def export_overfilled(targets: Targets) -> None:
    """Write more into the pipe than was announced, and announce nothing of it."""
    os.write(_pipe(), bytes(1 << 20))


def _pipe() -> int:
    [pipe] = [number for number in range(3, 50) if _is_pipe(number)]
    return pipe


def _is_pipe(descriptor: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False
