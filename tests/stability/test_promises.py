"""What 1.0 promises is still there: names with their signatures, commands with their options, codes, files, JSON.

The baseline is small, and only what it holds is promised for good. Adding needs no change of it.
"""

from __future__ import annotations

import pytest
from stability import promised
from stability.promised import kept, stored


@pytest.fixture(scope="module")
def stubs():
    return promised.stubs()


@pytest.mark.slow
@pytest.mark.parametrize("package", promised.PACKAGES)
def test_a_program_finds_the_python_names_that_it_was_written_for(stubs, package):
    faults = promised.broken(package, stored(f"{package}.pyi.txt", stubs[package]), stubs[package])
    assert not faults, "\n".join([*faults, promised.WHAT_TO_DO])


def test_a_script_finds_the_commands_and_options_that_it_was_written_for():
    kept("commands.txt", promised.command_facts())


def test_a_script_can_tell_failures_apart_by_the_same_exit_codes():
    kept("exit_codes.txt", promised.exit_facts())


def test_files_have_the_members_that_they_had_and_need_no_others():
    kept("files.txt", promised.file_facts())


@pytest.mark.parametrize(
    ("now", "faults"),
    [
        ("class A:\n x: R\n y = 1\n def f(self, a, *, b=1, c=2): ...\nclass B: ...\n", []),
        ("class A:\n x: R\n def f(self, a): ...\n", ["p.A.f: Parameter was removed b=1"]),
        ("class A:\n x: R\n def f(self, a, *, c, b=1): ...\n", ["p.A.f: Parameter was added as required c=None"]),
        ("class A:\n def f(self, a, *, b=1): ...\n", ["p.A.x: Public object was removed"]),
        ("class A:\n x: R\n z: R\n def f(self, a, *, b=1): ...\n", ["p.A.z: a new field without a default"]),
        ("class A:\n x: R\n def f(self, a, *, b=3): ...\n", ["p.A.f: Parameter default was changed b=1 b=3"]),
    ],
)
def test_names_may_be_added_and_not_taken_away(now, faults):
    assert promised.broken("p", "class A:\n x: R\n def f(self, a, *, b=1): ...\n", now) == faults


@pytest.mark.parametrize(
    ("now", "faults"),
    [
        (["page", "page --new", "more", "needed: more FILE"], []),
        (["page", "needed: page FILE"], ["newly needed: page FILE"]),
        ([], ["removed or changed: page"]),
    ],
)
def test_facts_may_be_added_unless_callers_have_to_give_more(now, faults):
    assert promised.lost(["page"], now) == faults
