"""Tables: lines of CSV and TSV become records, by RFC 4180, and fields become values by the types of the columns."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.exports.csv_lines import unescaped
from dragoman.exports.formats import lists_not_all, unknown_column
from dragoman.spellings import (
    SCALAR_SIGNS,
    Quoted,
    did_you_mean,
    map_option,
    near_names,
    scalars_of,
    spelling_of,
    value_of,
)
from dragoman_api.columns import Written
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode, encode

from .column_mapping import Gathered, MemberPlace, MemberPlaces, move_parts
from .records import (
    LIKELY_ENCODING,
    NOT_UTF_8,
    RECORD_BYTES,
    Members,
    Record,
    UnplacedError,
    address_of,
    id_elsewhere,
    read_id,
    split_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dragoman_api.columns import Column, Description

    from .records import Wishes
    from .sources import ImportSource

_DELIMITERS = ";\t,|"
"""Characters that files separate fields with, the likeliest first."""

_INSIDE = re.compile(r'(?:[^"]++|"")*+')
_QUOTED = re.compile(r'"[^"]*+(?:""[^"]*+)*+"')
_QUOTED_OR_OPEN = re.compile(rb'"[^"]*+(?:""[^"]*+)*+(?:"|\Z)')
"""Also a field in quotes that ends in a later line."""


class SeparatedRows:
    """The rows of a CSV or TSV file.

    Attributes:
        names: The names of the columns: the fields of the first line.
        likely: The character that seems to separate fields, if the delimiter does not; empty if there is none.
    """

    def __init__(self, source: ImportSource, *, delimiter: str, exact: bool = False) -> None:
        """Read the first line.

        Args:
            source: The file.
            delimiter: The character that separates fields.
            exact: The file is an unchanged export, so fields in quotes become `Quoted`.

        Raises:
            ConfigurationError: The first line names no columns, or the lines end with a carriage return alone.
        """
        if len(delimiter) != 1 or delimiter in '"\r\n':
            text = f"a delimiter is one character that is no quote and no end of a line, not {delimiter[:20]!r}"
            raise ConfigurationError(text, hint="--delimiter ';'", code="delimiter-unknown")
        self._comma, self._exact = delimiter, exact
        sign = re.escape(delimiter)
        # All of a line is matched: what is no field in quotes, but begins like one, goes on to the end.
        self._field = re.compile(rf'{sign}({_QUOTED.pattern}(?![^{sign}])|(?!")[^{sign}]*+|".*)', re.DOTALL)
        lines = split_lines(source)
        first = [*islice(lines, 1)]
        if first and b"\r" in _QUOTED_OR_OPEN.sub(b"", first[0][0]).rstrip(b"\r"):
            text = f"{source.name} ends its lines with a carriage return (CR) alone, and an import reads LF and CR LF"
            raise ConfigurationError(text, hint=r"tr '\r' '\n' <OLD >NEW, then import NEW")
        self._lines = chain(first, lines)
        self._number = 0
        head = next(self._read(), None)
        fault = head.fault if head else "it is empty"
        self.names = ["" if name is None else str(name) for name in head.data] if head and not fault else []
        if not fault and (twice := [name for name, count in Counter(self.names).items() if count > 1]):
            fault = f"the column {min(twice)!r} occurs twice in its first line"
        if fault:
            hint = f"--encoding {LIKELY_ENCODING}" if fault.startswith(NOT_UTF_8) else ""
            raise ConfigurationError(f"{source.name} has no line of column names: {fault}", hint=hint)
        self._number = 0
        counts = {sign: self.names[0].count(sign) for sign in _DELIMITERS} if len(self.names) == 1 else {}
        self.likely = max(counts, key=lambda sign: counts[sign]) if any(counts.values()) else ""

    def __iter__(self) -> Iterator[Record]:
        width = len(self.names)
        for record in self._read():
            if not record.fault and len(record.data) != width:
                record.fault = f"it has {len(record.data)} fields, and the file has {width} columns"
            yield record

    def _read(self) -> Iterator[Record]:
        begun: list[bytes] = []
        size = read = 0
        row = _Row(self._comma, exact=self._exact)
        for line, fault in self._lines:
            if not begun:
                if not line.strip(b"\r"):
                    continue
                if not fault and len(line) < RECORD_BYTES and (record := self._whole(line)) is not None:
                    yield record
                    continue
            begun.append(line)
            size += len(line) + 1
            if fault or size > RECORD_BYTES:
                yield self._record(b"\n".join(begun)[:RECORD_BYTES], fault or "a quoted field is not closed")
            elif len(begun) > 1 and b'"' not in line:
                continue  # the field is still open
            else:
                try:
                    closed = row.add(b"\n".join(begun[read:]).decode())
                except UnicodeDecodeError as error:
                    data = b"\n".join(begun)
                    before = len(data) - len(error.object)
                    error.object, error.start, error.end = data, error.start + before, error.end + before
                    yield self._record(data, f"{NOT_UTF_8}: {error}")
                except ValueError as error:
                    yield self._record(b"\n".join(begun), str(error))
                else:
                    if not closed:
                        read = len(begun)
                        continue
                    self._number += 1
                    yield Record(self._number, row.fields)
            begun, size, read, row = [], 0, 0, _Row(self._comma, exact=self._exact)
        if begun:
            yield self._record(b"\n".join(begun), "a quoted field is not closed")

    def _whole(self, line: bytes) -> Record | None:
        """Return the row that a line holds; None if the line is not a whole row, or is not UTF-8."""
        try:
            text = line.decode().removesuffix("\r")
        except UnicodeDecodeError:
            return None
        fields: list[Any]
        plain = "[" not in text and "{" not in text
        if '"' not in text:
            fields = text.split(self._comma)
            if "" in fields:
                fields = [field or None for field in fields]
        elif (parts := self._parts(text)) is not None:
            fields, plain = parts, plain and not self._exact and '"""' not in text
        else:
            return None
        self._number += 1
        return Record(self._number, fields, "", plain)

    def _parts(self, text: str) -> list[str | None] | None:
        """Return the fields of a line with quotes; None if the last one goes on in the next line."""
        if not self._exact and text[0] == '"' == text[-1]:
            fields: list[Any] = text[1:-1].split(f'"{self._comma}"')
            if text.count('"') == 2 * len(fields):  # all stand in quotes, and none holds one
                return fields
        parts = self._field.findall(self._comma + text)
        if parts[-1][:1] == '"' and not _QUOTED.fullmatch(parts[-1]):
            return None
        if self._exact:
            return [_marked(part[1:-1].replace('""', '"')) if part[:1] == '"' else part or None for part in parts]
        return [part[1:-1].replace('""', '"') if part[:1] == '"' else part or None for part in parts]

    def _record(self, data: bytes, fault: str) -> Record:
        self._number += 1
        return Record(self._number, data, fault)


def _marked(text: str) -> str:
    """Return a field that an export put in quotes; it is `Quoted` if it looks like another value."""
    return Quoted(text) if text[:1] in SCALAR_SIGNS else text


class _Row:
    """The fields of one row, whose lines are read one by one, each once.

    Attributes:
        fields: The fields so far.
    """

    def __init__(self, comma: str, *, exact: bool) -> None:
        self._comma, self._exact = comma, exact
        self.fields: list[str | None] = []
        self._open: list[str] = []  # what a quoted field holds so far, by line

    def add(self, lines: str) -> bool:
        """Read further lines; return whether the row ends with them, as no quoted field goes on in the next line.

        Raises:
            ValueError: Something other than a separator follows a quoted field.
        """
        text, at = lines.removesuffix("\r"), 0
        while True:
            if self._open or text[at : at + 1] == '"':
                begin = at if self._open else at + 1
                match = _INSIDE.match(text, begin)
                assert match is not None
                at = match.end()
                if at == len(text):
                    self._open.append(lines[begin:])
                    return False
                field = "\n".join([*self._open, match[0]]).replace('""', '"')
                self.fields.append(_marked(field) if self._exact else field)
                self._open = []
                at += 1
                if text[at : at + 1] not in ("", self._comma):
                    raise ValueError("a quoted field is followed by more than a separator")
            else:
                end = text.find(self._comma, at)
                end = len(text) if end < 0 else end
                self.fields.append(text[at:end] or None)
                at = end
            if at >= len(text):
                return True
            at += 1
            if at == len(text):  # the line ends with a separator
                self.fields.append(None)
                return True


class FieldForm(msgspec.Struct, frozen=True):
    """The spelling of the fields of a file whose values are texts.

    Attributes:
        exact: The file is an export and unchanged, so that each text is spelled as the export spells it.
        escaped: The export put an apostrophe before formulas.
    """

    exact: bool = False
    escaped: bool = False


_KEPT = "the server keeps it itself"


class FieldInserts:
    """Rows of a table, whose values get the types of the object's columns; an empty field is left out.

    Attributes:
        left_out: The columns of the file that are not written, each with the reason.
    """

    def __init__(
        self, wishes: Wishes, description: Description, names: Sequence[str], *, spelled: FieldForm | None = None
    ) -> None:
        """Match the file's columns with the object's.

        Args:
            wishes: The wishes of the caller.
            description: The object that receives the rows.
            names: The names of the file's columns.
            spelled: The spelling of fields that are texts; None if they are values.

        Raises:
            ConfigurationError: A column of the file does not exist, or two of them would become the same one.
        """
        self._wishes = wishes
        columns = {column.name: column for column in description.columns}
        if spelled is not None:
            plain = [name if name in wishes.renamed or _exists(name, columns) else unescaped(name) for name in names]
            spelled = FieldForm(spelled.exact, spelled.escaped or plain != [*names])
            names = plain
        key = {column.name: column.type == "uuid" for column in columns.values() if column.is_key}
        self._places = MemberPlaces(description)
        self._parted = self._parted_columns(names)
        parts = {old for _, renames in self._parted for old in renames}
        unknown = [name for name in (wishes.id, *wishes.renamed) if name is not None and name not in (*names, *parts)]
        if unknown:
            text = f"the file has no column {unknown[0]!r}{did_you_mean(near_names(unknown[0], names))}"
            raise ConfigurationError(text, hint=f"its columns are {', '.join(names)}", code="column-unknown")
        self.left_out: dict[str, str] = {}
        self._named: list[tuple[int, str]] = []
        self._placed: list[tuple[int, MemberPlace]] = []
        parted = {at for at, _ in self._parted}
        sources: dict[object, str] = {}
        for renames in (renames for _, renames in self._parted):
            for old, new in renames.items():
                self._claim(new, old, sources)
        for at, name in enumerate(names):
            target = wishes.renamed.get(name, name)
            if not target or at in parted:
                continue
            if target in key and wishes.id is not None:
                if name != wishes.id:
                    self.left_out[name] = id_elsewhere(wishes.id)
                continue
            place = None if target in columns else self._places.find(target)
            if place is not None and place.part:
                self._claim(target, name, sources)
                self._placed.append((at, place))
                continue
            if not _exists(target, columns) and name != wishes.id:
                raise _unknown(target, description)
            if target in columns and columns[target].written is Written.NEVER:
                reason = columns[target].reasons.get("edit") or _KEPT
                self.left_out[name] = f"no change can write it, so it is left out: {reason}"
            elif _exists(target, columns):
                self._claim(target, name, sources)
                self._named.append((at, target))
        self._names = names
        self._fields = None if spelled is None else _Fields(self._named, columns, spelled)
        self._targets = [name for _, name in self._named]
        self._pick = _picker([at for at, _ in self._named])
        self._id = None if wishes.id is None else names.index(wishes.id)
        self._read_id = unescaped if spelled is not None and spelled.escaped else _unchanged
        self._key = [] if wishes.id is not None else [name for name in key if name in self._targets]
        self._composite = key if len(key) > 1 and self._key else {}

    def _claim(self, target: str, source: str, sources: dict[object, str]) -> None:
        """Note which column of the file a column gets its values from. Raises ConfigurationError if there are two."""
        if target and (other := sources.setdefault(self._places.find(target) or target, source)) != source:
            text = f"the columns {other!r} and {source!r} of the file would both become {target!r}"
            hint = f"{map_option(other)} or {map_option(source)} leaves one of them out"
            raise ConfigurationError(text, hint=hint, code="columns-collide")

    def _parted_columns(self, names: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
        """Return the columns whose values are objects of which `--map` takes parts, and the parts' new names."""
        renames_by_column: dict[str, dict[str, str]] = {}
        for old, new in self._wishes.renamed.items():
            if old in names:
                continue
            head, _, part = old.partition(".")
            place = self._places.find(new)
            if part and head in names:
                renames_by_column.setdefault(head, {})[old] = new
            elif place is not None and place.column in names:
                renames_by_column.setdefault(place.column, {})[old] = new
        return [(names.index(name), parts) for name, parts in renames_by_column.items()]

    def fill(self, record: Record) -> None:
        """Put into a record what it writes. Raises ValueError if it holds no row."""
        wishes, data = self._wishes, record.data
        assert isinstance(data, list)
        typed = data if self._fields is None else self._fields.typed(data, plain=record.plain)
        chosen = self._pick(typed)
        values = dict(zip(self._targets, chosen, strict=True))
        if None in chosen:
            values = {name: typed[at] for at, name in self._named if data[at] is not None}
        if self._placed or self._parted:
            values |= self._moved(data)
        id_ = None if self._id is None else read_id(self._read_id(data[self._id]), str(wishes.id))
        if self._composite:
            record.address = address_of(values, self._composite)
        elif self._key and self._key[0] in values:
            id_ = read_id(values.pop(self._key[0]), self._key[0])
        has_id = id_ is not None or record.address is not None
        record.values, record.id, record.tenant, record.replace = values, id_, wishes.tenant, wishes.replace and has_id

    def _moved(self, data: Sequence[Any]) -> dict[str, Any]:
        """Return the values that `--map` takes out of objects or puts into one, by column."""
        gathered, columns = Gathered(), Members()
        for at, place in self._placed:
            if data[at] is not None:
                gathered.put(place, _json(data[at], self._names[at]))
        for at, renames in self._parted:
            if data[at] is None:
                continue
            name, value = self._names[at], _json(data[at], self._names[at])
            rest = move_parts(name, value, renames, self._places, gathered, columns)
            if rest is None:
                gathered.put(MemberPlace(name), value)
            for part, raw in (rest or {}).items():
                if MemberPlace(name) in map(self._places.find, renames.values()) or name not in self._places.names:
                    hint = f"{map_option(f'{name}.{part}')} leaves it out"
                    raise UnplacedError(f"its column {name!r} holds {part!r} as well, which has no place; {hint}")
                gathered.put(MemberPlace(name, part), raw)
        return gathered.values() | {name: value_of(bytes(value)) for name, value in columns.items()}


def _json(value: Any, column: str) -> Raw:
    """Return the JSON of a value. Raises ValueError if the value is not JSON."""
    text = str(value) if isinstance(value, str) else encode(value)
    try:
        return decode(text, Raw)
    except ValueError:
        raise ValueError(f"its column {column!r} holds no JSON, and --map moves it") from None


def _unchanged(value: Any) -> Any:
    return value


class _Fields:
    """Reads the fields of rows by their columns; what does not depend on a row is computed once."""

    def __init__(self, fields: Sequence[tuple[int, str]], columns: Mapping[str, Column], form: FieldForm) -> None:
        """Choose a reader for each field.

        Args:
            fields: The number of each field that is read, from 0, and the name of its column.
            columns: The columns of the object, by name.
            form: The spelling of the fields.
        """
        self._bare = not form.escaped
        self._scalars: list[int] = []  # most of their fields are numbers and booleans: they are read together
        self._always: list[tuple[int, Callable[[str], Any]]] = []
        self._looked: list[tuple[int, str, Callable[[str], Any]]] = []
        self._digits: list[tuple[int, str, Callable[[str], Any]]] = []  # those of these that matter in a plain row
        for at, name in fields:
            column = columns.get(name)
            read = _reader(column, form)
            if column is not None and column.is_key:
                signs: str | None = ""
            else:
                spelling = spelling_of(column)
                signs = spelling.signs(exact=form.exact)
                if signs is None and not spelling.json:
                    self._scalars.append(at)
            if signs is None:
                self._always.append((at, read))
            else:
                self._looked.append((at, signs if self._bare else f"{signs}'", read))
                if not self._bare or not SCALAR_SIGNS.isdisjoint(signs):
                    self._digits.append(self._looked[-1])
        self._others = [(at, read) for at, read in self._always if at not in self._scalars]
        self._pick = _picker(self._scalars)

    def typed(self, data: Sequence[Any], *, plain: bool) -> Sequence[Any]:
        """Return the values of the fields of a row.

        Args:
            data: The fields; None for an empty one.
            plain: No field is `Quoted`, and none begins like JSON that is an array, an object or a text.
        """
        always, looked = self._always, self._digits if plain else self._looked
        if not always and not looked:
            return data
        row = [*data]
        if self._scalars and self._bare:
            fields = self._pick(data)
            if (plain or Quoted not in map(type, fields)) and (values := scalars_of(fields)) is not None:
                always = self._others
                for at, value in zip(self._scalars, values, strict=True):
                    row[at] = value
        for at, read in always:
            if (field := row[at]) is not None:
                row[at] = read(field)
        for at, signs, read in looked:
            if (field := row[at]) is not None and (field[:1] in signs or field.__class__ is Quoted):
                row[at] = read(field)
        return row


def _picker(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that picks the fields at these places."""
    return itemgetter(*places) if len(places) > 1 else lambda data: [data[at] for at in places]


def _reader(column: Column | None, form: FieldForm) -> Callable[[str], Any]:
    """Return a function that reads the fields of a column; a field of the key is the text of the id."""
    if column is not None and column.is_key:
        return (lambda field: str(unescaped(field))) if form.escaped else str
    read = spelling_of(column).reader(exact=form.exact)
    if not form.escaped:
        return read

    def read_escaped(field: str) -> Any:
        text = unescaped(field)
        return read(Quoted(text) if isinstance(field, Quoted) else text)

    return read_escaped


def _exists(name: str, columns: Mapping[str, Column]) -> bool:
    """Return whether a column exists, or is a key of a column that takes any keys."""
    parts = name.split(".")
    return any(".".join(parts[:end]) in columns for end in range(len(parts), 0, -1))


def _unknown(name: str, description: Description) -> ConfigurationError:
    if lists_not_all(description):
        return unknown_column(description, name)
    names = [column.name for column in description.columns]
    text = f"'{description.object}' has no column {name!r}{did_you_mean(near_names(name, names))}"
    hint = f"{map_option(name, 'NAME')} gives it another name, and {map_option(name)} leaves it out"
    return ConfigurationError(text, hint=hint, code="column-unknown", details={"column": name})
