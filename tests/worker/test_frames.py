"""Frames survive any chunking, and nothing oversized is read."""

from __future__ import annotations

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.channel import FrameError, FrameReader, frame, receive

bodies = st.lists(st.binary(min_size=1, max_size=200), max_size=8)


@given(bodies, st.lists(st.integers(1, 50), min_size=1))
def test_frames_survive_any_chunking(expected: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(frame, expected))
    reader, got, at, turn = FrameReader(limit=200), [], 0, 0
    while at < len(stream):
        size = cuts[turn % len(cuts)]
        got += reader.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert got == expected


@given(bodies)
def test_reading_exactly_what_is_missing_never_reads_into_the_next_frame(expected: list[bytes]) -> None:
    stream = b"".join(map(frame, expected))
    reader, got, at = FrameReader(limit=200), [], 0
    while at < len(stream):
        wanted = reader.missing
        arrived = reader.feed(stream[at : at + wanted])
        assert len(arrived) <= 1
        got += arrived
        at += wanted
    assert got == expected


@pytest.mark.parametrize("length", [0, 201, 0xFFFFFFFF])
def test_an_empty_or_oversized_frame_is_refused_by_its_length_alone(length: int) -> None:
    with pytest.raises(FrameError, match=f"{length:,} bytes"):
        FrameReader(limit=200).feed(length.to_bytes(4, "little"))


def test_the_blocking_reader_gives_a_frame_or_the_end() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = threading.Thread(target=lambda: (theirs.sendall(frame(b"x" * 300_000)), theirs.close()))
        writer.start()
        assert receive(ours, limit=1 << 20) == b"x" * 300_000
        assert receive(ours, limit=1 << 20) is None
        writer.join()
