"""Error answers and what connecting makes of them: which error, with which details, and with which credentials."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import connected, on_fake, profile
from drivers.replies import Answers, reply

from dragoman_api import (
    AuthenticationError,
    ConnectionFailedError,
    DragomanError,
    HttpRequest,
    ObjectList,
    ObjectsRequest,
    Profile,
    QueryError,
)
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.errors import (
    AccessDeniedError,
    ConfigurationError,
    ObjectNotFoundError,
    RowNotFoundError,
    WindowExceededError,
)
from dragoman_api.kit.exchanges import carry_out
from dragoman_api.remedies import Remedy
from dragoman_elasticsearch import connect
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl import objects, protocol
from dragoman_querydsl.objects import IndexSettings
from dragoman_querydsl.protocol import segment, target
from dragoman_sample.fakes.elasticsearch import ApiKey, FakeElasticsearch, User

if TYPE_CHECKING:
    from dragoman_api.replies import Reply


def error(body: Any, status: int, **headers: str) -> Any:
    return protocol.exception(protocol.read(reply(body, status, headers)))


def typed(kind: str, reason: str = "r") -> dict[str, Any]:
    return {"error": {"root_cause": [{"type": kind, "reason": reason}], "type": kind, "reason": reason}}


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (401, "security_exception", AuthenticationError), (403, "security_exception", AccessDeniedError),
        (403, "cluster_block_exception", QueryError), (404, "index_not_found_exception", ObjectNotFoundError),
        (404, "resource_not_found_exception", ObjectNotFoundError),
        (404, "document_missing_exception", RowNotFoundError),
        (404, "search_context_missing_exception", QueryError), (500, "exception", QueryError),
        (503, "no_shard_available_action_exception", QueryError),
    ],
)  # fmt: skip
def test_the_type_decides_which_error_it_is(status: int, kind: str, expected: type[Exception]) -> None:
    found = error(typed(kind), status)
    assert type(found) is expected
    assert (found.details["status"], found.details["type"]) == (status, kind)


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_gateway_that_finds_no_server_is_a_failed_connection(status: int) -> None:
    found = error("<html>", status)
    assert type(found) is ConnectionFailedError
    assert found.details["status"] == status
    for other in (500, 501, 505):
        assert type(error("<html>", other)) is QueryError
    assert type(error("", 403)) is AccessDeniedError


def test_a_redirection_and_a_body_that_is_too_long_are_told():
    found = error("", 302, Location="https://elsewhere:9/x")
    assert type(found) is QueryError
    assert "HTTP 302" in found.message
    assert "https://elsewhere:9/x" in found.hint
    assert "HTTP 413" in error("", 413).message


@pytest.mark.parametrize("text", [
    "Result window is too large, from + size must be less than or equal to: [10] but was [25]",
    "Batch size is too large, size must be less than or equal to: [10] but was [25]",
])  # fmt: skip
def test_a_window_error_has_both_numbers(text: str) -> None:
    """E42."""
    found = error(typed("illegal_argument_exception", text), 400)
    assert type(found) is WindowExceededError
    assert (found.details["window"], found.details["asked"], found.details["status"]) == (10, 25, 400)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("too_complex_to_determinize_exception", "fewer characters"), ("too_many_clauses", "fewer values"),
        ("too_many_scroll_contexts_exception", "DELETE /_search/scroll"), ("circuit_breaking_exception", "fewer rows"),
        ("es_rejected_execution_exception", "queue"), ("index_closed_exception", "_open"),
        ("cluster_block_exception", "blocked"), ("parse_exception", ""),
    ],
)  # fmt: skip
def test_a_remedy_is_named_by_type_wherever_the_type_stands(kind: str, word: str) -> None:
    outer = {"error": {"root_cause": [{"type": "a", "reason": "b"}], "type": "c", "reason": "d",
                       "caused_by": {"type": kind, "reason": "e"}}}  # fmt: skip
    for body in (typed(kind), outer):
        hint = error(body, 400).hint
        assert word in hint
        assert bool(hint) is bool(word)


@pytest.mark.parametrize(
    ("status", "kind", "doubt", "busy"),
    [
        (200, "", False, False), (400, "x", False, False), (403, "x", False, False), (404, "x", False, False),
        (408, "", True, False), (409, "version_conflict_engine_exception", False, False), (429, "", False, True),
        (429, "cluster_block_exception", False, False), (429, "es_rejected_execution_exception", False, True),
        (499, "", False, False), (500, "", True, False), (500, "x", True, False),
        (500, "es_rejected_execution_exception", False, True), (502, "", True, False), (503, "", True, False),
        (503, "circuit_breaking_exception", False, True), (504, "x", True, False),
        (504, "circuit_breaking_exception", True, False),
    ],
)  # fmt: skip
def test_doubt_and_waiting_by_status_and_type(status: int, kind: str, doubt: bool, busy: bool) -> None:
    found = protocol.read(reply(typed(kind) if kind else "", status))
    assert (found.unsure, found.busy) == (doubt, busy)
    assert found.conflict is (kind == "version_conflict_engine_exception")


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("999999999", 999999999),
        ("9999999999", 0),
        ("-1", 0),
        ("1.5", 0),
        ("Mon, 1 Jan", 0),
        ("", 0),
    ],
)
def test_the_time_to_wait_is_a_number_of_seconds(after: str, seconds: int) -> None:
    assert protocol.read(reply("", 429, {"Retry-After": after})).wait == seconds
    assert error("", 429, **{"Retry-After": after}).details["retry_after"] == seconds
    assert ("retry_after" in error("", 503, **{"Retry-After": after}).details) is bool(seconds)
    assert "retry_after" not in error(typed("cluster_block_exception"), 429, **{"Retry-After": "7"}).details


def test_the_reasons_are_told_once_and_from_the_outside_in():
    inner = {"type": "c", "reason": "deep"}
    body = {"error": {"root_cause": [{"type": "a", "reason": "root"}], "type": "b", "reason": "all shards failed",
                      "failed_shards": [{"reason": {"type": "a", "reason": "root", "caused_by": inner}}]}}  # fmt: skip
    found = protocol.read(reply(body, 400))
    assert (found.type, found.text, found.types) == ("a", "root: deep", {"a", "b", "c"})
    assert protocol.read(reply({"error": "plain"}, 400)).text == "plain"
    for odd in ({"error": [1]}, {"error": {"root_cause": []}}, {"error": {"failed_shards": [1]}}, [1], "x"):
        assert protocol.read(reply(odd, 400)).text == ""
    assert len(protocol.read(reply({"error": "x" * 5_000}, 400)).text) == 1_000


def test_a_success_of_another_form_is_an_error():
    for status in (200, 299):
        assert protocol.check(reply("x", status)) == b"x"
    for status in (199, 300, 404):
        with pytest.raises((QueryError, ConnectionFailedError)):
            protocol.check(reply("x", status))
    with pytest.raises(QueryError, match="expected JSON"):
        protocol.decode(reply("<html>"), dict)


# connecting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature", "last_without", "first_with"),
    [("case_insensitive", (7, 9, 99), (7, 10, 0)), ("point_in_time", (7, 11, 99), (7, 12, 0)),
     ("resolves_names", (7, 8, 99), (7, 9, 0)), ("finds_ignored", (7, 10, 99), (7, 11, 0)),
     ("asks_for_vectors", (9, 1, 99), (9, 2, 0))],
)  # fmt: skip
def test_a_feature_begins_with_a_release(feature: str, last_without: Any, first_with: Any) -> None:
    assert getattr(dialect_of(last_without), feature) is False
    assert getattr(dialect_of(first_with), feature) is True
    assert getattr(dialect_of(), feature) is False
    assert dialect_of(first_with, oss=True).point_in_time is False


@pytest.mark.parametrize(
    ("number", "header", "taken"),
    [("7.13.9", False, True), ("7.14.0", False, False), ("7.14.0", True, True), ("7.0", False, True),
     ("6.9.9", False, False),
     ("9.9.9", True, True), ("10.0.0", True, False)],
)  # fmt: skip
def test_E3_the_product_header_is_asked_for_where_it_is_sent(number: str, header: bool, taken: bool) -> None:
    headers = {"X-Elastic-Product": "Elasticsearch"} if header else {}
    answer = reply({"version": {"number": number}, "tagline": connect.TAGLINE}, headers=headers)
    given = Profile(name="shop", type="elasticsearch", host="h", port=1)
    if taken:
        assert Answers(answer).run(connect.identify(given))[0].version == number
    else:
        with pytest.raises(Exception, match="this driver works with"):
            Answers(answer).run(connect.identify(given))


async def test_health_is_bad_by_every_status_but_success_and_403():
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        for status, code in ((500, "query-failed"), (503, "connection-failed"), (404, "query-failed")):
            es.fake.misbehave("answer", status=status, body="broken")
            health = await es.driver.ping()
            assert (health.ok, health.code) == (False, code)
            assert str(status) in health.reason
            es.fake.behave()
        es.fake.misbehave("answer", status=403, body="no")
        assert (await es.driver.ping()).ok
        es.fake.behave()
        assert await es.driver.ping() == type(health)(ok=True)


KEY = ApiKey("id1", "secret")


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        (AuthScheme.NONE, None),
        (AuthScheme.BASIC, "Basic " + base64.b64encode(b"ada:pw").decode()),
        (AuthScheme.API_KEY, f"ApiKey {KEY.encoded}"),
    ],
)
async def test_E9_E10_E11_left_over_credentials_of_another_method_are_not_sent(scheme: Any, expected: Any) -> None:
    secrets = Secrets(values={"password": "pw", "api_key": KEY.encoded, "token": "left-over"})
    security = {} if scheme is AuthScheme.NONE else {"users": {"ada": User("pw")}, "api_keys": [KEY]}
    async with FakeElasticsearch(**security) as fake:
        given = profile(fake.url, auth_scheme=scheme, options={"username": "ada"}, secrets=secrets)
        async with connected(given, version="8.19.21") as es:
            assert (await es.driver.ping()).ok
        assert {each.headers.get("Authorization") for each in fake.requests} == {expected}


@pytest.mark.parametrize("key", ["left:over", "", "ApiKey x"])
async def test_E9_a_malformed_key_is_no_matter_where_none_is_sent(key: str) -> None:
    async with FakeElasticsearch(users={"ada": User("pw")}) as fake:
        secrets = Secrets(values={"password": "pw", "api_key": key})
        given = profile(fake.url, auth_scheme=AuthScheme.BASIC, options={"username": "ada"}, secrets=secrets)
        async with connected(given, version="8.19.21") as es:
            assert (await es.driver.ping()).ok


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({}, "Auth Method None"),
        ({"auth_scheme": AuthScheme.BASIC, "options": {"username": "ada"}, "secrets": Secrets(
            values={"password": "wrong"})}, "the user name or the password"),
        ({"auth_scheme": AuthScheme.API_KEY, "secrets": Secrets(values={"api_key": "d3Jvbmc6a2V5"})}, "the API key"),
    ],
)  # fmt: skip
async def test_E39_what_was_rejected_is_told_by_connecting_once_with_the_prefix(more: Any, what: str) -> None:
    async with FakeElasticsearch(users={"ada": User("right")}) as fake:
        with pytest.raises(AuthenticationError) as caught:
            async with connected(profile(fake.url, **more), version="8.19.21"):
                pass
    assert caught.value.message.startswith(
        f"{AuthenticationError.prefix}{what} was rejected by 127.0.0.1:{fake.port} (401): "
    )
    assert caught.value.message.count(AuthenticationError.prefix) == 1
    assert caught.value.remedies == (
        Remedy("edit-field", {"field": "auth_method"}),
        Remedy("edit-field", {"field": "ssl_mode", "value": "verify-identity"}),
    )
    assert caught.value.details["status"] == 401


def test_credentials_that_may_not_even_say_who_they_are_are_rejected():
    given = Profile(name="shop", type="elasticsearch", host="h", port=1)
    with pytest.raises(AuthenticationError):
        Answers(reply("", 403), reply("", 401)).run(connect.identify(given))
    found, dialect = Answers(reply("", 403), reply({}, 200)).run(connect.identify(given))
    assert (found.product, found.version, dialect) == ("Elasticsearch", "", dialect_of())


# objects --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 499, 500, 501, 2_700])
def test_E15_many_indices_are_counted_500_at_a_time(number: int) -> None:
    """At most four such requests are under way."""
    names = [f"i{at:04}" for at in range(number)]
    listed = reply(
        [{"index": ".hidden", "store.size": "1"}]
        + [{"index": name, "store.size": str(at)} for at, name in enumerate(names)]
    )
    batches = [names[at : at + 500] for at in range(0, number, 500)]
    counts = [reply({"responses": [total(int(name[1:])) for name in batch]}) for batch in batches]
    script = Answers(listed, *counts)
    assert [(each.name, each.rows, each.size) for each in script.run(objects.list_objects())] == [
        (name, at, at) for at, name in enumerate(names)
    ]
    assert [str(each.body).count("\n") for each in script.asked[1:]] == [2 * len(each) for each in batches]
    assert max(map(len, script.together)) == max(1, min(4, len(batches)))


def test_E15_only_the_indices_of_a_part_are_counted_and_those_with_the_text() -> None:
    listed = reply([{"index": name, "store.size": "1"} for name in (".h", "orders-2", "books", "orders-1", "straße")])

    def part(*rows: int, **wanted: Any) -> ObjectList:
        script = Answers(listed, *([reply({"responses": [total(number) for number in rows]})] if rows else []))
        return script.run(objects.list_objects(ObjectsRequest(**wanted)))

    first = part(7, 8, limit=2)
    assert [(each.name, each.rows) for each in first] == [("books", 7), ("orders-1", 8)]
    assert first.total == 4
    second = part(9, 10, limit=2, cursor=first.next)
    assert [(each.name, each.rows) for each in second] == [("orders-2", 9), ("straße", 10)]
    assert second.next is None
    matches = part(5, limit=1, contains="ORDERS")
    assert ([each.name for each in matches], matches.total) == (["orders-1"], 2)
    assert [each.name for each in part(1, contains="SS")] == ["straße"]
    assert [(each.name, each.rows, each.size) for each in part(limit=1, counts=False)] == [("books", None, 1)]


def resolved(*names: str, closed: tuple[str, ...] = ()) -> Any:
    open_entries = [{"name": name, "attributes": ["open"]} for name in names]
    closed_entries = [{"name": name, "attributes": ["closed"]} for name in closed]
    return reply({"indices": [*open_entries, *closed_entries], "aliases": [{"name": "x"}], "data_streams": []})


def test_E15_names_come_first_and_then_only_a_part_is_counted_and_measured_together() -> None:
    sizes = reply([{"index": "a", "status": "open", "store.size": "5"}])
    script = Answers(resolved(".h", *"abcde"), sizes, reply({"responses": [total(7), total(8)]}))
    part = script.run(objects.list_objects(ObjectsRequest(limit=2), resolves_names=True))
    assert [(entry.name, entry.rows, entry.size) for entry in part] == [("a", 7, 5), ("b", 8, None)]
    assert (part.total, part.notes) == (5, [])
    assert [[request.path.partition("?")[0] for request in together] for together in script.together] == [
        ["/_resolve/index/*"], ["/_cat/indices/a,b", "/_msearch"],
    ]  # fmt: skip
    names_only = Answers(resolved("b", "a"))
    part = names_only.run(objects.list_objects(ObjectsRequest(counts=False), resolves_names=True))
    assert [(entry.name, entry.rows, entry.size) for entry in part] == [("a", None, None), ("b", None, None)]
    assert Answers(resolved("b", ".h", "a")).run(objects.names(resolves_names=True)) == ["a", "b"]


@pytest.mark.parametrize(("length", "paths"), [(20, 1), (100, 4), (200, 0)])
def test_names_of_a_part_fill_paths_that_a_server_takes_and_many_are_measured_with_all(length: int, paths: int) -> None:
    names = [f"i{number:0{length - 1}}" for number in range(250)]
    sizes = [reply([{"index": name, "store.size": "1"} for name in names])] * max(1, paths)
    script = Answers(resolved(*names), *sizes, reply({"responses": [total(0)] * 100}))
    part = script.run(objects.list_objects(ObjectsRequest(limit=100), resolves_names=True))
    assert {entry.size for entry in part} == {1}
    asked = [request.path for request in script.asked if request.path.startswith("/_cat")]
    assert all(len(path) < 3_200 for path in asked)
    named = [path.partition("?")[0].removeprefix("/_cat/indices/") for path in asked if "/_cat/indices/" in path]
    assert len(named) == paths
    assert [name for path in named for name in path.split(",")] == (names[:100] if paths else [])


def test_indices_that_may_be_seen_and_those_that_may_be_read_are_listed_for_a_user() -> None:
    readable = reply({"indices": ["b", "c", ".h"], "fields": {}})
    counts = reply({"responses": [total(1), total(2), total(3)]})
    script = Answers(resolved("a", "b"), readable, reply("", 403), counts)
    listed = script.run(objects.list_objects(ObjectsRequest(), resolves_names=True, secured=True))
    assert [(entry.name, entry.rows, entry.size) for entry in listed] == [
        ("a", 1, None),
        ("b", 2, None),
        ("c", 3, None),
    ]
    assert [note.code for note in listed.notes] == ["objects-hidden"]
    assert [request.path for request in script.together[0]] == [
        "/_resolve/index/*?expand_wildcards=open,closed", "/*/_field_caps?fields=_id",
    ]  # fmt: skip


@pytest.mark.parametrize(("status", "code"), [(400, "sizes-unknown"), (403, "objects-hidden"), (503, "sizes-unknown")])
def test_indices_are_listed_where_their_sizes_cannot_be_read_and_the_list_says_so(status: int, code: str) -> None:
    refusal = reply({"error": {"type": "security_exception", "reason": "no"}, "status": status}, status)
    script = Answers(resolved("a"), refusal, reply({"responses": [total(7)]}))
    listed = script.run(objects.list_objects(ObjectsRequest(), resolves_names=True))
    assert [(entry.name, entry.rows, entry.size) for entry in listed] == [("a", 7, None)]
    assert [note.code for note in listed.notes] == [code]


@pytest.mark.parametrize("refusal", [reply("", 403), reply("", 400), reply({"indices": []})])
def test_a_server_that_resolves_no_name_is_asked_for_the_indices_with_their_sizes(refusal: Any) -> None:
    listed = reply([{"index": "a", "store.size": "5"}])
    script = Answers(refusal, listed, reply({"responses": [total(7)]}))
    [entry] = script.run(objects.list_objects(ObjectsRequest(), resolves_names=True))
    assert (entry.name, entry.rows, entry.size) == ("a", 7, 5)


@pytest.mark.parametrize("cursor", ["", "books", "x:books", "-1:books", "9999:books", "²:books"])
def test_a_text_that_is_no_cursor_of_a_list_is_refused(cursor: str) -> None:
    with pytest.raises(QueryError) as caught:
        Answers(reply([{"index": "a"}])).run(objects.list_objects(ObjectsRequest(cursor=cursor)))
    assert caught.value.code == "cursor-invalid"


class Unanswered:
    """Plays an exchange: what `path` begins gets no answer, other requests those of their paths."""

    def __init__(self, path: str, replies: dict[str, Reply]) -> None:
        self.path, self.replies = path, replies
        self.paths: list[str] = []

    async def send(self, request: HttpRequest) -> Reply:
        self.paths.append(request.path)
        if request.path.startswith(self.path):
            raise ConnectionFailedError("no answer within 60 s")
        return next(reply for path, reply in self.replies.items() if request.path.startswith(path))


@pytest.mark.parametrize(
    ("path", "sizes", "rows", "codes"),
    [
        ("/_cat", [None, None], [1, 2], ["sizes-unknown"]),
        ("/_msearch", [None, None], [None, None], ["sizes-unknown", "rows-unknown"]),
        ("/*/_field_caps", [1, 2], [1, 2], ["objects-hidden"]),
    ],
)
async def test_a_request_without_an_answer_leaves_the_rest_of_a_list(
    path: str, sizes: list[int | None], rows: list[int | None], codes: list[str]
) -> None:
    measured = [{"index": "a", "store.size": "1"}, {"index": "b", "store.size": "2"}]
    server = Unanswered(
        path,
        {
            "/_resolve": resolved("a", "b"), "/*/_field_caps": reply({"indices": ["a", "b"], "fields": {}}),
            "/_cat": reply(measured), "/_msearch": reply({"responses": [total(1), total(2)]}),
        },
    )  # fmt: skip
    outcome = await carry_out(objects.list_objects(ObjectsRequest(), resolves_names=True, secured=True), server.send)
    assert [(entry.size, entry.rows) for entry in outcome] == list(zip(sizes, rows, strict=True))
    assert [note.code for note in outcome.notes] == codes


@pytest.mark.parametrize(("secured", "asked"), [(False, 1), (True, 2)])
async def test_names_without_an_answer_are_asked_for_no_longer_than_they_must(secured: bool, asked: int) -> None:
    server = Unanswered("/", {})
    with pytest.raises(ConnectionFailedError):
        await carry_out(objects.list_objects(ObjectsRequest(), resolves_names=True, secured=secured), server.send)
    assert server.paths.count(objects._RESOLVE) == asked


async def test_who_may_read_nothing_misses_nothing() -> None:
    refused = reply({"error": {"type": "security_exception", "reason": "no"}, "status": 403}, 403)
    answers = {
        "/_resolve": resolved("a"), "/*/_field_caps": refused,
        "/_cat": reply([{"index": "a", "store.size": "1"}]), "/_msearch": reply({"responses": [total(1)]}),
    }  # fmt: skip
    server = Unanswered("nothing", answers)
    outcome = await carry_out(objects.list_objects(ObjectsRequest(), resolves_names=True, secured=True), server.send)
    assert [note.code for note in outcome.notes] == []


def test_a_closed_index_is_not_counted_and_the_list_says_so() -> None:
    listed = reply([{"index": "a", "status": "open"}, {"index": "b", "status": "close"}, {"index": "c"}])
    script = Answers(listed, reply({"responses": [total(1), total(2)]}))
    measured = reply([{"index": "a", "store.size": "1"}])
    names_first = Answers(resolved("a", "c", closed=("b",)), measured, reply({"responses": [total(1), total(2)]}))
    for answers, resolves_names in ((script, False), (names_first, True)):
        outcome = answers.run(objects.list_objects(ObjectsRequest(), resolves_names=resolves_names))
        assert [(each.name, each.rows) for each in outcome] == [("a", 1), ("b", None), ("c", 2)]
        assert [note.code for note in outcome.notes] == ["rows-unknown"]
        assert outcome.notes[0].reason == "1 object ('b') closed: no number of rows"
        assert str(answers.asked[-1].body).count("\n") == 4


@pytest.mark.parametrize("status", [403, 429, 503])
def test_indices_are_listed_where_the_server_refuses_to_count_them_and_the_list_says_so(status: int) -> None:
    refusal = reply({"error": {"type": "x_exception", "reason": "not now"}, "status": status}, status)
    outcome = Answers(reply([{"index": "a"}, {"index": "b"}]), refusal).run(objects.list_objects())
    assert [(each.name, each.rows) for each in outcome] == [("a", None), ("b", None)]
    assert [note.code for note in outcome.notes] == ["rows-unknown"]
    assert "2 objects" in outcome.notes[0].reason
    assert "not now" in outcome.notes[0].reason
    unknown = reply({"error": {"type": "security_exception", "reason": "who"}, "status": 401}, 401)
    with pytest.raises(AuthenticationError):
        Answers(reply([{"index": "a"}]), unknown).run(objects.list_objects())


def test_E15_a_count_with_a_failed_shard_is_no_count():
    """And an answer with fewer counts than were asked for is none at all."""
    listed = reply([{"index": "a"}, {"index": "b", "store.size": "x"}, {"index": "c", "store.size": "9" * 19}])
    total = {"hits": {"total": {"value": 5}, "hits": []}}
    failed, late = total | {"_shards": {"total": 3, "failed": 1}}, total | {"timed_out": True}
    found = Answers(listed, reply({"responses": [failed, late, total]})).run(objects.list_objects())
    assert [(each.name, each.rows, each.size) for each in found] == [
        ("a", None, None),
        ("b", None, None),
        ("c", 5, None),
    ]
    assert [note.code for note in found.notes] == ["rows-unknown"]
    assert "2 objects" in found.notes[0].reason
    with pytest.raises(QueryError, match="2 of 3"):
        Answers(listed, reply({"responses": [total, total]})).run(objects.list_objects())


@pytest.mark.parametrize(
    ("settings", "synthetic"),
    [
        ({}, False), ({"index.mapping.source.mode": "synthetic"}, True),
        ({"index.mapping.source.mode": "stored"}, False),
        ({"index.mode": "logsdb"}, True), ({"index.mode": "time_series"}, True), ({"index.mode": "standard"}, False),
        ({"index.mode": "logsdb", "index.mapping.source.mode": "stored"}, False),
        ({"index.mode": "lookup", "index.mapping.source.mode": "disabled"}, False),
    ],
)  # fmt: skip
def test_an_index_rebuilds_its_documents_by_mode_or_by_setting(settings: dict[str, str], synthetic: bool) -> None:
    assert IndexSettings(settings).synthetic is synthetic


def test_a_document_is_asked_for_with_its_routing_and_its_id_as_they_are():
    hit = {"_index": "a", "_id": "x/y+z", "found": True, "_seq_no": 1, "_primary_term": 1, "_source": {}}
    for routing, query in ((None, ""), ("a+b&c", "?routing=a%2Bb%26c"), ("ä", "?routing=%C3%A4")):
        script = Answers(reply(hit))
        assert script.run(objects.document("a", "x/y+z", routing)).id == "x/y+z"
        assert script.asked[0].path == f"/a/_doc/x%2Fy%2Bz{query}"
    with pytest.raises(RowNotFoundError):
        Answers(reply({"_index": "a", "_id": "1", "found": False}, 404)).run(objects.document("a", "1"))
    with pytest.raises(ObjectNotFoundError):
        Answers(reply(typed("index_not_found_exception"), 404)).run(objects.document("a", "1"))
    with pytest.raises(QueryError, match="instead of"):
        Answers(reply(hit)).run(objects.document("a", "1"))


def test_names_and_ids_are_encoded_for_where_they_stand():
    assert segment("a/b,c*d%e+f ?#") == "a%2Fb%2Cc%2Ad%25e%2Bf%20%3F%23"
    assert target("a,b*/c") == "a,b*%2Fc"


def test_a_name_that_is_none_is_refused_and_all_is_one():
    for name in ("", "_cat", "_"):
        with pytest.raises(QueryError, match="is not the name"):
            Answers().run(objects.view(name))
    for hidden, caps, kind in ((403, 403, AccessDeniedError), (404, 404, QueryError)):
        with pytest.raises(kind):
            Answers(reply("", hidden), reply("", caps), reply("", hidden)).run(objects.view("_all"))


def test_settings_that_are_hidden_are_unknown_and_none_means_no_index():
    assert Answers(reply("", 403)).run(objects.index_settings("a")) is None
    with pytest.raises(ObjectNotFoundError):
        Answers(reply({})).run(objects.index_settings("a*"))
    found = Answers(reply({"a": {"settings": {"x": "y"}}})).run(objects.index_settings("a"))
    assert found is not None
    assert found["a"].settings == {"x": "y"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, 1),
        ("1s", 1),
        ("30S", 30),
        ("500ms", 0.5),
        ("250micros", 0.00025),
        ("5nanos", 5e-9),
        ("2m", 120),
        ("1h", 3_600),
        ("1d", 86_400),
        ("7", 7),
        ("0", 0),
        ("-1", float("inf")),
        ("", float("inf")),
        ("soon", float("inf")),
    ],
)
def test_the_time_between_two_refreshes_is_read_in_every_unit(text: str | None, seconds: float) -> None:
    found = IndexSettings({} if text is None else {"index.refresh_interval": text}).refresh
    assert found == ("1s" if text is None else text, pytest.approx(seconds))


def total(rows: int) -> dict[str, Any]:
    return {"hits": {"total": {"value": rows}, "hits": []}}


def test_E15_an_empty_index_has_no_rows_and_not_an_unknown_number() -> None:
    listed = reply([{"index": name, "store.size": "0"} for name in "abc"])
    found = Answers(listed, reply({"responses": [total(0), total(2), total(0)]})).run(objects.list_objects())
    assert [(each.rows, each.size) for each in found] == [(0, 0), (2, 0), (0, 0)]
    assert found.notes == []
    with pytest.raises(QueryError, match="4 of 3"):
        Answers(listed, reply({"responses": [total(0)] * 4})).run(objects.list_objects())


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_E15_only_a_403_asks_in_another_way_which_indices_there_are(status: int) -> None:
    for exchange in (objects.list_objects(), objects.names()):
        script = Answers(reply("", status))
        with pytest.raises(DragomanError):
            script.run(exchange)  # type: ignore[arg-type]
        assert len(script.asked) == 1
    readable = reply({"indices": ["b", ".hidden", "a"], "fields": {}})
    assert Answers(reply("", 403), readable).run(objects.names()) == ["a", "b"]
    assert Answers(reply([{"index": "b"}, {"index": ".h"}, {"index": "a"}])).run(objects.names()) == ["a", "b"]


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_only_a_403_hides_the_settings_that_a_write_depends_on(status: int) -> None:
    with pytest.raises(DragomanError):
        Answers(reply("", status)).run(objects.index_settings("a"))
    blocked = typed("cluster_block_exception")
    with pytest.raises(QueryError):
        Answers(reply(blocked, 403)).run(objects.index_settings("a"))


def test_only_all_begins_like_an_api_and_is_a_name() -> None:
    for name in ("_all_", "_all,a", "_ALL", "__all"):
        with pytest.raises(QueryError, match="is not the name"):
            Answers().run(objects.view(name))


@pytest.mark.parametrize(
    ("scheme", "what"),
    [
        (AuthScheme.NONE, "Auth Method None"), (AuthScheme.BASIC, "the user name or the password"),
        (AuthScheme.API_KEY, "the API key"), (AuthScheme.BEARER, "the token"),
        (AuthScheme.CLIENT_CREDENTIALS, "the token of the token endpoint"),
    ],
)  # fmt: skip
def test_E39_what_was_rejected_is_named_by_the_method_unless_another_server_rejected_it(
    scheme: AuthScheme, what: str
) -> None:
    given = Profile(name="shop", type="elasticsearch", host="h", port=1, auth_scheme=scheme)
    for details in ({}, {"sent": True}, {"sent": None}):
        found = connect.credentials_rejected(AuthenticationError("no", details=details), given)
        assert found.message == f"Authentication failed: {what} was rejected by h:1 (401): no"
    elsewhere = AuthenticationError("the endpoint says no", details={"sent": False})
    assert connect.credentials_rejected(elsewhere, given) is elsewhere


def test_a_key_in_clear_is_refused_only_where_a_key_is_used() -> None:
    for scheme in AuthScheme:
        secrets = Secrets(values={"api_key": "a:b"})
        given = Profile(name="shop", type="e", host="h", port=1, auth_scheme=scheme, secrets=secrets)
        if scheme is AuthScheme.API_KEY:
            with pytest.raises(ConfigurationError):
                connect.check_key(given)
        else:
            connect.check_key(given)


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (
            {
                "error": {
                    "root_cause": [],
                    "type": "outer",
                    "reason": "",
                    "caused_by": {"type": "middle", "reason": "m", "caused_by": {"type": "deep", "reason": "d"}},
                }
            },
            "deep",
            "m: d",
        ),
        (
            {
                "error": {
                    "root_cause": [{"type": "first", "reason": "1"}, {"type": "second", "reason": "2"}],
                    "type": "outer",
                    "reason": "all shards failed",
                }
            },
            "first",
            "1",
        ),
        ({"error": {"type": "alone", "reason": "r"}}, "alone", "r"),
        (
            {"error": {"root_cause": [{"type": "a", "reason": "long reason"}], "type": "b", "reason": "reason"}},
            "a",
            "long reason",
        ),
        (
            {
                "error": {
                    "root_cause": [{"type": "a", "reason": "x"}],
                    "type": "a",
                    "reason": "all shards failed",
                    "failed_shards": [
                        {"reason": {"type": "s", "reason": "shard"}},
                        {"reason": {"type": "t", "reason": "t"}},
                    ],
                }
            },
            "a",
            "x: shard",
        ),
    ],
)
def test_the_type_and_the_text_come_from_where_the_server_tells_them(body: Any, kind: str, text: str) -> None:
    found = protocol.read(reply(body, 400))
    assert (found.type, found.text) == (kind, text)


@pytest.mark.parametrize(
    "kind", ["circuit_breaking_exception", "es_rejected_execution_exception", "too_many_scroll_contexts_exception"]
)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_is_busy_by_a_type_wherever_it_stands_and_says_how_long_even_if_not_at_all(
    kind: str, status: int
) -> None:
    inner = {"error": {"root_cause": [{"type": "a", "reason": "b"}], "type": "c", "reason": "d",
                       "caused_by": {"type": kind, "reason": "e"}}}  # fmt: skip
    for body in (typed(kind), inner):
        assert protocol.retry_after(reply(body, status)) == 0
        assert protocol.retry_after(reply(body, status, {"Retry-After": "7"})) == 7
        assert error(body, status).details["retry_after"] == 0
        assert protocol.retry_after(reply(body, 502)) is None
    for other in (400, 403, 408, 501, 504):
        assert "retry_after" not in error(typed(kind), other).details
