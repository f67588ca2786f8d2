"""Objects of Python as Markdown: docstrings, signatures, and the fields of classes as tables."""
# ruff: noqa: INP001 - beside a script

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

_RULES = Path(__file__).parent / "reference/rules.toml"
LETTERS = f"[{''.join(re.findall(r'^([A-Z])1 = ', _RULES.read_text(encoding='utf-8'), re.MULTILINE))}]"
"""What the number of a conformance rule begins with."""

RULE = re.compile(rf" \((?:{LETTERS}\d+(?:, | to |-)?)+\)")  # ids of the conformance rules are for tests
_FUNCTION = re.compile(r"<function .*? at 0x[0-9a-f]+>")  # a default, whose address differs from run to run
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$")


def prose(text: str | None) -> Iterator[str]:
    """Turn a Google docstring into Markdown lines: sections become bold words, their entries a list."""
    section = ""
    for line in RULE.sub("", inspect.cleandoc(text or "")).splitlines():
        if found := SECTION.match(line):
            section = found[1]
            yield f"**{section}**"
            yield ""
        elif section and line.startswith("        "):  # the continuation of an entry
            yield line[6:]
        elif section and line.startswith("    "):
            name, colon, rest = line.strip().partition(": ")
            named = colon and section not in ("Returns", "Yields") and " " not in name
            yield f"- `{name}`: {rest}" if named else line.strip()
        elif line.startswith(">>>") or (line and section == "example"):
            if section != "example":
                section = "example"
                yield "```python"
            yield line
        else:
            if section == "example":
                yield "```"
            section = ""
            yield line
    if section == "example":
        yield "```"


def docstring(thing: object) -> str:
    """Return a docstring from the source, not one that a library generated."""
    text = vars(thing).get("__doc__") if isinstance(thing, type) else getattr(thing, "__doc__", None)
    return RULE.sub("", text) if isinstance(text, str) and "(" not in text.split()[0] else ""


def attributes(kind: type) -> dict[str, str]:
    """Return the Attributes section of a class."""
    entries: dict[str, str] = {}
    name, inside = "", False
    for line in inspect.cleandoc(docstring(kind)).splitlines():
        if SECTION.match(line):
            inside = line == "Attributes:"
        elif inside and line.startswith("        "):
            entries[name] += f" {line.strip()}"
        elif inside and line.startswith("    "):
            name, _, text = line.strip().partition(": ")
            entries[name] = text
        elif line:
            inside = False
    return entries


def summary(thing: object) -> list[str]:
    """Return a docstring without its Attributes section, which becomes a table."""
    text = re.sub(r"\nAttributes:\n(?:    .*\n|\n)+", "\n", inspect.cleandoc(docstring(thing)) + "\n")
    return list(prose(text.strip()))


def fields(kind: type) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and default of each field of a struct or dataclass."""
    if not (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)):
        return
    written = {name: note for base in reversed(kind.__mro__) for name, note in inspect.get_annotations(base).items()}
    for name, field in inspect.signature(kind).parameters.items():
        if name.startswith("_"):
            continue
        note, default = plain(written[name]), field.default
        if repr(default) == "<factory>":
            default = {"list": [], "dict": {}}.get(note.partition("[")[0], default)
        yield name, note, "" if default is field.empty else shown(default)


def plain(annotation: str) -> str:
    """Remove the wire's bounds from a type."""
    return re.sub(r"Annotated\[(.*), msgspec\.Meta\(.*?\)\]", r"\1", annotation)


def shown(default: object) -> str:
    """Format a default as its author would; the own table of a struct shows its fields."""
    if isinstance(default, msgspec.Struct):
        return f"{type(default).__name__}()"
    text = repr(default.value) if isinstance(default, StrEnum) else repr(default).replace("<factory>", "computed")
    return _FUNCTION.sub("…", text)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Write a Markdown table."""
    cells = [[*head], *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    cells.insert(1, ["---"] * len(cells[0]))
    yield from (f"| {' | '.join(row)} |" for row in cells)


def code(text: str) -> str:
    """Format a word as code; empty stays empty."""
    return f"`{text}`" if text else ""


def members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public members that a module itself defines, in source order."""
    for name, thing in vars(module).items():
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__ and name != "Cell":
            yield name, thing


def constants(module: ModuleType) -> Iterator[str]:
    """Yield the documented constants and the type aliases of a module, as in its source."""
    source = inspect.getsource(module)
    body = [item for top in ast.parse(source).body for item in (top.body if isinstance(top, ast.If) else [top])]
    for item, after in pairwise([*body, ast.Pass()]):
        if not isinstance(item, ast.Assign) or (name := getattr(item.targets[0], "id", "_")).startswith("_"):
            continue
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
        if text or isinstance(item.value, ast.BinOp | ast.Subscript):
            words = RULE.sub("", " ".join(str(text).split()))
            yield f"`{name} = {ast.get_source_segment(source, item.value)}`" + (f": {words}" if words else "")


def describe_class(name: str, kind: type, *, depth: int = 3, methods: bool = True) -> Iterator[str]:
    """Write one class: prose, then a table of its values, its fields, and its own methods."""
    known = attributes(kind)
    rows = [(code(item), code(note), code(default), known.get(item, "")) for item, note, default in fields(kind)]
    yield from ("", f"{'#' * depth} {name}", "", *(summary(kind) if rows else prose(docstring(kind))))
    if issubclass(kind, StrEnum):
        yield from ("", *table(("name", "value"), ((code(item.name), code(item.value)) for item in kind)))
    elif rows:
        by_name = all(each.kind is each.KEYWORD_ONLY for each in inspect.signature(kind).parameters.values())
        yield from ("", *table(("keyword" if by_name else "field", "type", "default", "meaning"), rows))
    for method, value in vars(kind).items():
        function = value.fget if isinstance(value, property) else value
        if method.startswith("_") or not inspect.isfunction(function) or not methods:
            continue
        head = f"`{method}`" if isinstance(value, property) else f"`{method}{signature(function)}`"
        first = RULE.sub("", inspect.cleandoc(function.__doc__ or "")).partition("\n")[0]
        yield from ("", f"{head}: {first}" if first else head)


def signature(function: Callable[..., Any]) -> str:
    """Format a signature with the annotations of the source, without `self`."""
    found = inspect.signature(function)
    kept = [item for item in found.parameters.values() if item.name != "self"]
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(found.replace(parameters=kept)))
    return _FUNCTION.sub("…", text)
