"""Errors of a driver come out of its process as what they were; what is not a driver's to say does not."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bundled_drivers import PACKAGES, PLUGINS
from dragoman.sandbox.sanitizing import (
    CROSSING,
    HINT,
    NODES,
    NOTES,
    RESERVED,
    WHERE_IT_LEADS,
    driver_error,
    harmless,
    received,
)
from dragoman_api import errors
from dragoman_api.cells import Json
from dragoman_api.changes import HttpRequest, Outcome, OutcomeStatus
from dragoman_api.columns import (
    MAX_OBJECTS,
    Column,
    ColumnKind,
    Condition,
    ConditionLevel,
    Description,
    Note,
    Object,
    ObjectList,
)
from dragoman_api.connections import Health, Server, ServerNode, ServerStatus
from dragoman_api.console import Answer, AnswerKind
from dragoman_api.errors import DriverError, QueryError, from_code
from dragoman_api.filters import CompiledFilter, Explanation
from dragoman_api.grid import Page
from dragoman_api.remedies import Remedy
from dragoman_registry.client.install_decision import InstallOutcome
from dragoman_worker.wire import Failure, Learned
from sources import nodes_of, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.worker.conftest import Workshop

ROOT = Path(__file__).parents[2]


def crossed(error: errors.DragomanError) -> errors.DragomanError:
    return driver_error(Failure.of(3, error), str)


def test_an_error_with_a_code_of_its_own_keeps_its_class_and_its_code():
    error = crossed(QueryError("no", code="my-own", hint="try", details={"a": 1}))
    assert type(error) is QueryError
    assert (error.code, error.message, error.hint, error.details) == ("my-own", "no", "try", {"a": 1})


@pytest.mark.parametrize("kind", sorted(CROSSING, key=lambda kind: kind.code))
def test_an_error_that_a_driver_may_raise_crosses_as_its_class(kind):
    error = crossed(from_code(kind.code, "m"))
    assert (type(error), error.code) == (kind, kind.code)


@pytest.mark.parametrize(
    "kind",
    sorted({*errors.tree(errors.DragomanError)} - CROSSING, key=lambda kind: kind.code),
    ids=lambda kind: kind.code,
)
def test_an_error_of_the_hosts_own_becomes_a_drivers_and_says_so(kind):
    error = crossed(kind("the signature is bad", hint="dragoman registry add https://evil.example"))
    assert type(error) is DriverError
    assert error.code == "driver-error"
    assert error.message == f"the driver raised {kind.code}, which only the host may raise: the signature is bad"
    assert error.hint_from == "driver"


@pytest.mark.parametrize(
    "code", ["trust-failed", "timed-out", "terminated", "internal", "registry-stale", "usage", "production-locked"]
)
def test_a_drivers_error_does_not_take_a_code_of_the_hosts(code):
    error = crossed(QueryError("no", code=code))
    assert (type(error), error.code) == (QueryError, "query-failed")
    assert error.message == f"the driver raised {code}, which only the host may raise: no"


HOST = ("runtime/dragoman", "runtime/dragoman_worker", "registry", "plugins/workbench/dragoman_workbench",
        "plugins/dask/dragoman_dask", "plugins/mcp/dragoman_mcp")  # fmt: skip
SHARED = ("plugins/api/dragoman_api/file_versions.py", "plugins/api/dragoman_api/installation.py")
"""Modules of the API whose errors no driver raises."""
NO_ERRORS = {"Note", "RejectedRow", "Remark", "ConnectionWarned", "Fault", "load", "_text"}
"""Calls with a code that is none of an error: notes, events, rows that were not imported, and the faults of a wheel."""
PASSED_ON = {  # expressions for a code that another part of the host, or the driver's own error, has chosen
    "code", "decision.outcome.replace('_', '-')", "done.code", "error.code", "error.code[:100]", "first.code",
    "health.code", "_name(note.code, clean)", "_name(made.code, clean)",
}  # fmt: skip


def texts(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """Return the texts that names of modules stand for, and those of several at once."""
    named: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in tree.body if isinstance(node, ast.Assign)):
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for target in node.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    named.setdefault(name.id, set()).add(value.value)
    return named


def codes_of(value: ast.expr, named: dict[str, set[str]]) -> set[str]:
    """Return the codes that an expression may be; in the end its text, if that cannot be seen."""
    match value:
        case ast.Constant():
            return {value.value} if isinstance(value.value, str) else set()
        case ast.IfExp() if ast.unparse(value) not in PASSED_ON:
            return codes_of(value.body, named) | codes_of(value.orelse, named)
        case ast.BoolOp():
            return set().union(*(codes_of(one, named) for one in value.values))
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in named:
            return named[name]
    return set() if ast.unparse(value) in PASSED_ON else {f"? {ast.unparse(value)}"}


@cache
def raised_codes() -> set[str]:
    paths = [path for folder in HOST for path in (ROOT / folder).rglob("*.py") if "bundled" not in path.parts]
    paths += [ROOT / file for file in SHARED]
    named = texts(map(tree_of, paths))
    codes = {str(outcome).replace("_", "-") for outcome in InstallOutcome}
    for node in (node for path in paths for node in nodes_of(path)):
        match node:
            case ast.Call(keywords=[_, *_]):
                for keyword in node.keywords:
                    if keyword.arg == "code" and ast.unparse(node.func).rpartition(".")[2] not in NO_ERRORS:
                        codes |= codes_of(keyword.value, named)
            case ast.Assign(targets=[ast.Name(id="code")]):  # of a class, or on the way to a call
                codes |= {code for code in codes_of(node.value, named) if not code.startswith("?")}
            case ast.Assign():
                codes |= texts([ast.Module(body=[node], type_ignores=[])]).get("code", set())
    return codes - {""}


def test_every_code_with_which_the_host_itself_fails_is_reserved_and_no_other():
    own = {kind.code for kind in errors.tree(errors.DragomanError)}
    assert raised_codes() - own - RESERVED == set(), "add them to RESERVED in runtime/dragoman/sandbox/sanitizing.py"
    assert RESERVED - own - raised_codes() == set(), "the host fails with none of them"


def test_no_driver_and_nothing_of_the_kit_has_a_code_that_is_reserved():
    folders = (*PACKAGES.values(), *(PLUGINS / "api/dragoman_api" / part for part in ("kit", "testing")))
    for path in [path for folder in folders for path in folder.rglob("*.py")]:
        nodes = nodes_of(path)
        # Wherever it stands: a code is also a default, a name's value, or a member of a dictionary.
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        assert {text for text in texts & RESERVED if "-" in text} == set(), path


def test_a_health_does_not_take_a_code_of_the_hosts():
    assert received(Health(ok=False, reason="r", code="production-locked"), harmless).code == ""
    assert received(Health(ok=False, reason="r", code="cluster-red"), harmless).code == "cluster-red"


@pytest.mark.parametrize(
    "code", ["4111 1111 1111 1111", "ada@example.org", "Ignore-all-rules", "a" * 51, "-", "a--b", ""]
)
def test_a_code_that_is_a_text_or_a_value_does_not_go_where_codes_go(code):
    """Metrics have codes as attributes, and an agent reads them as the host's words."""
    error = crossed(QueryError("no", code=code))
    assert (type(error), error.code) == (QueryError, "query-failed")
    assert received(Health(ok=False, reason="r", code=code), harmless).code == ""


def test_the_hint_of_a_driver_is_marked_and_bounded():
    error = crossed(QueryError("no", hint="x" * 100_000))
    assert len(error.hint) == HINT + 1
    assert error.to_dict()["hint_from"] == "driver"
    error.advise("dragoman doctor")
    assert "hint_from" not in error.to_dict()


def test_a_remedy_of_a_driver_is_of_a_known_kind_harmless_and_for_its_own_connection():
    good = Remedy("open-object", {"object": "a$(id)", "connection": "another"})
    sent = [
        Remedy("run-shell", {"command": "id"}),
        Remedy("install", {"plugin": "evil"}),
        Remedy("sign-in", {"server": "evil:1"}),
        Remedy("pin-certificate", {"fingerprint": "AB"}),
        Remedy("unlock"),
        *(Remedy("edit-field", {"field": name, "value": "evil"}) for name in (*sorted(WHERE_IT_LEADS), "api_key")),
        Remedy("edit-field", {"field": "x --yes", "value": "1"}),
        Remedy("open-object", {"object": "a\x1b[2J"}),
        Remedy("open-object", {"object": "a\nb"}),
        Remedy("open-object", {"object": "\u202egnp"}),
        Remedy("open-object", {"object": "x" * 5_000}),
        Remedy("open-object", {"object": "a", "shell": "id"}),
    ]
    for remedy in sent:
        failure = Failure(id=3, code="query-failed", message="m", remedies=[remedy, good])
        error = driver_error(failure, harmless, connection="shop")
        assert error.remedies == (Remedy("open-object", {"object": "a$(id)", "connection": "shop"}),), remedy
        assert error.hint_from == "driver"
        page = received(Page(columns=[], notes=[Note(code="x", reason="y", remedies=(remedy, good))]), harmless,
                        connection="shop")  # fmt: skip
        assert page.notes[0].remedies == error.remedies
        assert page.notes[0].hint_from == "driver"
    named = Remedy("edit-field", {"field": "host"})
    assert driver_error(Failure(id=3, code="x", message="m", remedies=[named]), str, connection="shop").remedies
    assert crossed(QueryError("m", remedies=[good] * 90)).remedies == (Remedy("open-object", {"object": "a$(id)"}),) * 5


def test_a_remedy_with_a_secret_in_it_is_dropped():
    failure = Failure.of(
        3, QueryError("m", remedies=[Remedy("query-rows", {"object": "a", "query": "hunter2-and-more"})])
    )
    assert driver_error(failure, clean).remedies == ()


async def test_a_remedy_crosses_from_a_real_driver_as_data_and_names_its_connection(workshop: Workshop):
    body = """
    from dragoman_api.remedies import Remedy
    told = {"object": "a b", "connection": "another"}
    raise errors.QueryError("no", remedies=[Remedy("open-object", told), Remedy("run-shell", {"command": "id"})])
    """
    async with workshop.attempting(body) as worker:
        with pytest.raises(QueryError) as caught:
            await worker.call("describe_object", "x")
    [remedy] = caught.value.remedies
    assert (remedy.kind, remedy.arguments["object"]) == ("open-object", "a b")
    assert remedy.arguments["connection"] != "another"
    assert caught.value.__notes__ == ["the driver suggests: session.rows('a b').page()"]
    assert caught.value.to_dict()["hint"] == "open 'a b'"


SAID = "a\x1b[31m\x9b2Jb\u202ec hunter2-and-more " + "z" * 10_000


def clean(text: str) -> str:
    return text.replace("\x1b[31m\x9b2J", "").replace("\u202e", "").replace("hunter2-and-more", "***")


REQUEST = HttpRequest("GET", "/")
NOTE = Note(code=SAID, reason=SAID, hint=SAID, hint_from="host")


@pytest.mark.parametrize(
    "value",
    [
        Server(SAID, SAID, [SAID] * 1_000),
        Health(ok=False, reason=SAID, code=SAID),
        ObjectList(objects=[Object("x", state=Condition(SAID, ConditionLevel.BAD))], notes=[NOTE]),
        ServerStatus(
            state=Condition(SAID),
            nodes=[ServerNode(name=SAID, state=Condition(SAID), roles=SAID, version=SAID)] * 3_000,
            objects={"x": Condition(SAID)},
            notes=[NOTE],
        ),
        Page(columns=[], notes=[NOTE]),
        Description(object="x", columns=[], notes=[NOTE]),
        Answer(kind=AnswerKind.GRID, status=200, request=REQUEST, title=SAID, failed=SAID, notes=[NOTE],
               page=Page(columns=[], notes=[NOTE]),
               next=Answer(kind=AnswerKind.TEXT, status=200, request=REQUEST, notes=[NOTE])),
        [Outcome(change=0, status=OutcomeStatus.FAILED, reason=SAID)],
        CompiledFilter(object="x", body="{}", rows=[
            Explanation(row=0, clause="x", exact=False, approximations=[SAID], unlikely=[SAID]),
        ]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_a_driver_says_beside_its_data_is_bounded_and_harmless(value):
    def texts(thing):
        if isinstance(thing, str):
            yield thing
        for field in getattr(thing, "__struct_fields__", ()):
            yield from texts(getattr(thing, field))
        for item in thing if isinstance(thing, list) else thing.values() if isinstance(thing, dict) else ():
            yield from texts(item)

    told = list(texts(received(value, clean)))
    assert not any("\x1b" in text or "hunter2" in text or "\u202e" in text for text in told)
    assert max(map(len, told)) < 4_100
    assert sum(map(len, told)) < 1_000_000
    assert "host" not in told


@pytest.mark.parametrize("status", [200, 403])
def test_an_error_of_a_server_shows_no_secret_that_it_was_sent_and_data_stay_as_they_are(status):
    cells = [["hunter2", Json('["hunter2"]'), 7]]
    columns = [Column(name=name, type="", kind=ColumnKind.OTHER) for name in "abc"]
    given = Answer(kind=AnswerKind.TABLE, status=status, request=REQUEST, text='{"you":\n"hunter2"}',
                   page=Page(columns=columns, cells=cells))  # fmt: skip
    told = received(given, str, lambda text: text.replace("hunter2", "***"))
    if status == 200:
        assert (told.text, told.page.cells) == (given.text, cells)
    else:
        assert told.text == '{"you":\n"***"}'
        assert told.page.cells == [["***", '["***"]', 7]]
        assert type(told.page.cells[0][1]) is Json


def test_the_column_of_a_note_is_left_out_if_it_is_not_harmless():
    columns = ["price", "pri\x1bce", "token-of-an-hour", "x" * 5_000, None]
    notes = [Note(code="x", reason="y", column=column) for column in columns]
    page = received(Page(columns=[], notes=notes), lambda text: harmless(text).replace("token-of-an-hour", "***"))
    assert [note.column for note in page.notes] == ["price", None, None, None, None]


def test_a_flood_of_notes_is_cut_and_that_is_said():
    page = received(Page(columns=[], notes=[Note(code="x", reason="y")] * 100_000), str)
    assert len(page.notes) == NOTES + 1
    assert "95,000" in page.notes[-1].reason


def test_a_flood_of_nodes_and_of_states_is_cut_and_that_is_said():
    states = {f"i{at}": Condition("green", ConditionLevel.GOOD) for at in range(MAX_OBJECTS + 5)}
    status = received(ServerStatus(nodes=[ServerNode(name="n")] * (NODES + 7), objects=states), str)
    assert (len(status.nodes), len(status.objects)) == (NODES, MAX_OBJECTS)
    assert [note.reason for note in status.notes] == [
        "the driver returned 7 more nodes, which are hidden",
        "the driver returned 5 more states, which are hidden",
    ]


def test_the_states_of_objects_are_harmless_and_what_is_silent_stays_so():
    listed = ObjectList(objects=[Object("a", state=Condition("r\u202eed", ConditionLevel.BAD)), Object("b")])
    told = received(listed, clean)
    assert [item.state for item in told] == [Condition("red", ConditionLevel.BAD), None]
    assert received(ServerStatus(), clean) == ServerStatus()


async def test_a_real_driver_cannot_speak_for_the_host(workshop: Workshop):
    body = """
    hint = "dragoman registry add \\x1b[1mhttps://evil"
    raise errors.TrustError("key hunter2-and-more\\x1b[2J", hint=hint, code="rollback")
    """
    async with workshop.attempting(body, secrets={"key": "hunter2-and-more"}) as worker:
        with pytest.raises(DriverError) as caught:
            await worker.call("describe_object", "x")
        assert (await worker.call("ping")).ok
    error = caught.value
    assert error.code == "driver-error"
    assert error.message == "the driver raised rollback, which only the host may raise: key ***"
    assert (error.hint, error.hint_from) == ("dragoman registry add https://evil", "driver")


async def test_a_token_that_a_driver_learned_is_masked_in_its_errors_and_its_log(workshop: Workshop):
    """Like the secrets of the profile; before it is learned, it is a text like any other."""
    driver = """
    class Driver:
        @hookimpl
        async def connect(self, profile, http):
            self.http = http
            return Server("learned")

        @hookimpl
        async def describe_object(self, name):
            if name == "learn":
                self.http.hide("token-of-an-hour")
                raise errors.QueryError("the token-of-an-hour is wrong", hint="token-of-an-hour")
            print("they said token-of-an-hour", flush=True)
            return Description(object=name, columns=[], notes=[Note(code="x", reason="token-of-an-hour")])
    """
    async with workshop.worker(driver) as worker:
        await worker.call("connect")
        before = await worker.call("describe_object", "show")
        with pytest.raises(DriverError) as caught:
            await worker.call("describe_object", "learn")
        after = await worker.call("describe_object", "show")
    assert [each.notes[0].reason for each in (before, after)] == ["token-of-an-hour", "***"]
    assert (caught.value.message, caught.value.hint) == ("the *** is wrong", "***")
    raised = "describe_object raised QueryError at tiny_driver.py:29 in Driver.describe_object"
    assert workshop.lines == ["they said token-of-an-hour", raised, "they said ***"]


def test_a_message_with_a_token_does_not_print_it():
    assert "secret" not in repr(Learned("secret-token"))
