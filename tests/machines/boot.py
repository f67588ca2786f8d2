"""Starts a machine, shows what it prints, and yields its answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.machines.image import Kernel, disk, write_checkout, write_first_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.machines.kinds import Machine

MEMORY = 4096
"""MiB of a machine."""

CLOCK = ("-accel", "tcg", "-icount", "shift=0,sleep=off")
"""A machine's time passes with its instructions, one each nanosecond, and to the next timer where it has none to do.

So no deadline depends on how slow the emulation is, or how busy this machine; and what waits does not take long.
Several processors would take turns, so a machine has one.
"""


class MachineError(Exception):
    """A machine cannot start here, or ended early."""


def run(machine: Machine, job: Mapping[str, object], console: Path) -> list[dict[str, Any]]:
    """Boot a machine, wait until it has done its job, and return its answers, one of each part.

    Args:
        machine: What to boot.
        job: For `guest/parts.py`.
        console: File for what the machine prints.

    Raises:
        MachineError: qemu is missing, or the machine ended before its job was done.
    """
    processor = machine.processor
    if shutil.which(processor.qemu) is None:
        raise MachineError(f"{processor.qemu} is missing; on Debian: apt install {processor.package}")
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
        with console.open("wb") as output:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        lines = answers.read_text().splitlines() if answers.exists() else []
        return [json.loads(line) for line in lines]
