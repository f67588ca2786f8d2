"""Whatever is public has an entry of its own in the reference, with words."""

from __future__ import annotations

import ast
import importlib.util
import io
import pkgutil
import re
import subprocess
import tokenize
import tomllib
from pathlib import Path

import click
import pytest

import dragoman
import dragoman_api
from dragoman.cli.app import cli
from dragoman_api import hookspecs, kit, testing
from dragoman_api.events import ALL
from dragoman_api.testing import DriverConformance
from sources import nodes_of

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs/reference"
HEADING = re.compile(r"^#{2,4} `?([^\n`]+)`?\n(.*?)(?=^#{2,4} |\Z)", re.MULTILINE | re.DOTALL)
NO_WORDS = re.compile(r"^(`.*`|\|.*\||<!--.*-->|)$", re.MULTILINE)


def entries(*pages: str) -> dict[str, str]:
    """Return what stands below each heading of some pages."""
    text = "\n".join((REFERENCE / f"{page}.md").read_text(encoding="utf-8") for page in pages)
    return dict(HEADING.findall(text))


def rows(text: str) -> dict[str, str]:
    """Return the last cell of each row of the tables in a text, by its first."""
    cells = [re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in text.splitlines() if line.startswith("| ")]
    return {row[0].replace("\\|", "|").replace("&emsp;", "").strip("` "): row[-1] for row in cells}


def has_words(text: str) -> bool:
    return bool(NO_WORDS.sub("", text).strip())


def commands() -> list[tuple[str, click.Command]]:
    """Return every command by its whole name."""

    def walk(command, name):
        if not isinstance(command, click.Group):
            return [(name, command)]
        context = click.Context(command)
        return [
            found
            for child in command.list_commands(context)
            for found in walk(command.get_command(context, child), f"{name} {child}")
        ]

    return walk(cli, "dragoman")


@pytest.mark.parametrize("spec", [hookspecs.DriverSpec, hookspecs.AutomationSpec])
def test_every_hook_has_an_entry(spec):
    written = entries("hooks")
    for name in vars(spec):
        if not name.startswith("_"):
            assert has_words(written[name]), name


def test_every_module_of_the_kit_and_every_conformance_test_has_an_entry():
    page = (REFERENCE / "kit.md").read_text(encoding="utf-8")
    missing = [
        module.name for module in pkgutil.iter_modules(kit.__path__) if f"## {kit.__name__}.{module.name}\n" not in page
    ]
    assert missing == []
    written = rows((REFERENCE / "testing.md").read_text(encoding="utf-8"))
    assert [name for name in dir(DriverConformance) if name.startswith("test_") and not written.get(name)] == []
    assert [name for name in testing.__all__ if name not in entries("testing")] == []


def test_every_event_has_an_entry():
    written = rows((REFERENCE / "events.md").read_text(encoding="utf-8"))
    assert [kind.name for kind in ALL if not written.get(kind.name)] == []


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_every_command_and_option_has_an_entry(name, command):
    text = entries("commands")[name]
    assert has_words(text)
    written = rows(text)
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            [entry] = [key for key in written if option.opts[-1] in re.split(r"[ ,/]+", key)]
            assert written[entry], f"{name} {option.opts[-1]} says nothing"


def test_every_option_that_all_commands_take_has_an_entry():
    written = rows((REFERENCE / "commands.md").read_text(encoding="utf-8"))
    for option in cli.params:
        [entry] = [key for key in written if option.opts[0] in re.split(r"[ ,/]+", key)][:1]
        assert written[entry], option.opts[0]


@pytest.mark.parametrize("name", sorted({*dragoman.__all__, *dragoman_api.__all__}))
def test_every_public_name_has_an_entry(name):
    written = entries("python", "models", "hooks", "errors", "events")
    classes = rows((REFERENCE / "errors.md").read_text(encoding="utf-8"))
    constants = re.findall(r"^`(\w+) = .*`: .+$", (REFERENCE / "models.md").read_text(encoding="utf-8"), re.MULTILINE)
    told = has_words(written.get(name, "")) or classes.get(name) or name in constants
    assert told, f"{name} is public, and the reference says nothing"


# the rules of conformance -------------------------------------------------------------------------------------------

NUMBERED = re.compile(
    r"[A-Z](?<![^\W_].)(?<!S(?=3\b))\d{1,2}(?![^\W_])"
)  # what looks like the number of a rule, even in a name
OTHER_NUMBERS = {  # what else is numbered like that, and where
    "docs/how-to/use-the-workbench.md": {"F2", "F10"},  # keys
    "plugins/api/dragoman_api/masking.py": {"C0", "C1"},  # sets of control characters
    "registry/dragoman_registry/publisher/page_rendering.py": {"C0", "C1"},
    "runtime/dragoman/exports/csv_lines.py": {"A1"},  # a cell of a spreadsheet
}


@pytest.fixture(scope="module")
def rules() -> dict[str, str]:
    tables = tomllib.loads((REFERENCE / "rules.toml").read_text(encoding="utf-8"))
    return {name: text for table in tables.values() for name, text in table.items()}


def said(path: Path) -> str:
    """Return the text of a page, or the names, comments and docstrings of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md" or not NUMBERED.search(text):
        return text
    words = [
        token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT
    ]
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            words.append(node.name)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            words.append(node.value.value)
    return "\n".join(words)


def test_every_rule_has_a_test_and_every_test_names_a_rule_that_is_there(rules):
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert set(generate.holding()) == set(rules)
    assert len(rules) > 130


@pytest.mark.slow
def test_every_number_of_a_rule_leads_to_its_row(rules):
    listed = subprocess.run(["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    strays = {}
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            known = rules.keys() | OTHER_NUMBERS.get(name, set())
            if known.issuperset(NUMBERED.findall((ROOT / name).read_text(encoding="utf-8"))):
                continue  # no need to look which of its words are names, comments and docstrings
            if unknown := set(NUMBERED.findall(said(ROOT / name))) - known:
                strays[name] = unknown
    assert not strays
