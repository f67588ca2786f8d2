"""What is written twice, for POSIX and for Windows, is used alike: the same names that take the same arguments."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

import dragoman_registry
import dragoman_worker
from dragoman import sandbox
from dragoman.sandbox import system
from dragoman_worker import wire

if TYPE_CHECKING:
    from collections.abc import Sequence


def surface(body: Sequence[ast.stmt]) -> dict[str, object]:
    """Return the public names of a block, with the arguments that each takes: number, keywords, defaults."""
    found: dict[str, object] = {}
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found[node.name] = surface(node.body)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            keywords = [argument.arg for argument in node.args.kwonlyargs]
            found[node.name] = (len(node.args.args), keywords, [ast.unparse(each) for each in node.args.defaults])
    return found


def parsed(package: object, name: str) -> list[ast.stmt]:
    path = Path(package.__path__[0], name)  # type: ignore[attr-defined]
    return ast.parse(path.read_text(encoding="utf-8")).body


def halves(body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    [either] = [node for node in body if isinstance(node, ast.If) and "win32" in ast.unparse(node.test)]
    return either.body, either.orelse


def test_the_host_starts_processes_alike() -> None:
    posix, windows = surface(parsed(sandbox, "posix.py")), surface(parsed(sandbox, "windows.py"))
    windows["Process"].pop("tie")  # type: ignore[attr-defined]  # which `start` alone uses
    for name in ("poll", "wait", "kill"):  # subprocess.Popen has them
        assert posix["Process"].pop(name) == (1, [], [])  # type: ignore[attr-defined]
    assert posix == windows
    assert {name for name in system.__all__ if name not in ("LAYERS", "Passed")} == posix.keys()


@pytest.mark.parametrize(
    ("package", "name"), [(dragoman_worker, "socket_passing.py"), (dragoman_registry, "filelocks.py")]
)
def test_both_halves_of_a_module_are_used_alike(package: object, name: str) -> None:
    windows, posix = map(surface, halves(parsed(package, name)))
    assert windows == posix
    assert windows


@pytest.mark.parametrize("kind", [wire.Opened, wire.Pipe])
def test_a_share_travels_within_a_message_and_costs_nothing_where_there_is_none(kind: type[wire.Message]) -> None:
    decoder = wire.decoder(wire.BrokerReply)
    share = bytes(range(256)) + bytes(116)  # as long as those of Windows
    shared = kind(id=7, share=share)  # type: ignore[call-arg]
    body = wire.pack(shared)
    assert len(body) <= wire.BROKER_FRAME
    assert decoder.decode(body[4:]) == shared
    plain = wire.pack(kind(id=7))  # type: ignore[call-arg]
    assert msgspec.msgpack.decode(plain[4:]).keys() == {"t", "id"}
    assert decoder.decode(plain[4:]).share == b""
