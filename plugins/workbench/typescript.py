"""Writes `page/messages.ts`: the messages between page and server as TypeScript, from their structs.

``python plugins/workbench/typescript.py [--check]``: with ``--check``, only report whether the file is as it should be.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from dragoman_workbench import messages
from dragoman_workbench.messages.base import CellTag, Failed, Request
from dragoman_workbench.messages.imports import Uploaded
from dragoman_workbench.messages.routes import ROUTES, ServerEvent

TARGET = Path(__file__).parent / "page" / "messages.ts"
HEAD = "// Made by plugins/workbench/typescript.py from dragoman_workbench/messages; change it there.\n"


def render() -> str:
    """Return the text of `page/messages.ts`."""
    kinds = sorted(
        {kind for pair in ROUTES.values() for kind in pair} | {ServerEvent, Failed, Uploaded},
        key=lambda kind: kind.__name__,
    )
    _, components = msgspec.json.schema_components(kinds, ref_template="{name}")
    documents = {kind.__name__: inspect.getdoc(kind) or "" for kind in _structs()}
    parts = [HEAD, _comment(messages.__doc__ or "")]
    parts += [
        "export type CellTag = " + _union(json.dumps(tag) for tag in CellTag.__args__) + ";\n",
        "export type Tagged = readonly [CellTag, string];\n",
        "export type Cell = null | boolean | string | Tagged;\n",
    ]
    for name, schema in sorted(components.items()):
        parts.append(_declaration(name, schema, documents.get(name, "")))
    routes = "".join(
        f"  {json.dumps(route)}: [{request.__name__}, {answer.__name__}];\n"
        for route, (request, answer) in ROUTES.items()
    )
    parts.append(_comment("What each POST /api/NAME takes and answers.") + f"export interface Routes {{\n{routes}}}\n")
    return "\n".join(parts)


def _structs() -> list[type[msgspec.Struct]]:
    kinds, queue = [], [msgspec.Struct]
    while queue:
        for kind in queue.pop().__subclasses__():
            kinds.append(kind)
            queue.append(kind)
    return kinds


def _declaration(name: str, schema: dict[str, Any], document: str) -> str:
    if "enum" in schema:
        return f"{_comment(document)}export type {name} = {_union(map(json.dumps, schema['enum']))};\n"
    required, lines, kinds = set(schema.get("required", ())), [], {kind.__name__: kind for kind in _structs()}
    # A member with a default may be left out by the page, and by a struct that omits its defaults.
    sparse = issubclass(kinds[name], Request) or kinds[name].__struct_config__.omit_defaults
    for key, value in schema["properties"].items():
        optional = "?" if sparse and key not in required else ""
        lines.append(f"  readonly {key}{optional}: {_type(value)};\n")
    return f"{_comment(document)}export interface {name} {{\n{''.join(lines)}}}\n"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return _union(map(json.dumps, schema["enum"]))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        if any("prefixItems" in variant for variant in schema["anyOf"]):
            return "Cell"
        return _union(_type(variant) for variant in schema["anyOf"])
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return "Tagged"
        case "array":
            item = _type(schema["items"]) if schema.get("items") else "unknown"
            return f"readonly {item}[]" if item.isidentifier() else f"ReadonlyArray<{item}>"
        case "object":
            values = schema.get("additionalProperties")
            return f"Readonly<Record<string, {_type(values) if isinstance(values, dict) and values else 'unknown'}>>"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as plain:
            return str(plain)
    return "unknown"


def _union(types: Any) -> str:
    return " | ".join(dict.fromkeys(types))


def _comment(text: str) -> str:
    lines = inspect.cleandoc(text).replace("*/", "* /").splitlines()
    if not lines:
        return ""
    if len(lines) == 1:
        return f"/** {lines[0]} */\n"
    return "/**\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def main() -> int:
    """Write or check the file; return the exit code."""
    text = render()
    if "--check" in sys.argv[1:]:
        if TARGET.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write(f"{TARGET} is not what dragoman_workbench/messages says; run: python {sys.argv[0]}\n")
        return 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
