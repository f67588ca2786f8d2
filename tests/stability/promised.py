"""Describes the promised interfaces, and finds what a description lost since the baseline.

Python names are stubs that griffe reads. Everything else is facts: one line each, so that adding is a new line, and
removing or changing is a lost one. A line that begins with ``needed`` says what a caller has to give, and a new one
breaks callers.
"""

from __future__ import annotations

import ast
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import click
import griffe
import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGES = ("dragoman", "dragoman_api", "dragoman_dask")
FOLDERS = [ROOT / folder for folder in ("runtime", "registry", "plugins/api", "plugins/dask")]
WHAT_TO_DO = (
    "1.0 promises it (docs/reference/stability.md): keep it, add the new one beside it, and announce the old one's end "
    "in a fragment. Only a major version writes the baseline anew: DRAGOMAN_GOLDEN=write"
)


def stubs() -> dict[str, str]:
    """Return a stub of each package: its public names with their signatures, without documentation and types."""
    loader = griffe.GriffeLoader(search_paths=FOLDERS)
    packages = [loader.load(name) for name in PACKAGES]
    loader.resolve_aliases(implicit=True)
    return {package.name: "\n".join(_names(package)) + "\n" for package in packages}


def broken(package: str, before: str, now: str) -> list[str]:
    """Return in one sentence each what a program that was written for the baseline misses."""
    old, new = (griffe.visit(package, filepath=Path(f"{package}.py"), code=code) for code in (before, now))
    faults = [
        " ".join([f"{breakage.obj.path}: {breakage.kind.value}", *_values(breakage.old_value, breakage.new_value)])
        for breakage in griffe.find_breaking_changes(old, new)
    ]
    for name, kind in new.classes.items():
        for field, value in kind.attributes.items() if name in old.classes else ():
            if value.value is None and field not in old.classes[name].members:
                faults.append(f"{package}.{name}.{field}: a new field without a default")
    return faults


def _values(*values: object) -> list[str]:
    """Return how a parameter or a value was and is."""
    return [
        f"{value.name}={value.default}" if isinstance(value, griffe.Parameter) else str(value)
        for value in values
        if value is not None and not isinstance(value, griffe.Object)
    ]


def _names(package: griffe.Module) -> Iterator[str]:
    for name in sorted(package.exports or ()):
        target = package[str(name)]
        yield from _stub(target.final_target if target.is_alias else target, str(name), "")


def _stub(value: griffe.Object | griffe.Alias, name: str, indent: str) -> Iterator[str]:
    if value.is_class:
        yield f"{indent}class {name}:"
        members = {key: member for key, member in value.all_members.items() if _is_promised(key, member)}
        for key in sorted(members):
            member = members[key]
            yield from _stub(member.final_target if member.is_alias else member, key, f"{indent} ")
        if not members:
            yield f"{indent} ..."
    elif value.is_function:
        kind = "async def" if "async" in value.labels else "def"
        yield f"{indent}{kind} {name}({', '.join(_parameters(value.parameters))}): ..."
    elif value.is_attribute:
        needed = value.value is None and "property" not in value.labels
        yield f"{indent}{name}: R" if needed else f"{indent}{name} = {_constant(value)}"


def _constant(value: griffe.Object | griffe.Alias) -> str:
    """Return the value of a constant or the default of a field; anything else is only there."""
    text = str(value.value)
    with suppress(ValueError, SyntaxError):
        ast.literal_eval(text)
        return "P" if "instance-attribute" in value.labels and "class-attribute" not in value.labels else text
    return "P"


def _is_promised(key: str, member: griffe.Object | griffe.Alias) -> bool:
    return (key == "__init__" or not key.startswith("_")) and not member.is_module


def _parameters(parameters: griffe.Parameters) -> Iterator[str]:
    starred = False
    for parameter in parameters:
        kind, name = parameter.kind, parameter.name
        if kind is griffe.ParameterKind.keyword_only and not starred:
            yield "*"
            starred = True
        starred = starred or kind is griffe.ParameterKind.var_positional
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(kind, "")
        yield f"{stars}{name}" if stars or parameter.default is None else f"{name}={parameter.default}"


def command_facts() -> Iterator[str]:
    """Yield the commands with their arguments, options and choices."""
    from dragoman.cli.app import cli

    yield from _facts_of_command(cli, "dragoman")


def _facts_of_command(command: click.Command, path: str) -> Iterator[str]:
    yield path
    context = click.Context(command, info_name=path)
    places = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    for place, argument in enumerate(places):
        yield f"{path} #{place} {argument.make_metavar(context).strip('[]').rstrip('.')}{_many(argument)}"
        yield from _need(path, argument, f"#{place}")
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            longest = max(option.opts, key=len)
            for name in (*option.opts, *option.secondary_opts):
                yield f"{path} {name}{'' if option.is_flag else ' VALUE'}{_many(option)}"
            choices = option.type.choices if isinstance(option.type, click.Choice) else ()
            yield from (f"{path} {longest} {choice}" for choice in choices)
            yield from _need(path, option, longest)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _facts_of_command(child, f"{path} {name}")


def _many(parameter: click.Parameter) -> str:
    return "…" if parameter.multiple or parameter.nargs != 1 else ""


def _need(path: str, parameter: click.Parameter, name: str) -> Iterator[str]:
    if parameter.required:
        yield f"needed: {path} {name}"


def exit_facts() -> Iterator[str]:
    """Yield the exit code of each class of errors, and of what ends a command from outside."""
    from dragoman.cli import errors
    from dragoman_api.errors import DragomanError

    def walk(kind: type[DragomanError]) -> Iterator[type[DragomanError]]:
        if kind.__module__ == DragomanError.__module__:
            yield kind
            for child in kind.__subclasses__():
                yield from walk(child)

    for kind in walk(DragomanError):
        yield f"exit {errors.exit_code(kind('x'))}: {kind.__name__} {kind.code}"
    for name in ("OK", "FAILED", "USAGE", "CONNECTION", "NOT_APPLIED", "INTERRUPTED"):
        yield f"exit {getattr(errors, name)}: {name.lower()}"
    yield from (f"exit {code}: {name}" for name, code in errors.STOPPED.items())


def file_facts() -> Iterator[str]:
    """Yield the members of the files that other programs and other versions read and write."""
    from dragoman.changes.files import LINES
    from dragoman.exports.export_run import ExportResult
    from dragoman.sessions.selection_codec import SelectionTexts
    from dragoman.settings import Settings
    from dragoman_api.events import ALL
    from dragoman_registry.wheels.manifest import Manifest

    written = {"export manifest": ExportResult, "event": tuple(ALL)}
    read = {"change file": LINES, "saved query": SelectionTexts, "config.toml": Settings, "driver.json": Manifest}
    for name, kind in {**written, **read}.items():
        schema = msgspec.json.schema(Union[kind] if isinstance(kind, tuple) else kind)  # noqa: UP007 - of a tuple
        yield from _members(schema, name, needs=name in read)


def _members(schema: dict[str, Any], name: str, *, needs: bool) -> Iterator[str]:
    definitions = schema.get("$defs", {})

    def walk(node: dict[str, Any], path: str, seen: tuple[str, ...]) -> Iterator[str]:
        if reference := node.get("$ref"):
            definition = reference.rpartition("/")[2]
            if definition not in seen:
                yield from walk(definitions[definition], path, (*seen, definition))
            return
        for part in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
            yield from walk(part, path, seen)
        tag = next((str(member["enum"][0]) for member in node.get("properties", {}).values()
                    if len(member.get("enum", ())) == 1), "")  # fmt: skip
        place = f"{path} <{tag}>" if tag else path
        for key, member in node.get("properties", {}).items():
            yield f"{place} {key} {_type(member)}".rstrip()
            if needs and key in node.get("required", ()):
                yield f"needed: {place} {key}"
            yield from walk(member, f"{place} {key}", seen)
        yield from (f"{path} = {value}" for value in node.get("enum", ()) if not tag)
        if isinstance(items := node.get("items"), dict):
            yield from walk(items, f"{path}[]", seen)
        if isinstance(others := node.get("additionalProperties"), dict):
            yield from walk(others, f"{path}.*", seen)

    yield from walk(schema, name, ())


def _type(member: dict[str, Any]) -> str:
    kinds = {str(part.get("type", "")) for part in member.get("anyOf", [member])} - {""}
    return "|".join(sorted(kinds))


OF_DATA = ("rows[]", "values", "details", "permissions", "hidden", "unusable", "body", "arguments")
"""Members whose own members are names of data: columns, fields of a form."""


def shape(value: Any, path: str = "") -> Iterator[str]:
    """Yield the members of a JSON document with their kinds."""
    match value:
        case dict():
            yield f"{path} object"
            for key, member in value.items() if not path.endswith(OF_DATA) else ():
                yield from shape(member, f"{path}.{key}")
        case list():
            yield f"{path} array"
            for item in value:
                yield from shape(item, f"{path}[]")
        case None:
            return
        case bool():
            yield f"{path} boolean"
        case int() | float():
            yield f"{path} number"
        case _:
            yield f"{path} string"


def lost(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """Return in one sentence each what the facts lost, and what callers have to give in addition."""
    old, new = {*before}, {*now}
    gone = sorted(fact for fact in old - new if not fact.startswith("needed: "))
    added = sorted(fact for fact in new - old if fact.startswith("needed: "))
    return [f"removed or changed: {fact}" for fact in gone] + [
        f"newly {fact}" for fact in added if _existed(fact.removeprefix("needed: "), old)
    ]


def _existed(fact: str, old: set[str]) -> bool:
    """Tell whether what a need belongs to is in the baseline: all of a new command is new."""
    owner = fact.rpartition(" ")[0]
    return any(line.startswith(f"{owner} ") or line == owner for line in old)


def stored(name: str, now: str) -> str:
    """Return a file of the baseline; DRAGOMAN_GOLDEN=write makes it what is there now."""
    file = HERE / "baseline" / name
    if os.environ.get("DRAGOMAN_GOLDEN") == "write":
        file.write_text(now, encoding="utf-8")
    return file.read_text(encoding="utf-8")


def kept(name: str, facts: Iterable[str]) -> None:
    """Fail if facts of the baseline are lost, with what to do about it."""
    now = sorted({*facts})
    faults = lost(stored(name, "".join(f"{fact}\n" for fact in now)).splitlines(), now)
    assert not faults, "\n".join([*faults, WHAT_TO_DO])
