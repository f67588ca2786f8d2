"""The mutants of a module: every place where an operator fits, without the places that decide nothing."""

from __future__ import annotations

import ast
import pickle
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import zip_longest
from random import Random
from typing import TYPE_CHECKING

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor

from .operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_IDLE_DECORATORS = {"overload", "override", "abstractmethod", "dataclass", "runtime_checkable", "cache", "lru_cache"}
_IDLE_CALLS = {"cast", "TypeVar", "ParamSpec", "NewType", "field"}
_LOGGING = {"debug", "info", "warning", "error", "exception"}


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Attributes:
        module: Its dotted name.
        source: Its text before the change.
        operator: Name of what changes it.
        occurrence: Which of the places where the operator fits, from 0.
        line: From 1.
    """

    module: str
    source: str
    operator: str
    occurrence: int
    line: int

    @cached_property
    def code(self) -> str | None:
        """The changed text; None where nothing, or no Python, comes of the change."""
        try:
            code = _changed(self.source, self.operator, self.occurrence)
        except (AttributeError, AssertionError, IndexError):  # an operator that met an expression it does not know
            return None
        return code if code is not None and _means_another(self.source, code) else None

    @cached_property
    def change(self) -> tuple[str, str]:
        """The first line that differs, before and after, without indentation."""
        pairs = zip_longest(self.source.splitlines(), (self.code or "").splitlines(), fillvalue="")
        before, after = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
        return before.strip(), after.strip()

    @property
    def key(self) -> str:
        """What distinguishes it from every other mutant, even of another version of the module."""
        digest = sha256(self.source.encode()).hexdigest()[:16]
        return f"{self.module} {digest} {self.operator} {self.occurrence}"


def _changed(source: str, operator: str, occurrence: int) -> str | None:
    visitor = MutationVisitor(occurrence, OPERATORS[operator])
    tree = visitor.walk(pickle.loads(_pickled(source)))
    return tree.get_code() if visitor.mutation_applied else None


@lru_cache(maxsize=256)
def _pickled(source: str) -> bytes:
    """Return the tree of a module, which every change spoils; unpickling it is faster than parsing again."""
    return pickle.dumps(get_ast(source), protocol=pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=256)
def _meaning(source: str) -> str:
    return ast.dump(ast.parse(source))


def _means_another(source: str, code: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(code)
            compile(tree, "mutant", "exec")
        except (SyntaxError, ValueError):
            return False
        return ast.dump(tree) != _meaning(source)


def mutants(module: str, source: str) -> list[Mutant]:
    """Find the places of a module where an operator fits and something is decided."""
    idle = _idle(source)
    seen, found = Counter[str](), []
    for node in ast_nodes(get_ast(source)):
        for name, operator in OPERATORS.items():
            for start, end in operator.mutation_positions(node):
                if not any(first <= start and end <= last for first, last in idle):
                    found.append(Mutant(module, source, name, seen[name], start[0]))
                seen[name] += 1
    return found


def sample(populations: Iterable[list[Mutant]], *, seed: int) -> Iterator[Mutant]:
    """Take mutants of every module in turn, each module's in an order that follows from the seed.

    A longer sample begins with the shorter one. A line gives its second mutant only after every line gave a first.
    """
    return (each for turn in zip_longest(*(_mixed(of, seed) for of in populations)) for each in turn if each)


def _mixed(population: list[Mutant], seed: int) -> Iterator[Mutant]:
    mixed = list(population)
    Random(f"{seed} {population[0].module}" if population else seed).shuffle(mixed)
    before = Counter[int]()
    ranks = []
    for each in mixed:
        ranks.append(before[each.line])
        before[each.line] += 1
    order = sorted(range(len(mixed)), key=ranks.__getitem__)
    return (mixed[at] for at in order if mixed[at].code is not None)


def function_at(source: str, line: int) -> str:
    """Name the outermost function or method around a line, as `__qualname__` does; empty outside of one."""
    found = _functions(ast.parse(source))
    return next((name for name, node in found if node.lineno <= line <= (node.end_lineno or 0)), "")


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.If | ast.Try):
            yield from _functions(node, prefix)


Place = tuple[int, int]


def _idle(source: str) -> list[tuple[Place, Place]]:
    """Return the ranges in which changes affect nothing that runs: annotations, docstrings, logging, type checking."""
    lines = source.splitlines(keepends=True)

    def place(line: int, column: int) -> Place:
        return line, len(lines[line - 1].encode()[:column].decode())

    tree = ast.parse(source)
    ranges = [
        (place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0))
        for node in [*_of_module(tree), *(each for node in ast.walk(tree) for each in _of_node(node))]
    ]
    decorators = [each for node in ast.walk(tree) for each in _idle_decorators(node)]
    return ranges + [((each.lineno, 0), ((each.end_lineno or 0) + 1, 0)) for each in decorators]


def _of_module(tree: ast.Module) -> Iterator[ast.expr]:
    for node in tree.body:  # an alias of a type
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp) and _is_type(node.value):
            yield node.value


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and _is_type(node.left) and _is_type(node.right)
    if isinstance(node, ast.Subscript):
        return _is_type(node.value)
    return isinstance(node, ast.Name | ast.Attribute) or (isinstance(node, ast.Constant) and node.value is None)


def _of_node(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    match node:
        case ast.arg(annotation=ast.expr() as hint) | ast.AnnAssign(annotation=hint):
            yield hint
        case ast.Expr(value=ast.Constant()) | ast.Assert():
            yield node
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))) if attr in _LOGGING:
            if "log" in name.lower():
                yield node
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            yield node
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            yield node
        case ast.If(test=ast.Compare(left=ast.Attribute(attr="platform"))):
            yield node.test
            yield from node.body
        case ast.Call(func=ast.Subscript() as generic):
            yield generic
        case ast.keyword(arg="indent" | "hint" | "strict"):  # layout, what a person reads, and an assertion
            yield node.value
        case ast.Call(func=ast.Name(id=name)) if name in _IDLE_CALLS:
            yield node
        case ast.ClassDef():
            yield from (keyword.value for keyword in node.keywords)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if node.returns:
                yield node.returns
            if any(_name(each) == "overload" for each in node.decorator_list):
                yield node
        case _:
            pass


def _idle_decorators(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (each for each in node.decorator_list if _name(each) in _IDLE_DECORATORS)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
