"""What a mutation changes: Cosmic Ray's operators without those that say the same twice, and a few more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import parso
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider
from parso.python.tree import Keyword

if TYPE_CHECKING:
    from collections.abc import Iterator

_BINARY = {
    "Add": ["Sub"], "Sub": ["Add"], "Mul": ["FloorDiv"], "Div": ["Mul"], "FloorDiv": ["Mul"], "Mod": ["FloorDiv"],
    "Pow": ["Mul"], "RShift": ["LShift"], "LShift": ["RShift"], "BitOr": ["BitAnd"], "BitAnd": ["BitOr"],
    "BitXor": ["BitOr"],
}  # fmt: skip
_COMPARISON = {
    "Eq": ["NotEq"], "NotEq": ["Eq"], "Is": ["IsNot"], "IsNot": ["Is"],
    "Lt": ["LtE", "GtE"], "LtE": ["Lt", "Gt"], "Gt": ["GtE", "LtE"], "GtE": ["Gt", "Lt"],
}  # fmt: skip
_OTHERS = (
    "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer", "RemoveDecorator",
    "ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub", "ZeroIterationForLoop",
)  # fmt: skip

_WORD = re.compile(r"[\w.:/?=&*+-]{1,60}")
"""A text that decides something: a name on the wire, a code, a path. What people read has spaces."""


_EMPTY = {"None", "False", "0", '""', "()", "[]", "{}"}


class _Replacing(Operator):
    """An operator with one change for each place."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if self.fits(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        del index
        return self.changed(node)

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()

    def fits(self, node: Any) -> bool:
        raise NotImplementedError

    def changed(self, node: Any) -> Any:
        raise NotImplementedError


class TurnMembership(_Replacing):
    """`in` becomes `not in`, and the other way round."""

    def fits(self, node: Any) -> bool:
        return node.type == "comparison" and node.children[1].get_code().split() in (["in"], ["not", "in"])

    def changed(self, node: Any) -> Any:
        turned = " not in" if node.children[1].get_code().strip() == "in" else " in"
        node.children[1] = parso.parse(turned)
        return node


class DropStatement(_Replacing):
    """A call for its effect, a growing assignment or a `raise` becomes `pass`."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if self.fits(node):
            yield node.start_pos, node.children[0].end_pos

    def fits(self, node: Any) -> bool:
        if node.type != "simple_stmt":
            return False
        first = node.children[0]
        grows = first.type == "expr_stmt" and first.children[1].type == "operator" and len(first.children[1].value) > 1
        return grows or first.type in ("atom_expr", "raise_stmt", "del_stmt") or first.get_code().strip() == "raise"

    def changed(self, node: Any) -> Any:
        leaf = node.get_first_leaf()
        node.children[0] = Keyword("pass", leaf.start_pos, leaf.prefix)
        return node


class ReturnNothing(_Replacing):
    """What is returned becomes None, unless it says no already."""

    def fits(self, node: Any) -> bool:
        if node.type != "return_stmt" or len(node.children) < 2:
            return False
        return node.children[1].get_code().strip() not in _EMPTY

    def changed(self, node: Any) -> Any:
        node.children[1] = parso.parse(" None")
        return node


def _has_spaces(node: Any) -> bool:
    return any(" " in each.value for each in node.children if each.type == "fstring_string")


class ReplaceWord(_Replacing):
    """A text without spaces becomes another one."""

    def fits(self, node: Any) -> bool:
        if node.type == "string":
            return bool(_WORD.fullmatch(node.value.strip("'\"")))
        return node.type == "fstring_string" and bool(_WORD.fullmatch(node.value)) and not _has_spaces(node.parent)

    def changed(self, node: Any) -> Any:
        text = node.value.strip("'\"")
        node.value = node.value.replace(text, "mutant")
        return node


def _operators() -> dict[str, Operator]:
    theirs = OperatorProvider()
    names = [f"ReplaceBinaryOperator_{old}_{new}" for old, news in _BINARY.items() for new in news]
    names += [f"ReplaceComparisonOperator_{old}_{new}" for old, news in _COMPARISON.items() for new in news]
    made: dict[str, Operator] = {name: theirs[name]() for name in (*names, *_OTHERS)}
    return made | {each.__name__: each() for each in (TurnMembership, DropStatement, ReturnNothing, ReplaceWord)}


OPERATORS = _operators()
"""By name."""
