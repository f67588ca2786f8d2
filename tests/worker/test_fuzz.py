"""Whatever bytes a child sends, the host lives, stays as large as it was, and knows when to end the child."""

from __future__ import annotations

import gc
import random
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.worker.fuzz import Fuzzed, bodies_of, mutations, seeds

from dragoman.sandbox.conversation import open_pipe
from thorough import THOROUGH

if TYPE_CHECKING:
    from collections.abc import Iterator

CORPUS = seeds()
SEED = 20_260


@pytest.fixture
def target() -> Iterator[Fuzzed]:
    reading, writing = open_pipe()
    with reading, writing:
        yield Fuzzed(reading)


def resident() -> int:
    """Return the bytes this process has in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def throw(target: Fuzzed, rng: random.Random, *, frames: int = 1 << 62, seconds: float = 1e9) -> tuple[int, int, float]:
    """Throw spoiled streams at the host; return the frames it got, the streams it refused, and the longest time."""
    thrown = refused = 0
    longest, end = 0.0, time.monotonic() + seconds
    for hook, stream in mutations(rng, CORPUS):
        began = time.monotonic()
        try:
            refused += not target.take(hook, stream)
        except BaseException as error:
            raise AssertionError(f"keep this as tests/worker/corpus/{hook}.found.frames: {stream.hex()}") from error
        longest = max(longest, time.monotonic() - began)
        thrown += len(bodies_of(stream))
        if thrown >= frames or began >= end:
            break
    return thrown, refused, longest


@pytest.mark.parametrize(("hook", "name", "stream"), CORPUS, ids=[name for _, name, _ in CORPUS])
@pytest.mark.parametrize("chunk", [1, 1 << 16])
async def test_what_is_honest_is_taken_and_what_is_not_ends_the_child(
    target: Fuzzed, hook: str, name: str, stream: bytes, chunk: int
) -> None:
    assert target.take(hook, stream, chunk=chunk) == ("real" in name), target.condemned


async def test_spoiled_frames_are_refused_or_taken_and_nothing_else_happens(target: Fuzzed) -> None:
    thrown, refused, longest = throw(target, random.Random(SEED), frames=30_000, seconds=2)
    assert thrown > 200
    assert refused > thrown // 20, "or the mutations spoil nothing"
    assert longest < 5


@pytest.mark.slow
@pytest.mark.timeout(1_200)
async def test_a_hundred_thousand_spoiled_frames_leave_the_host_as_large_as_it_was(target: Fuzzed) -> None:
    """A million of them in a thorough run."""
    rng, frames = random.Random(SEED + 1), 1_000_000 if THOROUGH else 100_000
    throw(target, rng, frames=50_000)
    before = resident()
    thrown, refused, _ = throw(target, rng, frames=frames)
    grown = resident() - before
    print(f"{thrown:,} frames, {refused:,} streams refused, {grown / 1e6:+.1f} MB")
    assert thrown >= frames
    assert grown < 24 << 20
    assert target.take(*CORPUS[0][::2]), "it still takes an honest answer"
