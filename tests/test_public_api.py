"""What a person imports from `dragoman`: the names are complete, and their signatures keep the house's rules."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import dragoman
import dragoman.extending
import dragoman_api
import dragoman_dask

BY_POSITION = {
    "Http.request": 2,  # method and path, as every HTTP client takes them
    "Http.stream": 2,
    "Http.post_json": 2,  # path and body
    "Rows.cell": 2,  # which row, which column
    "BlockingSession.cell": 2,
    "BlockingSession.summarize": 2,
    "BlockingSession.complete": 2,
    "Session.summarize": 2,  # which object, which column
    "Session.complete": 2,  # a text and a place in it
    "ChangeSet.__init__": 2,  # on which connection, which file
    "load": 2,  # into which connection, into which object
    "plan_copy": 3,  # which rows, into which connection, into which object
    "Row.__init__": 3,  # made by Page.rows, a thousand times a page
}


def functions() -> list[tuple[str, object]]:
    """Return every public function, and every public method of a public class, by a name to read."""
    found = {}
    for package in (dragoman, dragoman_api):
        for name in package.__all__:
            thing = getattr(package, name)
            if inspect.isfunction(thing):
                found[name] = thing
            for member, value in inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else ():
                own = (value.__module__ or "").startswith("dragoman")
                if own and (member == "__init__" or not member.startswith("_")):
                    found[f"{name}.{member}"] = value
    found.pop("hookimpl", None)
    return sorted(found.items())


NAMES = [name for name, _ in functions()]


def test_the_names_are_sorted_complete_and_all_there():
    assert dragoman.__all__ == sorted(dragoman.__all__, key=lambda name: (name.islower(), name))
    assert set(dragoman.__all__) == set(dragoman._HOME)
    assert all(getattr(dragoman, name) is not None for name in dragoman.__all__)


def test_type_checkers_see_the_names_that_a_program_gets():
    [block] = [node for node in ast.parse(Path(dragoman.__file__).read_text()).body if isinstance(node, ast.If)]
    seen = {}
    for node in ast.walk(block):
        if isinstance(node, ast.ImportFrom):
            seen |= {name.name: f"dragoman.{node.module}" if node.level else node.module for name in node.names}
    assert seen == dragoman._HOME


def test_names_that_both_packages_give_are_the_same():
    for name in set(dragoman.__all__) & set(dragoman_api.__all__):
        assert getattr(dragoman, name) is getattr(dragoman_api, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'dragoman' has no attribute 'attach'"):
        _ = dragoman.attach


@pytest.mark.parametrize(("name", "function"), functions(), ids=NAMES)
def test_what_is_public_is_documented_and_annotated(name, function):
    if not name.endswith("__init__"):
        assert inspect.getdoc(function)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    bare = [
        item.name for item in signature.parameters.values() if item.annotation is item.empty and item.name != "self"
    ]
    assert not bare


@pytest.mark.parametrize(("name", "function"), functions(), ids=NAMES)
def test_arguments_after_the_first_are_keyword_only(name, function):
    taken = [item for item in inspect.signature(function).parameters.values() if item.name != "self"]
    assert not [item.name for item in taken if item.kind is item.VAR_KEYWORD], "takes whatever it is given"
    positional = [item for item in taken if item.kind is item.POSITIONAL_OR_KEYWORD]
    assert len(positional) <= BY_POSITION.get(name, 1)
    assert not [item.name for item in positional if item.annotation in ("bool", bool)]


@pytest.mark.parametrize("method", ["objects", "describe", "plan", "apply", "console", "ping"])
def test_a_session_is_asynchronous_throughout(method):
    assert inspect.iscoroutinefunction(getattr(dragoman.Session, method))


@pytest.mark.parametrize("method", ["page", "count", "cell", "summarize", "explain", "export", "table", "split"])
def test_every_read_of_rows_is_asynchronous(method):
    assert inspect.iscoroutinefunction(getattr(dragoman.Rows, method))


def test_there_are_no_synchronous_twins():
    assert not [name for name in vars(dragoman.Session) if name.endswith(("_sync", "_async"))]


CHOICE = set(inspect.signature(dragoman.Session.rows).parameters) - {"self", "object"}
"""The arguments that choose rows."""
CONTENT = set(dragoman.FileFormat.__struct_fields__) - {"format"} | {"compress", "escape_formulas"}
"""What a file is; a signature takes all of it as its `format`."""
RECEIVER = {"load": {"tenant"}, "BlockingSession.load": {"tenant"}}
"""Where the word says what receives rows, not which are read."""


def signatures() -> dict[str, set[str]]:
    """Return the parameters of everything public, of the distributions beside the host as well, by a name to read."""
    found = {}
    for package in (dragoman, dragoman_api, dragoman.extending, dragoman_dask):
        for name in package.__all__:
            value = getattr(package, name)
            members = inspect.getmembers(value) if inspect.isclass(value) else [("", value)]
            for member, function in members:
                if inspect.isfunction(function) and (member == "__init__" or not member.startswith("_")):
                    found[f"{name}.{member}".rstrip(".")] = {*inspect.signature(function).parameters}
    return found


def test_rows_are_chosen_in_one_place_and_what_a_file_is_is_one_value():
    choosing = {name for name, parameters in signatures().items() if parameters >= CHOICE}
    assert choosing == {"Session.rows", "BlockingSession.rows"}
    strays = {
        name: stray
        for name, parameters in signatures().items()
        if name not in choosing and (stray := parameters & (CHOICE | CONTENT) - RECEIVER.get(name, set()))
    }
    assert not strays, strays
