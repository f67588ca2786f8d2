"""One place in a store of fsspec: what is listed, written, refused, uploaded, and what an error says."""

from __future__ import annotations

from pathlib import Path

import anyio
import fsspec
import pytest
from anyio.to_thread import run_sync
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from dragoman.extending import is_url
from dragoman_api.errors import ConfigurationError, ExportError
from dragoman_api.installation import add_command
from dragoman_dask import object_stores as stores
from dragoman_dask.exports import local_file
from dragoman_dask.object_stores import PIECE, ObjectStore, parse_target


class Recording(MemoryFileSystem):
    """A store with folders that writes down what it is asked, and fails as it is told."""

    protocol = "recording"
    store, pseudo_dirs = {}, [""]
    asked, fails = [], []

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix(f"{cls.protocol}://"))

    def makedirs(self, path, exist_ok=False):
        self.asked.append(("makedirs", path))
        super().makedirs(path, exist_ok=exist_ok)

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        self.asked.append(("pipe", mode))
        if self.fails:
            error, also = self.fails.pop(0)
            if also is not None:
                super().pipe_file(path, also)
            raise error
        super().pipe_file(path, value, mode=mode, **kwargs)

    def cat_file(self, path, start=None, end=None, **kwargs):
        self.asked.append(("cat", start, end))
        return super().cat_file(path, start=start, end=end, **kwargs)

    def open(self, path, mode="rb", **kwargs):
        if "autocommit" in kwargs:
            self.asked.append(("open", mode, kwargs["autocommit"], kwargs.get("block_size")))
        return super().open(path, mode, **kwargs)


class Objects(Recording):
    """One of the stores where a single request stores an object."""

    protocol = "oss"


for kind in (Recording, Objects):
    fsspec.register_implementation(kind.protocol, kind, clobber=True)


@pytest.fixture(autouse=True)
def empty():
    yield
    for kind in (MemoryFileSystem, Recording):
        kind.store.clear()
        kind.pseudo_dirs[:] = [""]
    Recording.asked.clear()
    Recording.fails.clear()


@pytest.fixture
def place():
    return parse_target("recording://d")


@pytest.fixture
def old(place):
    """Return a place in a store that replaces files: its backend has no mode for it."""

    class Old(Recording):
        protocol = "older"

        def pipe_file(self, path, value):
            MemoryFileSystem.pipe_file(self, path, value)

    fsspec.register_implementation("older", Old, clobber=True)
    return parse_target("older://d")


def test_a_place_lists_the_names_in_it(place):
    assert place.names() == []
    place.write("b", b"1")
    place.write("a", b"2")
    assert place.names() == ["a", "b"]
    assert (place.read("b", limit=1), b"".join(place.read_pieces("a"))) == (b"1", b"2")
    assert (place.size("a"), place.size("c")) == (1, -1)
    with pytest.raises(ExportError, match="recording://d/a is a file"):
        parse_target("recording://d/a").names()
    with pytest.raises(FileNotFoundError):
        place.read("c", limit=9)
    with pytest.raises(ExportError, match="recording://d/b has more than 0 bytes"):
        place.read("b", limit=0)
    assert Recording.asked[-1] == ("cat", 0, 1), "a longer file is not read whole"


def test_an_object_that_stands_for_its_folder_is_no_file_in_the_way(place, monkeypatch):
    monkeypatch.setattr(Recording, "ls", lambda self, path, detail: [{"name": "/d/", "type": "file"}])
    assert place.names() == []


def test_a_mark_changes_when_a_file_is_written_again_and_is_empty_without_one(place):
    place.write("a", b"1")
    first = place.mark("a")
    assert first == place.mark("a") != ""
    place.write("a", b"1")
    assert place.mark("a") != first
    assert place.mark("b") == ""


def test_a_folder_is_made_only_where_a_store_has_folders(place):
    place.write("a", b"1")
    assert ("makedirs", "/d") in Recording.asked
    Recording.asked.clear()
    parse_target("oss://d").write("a", b"1")
    assert [each[0] for each in Recording.asked] == ["pipe"]


def test_a_file_that_is_there_is_not_created_again(place):
    assert place.create("a", b"1") is True
    assert place.create("a", b"1") is True  # the repetition of a request whose answer was lost
    with pytest.raises(FileExistsError):
        place.create("a", b"2")
    assert place.read("a", limit=9) == b"1"


def test_an_error_after_which_the_file_is_there_was_a_lost_answer(place):
    Recording.fails.append((OSError("no answer"), b"1"))
    assert place.create("a", b"1") is True
    Recording.fails.append((OSError("412"), b"other"))
    with pytest.raises(FileExistsError):
        place.create("b", b"1")
    Recording.fails.append((OSError("no answer"), None))
    with pytest.raises(ExportError, match="no answer"):
        place.create("c", b"1")
    assert place.names() == ["a", "b"]


def test_a_store_that_replaces_files_is_told_apart_from_one_that_refuses(old):
    assert old.create("a", b"1") is False
    with pytest.raises(FileExistsError):
        old.create("a", b"2")
    assert old.read("a", limit=9) == b"1"


def test_an_empty_file_is_a_file_also_for_a_store_that_replaces_files(old):
    old.write("a", b"")
    with pytest.raises(FileExistsError):
        old.create("a", b"1")
    assert old.size("a") == 0


def test_the_error_for_a_missing_backend_names_what_to_install():
    assert stores._missing("s3", "s3fs").hint == add_command("dragoman-dask[s3]")
    assert stores._missing("gs", "gcsfs").hint == add_command("gcsfs")


def test_a_path_that_was_a_url_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="is no path, but what is left of a URL") as caught:
        parse_target(Path("s3://bucket/d"))
    assert "pass the URL as text" in caught.value.hint
    for path in (Path("C:/d"), Path("/s3:/d"), tmp_path):
        assert parse_target(path) == path


def test_a_file_that_is_not_there_is_removed_without_an_error(place):
    place.write("a", b"1")
    place.remove("a")
    place.remove("a")
    assert place.names() == []


def test_a_small_object_goes_up_in_one_request_and_a_large_one_in_pieces(tmp_path):
    (tmp_path / "small").write_bytes(bytes(PIECE))
    (tmp_path / "large").write_bytes(bytes(PIECE) + b"1")
    objects = parse_target("oss://d")
    objects.put(tmp_path / "small", "small")
    assert Recording.asked == [("pipe", "overwrite")]
    Recording.asked.clear()
    objects.put(tmp_path / "large", "large")
    assert Recording.asked == [("open", "wb", False, PIECE)]
    assert (objects.size("small"), objects.read("large", limit=PIECE + 1)) == (PIECE, bytes(PIECE) + b"1")


def test_an_upload_in_pieces_appears_when_it_is_closed_and_committed(place, tmp_path, monkeypatch):
    (tmp_path / "part").write_bytes(bytes(PIECE) + b"1")
    done = []

    class Upload:
        def write(self, data):
            done.append(len(data))

        def close(self):
            done.append("close")

        def commit(self):
            done.append("commit")

        def discard(self):
            done.append("discard")

    monkeypatch.setattr(Recording, "open", lambda self, path, mode, **options: Upload())
    place.put(tmp_path / "part", "part", confirm=lambda: done.append("confirm"))
    assert done == [PIECE, 1, "close", "confirm", "commit"]
    done.clear()
    with pytest.raises(ExportError):
        place.put(tmp_path / "part", "part", confirm=lambda: 1 / 0)
    assert done == [PIECE, 1, "close", "discard"]


def test_a_file_whose_upload_is_not_confirmed_does_not_appear(tmp_path):
    """The export may have been taken over while its file went up."""
    (tmp_path / "part").write_bytes(b"1")
    store, seen = parse_target("oss://d"), []

    def refuse():
        seen.append(store.names())
        raise ExportError("another export writes here")

    with pytest.raises(ExportError, match="another export"):
        store.put(tmp_path / "part", "part", confirm=refuse)
    assert (seen, store.names()) == ([[]], [])


def test_a_file_goes_to_a_store_of_files_under_another_name_until_it_is_complete(place, tmp_path):
    (tmp_path / "small").write_bytes(b"1")
    place.put(tmp_path / "small", "small")
    assert Recording.asked == [("makedirs", "/d"), ("open", "wb", False, PIECE)]
    assert place.read("small", limit=9) == b"1"


async def test_a_cancelled_upload_ends_between_two_pieces_and_is_discarded(place, tmp_path, monkeypatch):
    await run_sync((tmp_path / "part").write_bytes, bytes(3 * PIECE))
    written, discarded = [], []

    def write(self, data):
        written.append(len(data))
        anyio.from_thread.run_sync(scope.cancel)
        return len(data)

    monkeypatch.setattr(MemoryFile, "write", write)
    monkeypatch.setattr(MemoryFile, "discard", lambda self: discarded.append(self))
    with anyio.CancelScope() as scope:
        await run_sync(place.put, tmp_path / "part", "part")
    assert scope.cancelled_caught
    assert (written, len(discarded)) == ([PIECE], 1)


def test_unfinished_uploads_of_an_export_are_ended_where_the_store_lists_them(monkeypatch):
    aborted = []
    found = [{"Key": f"d/{name}", "UploadId": name} for name in ("part-0", "of-others")]
    monkeypatch.setattr(Objects, "split_path", lambda self, path: ("b", path.strip("/"), None), raising=False)
    monkeypatch.setattr(Objects, "list_multipart_uploads", lambda self, bucket: found, raising=False)
    monkeypatch.setattr(Objects, "abort_mpu", lambda self, *words: aborted.append(words), raising=False)
    parse_target("oss://d").abort_uploads({"part-0", "part-1"})
    assert aborted == [("b", "d/part-0", "part-0")]

    def refuse(self, bucket):
        raise PermissionError(bucket)

    monkeypatch.setattr(Objects, "list_multipart_uploads", refuse)
    parse_target("oss://d").abort_uploads({"part-0"})  # not every account may


@pytest.mark.parametrize(
    ("url", "place"),
    [("recording://d/", "recording://d"), ("RECORDING://d", "recording://d"), ("oss://a@b/d", "oss://a@b/d")],
)
def test_a_url_names_one_place(url, place):
    found = parse_target(url)
    assert isinstance(found, ObjectStore)
    assert (found.url, is_url(url)) == (place, True)


@pytest.mark.parametrize("path", ["d", "./d", "/d", "a:b", "C:/d", r"C:\d"])
def test_a_path_is_no_url(path):
    assert not is_url(path)
    assert parse_target(path) == Path(path)


def test_a_file_url_is_a_path():
    assert parse_target("file:///tmp/d") == Path("/tmp/d")
    assert parse_target("file:///C:/d") == Path("C:/d")


@pytest.mark.parametrize("secret", ["https://key:word@host/d failed", "s3://b/d?sig=word\nfailed"])
def test_an_error_of_a_backend_is_told_in_one_line_without_secrets(place, secret):
    Recording.fails.append((OSError(secret + "x" * 1_000), None))
    with pytest.raises(ExportError) as caught:
        place.write("a", b"1")
    assert "word" not in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 600
    Recording.fails.append((OSError(), None))
    with pytest.raises(ExportError, match="OSError"):
        place.write("a", b"1")
    Recording.fails.append((FileNotFoundError("no bucket"), None))
    with pytest.raises(ExportError, match="cannot be written: no bucket"):
        place.write("a", b"1")


async def test_a_part_for_a_url_is_written_here_and_uploaded_when_it_is_complete(place, tmp_path):
    confirmed = []

    def confirm():
        confirmed.append("part")

    async with local_file(tmp_path / "part", confirm=confirm) as (path, ready):
        assert (path, ready) == (tmp_path / "part", confirm)
    async with local_file("recording://d/part", confirm=confirm) as (path, ready):
        folder = path.parent
        await run_sync(path.write_bytes, b"1")
        ready()
        assert (await run_sync(place.names), confirmed) == ([], [])
    assert (place.names(), folder.exists(), confirmed) == (["part"], False, ["part"])

    async def fail():
        async with local_file("recording://d/other", confirm=confirm) as (path, _):
            await run_sync(path.write_bytes, b"1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert place.names() == ["part"]
    with pytest.raises(ConfigurationError, match="names no file"):
        await local_file("recording://d", confirm=confirm).__aenter__()
