"""Saved queries: rows to ask for again by a name, beside their connection or in a folder that a team shares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from dragoman.connections.saved_connections import NAME, OBJECTS, QUERIES
from dragoman.settings import parse_toml
from dragoman.spellings import did_you_mean, near_names
from dragoman_api.errors import ConfigurationError
from dragoman_registry.files import read_plain

from .selection_codec import SelectionTexts
from .selections import RowSelection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.connections.saved_connections import Connections

T = TypeVar("T", bound=msgspec.Struct)

MAX_FILE = 65_536
"""Maximum bytes of a file in a shared folder."""
MAX_FILES = 1_000
"""Maximum number of files of a shared folder that are read."""
TEAM = "team"

_Names = Annotated[list[Annotated[str, msgspec.Meta(min_length=1, max_length=16_384)]], msgspec.Meta(max_length=100)]


class ObjectDefaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a page of an object shows if the command line names neither: its columns and its sort."""

    columns: _Names = []
    sort: _Names = []


class SavedQueries:
    """The queries of one connection: its own, and those of the shared folder. Its own come first."""

    def __init__(self, connections: Connections, name: str, *, folder: str = "") -> None:
        """Find nothing yet.

        Raises:
            ConfigurationError: The folder's path is relative.
        """
        self._connections, self.name = connections, name
        self._folder = Path(folder).expanduser() if folder else None
        if self._folder is not None and not self._folder.is_absolute():
            raise ConfigurationError(f"queries = {folder!r} in config.toml is no absolute path")

    def get(self, query: str) -> SelectionTexts:
        """Return one query.

        Raises:
            ConfigurationError: There is none of that name, or it cannot be read.
        """
        own = self._connections.section(self.name, QUERIES)
        if query in own:
            return _query(own[query], where=f"[{self.name}.{QUERIES}.{query}]")
        if self._folder is not None and NAME.fullmatch(query) and self._file(query).is_file():
            return _from_file(self._file(query))
        raise self._unknown(query)

    def all(self) -> tuple[dict[str, tuple[str, SelectionTexts]], dict[str, ConfigurationError]]:
        """Return the place and the content of each query by name, and for each unusable one the reason."""
        queries: dict[str, tuple[str, SelectionTexts]] = {}
        hidden: dict[str, ConfigurationError] = {}
        own = self._connections.section(self.name, QUERIES)
        for query in sorted({*own, *self._shared()}):
            try:
                queries[query] = (self.name if query in own else TEAM, self.get(query))
            except ConfigurationError as error:
                hidden[query] = error
        return queries, hidden

    def save(self, query: str, content: SelectionTexts | RowSelection, *, replace: bool = False) -> None:
        """Save a query beside the connection: a selection, such as `Rows.selection`, or its texts as they were typed.

        Raises:
            ConfigurationError: The query cannot be read or is too long, its name cannot be used or is taken, or
                `connections.toml` cannot be written.
        """
        texts = SelectionTexts.of(content) if isinstance(content, RowSelection) else content
        texts.read()
        table = msgspec.to_builtins(texts)
        _query(table, where="the query cannot be saved")
        if not NAME.fullmatch(query):
            hint = "use letters, digits, dots, hyphens and underscores, 64 at most"
            raise ConfigurationError(f"{query[:80]!r} cannot name a query", hint=hint)

        def check(section: Mapping[str, object]) -> None:
            if query in section and not replace:
                hint = f"dragoman queries remove {self.name} {query}"
                raise ConfigurationError(f"{self.name} has a query called {query!r} already", hint=hint)

        self._connections.change_section(self.name, QUERIES, query, table, check=check)

    def remove(self, query: str) -> None:
        """Delete a query of the connection itself.

        Raises:
            ConfigurationError: The connection has none of that name.
        """

        def check(section: Mapping[str, object]) -> None:
            if query not in section and query in self._shared():
                raise ConfigurationError(f"{query!r} is a file of the shared folder: {self._file(query)}")
            if query not in section:
                raise self._unknown(query)

        self._connections.change_section(self.name, QUERIES, query, None, check=check)

    def defaults(self, object_: str) -> ObjectDefaults:
        """Return the default columns and sort of an object.

        Raises:
            ConfigurationError: They cannot be read.
        """
        table = self._connections.find_section(self.name, OBJECTS).get(object_, {})
        return _convert(table, ObjectDefaults, where=f"[{self.name}.{OBJECTS}.{object_}]")

    def _file(self, query: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{query}.toml"

    def _shared(self) -> list[str]:
        if self._folder is None:
            return []
        try:
            names = sorted(path.stem for path in self._folder.glob("*.toml"))
        except OSError:
            return []
        return [name for name in names if NAME.fullmatch(name)][:MAX_FILES]

    def _unknown(self, query: str) -> ConfigurationError:
        names = sorted({*self._connections.section(self.name, QUERIES), *self._shared()})
        near = did_you_mean(near_names(query, names))
        hint = f"dragoman queries list {self.name}"
        return ConfigurationError(f"{self.name} has no query called {query[:80]!r}{near}", hint=hint)


def _from_file(path: Path) -> SelectionTexts:
    try:
        return _query(parse_toml(read_plain(path, limit=MAX_FILE).decode()), where=str(path))
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}", hint="correct the file") from error


def _query(table: object, *, where: str) -> SelectionTexts:
    return _convert(table, SelectionTexts, where=where)


def _convert(table: object, kind: type[T], *, where: str) -> T:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        fields = ", ".join(kind.__struct_fields__)
        raise ConfigurationError(f"{where}: {error}", hint=f"it takes {fields}") from error
