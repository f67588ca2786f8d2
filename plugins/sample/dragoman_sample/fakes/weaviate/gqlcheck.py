"""Checking a GraphQL document against the types, in the words of the server's library."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from graphql import (
    BooleanValueNode,
    EnumValueNode,
    FieldNode,
    FloatValueNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    ObjectValueNode,
    StringValueNode,
    VariableNode,
    print_ast,
)

from dragoman_sample.fakes.weaviate.errors import not_reproduced
from dragoman_sample.fakes.weaviate.gqltypes import UNKNOWN, Field, In, Out

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from graphql import FragmentDefinitionNode, Node, SelectionSetNode, ValueNode

Complaint = tuple[Any, ...]
_LITERALS: dict[str, type | tuple[type, ...]] = {
    "int": IntValueNode, "number": (IntValueNode, FloatValueNode), "boolean": BooleanValueNode,
    "Int": IntValueNode, "Float": (IntValueNode, FloatValueNode), "Boolean": BooleanValueNode,
    "text": StringValueNode, "String": StringValueNode,
}  # fmt: skip


class Checker:
    """Walks the selections of one operation."""

    def __init__(self, fragments: Mapping[str, FragmentDefinitionNode], types: Container[str]) -> None:
        self._fragments = fragments
        self._known = types

    def selections(self, chosen: SelectionSetNode, shape: Out) -> Iterator[Complaint]:
        """Return what is wrong with the fields that are asked of a type."""
        for node in chosen.selections:
            if isinstance(node, FieldNode):
                yield from self._field(node, shape)
            elif isinstance(node, InlineFragmentNode):
                yield from self._fragment(node, shape)
            elif isinstance(node, FragmentSpreadNode):
                fragment = self._fragments.get(node.name.value)
                if fragment is None:
                    yield f'Unknown fragment "{node.name.value}".', node.name
                else:
                    yield from self._fragment(fragment, shape)

    def _fragment(self, node: InlineFragmentNode | FragmentDefinitionNode, shape: Out) -> Iterator[Complaint]:
        name = node.type_condition.name.value if node.type_condition else shape.name
        inner = shape.union().get(name) if shape.union else shape
        if inner is None or (not shape.union and name != shape.name):
            if name in self._known:
                text = (
                    f'Fragment cannot be spread here as objects of type "{shape.name}" can never be of type "{name}".'
                )
                yield text, node
            else:
                yield f'Unknown type "{name}".', node.type_condition
            return
        yield from self.selections(node.selection_set, inner)

    def _field(self, node: FieldNode, shape: Out) -> Iterator[Complaint]:
        name = node.name.value
        if name == "__typename":
            return
        if name.startswith("__"):
            raise not_reproduced("introspection")
        fields = shape.fields() if shape.fields else {}
        if name not in fields:
            yield f'Cannot query field "{name}" on type "{shape.name}".{_suggestion(name, fields)}', node
            return
        field = fields[name]
        yield from self._arguments(node, field, shape)
        inner = field.type
        if inner.fields or inner.union:
            if not node.selection_set:
                yield f'Field "{name}" of type "{inner.printed}" must have a sub selection.', node
            else:
                yield from self.selections(node.selection_set, inner)
        elif node.selection_set:
            yield f'Field "{name}" of type "{inner.printed}" must not have a sub selection.', node.selection_set

    @staticmethod
    def _arguments(node: FieldNode, field: Field, shape: Out) -> Iterator[Complaint]:
        seen: dict[str, Node] = {}
        for argument in node.arguments or ():
            name = argument.name.value
            if name in seen:
                yield f'There can be only one argument named "{name}".', seen[name], argument.name
            seen[name] = argument.name
            if name in UNKNOWN and field.args and name not in field.args:
                raise not_reproduced(f"the argument {name!r}")
            if name not in field.args:
                text = f'Unknown argument "{name}" on field "{node.name.value}" of type "{shape.name}".'
                yield text + _suggestion(name, field.args), argument
                continue
            wrong = "".join(f"\n{text}" for text in literal(argument.value, field.args[name]))
            if wrong:
                yield f'Argument "{name}" has invalid value {printed(argument.value)}.{wrong}', argument.value


def literal(node: ValueNode | None, expected: In) -> Iterator[str]:
    """Return what is wrong with a literal; a variable is looked at when it has a value."""
    if node is None:
        if expected.required:
            yield f'Expected "{expected.name}!", found null.'
        return
    if isinstance(node, VariableNode):
        return
    if expected.kind == "list":
        assert expected.item is not None
        for member in node.values if isinstance(node, ListValueNode) else (node,):
            prefix = "In element #1: " if isinstance(node, ListValueNode) else ""
            yield from (prefix + text for text in literal(member, expected.item))
    elif expected.kind == "object":
        yield from _object(node, expected)
    elif expected.kind == "enum":
        if not isinstance(node, EnumValueNode) or node.value not in expected.choices:
            yield f'Expected type "{expected.name}", found {printed(node)}.'
    elif not _fits(node, expected):
        yield f'Expected type "{expected.name}", found {printed(node)}.'


def _fits(node: ValueNode, expected: In) -> bool:
    if expected.kind != "scalar" and isinstance(node, ListValueNode):
        return True
    if not isinstance(node, _LITERALS[expected.name if expected.kind == "scalar" else expected.kind]):
        return False
    return expected.name == "Float" or not isinstance(node, IntValueNode) or -(2**63) <= int(node.value) < 2**63


def _object(node: ValueNode, expected: In) -> Iterator[str]:
    if not isinstance(node, ObjectValueNode):
        yield f'Expected "{expected.name}", found not an object.'
        return
    assert expected.members is not None
    members = expected.members()
    values = {field.name.value: field.value for field in node.fields}
    for name in values:
        if name not in members:
            yield f'In field "{name}": Unknown field.'
    for name, member in members.items():
        yield from (f'In field "{name}": {text}' for text in literal(values.get(name), member))


def printed(node: Any) -> str:
    """Print a value as the server's messages do."""
    if isinstance(node, ObjectValueNode):
        return "{" + ", ".join(f"{field.name.value}: {printed(field.value)}" for field in node.fields) + "}"
    if isinstance(node, ListValueNode):
        return "[" + ", ".join(map(printed, node.values)) + "]"
    return print_ast(node)


def _suggestion(name: str, options: Mapping[str, object]) -> str:
    # How the real server ranks several is its own affair; one clear likeness is what people see.
    near = [option for option in options if option.lower() == name.lower()] or difflib.get_close_matches(
        name, options, 1, 0.8
    )
    return f' Did you mean "{near[0]}"?' if near else ""
