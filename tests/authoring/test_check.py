"""`driver check`: every fault at once, and what a driver reaches for is named with the line that does it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dragoman_registry
from dragoman.authoring import check as checks
from dragoman.authoring.check import rules
from dragoman.authoring.wheel_build import built
from dragoman_api.errors import ConfigurationError
from hostile_wheels import many_faults

pytestmark = pytest.mark.slow

REGISTRY = Path(dragoman_registry.__file__).parent


def undeclared(tree) -> list[str]:
    return [fault.reason for fault in tree.check().faults if fault.code == "undeclared-access"]


def test_the_same_tree_gives_the_same_bytes(tree, fresh):
    with built(tree.path) as one, built(fresh) as other:
        assert one.report.sha256 == other.report.sha256


def test_a_wheel_that_differs_from_build_to_build_is_a_fault(tree):
    tree["backend.py"].write_text(
        "from hatchling.build import build_wheel as build\nimport os, pathlib\n"
        "def build_wheel(folder, *rest):\n"
        "    pathlib.Path('dragoman_orbit/stamp.txt').write_text(os.urandom(8).hex())\n"
        "    return build(folder, *rest)\n"
    )
    tree.change("pyproject.toml", ('"hatchling.build"', '"backend"\nbackend-path = ["."]'))
    assert tree.codes() == {"not-reproducible"}


# the sandbox ---------------------------------------------------------------------------------------------------------


ATTEMPTS = {
    "open('/etc/passwd').read()": "open '/etc/passwd'",
    "open('/tmp/orbit', 'w')": "change '/tmp/orbit'",
    "os.listdir('/etc')": "list '/etc'",
    "os.remove('/tmp/orbit')": "change '/tmp/orbit'",
    "subprocess.run(['/bin/true'])": "start '/bin/true'",
    "os.system('true')": "start ",
    "socket.create_connection(('db.example', 1))": "reach 'db.example'",
    "socket.socket().connect(('127.0.0.1', 9))": "reach \"('127.0.0.1', 9)\"",
    "ctypes.CDLL('libc.so.6')": "load 'libc.so.6'",
}


def test_what_is_not_granted_is_named_with_its_line_even_if_the_driver_hides_the_refusal(tree):
    hidden = "".join(f"try:\n    {code}\nexcept Exception:\n    pass\n" for code in ATTEMPTS)
    first = tree.on_import(f"import ctypes, os, socket, subprocess\n{hidden}") + 2
    reasons = undeclared(tree)
    for number, what in enumerate(ATTEMPTS.values()):
        place = f"(dragoman_orbit/driver.py:{first + 4 * number})."
        found = [reason for reason in reasons if reason.endswith(place)]
        assert found, (what, reasons)
        assert any(reason.startswith(f"During import, it tried to {what}") for reason in found), found


def test_a_server_beside_the_connection_is_named(tree):
    tree.driver(("        self.http = http\n", "        self.http = http\n        await elsewhere()\n"))
    opening = "await asyncio.open_connection('evil.example', 443)"
    tree.on_import(
        f"import asyncio\nasync def elsewhere():\n    try:\n        {opening}\n    except OSError:\n        pass"
    )
    reaching = "During connect, it tried to reach "
    assert any("evil.example" in reason and reason.startswith(reaching) for reason in undeclared(tree))


def test_a_blocking_client_in_connect_is_named(tree):
    tree.driver(
        ("from typing import Any\n", "from typing import Any\nimport urllib.request\n"),
        ("        self.http = http\n", "        urllib.request.urlopen(profile.base_url)\n"),
    )
    assert any(reason.startswith("During connect, it tried to reach '127.0.0.1'") for reason in undeclared(tree))


def test_reading_its_own_files_and_the_standard_library_is_no_fault(tree):
    tree["dragoman_orbit/words.txt"].write_text("a\n")
    tree.on_import(
        "from pathlib import Path\nimport sqlite3, zoneinfo\nPath(__file__).with_name('words.txt').read_text()"
    )
    assert tree.check().faults == []


# hooks, import, capabilities -----------------------------------------------------------------------------------------


def test_a_hook_that_is_claimed_and_not_there_is_a_fault(tree):
    tree.change("dragoman_orbit/driver.json", ('"export_rows"]', '"export_rows", "ping"]'))
    [fault] = tree.check().faults
    assert (fault.code, "missing ping" in fault.reason) == ("hooks", True)


def test_a_hook_of_the_wrong_colour_is_a_fault(tree):
    tree.driver(
        ("    async def list_objects(self, request", "    def list_objects(self, request"),
        ('await self.http.get_json("/tab', 'self.http.get_json("/tab'),
    )
    [fault] = tree.check().faults
    assert (fault.code, "must be async def" in fault.reason) == ("hooks", True)


@pytest.mark.parametrize(
    ("code", "said"), [("raise RuntimeError('boom')", "boom"),
                       ("import os\nos._exit(7)", "exit status 7"),
                       ("import json\njson.dumps = lambda *_: '[' * 100_000", "cannot be read"),
                       ("import json\njson.dumps = lambda *_: '{\"seconds\": ' + '9' * 5_000 + '}'", "cannot be read")]
)  # fmt: skip
def test_a_driver_that_cannot_be_imported_is_told_why(tree, code, said):
    tree.on_import(code)
    faults = [fault for fault in tree.check().faults if fault.code == "import-failed"]
    assert len(faults) == 1
    assert said in faults[0].reason


@pytest.mark.parametrize("told", ["nonsense", "[]", '{"notes": [["import", "dance", "x", ""]]}', '{"notes": 1}'])
def test_a_driver_that_speaks_for_the_probe_is_at_fault(tree, told):
    tree.on_import(f"import json\njson.dumps = lambda *_, **__: {told!r}")
    faults = tree.check().faults
    assert {fault.code for fault in faults} & {"import-failed", "undeclared-access"}


def test_an_import_that_waits_for_a_busy_machine_is_no_fault(tree):
    """The limit is on CPU time, so the same wheel passes on an idle machine and on a busy one."""
    tree.on_import("import time\ntime.sleep(0.5)")
    assert tree.codes() == set()


@pytest.mark.parametrize(("imports", "codes"), [([0.5, 0.4, 0.2], set()), ([0.5, 0.4, 0.31], {"import-time"})])
def test_the_fastest_of_a_few_imports_counts(tree, monkeypatch, imports, codes):
    measured = iter(imports)

    async def recorded(*_, **__):
        return checks._Recording(seconds=next(measured))

    monkeypatch.setattr(checks, "_recorded", recorded)
    assert tree.codes() == codes


def test_a_capability_without_its_hook_is_a_fault(tree):
    tree.change("dragoman_orbit/driver.json", ('["browse", "export"]', '["browse", "console", "filter"]'))
    faults = tree.check().faults
    assert [fault.code for fault in faults] == ["capability", "capability"]
    assert "parse_console, execute_console" in faults[0].reason


# bad input -----------------------------------------------------------------------------------------------------------


def test_a_broken_manifest_is_told_with_its_line(tree):
    tree.change("dragoman_orbit/driver.json", ('"summary": ', '"summary" '))
    [fault] = tree.check().faults
    assert fault.code == "manifest"
    assert "line 5" in fault.reason


def test_every_fault_of_a_wheel_is_told_at_once(tree):
    tree["dragoman_orbit/evil.pth"].write_text("import os")
    tree["dragoman_orbit/fast.so"].write_bytes(b"\x7fELF")
    tree["json"].mkdir()
    tree["json/__init__.py"].write_text("")
    tree.change(
        "dragoman_orbit/driver.json",
        ('"port", "label"', '"gate", "label"'),
        ('"host_api": "~=1.0"', '"host_api": "~=2.0"'),
    )
    tree.change(
        "pyproject.toml",
        ("[project.entry-points", '[project.scripts]\nls = "dragoman_orbit:x"\n\n[project.entry-points'),
        ('packages = ["dragoman_orbit"]', 'packages = ["dragoman_orbit", "json"]'),
        ('"dragoman-api~=1.0"', '"dragoman-api~=1.0", "left-pad>=1"'),
    )
    codes = tree.codes()
    assert codes >= {"pth-file", "native-code", "scripts", "shadows", "manifest"}
    tree.change("dragoman_orbit/driver.json", ('"gate", "label"', '"port", "label"'))
    assert tree.codes() >= {"host-api", "foreign-module", "metadata", "shadows"}


def test_a_hostile_wheel_is_told_with_every_fault_and_nothing_of_it_runs(tree, tmp_path, type_in):
    wheel = many_faults(tmp_path / "hostile")
    tree["backend.py"].write_text(f"import shutil\ndef build_wheel(folder):\n    shutil.copy({str(wheel)!r}, folder)\n")
    tree.change("pyproject.toml", ('"hatchling.build"', '"backend"\nbackend-path = ["."]'))
    done = type_in("driver", "check", tree.path, code=1)
    codes = (
        "path-escape path-reserved path-collision record-extra record-weak-hash record-mismatch pth-file shadows"
        " native-code data-scheme scripts manifest metadata"
    )
    for code in codes.split():
        assert re.search(rf"^{code} ", done.out, re.MULTILINE), code
    assert " · not tried in the sandbox" in done.out
    refused = type_in("driver", "publish", tree.path, "--to", tmp_path / "team", code=1)
    assert "error[wheel-rejected]" in refused.err
    assert "  pth-file: " in refused.err
    assert not (tmp_path / "team").exists()


def test_a_tree_that_is_no_project_is_told_what_to_do(tmp_path):
    with pytest.raises(ConfigurationError, match=r"no pyproject\.toml") as caught, built(tmp_path):
        pass
    assert caught.value.hint.startswith("dragoman driver new")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "dragoman-orbit"', "name = ", "line 6"),
        ('"hatchling.build"', '"no_such_backend"', "no_such_backend"),
        ('version = "0.1.0"', "", "version"),
    ],
)
def test_a_project_that_cannot_be_built_is_told_why(tree, old, new, said):
    tree.change("pyproject.toml", (old, new))
    with pytest.raises(ConfigurationError, match=said), built(tree.path):
        pass


# the command ---------------------------------------------------------------------------------------------------------


def test_the_command_counts_rules_and_faults_and_exits_with_1(tree, type_in):
    done = type_in("driver", "check", tree.path)
    assert done.out.startswith(f"check: {len(rules())} rules, 0 faults · sandbox ")
    tree.on_import("open('/etc/passwd')")
    done = type_in("driver", "check", tree.path, code=1)
    assert "undeclared-access" in done.out
    assert f"check: {len(rules())} rules, 2 faults" in done.out  # and it cannot be imported
    document = type_in("driver", "check", tree.path, "--json", code=1).json
    assert [fault["code"] for fault in document["faults"]] == ["undeclared-access", "import-failed"]


def test_every_fault_the_registry_knows_is_among_the_rules():
    """What is printed as the number of rules is what is looked for: nothing more, and nothing is left out."""
    found = set()
    for name in (
        "wheels/archive_checks",
        "wheels/metadata_checks",
        "wheels/manifest_checks",
        "validation",
    ):
        for node in ast.walk(ast.parse((REGISTRY / f"{name}.py").read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Fault", "report.add"):
                found |= {node.args[0].value} if isinstance(node.args[0], ast.Constant) else set()
            if isinstance(node, ast.keyword) and node.arg == "code" and isinstance(node.value, ast.Constant):
                found.add(node.value.value)
    compared = {"length-mismatch", "digest-mismatch"}  # with what an index promised, which an author has not
    own = ast.unparse(ast.parse((REGISTRY.parents[1] / "runtime/dragoman/authoring/check.py").read_text()))
    own += (REGISTRY.parents[1] / "runtime/dragoman/authoring/wheel_build.py").read_text().replace('"', "'")
    assert found - compared <= set(rules())
    assert all(f"'{code}'" in own for code in set(rules()) - found)
