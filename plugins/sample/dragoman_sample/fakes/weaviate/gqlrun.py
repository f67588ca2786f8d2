"""Running a GraphQL document: each class of it by itself, so that one may fail beside others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphql import (
    BooleanValueNode,
    FieldNode,
    FloatValueNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    IntValueNode,
    ListValueNode,
    ObjectValueNode,
    OperationDefinitionNode,
    StringValueNode,
    VariableNode,
    get_location,
)

from dragoman_sample.fakes.weaviate import aggregate, gqltypes, retrieve
from dragoman_sample.fakes.weaviate.aggregate import Asked
from dragoman_sample.fakes.weaviate.errors import InvalidError, not_reproduced
from dragoman_sample.fakes.weaviate.gqlcheck import Checker
from dragoman_sample.fakes.weaviate.gqltext import SyntaxFaultError, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from graphql import DocumentNode, Node, SelectionSetNode

    from dragoman_sample.fakes.weaviate.calls import Call
    from dragoman_sample.fakes.weaviate.gqltypes import Out
    from dragoman_sample.fakes.weaviate.store import Collection

Answer = dict[str, Any]


def run(call: Call, text: str, variables: Mapping[str, Any], operation: str | None) -> Answer:
    """Answer one document."""
    try:
        document, strings = read(text)
    except SyntaxFaultError as fault:
        error = {"locations": [{"column": fault.column, "line": fault.line}], "message": str(fault), "path": None}
        return {"errors": [error]}
    chosen = _choose(document, operation)
    if isinstance(chosen, str):
        return {"errors": [{"locations": [], "message": chosen, "path": None}]}
    if chosen.operation.value != "query":
        text = f"Schema is not configured for {chosen.operation.value}s"
        return {"errors": [{**_placed([chosen]), "message": text, "path": None}]}
    fragments = {
        definition.name.value: definition
        for definition in document.definitions
        if isinstance(definition, FragmentDefinitionNode)
    }
    root = gqltypes.query(call.database)
    wrong = list(Checker(fragments, call.database.collections).selections(chosen.selection_set, root))
    if wrong:
        return {"errors": [{**_placed(nodes), "message": message, "path": None} for message, *nodes in wrong]}
    return _Run(call, fragments, variables, strings).answer(chosen.selection_set, root)


def _choose(document: DocumentNode, name: str | None) -> OperationDefinitionNode | str:
    operations = [definition for definition in document.definitions if isinstance(definition, OperationDefinitionNode)]
    if name:
        matching = [definition for definition in operations if definition.name and definition.name.value == name]
        return matching[0] if matching else f'Unknown operation named "{name}".'
    if len(operations) > 1:
        return "Must provide operation name if query contains multiple operations."
    return operations[0] if operations else "Must provide an operation."


def _placed(nodes: Iterable[Node]) -> Answer:
    places = (get_location(node.loc.source, node.loc.start) for node in nodes if node.loc)
    return {"locations": [{"column": place.column, "line": place.line} for place in places]}


class _Run:
    """One operation that has been checked."""

    def __init__(
        self,
        call: Call,
        fragments: Mapping[str, FragmentDefinitionNode],
        variables: Mapping[str, Any],
        strings: Mapping[int, str],
    ) -> None:
        self._call = call
        self._fragments = fragments
        self._variables = variables
        self._strings = strings

    def answer(self, chosen: SelectionSetNode, root: Out) -> Answer:
        assert root.fields is not None
        data: Answer = {}
        errors: list[Answer] = []
        for node in self._fields(chosen, root.name):
            key, name = _key(node), node.name.value
            if name == "__typename":
                data[key] = root.name
                continue
            assert node.selection_set is not None
            fields = root.fields()[name].type.fields
            assert fields is not None
            part = data.setdefault(key, {})
            for inner in self._fields(node.selection_set, root.fields()[name].type.name):
                if inner.name.value == "__typename":
                    part[_key(inner)] = root.fields()[name].type.name
                    continue
                try:
                    part[_key(inner)] = self._class(name, inner, fields()[inner.name.value].type)
                except InvalidError as reason:
                    part[_key(inner)] = None
                    errors.append({**_placed([inner]), "message": str(reason), "path": [key, _key(inner)]})
        return {"data": data} | ({"errors": errors} if errors else {})

    def _class(self, verb: str, node: FieldNode, shape: Out) -> list[Answer]:
        assert node.selection_set is not None
        arguments = {item.name.value: self._value(item.value) for item in node.arguments or ()}
        if isinstance(arguments.get("limit"), int):
            for item in node.arguments or ():
                if item.name.value in ("limit", "offset") and isinstance(item.value, VariableNode):
                    raise InvalidError("interface conversion: interface {} is int64, not int")
        collection = self._call.collection(node.name.value)
        assert collection is not None
        if verb == "Aggregate":
            groups = aggregate.rows(self._call, collection, arguments, list(self._asked(node, shape, collection)))
            return [self._project(node.selection_set, shape, item) for item in groups]
        if any(isinstance(item, FragmentSpreadNode) for item in node.selection_set.selections):
            raise InvalidError("interface conversion: ast.Selection is *ast.FragmentSpread, not *ast.Field")
        selected = {item.name.value for item in node.selection_set.selections if isinstance(item, FieldNode)}
        rows = retrieve.rows(self._call, collection, arguments, selected)
        tenant = arguments.get("tenant") or ""
        sources = [
            retrieve.source(self._call, row, collection, tenant=tenant, selected=selected, distance=distance)
            for row, distance in rows
        ]
        return [self._project(node.selection_set, shape, item) for item in sources]

    def _asked(self, node: FieldNode, shape: Out, collection: Collection) -> Iterator[Asked]:
        """Yield what an aggregate asks of each property."""
        assert node.selection_set is not None
        for field in self._fields(node.selection_set, shape.name):
            name = field.name.value
            if name in ("meta", "groupedBy", "__typename"):
                continue
            assert field.selection_set is not None
            query = Asked(name, collection.properties[name]["dataType"][0])
            for figure in self._fields(field.selection_set, f"Aggregate{collection.name}{name}Obj"):
                query.figures.add(figure.name.value)
                limits = [self._value(argument.value) for argument in figure.arguments or ()]
                query.top = limits[0] if limits else query.top
            yield query

    def _project(self, chosen: SelectionSetNode, shape: Out, source: Mapping[str, Any]) -> Answer:
        answer: Answer = {}
        assert shape.fields is not None
        fields = shape.fields()
        for node in self._fields(chosen, shape.name):
            name = node.name.value
            if name == "__typename":
                answer[_key(node)] = shape.name
            else:
                answer[_key(node)] = self._member(node, fields[name].type, source.get(name))
        return answer

    def _member(self, node: FieldNode, shape: Out, value: Any) -> Any:
        if value is None:
            return None
        if shape.many and isinstance(value, list):
            return [self._single(node, shape, item) for item in value]
        return self._single(node, shape, value)

    def _single(self, node: FieldNode, shape: Out, value: Any) -> Any:
        if shape.union:
            member = shape.union()[value["__typename"]]
            assert node.selection_set is not None
            return self._project(node.selection_set, member, value)
        if shape.fields:
            assert node.selection_set is not None
            return self._project(node.selection_set, shape, value)
        # GraphQL's integers have 32 bits; a larger one is lost without a word.
        return None if shape.name == "Int" and not -(2**31) <= value < 2**31 else value

    def _fields(self, chosen: SelectionSetNode, of_type: str) -> Iterator[FieldNode]:
        for node in chosen.selections:
            if isinstance(node, FieldNode):
                yield node
                continue
            fragment = self._fragments[node.name.value] if isinstance(node, FragmentSpreadNode) else node
            if not fragment.type_condition or fragment.type_condition.name.value == of_type:  # type: ignore[union-attr]
                yield from self._fields(fragment.selection_set, of_type)  # type: ignore[union-attr]

    def _value(self, node: Any) -> Any:
        if isinstance(node, VariableNode):
            value = self._variables.get(node.name.value)
            if isinstance(value, list):
                raise not_reproduced("a list as a variable")
            return value
        if isinstance(node, ObjectValueNode):
            return {member.name.value: self._value(member.value) for member in node.fields}
        if isinstance(node, ListValueNode):
            return [self._value(member) for member in node.values]
        if isinstance(node, IntValueNode):
            return int(node.value)
        if isinstance(node, FloatValueNode):
            return float(node.value)
        if isinstance(node, BooleanValueNode):
            return node.value
        if isinstance(node, StringValueNode):
            assert node.loc is not None
            return self._strings.get(node.loc.start, node.value)
        return node.value


def _key(node: FieldNode) -> str:
    return node.alias.value if node.alias else node.name.value
