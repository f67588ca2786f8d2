"""Commands that read, run as processes against a driver in its sandbox."""

from __future__ import annotations

import json
import re
import shlex

import pytest


def test_objects_are_a_table_with_numbers_for_people(shop):
    assert shop("objects", "shop").out.splitlines() == [
        "OBJECT    ROWS    SIZE",
        "books        3  210 kB",
        "orders  12,003  5.1 MB",
    ]


@pytest.mark.slow
def test_states_and_nodes_are_shown_where_the_driver_knows_them_and_nothing_where_not(shop, furnished):
    furnished("connections", "add", "states", "--type", "demo", "--port", "4", "--yes")
    assert furnished("objects", "states").out.splitlines() == [
        "OBJECT    ROWS    SIZE  STATE",
        "books        3  210 kB  green",
        "orders  12,003  5.1 MB  closed",
    ]
    lines = furnished("objects", "states", "--format", "csv").out.splitlines()
    assert (lines[0], lines[2]) == ("name,rows,size,kind,state", "orders,12003,5100000,table,closed")
    first, second = furnished("objects", "states", "--json").json["objects"]
    assert (first["state"], second["state"]) == ({"word": "green", "level": "good"}, {"word": "closed", "level": ""})
    tested = furnished("connections", "test", "states")
    assert tested.out.splitlines()[1:] == [
        "NODE  STATE  MEMORY            ROLES",
        "n1    up     1.0 kB of 4.0 kB  data",
        "n2    lost                     data",
    ]
    assert "health: limping" in tested.err
    nodes = furnished("connections", "test", "states", "--json").json["status"]["nodes"]
    assert [(node["name"], node["memory_limit"]) for node in nodes] == [("n1", 4_000), ("n2", None)]
    without = furnished("connections", "test", "shop")
    assert without.out.count("\n") == 1
    assert "may not list the nodes" in without.err
    assert shop("objects", "shop", "--json").json["objects"][0]["state"] is None


def test_objects_in_other_formats_have_exact_numbers(shop):
    assert shop("objects", "shop", "--json").json["objects"][1]["rows"] == 12_003
    assert shop("objects", "shop", "--format", "csv").out.splitlines()[2] == "orders,12003,5100000,table"
    lines = shop("objects", "shop", "--format", "ndjson").out.splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["books", "orders"]


def test_a_list_of_objects_up_to_a_limit_says_how_many_there_are_and_how_to_see_the_rest(shop):
    first = shop("objects", "shop", "--limit", "1")
    assert [line.split()[0] for line in first.out.splitlines()] == ["OBJECT", "books"]
    assert "1 of 2 objects" in first.err
    assert "--contains" in first.err
    words = re.search(r"next: (--cursor .+)", first.err)[1]
    second = shop("objects", "shop", "--limit", "1", *shlex.split(words))
    assert [line.split()[0] for line in second.out.splitlines()] == ["OBJECT", "orders"]
    assert "next" not in second.err
    document = shop("objects", "shop", "--limit", "1", "--json").json
    assert (document["total"], document["next"]) == (2, shlex.split(words)[1])
    assert {"total", "next"}.isdisjoint(shop("objects", "shop", "--json").json)
    beyond = shop("objects", "shop", "--limit", "1", "--contains", "ORD", "--json").json
    assert [entry["name"] for entry in beyond["objects"]] == ["orders"]
    assert shop("objects", "shop", "--limit", "0", code=2).out == ""
    assert "cursor" in shop("objects", "shop", "--cursor", "orders", code=None).err


def test_a_page_has_its_rows_on_stdout_and_the_rest_on_stderr(shop):
    done = shop("page", "shop", "books", "--filter", "price >= 10", "--sort", "price", "--limit", "1",
                "--columns", "id,price")  # fmt: skip
    assert done.out == "id  price\n1    12.5\n"
    assert done.err == "  rows 1\N{EN DASH}1 of 2\n"


def test_a_sort_by_an_unknown_column_is_an_error_with_the_near_name(shop):
    done = shop("page", "shop", "books", "--sort", "-prise", code=1)
    assert done.out == ""
    assert "error[query-failed]: there is no column 'prise' to sort by (did you mean price?)" in done.err
    assert "  try: dragoman describe shop books\n" in done.err


def test_what_a_server_says_cannot_drive_the_terminal(shop):
    done = shop("page", "shop", "books")
    assert "\x1b" not in done.out
    assert "evil \\x1b[31m\\u202ered\\x1b]0;owned\\x07\\nnext" in done.out
    assert "\x1b" not in shop("page", "shop", "books", "--json").out


def test_a_page_as_json_is_one_exact_document(shop):
    done = shop("page", "shop", "books", "--json", "--sort", "title")
    assert '"price":1180591620717411303424' in done.out
    assert done.json["rows"][0]["tags"] == ["a", None]
    assert done.json["notes"] == [{"code": "sort-dropped", "reason": "a text field", "column": "title"}]
    assert (done.json["total"], done.json["offset"], done.json["next"]) == (3, 0, None)
    assert done.json["keys"][0] == {"object": "books", "id": "1", "guard": {"seq_no": 41}}
    assert [column["name"] for column in done.json["columns"]] == ["id", "title", "price", "tags"]


def test_what_was_dropped_is_said_even_when_quiet_is_asked_for(shop):
    done = shop("-q", "page", "shop", "books", "--sort", "title")
    assert done.err == "  note[sort-dropped]: title: a text field\n"


def test_an_explanation_names_clause_and_exactness_of_each_row(shop):
    done = shop("page", "shop", "books", "--filter", "price >= 10", "--filter", "title = Oolong", "--explain")
    first, second = (re.split(r" {3,}", line.strip()) for line in done.err.splitlines()[:2])
    assert first == ["1 price >= 10", "term price", "exact"]
    assert second == ["2 title = Oolong", "term title", "approximate: ignores case"]


def test_leave_to_evaluate_rows_here_has_bounds_and_goes_with_no_count(shop):
    assert shop("page", "shop", "books", "--residual", "5").out.count("\n") == 4
    done = shop("page", "shop", "books", "--residual", "0", code=2)
    assert "residual" in done.err
    done = shop("page", "shop", "books", "--residual", "5", "--last", code=2)
    assert "--residual" in done.err


def test_a_filter_that_cannot_run_sends_nothing_and_suggests_the_near_column(shop):
    done = shop("page", "shop", "books", "--filter", "titel = x", code=1)
    assert done.out == ""
    assert done.err.startswith("error[filter-not-supported]: 'titel' has no =; nothing was sent (did you mean title?)")


def test_a_filter_that_cannot_be_read_is_a_usage_error(shop):
    done = shop("count", "shop", "books", "--filter", "price>=10", code=2)
    assert done.err.splitlines()[-1] == "  hint: --filter 'price >= 10'"


def test_near_names_are_suggested_for_objects_columns_and_commands(shop):
    assert "'boks' (did you mean books?)" in shop("page", "shop", "boks", code=1).err
    assert "'prise' (did you mean price?)" in shop("page", "shop", "books", "--columns", "prise", code=1).err
    assert "  try: dragoman objects shop\n" in shop("page", "shop", "boks", code=1).err
    assert "  try: dragoman describe shop books\n" in shop("page", "shop", "books", "--filter", "titel = x", code=1).err
    assert "'page'" in shop("pgae", code=2).err


def test_count_is_a_bare_number(shop):
    assert shop("count", "shop", "books", "--filter", "price >= 10").out == "2\n"
    assert shop("count", "shop", "books", "--json").json == {"count": 3}


def test_a_count_of_nothing_says_why_a_raw_row_finds_nothing(shop):
    done = shop("count", "shop", "books", "--raw", "nothing:1")
    assert (done.out, done.err) == ("0\n", "  note[raw-query-void]: unmapped fields [nothing]\n")
    assert shop("count", "shop", "books", "--filter", "price >= 9999").err == ""


def test_a_page_a_count_and_an_export_say_what_a_filter_makes_approximate(shop):
    asked = ("shop", "books", "--filter", "price >= 10", "--filter", "title = Oolong")
    note = "note[filter-approximate]: filter row 2 (term title): ignores case"
    for command in ("page", "count", "export"):
        assert shop(command, *asked).err.count(note) == 1
    for command in ("page", "count"):
        [told] = shop(command, *asked, "--json").json["notes"]
        assert told["code"] == "filter-approximate"
    explained = shop("page", *asked, "--explain").err
    assert note not in explained
    assert explained.count("ignores case") == 1


def test_what_only_rare_values_make_approximate_is_told_by_the_explanation_alone(shop):
    asked = ("shop", "books", "--filter", "price = 10")
    for command in ("page", "count", "export"):
        done = shop(command, *asked)
        assert "approximate" not in done.err
        assert "rounds" not in done.err
    for command in ("page", "count"):
        assert "filter-approximate" not in shop(command, *asked, "--json").out
    explained = shop("page", *asked, "--explain").err.splitlines()[0]
    assert explained == "  1 price = 10   term price   exact but for rare values (rounds; none in 3 rows)"
    [row] = shop("page", *asked, "--explain", "--json").json["explanation"]
    assert (row["exact"], row["approximations"], row["unlikely"]) == (False, [], ["rounds; none in 3 rows"])


def test_E41_the_last_rows_are_one_option_away(shop):
    done = shop("page", "shop", "books", "--last", "--limit", "2", "--columns", "id")
    assert done.out == "id\n2\n3\n"
    assert done.err == "  rows 2\N{EN DASH}3 of 3\n"
    few = shop("page", "shop", "books", "--last", "--filter", "price >= 10", "--columns", "id")
    assert few.out == "id\n1\n2\n"
    assert (
        "error[usage]: --last cannot be combined with --offset"
        in shop("page", "shop", "books", "--last", "--offset", "1", code=2).err
    )


def test_a_cell_is_whole_and_exact(shop):
    assert shop("cell", "shop", "orders", "3", "tags").out == '[{"deep":[1,2]}]\n'
    assert shop("cell", "shop", "books", "2", "title").out == "evil \x1b[31m\u202ered\x1b]0;owned\x07\nnext\n"
    assert shop("cell", "shop", "books", "1", "price", "--json").json == 12.5
    assert "error[row-not-found]: there is no row '9'" in shop("cell", "shop", "books", "9", "tags", code=1).err


def test_a_cell_that_is_not_there_prints_nothing_and_says_so(shop):
    assert shop("cell", "shop", "orders", "3", "title").out == "null\n"
    assert shop("cell", "shop", "orders", "3", "title", "--json").out == "null\n"
    for more in ((), ("--json",)):
        done = shop("cell", "shop", "ledger", "3", "title", *more)
        assert (done.out, "'title'" in done.err) == ("", True)


def test_a_field_that_is_not_there_is_told_from_a_null(shop):
    columns = ("--columns", "id,title")
    null, missing = (shop("page", "shop", name, *columns, "--json").json["rows"][2] for name in ("orders", "ledger"))
    assert (null, missing) == ({"id": "3", "title": None}, {"id": "3"})
    null, missing = (shop("page", "shop", name, *columns).out.splitlines()[3] for name in ("orders", "ledger"))
    assert (null.split(), missing.split()) == (["3", "null"], ["3"])


def test_a_description_says_what_can_be_done_and_why_not(shop):
    lines = shop("describe", "shop", "books").out.splitlines()
    assert lines[0].split() == ["COLUMN", "TYPE", "FLAGS", "OPERATORS"]
    assert "id keyword key read-only" in " ".join(lines[1].split())
    assert {"no sort on title: text", "no match any on title: it is analysed"} <= {*lines}
    assert shop("describe", "shop", "books", "--structure").out == '{"mappings":\n{}}\n'
    assert shop("describe", "shop", "books", "--json").json["columns"][0]["role"] == "key"


def test_the_console_shows_a_table_as_csv(shop):
    assert shop("console", "shop", "GET /table", "--format", "csv").out == 'id,title\n1,"a,b"\n2,\n'


def test_the_console_formats_json_with_its_digits_untouched(shop):
    assert shop("console", "shop", "GET /x").out == '{\n  "n": 1.10000000000000000001,\n  "path": "/x"\n}\n'
    answer = shop("console", "shop", "GET /x", "--json")
    assert '"body":{"n":1.10000000000000000001,' in answer.out
    assert shop("console", "shop", "GET /x", "--format", "ndjson").out == '{"n":1.10000000000000000001,"path":"/x"}\n'


def test_an_answer_that_is_no_table_is_no_csv(shop):
    """Whether it is JSON, text or several parts; what an error says is not CSV either."""
    for path in ("/x", "/text"):
        done = shop("console", "shop", f"GET {path}", "--format", "csv", code=1)
        assert done.out == ""
        assert "the answer is not a table: leave out --format csv" in done.err
    done = shop("console", "shop", "GET /missing", "--format", "csv", code=1)
    assert done.out == ""
    assert "no such thing" in done.err
    assert shop("console", "shop", "GET /several", "--format", "csv", code=1).out.startswith("id\n1\n")


def test_aggregations_are_tables_when_asked_and_json_otherwise(shop):
    assert shop("console", "shop", "GET /buckets").out.startswith("{")
    for more in ([], ["--quiet"]):
        done = shop("console", "shop", "GET /buckets", "--table", *more)
        assert done.out == "by title\nid    title\na\\tb      2\nby id\nid\nc\n"
    assert shop("console", "shop", "GET /buckets", "--format", "csv").out == "id,title\na\tb,2\n\nid\nc\n"
    assert shop("console", "shop", "GET /buckets", "--format", "tsv").out == 'id\ttitle\n"a\tb"\t2\n\nid\nc\n'
    found = shop("console", "shop", "GET /buckets", "--table", "--json").json["answers"][0]
    assert (found["title"], found["page"]["rows"]) == ("by title", [{"id": "a\tb", "title": 2}])
    done = shop("console", "shop", "GET /x", "--table", code=1)
    assert "the answer is not a table: leave out --table" in done.err


def test_a_file_shows_whole_answers_when_asked(shop, tmp_path):
    file = tmp_path / "smoke.es"
    file.write_text("GET /table\n# expect status 200\nGET /buckets\n")
    assert [line.split()[-1] for line in shop("console", "shop", "-f", file).out.splitlines()] == ["ok", "ok"]
    done = shop("console", "shop", "-f", file, "--bodies")
    assert done.out.startswith("id  title\n1   a,b\n")
    assert '"path": "/buckets"' in done.out
    assert "2 GET /buckets  200" in done.err
    done = shop("console", "shop", "-f", file, "--format", "csv")
    assert done.out == 'id,title\n1,"a,b"\n2,\n\nid,title\na\tb,2\n\nid\nc\n'


@pytest.mark.parametrize(
    ("words", "method", "path"),
    [
        ("page shop books --filter 'price >= 1' --sort price", "POST", "/books/_search"),
        ("count shop books", "POST", "/books/_count"),
        ("console shop 'GET /x'", "GET", "/x"),
        ("insert shop books --set title=x --id 9", "PUT", "/books/_doc/9"),
        ("update shop books 1 --set title=x", "POST", "/books/_update/1?refresh"),
        ("delete shop books 1", "DELETE", "/books/_doc/1"),
        ("drop shop books", "DELETE", "/books"),
    ],
)
def test_what_a_command_would_send_is_a_command_of_curl(shop, words, method, path):
    words = shlex.split(words)
    done = shop(*words, "--as-curl")
    assert shlex.split(done.out)[:4] == ["curl", "-X", method, f"http://localhost:7700{path}"]
    assert len(done.out.splitlines()) == 1
    [request] = shop(*words, "--as-curl", "--json").json["requests"]
    assert (request["method"], request["path"], request["curl"]) == (method, path, done.out.strip())


def test_commands_of_curl_write_nothing_and_read_no_page(shop):
    shop("delete", "shop", "books", "2", "--as-curl")
    assert shop("count", "shop", "books").out == "3\n"
    assert "--last" in shop("page", "shop", "books", "--last", "--as-curl", code=2).err
    assert "'boks' (did you mean books?)" in shop("page", "shop", "boks", "--as-curl", code=1).err


def test_what_reads_like_an_expectation_and_is_none_is_said(shop):
    text = "GET /x\n# expects status 404\n"
    done = shop("console", "shop", text)
    assert "note[expectation-like]: line 2: '# expects status 404' is a comment that checks nothing" in done.err
    [note] = shop("console", "shop", text, "--json").json["notes"]
    assert note["code"] == "expectation-like"
    assert "note" not in shop("console", "shop", "GET /x\n# expect status 200\n").err


def test_an_answer_of_plain_text_is_piped_as_it_is(shop):
    assert shop("console", "shop", "GET /text").out == "plain \x1b[31mred\n"


def test_a_failed_request_is_shown_and_fails_the_command(shop):
    done = shop("console", "shop", "GET /missing", code=1)
    assert "no such thing" in done.out
    assert done.err == "  1 GET /missing  404\n"


def test_a_partial_answer_is_said_beside_its_data(shop):
    assert shop("console", "shop", "GET /partial").err == "  note[partial]: one shard failed\n"


def test_a_file_of_requests_is_told_line_by_line_and_stops_when_asked(shop, tmp_path):
    file = tmp_path / "smoke.es"
    file.write_text("GET /x\n\nGET /missing\nGET /y\n")
    lines = shop("console", "shop", "-f", file, "--stop-on-error", code=1).out.splitlines()
    assert lines[0].split() == ["1", "GET", "/x", "200", "ok"]
    assert lines[1].split()[:5] == ["2", "GET", "/missing", "404", "FAILED"]
    assert lines[1].endswith(f"{file}:3")
    assert len(lines) == 2
    assert len(shop("console", "shop", "-f", "-", typed=file.read_text(), code=1).out.splitlines()) == 3


SMOKE = """# what must hold
GET /${what}      # expect status 200
GET /missing
# expect status 404
GET /y
# expect n >= 2
# expect path = /y
# expect path contains z
GET /several
GET /z
"""


def test_a_file_is_held_to_what_it_expects(shop, tmp_path):
    file = tmp_path / "smoke.es"
    file.write_text(SMOKE)
    lines = shop("console", "shop", "-f", file, "--var", "what=x", code=1).out.splitlines()
    assert [line.split("  ")[0] for line in lines if line[0] != " "] == [
        "1 GET /x", "2 GET /missing", "3 GET /y", "4 GET /several", "5 GET /z",
    ]  # fmt: skip
    assert [line.split()[-1] for line in lines] == ["ok", "ok", f"{file}:6", f"{file}:8", f"{file}:9", "ok"]
    assert f"200  FAILED  expect n >= 2, got 1.10000000000000000001   {file}:6" in lines[2]
    assert lines[3].split("  ")[-1] == f'expect path contains z, got "/y"   {file}:8'.split("  ")[-1]
    assert "FAILED  1 of 2 failed   " in lines[4]
    stopped = shop("console", "shop", "-f", file, "--var", "what=x", "--stop-on-error", code=1).out.splitlines()
    assert [line.split()[0] for line in stopped] == ["1", "2", "3", "FAILED"]


def test_a_file_that_is_run_for_a_program_is_one_document(shop, tmp_path):
    file = tmp_path / "smoke.es"
    file.write_text(SMOKE)
    found = shop("console", "shop", "-f", file, "--var", "what=x", "--json", code=1).json
    assert (found["requests"], found["failed"]) == (5, 2)
    assert [each["line"] for each in found["answers"]] == [2, 3, 5, 9, 10]
    third, fourth = found["answers"][2:4]
    assert [(each["line"], each["holds"]) for each in third["expectations"]] == [(6, False), (7, True), (8, False)]
    assert third["failures"][1] == {"reason": 'expect path contains z, got "/y"', "line": 8}
    assert fourth["failures"] == [{"reason": "1 of 2 failed", "line": 9}]
    assert (fourth["title"], [part["title"] for part in fourth["more"]]) == ("first", ["second"])
    assert fourth["more"][0]["page"]["rows"] == [{"id": "2"}, {"id": "3"}]


def test_what_was_answered_is_reported_when_the_server_is_lost(shop, tmp_path):
    file = tmp_path / "smoke.es"
    file.write_text("GET /x\nGET /lost\nGET /y\n")
    done = shop("console", "shop", "-f", file, "--json", code=3)
    assert json.loads(done.err)["error"]["code"] == "connection-failed"
    assert [each["request"]["path"] for each in done.json["answers"]] == ["/x"]
    assert done.json["requests"] == 3
    file.write_bytes(b"GET /\xff")
    assert "Traceback" not in shop("console", "shop", "-f", file, code=2).err


def test_an_answer_of_several_parts_is_shown_part_by_part_and_can_have_failed(shop):
    done = shop("console", "shop", "GET /several", code=1)
    assert done.out == "first\nid\n1\nsecond\nid\n2\n3\n"
    assert done.err == "  1 GET /several  200\n  failed: 1 of 2 failed   line 1\n"
    assert shop("console", "shop", "GET /several", "--format", "csv", code=1).out == "id\n1\n\nid\n2\n3\n"


def test_what_cannot_be_filled_in_or_expected_sends_nothing(shop, tmp_path):
    file = tmp_path / "smoke.es"
    for text, code in {
        "GET /a\nGET /${no}": "variable-unknown",
        "GET /a\n# expect much": "expectation-syntax",
        "# expect status 200\nGET /a": "expectation-syntax",
    }.items():
        file.write_text(text)
        done = shop("console", "shop", "-f", file, code=2)
        assert f"error[{code}]" in done.err
        assert done.out == "", "a request that is answered has a line"
    assert "NAME=VALUE" in shop("console", "shop", "GET /a", "--var", "a b=1", code=2).err
    assert shop("console", "shop", "GET /a", "--var", "unused=1").code == 0


def test_the_console_wants_either_a_text_or_a_file(shop):
    assert "error[usage]: use either TEXT or -f FILE" in shop("console", "shop", code=2).err
