"""The numbers of system calls, compared with the kernel's own headers where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from dragoman_worker.lockdown import kernel, seccomp

# The generic table is that of arm64, with the calls that its own header asks for.
HEADERS = {
    "aarch64": "#define __BITS_PER_LONG 64\n"
    + "".join(
        f"#define __ARCH_WANT_{name}\n"
        for name in ("RENAMEAT", "NEW_STAT", "SET_GET_RLIMIT", "SYS_CLONE3", "MEMFD_SECRET")
    )
    + "#include <asm-generic/unistd.h>\n",
    "x86_64": "#define __x86_64__ 1\n#include <asm/unistd_64.h>\n",
}
TABLES = {"aarch64": kernel.AARCH64, "x86_64": kernel.X86_64}


def numbers(machine: str) -> dict[str, int]:
    """Read a table with the C preprocessor."""
    if (preprocessor := shutil.which("cpp")) is None:
        pytest.skip("NOT SHOWN HERE: there is no C preprocessor")
    done = subprocess.run([preprocessor, "-dM"], input=HEADERS[machine], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("NOT SHOWN HERE: the kernel's headers are not installed")
    found = dict(re.findall(r"#define (__NR\w+) (\w+)", done.stdout))
    result = {}
    for name, value in found.items():
        while value in found:
            value = found[value]
        if value.isdigit():
            result[name.removeprefix("__NR_").removeprefix("__NR3264_")] = int(value)
    return result


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_every_number_is_that_of_the_kernels_headers(machine: str) -> None:
    real = numbers(machine)
    assert len(real) > 250
    assert {
        name: (number, real.get(name)) for name, number in TABLES[machine].items() if real.get(name) != number
    } == {}


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_no_call_that_the_filter_names_is_left_out_where_it_exists(machine: str) -> None:
    named = {*seccomp.ALLOWED.split(), *seccomp.conditional_rules(1)}
    named |= {name for names in seccomp.REFUSED.values() for name in names.split()}
    assert sorted(named & numbers(machine).keys() - TABLES[machine].keys()) == []
