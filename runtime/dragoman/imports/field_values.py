"""Fields of tables become values by the types of the object's columns, and by the readings of the file's columns."""

from __future__ import annotations

import shlex
from operator import itemgetter
from typing import TYPE_CHECKING, Any

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
from .csv_rows import FieldForm
from .readings import field_reader
from .records import Members, UnplacedError, address_of, id_elsewhere, read_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dragoman_api.columns import Column, Description

    from .readings import FieldReader, FieldReadings
    from .records import Record, Wishes

_KEPT = "the server keeps it itself"
_SHOWN = 200  # characters of a first line in a message


def match_fields(
    wishes: Wishes,
    description: Description,
    names: Sequence[str],
    *,
    spelled: FieldForm | None,
    readings: FieldReadings,
    likely: str,
) -> FieldInserts:
    """Match a file's columns with an object's, as `FieldInserts` does.

    If the character `likely` seems to separate the fields instead of the delimiter, the error for an unknown column
    says so; it is empty if the delimiter does.
    """
    try:
        return FieldInserts(wishes, description, names, spelled=spelled, readings=readings)
    except ConfigurationError as error:
        if not likely or error.code != "column-unknown":
            raise
        sign = "tab" if likely == "\t" else likely
        text = f"the first line of the file is one column, {names[0][:_SHOWN]!r}, unless {sign!r} separates it"
        raise ConfigurationError(text, hint=f"--delimiter {shlex.quote(sign)}", code=error.code) from error


class FieldInserts:
    """Rows of a table, whose values get the types of the object's columns; an empty field is left out.

    Attributes:
        left_out: The columns of the file that are not written, each with the reason.
    """

    def __init__(
        self,
        wishes: Wishes,
        description: Description,
        names: Sequence[str],
        *,
        spelled: FieldForm | None = None,
        readings: FieldReadings | None = None,
    ) -> None:
        """Match the file's columns with the object's.

        Args:
            wishes: The wishes of the caller.
            description: The object that receives the rows.
            names: The names of the file's columns.
            spelled: The spelling of fields that are texts; None if they are values.
            readings: The readings of columns whose fields do not stand for themselves.

        Raises:
            ConfigurationError: A column of the file does not exist, or two of them would become the same one, or one
                has a reading and goes into parts of an object.
        """
        self._wishes = wishes
        readers = {
            names.index(name): field_reader(name, reading)
            for name, reading in (readings or {}).items()
            if name in names
        }
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
        moved = {names[at] for at in (*parted, *(at for at, _ in self._placed)) if at in readers}
        if moved:
            text = f"{min(moved)!r} goes into parts of an object as JSON, which no reading spells"
            raise ConfigurationError(text, hint="leave out its reading, or its --map", code="value-invalid")
        self._names = names
        self._filled = [at for at, _ in self._named if at in readers and readers[at].fills]
        self._fields = None if spelled is None else _Fields(self._named, columns, spelled, readers)
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
        if self._filled:
            data = ["" if field is None and at in self._filled else field for at, field in enumerate(data)]
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

    def __init__(
        self,
        fields: Sequence[tuple[int, str]],
        columns: Mapping[str, Column],
        form: FieldForm,
        readers: Mapping[int, FieldReader],
    ) -> None:
        """Choose a reader for each field.

        Args:
            fields: The number of each field that is read, from 0, and the name of its column.
            columns: The columns of the object, by name.
            form: The spelling of the fields.
            readers: What respells the fields that do not stand for themselves, by their numbers.
        """
        self._bare = not form.escaped
        self._scalars: list[int] = []  # most of their fields are numbers and booleans: they are read together
        self._always: list[tuple[int, Callable[[str], Any]]] = []
        self._looked: list[tuple[int, str, Callable[[str], Any]]] = []
        self._digits: list[tuple[int, str, Callable[[str], Any]]] = []  # those of these that matter in a plain row
        for at, name in fields:
            column = columns.get(name)
            read = _reader(column, form, readers.get(at))
            if at in readers:
                signs: str | None = None
            elif column is not None and column.is_key:
                signs = ""
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


def _reader(column: Column | None, form: FieldForm, reader: FieldReader | None) -> Callable[[str], Any]:
    """Return a function that reads the fields of a column; a field of the key is the text of the id."""
    if reader is not None:
        value, respell = spelling_of(column).reader(exact=form.exact), reader.respell
        if form.escaped:
            return lambda field: value(respell(str(unescaped(field))))
        return lambda field: value(respell(field))
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
