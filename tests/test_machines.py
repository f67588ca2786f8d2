"""What the virtual machines are started from, and what is made of their answers; booting one takes minutes."""

from __future__ import annotations

import io
import json
import lzma
from typing import TYPE_CHECKING, Any

import pytest
from tests.machines import __main__ as program
from tests.machines import boot, image, programs
from tests.machines.kinds import MACHINES
from tests.machines.programs import MachineError

if TYPE_CHECKING:
    from pathlib import Path


def doctor(level: str, abi: int) -> dict[str, Any]:
    reports = {user: {"level": level, "landlock_abi": abi} for user in ("root", "ordinary user")}
    told = {"kernel": "6.1.0", "processor": "x86_64", "require": "starts"}
    return {"part": "doctor", "seconds": 9, **told, **reports}


def answers_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *answers: dict[str, Any]) -> int:
    """Let machines answer so, and return the program's exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "run", lambda *_: answers)
    monkeypatch.setattr("sys.argv", ["machines", "6.1", "--parts", *(answer["part"] for answer in answers)])
    return program.main()


def test_a_machine_that_gives_its_level_and_fails_no_test_is_right(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = {"part": "attacks", "seconds": 9, "passed": 7, "skipped": 2, "failed": 0, "failures": []}
    assert answers_of(monkeypatch, tmp_path, doctor("full", 2), tests) == 0
    table = capsys.readouterr().out
    assert "6.1.0 x86_64: full, Landlock ABI 2" in table
    assert "7 passed, 2 skipped, 0 failed" in table


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (doctor("partial", 2), "6.1, doctor: partial, Landlock ABI 2, not full, Landlock ABI 2"),
        (
            doctor("full", 2) | {"require": "refused: no"},
            "6.1, doctor: a driver that requires full, at full: refused: no",
        ),
        (doctor("full", 1), "full, Landlock ABI 1, not full, Landlock ABI 2"),
        (
            {"part": "worker", "seconds": 9, "passed": 7, "skipped": 0, "failed": 1, "failures": ["test_x"]},
            "6.1, worker: test_x",
        ),
        (
            {"part": "worker", "seconds": 9, "passed": 0, "skipped": 0, "failed": 0, "failures": [], "status": 2},
            "6.1, worker: pytest ended with 2",
        ),
    ],
)
def test_another_level_or_a_failure_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: Any, fault: str
) -> None:
    assert answers_of(monkeypatch, tmp_path, answer) == 1
    assert fault in capsys.readouterr().out


def test_a_machine_that_ended_early_is_a_fault_with_what_it_printed_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers, console = tmp_path / "answers", tmp_path / "console"
    answer = json.dumps(doctor("full", 2))
    script = f"echo '{answer}' >{answers}; printf '{{\"part\": \"att' >>{answers}; echo; echo Kernel panic; exit 3"
    command = ["sh", "-c", script]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "run", lambda *_: boot.wait(command, ["doctor", "attacks"], answers, console))
    monkeypatch.setattr("sys.argv", ["machines", "6.1", "--parts", "doctor", "attacks"])
    assert program.main() == 1
    told = capsys.readouterr()
    assert "ended early, with qemu's status 3, without an answer to: attacks" in told.err
    assert told.err.endswith("console:\n  Kernel panic\n")
    assert "6.1.0 x86_64: full, Landlock ABI 2" in told.out, "the answer that came counts"
    assert told.out.endswith("6.1, attacks: did not end\n")


def test_a_machine_that_does_its_job_gives_an_answer_of_each_part(tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    command = ["sh", "-c", f"echo '{json.dumps(doctor('full', 2))}' >{answers}"]
    assert boot.wait(command, ["doctor"], answers, tmp_path / "console") == [doctor("full", 2)]


def test_all_that_is_missing_is_named_at_once_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("sys.argv", ["machines", "arm64"])
    assert program.main() == 2
    told = capsys.readouterr().err
    missing, _, ways = told.partition("missing here: ")[2].partition("; ")
    assert {"apt-get", "dpkg-deb", "qemu-system-aarch64", "setpriv", "uv"} <= {*missing.split(", ")}
    assert "on Debian: apt install apt " in ways
    assert "qemu-system-arm" in ways
    assert ways.endswith("; pip install uv\n")
    with pytest.raises(MachineError, match="qemu-system-x86"):
        boot.run(MACHINES["6.1"], {}, tmp_path / "console")


def test_a_program_that_fails_or_is_missing_is_told_with_what_it_said() -> None:
    with pytest.raises(MachineError, match=r"^git frobnicate … ended with status 1:\ngit: 'frobnicate' is not"):
        programs.call(["git", "frobnicate"])
    with pytest.raises(MachineError, match=r"^no-such-program is missing$"):
        programs.call(["no-such-program"])


def test_modules_are_loaded_after_those_that_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "cache", lambda: tmp_path)
    folder = tmp_path / "machines/kernel-6.1"
    (folder / "boot").mkdir(parents=True)
    (folder / "boot/vmlinuz-6.1.0-1-amd64").touch()
    needs = {"ext4": "jbd2,crc16", "jbd2": "", "crc16": "", "virtio-pci": "virtio_ring", "virtio_ring": "", "other": ""}
    for name, depends in needs.items():
        module = b"\0license=GPL\0depends=" + depends.encode() + b"\0"
        (folder / f"{name}.ko.xz").write_bytes(lzma.compress(module))
    kernel = image.Kernel(MACHINES["6.1"])
    assert kernel.release == "6.1.0-1-amd64"
    assert [name for name, _ in kernel.modules()] == ["virtio_ring", "virtio_pci", "jbd2", "crc16", "ext4"]


def test_the_first_files_are_an_archive_that_the_kernel_reads() -> None:
    file = io.BytesIO()
    image.write_archive({"init": b"#!x\n", "modules": b"a\nbc\n"}, file)
    data, at, entries = file.getvalue(), 0, {}
    while at < len(data):
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * number : at + 14 + 8 * number], 16) for number in range(13)]
        name = data[at + 110 : at + 110 + fields[11] - 1].decode()
        start = (at + 110 + fields[11] + 3) // 4 * 4
        entries[name] = data[start : start + fields[6]]
        at = (start + fields[6] + 3) // 4 * 4
    assert entries == {"init": b"#!x\n", "modules": b"a\nbc\n", "TRAILER!!!": b""}
