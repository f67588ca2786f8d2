"""A compiled decoder for whole rows: from lines of JSON to the values of each column, without an object per member."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Raw

from dragoman_api.arrow.kinds import optional, texts_of

from .values import Opened, follow, is_plain

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Sequence

    from dragoman_api.arrow.schema import TableColumn
    from dragoman_api.kit.page_columns import ShownKeys

    from .values import RowKeys

UnknownKey = tuple[tuple[str, ...], str]
"""A key that no column shows, after the names of the members that lead to its object."""

DOUBTFUL: UnknownKey = ((), "")
"""Stands for a row whose keys without a column must still be looked for."""

_NEVER = Annotated[str, msgspec.Meta(min_length=1, max_length=0)]
"""A type that takes no value: a row that has the member is refused."""


class _Whole:
    """A member that stays JSON text, with the number, the name and the arrays of each column in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: list[tuple[int, str, Sequence[str]]] = []

    def find(self, texts: list[Any], column_values: list[list[Any]], shown_keys: ShownKeys | None) -> list[int]:
        """Add the columns' JSON texts to `column_values`, null and missing ones as None.

        Returns:
            The numbers of the texts that may hold what no column shows.
        """
        strange: list[int] = []
        whole = texts_of(texts)
        inner = [(number, name, arrays) for number, name, arrays in self.columns if name != self.name]
        for number, name, _ in self.columns:
            column_values[number] = [*whole] if name == self.name else []
        for at, text in enumerate(whole if inner else ()):
            members: dict[str, Raw] = {} if text is None else {self.name: Raw(text)}
            opened: Opened = {}
            for number, name, arrays in inner:
                value = follow(members, name, arrays, opened)
                column_values[number].append(None if value == b"null" else value)
            if shown_keys is not None and not is_plain(shown_keys, members, opened):
                strange.append(at)
        return strange


class _Node:
    """An object on the path to columns.

    Attributes:
        names: The name of the member behind each attribute of a decoded object.
        parts: The content of each member: a column's number, an object, or several columns that are found one by one.
        refused: Members whose presence would change how a dotted name is read: first as one name, then as a path.
        array: The member is an array of such objects.
        way: The members that lead to the object.
        keys: Counts keys without a column: an object with an unlearned one is refused; None for no count.
        learned: Keys without a column that the decoder takes.
    """

    def __init__(self, way: tuple[str, ...] = (), keys: RowKeys | None = None) -> None:
        self.way, self.keys = way, keys
        self.learned: list[str] = []
        self.parts: dict[str, int | _Node | _Whole] = {}
        self.refused: set[str] = set()
        self.array = False

    def add(
        self, number: int, name: str, *, arrays: Sequence[str], whole: Container[str] = (), before: str = ""
    ) -> None:
        """Add a column by its dotted name; members in `whole` stay JSON text.

        Raises:
            ValueError: The name, or the beginning of it, is taken by another column.
        """
        head, _, rest = name.partition(".")
        if rest and head:
            self._refuse(name, head)
        if head in whole:
            part = self.parts.setdefault(head, _Whole(head))
            if not isinstance(part, _Whole):
                raise ValueError(name)
            part.columns.append((number, name, arrays))
            return
        if not rest:
            if self.parts.setdefault(head, number) is not number:
                raise ValueError(name)
            return
        if not head:
            raise ValueError(name)
        node = self.child(head)
        node.array = before + head in arrays
        node.add(number, rest, arrays=arrays, before=f"{before}{head}.")

    def _refuse(self, name: str, head: str) -> None:
        end = name.find(".", len(head) + 1)
        while end > 0:
            self.refused.add(name[:end])
            end = name.find(".", end + 1)
        self.refused.add(name)

    def child(self, name: str) -> _Node:
        """Return the object that a member holds."""
        node = self.parts.setdefault(name, _Node((*self.way, name), self.keys))
        if not isinstance(node, _Node):
            raise ValueError(name)  # noqa: TRY004 - a name that is taken
        return node

    def decoded(self, columns: Sequence[TableColumn]) -> Any:
        """Return the type of the object for a decoder."""
        fields: list[Any] = []
        spelled = {}
        for at, (name, part) in enumerate(self.parts.items()):
            spelled[f"m{at}"] = name
            if isinstance(part, _Node):
                inner = part.decoded(columns)
                fields.append((f"m{at}", (list[optional(inner)] if part.array else inner) | None, None))  # type: ignore[misc]
            elif isinstance(part, _Whole):
                fields.append((f"m{at}", Raw, None))
            else:
                fields.append((f"m{at}", optional(columns[part].leaf.decoded), None))
        for at, name in enumerate(sorted(self.refused - {*self.parts})):
            spelled[f"r{at}"] = name
            fields.append((f"r{at}", _NEVER, ""))
        for at, name in enumerate(self.learned):
            spelled[f"u{at}"] = name
            fields.append((f"u{at}", Raw, None))
        if self.keys is not None and not self.way:
            for at, name in enumerate(sorted(self.keys.server_members - {*self.parts, *self.refused})):
                spelled[f"s{at}"] = name
                fields.append((f"s{at}", Raw, None))
        return msgspec.defstruct(
            "Row", fields, rename=spelled, kw_only=True, gc=False, forbid_unknown_fields=self.keys is not None
        )

    def learn(self, learned: Collection[UnknownKey], *, array: bool = False) -> None:
        """Take keys without a column, except those in arrays, whose objects do not stand for rows."""
        array |= self.array
        if not array:
            self.learned = sorted(key for way, key in learned if way == self.way)
        for part in self.parts.values():
            if isinstance(part, _Node):
                part.learn(learned, array=array)

    def gather(self, objects: list[Any], column_values: list[list[Any]], missed: dict[int, set[UnknownKey]]) -> None:
        """Add the columns' values in decoded objects to `column_values`, by the columns' numbers.

        Add the learned keys that the objects have to `missed`, by the numbers of the objects, and `DOUBTFUL` for
        objects that may hold more keys without a column.
        """
        for at, name in enumerate(self.learned):
            get = attrgetter(f"u{at}")
            for number, holder in enumerate(objects):
                if holder is not None and (value := get(holder)) is not None and bytes(value) != b"null":
                    missed.setdefault(number, set()).add((self.way, name))
        for at, part in enumerate(self.parts.values()):
            get = attrgetter(f"m{at}")
            try:
                values = list(map(get, objects))
            except AttributeError:  # some are null
                values = [None if holder is None else get(holder) for holder in objects]
            if isinstance(part, _Whole):
                shown_keys = None if self.keys is None else self.keys.shown.get(self.way)
                for number in part.find(values, column_values, shown_keys):
                    missed.setdefault(number, set()).add(DOUBTFUL)
            elif not isinstance(part, _Node):
                column_values[part] = values
            elif part.array:
                part.gather([item for value in values if value is not None for item in value], column_values, {})
                part.regroup([None if value is None else len(value) for value in values], column_values)
            else:
                part.gather(values, column_values, missed)

    def regroup(self, sizes: list[int | None], column_values: list[list[Any]]) -> None:
        """Divide the values of the objects in arrays into one list per array."""
        for part in self.parts.values():
            if isinstance(part, _Node):
                part.regroup(sizes, column_values)
                continue
            assert isinstance(part, int)
            flat, start, lists = column_values[part], 0, []
            for size in sizes:
                lists.append(None if size is None else flat[start : start + size])
                start += size or 0
            column_values[part] = lists


class RowDecoder:
    """Decodes lines of rows.

    Attributes:
        texts: The numbers of the columns whose values stay JSON text.
    """

    def __init__(
        self,
        columns: Sequence[TableColumn],
        *,
        wary: Container[int] = (),
        keys: RowKeys | None = None,
        learned: Collection[UnknownKey] = (),
    ) -> None:
        """Compile the decoder.

        Args:
            columns: The columns of the table.
            wary: The numbers of the columns that often hold values that do not fit. All columns that begin with the
                same name stay JSON text, so that the decoder takes the row.
            keys: Counts keys without a column; None for no count.
            learned: Keys without a column that the decoder takes; it leaves rows with others.

        Raises:
            ValueError, TypeError: No decoder finds these columns; read them value by value.
        """
        self._root, self._width = _Node(keys=keys), len(columns)
        heads = [(*c.column.path[:-1], c.column.path[-1].partition(".")[0]) for c in columns]
        whole = {head for number, head in enumerate(heads) if number in wary}
        self.texts = [number for number, head in enumerate(heads) if head in whole]
        for number, table_column in enumerate(columns):
            *groups, last = table_column.column.path
            node = self._root
            for group in groups:
                node = node.child(group)
            whole_names = {head[-1] for head in whole if head[:-1] == tuple(groups)}
            node.add(number, last, arrays=table_column.column.arrays, whole=whole_names)
        self._root.learn(learned)
        row = self._root.decoded(columns)
        self._decoder = msgspec.json.Decoder(row)
        self._empty = row()

    def decode(self, block: bytes) -> tuple[list[list[Any]], list[int], dict[int, set[UnknownKey]]]:
        """Decode rows.

        Args:
            block: Whole lines, one for each row.

        Returns:
            The values of each column; the numbers of the rows that the decoder cannot take, whose values are None; and
            the learned keys by the numbers of the rows that have them, `DOUBTFUL` for a row that may hold more.
        """
        decoder, left = self._decoder, []
        try:
            rows = decoder.decode_lines(block)
        except (ValueError, RecursionError):
            rows = []
        if len(rows) != block.count(b"\n"):  # or a line holds no whole value, or two of them
            rows = []
            for at, line in enumerate(block.split(b"\n")[:-1]):
                try:
                    rows.append(decoder.decode(line))
                except (ValueError, RecursionError):
                    left.append(at)
                    rows.append(self._empty)
        column_values: list[list[Any]] = [[] for _ in range(self._width)]
        missed: dict[int, set[UnknownKey]] = {}
        self._root.gather(rows, column_values, missed)
        return column_values, left, missed
