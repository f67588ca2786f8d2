"""What lies in a home or comes from a colleague: connections, settings, change files, checkpoints, exported rows."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from dragoman.authoring.libraries import read_project
from dragoman.changes.files import ChangeFile, read_line, write_line
from dragoman.changes.undo import UndoFile, _at
from dragoman.connections.form_values import check_values
from dragoman.connections.saved_connections import Connections
from dragoman.exports.arrow_parquet import TableReader
from dragoman.exports.checkpoints import checkpoint_path, unfinished
from dragoman.exports.csv_lines import Csv
from dragoman.exports.target_files import FileTarget
from dragoman.exports.values import UNREADABLE
from dragoman.folders import find_paths
from dragoman.references import Reference
from dragoman.settings import read_settings, read_toml
from dragoman_api.columns import Column, ColumnKind
from dragoman_api.connections import Choice, FieldKind, FormField
from dragoman_api.errors import ConfigurationError, ExportError
from dragoman_api.grid import RowKey

from ..grammar import json_of, pasted, spoiled_json
from ..target import Bounds, Broken, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hypothesis.strategies import DrawFn, SearchStrategy

FORM = (
    FormField(name="host", label="Host", required=True),
    FormField(name="port", label="Port", kind=FieldKind.INTEGER, default=9200),
    FormField(name="auth_method", label="Auth", kind=FieldKind.CHOICE, choices=(Choice(value="none", label="None"),
    Choice(value="basic", label="Basic"))),
    FormField(name="password", label="Password", kind=FieldKind.SECRET, visible_if={"auth_method": ("basic",)}),
    FormField(name="skip", label="Skip", kind=FieldKind.SWITCH),
)  # fmt: skip

# TOML -----------------------------------------------------------------------------------------------------------------

_TOML = (
    "[shop]", 'type = "elasticsearch"', 'host = "localhost"', "port = 9200", 'password = "command:touch x"',
    'password = { env = "A" }',
    "skip = true", "[[registries]]", 'name = "a"', 'location = "/x"', '"a b" = 1', "a.b.c = 1", "[a.b]",
    "x = 1979-05-27T07:32:00Z", "x = 07:32",
    "x = inf", "x = nan", "x = 0xff", "x = 1_0", 'x = """', "x = '''", "x = [", "]", "{", "}", "=", "# c",
    "keep_alive = 1", 'sandbox = "off"',
    "[guards]", "read_only = 'read-only'", "[guards.connections.shop]", "automations = ['a']", "x.", "[", "[[", ".",
    '"\\u0000"', '"\\ud800"', "x = " + "9" * 5_000,
    "x = " + "[" * 300, "x = " + "{a=" * 200, "\ufeff",
)  # fmt: skip


def _toml() -> SearchStrategy[bytes]:
    return pasted(_TOML, glue=("\n", "\n", "\n", " ", ""))


def _connections(folder: Path) -> Callable[[bytes], object]:
    paths = find_paths(folder)
    paths.config.mkdir(parents=True)

    def run(data: bytes) -> None:
        paths.connections.write_bytes(data)
        saved = Connections(paths)
        tables = read_toml(paths.connections)
        for each in saved.list():
            for name, value in saved.get(each.name).values.items():
                if isinstance(value, Reference) is not isinstance(tables[each.name][name], dict):
                    raise Broken(f"reference: {name} is {value!r}")
            try:
                check_values(FORM, each.values, name=each.name)
            except ConfigurationError as error:
                f"{error.message} {error.hint}".encode(errors="surrogateescape")

    return run


def _settings(folder: Path) -> Callable[[bytes], object]:
    paths = find_paths(folder)
    paths.config.mkdir(parents=True)

    def run(data: bytes) -> None:
        paths.settings.write_bytes(data)
        read_settings(paths.settings).guards.of("shop")

    return run


def _project(folder: Path) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        (folder / "pyproject.toml").write_bytes(data)
        read_project(folder)

    return run


# changes --------------------------------------------------------------------------------------------------------------

CHANGES = (
    {"op": "insert", "object": "books", "set": {"a": 1.50, "b": [1], "c": "[x"}}, {"op": "insert", "object": "books",
    "document": {"a": 1}},
    {"op": "update", "object": "books", "id": "17", "set": {"price": 12.5}, "guard": {"seq_no": 1}}, {"op": "delete",
    "object": "books", "id": 1},
    {"op": "insert", "object": "books", "id": "a", "document": '{"a":1}', "replace": True, "guard": {"sha256": "x"},
    "tenant": "t"},
)  # fmt: skip


def _numbers(line: str | bytes) -> object:
    return json.loads(line, parse_float=Decimal, parse_int=Decimal)  # 5.9 and 5.9e0 are one number


def _changes(folder: Path) -> Callable[[bytes], object]:
    path = folder / "changes.ndjson"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        changes = ChangeFile(path)
        try:
            changes.check()
            for places in changes.chunks:
                for _, change in changes.read(places):
                    written = write_line(change)
                    if _numbers(write_line(read_line(written))) != _numbers(written):
                        raise Broken(f"roundtrip: {change!r}")
        finally:
            changes.close()

    return run


def _undo(folder: Path) -> Callable[[bytes], object]:
    path, key = folder / "undo.ndjson", RowKey("books", "1", None, {"seq_no": 2})

    def run(data: bytes) -> None:
        path.unlink(missing_ok=True)
        changes = []
        for line in data.split(b"\n"):
            try:
                changes.append(read_line(line))
            except ValueError:
                continue
        undo = UndoFile(path)
        undo.add(changes)
        undo.sync()
        undo.rows = {at: key if at % 2 else None for at in range(len(changes))}
        undo.complete()
        for line in path.read_bytes().splitlines() if changes else ():
            read_line(line)
            _at(line, key)

    return run


@st.composite
def _lines(draw: DrawFn) -> bytes:
    made = [draw(st.sampled_from(CHANGES).flatmap(spoiled_json)) for _ in range(draw(st.integers(0, 4)))]
    return draw(st.sampled_from((b"\n", b"\n", b"\r\n", b"\n\n", b"\r"))).join(made)


# exports --------------------------------------------------------------------------------------------------------------

COLUMNS = [
    Column(name="_id", type="_id", kind=ColumnKind.TEXT, path=("_id",)),
    Column(name="n", type="long", kind=ColumnKind.INTEGER, path=("_source", "n")),
    Column(name="u", type="unsigned_long", kind=ColumnKind.UNSIGNED, path=("_source", "u")),
    Column(name="f", type="double", kind=ColumnKind.FLOAT, path=("_source", "f")),
    Column(name="b", type="boolean", kind=ColumnKind.BOOLEAN, path=("_source", "b")),
    Column(name="d", type="date", kind=ColumnKind.TIMESTAMP, path=("_source", "d")),
    Column(name="t[]", type="text[]", kind=ColumnKind.TEXT, repeated=True, path=("_source", "t")),
    Column(name="deep", type="keyword", kind=ColumnKind.TEXT, path=("_source", "o.p.q")),
    Column(name="x", type="numeric", kind=ColumnKind.DECIMAL, path=("_source", "n")),
    Column(name="y", type="bytea", kind=ColumnKind.BINARY, path=("_source", "t")),
    Column(name="j", type="object", kind=ColumnKind.JSON, path=("_source", "o")),
]
_ROW: dict[str, Any] = {
    "_id": "1",
    "_source": {
        "n": 1,
        "u": 2**63,
        "f": 1.5,
        "b": True,
        "d": "2024-01-01T00:00:00Z",
        "t": ["a"],
        "o": {"p": [{"q": "x"}]},
    },
}


def _rows() -> SearchStrategy[bytes]:
    dates = st.sampled_from(
        (
            "0000-01-01",
            "9999-12-31T23:59:59Z",
            "0001-01-01T00:00:00+23:59",
            "2024-02-30",
            "2024-01-01T25:00",
            "2024-01-01T00:00:00+99:99",
        )
    )
    special = dates.map(lambda text: json.dumps({**_ROW, "_source": {**_ROW["_source"], "d": text}}).encode())
    return st.lists(st.one_of(spoiled_json(_ROW), spoiled_json(_ROW), special), max_size=5).map(b"\n".join)


def _csv(_: Path) -> Callable[[bytes], object]:
    made = Csv(COLUMNS)
    csv.field_size_limit(1 << 30)

    def run(data: bytes) -> None:
        told = made.convert(data).decode(errors="replace")
        if wrong := {len(row) for row in csv.reader(io.StringIO(told, newline=""))} - {len(COLUMNS)}:
            raise Broken(f"fields: {wrong} in a row of {len(COLUMNS)} columns")

    return run


def _arrow(_: Path) -> Callable[[bytes], object]:
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    def run(data: bytes) -> None:
        data = data if data.endswith(b"\n") else data + b"\n"
        if data.startswith(b"\n") or b"\n\n" in data:  # no part of an export has an empty line
            return
        found = TableReader(COLUMNS, described=COLUMNS)
        found.read(data).validate(full=True)

    return run


CHECKPOINT = {
    "version": 1, "identity": {"connection": "c", "object": "o"}, "part": ".out.ndjson.part", "offset": 3,
    "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "rows": 1, "driver": "x",
    "started": "2026", "resumed": 0,
}  # fmt: skip


def _checkpoint(folder: Path) -> Callable[[bytes], object]:
    final = folder / "out.ndjson"

    def run(data: bytes) -> None:
        target = FileTarget(final)
        target.part.write_bytes(b"abcdef")
        checkpoint_path(final).write_bytes(data)
        unfinished(final)
        target.open()
        try:
            target.left_over()
            found = target.resume({"connection": "c", "object": "o"})
            target.secure(found)
        finally:
            target.close()

    return run


_MEANT = (ConfigurationError,)
TARGETS = (
    Target(name="connections-toml", parses="dragoman.connections.saved_connections:Connections", make=_connections,
           grammar=_toml, allowed=_MEANT, bounds=Bounds(seconds_per_kb=0.03)),
    Target(name="config-toml", parses="dragoman.settings:read_settings", make=_settings, grammar=_toml, allowed=_MEANT,
           bounds=Bounds(seconds_per_kb=0.03)),
    Target(name="pyproject-toml", parses="dragoman.authoring.libraries:read_project", make=_project, grammar=_toml,
    allowed=_MEANT,
           bounds=Bounds(seconds_per_kb=0.03)),
    Target(name="change-file", parses="dragoman.changes.files:ChangeFile", make=_changes, grammar=_lines,
    allowed=_MEANT),
    Target(name="undo-file", parses="dragoman.changes.undo:UndoFile", make=_undo, grammar=_lines, allowed=_MEANT,
           bounds=Bounds(seconds_per_kb=0.03)),
    Target(name="rows-to-csv", parses="dragoman.exports.csv_lines:Csv", make=_csv, grammar=_rows,
           allowed=UNREADABLE),
    Target(name="rows-to-arrow", parses="dragoman.exports.arrow_parquet:TableReader", make=_arrow, grammar=_rows,
           allowed=(ExportError,), bounds=Bounds(seconds=0.5, mb=64)),
    Target(name="checkpoint", parses="dragoman.exports.target_files:FileTarget.resume", make=_checkpoint,
    grammar=lambda: json_of(CHECKPOINT),
           allowed=(ExportError,)),
)  # fmt: skip
