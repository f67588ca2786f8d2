"""`python -m tests.vague_names`: count the names that say nothing of the role of their value; counts only fall."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
VAGUE = frozenset(
    (
        "about",
        "asked",
        "each",
        "fine",
        "fit",
        "found",
        "given",
        "held",
        "here",
        "kept",
        "known",
        "made",
        "meant",
        "met",
        "more",
        "most",
        "named",
        "one",
        "said",
        "shown",
        "taken",
        "there",
        "told",
        "used",
        "wanted",
        "what",
    )
)
"""Pronouns, participles and adverbs, which stand in for the noun that a reader looks for."""

LIMITS = {
    "runtime": 25,
    "registry": 3,
    "plugins/api": 14,
}
"""How many bindings of a folder still have such a name, if any. Whoever renames some writes the new count here."""

_SKIPPED = frozenset(("bundled", "node_modules", "tests"))


def vague_bindings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each variable and parameter that is called by such a word.

    >>> list(vague_bindings("def f(asked):\\n    for each in asked:\\n        total = each"))
    [(1, 'asked'), (2, 'each')]
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.arg(arg=name, lineno=line) if name in VAGUE:
                yield line, name
            case ast.Name(id=name, ctx=ast.Store(), lineno=line) if name in VAGUE:
                yield line, name


def in_folder(folder: Path) -> list[str]:
    """Return where the modules of a folder have such names, as ``FILE:LINE NAME``."""
    paths = [path for path in sorted(folder.rglob("*.py")) if _SKIPPED.isdisjoint(path.relative_to(ROOT).parts)]
    return [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in paths
        for line, name in sorted(vague_bindings(path.read_text(encoding="utf-8")))
    ]


def main() -> int:
    """Compare each folder with its limit; the exit code is 1 if one has more or fewer."""
    exit_code = 0
    projects = [path.parent.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
    for folder in dict.fromkeys([*LIMITS, *projects]):
        limit = LIMITS.get(folder, 0)
        places = in_folder(ROOT / folder)
        if len(places) == limit:
            continue
        exit_code = 1
        if len(places) > limit:
            print("\n".join(places) if limit < 40 else f"{folder}: python -m tests.vague_names {folder} lists them")
            print(f"{folder}: {len(places)} names say nothing of their value's role, {limit} did: name yours by it")
        else:
            print(f"{folder}: {len(places)} vague names are left, {limit} before: write the new count into {__file__}")
    return exit_code


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for folder in sys.argv[1:]:
            print(*in_folder(ROOT / folder), sep="\n")
    else:
        sys.exit(main())
