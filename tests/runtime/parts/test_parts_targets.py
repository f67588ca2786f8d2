"""The targets of exports in parts, a folder and a store: what claims them, what of them is done, what is left."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
import time

import fsspec
import msgspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from dragoman_api.errors import ExportError
from dragoman_dask import object_store_target as store
from dragoman_dask.exports import parts_target, unfinished
from dragoman_dask.object_stores import ObjectStore
from dragoman_dask.target import DONE, MANIFEST, PLAN, PROBE
from dragoman_registry import files
from splits import ROW, SPLIT, part


class Manifest(msgspec.Struct):
    parts: list


RESULT = Manifest([part(SPLIT, 0)])


class Place:
    """A target by its path or URL, and the files in it by the backend of fsspec."""

    def __init__(self, kind, root, to):
        self.kind, self.to, self.root = kind, to, str(root)
        self.files = fsspec.filesystem(kind)

    def target(self):
        return parts_target(self.to)

    def opened(self, *, resume=False):
        target = self.target()
        return target, target.open(resume=resume)

    def write(self, name, data=ROW):
        self.files.makedirs(self.root, exist_ok=True)
        self.files.pipe_file(f"{self.root}/{name}", data)

    def read(self, name):
        return self.files.cat_file(f"{self.root}/{name}")

    @property
    def names(self):
        if not self.files.exists(self.root):
            return []
        found = (path.rpartition("/")[2] for path in self.files.ls(self.root, detail=False))
        return sorted(name for name in found if "claim" not in name and not name.endswith("lock"))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(store, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(store, "LEASE_SECONDS", 0.4)
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture(params=["file", "memory"])
def place(request, tmp_path):
    if request.param == "file":
        return Place("file", tmp_path / "d", tmp_path / "d")
    return Place("memory", "/d", "memory://d")


@pytest.fixture
def bucket():
    return Place("memory", "/d", "memory://d")


def begun(place, *numbers):
    """Begin an export whose parts of these numbers are done, and leave it unfinished."""
    target, _ = place.opened()
    target.begin(SPLIT)
    for number in numbers:
        place.write(SPLIT.file(number))
        target.record(part(SPLIT, number))
    target.leave()


def test_a_target_goes_from_empty_over_unfinished_to_complete(place):
    assert not unfinished(place.to)
    with pytest.raises(ExportError, match="holds no unfinished export") as caught:
        place.opened(resume=True)
    assert caught.value.code == "resume-refused"
    target, found = place.opened()
    assert found is None
    with pytest.raises(ExportError, match="another export") as caught:
        place.opened()
    assert caught.value.code == "export-running"
    target.begin(SPLIT)
    target.leave()
    assert unfinished(place.to)
    with pytest.raises(ExportError, match="holds an unfinished export; nothing was written") as caught:
        place.opened()
    assert caught.value.code == "target-occupied"
    assert "--resume" in caught.value.hint
    target, found = place.opened(resume=True)  # the refused one has released it
    assert found == SPLIT
    target.finish(RESULT)
    target.leave()
    assert not unfinished(place.to)
    assert place.names == [MANIFEST]
    assert msgspec.json.decode(place.read(MANIFEST)) == msgspec.to_builtins(RESULT)
    with pytest.raises(ExportError, match="is complete") as caught:
        place.opened(resume=True)
    assert caught.value.code == "resume-refused"
    with pytest.raises(ExportError, match="holds a complete export; nothing was written") as caught:
        place.opened()
    assert caught.value.code == "target-occupied"
    assert "--resume" not in caught.value.hint


def test_a_target_with_other_files_has_nothing_to_continue(place):
    place.write("mine")
    with pytest.raises(ExportError, match="holds no unfinished export") as caught:
        place.opened(resume=True)
    assert caught.value.code == "resume-refused"
    assert place.names == ["mine"]


def test_a_complete_export_whose_plan_was_left_is_complete(place):
    place.write(MANIFEST)
    place.write(PLAN)
    assert not unfinished(place.to)
    with pytest.raises(ExportError, match="is complete"):
        place.opened(resume=True)
    with pytest.raises(ExportError, match="holds a complete export") as caught:
        place.opened()
    assert "--resume" not in caught.value.hint


def plan(**changed):
    return msgspec.json.encode({**msgspec.to_builtins(SPLIT), **changed})


@pytest.mark.parametrize(
    "data", [b"{", b"[]", plan(version=0), plan(format={"format": "exe"}), plan(format={"compression": "lzma"})]
)
def test_a_plan_that_cannot_be_read_is_refused_and_the_target_released(place, data):
    place.write(PLAN, data)
    for _ in range(2):
        with pytest.raises(ExportError, match=r"the unfinished export in .+ cannot be read") as caught:
            place.opened(resume=True)
        assert caught.value.code == "resume-refused"
        assert caught.value.hint.startswith("remove ")
    assert place.read(PLAN) == data


def test_a_part_is_done_if_its_file_is_as_it_was_recorded(place):
    begun(place, 0, 1, 2)
    place.files.rm_file(f"{place.root}/{SPLIT.file(0)}")
    place.write(SPLIT.file(1), b"changed\n")
    place.write(SPLIT.file(2))  # the same bytes, written again
    target, found = place.opened(resume=True)
    assert target.done(found) == {2: part(SPLIT, 2)}
    target.leave()


def test_the_last_record_of_a_part_counts_and_others_are_left_out(place):
    target, _ = place.opened()
    target.begin(SPLIT)
    more = msgspec.structs.replace(part(SPLIT, 1), rows=7)
    stray = msgspec.structs.replace(part(SPLIT, 0), file="other")
    for name in (SPLIT.file(1), "other"):
        place.write(name)
    for each in (part(SPLIT, 1), stray, more):
        target.record(each)
    target.leave()
    if place.kind == "file":
        place.write(DONE, place.read(DONE) + b'\n{"file":"part-00000')  # the process died while it wrote
    target, found = place.opened(resume=True)
    assert target.done(found) == {1: more}
    target.leave()


def test_what_is_done_is_nothing_where_the_record_is_missing_or_damaged(place):
    begun(place, 0)
    place.write(DONE, b"{")
    target, found = place.opened(resume=True)
    assert target.done(found) == {}
    place.files.rm_file(f"{place.root}/{DONE}")
    assert target.done(found) == {}
    target.leave()


def test_a_run_that_continues_keeps_the_record_of_the_one_before(place):
    begun(place, 0)
    target, found = place.opened(resume=True)
    target.done(found)
    place.write(SPLIT.file(1))
    target.record(part(SPLIT, 1))
    target.leave()
    target, found = place.opened(resume=True)
    assert sorted(target.done(found)) == [0, 1]
    target.leave()


def test_a_file_of_a_store_is_read_only_if_its_mark_changed(bucket, monkeypatch):
    begun(bucket, 0, 1)
    bucket.write(SPLIT.file(1))
    read, sha256 = [], store.ObjectStoreTarget._sha256
    monkeypatch.setattr(
        store.ObjectStoreTarget, "_sha256", lambda self, name: (read.append(name), sha256(self, name))[1]
    )
    target, found = bucket.opened(resume=True)
    assert sorted(target.done(found)) == [0, 1]
    assert read == [SPLIT.file(1)]
    target.leave()


def test_a_store_that_has_no_marks_is_read(bucket, monkeypatch):
    monkeypatch.setattr(ObjectStore, "mark", lambda self, name: "")
    begun(bucket, 0, 1)
    bucket.write(SPLIT.file(1), b"changed\n")
    target, found = bucket.opened(resume=True)
    assert sorted(target.done(found)) == [0]
    target.leave()


def test_what_is_discarded_is_the_export_with_all_it_left_and_nothing_else(place):
    begun(place, 0, 2)
    place.write(f"{PROBE}0")
    place.write("mine")
    if place.kind == "file":
        for kind in ("part", "made"):  # a worker was killed in the middle of it
            place.write(f".{SPLIT.file(1)}.{kind}")
    target, found = place.opened(resume=True)
    target.discard(found)
    target.leave()
    assert place.names == ["mine"]


def test_a_complete_export_has_no_file_of_a_worker_that_died_while_it_looked(place):
    target, _ = place.opened()
    place.write(f"{PROBE}0")
    target.finish(RESULT)
    target.leave()
    assert place.names == [MANIFEST]


def test_a_part_has_a_size_where_it_is(place):
    place.write("part")
    assert (place.target().size("part"), place.target().size("none")) == (len(ROW), -1)


def test_workers_get_a_path_or_url_that_does_not_depend_on_their_folder(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = parts_target("d" if place.kind == "file" else place.to)
    target.open(resume=False)
    assert target.address == str(place.to)
    assert str(target.file("part")) == ("d/part" if place.kind == "file" else "memory://d/part")
    assert target.everywhere == (place.kind == "file")
    target.leave()


def test_a_folder_that_the_export_made_is_removed_if_nothing_is_in_it(tmp_path):
    for made, left in ((True, False), (False, True)):
        folder = tmp_path / f"{made}"
        if not made:
            folder.mkdir()
        target = parts_target(folder)
        target.open(resume=False)
        target.leave()
        target.leave()
        assert folder.exists() == left
    target = parts_target(tmp_path / "kept")
    target.open(resume=False)
    (tmp_path / "kept/part").touch()
    target.leave()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["part"]


def test_what_a_killed_export_was_writing_neither_occupies_its_folder_nor_stays(tmp_path):
    for name in (PLAN, MANIFEST):
        (tmp_path / f".{name}.0123456789ab.tmp").touch()
    target = parts_target(tmp_path)
    target.open(resume=False)
    target.leave()
    assert list(tmp_path.iterdir()) == []


def test_the_plan_of_another_user_is_not_continued(tmp_path):
    """It could ask for other rows."""
    if os.geteuid():
        pytest.skip("only root can give a file away")
    place = Place("file", tmp_path / "d", tmp_path / "d")
    begun(place, 0)
    os.chown(tmp_path / "d" / PLAN, 12_345, -1)
    with pytest.raises(ExportError, match="it belongs to another user") as caught:
        place.opened(resume=True)
    assert caught.value.code == "resume-refused"


def test_an_export_whose_manifest_cannot_be_written_can_be_continued(place, monkeypatch):
    begun(place, 0)
    target, found = place.opened(resume=True)

    def full(*_words, **_more):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write", full)
        patch.setattr(MemoryFileSystem, "pipe_file", full)
        with pytest.raises(ExportError, match="No space left"):
            target.finish(RESULT)
    target.leave()
    assert unfinished(place.to)
    target, found = place.opened(resume=True)
    assert target.done(found) == {0: part(SPLIT, 0)}
    target.leave()


def test_a_process_without_standard_input_claims_a_folder_as_any_other(tmp_path, without_standard_input):
    """Then its lock has the descriptor 0, which is as good as any."""
    target = parts_target(tmp_path / "d")
    with without_standard_input():
        target.open(resume=False)
        with pytest.raises(ExportError, match="another export is writing"):
            parts_target(tmp_path / "d").open(resume=False)
        target.leave()
    assert not (tmp_path / "d").exists()


def test_a_folder_that_is_not_there_is_not_made_to_continue_in(tmp_path):
    with pytest.raises(ExportError, match="holds no unfinished export"):
        parts_target(tmp_path / "a" / "b").open(resume=True)
    assert list(tmp_path.iterdir()) == []


def test_the_plan_is_private_for_it_holds_the_filter(tmp_path):
    target = parts_target(tmp_path)
    target.open(resume=False)
    target.begin(SPLIT)
    target.leave()
    assert stat.S_IMODE((tmp_path / PLAN).stat().st_mode) == 0o600


def test_the_record_of_a_part_is_whole_when_it_is_synced(tmp_path, monkeypatch):
    place = Place("file", tmp_path / "d", tmp_path / "d")
    target, _ = place.opened()
    target.begin(SPLIT)
    synced = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append((tmp_path / "d" / DONE).read_bytes()))
    for number in (0, 1):
        target.record(part(SPLIT, number))
    monkeypatch.undo()
    target.leave()
    assert [len(record.split()) for record in synced] == [1, 2]
    assert synced[-1] == place.read(DONE)


def test_a_worker_finds_the_target_and_leaves_nothing(place):
    target, _ = place.opened()
    place.target().probe(target.claim)
    assert place.names == []
    target.leave()


def test_a_worker_confirms_only_the_export_that_has_the_target(place):
    target, _ = place.opened()
    claim = target.claim
    place.target().confirm(claim)
    for other in ("", "0" * 32):
        with pytest.raises(ExportError, match="no longer needs this part") as caught:
            place.target().confirm(other)
        assert caught.value.code == "export-running"
    target.leave()
    with pytest.raises(ExportError, match="no longer needs this part"):
        place.target().confirm(claim)


def test_a_worker_that_finds_another_target_says_so(place):
    target, _ = place.opened()
    with pytest.raises(ExportError, match=r"is another (folder|place) here"):
        place.target().probe("0" * 32)
    target.leave()


def test_a_lock_that_a_killed_export_left_is_written_anew(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/.export.lock").write_bytes(b"0" * 100)
    target = parts_target(tmp_path / "d")
    target.open(resume=False)
    target.confirm(target.claim)
    target.leave()


def test_a_worker_that_may_not_read_the_lock_goes_on(tmp_path, monkeypatch):
    def denied(*words, **options):
        raise PermissionError

    monkeypatch.setattr("dragoman_registry.files.read_plain", denied)
    assert parts_target(tmp_path).confirm("0" * 32) is None


def test_a_worker_that_cannot_write_says_so(place, monkeypatch):
    target, _ = place.opened()

    def refuse(*words, **options):
        raise PermissionError(13, "Permission denied")

    method = (
        "pathlib.Path.touch" if place.kind == "file" else f"{type(place.files).__module__}.MemoryFileSystem.pipe_file"
    )
    monkeypatch.setattr(method, refuse)
    with pytest.raises(ExportError, match="Permission denied"):
        place.target().probe(target.claim)
    target.leave()


# the claim of a store -------------------------------------------------------------------------------------------------


def claims(bucket):
    return [path.rpartition("/")[2] for path in MemoryFileSystem.store if ".export.claim-" in path]


@pytest.mark.parametrize(("host", "pid"), [("h", 1), (socket.gethostname(), os.getpid())], ids=["there", "here"])
def test_an_export_that_lost_its_claim_removes_nothing(bucket, host, pid):
    """The other may be of another machine, or of this process."""
    target, _ = bucket.opened()
    target.begin(SPLIT)
    bucket.write(SPLIT.file(0))
    bucket.write(".export.claim-00002", msgspec.json.encode({"token": "t", "host": host, "pid": pid}))
    for act in (lambda: target.discard(SPLIT), lambda: target.finish(RESULT)):
        with pytest.raises(ExportError, match=f"process {pid} on {host}") as caught:
            act()
        assert caught.value.code == "export-running"
    assert bucket.names == [PLAN, SPLIT.file(0)]
    target.leave()
    assert claims(bucket) == [".export.claim-00002"]


def test_a_lost_claim_stays_lost_when_the_other_export_has_ended(bucket):
    target, _ = bucket.opened()
    bucket.write(".export.claim-00002", b'{"token":"t","host":"h","pid":1}')
    target._renewing.join(10)
    MemoryFileSystem.store.pop("/d/.export.claim-00002")
    for act in (lambda: target.discard(SPLIT), lambda: target.finish(RESULT), lambda: target.record(part(SPLIT, 0))):
        with pytest.raises(ExportError, match="process 1 on h"):
            act()
    target.leave()


def test_where_nothing_can_be_continued_nothing_is_claimed(bucket, monkeypatch):
    def refuse(*words):
        raise AssertionError("it was claimed")

    monkeypatch.setattr(ObjectStore, "create", refuse)
    with pytest.raises(ExportError, match="holds no unfinished export"):
        bucket.opened(resume=True)


def test_a_claim_that_someone_removed_is_lost(bucket):
    target, _ = bucket.opened()
    target._renewing.join(0)
    MemoryFileSystem.store.pop("/d/.export.claim-00001")
    with pytest.raises(ExportError, match="another export is writing"):
        target._check_claim()
    target.leave()


def test_a_second_manifest_is_refused_and_the_first_one_stays(bucket):
    target, _ = bucket.opened()
    bucket.write(MANIFEST, b"first")
    with pytest.raises(ExportError, match="holds a complete export") as caught:
        target.finish(RESULT)
    assert caught.value.code == "target-occupied"
    assert bucket.read(MANIFEST) == b"first"
    target.leave()


def test_an_export_is_complete_also_if_what_is_left_cannot_be_removed(bucket, monkeypatch):
    target, _ = bucket.opened()
    target.begin(SPLIT)

    def remove(self, name):
        raise ExportError("for a moment")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "remove", remove)
        target.finish(RESULT)
    target.leave()
    assert bucket.names == [PLAN, MANIFEST]
    assert not unfinished(bucket.to)


def test_a_renewal_that_failed_is_repeated(bucket, monkeypatch):
    target, _ = bucket.opened()
    fails, written = [True, True], ObjectStore.write

    def write(self, name, data):
        if fails:
            fails.pop()
            raise ExportError("for a moment")
        written(self, name, data)

    monkeypatch.setattr(ObjectStore, "write", write)
    deadline = time.monotonic() + 10
    while target._read_claim(target._claim_name).renewals < 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not fails
    target._check_claim()
    target.leave()


@pytest.mark.parametrize("data", [b"", b'{"token":"t","host":"h","pid":1}'])
def test_a_claim_is_waited_for_as_long_as_it_may_still_be_renewed(bucket, data):
    bucket.write(".export.claim-00007", data)  # one that is just written shows as an empty file in some stores
    began = time.monotonic()
    target, _ = bucket.opened()
    assert time.monotonic() - began >= 0.35
    assert claims(bucket) == [".export.claim-00008"]
    target.leave()
    assert claims(bucket) == []


def test_a_claim_that_cannot_be_read_is_of_no_process(bucket):
    target, _ = bucket.opened()
    bucket.write(target._claim_name, b"")
    with pytest.raises(ExportError, match="another export") as caught:
        target._check_claim()
    assert "process" not in caught.value.message
    target.leave()


def test_a_claim_that_is_removed_meanwhile_is_not_waited_for(bucket, monkeypatch):
    monkeypatch.setattr(store, "LEASE_SECONDS", 8.0)
    bucket.write(".export.claim-00001", b'{"token":"t","host":"h","pid":1}')
    threading.Timer(0.2, MemoryFileSystem.store.pop, ["/d/.export.claim-00001", None]).start()
    began = time.monotonic()
    target, _ = bucket.opened()
    assert time.monotonic() - began < 4
    target.leave()


def test_a_claim_that_cannot_be_removed_runs_out(bucket, monkeypatch):
    target, _ = bucket.opened()

    def remove(self, name):
        raise ExportError("for a moment")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "remove", remove)
        target.leave()
    assert claims(bucket) == [".export.claim-00001"]
    assert not target._renewing.is_alive()


def test_the_uploads_that_a_killed_process_left_end_with_the_export(bucket, monkeypatch):
    aborted = []
    monkeypatch.setattr(ObjectStore, "abort_uploads", lambda self, names: aborted.append(set(names)))
    begun(bucket)
    target, found = bucket.opened(resume=True)
    target.discard(found)
    target.leave()
    target, _ = bucket.opened()
    target.finish(Manifest([part(SPLIT, 0), part(SPLIT, 2)]))
    target.leave()
    assert aborted == [{SPLIT.file(number) for number in range(3)}, {SPLIT.file(0), SPLIT.file(2)}]
