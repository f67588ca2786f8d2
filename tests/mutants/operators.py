"""What a mutation changes: Cosmic Ray's operators without those that say the same twice, and a few more."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import parso
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider
from parso.python.tree import Keyword
from parso.python.tree import Operator as Sign

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


_WORDS = re.compile(r"[A-Za-z_]\w*")

_FOR_PEOPLE = {"hint", "indent", "strict", "help", "metavar"}
"""Names of arguments that a person reads, and of an assertion."""

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


class _SeveralChanges(_Replacing):
    """An operator with several changes for a place, which `variants` lists."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        places = [self.place(node, variant) for variant in self.variants(node)]  # the caller changes the node meanwhile
        for place in places:
            yield place.start_pos, place.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        return self.varied(node, self.variants(node)[index])

    def place(self, node: Any, variant: int) -> Any:
        return node.children[variant]

    def variants(self, node: Any) -> list[int]:
        raise NotImplementedError

    def varied(self, node: Any, variant: int) -> Any:
        raise NotImplementedError


def _items(node: Any) -> list[list[Any]]:
    """Return what stands between the brackets of a list, tuple, set or dict, each with the comma after it."""
    if node.type != "atom" or node.children[0].value not in "[({" or len(node.children) != 3:
        return []
    inside = node.children[1]
    if inside.type not in ("testlist_comp", "dictorsetmaker") or _is_comprehension(inside):
        return []
    commas = [-1, *(at for at, child in enumerate(inside.children) if child == ","), len(inside.children) - 1]
    elements = [inside.children[before + 1 : at + 1] for before, at in pairwise(commas)]
    return [element for element in elements if element]


def _is_comprehension(node: Any) -> bool:
    return any(child.type in ("comp_for", "sync_comp_for") for child in node.children)


class DropElement(_SeveralChanges):
    """A list, tuple, set or dict of several things lacks its first or its last one."""

    def variants(self, node: Any) -> list[int]:
        elements = _items(node)
        return [0, len(elements) - 1] if len(elements) > 1 else []

    def place(self, node: Any, variant: int) -> Any:
        return _items(node)[variant][0]

    def varied(self, node: Any, variant: int) -> Any:
        left = [leaf for at, element in enumerate(_items(node)) if at != variant for leaf in element]
        if node.children[0] == "(" and "," not in left:
            left.append(Sign(",", left[-1].end_pos, ""))  # a tuple of one
        node.children[1].children = left
        return node


def _iterable_at(node: Any) -> int | None:
    """Return where a `for` names what it walks through; None where that is one thing, or is walked asynchronously."""
    if node.type not in ("for_stmt", "sync_comp_for"):
        return None
    return node.children.index("in") + 1


class TakeFirst(_Replacing):
    """Of several things that a loop or a comprehension walks through, it takes the first."""

    def fits(self, node: Any) -> bool:
        asynchronous = node.parent is not None and node.parent.type in ("async_stmt", "comp_for")
        return _iterable_at(node) is not None and not asynchronous

    def changed(self, node: Any) -> Any:
        at = _iterable_at(node)
        several = node.children[at].get_code().strip()
        several = f"({several})" if "," in several or " if " in several else several
        node.children[at] = parso.parse(f" [*{several}][:1]")
        return node


class DropCondition(_SeveralChanges):
    """Of several conditions that hold together, one is not looked at; equality of several things forgets one."""

    def variants(self, node: Any) -> list[int]:
        if node.type == "and_test":
            return list(range(0, len(node.children), 2))
        if node.type == "comparison" and len(node.children) == 3 and node.children[1] in ("==", "!="):
            left, right = _items(node.children[0]), _items(node.children[2])
            return list(range(len(left))) if len(left) == len(right) else []
        return []

    def place(self, node: Any, variant: int) -> Any:
        return node if node.type == "comparison" else node.children[variant]

    def varied(self, node: Any, variant: int) -> Any:
        if node.type == "comparison":
            for side in (node.children[0], node.children[2]):
                DropElement().varied(side, variant)
            return node
        del node.children[variant : variant + 2]
        if len(node.children) % 2 == 0:  # the last one went, and left its `and`
            node.children.pop()
        return node


class IgnoreField(_SeveralChanges):
    """A call leaves one named argument to its default, as if the field were not there."""

    def variants(self, node: Any) -> list[int]:
        if node.type != "arglist" or node.parent.type != "trailer":
            return []
        return [at for at, child in enumerate(node.children) if _is_named(child)]

    def varied(self, node: Any, variant: int) -> Any:
        del node.children[variant : variant + 2]
        if node.children and node.children[-1] == ",":
            node.children.pop()
        return node


def _is_named(argument: Any) -> bool:
    """Tell whether an argument has a name and a value that is no likely default."""
    if argument.type != "argument" or argument.children[1] != "=" or argument.children[0].value in _FOR_PEOPLE:
        return False
    return argument.children[2].get_code().strip() not in _EMPTY


class TakeEmptyForMissing(_Replacing):
    """What is there but false, zero or empty counts as missing."""

    def fits(self, node: Any) -> bool:
        return node.type == "comparison" and len(node.children) == 3 and node.children[2] == "None"

    def changed(self, node: Any) -> Any:
        subject, sign, _ = (child.get_code().strip() for child in node.children)
        return parso.parse(f" ({subject})" if "not" in sign or sign == "!=" else f" (not ({subject}))")


def _acts(statement: Any) -> bool:
    """Tell whether a line is there for its effect, or waits for one."""
    if statement.type != "simple_stmt":
        return False
    expression = statement.children[0]
    if expression.type == "expr_stmt":
        expression = expression.children[-1]
        return bool(expression.type == "atom_expr" and expression.children[0] == "await")
    return bool(expression.type == "atom_expr")


class SwapSteps(_SeveralChanges):
    """Of two steps that follow each other, the second is taken first."""

    def variants(self, node: Any) -> list[int]:
        if node.type not in ("suite", "file_input"):
            return []
        pairs = enumerate(pairwise(node.children))
        return [at for at, (first, second) in pairs if _acts(first) and _acts(second) and not _needs(second, first)]

    def varied(self, node: Any, variant: int) -> Any:
        first, second = node.children[variant : variant + 2]
        before, after = first.get_first_leaf(), second.get_first_leaf()
        before.prefix, after.prefix = after.prefix, before.prefix
        node.children[variant : variant + 2] = [second, first]
        return node


def _needs(statement: Any, earlier: Any) -> bool:
    """Tell whether a statement uses a name that an earlier one binds: swapped, it could only fail."""
    expression = earlier.children[0]
    if expression.type != "expr_stmt":
        return False
    bound = {*_WORDS.findall(expression.children[0].get_code())}
    return bool(bound & {*_WORDS.findall(statement.get_code())})


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


BY_MEANING = (DropElement, TakeFirst, DropCondition, IgnoreField, TakeEmptyForMissing, SwapSteps)
"""Faults that people make: one of several forgotten, a field not looked at, an empty value taken for a missing
one, the second step first."""


def _operators() -> dict[str, Operator]:
    theirs = OperatorProvider()
    names = [f"ReplaceBinaryOperator_{old}_{new}" for old, news in _BINARY.items() for new in news]
    names += [f"ReplaceComparisonOperator_{old}_{new}" for old, news in _COMPARISON.items() for new in news]
    made: dict[str, Operator] = {name: theirs[name]() for name in (*names, *_OTHERS)}
    ours = (TurnMembership, DropStatement, ReturnNothing, ReplaceWord, *BY_MEANING)
    return made | {operator.__name__: operator() for operator in ours}


OPERATORS = _operators()
"""By name."""
