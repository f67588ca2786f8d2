"""`dragoman apply`: a review, one line per fault, and an exit code that tells."""

from __future__ import annotations

import json

import pytest

from terminal import Terminal


@pytest.fixture
def changes(tmp_path):
    """Write a file of changes of books."""

    def write(*lines):
        file = tmp_path / "changes.ndjson"
        file.write_text("".join(f"{json.dumps({'object': 'books', **line})}\n" for line in lines))
        return file

    return write


UPDATE = {"op": "update", "id": "1", "set": {"title": "x"}}
STALE = {"op": "update", "id": "2", "set": {"title": "x"}, "guard": {"seq_no": 40}}
LOST = {"op": "update", "id": "lost", "set": {"title": "x"}}
FIXED = {"op": "update", "id": "3", "set": {"id": "9"}}


def test_what_is_applied_is_told_in_one_line_on_stderr(shop, changes):
    done = shop("apply", "shop", changes(UPDATE, {"op": "delete", "id": "2"}))
    assert (done.out, done.err) == ("", "  applied 2 · skipped 0 · conflict 0 · failed 0\n")


def test_one_line_that_was_not_applied_is_told_beside_the_counts(shop, changes):
    done = shop("apply", "shop", changes(UPDATE, FIXED), code=4)
    assert done.err == "  applied 1 · skipped 1 · conflict 0 · failed 0      (line 2 skipped: id is read-only)\n"


def test_several_lines_that_were_not_applied_are_a_table(shop, changes):
    done = shop("apply", "shop", changes(FIXED, UPDATE, STALE), code=4)
    assert done.out == (
        "line 1  3  skipped   id is read-only\nline 3  2  conflict  changed since it was read (seq_no 40 → 41)\n"
    )


def test_quiet_leaves_what_was_not_applied(shop, changes):
    done = shop("apply", "shop", changes(UPDATE, FIXED), "--quiet", code=4)
    assert (done.out, done.err) == ("line 2  3  skipped  id is read-only\n", "")


def test_the_report_is_one_document_with_json(shop, changes):
    document = shop("apply", "shop", changes(UPDATE, FIXED), "--json", code=4).json
    assert document["counts"] == {"applied": 1, "skipped": 1, "refused": 0, "conflict": 0, "failed": 0, "unknown": 0}
    assert document["left"] == [{"line": 2, "id": "3", "status": "skipped", "reason": "id is read-only"}]


def test_a_lost_answer_is_unknown_in_the_table_the_counts_and_the_json(shop, changes):
    reason = "the connection ended before the answer"
    done = shop("apply", "shop", changes(UPDATE, LOST), code=4)
    assert done.err == f"  applied 1 · skipped 0 · conflict 0 · failed 0 · unknown 1      (line 2 unknown: {reason})\n"
    done = shop("apply", "shop", changes(LOST, FIXED), code=4)
    assert done.out == f"line 1  lost  unknown  {reason}\nline 2  3     skipped  id is read-only\n"
    document = shop("apply", "shop", changes(LOST), "--json", code=4).json
    assert (document["counts"]["unknown"], document["counts"]["failed"]) == (1, 0)
    assert document["left"] == [{"line": 1, "id": "lost", "status": "unknown", "reason": reason}]
    done = shop("update", "shop", "books", "lost", "--set", "title=x", code=4)
    assert done.out == f"lost  unknown  {reason}\n"
    assert "check the result before sending it again" in done.err


def test_a_dry_run_shows_the_exact_requests_and_writes_no_undo_file(shop, changes, tmp_path):
    undo = tmp_path / "undo.ndjson"
    done = shop("apply", "shop", changes(UPDATE, FIXED), "--dry-run", "--undo", undo, code=4)
    assert done.out == 'POST /books/_update/1?refresh\n{"title": "x"}\nline 2  3  skipped  id is read-only\n'
    assert done.err == "  not sent (--dry-run)\n"
    document = shop("apply", "shop", changes(UPDATE), "--dry-run", "--json").json
    assert [request["path"] for request in document["requests"]] == ["/books/_update/1?refresh"]
    assert (document["refusals"], undo.exists()) == ([], False)


def test_bad_lines_are_all_named_and_end_with_2(shop, changes):
    file = changes(UPDATE, {"op": "update"}, {"op": "delete", "object": "nosuch", "id": "1"})
    done = shop("apply", "shop", file, code=2)
    assert "error[change-file-invalid]: 2 bad lines; nothing was applied" in done.err
    assert f"{file}:2: " in done.err
    assert f"{file}:3: there is no object 'nosuch'" in done.err
    assert shop("apply", "shop", "nowhere.ndjson", code=2).err.startswith("error[configuration-invalid]")


def test_an_undo_file_of_a_driver_that_has_none_is_refused(shop, changes, tmp_path):
    done = shop("apply", "shop", changes(UPDATE), "--undo", tmp_path / "undo.ndjson", code=1)
    assert "error[operation-not-supported]: the driver demo cannot build an undo" in done.err
    assert not (tmp_path / "undo.ndjson").exists()


def test_changes_come_from_standard_input_too(furnished, changes):
    done = furnished.process("apply", "shop", "-", typed=changes(UPDATE).read_text())
    assert "applied 1" in done.err


def test_a_server_cannot_drive_the_terminal_by_a_reason(shop, changes):
    done = shop("apply", "shop", changes({"op": "update", "id": "\x1b[31m", "set": {"id": "1"}}, FIXED), code=4)
    assert "\x1b" not in done.out + done.err


@pytest.mark.slow
def test_on_a_terminal_the_set_is_reviewed_and_confirmed(furnished, changes):
    file = changes(UPDATE, FIXED, {"op": "delete", "id": "2"})
    for answer, code in (("n", 1), ("y", 4)):
        screen = Terminal(furnished, "apply", "shop", file)
        try:
            before = screen.answer("Apply 2 changes? [y/N] ", answer)
            assert "books: 1 delete" in before
            assert "books: 2 updates" in before
            assert "not sent: line 2: id is read-only" in before
            ended, rest = screen.end()
        finally:
            screen.process.kill()
        assert ended == code
        assert ("applied 2" in rest) is (answer == "y")
    assert "applied 2" in furnished("apply", "shop", file, "--yes", code=4).err
