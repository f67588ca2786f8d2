"""Whatever a driver answers, the command line says one clear thing, and the connection lives on."""

from __future__ import annotations

import csv
import inspect
import json
import time

import pytest
from anyio.from_thread import start_blocking_portal
from cli import hostile_driver

from command_line import Machine
from dragoman.cli.options import Options
from dragoman_api.errors import DriverFaultError
from slow_cases import mostly_slow
from wheelhouse import Driver, registry

HOOKS = sorted(name for name, value in vars(hostile_driver.Driver).items() if hasattr(value, "dragoman_impl"))


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """Open one connection to the hostile driver, for all commands of this file."""
    folder = tmp_path_factory.mktemp("hostile")
    wheel = Driver("evil", code=inspect.getsource(hostile_driver), hooks=HOOKS).write(folder / "wheels")
    house = Machine(folder / "home")
    house("registry", "add", registry(folder / "team", [wheel]))
    house("connections", "add", "evil", "--type", "evil", "--host", "127.0.0.1", "--port", "9", "--yes")
    with start_blocking_portal() as portal:
        runtime = Options(home=str(house.home)).runtime()
        with portal.wrap_async_context_manager(runtime), portal.wrap_async_context_manager(runtime.open("evil")) as one:
            yield house.beside(shared=one, portal=portal, runtime=runtime)


def lives(evil):
    return evil("page", "evil", "plain").out.split() == ["a", "x"]


@pytest.mark.slow
def test_columns_named_to_resemble_each_other_do_not_hold_up_an_error(evil):
    began = time.perf_counter()
    assert "error[query-failed]: there is no such column" in evil("page", "evil", "near", code=1).err
    assert time.perf_counter() - began < 15


@pytest.mark.slow
def test_a_driver_cannot_fail_as_the_host_nor_advise_for_it(evil):
    err = evil("page", "evil", "trust", code=1).err
    assert err.splitlines() == [
        "error[driver-error]: the driver raised trust-failed, which only the host may raise: it was changed",
        "    |   try: rm -rf /",
        "  the driver suggests: dragoman registry add https://evil.example",
    ]
    told = json.loads(evil("--json", "page", "evil", "trust", code=1).err)["error"]
    assert (told["code"], told["hint_from"]) == ("driver-error", "driver")


def test_the_states_of_a_driver_are_short_and_harmless_and_its_nodes_bounded(evil):
    out = evil("objects", "evil").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "STATE" in out.splitlines()[0]
    assert max(map(len, out.splitlines())) < 400
    tested = evil("connections", "test", "evil")
    assert "\x1b" not in tested.out
    assert "\u202e" not in tested.out
    assert tested.out.splitlines()[1].split() == ["NODE", "STATE", "VERSION", "ROWS", "DISK", "ROLES"]
    assert len(tested.out.splitlines()) == 1_002
    assert "4,000 more nodes" in tested.err
    assert len(evil("--json", "connections", "test", "evil").json["status"]["nodes"]) == 1_000


def test_the_hint_of_a_drivers_note_is_marked_everywhere(evil):
    done = evil("page", "evil", "noted")
    assert "  the driver suggests: dragoman that\\n  try: other\n" in done.err
    assert not [line for line in done.err.splitlines() if line.strip().startswith("try:")]
    [note] = evil("--json", "page", "evil", "noted").json["notes"]
    assert note["hint_from"] == "driver"


@pytest.mark.parametrize("way", [["--format", "table"], ["--json"], ["--format", "csv"], ["--format", "ndjson"]])
@pytest.mark.parametrize("name", hostile_driver.CELLS)
def test_any_cell_is_shown_or_refused_clearly_and_the_connection_lives_on(evil, name, way):
    done = evil("page", "evil", name, *way, code=1 if name == "surrogate" else 0)
    assert "internal" not in done.err
    assert ("driver-fault" in done.err) is (name == "surrogate")
    assert not {"\x1b", "\x9b", "\u202e"} & set(done.out) or way[1:] == ["csv"]  # bytes of a pipe are data
    if way == ["--json"] and done.out:
        json.loads(done.out, parse_int=str)
    assert lives(evil)


@pytest.mark.slow
def test_an_integer_that_nobody_can_print_is_the_drivers_fault(evil):
    assert "error[driver-fault]" in evil("page", "evil", "toolong", code=1).err
    assert lives(evil)


@pytest.mark.parametrize("name", ["deep", "long", "escapes", "liar"])
def test_a_single_cell_is_whole_whatever_it_is(evil, name):
    assert evil("cell", "evil", name, "1", "a").out == f"{hostile_driver.CELLS[name]}\n"
    json.loads(evil("--json", "cell", "evil", name, "1", "a").out, parse_int=str)
    assert lives(evil)


def test_a_console_answer_that_nests_deeply_is_shown_as_text(evil):
    assert hostile_driver.DEEP in evil("console", "evil", "GET /").out
    evil("--json", "console", "evil", "GET /")
    assert lives(evil)


def test_an_explanation_of_a_row_that_is_not_there_is_the_drivers_fault(evil):
    err = evil("page", "evil", "plain", "--filter", "a = 1", "--explain", code=1).err
    assert "error[driver-fault]: the driver explained row 7 of a filter of 1 rows" in err


EXPORTS = [
    (name, shape)
    for name in ("deep", "digits", "far", "minus", "text", "list", "half", "keys")
    for shape in ("documents", "csv", "parquet")
]


@pytest.mark.parametrize(
    ("name", "shape"), mostly_slow(EXPORTS, fast=[case for case in EXPORTS if case != ("keys", "parquet")])
)
@pytest.mark.slow
def test_any_row_is_exported_or_refused_clearly(evil, tmp_path, name, shape):
    """Documents pass untouched, whatever they are; tables need rows that can be read."""
    readable = name in ("digits", "far", "minus", "keys") or shape == "documents" or (name, shape) == ("text", "csv")
    file = tmp_path / "out"
    done = evil("export", "evil", name, "-o", file, "--format", shape, code=0 if readable else 1)
    assert "internal" not in done.err
    assert file.exists() is readable
    if not readable:
        assert "error[export-failed]: a row" in done.err
    elif shape == "documents":
        assert file.read_bytes() == hostile_driver.ROWS[name]
    elif name == "digits" and shape == "csv":
        assert "7" * 5_000 in file.read_text()


FORMULAS = ["=1+1", "+cmd|x", "@x\ty", "\t=1"]
OTHERS = ["-5", "-5", "x"]


@pytest.mark.parametrize("escape", [False, True])
def test_cells_of_an_export_that_begin_a_formula_are_counted_and_guarded_if_asked(evil, tmp_path, escape):
    file = tmp_path / "out.csv"
    done = evil("export", "evil", "formulas", "-o", file, *(["--escape-formulas"] if escape else []))
    cells = [row[0] for row in csv.reader(file.read_text().splitlines()[1:])]
    assert sorted(cells) == sorted([*((f"'{each}" if escape else each) for each in FORMULAS), *OTHERS])
    code = "formulas-escaped" if escape else "formulas-kept"
    assert f"note[{code}]: 4 cells begin like a formula" in done.err
    assert ("hint: --escape-formulas" in done.err) is not escape
    notes = json.loads((tmp_path / "out.csv.manifest.json").read_text())["notes"]
    assert [note["code"] for note in notes] == [code]


@pytest.mark.parametrize("escape", [False, True])
def test_cells_of_a_page_that_begin_a_formula_are_counted_and_guarded_if_asked(evil, escape):
    done = evil("page", "evil", "formula", "--format", "csv", *(["--escape-formulas"] if escape else []))
    assert done.out == ("a\n'=1+1\n" if escape else "a\n=1+1\n")
    assert f"note[{'formulas-escaped' if escape else 'formulas-kept'}]: 1 cell begins like a formula" in done.err


def test_formulas_are_escaped_in_csv_and_tsv_alone(evil, tmp_path):
    err = evil("export", "evil", "formulas", "-o", tmp_path / "x.ndjson", "--escape-formulas", code=2).err
    assert "error[configuration-invalid]: only CSV and TSV files " in err
    assert "the format is documents" in err


@pytest.mark.parametrize(("name", "value"), [("digits", "7" * 5_000), ("far", "1e99999999999999999999")])
def test_rows_of_a_script_keep_their_digits(evil, name, value):
    async def rows():
        return [row async for row in evil.shared.rows(name)]

    assert [str(row["a"]) for row in evil.portal.call(rows)] == [value]


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ("more", "claims 1,000 rows for a part that has 1 lines"),
        ("none", "claims 0 rows for a part that has 1 lines"),
        ("torn", "ends inside a line"),
        ("blank", "has an empty line"),
        ("stuck", "checkpoint did not advance"),
    ],
)
@pytest.mark.parametrize("shape", ["documents", "csv"])
def test_an_export_is_what_its_driver_says_or_it_is_none(evil, tmp_path, shape, lie, said):
    file = tmp_path / "out"
    err = evil("export", "evil", f"far-{lie}", "-o", file, "--format", shape, code=1).err
    assert "error[driver-fault]" in err
    assert said in err
    assert not file.exists()


def test_a_limit_of_rows_holds_whatever_a_driver_counts(evil):
    async def rows():
        return [row async for row in evil.shared.rows("far-none")]

    with pytest.raises(DriverFaultError, match="claims 0 rows for a part that has 1 lines"):
        evil.portal.call(rows)


def test_rows_that_were_counted_and_did_not_come_are_said(evil, tmp_path):
    file = tmp_path / "out.ndjson"
    done = evil("export", "evil", "far-total", "-o", file)
    assert "note[rows-differ]: 100 rows were counted beforehand, but 1 arrived" in done.err
    manifest = json.loads((tmp_path / "out.ndjson.manifest.json").read_text())
    assert manifest["rows"] == 1
    assert [note["code"] for note in manifest["notes"]] == ["rows-differ"]
