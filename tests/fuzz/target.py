"""What a target is: a parser of the product, a grammar for it, its own errors, and what an input may cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis.strategies import SearchStrategy

Run = Callable[[bytes], object]

KB = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one input may cost; beyond four times that its process is ended.

    Attributes:
        seconds: Of the processor, for any input.
        seconds_per_kb: For each kB of the input besides.
        mb: Of memory beyond what the process had before.
        mb_per_kb: For each kB of the input besides.
        largest: Bytes of an input; longer ones are not made.
    """

    seconds: float = 0.25
    seconds_per_kb: float = 0.01
    mb: float = 24
    mb_per_kb: float = 0.5
    largest: int = 64 * KB

    def time(self, size: int) -> float:
        """Return the seconds that an input of so many bytes may take."""
        return self.seconds + self.seconds_per_kb * size / KB

    def memory(self, size: int) -> float:
        """Return the MB that an input of so many bytes may take."""
        return self.mb + self.mb_per_kb * size / KB


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One parser.

    Attributes:
        name: As the command line and the corpus have it.
        parses: The function concerned, for people.
        make: Called once in the process that runs the inputs, with a folder of its own; gives what takes an input.
        grammar: Makes inputs.
        allowed: Errors that are an answer.
        bounds: What an input may cost.
        loopback: It may connect to the loopback.
    """

    name: str
    parses: str
    make: Callable[[Path], Run]
    grammar: Callable[[], SearchStrategy[bytes]]
    allowed: tuple[type[BaseException], ...] = ()
    bounds: Bounds = field(default_factory=Bounds)
    loopback: bool = False


class Broken(Exception):  # noqa: N818 - the word that a finding shows
    """A promise about the result does not hold; the first word says which."""
