"""`dragoman import`: what it writes, what it says about every row, and how an interrupted one goes on."""

from __future__ import annotations

import json
import re
import shlex

import pytest


@pytest.fixture
def rows(tmp_path):
    def write(*lines, name="b.ndjson"):
        file = tmp_path / name
        file.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines))
        return file

    return write


@pytest.mark.slow
def test_what_was_loaded_is_told_in_one_line_on_stderr(shop, rows):
    done = shop("import", "shop", "books", rows("id,title\n1,Oolong", "2,Mate", name="b.csv"))
    assert done.out == ""
    told = r"  books  2 rows  [\d,]+ rows/s  applied 2 · skipped 0 · conflict 0 · failed 0\n"
    assert re.match(told, done.err), done.err


@pytest.mark.slow
def test_rows_that_were_not_written_are_in_a_file_and_end_with_4(shop, rows):
    file = rows({"title": "x", "key": "1"}, "nonsense", {"title": "y"})
    done = shop("import", "shop", "books", file, "--id", "key", "--json", code=4)
    document = done.json
    assert document["counts"] == {"applied": 1, "skipped": 0, "refused": 2, "conflict": 0, "failed": 0, "unknown": 0}
    assert (document["complete"], document["rows"]) == (True, 3)
    assert f"not written, each with its reason: {file}.rejected.ndjson" not in done.err
    told = [json.loads(line) for line in file.with_name("b.ndjson.rejected.ndjson").read_text().splitlines()]
    assert [(each["row"], each["code"], each["data"]) for each in told] == [
        (2, "unreadable", "nonsense"), (3, "unreadable", {"title": "y"}),
    ]  # fmt: skip
    done = shop("import", "shop", "books", file, "--id", "key", code=4)
    assert f"  not written, each with its reason: {file}.rejected.ndjson\n" in done.err


@pytest.mark.slow
def test_a_lost_answer_is_unknown_and_ends_with_4(shop, rows, monkeypatch):
    monkeypatch.setattr("dragoman.imports.batch_sending.AGAIN", ())
    done = shop("import", "shop", "books", rows({"id": "lost"}, {"id": "1"}), "--id", "id", code=4)
    assert "applied 1 · skipped 0 · conflict 0 · failed 0 · unknown 1" in done.err.replace("refused 0 · ", "")


@pytest.mark.slow
def test_a_dry_run_shows_the_exact_requests_and_writes_nothing(shop, rows, tmp_path):
    file = rows({"title": "x", "key": "1"}, "bad")
    done = shop("import", "shop", "books", file, "--id", "key", "--dry-run", "--undo", tmp_path / "u", code=4)
    assert done.out.startswith("PUT /books/_doc/1\n")
    assert "  2 rows, 1 of them not to be sent; nothing was sent (--dry-run)\n" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["b.ndjson"]


@pytest.mark.slow
def test_what_cannot_be_right_is_refused_with_2_before_anything_is_sent(shop, rows, tmp_path):
    done = shop("import", "shop", "books", rows("titel,price", "x,1", name="b.csv"), code=2)
    assert "error[column-unknown]: 'books' has no column 'titel' (did you mean title?)\n" in done.err
    done = shop("import", "shop", "books", tmp_path / "nowhere.csv", code=2)
    assert "nowhere.csv cannot be read: No such file" in done.err
    done = shop("import", "shop", "books", tmp_path / "nowhere.xlsx", code=2)
    assert "nowhere.xlsx cannot be read: No such file" in done.err
    done = shop("import", "shop", "books", rows("x", name="b.arrow"), code=2)
    assert "the ending '.arrow' names no format of an import" in done.err
    assert ".parquet" in done.err
    assert ".arrows" not in done.err
    done = shop("import", "shop", "books", rows("x", name="b.xlsx"), code=2)
    assert "error[format-unknown]: the ending '.xlsx' names no format of an import" in done.err
    done = shop("import", "shop", "boks", rows({"a": 1}), code=1)
    assert "error[object-not-found]" in done.err
    done = shop("import", "shop", "books", rows({"a": 1}), "--map", "a", code=2)
    assert "'a' is not OLD=NEW" in done.err
    assert "standard input cannot be resumed" in shop("import", "shop", "books", "-", "--resume", code=2).err


@pytest.mark.slow
def test_another_delimiter_than_a_comma_is_suggested_and_taken(shop, rows):
    file = rows("id;title", "1;a,b", name="b.csv")
    done = shop("import", "shop", "books", file, code=2)
    assert "is one column, 'id;title', unless ';' separates it\n  hint: --delimiter ';'\n" in done.err
    assert "applied 1" in shop("import", "shop", "books", file, "--delimiter", ";").err
    tabs = rows("id\ttitle", "2\tx", name="c.csv")
    assert "hint: --delimiter tab\n" in shop("import", "shop", "books", tabs, code=2).err
    assert "applied 1" in shop("import", "shop", "books", tabs, "--delimiter", "tab").err
    assert (
        "a delimiter is for CSV" in shop("import", "shop", "books", rows({"id": "3"}), "--delimiter", ";", code=2).err
    )


@pytest.mark.slow
def test_a_document_over_several_lines_is_one_row(shop, rows):
    for name in ("b.json", "b.ndjson"):
        file = rows(*(json.dumps({"id": f"{name}-{at}", "title": "x"}, indent=2) for at in range(2)), name=name)
        assert "  2 rows  " in shop("import", "shop", "books", file, "--id", "id").err


@pytest.mark.slow
def test_an_undo_file_of_a_driver_that_has_none_is_refused_and_nothing_is_left(shop, rows, tmp_path):
    done = shop("import", "shop", "books", rows({"title": 1}), "--undo", tmp_path / "u.ndjson", code=1)
    assert "error[operation-not-supported]: the driver demo cannot build an undo" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["b.ndjson"]


@pytest.mark.slow
def test_standard_input_is_loaded_too(furnished, tmp_path):
    done = furnished.beside(cwd=tmp_path).process(
        "import", "shop", "books", "-", typed='{"title":"x"}\n{"title":"y"}\n'
    )
    assert "applied 2" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_read_only_connection_is_never_written_to(own, rows):
    (own.home / "config").mkdir(exist_ok=True)
    config = own.home / "config" / "config.toml"
    config.write_text((config.read_text() if config.exists() else "") + '\n[guards]\nread_only = "read-only"\n')
    file = rows({"title": "x"})
    done = own("import", "shop", "books", file, code=1)
    assert "error[refused]" in done.err
    assert "--resume" not in done.err
    assert [path.name for path in file.parent.iterdir() if path.name.startswith("b.") or "import" in path.name] == [
        "b.ndjson"
    ]


@pytest.mark.parametrize("line", ["import shop new FILE", "copy shop books shop new"])
def test_an_object_that_the_driver_cannot_make_is_not_made(shop, rows, line):
    """Every option of the line is known."""
    words = line.replace("FILE", str(rows({"title": "x"}))).split()
    done = shop(*words, "--create", "--on-conflict", "overwrite", "--yes", code=1)
    assert "the driver demo does not make objects" in done.err


def test_a_copy_says_what_its_export_says_of_the_rows(shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = shop("copy", "shop", "books", "shop", "orders", "--filter", "title = Oolong", "--yes")
    assert "note[filter-approximate]: filter row 1 (term title): ignores case" in done.err


def test_types_of_a_new_object_are_shown_and_confirmed_never_guessed_in_silence(shop, rows):
    file = rows("id,n,zip", *(f"{at},{at},0{at}" for at in range(20)), "x,-,1", name="b.csv")
    words = ["import", "shop", "new", file, "--create", "--id", "id"]
    done = shop(*words, code=1)
    assert "error[refused]: Make new with these types? Cannot ask" in done.err
    assert "  new does not exist; types after a look at all 21 rows:\n" in done.err
    assert "    n    text       21 values, such as 0, 1, 2; integer but for -\n" in done.err
    assert json.loads(shop(*words, "--json", code=1).err)["error"]["details"]["types"] == "id=text, n=text, zip=text"
    done = shop(*words, "--yes", "--type", "n=integer", code=1)
    assert "    n    integer    21 values, such as 0, 1, 2; does not fit, and is rejected: -\n" in done.err
    assert "the driver demo does not make objects" in done.err
    done = shop(*words, "--type", "n=integer", "--type", "id=text", "--type", "zip=text", code=1)
    assert "the driver demo does not make objects" in done.err
    document = json.loads(shop(*words, "--dry-run", "--json", code=1).out)
    assert [(each["name"], each["type"]) for each in document["columns"]] == [
        ("id", "text"), ("n", "text"), ("zip", "text"),
    ]  # fmt: skip
    assert "'n' is not COLUMN=TYPE" in shop(*words, "--type", "n", code=2).err
    assert "--type says the types" in shop("import", "shop", "books", file, "--type", "n=text", code=2).err


def test_how_fields_are_read_is_shown_and_confirmed_or_said(shop, rows):
    file = rows("id;price;title", "1;1.234,50;a", "2;2,5;b", name="b.csv")
    words = ["import", "shop", "books", file, "--delimiter", ";"]
    done = shop(*words, code=1)
    assert "  books exists; fields to be read after a look at all 2 rows:\n" in done.err
    assert "    price  float      2 values, decimal-comma: 1.234,50 → 1234.50\n" in done.err
    assert "error[refused]: Read the file into books so? Cannot ask" in done.err
    assert "  hint: --yes, or --read price=decimal-comma\n" in done.err
    details = json.loads(shop(*words, "--json", code=1).err)["error"]["details"]
    assert details["readings"] == "--read price=decimal-comma"
    done = shop(*words, "--dry-run", "--json")
    document = json.loads(done.out.splitlines()[0])
    assert [(each["column"], each["reading"], each["source"]) for each in document["columns"]] == [
        ("price", "decimal-comma", "object"),
    ]  # fmt: skip
    assert json.loads(json.loads(done.out.splitlines()[1])["body"])["price"] == "1234.50"
    new = ["import", "shop", "new", file, "--delimiter", ";", "--create"]
    done = shop(*new, "--read", "title=x/", "--dry-run", code=1)
    assert "    title  boolean    2 values, x/: none of them fits; does not fit, and is rejected: a, b\n" in done.err
    assert "'price' is not COLUMN=READING" in shop(*words, "--read", "price", code=2).err
    done = shop(*words, "--read", "price=comma", code=2)
    assert "error[value-invalid]: 'comma' is no reading of a column\n  hint: use one of: plain," in done.err
    assert "the file has no column 'prise' (did you mean price?)" in shop(*words, "--read", "prise=plain", code=2).err
    doubtful = rows("id;price", "1;1,234", name="c.csv")
    done = shop("import", "shop", "books", doubtful, "--delimiter", ";", "--yes", code=2)
    assert "error[readings-unconfirmed]: 'price': '1,234' can be decimal-comma or decimal-point, and no row" in done.err
    assert "  hint: --read 'price=decimal-comma|decimal-point', once you know; plain reads" in done.err
    typed = ["import", "shop", "new", rows("a;b", "1,5;1.234", name="d.csv"), "--delimiter", ";", "--create", "--yes"]
    done = shop(*typed, "--type", "b=float", code=2)
    assert "error[readings-unconfirmed]: 'b': the point in '1.234' may part thousands" in done.err


@pytest.mark.slow
def test_a_said_reading_is_used_and_counted(shop, rows):
    file = rows("id;price", "1;1.234,50", "2;n/a", name="b.csv")
    done = shop("import", "shop", "books", file, "--delimiter", ";", "--read", "price=decimal-comma", "--json", code=4)
    assert (done.json["counts"]["applied"], done.json["counts"]["refused"]) == (1, 1)
    assert [column["reading"] for column in done.json["proposal"]["columns"]] == ["decimal-comma"]
    line = json.loads(file.with_name("b.csv.rejected.ndjson").read_text())
    assert "its column 'price' holds 'n/a', which is not a number with a decimal comma" in line["reason"]


def test_a_load_that_was_stopped_names_the_command_that_goes_on(shop, rows, tmp_path, monkeypatch):
    """The disk is full after the first batch; once it has room, the command that is named finishes the load."""
    from dragoman.cli.progress import StatusLine
    from dragoman.imports.checkpoints import AppendedFile
    from dragoman_api.errors import ConfigurationError

    file = rows(*({"title": str(at)} for at in range(25)), "bad", name="my rows.ndjson")
    begin = StatusLine.__init__

    def on_a_terminal(line, **options):
        begin(line, **options)
        line._live = True

    with monkeypatch.context() as patch:

        def full(_self, data):
            if data:
                raise ConfigurationError("no space left")

        patch.setattr(AppendedFile, "append", full)
        patch.setattr(StatusLine, "__init__", on_a_terminal)
        done = shop("import", "shop", "books", file, "--batch", "10", code=2)
    assert "\r\x1b[K  books  " in done.err
    assert "\r\x1b[K  stopped after 20 rows: applied 20" in done.err
    [hint] = re.findall(r"  try: (.*)\n", done.err)
    words = shlex.split(hint)
    assert words == ["dragoman", "import", "shop", "books", str(file), "--batch", "10", "--resume"]
    assert "error[import-unfinished]" in shop("import", "shop", "books", file, "--batch", "10", code=2).err
    done = shop(*words[1:], "--json", code=4)
    assert (done.json["counts"]["applied"], done.json["counts"]["refused"], done.json["resumed"]) == (25, 1, 1)
    names = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert names == ["my rows.ndjson", "my rows.ndjson.rejected.ndjson"]
