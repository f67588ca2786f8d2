"""What import contracts do not see: what a start really loads, how large things are, and what the repository holds."""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import bundled_drivers
from sources import name_called, nodes_of, tree_of

ROOT = Path(__file__).parents[1]
PACKAGES = {
    name: ROOT / folder / name
    for name, folder in {
        "dragoman": "runtime",
        "dragoman_worker": "runtime",
        "dragoman_registry": "registry",
        "dragoman_api": "plugins/api",
        "dragoman_dask": "plugins/dask",
        "dragoman_mcp": "plugins/mcp",
        "dragoman_sample": "plugins/sample",
        "dragoman_workbench": "plugins/workbench",
        **bundled_drivers.PACKAGES,
    }.items()
}
HEAVY = {"aiohttp", "prompt_toolkit", "pydantic", "rich", "tomlkit", "hypothesis", "pytest", "installer", "packaging"}
HOST_ONLY = HEAVY - {"aiohttp"} | {"click", "platformdirs", "sqlite3", "dragoman", "dragoman_registry"}


@cache
def modules(package: str) -> list[Path]:
    """List a package's modules; bundled drivers and the imitated servers of the samples do not count."""
    return [path for path in sorted(PACKAGES[package].rglob("*.py")) if not {"bundled", "fakes"} & {*path.parts}]


@cache
def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def loaded_by(statement: str) -> set[str]:
    """Run a statement in a fresh interpreter and give the top-level modules it loads."""
    program = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import dragoman", HEAVY | {"anyio", "asyncio", "click", "msgspec", "pluggy"}),
        ("from dragoman import Filter, Sort", HEAVY | {"anyio", "asyncio", "click", "pluggy"}),
        ("import dragoman.__main__", HEAVY | {"anyio", "asyncio", "click", "msgspec", "pluggy"}),
        ("import dragoman.cli.app", HEAVY | {"anyio", "asyncio", "msgspec", "pluggy"}),
        ("import dragoman.runtime, dragoman.sessions.session", HEAVY | {"click"}),
        ("import dragoman_api", HEAVY | {"anyio", "asyncio", "msgspec", "pluggy"}),
        ("from dragoman_api import hookimpl, PageRequest, QueryError", HEAVY | {"anyio", "asyncio"}),
        ("import dragoman_worker.main", HOST_ONLY | {"aiohttp", "anyio", "asyncio", "msgspec", "dragoman_api"}),
        ("import dragoman_worker.service", HOST_ONLY),
        (
            "import dragoman_registry.client.installed_drivers, dragoman_registry.client.resolver",
            HEAVY | {"anyio", "asyncio", "dragoman"},
        ),
        ("import dragoman_registry.client.installer", HEAVY - {"packaging"} | {"dragoman"}),
    ],
)
def test_a_start_pays_only_for_what_it_uses(statement, unwanted):
    assert not loaded_by(statement) & unwanted


def test_the_version_is_answered_before_a_parser_is_imported():
    loaded = loaded_by("sys.argv[1:] = ['--version']; from dragoman.__main__ import main; main(); print()")
    assert "dragoman" in loaded
    assert not loaded & (HEAVY | {"click", "anyio", "asyncio", "msgspec"})


def test_no_driver_can_be_imported_beside_the_host(tmp_path):
    """P1: drivers are found in registries, never in the host's own environment."""
    drivers = [
        path.name
        for path in (ROOT / "plugins").glob("*/dragoman_*")
        if path.name not in ("dragoman_api", "dragoman_dask", "dragoman_mcp", "dragoman_sample", "dragoman_workbench")
    ]
    program = f"from importlib.util import find_spec; print([name for name in {drivers} if find_spec(name)])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={}, capture_output=True, text=True, check=True
    )
    assert drivers
    assert done.stdout.strip() == "[]"


def imports_of(path: Path) -> set[str]:
    """Return what a module imports anywhere in it, by absolute name."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


def test_no_folder_of_the_tests_has_the_name_of_a_package():
    """A folder on the import path is a namespace package: find_spec would find it where the real package is missing."""
    pins = (ROOT / "tests/constraints.txt").read_text(encoding="utf-8").splitlines()
    packages = {line.partition("==")[0].replace("-", "_").lower() for line in pins if "==" in line}
    paths = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"][
        "pythonpath"
    ]
    folders = {
        path.relative_to(ROOT / root).parts[0]
        for root in paths
        for path in tracked()
        if path.is_relative_to(ROOT / root)
    }
    assert packages >= {"ray", "pytest", "aiohttp"}
    assert not packages & folders


def test_exactly_one_module_of_the_host_knows_pluggy():
    knowing = [path.name for path in modules("dragoman") if any(name.startswith("pluggy") for name in imports_of(path))]
    assert knowing == ["hook_manager.py"]


def packaging_names(path: Path) -> set[str]:
    """Return what a module takes from packaging, but for types."""
    if "packaging" not in path.read_text(encoding="utf-8"):
        return set()
    typing = [node for node in nodes_of(path) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    types = {id(inner) for node in typing for inner in ast.walk(node)}
    return {
        name.name
        for node in nodes_of(path)
        if id(node) not in types and isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
        if (name.name if isinstance(node, ast.Import) else node.module or "").partition(".")[0] == "packaging"
    }


def test_a_module_imports_the_parts_of_anyio_that_it_names():
    """The lowest version has them only where somebody imported them; a newer one has them always."""
    parts = ("from_thread", "lowlevel", "to_process", "to_thread")
    missing = []
    for path in [path for top in ("runtime", "registry", "plugins") for path in ROOT.glob(f"{top}/**/*.py")]:
        text = path.read_text(encoding="utf-8") if "node_modules" not in path.parts else ""
        for part in parts:
            imported = re.search(rf"^ *(import anyio\.{part}\b|from anyio import .*\b{part}\b)", text, re.MULTILINE)
            if f"anyio.{part}." in text and not imported:
                missing.append((str(path.relative_to(ROOT)), part))
    assert missing == []


def test_one_module_of_the_host_lets_packaging_parse():
    """Its parsers recurse, backtrack and multiply out without a bound: `packaging_parsers` measures a text before."""
    written = {"sys_tags", "compatible_tags", "cpython_tags", "mac_platforms"}  # what this host is, not what others say
    strays = {
        (path.name, name)
        for package in ("dragoman", "dragoman_registry")
        for path in modules(package)
        for name in packaging_names(path) - written
        if path.name != "packaging_parsers.py"
    }
    assert strays <= {("metadata_checks.py", "Requirement")}  # the type of a field, which is looked up when it runs


def test_every_error_a_caller_can_meet_is_of_the_one_tree():
    from dragoman_api import errors

    names = {name for name, thing in vars(errors).items() if isinstance(thing, type) and issubclass(thing, Exception)}
    strays = []
    for package in PACKAGES:
        for path in modules(package):
            for node in nodes_of(path):
                bases = {ast.unparse(base).rpartition(".")[2] for base in getattr(node, "bases", [])}
                if bases & names and path.name != "errors.py":
                    strays.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert not strays


HOST, WORKBENCH = "dragoman", "dragoman_workbench"


def public_classes() -> dict[str, list[str]]:
    """Find the public classes by name, each with the package of every class that has it."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in modules(package):
            checked = [node for branch in tree_of(path).body if isinstance(branch, ast.If) for node in branch.body]
            for node in [*tree_of(path).body, *checked]:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(package)
    return found


def test_no_two_public_classes_share_a_name_but_of_drivers():
    """Neither driver sees the other, and each calls its own database's things alike."""
    drivers = bundled_drivers.PACKAGES.keys()
    shared = {name: packages for name, packages in public_classes().items() if len(packages) > 1}
    assert {name: packages for name, packages in shared.items() if len({*packages}) < len(packages)} == {}
    assert {name: packages for name, packages in shared.items() if not drivers >= {*packages}} == {}
    assert "Driver" in shared


COMMAND = re.compile(r"dragoman [a-z]|(^|[\s'\"`(])--(?!prefix |lease=|port\b|live\b)[a-z][a-z-]+")
"""A command of dragoman, or an option of one; but etcd's console has options, and so have a fake and the kit."""


def driver_texts() -> list[tuple[str, str]]:
    """Return the texts of all code that runs as a driver, with where they are; documentation is for authors."""
    drivers = [*(folder / package for package, folder in bundled_drivers.PACKAGES.items()), "tests/examples"]
    roots = [*drivers, "plugins/api/dragoman_api", "runtime/dragoman/authoring/template"]
    texts = []
    for root in roots:
        for path in sorted((ROOT / root).rglob("*.py*")):
            if path.suffix not in (".py", ".in") or "testing" in path.parts or "tests" in path.parts[-2:]:
                continue
            if path.name == "installation.py":  # only the host calls it
                continue
            if path.suffix == ".in" and not path.stem.endswith(".py"):
                continue
            try:
                nodes = nodes_of(path)
            except SyntaxError:  # a template before its names are filled in
                texts += [(path.name, line) for line in path.read_text(encoding="utf-8").splitlines()]
                continue
            statements = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            texts += [
                (f"{path.relative_to(ROOT)}:{node.lineno}", node.value)
                for node in nodes
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements
            ]
    return texts


def test_a_driver_writes_no_command():
    """It names a remedy as data; the host quotes what it shows, and a page shows a button."""
    texts = driver_texts()
    assert len(texts) > 1_000
    assert [(where, text[:100]) for where, text in texts if COMMAND.search(text)] == []


def test_every_folder_for_temporary_files_is_a_private_one():
    """Files without a name, and folders beside their target, need none."""
    found = set()
    for package in PACKAGES.keys() - bundled_drivers.PACKAGES.keys():
        for path in modules(package):
            for node in nodes_of(path):
                name = name_called(node)
                beside = isinstance(node, ast.Call) and any(keyword.arg == "dir" for keyword in node.keywords)
                if name in {"TemporaryDirectory", "NamedTemporaryFile", "mkdtemp", "mkstemp", "mktemp", "gettempdir"}:
                    found |= set() if beside else {(path.name, name)}
    assert found == {("folders.py", "TemporaryDirectory")}


@cache
def code_lines(path: Path) -> int:
    """Count the lines that hold code; documentation, comments and empty lines are not held against anybody."""
    text = path.read_text(encoding="utf-8")
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in layout:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes_of(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_few_modules_are_long():
    long = {
        path.relative_to(ROOT): n
        for package in PACKAGES
        for path in modules(package)
        if path.read_bytes().count(b"\n") > 400 and (n := code_lines(path)) > 400
    }
    assert not long


ALONE = {
    "dragoman.cli.mcp": "a command, imported by its name",
    "dragoman.cli.run": "a command, imported by its name",
    "dragoman.cli.workbench": "a command, imported by its name",
    "dragoman_api.testing.conformance.similar": "beside grid, which is long",
    "dragoman_elasticsearch.driver": "the class that the manifest names",
    "dragoman_workbench.routes.copies": "beside imports, which is long",
    "dragoman_worker.lockdown.confine": "runs before anything else is imported",
    "dragoman_worker.lockdown.selftest": "runs before anything else is imported",
}
"""Modules of under 120 lines that one other module imports, or none, and why each has a file of its own."""


def test_a_small_module_has_two_readers_or_a_reason():
    names = {module_name(path): path for package in PACKAGES for path in modules(package)}
    readers: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                above = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
                base = ".".join(filter(None, [above if node.level else "", node.module]))
                for alias in node.names:
                    module = f"{base}.{alias.name}" if f"{base}.{alias.name}" in names else base
                    if module in readers and path.name != "__init__.py":
                        readers[module].add(name)
    small = {
        name
        for name, path in names.items()
        if path.name != "__init__.py" and path.read_bytes().count(b"\n") < 120 and len(readers[name]) < 2
    }
    assert small == ALONE.keys()


def module_name(path: Path) -> str:
    """Return a module's dotted name."""
    root = next(root for root in PACKAGES.values() if path.is_relative_to(root))
    return ".".join([*path.relative_to(root.parent).with_suffix("").parts]).removesuffix(".__init__")


def test_the_public_surface_stays_small():
    import dragoman
    import dragoman_api

    assert len(dragoman.__all__) <= 32
    assert len(dragoman_api.__all__) <= 60
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(project["dependencies"]) <= 13


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed_and_shipped(package):
    assert (PACKAGES[package] / "py.typed").is_file()
    projects = [ROOT / "pyproject.toml", *(ROOT / "plugins").glob("*/pyproject.toml")]
    shipped = [
        (project.parent / folder).resolve()
        for project in projects
        for folder in tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"][
            "packages"
        ]
    ]
    assert PACKAGES[package] in shipped


@pytest.mark.parametrize("package", PACKAGES)
def test_an_init_file_only_re_exports(package):
    for path in modules(package):
        if path.name != "__init__.py":
            continue
        for node in tree_of(path).body:
            tables = [target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)]
            allowed = (
                isinstance(node, ast.Import | ast.ImportFrom)
                or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
                or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
                or (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")
                or (tables and set(tables) <= {"__all__", "_HOME", "_ROOMS", "TYPE_CHECKING"})
            )
            assert allowed, f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:80]}"


def test_every_driver_asks_for_one_range_of_the_api():
    current = tomllib.loads((ROOT / "plugins/api/pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    major = current.partition(".")[0]
    for path in (ROOT / "plugins").glob("*/pyproject.toml"):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        if project["name"] not in (
            "dragoman-api",
            "dragoman-dask",
            "dragoman-mcp",
            "dragoman-sample",
            "dragoman-workbench",
        ):
            assert project["dependencies"][0] == f"dragoman-api~={major}.0"
        for manifest in path.parent.glob("*/driver.json"):
            assert json.loads(manifest.read_text(encoding="utf-8"))["host_api"] == f"~={major}.0"


def test_no_lint_rule_is_excused_that_is_not_selected():
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    excused = {code for codes in (lint["ignore"], *lint["per-file-ignores"].values()) for code in codes}
    for path in tracked():
        if path.suffix == ".py":
            for codes in re.findall(r"# (?:ruff: )?noqa: ((?:[A-Z]+\d+(?:, )?)+)", path.read_text(encoding="utf-8")):
                excused.update(codes.split(", "))
    assert {code for code in excused if not code.startswith(tuple(lint["select"]))} == set()
    for pattern in lint["per-file-ignores"]:
        files = pattern if pattern.endswith(".py") else f"{pattern}/*.py"
        assert next(ROOT.glob(files), None), f"{pattern} has no files"


# what the repository holds ------------------------------------------------------------------------------------------

LOCKS = re.compile(
    r"(uv|poetry|pdm|Pipfile|Cargo|Gemfile|yarn)\.lock|(package-lock|npm-shrinkwrap)\.json|pnpm-lock\.yaml"
)
NPM_LOCKS = ["plugins/workbench/page/package-lock.json", "tests/agents/npm/package-lock.json"]
"""They pin packages of the page, and of tests, by their digests; they say nothing of where these come from."""
PLACES = re.compile(
    r"""(?x)
    /(?:home|Users)/[a-z][a-z0-9_-]+/                                # somebody's own folder
    | (?:--(?:extra-)?index-url|--find-links|--trusted-host)[= ]\s*(?!file:|"?\$)(?:https?://)?[\w-]+\.[\w.-]+
    | (?:index-url|index|registry|proxy)\s*=\s*["']?https?://(?!localhost|127\.|\[?::1|example\.)
    | https?://[\w.-]+(?::\d+)?/(?:[\w.-]+/)*(?:simple|packages)/\w  # where an index keeps its files
    """
)


def test_no_lock_file_says_where_packages_come_from():
    assert [str(path.relative_to(ROOT)) for path in tracked() if LOCKS.fullmatch(path.name)] == NPM_LOCKS
    for lock in NPM_LOCKS:
        packages = json.loads((ROOT / lock).read_text(encoding="utf-8"))["packages"]
        packages.pop("")
        assert [name for name, package in packages.items() if "resolved" in package or "integrity" not in package] == []


def test_no_tracked_file_names_a_package_registry_or_a_place_on_a_machine():
    private = [str(ROOT), *([str(Path.home())] if len(Path.home().parts) > 2 else [])]
    faults = []
    for path in tracked():
        if path == Path(__file__):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if (found := PLACES.search(line)) or any(place in line for place in private):
                faults.append(f"{path.relative_to(ROOT)}:{number}: {found[0] if found else line.strip()[:80]}")
    assert not faults


@pytest.mark.parametrize(
    "line",
    [
        "pip install --index-url https://index.internal.net/simple x",
        'index-url = "https://mirror.internal.net/api"',
        "url = https://files.internal.net/packages/ab/cd.whl",
        "-e /home/somebody/checkout",
        "registry=http://npm.internal.net:4873",
    ],
)
def test_the_search_for_such_places_finds_them(line):
    assert PLACES.search(line)


def test_a_page_needs_at_most_25_concepts_and_each_is_where_the_page_says():
    text = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `([\w/]+\.py)` \|", text, re.MULTILINE)
    assert 15 < len(rows) <= 25
    for name, path in rows:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        made = {getattr(node, "name", None) or ast.unparse(getattr(node, "target", node)) for node in tree.body}
        assert name in made, f"{path} has no {name}"


AUTHOR = "a driver's project is its author's, who runs one command at a time"
OWN = "its name is of this process alone, or taken with O_EXCL"
TARGET = "a person names the file; a second process that names it is refused, or replaces it whole"
STORE = "below the state database's lock; trees have their digest for a name"
REGISTRY = "below the registry's lock, which `publisher.edit` takes"
APPENDED = "each record is one append, and nothing rewrites the file"
STREAM = "a stream that is open already"
WRITES = {  # modules that write files besides `change`, and why two processes lose nothing there
    "dragoman/authoring/closed_set.py": AUTHOR,
    "dragoman/authoring/conformance_run.py": AUTHOR,
    "dragoman/authoring/scaffold.py": AUTHOR,
    "dragoman/automations/audit.py": APPENDED,
    "dragoman/changes/undo.py": OWN,
    "dragoman/cli/app.py": STREAM,
    "dragoman/cli/command_files.py": APPENDED,
    "dragoman/cli/errors.py": STREAM,
    "dragoman/cli/line_prompt.py": "below the lock of `change`, since a line is appended",
    "dragoman/cli/streams.py": STREAM,
    "dragoman/exports/arrow_parquet.py": TARGET,
    "dragoman/exports/target_files.py": TARGET,
    "dragoman/imports/copies.py": STREAM,
    "dragoman/imports/checkpoints.py": TARGET,
    "dragoman/plugins/registries.py": APPENDED,
    "dragoman/sandbox/host_imports.py": "a cache, computed anew from nothing that it holds",
    "dragoman_registry/client/installer.py": STORE,
    "dragoman_registry/client/state_db.py": STORE,
    "dragoman_registry/client/installed_drivers.py": STORE,
    "dragoman_registry/client/trees.py": STORE,
    "dragoman_registry/files.py": "`change` and its lock themselves",
    "dragoman_registry/isolation.py": STREAM,
    "dragoman_registry/publisher/folder.py": REGISTRY,
    "dragoman_registry/publisher/inbox.py": "an upload has a folder of its own, which is renamed whole",
    "dragoman_registry/publisher/edit.py": REGISTRY,
    "dragoman_registry/publisher/mirror.py": REGISTRY,
    "dragoman_registry/trust/keys.py": "below the lock of `change`, or a name with the key's own digits",
    "dragoman_registry/trust/tuf_client.py": "below its own lock, which it holds while it verifies",
    "dragoman_registry/trust/tuf_repository.py": REGISTRY,
    "dragoman_worker/lockdown/selftest.py": "it expects to be refused",
    "dragoman_dask/folder_target.py": "its claim, taken with O_EXCL, says who writes",
    "dragoman_workbench/serving.py": OWN,
    "dragoman_workbench/uploads.py": OWN,
}


def file_writes(path: Path) -> list[str]:
    """Return the calls by which a module writes files."""
    nodes = nodes_of(path)
    imported = {
        name.asname or name.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] == "files"
        for name in node.names
    }
    return [ast.unparse(node) for node in nodes if name_called(node) in WRITING and writes(node, imported)]


STORING = {"write", "write_below", "replacing", "open_new", "add_name"}
NEW_FILES = {"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "rename", "fdopen"}
WRITING = STORING | NEW_FILES | {"replace", "open"}


def writes(call: ast.Call, imported: set[str]) -> bool:
    function, words = ast.unparse(call.func), [ast.unparse(argument) for argument in call.args]
    owner, _, name = function.rpartition(".")
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    if name in NEW_FILES:
        return owner not in ("output", "") and (name != "fdopen" or any(letter in str(words[1:]) for letter in "wax+"))
    if name == "replace" and owner:
        return owner == "os" or (len(words) == 1 and not keywords and owner != "msgspec.structs")
    if name == "open":
        mode = keywords.get("mode", "".join(words[0:1] if owner and owner != "os" else words[1:2]))
        return bool(re.search("O_WRONLY|O_RDWR|O_CREAT", mode) or re.fullmatch("'[rbt]*[wax+].*'", mode))
    return name in STORING and (owner == "files" or (not owner and name in imported))


def test_what_two_processes_may_change_is_changed_under_one_lock():
    """Small state has one writer: `dragoman_registry.files.change`; another module that writes says why it may."""
    packages = PACKAGES.keys() - bundled_drivers.PACKAGES.keys() - {"dragoman_api"}
    found = {
        str(path.relative_to(PACKAGES[package].parent)): calls
        for package in packages
        for path in modules(package)
        if (calls := file_writes(path))
    }
    assert {name: calls for name, calls in found.items() if name not in WRITES} == {}
    assert WRITES.keys() - found.keys() == set()


def packages_of(*files: str) -> set[str]:
    """The names of all packages that requirements files bring, with what those need, as they are installed here."""
    lines = [line for file in files for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    projects = {".": "dragoman"} | {
        f"./plugins/{name}": f"dragoman-{name}" for name in ("api", "dask", "mcp", "sample", "workbench")
    }
    editable = [re.fullmatch(r"-e ([^[]+)(.*)", line) for line in lines]
    wanted = [Requirement(projects[match[1]] + match[2]) for match in editable if match]
    wanted += [Requirement(line.partition("#")[0]) for line in lines if re.match("[a-z]", line)]
    packages: set[tuple[str, str]] = set()
    while wanted:
        requirement = wanted.pop()
        for extra in {"", *requirement.extras}:
            if (pair := (canonicalize_name(requirement.name), extra)) in packages:
                continue
            packages.add(pair)
            with suppress(PackageNotFoundError):  # Node is there only once the page was built
                needed = [Requirement(line) for line in distribution(requirement.name).requires or ()]
                wanted += [need for need in needed if need.marker is None or need.marker.evaluate({"extra": extra})]
    return {name for name, _ in packages}


def test_the_demo_and_the_workbench_are_set_up_with_few_packages():
    """Somebody who tries the project waits for these, and for nothing that only a test or another surface needs."""
    demo = packages_of("docs/demo/requirements.txt")
    workbench = packages_of("docs/demo/requirements.txt", "plugins/workbench/build-requirements.txt")
    assert {"dragoman", "dragoman-api", "hatchling", "aiohttp", "tuf", "cryptography"} <= demo <= workbench
    assert {"pandas", "pyarrow", "pytest", "mypy"} & workbench == set()
    assert len(demo) <= 43
    assert len(workbench) <= 45
    assert demo <= packages_of("tests/requirements.txt")  # which the Makefile counts on


def test_what_tests_run_as_a_module_is_in_the_environment_whoever_makes_it():
    """uv makes an environment without pip, where `venv` leaves one: both install what is named, and no more counts."""
    names = re.findall(r"^[a-z][a-z0-9-]+", (ROOT / "tests/requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)
    named = {name.replace("-", "_") for name in names} | {"pytest", "twine"}
    run = {
        found
        for path in tracked()
        if path.suffix == ".py" and "tests" in path.parts
        for found in re.findall(r'sys\.executable, "-m", "([a-z_]+)"', path.read_text(encoding="utf-8"))
    }
    assert "pip" in run
    assert run - named - {*sys.stdlib_module_names, "dragoman"} == set()


PAGE_LAYERS = (
    ("wire",),
    ("ui", "markdown"),
    ("state",),
    ("grid",),
    ("changes", "chart", "export", "filter", "glance", "import"),
    ("console", "marketplace"),
    ("connections",),
    ("shell",),
)
"""Folders of the page, from the bottom up: a view that lies beside the grid is given to it by the shell."""


def test_no_folder_of_the_page_imports_what_lies_above_or_beside_it():
    root = ROOT / "plugins/workbench/page"
    level = {folder: number for number, folders in enumerate(PAGE_LAYERS) for folder in folders}
    sources = [path for folder in level for path in sorted((root / folder).rglob("*.ts*"))]
    folders = {path.parent.name for path in root.glob("*/*.ts*")} - {"node_modules", "tests"}
    assert folders == level.keys()
    arrows = [
        f"{path.relative_to(root)} -> {target.relative_to(root)}"
        for path in sources
        for name in re.findall(r"""(?:from|import)\(? ?["'](\.[^"']+)["']""", path.read_text(encoding="utf-8"))
        if (target := (path.parent / name).resolve()).parent != root
        and (folder := target.relative_to(root).parts[0]) != path.relative_to(root).parts[0]
        and level[folder] >= level[path.relative_to(root).parts[0]]
    ]
    assert not arrows
