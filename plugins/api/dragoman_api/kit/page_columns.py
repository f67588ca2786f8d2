"""The columns of a page: which it shows and sorts by, of which kinds they are without a schema, what it leaves out.

A call owns one `LeftOut`, adds to it whatever it does not show, and returns its notes: one for each kind.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dragoman_api.cells import Json
from dragoman_api.columns import MAX_COLUMNS, ColumnKind, Note
from dragoman_api.errors import QueryError
from dragoman_api.json_text import encode
from dragoman_api.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dragoman_api.cells import Cell
    from dragoman_api.grid import PageRequest, Sort

T = TypeVar("T")

UNKNOWN = "there is no such column"
"""The reason against a filter row on a column that does not exist."""

KEYS = "keys-left-out"
"""The code of a note on keys of documents that no column shows."""

VALUES = "values-left-out"
"""The code of a note on columns of which a document holds a second value, under another spelling of the name."""

COLUMNS = "columns-left-out"
"""The code of a note on columns that a result does not hold."""

CUT = "columns-cut"
"""The code of a note on an object that has more columns than a result holds."""

MEMBERS = "members-left-out"
"""The code of a note on members of rows that an import leaves out, because the server computes them itself."""

OTHERS = "rows-of-others"
"""The code of a note on rows that were of another object than the one that an import writes."""

NAMES = 1_000
"""Maximum number of names that one call counts; documents may spell a new key each."""

_NAMED, _SHOWN = 20, 100  # names in a note, and characters of one
_DOTS = 20  # with more in its name, the object that a column begins with counts as shown

_SENTENCES = {
    KEYS: "{} keys that no column shows: {}",
    VALUES: "{} a value twice, under a dotted name and inside an object, and one of the two is not shown: {}",
    MEMBERS: "{} members that the server computes itself, so they are not written: {}",
    OTHERS: "{} the name of another object than the one that was named for them: {}",
}
_HINTS = {
    KEYS: "export documents (NDJSON), which hold all that is stored",
    VALUES: "export documents (NDJSON), which hold both",
}


def choose(
    names: Sequence[str] | None,
    known: Mapping[str, T],
    *,
    object: str,  # noqa: A002 - the design's word
    find: Callable[[str], T | None] | None = None,
) -> list[T]:
    """Return the columns that a request asks for, in its order, each once.

    Args:
        names: The names in the request; None for all, of which a page holds the first 4,096.
        known: The columns by name.
        object: The object's name, for the error.
        find: Finds a column that is not listed, such as a key inside an object.

    Raises:
        QueryError: One of them does not exist; the detail ``column`` names the first.

    >>> choose(["b"], {"a": 1, "b": 2}, object="t")
    [2]
    """
    if names is None:
        return list(known.values())[:MAX_COLUMNS]
    look = find or known.get
    columns = {name: look(name) for name in names}
    if missing := [name for name, column in columns.items() if column is None]:
        raise QueryError(
            f"'{object}' has no column {quoted(missing)}",
            hint="describe the object to see its columns",
            details={"column": missing[0]},
        )
    return [column for column in columns.values() if column is not None]


def sortable(
    sorts: Iterable[Sort], find: Callable[[str], T | None], reason: Callable[[T], str]
) -> tuple[list[tuple[Sort, T]], list[Note]]:
    """Separate the sort keys that have an effect from those that are dropped.

    Args:
        sorts: The sort keys.
        find: Finds a column by name.
        reason: Returns why a column does not sort; empty if it does.

    Returns:
        The sort keys to send, each with its column, and a note ``sort-dropped`` for each of the others.

    Raises:
        QueryError: A column does not exist; the detail ``column`` names the first.
    """
    keys: list[tuple[Sort, T]] = []
    notes: list[Note] = []
    for sort in sorts:
        column = find(sort.column)
        if column is None:
            raise unknown_sort(sort.column)
        if against := reason(column):
            notes.append(Note(code="sort-dropped", column=sort.column, reason=against))
        else:
            keys.append((sort, column))
    return keys, notes


def unknown_sort(column: str) -> QueryError:
    """Return the error for a sort key on a column that does not exist."""
    hint = "describe the object to see its columns"
    return QueryError(f"there is no column {column!r} to sort by", hint=hint, details={"column": column})


def check_bounds(request: PageRequest) -> None:
    """Check that a page begins at an offset of 0 or more and has rows.

    Raises:
        QueryError: It does not.

    >>> from dragoman_api.grid import PageRequest
    >>> check_bounds(PageRequest(object="books", offset=-1))
    Traceback (most recent call last):
    dragoman_api.errors.QueryError: a page needs an offset of at least 0 and a limit of at least 1, not -1 and 100
    """
    offset, limit = request.offset, request.limit
    if offset < 0 or limit < 1:
        raise QueryError(f"a page needs an offset of at least 0 and a limit of at least 1, not {offset} and {limit}")


_KINDS: dict[type, ColumnKind] = {
    str: ColumnKind.TEXT,
    bool: ColumnKind.BOOLEAN,
    int: ColumnKind.INTEGER,
    float: ColumnKind.FLOAT,
    Decimal: ColumnKind.FLOAT,
    Json: ColumnKind.FLOAT,  # a number beyond what Decimal holds, see `exact_number`
    bytes: ColumnKind.BINARY,
    list: ColumnKind.JSON,
    dict: ColumnKind.JSON,
}


def kinds_of(rows: Iterable[Mapping[str, object]]) -> dict[str, ColumnKind]:
    """Return the kind of each name in some rows of decoded JSON, in the order in which the names appear.

    Integers and floats together are floats. Values of other kinds together, or none at all, are of kind ``other``.

    >>> kinds_of([{"id": "a", "n": 1}, {"id": "b", "n": 1.5, "x": None}])
    {'id': <ColumnKind.TEXT: 'text'>, 'n': <ColumnKind.FLOAT: 'float'>, 'x': <ColumnKind.OTHER: 'other'>}
    """
    kinds_by_name: dict[str, set[ColumnKind]] = {}
    for row in rows:
        for name, value in row.items():
            kinds = kinds_by_name.setdefault(name, set())
            if value is not None:
                kinds.add(_KINDS.get(type(value), ColumnKind.OTHER))
    return {name: _joined(kinds) for name, kinds in kinds_by_name.items()}


def cell_of(value: object) -> Cell:
    """Return a value of decoded JSON as a cell: an array or an object becomes its JSON text, whole.

    The driver's process cuts what is too long for a page, see `CELL_BUDGET`.

    >>> cell_of([1, None]), cell_of("a")
    ('[1,null]', 'a')
    """
    return Json(encode(value)) if isinstance(value, list | dict) else value  # type: ignore[return-value]


def _joined(kinds: set[ColumnKind]) -> ColumnKind:
    if kinds == {ColumnKind.INTEGER, ColumnKind.FLOAT}:
        return ColumnKind.FLOAT
    return kinds.pop() if len(kinds) == 1 else ColumnKind.OTHER


class LeftOut(msgspec.Struct, forbid_unknown_fields=True):
    """Counts what a call leaves out of its rows.

    Attributes:
        rows: Number of rows, by the code of the note.
        names: Number of rows by name, by the code of the note.
        full: There were more than `NAMES` names, and rows after that are not counted.
    """

    rows: dict[str, int] = {}
    names: dict[str, dict[str, int]] = {}
    full: bool = False

    def add(self, code: str, names: Iterable[str], *, rows: int = 1) -> None:
        """Count rows that hold something under these names; nothing if there is no name."""
        if not (unique := {*names}):
            return
        self.rows[code] = self.rows.get(code, 0) + rows
        counts = self.names.setdefault(code, {})
        for name in unique:
            if name in counts or len(counts) < NAMES:
                counts[name] = counts.get(name, 0) + rows
            else:
                self.full = True

    def merge(self, other: LeftOut) -> None:
        """Add what another reader of the same call left out."""
        for code, counts in other.names.items():
            rows = self.rows.get(code, 0) + other.rows.get(code, 0)
            for name, count in counts.items():
                self.add(code, [name], rows=count)
            self.rows[code] = rows
        self.full |= other.full

    def notes(self) -> list[Note]:
        """Return one note for each kind, with the names that most rows hold.

        >>> left_out = LeftOut()
        >>> left_out.add(KEYS, ["extra"])
        >>> left_out.notes()[0].reason
        "1 row holds keys that no column shows: 'extra' (1)"
        """
        notes = []
        for code, sentence in _SENTENCES.items():
            if not (rows := self.rows.get(code, 0)):
                continue
            counts = sorted(self.names[code].items(), key=lambda item: (-item[1], item[0]))
            listing = ", ".join(f"{quoted([cut_name(name)])} ({count:,})" for name, count in counts[:_NAMED])
            remainder = len(counts) - _NAMED
            listing += f" and {remainder:,} more" if remainder > 0 else ""
            holders = f"{rows:,} row{'s hold' if rows != 1 else ' holds'}"
            at_least = "at least " if self.full else ""
            reason = at_least + sentence.format(holders, listing)
            notes.append(Note(code=code, reason=reason, hint=_HINTS.get(code, "")))
        return notes


def cut_name(name: str) -> str:
    """Return a name as a note shows it: a document may have keys of megabytes."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"


def columns_cut(count: int) -> list[Note]:
    """Return the note on an object that has more columns than a result holds; no note if it has not."""
    if count <= MAX_COLUMNS:
        return []
    hint = "export documents (NDJSON), which hold all that is stored"
    reason = f"{count - MAX_COLUMNS:,} of {count:,} columns are left out: the first {MAX_COLUMNS:,} are shown"
    return [Note(code=CUT, reason=reason, hint=hint)]


def columns_left_out(reasons: Mapping[str, str], hint: str = "") -> list[Note]:
    """Return notes on columns that a result does not hold, one for each reason.

    Args:
        reasons: Why, by the names of the columns.
        hint: What to do.
    """
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return [
        Note(
            code=COLUMNS,
            column=columns[0] if len(columns) == 1 else None,
            reason=reason if len(columns) == 1 else f"{_listed(columns)}: {reason}",
            hint=hint,
        )
        for reason, columns in names.items()
    ]


def _listed(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return quoted([cut_name(name) for name in names[:_NAMED]]) + suffix


class ShownKeys:
    """The keys of documents that the columns of an object show.

    Attributes:
        known: The known keys of each object on the way to a column, by its dotted name; that of the document is empty.
            What stands at another place is shown whole, or no column shows it.
        objects: Those of the known keys that lead to such objects.
        flat: The known keys of the document if none leads to an object; else empty.
        inner: The keys that lead to such objects, each with the dotted name of its object.
        dotted: The known keys with a dot of each object that has both these and objects.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """Plan.

        Args:
            names: The names of all columns inside the document, dotted where they lie in objects.
        """
        column_names = {*names}
        keys_by_place: dict[str, set[str]] = {"": set()}
        for name in tuple(column_names):
            parts = name.split(".", _DOTS + 1)
            if len(parts) > _DOTS + 1:
                keys_by_place[""] |= {parts[0], name}
                column_names.add(parts[0])
                continue
            for start in range(len(parts)):
                keys = keys_by_place.setdefault(".".join(parts[:start]), set())
                keys.update(".".join(parts[start:end]) for end in range(start + 1, len(parts) + 1))
        self.known = {at: frozenset(keys) for at, keys in keys_by_place.items() if at not in column_names or not at}
        self.objects = {
            at: frozenset(key for key in keys if joined(at, key) in self.known) for at, keys in self.known.items()
        }
        self.flat = frozenset() if self.objects[""] else self.known[""]
        self.inner = {at: [(key, joined(at, key)) for key in keys] for at, keys in self.objects.items()}
        self.dotted = {
            at: frozenset(key for key in keys if "." in key) if self.objects[at] else frozenset()
            for at, keys in self.known.items()
        }

    def spells_twice(self, members: Mapping[str, Any], at: str = "") -> bool:
        """Return whether an object may hold a column twice: under a dotted key, and inside an object."""
        dotted = self.dotted[at]
        return bool(dotted) and not dotted.isdisjoint(members) and not self.objects[at].isdisjoint(members)

    def add(self, document: Mapping[str, Any], left_out: LeftOut) -> None:
        """Count what the columns do not show of one decoded document."""
        if left_out.full:
            return
        unknown, twice = self.missed(document)
        if unknown:
            left_out.add(KEYS, (joined(*pair) for pair in unknown))
        if twice:
            left_out.add(VALUES, twice)

    def add_all(self, documents: Sequence[Mapping[str, Any]], left_out: LeftOut) -> None:
        """Count what the columns do not show of many decoded documents, as `add` does."""
        if not self._show_all(documents, ""):
            for document in documents:
                self.add(document, left_out)

    def _show_all(self, objects: Sequence[Mapping[str, Any]], at: str) -> bool:
        """Return whether the columns certainly show all of the objects at a place, by all their keys together."""
        keys = set(chain.from_iterable(objects))
        if not self.known[at].issuperset(keys) or self.spells_twice(dict.fromkeys(keys), at):
            return False
        for key in self.objects[at].intersection(keys):
            values = [members[key] for members in objects if key in members]
            if {*map(type, values)} - {dict}:
                values = list(chain.from_iterable(value if value.__class__ is list else (value,) for value in values))
                values = [value for value in values if value is not None]
                if not {*map(type, values)} <= {dict}:
                    return False
            if not self._show_all(values, joined(at, key)):
                return False
        return True

    def missed(self, document: Mapping[str, Any]) -> tuple[set[tuple[str, str]], set[str]]:
        """Return what the columns do not show of one decoded document.

        Returns:
            The keys without a column, each after the name of its object; an empty key stands for the object itself,
            where the document has none. A null is not missed. And the names of the columns that have two values.
        """
        unknown: set[tuple[str, str]] = set()
        twice: set[str] = set()
        for at, members in self._levels(document, unknown):
            keys = self.known[at]
            if not keys.issuperset(members):
                unknown.update((at, key) for key, value in members.items() if value is not None and key not in keys)
            if self.spells_twice(members, at):
                twice |= self._twice(members, at)
        return unknown, twice

    def _levels(
        self, document: Mapping[str, Any], stray: set[tuple[str, str]]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield all objects on the way to columns, each after its name; add those that are none to `stray`."""
        rest: list[tuple[str, Any]] = [("", document)]
        while rest:
            at, value = rest.pop()
            if isinstance(value, dict):
                yield at, value
                objects = self.objects[at]
                if not objects.isdisjoint(value):
                    rest += [(joined(at, key), value[key]) for key in objects.intersection(value)]
            elif isinstance(value, list):
                rest += [(at, item) for item in value]
            elif value is not None:
                stray.add((at, ""))

    def _twice(self, members: Mapping[str, Any], at: str) -> set[str]:
        objects = self.objects[at].intersection(members)
        pairs = (
            (key, head)
            for key in self.dotted[at].intersection(members)
            for head in objects
            if key.startswith(f"{head}.")
        )
        names: set[str] = set()
        for key, head in pairs:
            names |= self._columns(at, key, members[key]) & self._columns(at, head, members[head])
        return names

    def _columns(self, at: str, key: str, value: Any) -> set[str]:
        """Return the names of the columns that have a value at a key, or below it."""
        name = joined(at, key)
        if name not in self.known:
            return set() if value is None else {name}
        rest, names = [(name, value)], set()
        while rest:
            at, value = rest.pop()
            if isinstance(value, list):
                rest += [(at, item) for item in value]
            elif isinstance(value, dict):
                for inner in self.known[at].intersection(value):
                    below = joined(at, inner)
                    if below in self.known:
                        rest.append((below, value[inner]))
                    elif value[inner] is not None:
                        names.add(below)
        return names


def joined(at: str, key: str) -> str:
    """Return the dotted name of a key in an object; the object's own for an empty key."""
    return f"{at}.{key}" if at and key else at or key
