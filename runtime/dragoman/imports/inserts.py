"""Conversion of records to inserts, by the form of the file and the columns of the object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.exports.csv_lines import unescaped
from dragoman.exports.formats import lists_not_all, unknown_column
from dragoman.spellings import SCALAR_SIGNS, Quoted, did_you_mean, near_names, scalars_of, spelling_of, value_of
from dragoman_api.changes import Insert
from dragoman_api.columns import Written
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode, encode
from dragoman_api.kit.page_columns import OTHERS

from .places import Gathered, MemberPlace, MemberPlaces, Members, RowPlaces, UnplacedError, move_parts, object_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman_api.columns import Column, Description, Note

    from .records import Record

_members = msgspec.json.Decoder(Members)
_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder()


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of a caller for every row.

    Attributes:
        object: The object that receives the rows.
        id: The column whose value becomes the row's id; None to take the file's own ids, or the server's.
        renamed: New names of columns by their old ones; an empty name leaves the column out.
        replace: A row may replace an existing row with the same id.
        tenant: The tenant that receives the rows; None for the tenant that each row names.
    """

    object: str
    id: str | None = None
    renamed: Mapping[str, str] = msgspec.field(default_factory=dict)
    replace: bool = False
    tenant: str | None = None


def _id(value: object, column: str) -> str:
    """Return the id that a value stands for. Raises ValueError if no row can have such an id."""
    if isinstance(value, Raw):
        data = bytes(value)
        value = _text.decode(data) if data[:1] == b'"' else int(data) if data.lstrip(b"-").isdigit() else None
    if value is None or value == "" or not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError(f"its column {column!r} holds no text and no whole number, so it has no id")
    return str(value)


class DocumentInserts:
    """Lines that are documents as the server stores them; they keep their bytes."""

    def __init__(self, wishes: Wishes, description: Description) -> None:
        self._wishes = wishes
        self._keys = {column.name for column in description.columns if column.is_key}
        self._plain = wishes.id is None and not wishes.renamed

    def insert(self, record: Record) -> Insert:
        """Return the insert for a record. Raises ValueError if the record holds no row."""
        wishes, data = self._wishes, record.data
        assert isinstance(data, bytes)
        return self.made(data, wishes.tenant)

    def made(
        self, data: bytes, tenant: str | None, *, id: str | None = None, routing: str | None = None,  # noqa: A002
        values: Mapping[str, Any] | None = None, renamed: Mapping[str, str] | None = None,
    ) -> Insert:  # fmt: skip
        """Return the insert for a document; the driver checks its JSON. Raises ValueError if it is no JSON object."""
        wishes = self._wishes
        renamed = wishes.renamed if renamed is None else renamed
        if self._plain:
            if data[:1] != b"{":
                raise ValueError("it is not a JSON object")
            return Insert(
                wishes.object, dict(values or {}), id, replace=wishes.replace and id is not None, tenant=tenant,
                routing=routing, document=data.decode(),
            )  # fmt: skip
        members, changed = object_of(data), False
        if renamed and not renamed.keys().isdisjoint(members):
            members, changed = _renamed(members, renamed), True
        if wishes.id is not None:
            if (raw_id := _at(members, wishes.id)) is None:
                raise ValueError(f"it has no column {wishes.id!r}, which --id names")
            id = _id(raw_id, wishes.id)  # noqa: A001
            if wishes.id in self._keys:  # a document does not repeat its key
                members = {name: value for name, value in members.items() if name != wishes.id}
                changed = True
        text = (_encoder.encode(members) if changed else data).decode()
        return Insert(
            wishes.object, dict(values or {}), id, replace=wishes.replace and id is not None, tenant=tenant,
            routing=routing, document=text,
        )  # fmt: skip


def _renamed(members: Members, names: Mapping[str, str]) -> Members:
    new_members = {names.get(name, name): value for name, value in members.items() if names.get(name, name)}
    if len(new_members) < sum(1 for name in members if names.get(name, name)):
        raise ValueError("--map gives two of its columns one name")
    return new_members


def _at(members: Members, name: str) -> Raw | None:
    """Find a member by its dotted name; a literal key wins over a nested path."""
    if (member := members.get(name)) is not None or "." not in name:
        return member
    head, _, rest = name.partition(".")
    inner = bytes(members.get(head, b""))
    return _at(_members.decode(inner), rest) if inner[:1] == b"{" else None


class RowInserts:
    """Lines that hold a row with its id and what the server keeps beside the document, as an export writes them.

    `Column.path` says where each column lies in a line. The members ``routing`` or ``_routing``, and ``tenant``, become
    those of the insert. In bulk files, the first of two lines holds the id and the routing. `RowPlaces` decides on the
    other members.
    """

    def __init__(self, wishes: Wishes, description: Description, *, tenants: bool, copied: bool = False) -> None:
        """Prepare to convert rows.

        Args:
            wishes: The wishes of the caller.
            description: The object that receives the rows.
            tenants: The driver has tenants.
            copied: The caller named the object that the rows come from, so no note repeats it.
        """
        self._wishes = wishes
        self._documents = DocumentInserts(wishes, description)
        inner = Counter(column.path[0] for column in description.columns if len(column.path) > 1)
        keys = [column.path for column in description.columns if column.is_key and column.path]
        self._document = inner.most_common(1)[0][0] if inner else "_source" if keys == [("_id",)] else ""
        document = self._document or "_source"
        fixed = ["_id", "_routing", "routing", *(["tenant"] if tenants else [])]
        self._settler = RowPlaces(description, wishes.renamed, document=document, fixed=fixed)
        self._places, self._copied = self._settler.places, copied
        self._beside = [*self._places.beside.items()]

    @property
    def notes(self) -> list[Note]:
        """Notes on what was left out of the rows so far."""
        return [note for note in self._settler.left_out.notes() if not (self._copied and note.code == OTHERS)]

    def insert(self, record: Record) -> Insert:
        """Return the insert for a record. Raises ValueError if the record holds no row."""
        assert isinstance(record.data, bytes)
        action, line, document = record.data.partition(b"\n")
        members = object_of(action)
        if line:
            [metadata] = [object_of(bytes(value)) for value in members.values()]
            members, data = metadata, document
        else:
            if self._document and self._document not in members:
                raise ValueError(f"it has no member {self._document!r}; documents alone are imported as documents")
            data = bytes(members.get(self._document, b"{}"))
        return self._made(members, data)

    def _made(self, members: Members, data: bytes) -> Insert:
        renamed: Mapping[str, str] | None = None
        if self._settler.plain(members):
            values: dict[str, Any] = {}
            for name, column in self._beside:
                if name in members and (value := value_of(bytes(members[name]))) is not None:
                    values[column] = value
        else:
            members, data, values, renamed = self._settler.settle(members, data)
        key = _only(members, self._places.key[0], "_id")
        id_ = None if key is None else _id(key, self._places.key[0])
        routing = _word(_only(members, "_routing", "routing"))
        tenant = self._wishes.tenant or _word(members.get("tenant"))
        if self._document or "_source" in members:
            return self._documents.made(data, tenant, id=id_, routing=routing, values=values, renamed=renamed)
        return Insert(
            self._wishes.object, values, id_, replace=self._wishes.replace and id_ is not None, tenant=tenant,
            routing=routing,
        )  # fmt: skip


def _only(members: Members, name: str, alias: str) -> Raw | None:
    """Return a member that may have one of two names. Raises UnplacedError if both are there and differ."""
    value, other = members.get(name), members.get(alias)
    if value is not None and other is not None and value != other:
        raise UnplacedError(f"its members {name!r} and {alias!r} say different things")
    return other if value is None else value


def _word(value: Raw | None) -> str | None:
    return None if value is None or value == Raw(b"null") else _text.decode(bytes(value))


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
        left_out: The columns of the file that no change can write, each with the reason.
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
            ConfigurationError: A column of the file does not exist.
        """
        self._wishes = wishes
        columns = {column.name: column for column in description.columns}
        if spelled is not None:
            plain = [name if name in wishes.renamed or _exists(name, columns) else unescaped(name) for name in names]
            spelled = FieldForm(spelled.exact, spelled.escaped or plain != [*names])
            names = plain
        key = {column.name for column in columns.values() if column.is_key}
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
        for at, name in enumerate(names):
            target = wishes.renamed.get(name, name)
            if not target or at in parted or (target in key and wishes.id is not None):
                continue
            place = None if target in columns else self._places.find(target)
            if place is not None and place.part:
                self._placed.append((at, place))
                continue
            if not _exists(target, columns) and name != wishes.id:
                raise _unknown(target, description)
            if target in columns and columns[target].written is Written.NEVER:
                self.left_out[name] = columns[target].reasons.get("edit") or _KEPT
            elif _exists(target, columns):
                self._named.append((at, target))
        self._names = names
        self._fields = None if spelled is None else _Fields(self._named, columns, spelled)
        self._targets = [name for _, name in self._named]
        self._pick = _picker([at for at, _ in self._named])
        self._id = None if wishes.id is None else names.index(wishes.id)
        self._read_id = unescaped if spelled is not None and spelled.escaped else _unchanged
        self._key = [] if wishes.id is not None else [name for _, name in self._named if name in key]

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

    def insert(self, record: Record) -> Insert:
        """Return the insert for a record. Raises ValueError if the record holds no row."""
        wishes, data = self._wishes, record.data
        assert isinstance(data, list)
        typed = data if self._fields is None else self._fields.typed(data, plain=record.plain)
        chosen = self._pick(typed)
        values = dict(zip(self._targets, chosen, strict=True))
        if None in chosen:
            values = {name: typed[at] for at, name in self._named if data[at] is not None}
        if self._placed or self._parted:
            values |= self._moved(data)
        id_ = None if self._id is None else _id(self._read_id(data[self._id]), str(wishes.id))
        if len(self._key) == 1 and self._key[0] in values:
            id_ = _id(values.pop(self._key[0]), self._key[0])
        has_id = id_ is not None or (bool(self._key) and self._key[0] in values)
        return Insert(wishes.object, values, id_, replace=wishes.replace and has_id, tenant=wishes.tenant)

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
                    hint = f"--map {name}.{part}= leaves it out"
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
    hint = f"--map {name}=NAME gives it another name, and --map {name}= leaves it out"
    return ConfigurationError(text, hint=hint, code="column-unknown", details={"column": name})
