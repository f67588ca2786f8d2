"""The tool that changes modules finds what tests miss, and the tests of modules that decide miss little."""

from __future__ import annotations

import ast
import gc
import importlib.util
import itertools
import json
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from types import FunctionType
from typing import TYPE_CHECKING

import pytest

from bundled_drivers import PACKAGES

pytest.importorskip("cosmic_ray")

from tests.mutants.__main__ import Record
from tests.mutants.accepted import accepted
from tests.mutants.bench import exchange
from tests.mutants.mutating import function_at, mutants, sample
from tests.mutants.table import INSTALLED, ROOT, file_of, holding
from tests.mutants.trying import Failed, Trial, Watched, attempt, benches, watch

from thorough import THOROUGH

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SAMPLE = 20 if THOROUGH else 6

FAST = (
    "dragoman_querydsl.protocol",
    "dragoman_registry.client.lockfile",
    "dragoman_weaviate.console_text",
    "dragoman_weaviate.protocol",
)
"""Modules whose tests take a second or two."""

IDLE = '''\
"""A text: code."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, overload

if TYPE_CHECKING:
    LIMIT = 3

log = logging.getLogger("idle")
T = TypeVar("T")
Value = dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Idle:
    """A text."""

    __slots__ = ("a", "b")
    size: int | None

    @overload
    def get(self, name: "str | int") -> int | None: ...


def tell(value: int | None) -> str | None:
    assert value is not None
    log.warning("careful")
    return None
'''

DECIDES = """\
def judge(value, names):
    found = []
    for name in names:
        if name in value and len(name) <= 3:
            found.append(name)
    if not found:
        raise ValueError("nothing there")
    return {"must": found[:-1]}
"""


def changes(source: str) -> set[tuple[str, str]]:
    return {(each.operator, each.change[1]) for each in mutants("a.b", source) if each.code is not None}


def test_what_decides_nothing_is_left_alone():
    assert changes(IDLE.replace('"idle"', "__name__")) == set()


def test_what_decides_is_changed():
    found = changes(DECIDES)
    assert ("TurnMembership", "if name not in value and len(name) <= 3:") in found
    assert ("ReplaceComparisonOperator_LtE_Lt", "if name in value and len(name) < 3:") in found
    assert ("ReplaceAndWithOr", "if name in value or len(name) <= 3:") in found
    assert ("ZeroIterationForLoop", "for name in []:") in found
    assert ("DropStatement", "pass") in found
    assert ("ReplaceWord", 'return {"mutant": found[:-1]}') in found
    assert ("ReturnNothing", "return None") in found
    assert not any("nothing there" not in after and "ValueError" in after for _, after in found)  # for people


FORGETFUL = """\
NAMES = ("a", "b", "c")

async def act(hosts, journal, saved):
    for host in hosts:
        await journal.write(host, kind="act", hint="try")
        await host.send()
    if (saved.host, saved.port) == (host.host, host.port) and saved.tls is not None:
        return {"host": 1, "port": 2, **saved}
    sent = await host.send()
    await journal.write(sent)
    return [name for name in NAMES]
"""


def test_faults_that_people_make_are_changes_too():
    found = {(operator, after) for operator, after in changes(FORGETFUL)}
    for operator, after in (
        ("DropElement", 'NAMES = ( "b", "c")'),
        ("DropElement", 'NAMES = ("a", "b",)'),
        ("DropElement", 'return { "port": 2, **saved}'),
        ("DropElement", 'return {"host": 1, "port": 2,}'),
        ("TakeFirst", "for host in [*hosts][:1]:"),
        ("TakeFirst", "return [name for name in [*NAMES][:1]]"),
        ("DropCondition", "if ( saved.port,) == ( host.port,) and saved.tls is not None:"),
        ("DropCondition", "if (saved.host,) == (host.host,) and saved.tls is not None:"),
        ("DropCondition", "if (saved.host, saved.port) == (host.host, host.port):"),
        ("DropCondition", "if saved.tls is not None:"),
        ("TakeEmptyForMissing", "if (saved.host, saved.port) == (host.host, host.port) and (saved.tls):"),
        ("IgnoreField", 'await journal.write(host, hint="try")'),
        ("SwapSteps", "await host.send()"),
    ):
        assert (operator, after) in found
    assert ("IgnoreField", 'await journal.write(host, kind="act")') not in found  # a person reads it
    assert sum(operator == "SwapSteps" for operator, _ in found) == 1  # the second pair needs the first one's name


def test_a_word_is_changed_only_where_no_sentence_surrounds_it():
    source = "def name(folder, at):\n    return f'{folder}/x-{at}.json', f'It is in {folder}.', 'the end', 'end'\n"
    found = {after for operator, after in changes(source) if operator == "ReplaceWord"}
    line = source.splitlines()[1].strip()
    assert found == {line.replace(word, f"{before}mutant") for before, word in (("}", "}/x-"), ("}", "}.json"))} | {
        line.replace("'end'", "'mutant'")
    }


def test_every_module_and_test_of_the_table_is_there():
    assert [file_of(module) for module in holding()]
    assert not [test for tests in holding().values() for test in tests if not (ROOT / test).is_file()]
    assert not [module for module, tests in holding().items() if not tests]


def test_every_module_of_the_table_is_imported_from_a_folder_that_a_copy_puts_first():
    """Otherwise tests would import the unchanged module of the environment, and every change would survive."""
    drivers = [folder.relative_to(ROOT).as_posix() for folder in PACKAGES.values()]  # which tests/conftest.py adds
    first = tuple(f"{folder}/" for folder in (*INSTALLED, *drivers))
    assert [module for module in holding() if not file_of(module).startswith(first)] == []


@pytest.mark.slow
def test_a_mutant_is_python_and_differs():
    module = "dragoman_weaviate.graphql"  # it has a `match`, which Cosmic Ray's parser does not know
    source = (ROOT / file_of(module)).read_text(encoding="utf-8")
    drawn = list(islice(sample([mutants(module, source)], seed=1), 30))
    assert len(drawn) == 30
    for each in drawn:
        assert each.code is not None
        assert ast.dump(ast.parse(each.code)) != ast.dump(ast.parse(source))


def test_a_longer_sample_begins_with_the_shorter_and_takes_every_module_in_turn():
    populations = [mutants(name, DECIDES) for name in ("a", "b", "c")]
    long = [each.key for each in islice(sample(populations, seed=4), 12)]
    assert [each.key for each in islice(sample(populations, seed=4), 6)] == long[:6]
    assert [key[0] for key in long] == ["a", "b", "c"] * 4
    assert long != [each.key for each in islice(sample(populations, seed=5), 12)]


def test_without_a_trial_there_is_no_score(tmp_path: Path):
    words = [sys.executable, "-m", "tests.mutants", "dragoman_registry.files", "--sample=0", "--json"]
    done = subprocess.run([*words, f"--record={tmp_path / 'mutants.json'}"], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["score"] is None


def test_jobs_keep_what_they_find_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "monotonic", itertools.count(0, 60).__next__)  # so that each trial is written at once
    (mutant, *_), record = mutants("x", "def f(a):\n    return a < 3\n"), Record(tmp_path / "kept.json")
    trial = Trial(mutant=mutant, outcome="killed", killer="", seconds=1.0)
    with ThreadPoolExecutor(8) as jobs:
        kept = [jobs.submit(record.keep, trial, ()) for _ in range(400)]
    assert [each.exception() for each in kept] == [None] * 400
    assert Record(tmp_path / "kept.json").find(mutant, ()) == trial


def test_a_line_is_in_the_function_that_python_names():
    source = "A = 1\nclass B:\n    def c(self):\n        def d():\n            return 1\n        return d\n"
    assert [function_at(source, line) for line in (1, 3, 5)] == ["", "B.c", "B.c"]


@pytest.mark.slow
def test_every_accepted_survivor_is_still_a_mutant():
    sources = {each.module: (ROOT / file_of(each.module)).read_text(encoding="utf-8") for each in accepted()}
    found = {module: mutants(module, source) for module, source in sources.items()}
    for each in accepted():
        lines = sources[each.module].splitlines()
        fitting = [mutant for mutant in found[each.module] if mutant.operator == each.operator]
        fitting.sort(key=lambda mutant, each=each, lines=lines: lines[mutant.line - 1].strip() != each.line)
        assert any(each.is_that(mutant) for mutant in fitting), each  # each mutant made costs a second at worst


def test_a_change_is_tried_with_the_tests_that_call_it_and_those_whose_calls_are_unseen():
    def seen(**calls: list[str]) -> dict[str, object]:
        return {"tests": {name: {"seconds": len(name), "calls": {"m.py": each}} for name, each in calls.items()}}

    known = Watched(
        files={"one": seen(aaa=["f", "g"], bb=["f"], c=[]), "two": seen(dd=["f"], e=["f"]), "three": seen(fff=[], g=[])}
    )

    def chosen(file: str, function: str) -> tuple[list[str], list[str]]:
        first, others = known.chosen(file, function, ["one", "two", "three"])
        return [*first], [*others]

    assert chosen("m.py", "f") == (["e", "bb", "dd", "aaa"], [])
    assert chosen("m.py", "g") == (["aaa"], ["c", "bb"])  # as if it were cached
    assert chosen("m.py", "h") == chosen("m.py", "") == ([], ["c", "e", "g", "bb", "dd", "aaa", "fff"])
    for each in known.files.values():
        for test in each["tests"].values():
            test["calls"]["plugins/m.py"] = test["calls"]["m.py"]
    assert chosen("plugins/m.py", "f") == (["e", "bb", "dd", "aaa"], ["g", "fff"])  # what a process called is unseen


LOADED = """\
LIMIT = 10

def outer(value, least=1):
    def inner():
        return least <= value < LIMIT
    return inner()

def twice(function):
    def call(value):
        return function(value) and function(value)
    return call

class Box:
    @property
    def size(self):
        return 3

    @twice
    def holds(self):
        return self.size > 2
"""


def test_only_a_changed_function_is_exchanged_where_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "loaded_toy.py"
    file.write_text(LOADED)
    spec = importlib.util.spec_from_file_location("loaded_toy", file)
    assert spec is not None
    assert spec.loader is not None
    toy = importlib.util.module_from_spec(spec)

    def functions() -> list[FunctionType]:
        return [value for value in gc.get_objects() if type(value) is FunctionType]

    def changed(before: str, after: str, function: str) -> bool:
        return exchange(str(file), LOADED, LOADED.replace(before, after), function, loaded)

    loaded = functions()

    assert changed("value < LIMIT", "value <= LIMIT", "outer")  # not loaded yet: the file decides
    monkeypatch.setitem(sys.modules, "loaded_toy", toy)
    spec.loader.exec_module(toy)
    gc.unfreeze()
    loaded = functions()
    assert (toy.outer(10), toy.Box().size, toy.Box().holds()) == (False, 3, True)
    assert changed("value < LIMIT", "value <= LIMIT", "outer")
    assert changed("return 3", "return 2", "Box.size")
    assert (toy.outer(10), toy.Box().size, toy.Box().holds()) == (True, 2, False)
    assert changed("self.size > 2", "True", "Box.holds")
    assert toy.Box().holds()
    assert not changed("LIMIT = 10", "LIMIT = 9", "")
    assert not changed("least=1", "least=2", "outer")  # a default is made while the module is loaded


TOY = {
    "runtime/toy.py": """\
        from functools import cache

        LIMIT = 10

        def fits(size):
            if size < LIMIT:
                return "small"
            return "large"

        def name(size):
            return fits(size).upper()

        @cache
        def price(size):
            return 3 if halved(size) < LIMIT else 5

        def halved(size):
            return size // 2
    """,
    "tests/test_toy.py": """\
        import subprocess
        import sys

        import pytest
        import toy

        @pytest.mark.parametrize("limit", [toy.LIMIT])
        def test_the_name_of_a_case_may_hold_what_is_changed(limit):
            assert limit == 10

        def test_a_small_one_is_small():
            assert toy.fits(1) == "small"

        @pytest.fixture(scope="module")
        def shared():
            return toy.name(20)

        def test_a_name_is_there(shared):
            assert shared

        def test_a_name_is_long(shared):
            assert shared.isupper()

        def test_a_price_is_there():
            assert toy.price(12)

        def test_another_price_is_there():
            assert toy.price(6)

        def test_the_price_of_a_small_one_is_3():
            assert toy.price(12) == 3

        def test_another_process_sees_the_same():
            assert subprocess.run([sys.executable, "-c", "import toy; toy.fits(1).lower()"]).returncode == 0
    """,
    "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow', 'live', 'browser']\n",
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, text in TOY.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_weak_test_is_found_and_nothing_is_changed_here(toy: Path):
    file, tests, trials = "runtime/toy.py", Watched(), list[Trial]()
    source = (toy / file).read_text()
    with benches(1, root=toy) as made:
        folder = made[0].folder
        watch(made, {file: ("tests/test_toy.py",)}, tests, root=toy)
        told = tests.files["tests/test_toy.py"]["tests"]
        calling = {
            function: {
                name.partition("::")[2] for name, each in told.items() if function in each["calls"].get(file, ())
            }
            for function in ("name", "halved")
        }
        assert calling == {
            "name": {"test_a_name_is_there", "test_a_name_is_long"},  # by a fixture that they share
            "halved": {"test_a_price_is_there", "test_another_price_is_there", "test_the_price_of_a_small_one_is_3"},
        }
        drawn = sample([mutants("toy", source)], seed=1)
        files = {"toy": (file, ("tests/test_toy.py",))}
        attempt(made, drawn, files=files, tests=tests, told=trials.append, until=time.monotonic() + 240)
        assert (folder / file).read_text() == source
    outcomes = {(each.mutant.operator, each.mutant.change[0]): each.outcome for each in trials}
    assert outcomes["ReplaceWord", 'return "small"'] == "killed"
    assert outcomes["AddNot", "if size < LIMIT:"] == "killed"
    assert outcomes["NumberReplacer", "LIMIT = 10"] == "killed"
    assert outcomes["ReplaceBinaryOperator_FloorDiv_Mul", "return size // 2"] == "killed"
    assert outcomes["ReplaceWord", 'return "large"'] == "survived"
    assert outcomes["ReplaceComparisonOperator_Lt_LtE", "if size < LIMIT:"] == "survived"
    assert (toy / file).read_text() == source
    assert not folder.exists()


@pytest.mark.slow
def test_tests_that_fail_anyway_judge_nothing(toy: Path):
    with (toy / "tests/test_toy.py").open("a") as file:
        file.write("\ndef test_wrong():\n    assert toy.fits(1) == 'large'\n")
    with benches(1, root=toy) as made, pytest.raises(Failed, match="test_wrong"):
        watch(made, {"runtime/toy.py": ("tests/test_toy.py",)}, Watched(), root=toy)


@pytest.mark.slow
def test_watching_ends_in_time_too(toy: Path):
    (toy / "tests/test_toy.py").write_text("import time\n\ndef test_slow():\n    time.sleep(60)\n")
    (toy / "tests/test_later.py").write_text("def test_later():\n    pass\n")
    tests, start = Watched(), time.monotonic()
    with benches(1, root=toy) as made:
        files = {"runtime/toy.py": ("tests/test_toy.py", "tests/test_later.py")}
        watch(made, files, tests, root=toy, until=time.monotonic() + 1)
    assert time.monotonic() < start + 50
    assert not tests.files


@pytest.mark.slow
@pytest.mark.timeout(450)
def test_tests_of_modules_that_decide_notice_a_change(tmp_path: Path):
    limits = [f"--sample={SAMPLE}", "--seconds=360", "--seed=1", "--jobs=1"]
    words = [sys.executable, "-m", "tests.mutants", *FAST, *limits]
    done = subprocess.run(
        [*words, f"--record={tmp_path / 'mutants.json'}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
