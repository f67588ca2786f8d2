"""An export is one complete file, or none: digests, compression, formats, locks, and what lies beside it (E32)."""

from __future__ import annotations

import bz2
import csv
import errno
import gzip
import hashlib
import io
import json
import os
import re
import stat
from pathlib import Path

import anyio
import pytest
from backports import zstd

from dragoman import Filter
from dragoman.cli.export import export
from dragoman.exports.export_run import ExportResult
from dragoman.exports.formats import FORMS, SEPARATED, FileFormat, choose, choose_columns
from dragoman.exports.target_files import unwritable
from dragoman_api.columns import Column, ColumnKind, Description
from dragoman_api.errors import ConfigurationError, ExportError, QueryError
from dragoman_api.installation import add_command
from exporting import Line, breaks_before
from memory_driver import MemoryDriver
from memory_server import BOOKS, MemoryServer


@pytest.fixture
def line():
    return Line()


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


async def test_the_file_appears_only_when_it_is_complete(line, tmp_path):
    target = tmp_path / "books.ndjson"
    there = []

    async def look():
        there.append(await anyio.Path(target).exists())

    line.before = lambda number: look()
    result = await line(target)
    assert there == [False] * 5
    lines = target.read_bytes().splitlines()
    assert [json.loads(line)["title"] for line in lines] == [row["title"] for row in BOOKS.values()]
    assert (result.rows, result.bytes) == (23, target.stat().st_size)
    assert result.sha256 == hashlib.sha256(target.read_bytes()).hexdigest()
    assert files(tmp_path) == ["books.ndjson", "books.ndjson.manifest.json"]
    assert line.last("export.finished").sha256 == result.sha256
    progressed = line.last("export.progressed")
    assert (progressed.total, progressed.target) == (23, str(target))


async def test_the_manifest_says_what_the_file_is(line, tmp_path):
    target = tmp_path / "some.csv.gz"
    result = await line(target, filters=[Filter("stock", "=", 1)], columns=["title", "id"])
    told = json.loads((tmp_path / "some.csv.gz.manifest.json").read_bytes())
    assert told["sha256"] == hashlib.sha256(target.read_bytes()).hexdigest() == result.sha256
    assert told["bytes"] == target.stat().st_size
    assert (told["object"], told["format"], told["compression"], told["columns"]) == (
        "books", "csv", "gzip", ["title", "id"],
    )  # fmt: skip
    assert told["filter"][0]["clause"] == "stock = 1"
    assert (told["server"], told["driver"], told["resumed"], told["rows"]) == ("Memory 1.0", "memory 1.0.0", 0, 5)
    assert told["started"] <= told["finished"]


async def test_the_manifest_can_be_left_out_and_an_old_one_does_not_stay(line, tmp_path):
    await line(tmp_path / "books.ndjson")
    await line(tmp_path / "books.ndjson", manifest=False)
    assert files(tmp_path) == ["books.ndjson"]


async def test_what_a_killed_conversion_left_does_not_stay(line, tmp_path):
    (tmp_path / ".b.parquet.made").write_bytes(b"PAR1")
    await line(tmp_path / "b.parquet", format="csv", manifest=False)
    assert files(tmp_path) == ["b.parquet"]


async def test_what_a_killed_export_left_of_its_own_drafts_does_not_stay(line, tmp_path):
    for name in ("..b[1].csv.checkpoint.0123456789ab.tmp", ".b[1].csv.manifest.json.0123456789ab.tmp"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / ".other.manifest.json.0123456789ab.tmp").write_bytes(b"half")
    await line(tmp_path / "b[1].csv", manifest=False)
    assert files(tmp_path) == [".other.manifest.json.0123456789ab.tmp", "b[1].csv"]


@pytest.mark.parametrize(
    ("name", "given", "chosen"),
    [
        ("a", {}, ("documents", None)),
        ("a.ndjson.zst", {}, ("documents", "zstd")),
        ("a.jsonl", {}, ("documents", None)),
        ("a.json", {}, ("json", None)),
        ("a.tsv.gz", {}, ("tsv", "gzip")),
        ("a.csv.bz2", {}, ("csv", "bzip2")),
        ("a.bz2", {}, ("documents", "bzip2")),
        ("a.xlsx", {"format": "tsv"}, ("tsv", None)),
        ("a.xlsx.gz", {"format": "rows"}, ("rows", "gzip")),
        ("a.csv.xz", {"compression": "gzip", "format": "csv"}, ("csv", "gzip")),
        ("a.csv", {}, ("csv", None)),
        ("a.csv.gz", {}, ("csv", "gzip")),
        ("a.2024.CSV", {}, ("csv", None)),
        ("a.parquet", {}, ("parquet", None)),
        ("a.gz", {"format": "rows"}, ("rows", "gzip")),
        ("a.csv", {"format": "ndjson", "compression": "zstd"}, ("documents", "zstd")),
    ],
)
def test_a_format_is_what_is_said_or_what_the_name_says(tmp_path, name, given, chosen):
    shape = choose(tmp_path / name, FileFormat(**given))
    assert (shape.format, shape.compression) == chosen


@pytest.mark.parametrize(
    ("to", "given", "reason"),
    [
        ("x", {"format": "xlsx"}, "xlsx"),
        ("x", {"compression": "rar"}, "rar"),
        ("x.parquet.gz", {}, "internal compression"),
        ("x.parquet", {"compression": "bzip2"}, "bzip2"),
        ("x.xlsx", {}, r"'\.xlsx' names no format"),
        ("x.txt.gz", {}, r"'\.txt' names no format"),
        ("x.2024", {"compression": "gzip"}, r"'\.2024' names no format"),
        ("x.csv.xz", {}, r"'\.xz'"),
        ("x.csv.zip", {"format": "csv"}, r"'\.zip'"),
        (None, {"format": "parquet"}, "cannot be streamed"),
    ],
)
def test_what_no_file_can_be_is_refused(tmp_path, to, given, reason):
    with pytest.raises(ConfigurationError, match=reason) as caught:
        choose(tmp_path / to if to else io.BytesIO(), FileFormat(**given))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.ENOENT, "create the folder first"),
        (errno.EACCES, "choose a folder that you can write to"),
        (errno.ENOLCK, "choose a folder on a disk of this machine"),
        (errno.EMFILE, "close some connections"),
        (None, "choose a folder that you can write to"),
    ],
)
def test_the_hint_of_a_target_that_cannot_be_written_fits_the_reason(number, hint):
    error = unwritable("out.csv", OSError(number, "the reason") if number else OSError("the reason"))
    assert str(error).startswith("out.csv cannot be written: the reason")
    assert error.hint.startswith(hint)


@pytest.mark.parametrize("form", ["documents", "ndjson", "json", "rows", "bulk", "parquet"])
def test_only_a_table_of_texts_has_escaped_formulas(tmp_path, form):
    assert choose(tmp_path / "a", FileFormat("csv", escape=True)).escape
    assert choose(tmp_path / "a", FileFormat("tsv", escape=True)).escape
    with pytest.raises(ConfigurationError, match="only CSV and TSV files have escaped formulas") as caught:
        choose(tmp_path / "a", FileFormat(form, escape=True))
    assert "--format csv" in caught.value.hint


def test_what_is_said_of_formats_names_each_of_them():
    told = re.search(r" format: (.+)\n", ExportResult.__doc__)[1]
    assert re.findall(r"``(\w+)``", told) == [*FORMS]
    said = next(each for each in export.params if each.name == "escape_formulas").help
    assert [name for name in FORMS if name.upper() in said] == [*SEPARATED]


def test_a_table_holds_what_an_export_holds_and_nothing_twice():
    columns = [Column(name="id", type="key", path=("id",)), Column(name="score", type="number")]
    columns.append(Column(name="a", type="text", path=("row", "a")))
    books = Description(object="books", columns=columns)
    assert [column.name for column in choose_columns(books, None)] == ["id", "a"]
    assert [column.name for column in choose_columns(books, ["a", "id"])] == ["a", "id"]
    for names, reason in (
        (["score"], "an export does not hold the column 'score'"),
        (["id", "idd"], "'books' has no column 'idd'$"),
        (["a", "id", "a"], "the column 'a' is named twice"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match=reason) as caught:
            choose_columns(books, names)
        assert caught.value.details == {"column": names[-1]}
    for nothing, names in ((Description(object="x", columns=columns[1:2]), None), (books, [])):
        with pytest.raises(ConfigurationError, match="has no columns") as caught:
            choose_columns(nothing, names)
        assert caught.value.hint == "use --format documents"


async def test_rows_that_were_counted_and_did_not_arrive_are_told(line, tmp_path):
    from dragoman_api.exports import ExportPart

    async def export_rows(request):
        yield ExportPart(data=b'{"a":1}\n', rows=1, total=1_234)

    line.driver.export_rows = export_rows
    result = await line(tmp_path / "a")
    assert [(note.code, note.reason) for note in result.notes] == [
        ("rows-differ", "1,234 rows were counted beforehand, but 1 arrived")
    ]
    line.driver.export_rows = MemoryDriver().export_rows
    assert (await line(tmp_path / "b")).notes == []


async def test_a_stream_that_takes_little_at_a_time_gets_every_byte(line, tmp_path):
    class Narrow(io.BytesIO):
        name = "pipe"

        def write(self, data):
            return super().write(bytes(data[:7]))

    await line(tmp_path / "whole")
    result = await line(stream := Narrow())
    assert stream.getvalue() == (tmp_path / "whole").read_bytes()
    assert (result.target, result.bytes) == ("pipe", len(stream.getvalue()))
    assert result.sha256 == hashlib.sha256(stream.getvalue()).hexdigest()
    assert (await line(io.BytesIO())).target == "stream"
    with pytest.raises(ExportError, match="only a file can be resumed") as caught:
        await line(io.BytesIO(), resume=True)
    assert (caught.value.code, caught.value.hint) == ("resume-refused", "name it with -o")


@pytest.mark.parametrize(
    ("name", "message", "extras"),
    [
        ("a.parquet", "package pyarrow$", "arrow"),
        ("a.zst", "package backports.zstd$", "zstd"),
        ("a.arrow.zst", "packages pyarrow and backports.zstd$", "arrow,zstd"),
    ],
)
def test_missing_packages_are_named_with_one_command_that_brings_all(tmp_path, monkeypatch, name, message, extras):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=message) as caught:
        choose(tmp_path / name)
    assert (caught.value.code, caught.value.hint) == ("extra-missing", add_command(f"dragoman[{extras}]"))


@pytest.mark.parametrize(
    ("name", "unpack"),
    [
        ("b.ndjson.gz", gzip.decompress),
        ("b.ndjson.bz2", bz2.decompress),
        ("b.ndjson.zst", zstd.decompress),
    ],
)
async def test_a_compressed_export_unpacks_to_the_same_bytes_wherever_it_was_checkpointed(
    line, tmp_path, monkeypatch, name, unpack
):
    monkeypatch.setattr("dragoman.exports.checkpoints.CHECKPOINT_SECONDS", 0)
    await line(tmp_path / name)
    await line(tmp_path / "plain")
    assert unpack((tmp_path / name).read_bytes()) == (tmp_path / "plain").read_bytes()
    await line(tmp_path / name, name="scratch")
    assert unpack((tmp_path / name).read_bytes()) == b""


async def test_json_is_one_array_of_the_stored_documents(line, tmp_path):
    await line(tmp_path / "b.json")
    await line(tmp_path / "plain")
    lines = (tmp_path / "b.json").read_bytes().split(b"\n")
    assert (lines[0], lines[-2:]) == (b"[", [b"]", b""])
    assert [each.removesuffix(b",") for each in lines[1:-2]] == (tmp_path / "plain").read_bytes().splitlines()
    assert len(json.loads((tmp_path / "b.json").read_bytes())) == 23
    await line(tmp_path / "none.json", name="scratch")
    assert json.loads((tmp_path / "none.json").read_bytes()) == []


async def test_tsv_holds_the_values_of_csv(line, tmp_path):
    await line(tmp_path / "b.tsv")
    await line(tmp_path / "b.csv")
    tabs, commas = ((tmp_path / name).read_bytes() for name in ("b.tsv", "b.csv"))
    read = [*csv.reader(io.StringIO(tabs.decode(), newline=""), delimiter="\t")]
    assert read == [*csv.reader(io.StringIO(commas.decode(), newline=""))]
    assert tabs.splitlines()[0] == b"\t".join(commas.splitlines()[0].split(b","))
    assert b"\r" not in tabs


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
@pytest.mark.parametrize("name", ["b.ndjson", "b.json.gz", "b.parquet"])
async def test_the_umask_decides_who_reads_an_export_whatever_its_format(line, tmp_path, name, umask, mode):
    before = os.umask(umask)
    try:
        await line(tmp_path / name)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {name: mode, f"{name}.manifest.json": mode}


def modes(folder):
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def place_file(path, mode):
    path.write_bytes(b"old")
    path.chmod(mode)


@pytest.fixture
def umask():
    """Sets the umask of a test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize(
    ("mask", "mode", "beside"), [(0o022, 0o600, 0o640), (0o077, 0o664, 0o644), (0o022, 0o400, None)]
)
@pytest.mark.parametrize("name", ["b.ndjson", "b.json.gz", "b.parquet"])
async def test_a_file_that_is_replaced_keeps_its_mode_and_so_does_its_manifest(
    line, tmp_path, monkeypatch, umask, name, mask, mode, beside
):
    from dragoman.exports.target_files import FileTarget

    umask(mask)
    place_file(tmp_path / name, mode)
    if beside is not None:
        place_file(tmp_path / f"{name}.manifest.json", beside)
    meanwhile = []
    real = FileTarget.place

    def place(self):
        meanwhile.append(modes(tmp_path))
        real(self)

    monkeypatch.setattr(FileTarget, "place", place)

    async def look():
        meanwhile.append(await anyio.to_thread.run_sync(modes, tmp_path))

    line.before = lambda number: look()
    await line(tmp_path / name)
    assert modes(tmp_path) == {name: mode, f"{name}.manifest.json": mode if beside is None else beside}
    begun = {path: found for each in meanwhile for path, found in each.items() if path.endswith((".part", ".made"))}
    assert begun == dict.fromkeys(begun, 0o600), "no other user can read what will replace a private file"
    assert f".{name}.part" in begun
    assert (tmp_path / name).read_bytes() != b"old"


async def test_a_part_that_others_could_read_is_closed_to_them_before_it_replaces_a_private_file(line, tmp_path, umask):
    line.before = breaks_before(3, QueryError("a shard failed"))
    with pytest.raises(QueryError):
        await line(tmp_path / "b.csv")
    assert modes(tmp_path)[".b.csv.part"] == 0o644
    place_file(tmp_path / "b.csv", 0o600)
    found = []

    async def look():
        found.append((await anyio.to_thread.run_sync(modes, tmp_path))[".b.csv.part"])

    line.before = lambda number: look()
    await line(tmp_path / "b.csv", resume=True)
    assert set(found) == {0o600}
    assert modes(tmp_path) == {"b.csv": 0o600, "b.csv.manifest.json": 0o600}


async def test_a_part_can_be_continued_after_a_move_over_a_read_only_file_failed(line, tmp_path, monkeypatch):
    place_file(tmp_path / "b.csv", 0o444)
    real = Path.replace

    def replace(self, target):
        if target == tmp_path / "b.csv":
            raise PermissionError(13, "in use")
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(ExportError, match="in use"):
            await line(tmp_path / "b.csv")
    assert modes(tmp_path)[".b.csv.part"] & 0o600 == 0o600
    await line(tmp_path / "b.csv", resume=True)
    assert modes(tmp_path)["b.csv"] == 0o444


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make a file another user's")
@pytest.mark.parametrize(("mode", "kept"), [(0o666, 0o640), (0o600, 0o600), (0o444, 0o640)])
async def test_another_users_file_opens_no_export_to_more_than_the_umask_does(line, tmp_path, umask, mode, kept):
    umask(0o027)
    for name in ("b.csv", "b.csv.manifest.json"):
        place_file(tmp_path / name, mode)
        os.chown(tmp_path / name, 65534, 65534)
    await line(tmp_path / "b.csv")
    assert modes(tmp_path) == {"b.csv": kept, "b.csv.manifest.json": kept}


async def test_a_link_in_the_place_of_the_file_opens_no_export_to_more_than_the_umask_does(line, tmp_path, umask):
    umask(0o077)
    (tmp_path / "elsewhere").mkdir()
    place_file(tmp_path / "elsewhere" / "open", 0o666)
    (tmp_path / "b.csv").symlink_to(tmp_path / "elsewhere" / "open")
    await line(tmp_path / "b.csv", manifest=False)
    assert modes(tmp_path)["b.csv"] == 0o600
    assert modes(tmp_path / "elsewhere") == {"open": 0o666}


async def test_rows_have_id_and_metadata(line, tmp_path):
    await line(tmp_path / "rows", format="rows")
    first = json.loads((tmp_path / "rows").read_bytes().splitlines()[0])
    assert first["id"] == "1"
    assert first["row"] == BOOKS["1"]


async def test_a_format_that_the_driver_lacks_is_its_own_error(line, tmp_path):
    with pytest.raises(Exception, match="no bulk endpoint"):
        await line(tmp_path / "bulk", format="bulk")
    assert files(tmp_path) == []


# CSV ------------------------------------------------------------------------------------------------------------------


def table(*rows, kinds):
    server = MemoryServer(kinds=kinds, objects={"books": {str(at): row for at, row in enumerate(rows)}})
    return Line(MemoryDriver(server, part_rows=5))


async def test_csv_has_the_key_and_every_column_and_can_be_read_back(line, tmp_path):
    await line(tmp_path / "b.csv")
    head, *rows = csv.reader(io.StringIO((tmp_path / "b.csv").read_bytes().decode()))
    assert head == ["id", "title", "price", "stock", "available", "tags"]
    assert [row[0] for row in rows] == [*BOOKS]
    assert rows[0][5] == '["a","ä",null]'
    assert [row[2] for row in rows[:2]] == ["12", str(2**63 + 2)]
    assert rows[8][4] == ""


async def test_csv_takes_the_columns_that_are_named_in_their_order(line, tmp_path):
    await line(tmp_path / "b.csv", columns=["stock", "id"], filters=[Filter("id", "=", "7")])
    assert (tmp_path / "b.csv").read_bytes() == b"stock,id\r\n2,7\r\n"
    assert line.requests[0].columns == ["stock", "id"]


@pytest.mark.parametrize(("names", "reason"), [(["titel"], "no column 'titel'"), (["id", "id"], "named twice")])
async def test_a_column_that_cannot_be_exported_is_said_before_anything_is_written(line, tmp_path, names, reason):
    with pytest.raises(ConfigurationError, match=reason) as caught:
        await line(tmp_path / "b.csv", columns=names)
    assert caught.value.details["column"] == names[0]
    assert files(tmp_path) == []
    assert line.last("export.failed").code == caught.value.code


async def test_csv_keeps_every_digit_and_tells_null_from_an_empty_text(tmp_path):
    line = table({"v": 1, "t": 'say "hi",\nthen go'}, {"t": ""}, {"v": None, "t": "a,b"},
                 kinds={"v": ColumnKind.FLOAT, "t": ColumnKind.TEXT})  # fmt: skip
    stored = [
        b'{"id":"0","row":{"v":1.10,"t":"=1+1"}}',
        b'{"id":"1","row":{"v":[1.50, 123456789012345678901234567890]}}',
    ]

    async def export_rows(request):
        from dragoman_api.exports import ExportPart

        yield ExportPart(data=b"\n".join(stored) + b"\n", rows=2)

    await line(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == b'id,v,t\r\n0,1,"say ""hi"",\nthen go"\r\n1,,""\r\n2,,"a,b"\r\n'
    await line(tmp_path / "v.csv", columns=["v"])
    assert (tmp_path / "v.csv").read_bytes() == b'v\r\n1\r\n""\r\n""\r\n'
    line.driver.export_rows = export_rows
    await line(tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_bytes().splitlines()[1:] == [
        b"0,1.10,=1+1",
        b'1,"[1.50, 123456789012345678901234567890]",',
    ]


async def test_a_row_that_is_no_json_is_a_clear_error(line, tmp_path):
    async def export_rows(request):
        from dragoman_api.exports import ExportPart

        yield ExportPart(data=b'{"id":"1"\n', rows=1)

    line.driver.export_rows = export_rows
    with pytest.raises(ExportError, match="a row after the first 0 cannot be read"):
        await line(tmp_path / "b.csv")
    assert files(tmp_path) == []


# failures -------------------------------------------------------------------------------------------------------------


async def test_what_cannot_be_resumed_leaves_nothing(line, tmp_path):
    line.checkpoints = False
    line.before = breaks_before(3, QueryError("a shard failed"))
    with pytest.raises(QueryError, match="shard"):
        await line(tmp_path / "books.ndjson")
    assert files(tmp_path) == []
    assert line.last("export.failed").code == "query-failed"
    assert line.closed == 1


async def test_a_failed_export_never_touches_the_file_it_would_replace(line, tmp_path):
    (tmp_path / "keep.ndjson").write_text("precious")
    line.before = breaks_before(3, QueryError("a shard failed"))
    with pytest.raises(QueryError):
        await line(tmp_path / "keep.ndjson")
    assert (tmp_path / "keep.ndjson").read_text() == "precious"


async def test_a_full_disk_ends_an_export_with_a_clear_error(line):
    class Full(io.BytesIO):
        name = "/full"

        def write(self, data):
            raise OSError(28, "No space left on device")

    with pytest.raises(ExportError, match="/full cannot be written: No space left"):
        await line(Full())


async def test_a_closed_pipe_is_passed_on_for_the_command_line_to_end_quietly(line):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as stream, pytest.raises(BrokenPipeError):
        await line(stream)
    assert line.closed == 1


@pytest.mark.parametrize("place", ["missing/x.ndjson", "folder", "/dev/null"])
async def test_a_place_that_takes_no_file_is_refused_and_left_as_it_is(line, tmp_path, place):
    (tmp_path / "folder").mkdir()
    with pytest.raises(ExportError) as caught:
        await line(tmp_path / place)
    assert caught.value.hint
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert files(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make a file another user's")
async def test_nothing_is_written_into_a_part_that_another_user_put_there_to_read_along(line, tmp_path):
    (part := tmp_path / ".x.ndjson.part").touch(mode=0o666)
    os.chown(part, 65534, 65534)
    with pytest.raises(ExportError, match=r"\.x\.ndjson\.part belongs to another user"):
        await line(tmp_path / "x.ndjson")
    assert part.read_bytes() == b""


def state(path: Path) -> list[int]:
    """Return all that `lstat` tells but the time of access, which reading the other name of a hard link changes."""
    found = path.lstat()
    return [found.st_ino, found.st_mode, found.st_nlink, found.st_uid, found.st_gid, found.st_size,
            found.st_mtime_ns, found.st_ctime_ns]  # fmt: skip


@pytest.mark.parametrize("kind", ["hard link", "symbolic link", "link to nothing", "pipe"])
@pytest.mark.parametrize("resume", [False, True])
async def test_nothing_is_written_through_what_lies_in_the_place_of_the_part(line, tmp_path, kind, resume):
    (own := tmp_path / "own").write_bytes(b"[precious]\n")
    part = tmp_path / ".x.ndjson.part"
    if kind == "hard link":
        part.hardlink_to(own)
    elif kind == "pipe":
        os.mkfifo(part)
    else:
        part.symlink_to(own if kind == "symbolic link" else tmp_path / "nothing")
    before = state(part)
    with (
        anyio.fail_after(5),
        pytest.raises(ExportError, match=r"\.x\.ndjson\.part is a link or not a regular file") as caught,
    ):
        await line(tmp_path / "x.ndjson", resume=resume)
    assert caught.value.hint == f"remove {part}, or choose another file"
    assert own.read_bytes() == b"[precious]\n"
    assert state(part) == before
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("moment", ["before", "meanwhile", "before it goes on"])
async def test_a_parquet_file_is_not_made_through_what_lies_in_its_place(line, tmp_path, moment):
    (own := tmp_path / "own").write_bytes(b"[precious]\n")
    made = tmp_path / ".b.parquet.made"

    async def plant():
        await anyio.Path(made).symlink_to(own)

    if moment == "before it goes on":
        line.before = breaks_before(3, QueryError("a shard failed"))
        with pytest.raises(QueryError):
            await line(tmp_path / "b.parquet")
    if moment == "meanwhile":
        line.before = lambda number: plant() if number == 3 else None
    else:
        await plant()
    await line(tmp_path / "b.parquet", resume=moment == "before it goes on")
    assert own.read_bytes() == b"[precious]\n"
    assert files(tmp_path) == ["b.parquet", "b.parquet.manifest.json", "own"]
    assert not (tmp_path / "b.parquet").is_symlink()


async def test_a_folder_that_goes_away_meanwhile_is_an_error(line, tmp_path):
    import shutil

    (tmp_path / "gone").mkdir()

    async def remove():
        await anyio.to_thread.run_sync(shutil.rmtree, tmp_path / "gone")

    line.checkpoints = False
    line.before = lambda number: remove() if number == 3 else None
    with pytest.raises(ExportError, match="No such file"):
        await line(tmp_path / "gone" / "x.ndjson")


async def test_what_happens_is_told_from_the_event_loop(line, tmp_path):
    import threading

    threads = set()
    line.seen = type("Seen", (list,), {"append": lambda self, event: threads.add(threading.current_thread())})()
    await line(tmp_path / "x.ndjson")
    assert threads == {threading.current_thread()}


async def test_a_second_export_to_the_same_file_is_refused_while_the_first_runs(line, tmp_path):
    other = Line()

    async def try_it():
        with pytest.raises(ExportError, match="another export is writing") as caught:
            await other(tmp_path / "x.ndjson")
        assert caught.value.code == "export-running"

    line.before = lambda number: try_it() if number == 2 else None
    result = await line(tmp_path / "x.ndjson")
    assert len((tmp_path / "x.ndjson").read_bytes().splitlines()) == result.rows == 23


async def test_the_writer_works_beside_the_reader(line):
    """While bytes are written, the next part is fetched already."""
    reading = anyio.Event()
    seen = []

    class Slow(io.BytesIO):
        def write(self, data):
            seen.append(anyio.from_thread.run(self._wait))
            return super().write(data)

        async def _wait(self):
            with anyio.move_on_after(2):
                await reading.wait()
            return reading.is_set()

    line.before = lambda number: reading.set() if number == 2 else None
    await line(Slow())
    assert seen[0] is True


@pytest.mark.parametrize("form", ["documents", "ndjson", "json", "rows"])
async def test_formulas_are_told_of_tables_of_texts_alone(line, tmp_path, form):
    assert (await line(tmp_path / "books", format=form)).notes == []


async def test_memory_does_not_grow_with_the_export(line, tmp_path):
    import tracemalloc

    from dragoman_api.exports import ExportPart

    async def export_rows(request):
        for _ in range(300):
            yield ExportPart(data=b'{"id":"1","row":{"title":"x"}}\n' * 8_000, rows=8_000)

    line.driver.export_rows = export_rows
    tracemalloc.start()
    await line(tmp_path / "big.ndjson.gz")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4_000_000
