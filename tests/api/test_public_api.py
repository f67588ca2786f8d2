"""What an author imports: names, documentation, errors."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman_api
from dragoman_api import errors
from dragoman_api.hookspecs import PROJECT, AutomationSpec, DriverSpec
from dragoman_api.remedies import Remedy

MODULES = [
    importlib.import_module(each.name)
    for each in pkgutil.walk_packages(dragoman_api.__path__, "dragoman_api.")
    if not each.name.startswith("dragoman_api.testing")
]


HOOKS = [
    hook for spec in (DriverSpec, AutomationSpec) for hook in vars(spec).values() if hasattr(hook, f"{PROJECT}_spec")
]
PARTS = ["The host guarantees", "Args", "Returns", "Yields", "Raises", "*When it is called*"]


def kinds() -> list[type[errors.DragomanError]]:
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.DragomanError)]


# names ----------------------------------------------------------------------------------------------------------------


def test_the_public_names_are_sorted_complete_and_at_most_sixty():
    names = dragoman_api.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name))
    assert len(names) == len(set(names)) <= 60
    assert {*names} == {*dragoman_api._HOME}
    for name in names:
        assert getattr(dragoman_api, name) is not None


def test_type_checkers_see_the_names_that_a_program_gets():
    [block] = [node for node in ast.parse(Path(dragoman_api.__file__).read_text()).body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module for node in ast.walk(block) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == dragoman_api._HOME


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'Nothing'"):
        _ = dragoman_api.Nothing


def test_importing_the_api_pays_for_nothing():
    code = "import sys, dragoman_api; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"aiohttp", "msgspec", "anyio", "pluggy", "asyncio"} & {*loaded}


def test_only_the_http_client_and_the_proxy_of_tests_import_aiohttp():
    root = Path(dragoman_api.__file__).parent
    importing = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"^\s*(import|from) aiohttp", path.read_text(), re.MULTILINE)
    ]
    assert sorted(importing) == ["_transport.py", "http.py", "testing/proxy.py"]


# documentation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_everything_public_is_documented(module):
    assert module.__doc__
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name
        if inspect.isclass(value):
            for member, method in vars(value).items():
                function = method.fget if isinstance(method, property) else method
                implements = hasattr(function, f"{PROJECT}_impl")  # the specification documents a hook
                if not member.startswith("_") and inspect.isfunction(function) and not implements:
                    assert function.__doc__, f"{name}.{member}"


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.__name__)
def test_a_hook_says_what_it_takes_gives_and_raises_and_when_it_is_called(hook):
    text = inspect.getdoc(hook)
    assert re.match(r"[A-Z][^\n]*[.:]", text), "the first line is a sentence"
    sections = re.findall(rf"^({'|'.join(map(re.escape, PARTS))}):", text, re.MULTILINE)
    assert sections == [each for each in PARTS if each in sections], "each part once, in the order of the house"
    assert sections[-1] == "*When it is called*"
    parameters = [name for name in inspect.signature(hook).parameters if name != "self"]
    documented = re.search(r"^Args:\n((?: {4}.*\n)+)", text, re.MULTILINE)
    assert documented or hook.__name__ == "count_rows" or not parameters
    if documented:
        assert re.findall(r"^ {4}(\w+):", documented[1], re.MULTILINE) == parameters
    gives = "Yields" if inspect.isasyncgenfunction(hook) else "Returns"
    assert (gives in sections) is (hook.__annotations__["return"] != "None")


def test_docstring_examples_run():
    import doctest

    attempted = 0
    for module in MODULES:
        result = doctest.testmod(module)
        assert result.failed == 0, module.__name__
        attempted += result.attempted
    assert attempted > 0


# errors ---------------------------------------------------------------------------------------------------------------


def test_codes_are_unique_and_in_kebab_case():
    codes = [kind.code for kind in kinds()]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_an_error_survives_its_code(kind):
    remedies = [
        Remedy("edit-field", {"field": "host", "value": "a"}),
        Remedy("edit-field", {"field": "port", "value": 1}),
    ]
    error = kind("it broke", hint="mend it", remedies=remedies, details={"column": "price"})
    again = errors.from_code(error.code, error.message, hint=error.hint, remedies=error.remedies, details=error.details)
    assert type(again) is kind
    assert error.details == {"column": "price"}
    assert [(part["kind"], part["arguments"]["field"]) for part in again.to_dict()["remedies"]] == [
        ("edit-field", "host"),
        ("edit-field", "port"),
    ]
    assert again.to_dict() == error.to_dict()
    assert str(again) == error.message


def test_an_error_that_learns_more_shows_it_as_text_too():
    error = errors.QueryError("there is no column 'titel'")
    error.message += " (did you mean title?)"
    assert str(error) == error.to_dict()["message"] == "there is no column 'titel' (did you mean title?)"


def test_every_surface_can_show_an_error_about_a_text_that_is_not_unicode():
    error = errors.QueryError("no \udcff", hint="name another than \ud800", details={"column": "\udcff", "row": 1})
    json.dumps(error.to_dict(), ensure_ascii=False).encode()
    assert (str(error), error.hint, error.details) == (
        r"no \udcff", r"name another than \ud800", {"column": r"\udcff", "row": 1},
    )  # fmt: skip


def test_an_unknown_code_is_kept():
    error = errors.from_code("quota-spent", "no more")
    assert (type(error), error.code) == (errors.DriverError, "quota-spent")


def test_E39_E40_W36_W37_the_prefixes_of_the_seeds_are_there_once():
    for kind, prefix in (
        (errors.AuthenticationError, "Authentication failed: "),
        (errors.ConnectionFailedError, "Connection failed: "),
    ):
        assert kind("x").message == f"{prefix}x"
        assert kind(f"{prefix}x").message == f"{prefix}x"


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    drawn: dict[str, str | None] = {}
    codes: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in errors.__doc__.splitlines():
        if (match := re.match(r"(?P<lead>[ │├└─]*)(?P<name>[A-Z]\w+)(?:\s+(?P<code>[a-z-]+))?", line)) is None:
            continue
        if not issubclass(getattr(errors, match["name"], int), errors.DragomanError):
            continue
        depth = len(match["lead"])
        above = [(deep, name) for deep, name in above if deep < depth]
        drawn[match["name"]] = above[-1][1] if above else None
        above.append((depth, match["name"]))
        if match["code"]:
            codes[match["name"]] = match["code"]
    real = {kind.__name__: kind.__base__.__name__ if kind is not errors.DragomanError else None for kind in kinds()}
    assert drawn == real
    assert codes == {kind.__name__: kind.code for kind in kinds() if kind is not errors.DragomanError}
