"""Places: where each member of an exported row goes, by the target's columns and `--map`; others are refused.

A row of an export has a document, an id, and members beside them, such as vectors. A target may hold these under
another name, or not at all. Only this module decides what an import does with each: write it, move it or leave it out
as the caller said, or refuse the row because of it. Members that every server computes for itself are left out and
counted.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.spellings import map_option, value_of
from dragoman_api.cells import Json
from dragoman_api.columns import Written
from dragoman_api.kit.page_columns import MEMBERS, OTHERS, LeftOut, columns_left_out

from .records import DocumentInserts, Members, UnplacedError, check_object, id_elsewhere, object_of, read_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dragoman_api.columns import Description, Note

    from .records import Record, Wishes

_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder()
_END = 0x7D  # }
_NOTHING = (b"null", b"[]", b"{}")
_NAMED, _NAME = 5, 255  # names in a message, and characters of one


class MemberPlace(NamedTuple):
    """A column outside the document, or one name in the object that is its value, as with named vectors."""

    column: str
    part: str = ""


class MemberPlaces:
    """The places of an object that lie beside the documents of its rows.

    Attributes:
        beside: The names of the columns there, by the member of a row that holds each.
        key: The member that holds a row's id, and the column of the id.
        names: The names of the columns beside the documents.
    """

    def __init__(self, description: Description) -> None:
        outer = [column for column in description.columns if len(column.path) == 1 and not column.is_key]
        written = [column for column in outer if column.written is not Written.NEVER]
        self.beside = {column.path[0]: column.name for column in written}
        self.key = next(
            (
                (column.path[0], column.name)
                for column in description.columns
                if column.is_key and len(column.path) == 1
            ),
            ("", ""),
        )
        self.names = {column.name for column in written}
        self._inside = {column.name for column in description.columns} - self.names
        self._parts = {part: MemberPlace(column.name, part) for column in written for part in column.members}

    def find(self, name: str) -> MemberPlace | None:
        """Return the place that a name stands for; None for a column of the document, and for an unknown name.

        One of several vectors goes by ``vector.NAME``, or by its own name unless the document has a column of that
        name.
        """
        if name in self.names:
            return MemberPlace(name)
        head, _, part = name.partition(".")
        if part and head in self.names:
            return MemberPlace(head, part)
        return None if name in self._inside else self._parts.get(name)

    @property
    def examples(self) -> str:
        """The names of some places, for a message; empty if there are none."""
        return ", ".join(([*self._parts] or sorted(self.names))[:_NAMED])


class Gathered:
    """Values on their way to their places."""

    def __init__(self) -> None:
        self._whole: dict[str, Raw] = {}
        self._parts: dict[str, Members] = {}

    def put(self, place: MemberPlace, value: Raw) -> None:
        """Put a value in its place. Raises UnplacedError if another value is there."""
        parts = self._parts.setdefault(place.column, {}) if place.part else None
        if (
            place.column in self._whole
            or (parts is None and place.column in self._parts)
            or place.part in (parts or ())
        ):
            raise UnplacedError(f"--map gives two of its members the place {'.'.join(filter(None, place))!r}")
        if parts is None:
            self._whole[place.column] = value
        else:
            parts[place.part] = value

    def values(self) -> dict[str, Any]:
        """Return the values of the change, by column."""
        values = {name: value_of(bytes(value)) for name, value in self._whole.items()}
        values |= {name: Json(_encoder.encode(parts).decode()) for name, parts in self._parts.items()}
        return {name: value for name, value in values.items() if value is not None}


def move(value: Raw, name: str, places: MemberPlaces, gathered: Gathered, document: Members) -> None:
    """Move a value to its place or into the document; drop it if the name is empty."""
    if not name:
        return
    if (place := places.find(name)) is not None:
        gathered.put(place, value)
    elif name in document:
        raise UnplacedError(f"--map gives two of its members the name {name!r}")
    else:
        document[name] = value


def move_parts(
    member: str, value: Raw, renamed: Mapping[str, str], places: MemberPlaces, gathered: Gathered, document: Members
) -> Members | None:
    """Move the mapped names of an object, such as named vectors, and return the rest; None if none is mapped."""
    parts = object_of(bytes(value)) if bytes(value)[:1] == b"{" else {}
    names = {part: renamed.get(f"{member}.{part}", renamed.get(part)) for part in parts}
    if all(name is None for name in names.values()):
        return None
    for part, name in names.items():
        if name is not None:
            move(parts.pop(part), name, places, gathered, document)
    return {part: raw for part, raw in parts.items() if bytes(raw) not in _NOTHING}


class RowPlaces:
    """Decides what becomes of the members of rows that an export or a server wrote.

    Attributes:
        places: The places of the target beside its documents.
        origin: The member that names the object of a row; empty if rows have none.
        own: The name of the target, as JSON.
        known: The members that no row loses by their absence: of the object's name, and those that servers compute.
    """

    def __init__(
        self, description: Description, renamed: Mapping[str, str], *, document: str, fixed: Iterable[str]
    ) -> None:
        """Find the places of the target.

        Args:
            description: The object that receives the rows.
            renamed: New names of columns by their old ones; an empty name leaves the column out.
            document: The member that holds the document.
            fixed: Members with a meaning of their own: id, routing, tenant.
        """
        self.places = MemberPlaces(description)
        self._object, self._renamed, self._document = description.object, renamed, document
        self.origin = description.object_member
        self.own = Raw(_encoder.encode(description.object))
        self._fixed = {*fixed, self.places.key[0], document}
        self._computed = frozenset({*description.server_members} - self._fixed - self.places.beside.keys())
        self.known = [*filter(None, [self.origin]), *self._computed]
        self._written = self._fixed | self.places.beside.keys()
        self._plain = self._written | self._computed
        self._left_out = LeftOut()
        self._counts: Counter[frozenset[str]] = Counter()  # rows by the members that the server computes

    def plain(self, members: Members) -> bool:
        """Count the members that the server computes or knows, and return whether no other needs a decision."""
        if (origin := members.pop(self.origin, None)) is not None and origin != self.own:
            self._left_out.add(OTHERS, [_text.decode(bytes(origin))])
        names = members.keys()
        if not names <= self._written:
            if not names.isdisjoint(self._computed):
                self.count(self._computed.intersection(names))
            if not names <= self._plain:
                return False
        return not self._renamed

    def count(self, names: Iterable[str]) -> None:
        """Count members of a row that the server computes."""
        self._counts[frozenset(names)] += 1

    @property
    def left_out(self) -> LeftOut:
        """The counts of what was left out of the rows so far without a request of the caller."""
        left_out = LeftOut()
        left_out.merge(self._left_out)
        for names, rows in self._counts.items():
            left_out.add(MEMBERS, names, rows=rows)
        return left_out

    def settle(self, members: Members, data: bytes) -> tuple[Members, bytes, dict[str, Any], dict[str, str]]:
        """Decide what becomes of each member.

        Returns:
            The members with a meaning of their own, the document, the values beside it, and the names that are still
            to be changed in the document.

        Raises:
            UnplacedError: The target has no place for a member.
            ValueError: The document is not a JSON object.
        """
        fixed = {name: value for name, value in members.items() if name in self._fixed}
        gathered, additions = Gathered(), Members()
        moved: set[str] = set()
        for name, value in members.items():
            if name in fixed or name in self._computed or bytes(value) in _NOTHING:
                continue
            if name in self._renamed:
                moved.add(name)
                if not self._becomes_key(name, value, fixed):
                    move(value, self._renamed[name], self.places, gathered, additions)
            elif (rest := move_parts(name, value, self._renamed, self.places, gathered, additions)) is not None:
                bare = object_of(bytes(value)).keys() & self._renamed.keys()
                if bare & object_of(data).keys():
                    raise UnplacedError(f"--map {min(bare)}=… may mean '{name}.{min(bare)}', too: write that in full")
                moved |= bare
                if rest and name not in self.places.beside:
                    raise self._unplaced(f"{name}.{next(iter(rest))}")
                for part, raw in rest.items():
                    gathered.put(MemberPlace(self.places.beside[name], part), raw)
            elif name in self.places.beside:
                gathered.put(MemberPlace(self.places.beside[name]), value)
            else:
                raise self._unplaced(name)
        inner = {old: new for old, new in self._renamed.items() if old not in moved}
        data = self._of_document(data, inner, gathered, additions)
        return fixed, data, gathered.values(), inner

    def _becomes_key(self, name: str, value: Raw, fixed: Members) -> bool:
        """Make a member the row's id if it is mapped to the id, and return whether it is."""
        if not self._renamed[name] or self._renamed[name] not in self.places.key:
            return False
        if self.places.key[0] in fixed:
            raise UnplacedError(f"--map makes its member {name!r} the id, and it has another one")
        fixed[self.places.key[0]] = value
        return True

    def _of_document(self, data: bytes, inner: dict[str, str], gathered: Gathered, additions: Members) -> bytes:
        """Move members of the document to their places, and others into it."""
        outward = {old for old, new in inner.items() if self.places.find(new) is not None}
        if not outward and not additions:
            return data
        members = object_of(data)
        for old in outward & members.keys():
            move(members.pop(old), inner[old], self.places, gathered, additions)
        if twice := additions.keys() & members.keys():
            raise UnplacedError(f"--map gives two of its members the name {min(twice)!r}")
        return _encoder.encode(members | additions)

    def _unplaced(self, name: str) -> UnplacedError:
        examples, name = self.places.examples, name[:_NAME]
        to = f" (to {examples})" if examples else ""
        moves = f"{map_option(name, 'NAME')} moves it{to}, and {map_option(name)} leaves it out"
        return UnplacedError(f"{self._object!r} has no place for its member {name!r}; {moves}")


class RowInserts:
    """Lines that hold a row with its id and what the server keeps beside the document, as an export writes them.

    `Column.path` says where each column lies in a line. The members ``routing`` or ``_routing``, and ``tenant``, become
    those of the insert. In bulk files, the first of two lines holds the id and the routing. `RowPlaces` decides on the
    other members.
    """

    def __init__(self, wishes: Wishes, description: Description, *, tenants: bool, copied: bool = False) -> None:
        """Prepare to read rows.

        Args:
            wishes: The wishes of the caller.
            description: The object that receives the rows.
            tenants: The driver has tenants.
            copied: The caller named the object that the rows come from, so no note repeats it.
        """
        self._wishes = wishes
        self._unused_id: dict[str, str] = {}
        self._documents = DocumentInserts(wishes, description)
        inner = Counter(column.path[0] for column in description.columns if len(column.path) > 1)
        keys = [column.path for column in description.columns if column.is_key and column.path]
        self._document = inner.most_common(1)[0][0] if inner else "_source" if keys == [("_id",)] else ""
        document = self._document or "_source"
        fixed = ["_id", "_routing", "routing", *(["tenant"] if tenants else [])]
        self._settler = RowPlaces(description, wishes.renamed, document=document, fixed=fixed)
        self._places, self._copied = self._settler.places, copied
        self._beside = [*self._places.beside.items()]
        key = self._places.key[0]
        plain = self._document and key and not wishes.renamed and wishes.id is None
        self._head = self._line = None
        self._known: dict[str, tuple[str, str]] = {}  # each member but id and document, and its column if it has one
        if plain and not self._beside:
            self._head = _usual_head(description, id=key, document=self._document)
        elif plain:
            members = dict(self._beside) | dict.fromkeys(self._settler.known, "")
            self._known = {f"member{at}": pair for at, pair in enumerate(members.items())}
            self._line = _known_line(self._known, id=key, document=self._document)

    @property
    def notes(self) -> list[Note]:
        """Notes on what was left out of the rows so far."""
        ids = columns_left_out(self._unused_id)
        return ids + [note for note in self._settler.left_out.notes() if not (self._copied and note.code == OTHERS)]

    def fill(self, record: Record) -> None:
        """Put into a record what it writes. Raises ValueError if it holds no row."""
        assert isinstance(record.data, bytes)
        if self._head is not None and self._fill_usual(record, record.data):
            return
        if self._line is not None and self._fill_known(record, record.data):
            return
        action, line, document = record.data.partition(b"\n")
        members = object_of(action)
        if line:
            [metadata] = [object_of(bytes(value)) for value in members.values()]
            members, data = metadata, document
        else:
            if self._document and self._document not in members:
                raise ValueError(f"it has no member {self._document!r}; documents alone are imported as documents")
            data = bytes(members.get(self._document, b"{}"))
        self._fill_with(record, members, data)

    def _fill_usual(self, record: Record, data: bytes) -> bool:
        """Fill a record whose line has an id and a document only; return False if it has others, or another order."""
        assert self._head is not None
        head = self._head.match(data)
        if head is None or data[-1] != _END:
            return False
        try:
            record.document, record.id = check_object(data[head.end() : -1].rstrip()), head[1].decode()
        except ValueError:  # more members follow, for example
            return False
        record.tenant, record.replace = self._wishes.tenant, self._wishes.replace
        return True

    def _fill_known(self, record: Record, data: bytes) -> bool:
        """Fill a record whose line has known members only, in any order; return False if it has others, or one twice.

        They are taken out in one pass. A member that stands there twice is a colon more than all that were taken out,
        unless a text spells a colon by its code.
        """
        assert self._line is not None
        names: list[str] = []
        values: dict[str, Any] = {}
        try:
            line = self._line.decode(data)
            document = str(line.document, "utf-8")
            colons = 1 + document.count(":")
            for field, (name, column) in self._known.items():
                if (raw := getattr(line, field)) is UNSET:
                    continue
                value = bytes(raw)
                if not value.isascii():
                    value.decode()
                colons += 1 + value.count(b":")
                if not column and name != self._settler.origin:
                    names.append(name)
                elif not column and raw != self._settler.own:
                    return False
                elif column and value != b"null":
                    values[column] = value_of(value)
        except (ValueError, RecursionError):
            return False
        if not line.id or data.count(b":") != colons + 1 + line.id.count(":") or b"u003" in data or document[0] != "{":
            return False
        if names:
            self._settler.count(names)
        record.document, record.values, record.id = document, values, line.id
        record.tenant, record.replace = self._wishes.tenant, self._wishes.replace
        return True

    def _fill_with(self, record: Record, members: Members, data: bytes) -> None:
        renamed: Mapping[str, str] | None = None
        if self._settler.plain(members):
            values: dict[str, Any] = {}
            for name, column in self._beside:
                if name in members and (value := value_of(bytes(members[name]))) is not None:
                    values[column] = value
        else:
            members, data, values, renamed = self._settler.settle(members, data)
        key = _only(members, self._places.key[0], "_id")
        record.id = None if key is None else read_id(key, self._places.key[0])
        if record.id is not None and self._wishes.id is not None:
            self._unused_id = {self._places.key[1] or "_id": id_elsewhere(self._wishes.id)}
        record.routing = _word(_only(members, "_routing", "routing"), name="routing")
        record.tenant = self._wishes.tenant or _word(members.get("tenant"), name="tenant")
        record.values = values
        if self._document or "_source" in members:
            self._documents.fill_in(record, data, renamed=renamed)
        else:
            record.replace = self._wishes.replace and record.id is not None


def _known_line(
    members: Mapping[str, tuple[str, str]],
    *,
    id: str,  # noqa: A002 - the member
    document: str,
) -> msgspec.json.Decoder[Any]:
    """Return a decoder of lines that have an id, a document, and known members."""
    names = {"id": id, "document": document} | {field: name for field, (name, _) in members.items()}
    fields: list[Any] = [("document", Raw), ("id", str | UnsetType, UNSET)]
    fields += [(field, Raw | UnsetType, UNSET) for field in members]
    return msgspec.json.Decoder(msgspec.defstruct("Line", fields, rename=names, forbid_unknown_fields=True, gc=False))


def _usual_head(description: Description, *, id: str, document: str) -> re.Pattern[bytes]:  # noqa: A002 - the member
    """Return what matches a line up to its document, if it has that, an id and the object's name in the usual order.

    Args:
        description: The object. The member of its name may lack in lines.
        id: The member of the id; it is matched if it has no escapes.
        document: The member of the document.
    """
    origin, own, key, last = (
        re.escape(_encoder.encode(text)) for text in (description.object_member, description.object, id, document)
    )
    blank = rb"[ \t\r\n]*"
    own_member = rb"(?:" + blank.join([origin, b":", own, b",", b""]) + rb")?" if description.object_member else b""
    parts = [rb"\{", own_member + key, b":", rb'"([^"\\\x00-\x1f]+)"', b",", last, b":", rb"(?=\{)"]
    return re.compile(blank.join(parts))


def _only(members: Members, name: str, alias: str) -> Raw | None:
    """Return a member that may have one of two names. Raises UnplacedError if both are there and differ."""
    value, other = members.get(name), members.get(alias)
    if value is not None and other is not None and value != other:
        raise UnplacedError(f"its members {name!r} and {alias!r} say different things")
    return other if value is None else value


def _word(value: Raw | None, *, name: str) -> str | None:
    """Return the text of a member that names an owner of a row. Raises UnplacedError if it is empty."""
    if value is None or value == Raw(b"null"):
        return None
    if not (text := _text.decode(bytes(value))):
        raise UnplacedError(f"its {name} is an empty text, which a server takes for none; leave it out")
    return text
