"""The machines: which kernel of Debian each boots, on which processor, and what the sandbox must give there."""

from __future__ import annotations

from dataclasses import dataclass

ROOT_SUITE = "bookworm"
"""Of everything in a machine but its kernel: the oldest Debian with Python 3.11."""


@dataclass(frozen=True, kw_only=True)
class Processor:
    """A processor that qemu emulates.

    Attributes:
        debian: Its name in Debian.
        qemu: The program that emulates it.
        board: Options of that program which choose a board.
        console: The serial console's name in its kernel.
        wheels: The platform of wheels that run on it.
        package: Debian's package of that program.
        model: The processor's model, in qemu's words.
    """

    debian: str
    qemu: str
    board: tuple[str, ...]
    console: str
    wheels: str
    package: str
    model: str


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A kernel on a processor.

    Attributes:
        name: What a person types.
        processor: What it runs on.
        suites: Of Debian, in which the newest kernel of that series is.
        abi: The Landlock ABI that the kernel must have; 0 if it has none.
    """

    name: str
    processor: Processor
    suites: tuple[str, ...]
    abi: int

    @property
    def level(self) -> str:
        """The level that the sandbox must give."""
        return "full" if self.abi else "partial"


AMD64 = Processor(
    debian="amd64",
    qemu="qemu-system-x86_64",
    board=("-machine", "q35"),
    console="ttyS0",
    wheels="x86_64-manylinux_2_36",
    package="qemu-system-x86",
    model="max",
)
ARM64 = Processor(
    debian="arm64",
    qemu="qemu-system-aarch64",
    board=("-machine", "virt"),
    console="ttyAMA0",
    wheels="aarch64-manylinux_2_36",
    package="qemu-system-arm",
    model="cortex-a72",
)

MACHINES = {
    machine.name: machine
    for machine in (
        Machine(name="5.10", processor=AMD64, suites=("bullseye", "bullseye-security"), abi=0),
        Machine(name="6.1", processor=AMD64, suites=("bookworm",), abi=2),
        Machine(name="6.12", processor=AMD64, suites=("trixie",), abi=6),
        Machine(name="arm64", processor=ARM64, suites=("bookworm",), abi=2),
    )
}
