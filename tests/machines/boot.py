"""Starts a machine, shows what it prints, and yields its answers."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tests.machines.image import Kernel, disk, write_checkout, write_first_files
from tests.machines.programs import MachineError, check_programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.machines.kinds import Machine

MEMORY = 4096
"""MiB of a machine."""

CLOCK = ("-accel", "tcg", "-icount", "shift=0,sleep=off")
"""A machine's time passes with its instructions, one each nanosecond, and to the next timer where it has none to do.

So no deadline depends on how slow the emulation is, or how busy this machine; and what waits does not take long.
Several processors would take turns, so a machine has one.
"""


_LAST_LINES = 12


class EarlyEndError(MachineError):
    """A machine ended before its job was done.

    Attributes:
        answers: Of the parts that it had done.
    """

    def __init__(self, message: str, answers: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.answers = answers


def run(machine: Machine, job: Mapping[str, object], console: Path) -> list[dict[str, Any]]:
    """Boot a machine, wait until it has done its job, and return its answers, one of each part.

    Args:
        machine: What to boot.
        job: For `guest/parts.py`.
        console: File for what the machine prints.

    Raises:
        EarlyEndError: The machine ended before its job was done.
        MachineError: A program is missing here, or failed.
    """
    processor = machine.processor
    check_programs(processor)
    kernel = Kernel(machine)
    with tempfile.TemporaryDirectory(prefix="dragoman-machine-") as scratch:
        checkout, first, answers = (Path(scratch, name) for name in ("checkout.ext4", "first.cpio", "answers"))
        write_checkout(processor, job, checkout)
        with first.open("wb") as file:
            write_first_files(kernel, processor, file)
        command = [
            *("setpriv", "--pdeathsig", "KILL"),  # a machine ends with this program, however that ends
            *(processor.qemu, *processor.board, *CLOCK, "-cpu", processor.model),
            *("-m", str(MEMORY), "-nographic", "-no-reboot", "-nic", "none"),
            *("-kernel", str(kernel.image), "-initrd", str(first)),
            *("-append", f"console={processor.console} quiet panic=-1"),
            *("-drive", f"file={disk(processor)},format=raw,if=virtio,snapshot=on"),
            *("-drive", f"file={checkout},format=raw,if=virtio"),
            *("-device", "virtio-serial-pci", "-chardev", f"file,id=answers,path={answers}"),
            *("-device", "virtserialport,chardev=answers,name=answers"),
        ]
        parts = [part["name"] for part in cast("list[dict[str, str]]", job["parts"])]
        return wait(command, parts, answers, console)


def wait(command: Sequence[str], parts: Sequence[str], answers: Path, console: Path) -> list[dict[str, Any]]:
    """Run a machine until it ends, and return its answers.

    Args:
        command: Starts it.
        parts: Names of what it must answer.
        answers: File that it writes them into, a line each.
        console: File for what it prints.

    Raises:
        EarlyEndError: Answers are missing.
    """
    with console.open("wb") as output:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False)
    lines = answers.read_text().splitlines(keepends=True) if answers.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    missing = [part for part in parts if part not in {answer["part"] for answer in found}]
    if not missing:
        return found
    last = [f"  {line}" for line in console.read_text(errors="replace").splitlines() if line.strip()][-_LAST_LINES:]
    reason = (
        f"the machine ended early, with qemu's status {ended.returncode}, without an answer to: {', '.join(missing)}"
    )
    raise EarlyEndError("\n".join([f"{reason}; the last that it printed into {console}:", *last]), found)
