"""Generate parts of the reference from the code, between the markers of each page.

python docs/generate.py            # rewrite the stale pages
python docs/generate.py --check    # name the stale pages, and change nothing
"""
# ruff: noqa: INP001, T201 - a script prints

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))
from docs.markdown import (  # noqa: E402 - a script finds its own folder only
    LETTERS,
    attributes,
    code,
    constants,
    describe_class,
    docstring,
    fields,
    members,
    prose,
    signature,
    summary,
    table,
)

REFERENCE = ROOT / "docs/reference"
SANDBOX = ROOT / "docs/explanation/sandbox.md"
MODELS = (
    "connections", "columns", "cells", "json_text", "filters", "grid", "summaries", "changes", "console", "exports",
)  # fmt: skip
PYTHON = (
    ("dragoman.runtime", "open"),
    ("dragoman.runtime", "Runtime"),
    ("dragoman.sessions.session", "Session"),
    ("dragoman.sessions.rows", "Rows"),
    ("dragoman.blocking", "connect"),
    ("dragoman.blocking", "BlockingSession"),
    ("dragoman.blocking", "BlockingRows"),
    ("dragoman.sessions.relative_times", "Span"),
    ("dragoman.sessions.selections", "RowSelection"),
    ("dragoman.sessions.selections", "Count"),
    ("dragoman.sessions.whole_reads", "RowStream"),
    ("dragoman.sessions.whole_reads", "Batches"),
    ("dragoman.exports.formats", "FileFormat"),
    ("dragoman.exports.export_run", "ExportResult"),
    ("dragoman.changes.sets", "ChangeSet"),
    ("dragoman.changes.sets", "ChangeReport"),
    ("dragoman.changes.undo", "undo_lines"),
    ("dragoman.imports.loads", "load"),
    ("dragoman.imports.load_run", "LoadReport"),
    ("dragoman.imports.copy_plans", "plan_copy"),
    ("dragoman.imports.copy_plans", "CopyPlan"),
    ("dragoman.imports.copy_columns", "ColumnFate"),
    ("dragoman.imports.previews", "preview_import"),
    ("dragoman.imports.previews", "ImportPreview"),
    ("dragoman.imports.previews", "PreviewRow"),
    ("dragoman.imports.new_objects", "TypeProposal"),
    ("dragoman.imports.new_objects", "ColumnProposal"),
    ("dragoman.imports.new_objects", "ReadingChoice"),
    ("dragoman.plugins.lifecycle", "Plugins"),
    ("dragoman.plugins.driver_views", "DriverListing"),
    ("dragoman.automations.consent", "Question"),
    ("dragoman.connections.saved_connections", "Connections"),
    ("dragoman.connections.saved_connections", "SavedConnection"),
    ("dragoman.references", "Reference"),
    ("dragoman.plugins.registries", "Registries"),
    ("dragoman.extending", "Split"),
    ("dragoman.extending", "PartResult"),
)
DASK = ("export", "PartsResult", "on_cluster", "unfinished", "abandon", "cluster", "read", "close")
RULES = re.compile(rf"(?<![A-Za-z0-9])({LETTERS})(\d+)(?:(?:-| to )\1(\d+))?(?![A-Za-z0-9])")  # one, or a range
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def models() -> Iterator[str]:
    """Write every model of the contract, module by module."""
    for name in MODELS:
        yield from described_module(f"dragoman_api.{name}")
    room = importlib.import_module("dragoman_api.events")
    yield from ("", "## dragoman_api.events", "", "The events have [a page of their own](events.md).")
    for item in ("ConnectionInfo", "Call"):
        yield from describe_class(item, getattr(room, item))


def described_module(name: str) -> Iterator[str]:
    """Write a module with its constants, classes and functions."""
    module = importlib.import_module(name)
    yield from ("", f"## {name}", "", *summary(module))
    yield from (f"\n{line}" for line in constants(module))
    for item, thing in members(module):
        if isinstance(thing, type):
            yield from describe_class(item, thing)
        elif inspect.isfunction(thing):
            yield from ("", f"### {item}", "", f"`{item}{signature(thing)}`", "", *prose(thing.__doc__))


def kit() -> Iterator[str]:
    """Write every module of the kit."""
    package = importlib.import_module("dragoman_api.kit")
    for module in pkgutil.iter_modules(package.__path__):
        yield from described_module(f"dragoman_api.kit.{module.name}")


def testing() -> Iterator[str]:
    """Write what `dragoman_api.testing` offers."""
    package = importlib.import_module("dragoman_api.testing")
    for name in package.__all__:
        thing = getattr(package, name)
        if isinstance(thing, type):
            yield from describe_class(name, thing, methods=name != "DriverConformance")
        else:
            yield from ("", f"### {name}", "", called(thing, name), "", *prose(thing.__doc__))


def conformance() -> Iterator[str]:
    """Write what each conformance test holds a driver to."""
    suite = importlib.import_module("dragoman_api.testing").DriverConformance
    for part in suite.__mro__:
        tests = [(code(name), docstring(test)) for name, test in vars(part).items() if name.startswith("test_")]
        if tests:
            rows = [(name, " ".join(text.split())) for name, text in tests]
            yield from ("", f"### {part.__name__}", "", *prose(part.__doc__), "", *table(("test", "a driver"), rows))


def manifest() -> Iterator[str]:
    """Write the classes of a manifest, except the form, which is a model of the contract."""
    module = importlib.import_module("dragoman_registry.wheels.manifest")
    for name, thing in members(module):
        if isinstance(thing, type):
            yield from describe_class(name, thing)
    kinds = importlib.import_module("dragoman_registry.names")
    yield from ("", "### Names", "", "| type | a | made of | characters at most |", "| --- | --- | --- | --- |")
    for name in ("PluginId", "TypeName", "WheelName", "Digest"):
        kind = getattr(kinds, name).__metadata__[1]
        yield f"| `{name}` | {kind.word} | {kind.hint} | {kind.most} |"


def python() -> Iterator[str]:
    """Write what `dragoman` adds to the models: its functions and classes, method by method."""
    for room, name in PYTHON:
        thing = getattr(importlib.import_module(room), name)
        if inspect.isfunction(thing):
            yield from ("", f"## {name}", "", called(thing, name), "", *prose(thing.__doc__))
        else:
            yield from described(thing, name)


def dask() -> Iterator[str]:
    """Write the functions and classes of `dragoman_dask`."""
    package = importlib.import_module("dragoman_dask")
    for name in DASK:
        thing = getattr(package, name)
        if inspect.isfunction(thing):
            yield from ("", f"### dragoman_dask.{name}", "", called(thing, name), "", *prose(thing.__doc__))
        else:
            yield from describe_class(f"dragoman_dask.{name}", thing)


def described(kind: type, name: str) -> Iterator[str]:
    """Write a class with a heading and the full documentation of each method."""
    yield from describe_class(name, kind, depth=2, methods=False)
    if kind.__init__.__doc__ and inspect.isfunction(kind.__init__):
        yield from ("", called(kind.__init__, name), "", *prose(kind.__init__.__doc__))
    parts = [kind, *(base for base in kind.__mro__[1:] if base.__module__.startswith("dragoman."))]
    for part, (method, value) in ((each, member) for each in parts for member in vars(each).items()):
        function = value.fget if isinstance(value, property) else value
        if not inspect.isfunction(function) or method.startswith("_"):
            continue
        if inspect.unwrap(function).__qualname__ == f"{part.__name__}.{method}":  # else it is made from another class's
            head = () if isinstance(value, property) else (called(function, method), "")
            yield from ("", f"### {name}.{method}", "", *head, *prose(function.__doc__))


def called(function: Callable[..., Any], name: str) -> str:
    """Format a call as a caller writes it."""
    inner = inspect.unwrap(function)
    if inspect.isasyncgenfunction(inner):
        begin = "async with " if inner is not function else "async for … in "
    else:
        begin = "await " if inspect.iscoroutinefunction(function) else ""
    return f"`{begin}{name}{signature(function)}`"


def hooks() -> Iterator[str]:
    """Write every hook with its signature and its full documentation."""
    from dragoman_api import hookspecs

    for spec in (hookspecs.DriverSpec, hookspecs.AutomationSpec):
        yield from ("", f"## {spec.__name__}", "", *prose(spec.__doc__))
        for name, function in vars(spec).items():
            if not name.startswith("_"):
                head = f"`async def {name}{signature(function)}`"
                yield from ("", f"### {name}", "", head, "", *prose(function.__doc__))
    yield from described(importlib.import_module("dragoman_api.http").Http, "Http")


def events() -> Iterator[str]:
    """Write every event with its fields."""
    from dragoman_api.events import ALL, Event

    rows = []
    for kind in ALL:
        own = [f"`{name}: {note}`" for name, note, _ in fields(kind) if name != "at"]
        rows.append((code(kind.name), ", ".join(own), " ".join(inspect.cleandoc(docstring(kind)).split())))
    yield from table(("event", "fields", "when"), rows)
    yield from described(Event, "Event")


def events_schema() -> str:
    """Return the JSON Schema of one line of `--events`; the event's name determines its other fields."""
    from dragoman_api.events import ALL

    schema = msgspec.json.schema(Union[ALL])  # noqa: UP007 - of a tuple
    for kind in schema["$defs"].values():
        kind["required"] = list(kind["properties"])  # a line has every field
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A line of dragoman --events"}
    return json.dumps({**head, **schema}, indent=1) + "\n"


def remedies() -> Iterator[str]:
    """Write the kinds of remedies and their arguments."""
    from dragoman_api.remedies import ABOUT_PLUGINS, ARGUMENTS, Remedy

    rows = []
    for kind, (required, optional) in ARGUMENTS.items():
        names = [f"`{name}`" for name in sorted(required)] + [f"`{name}` (optional)" for name in sorted(optional)]
        own = [] if kind in ABOUT_PLUGINS else ["`connection`"]
        example = Remedy(kind, {name: name.upper() for name in required | optional})
        rows.append((f"`{kind}`", ", ".join([*own, *names]), str(example).replace("'", "")))
    yield from table(("kind", "arguments", "in words"), rows)


def errors() -> Iterator[str]:
    """Write the tree of errors."""
    from dragoman_api.errors import DragomanError

    def walk(kind: type[DragomanError], depth: int) -> Iterator[tuple[str, str, str]]:
        if kind.__module__ == DragomanError.__module__:
            indent = "&emsp;" * depth
            yield f"{indent}`{kind.__name__}`", code(kind.code), docstring(kind).splitlines()[0]
            for child in kind.__subclasses__():
                yield from walk(child, depth + 1)

    yield from table(("class", "code", "meaning"), walk(DragomanError, 0))
    yield from ("", *describe_class("DragomanError", DragomanError))


def lines() -> Iterator[str]:
    """Write the members of a line of a change file, and its JSON Schema."""
    from dragoman.changes.files import LINES

    schema = msgspec.json.schema(LINES)
    for kind in schema["$defs"].values():
        if "op" not in kind["properties"]:
            continue
        rows = [
            (code(name), "yes" if name in kind["required"] else "no", about.get("description", ""))
            for name, about in sorted(kind["properties"].items(), key=lambda item: item[0] not in kind["required"])
            if name != "op"
        ]
        [op] = kind["properties"]["op"]["enum"]
        yield from ("", f"### {op}", "", kind["description"], "", *table(("member", "needed", "meaning"), rows))
    text = msgspec.json.format(msgspec.json.encode(schema), indent=1).decode()
    yield from ("", "### JSON Schema", "", "Of one line.", "", "```json", *text.splitlines(), "```")


def settings() -> Iterator[str]:
    """Write the keys of config.toml."""
    from dragoman.settings import AgentRules, Guard, Guards, Limit, Settings

    def rows(kind: type, texts: type) -> Iterator[tuple[str, ...]]:
        known = attributes(texts)
        return ((code(name), code(note), code(default), known.get(name, "")) for name, note, default in fields(kind))

    yield from table(("key", "type", "default", "meaning"), rows(Settings, Settings))
    yield from ("", "`[guards]`, and the same for one connection below `[guards.connections.NAME]`:", "")
    yield from table(("key", "type", "default", "meaning"), (row for row in rows(Guards, Guard) if row[3]))
    yield from ("", "`[guards.limits]`, and `[guards.connections.NAME.limits]`:", "", *summary(Limit))
    yield from ("", *table(("key", "type", "default", "meaning"), rows(Limit, Limit)))
    yield from ("", "`[connections.NAME.agents]`:", "", *summary(AgentRules))
    yield from ("", *table(("key", "type", "default", "meaning"), rows(AgentRules, AgentRules)))


def commands() -> Iterator[str]:
    """Write every command with its arguments and options."""
    import click

    from dragoman.cli.app import cli

    def walk(command: click.Command, path: str) -> Iterator[str]:
        context = click.Context(command, info_name=path)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                if child is not None and not child.hidden:
                    yield from walk(child, f"{path} {name}")
            return
        usage = " ".join(command.collect_usage_pieces(context))
        yield from ("", f"### {path}", "", f"`{path} {usage}`", "", *inspect.cleandoc(command.help or "").splitlines())
        records = [item.get_help_record(context) for item in command.params if isinstance(item, click.Option)]
        if rows := [(code(record[0]), record[1]) for record in records if record]:
            yield from ("", *table(("option", "meaning"), rows))

    context = click.Context(cli, info_name="dragoman")
    shared = [item.get_help_record(context) for item in cli.params if isinstance(item, click.Option)]
    yield from table(
        ("option of every command", "meaning"), ((code(record[0]), record[1]) for record in shared if record)
    )
    yield from walk(cli, "dragoman")


def checks() -> Iterator[str]:
    """Write the rules of `driver check`."""
    from dragoman.authoring.check import rules

    yield from table(("code", "a fault when"), ((code(name), when) for name, when in rules().items()))


def attacks() -> Iterator[str]:
    """Write the outcome of each attack of the tests' hostile driver at each level."""
    suite, listed = (importlib.import_module(f"tests.attacks.{name}") for name in ("suite", "table"))
    record = suite.read_record()
    machine = record["machine"]
    yield (
        f"Recorded on {machine['system']}, {machine['machine']}, Landlock ABI {machine['landlock_abi']}, "
        f"Python {machine['python']}."
    )
    yield ""
    columns = list(reversed(listed.COLUMNS))
    counts = {user: [record[user][level] for level in columns] for user in suite.USERS}
    rows = (
        (user, *(f"{len(suite.successes({'outcomes': found}))} of {len(found)}" for found in counts[user]))
        for user in counts
    )
    yield from table(("attacks that succeed, if the host runs as", *(listed.WORDS[level] for level in columns)), rows)
    yield ""
    yield "The same attacks on a host in surroundings that give less:"
    yield ""
    heads = ("surroundings", "level", "attacks that succeed", "which")
    yield from table(heads, (surroundings_row(name, listed.ATTACKS, record) for name in suite.SURROUNDINGS))
    titles: dict[str, list[Any]] = {}
    for title, group in listed.GROUPS:
        titles.setdefault(title, []).extend(group)
    for title, group in titles.items():
        yield from ("", f"### {title}", "")
        heads = ("attack", "held by", *(listed.WORDS[level] for level in columns), "control")
        yield from table(heads, (attack_row(attack, record["root"], columns, listed.WORDS) for attack in group))


def surroundings_row(name: str, attacks: dict[str, Any], record: dict[str, Any]) -> Iterator[str]:
    """Write surroundings, the level that was reported there, and the attacks that succeeded."""
    outcome = record["surroundings"][name]
    succeeded = outcome["succeeded"]
    yield name
    yield code(outcome["report"])
    yield f"{len(succeeded)} of {outcome['made']}"
    everywhere = [attack for attack in succeeded if record["root"]["full"][attack] == "succeeded"]
    rest = len(succeeded) - len(everywhere)
    words = [attacks[attack].what for attack in everywhere]
    yield "; ".join([*words, *([f"{rest} that only Landlock holds"] if rest else [])])


def attack_row(
    attack: Any, found: dict[str, dict[str, str]], columns: list[str], words: dict[str, str]
) -> Iterator[str]:
    """Write one attack and its outcome at each level."""
    yield attack.what
    yield attack.held
    for level in columns:
        end = found[level].get(attack.name, "")
        yield words.get(end, end if "unsupported" not in end else "not available")
    end = found.get(attack.control, {}).get(attack.name, "")
    if not attack.control:
        yield f"none: {attack.why}"
    elif end.startswith("unsupported"):
        yield f"not shown: {end.partition(': ')[2]}"
    else:
        yield words[attack.control] if end == "succeeded" else f"{words[attack.control]}: {words.get(end, end)}"


def parsers() -> Iterator[str]:
    """Write the fuzzed parsers, and how much an input may cost."""
    targets = importlib.import_module("tests.fuzz.table").TARGETS
    heads = ("target", "parser", "seconds", "MB", "kB at most")
    yield from table(heads, (parser_row(target) for target in targets.values()))


def parser_row(target: Any) -> Iterator[str]:
    """Write one target."""
    bounds = target.bounds
    yield target.name
    yield ", ".join(map(code, target.parses.split(", ")))
    yield f"{bounds.seconds:g} + {bounds.seconds_per_kb:g} per kB"
    yield f"{bounds.mb:g} + {bounds.mb_per_kb:g} per kB"
    yield f"{bounds.largest / 1000:g}"


def rules() -> Iterator[str]:
    """Write the rules of conformance, each with the files of the tests that hold it and a mark if dragoman deviates."""
    held, apart = holding(), deviating()
    for title, texts in tomllib.loads((REFERENCE / "rules.toml").read_text(encoding="utf-8")).items():
        yield from ("", f"## {title}", "")
        marked = {
            name: f"{text} ([deviation](deviations.md))" if name in apart else text for name, text in texts.items()
        }
        rows = ((name, text, ", ".join(map(linked, held.get(name, ())))) for name, text in marked.items())
        yield from table(("number", "rule", "held by"), rows)


def deviating() -> set[str]:
    """Find the rules that have a row on the page of deviations."""
    rows = (REFERENCE / "deviations.md").read_text(encoding="utf-8").splitlines()
    first = (re.match(rf"\| ({LETTERS}\d[^|]*) \|", row) for row in rows)
    return {rule for found in first if found for rule in rules_named(found[1])}


def holding() -> dict[str, list[Path]]:
    """Find the test files that name each rule, in the name or the docstring of a test."""
    held: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if not RULES.search(text := path.read_text(encoding="utf-8")):
            continue
        tests = (
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        )
        named = {rule for node in tests for rule in rules_named(f"{node.name} {ast.get_docstring(node) or ''}")}
        for rule in named:
            held.setdefault(rule, []).append(path)
    return held


def rules_named(text: str) -> Iterator[str]:
    """Find the rules that a text names: E12, W13-W17, W28 to W32."""
    for kind, first, last in RULES.findall(text):
        yield from (f"{kind}{number}" for number in range(int(first), int(last or first) + 1))


def linked(path: Path) -> str:
    """Link a page of the reference to a test file."""
    return f"[{path.relative_to(ROOT / 'tests').with_suffix('').as_posix()}](../../{path.relative_to(ROOT).as_posix()})"


WRITERS = {
    writer.__name__: writer
    for writer in (
        *(python, dask, hooks, models, manifest, events, errors, remedies, settings),
        *(commands, checks, lines, attacks, parsers, rules, kit, testing, conformance),
    )
}


FILES = {"events.schema.json": events_schema}


def render(page: str) -> str:
    """Return a page with every generated block regenerated."""

    def written(found: re.Match[str]) -> str:
        lines = "\n".join(WRITERS[found[2]]()).strip("\n")
        return found[1] + "\n" + re.sub(r"\n{3,}", "\n\n", lines) + "\n\n" + found[3]

    return BLOCK.sub(written, page)


def stale() -> Iterator[tuple[Path, str]]:
    """Yield each page that differs from the code, and its correct text."""
    for path in (*sorted(REFERENCE.glob("*.md")), SANDBOX):
        page = path.read_text(encoding="utf-8")
        if (fresh := render(page)) != page:
            yield path, fresh
    for name, writer in FILES.items():
        path = REFERENCE / name
        if path.exists() and (fresh := writer()) != path.read_text(encoding="utf-8"):
            yield path, fresh


def main() -> int:
    """Rewrite stale pages, or only name them."""
    pages = list(stale())
    for path, fresh in pages:
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
        if "--check" not in sys.argv:
            path.write_text(fresh, encoding="utf-8")
    return 1 if pages and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
