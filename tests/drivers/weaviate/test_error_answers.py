"""Error answers: which error comes of which, with which details, and how a failing health check says it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import connected, on_fake, profile

from dragoman_api import AuthenticationError, ConnectionFailedError, QueryError
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.errors import AccessDeniedError, ServerNotSupportedError, WindowExceededError
from dragoman_api.http import Http
from dragoman_sample.fakes.weaviate import FakeWeaviate, User
from dragoman_weaviate import connect, objects, protocol
from dragoman_weaviate.driver import Driver
from dragoman_weaviate.protocol import Features


def error(body: Any, status: int, **headers: str) -> Any:
    return protocol.exception(reply(body, status, headers))


def test_every_error_of_a_request_knows_its_status():
    for status in (401, 404, 422, 500):
        assert error({"message": "no"}, status).details["status"] == status
    assert error({"error": [{"message": "graphql api is disabled"}]}, 410).details["status"] == 410


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (429, {"Retry-After": "7"}, 7),
        (429, {}, 0),
        (503, {"Retry-After": "7"}, 7),
        (503, {}, None),
        (500, {"Retry-After": "7"}, None),
        (422, {"Retry-After": "7"}, None),
    ],
)
def test_a_busy_server_says_how_long_to_wait(status: int, headers: dict[str, str], wait: int | None) -> None:
    """Any 429 says that it is busy, a 503 only with Retry-After; another answer is a failure, whatever it adds."""
    assert protocol.retry_after(reply("no", status, headers)) == wait
    assert error("no", status, **headers).details.get("retry_after") == wait


@pytest.mark.parametrize(("status", "wait"), [(200, 0), (201, None), (422, None), (500, None)])
def test_a_search_too_many_is_told_by_a_success_alone(status: int, wait: int | None) -> None:
    body = {"errors": [{"message": "explorer: 429 Too many requests"}]}
    assert protocol.retry_after(reply(body, status)) == wait
    assert protocol.retry_after(reply(body | {"more": "x" * 4_096}, status)) is None


def test_a_redirection_is_told_with_where_it_leads():
    """W37: nothing is sent elsewhere."""
    found = error("", 301, Location="https://elsewhere:9/x")
    assert isinstance(found, QueryError)
    assert (found.details["status"], "HTTP 301" in found.message) == (301, True)
    assert "https://elsewhere:9/x" in found.hint


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_gateway_that_finds_no_server_is_a_failed_connection(status: int) -> None:
    found = error("x" * 5_000, status)
    assert isinstance(found, ConnectionFailedError)
    assert str(status) in found.message
    assert len(found.message) < 1_100
    for other in (500, 501, 505):
        assert type(error("x", other)) is QueryError


def test_a_window_error_names_the_row_and_the_limit():
    """W39: offset and limit together are what was asked for."""
    text = "query maximum results exceeded: invalid pagination params: offset '70' and limit '40' > '100'"
    found = error({"error": [{"message": text}]}, 422)
    assert isinstance(found, WindowExceededError)
    assert (found.details["asked"], found.details["window"], found.details["status"]) == (110, 100, 422)


def test_an_error_of_a_field_that_is_gone_says_to_look_again():
    assert "describe it again" in error({"error": [{"message": 'Cannot query field "x" on type "Y"'}]}, 200).hint
    assert error({"error": [{"message": "something else"}]}, 422).hint == ""


def test_a_403_is_told_apart_by_what_is_not_allowed():
    introspection = error({"error": [{"message": "rbac: forbidden due to GraphQL introspection"}]}, 403)
    assert isinstance(introspection, AccessDeniedError)
    assert "read_collections" in introspection.hint
    plain = error({"error": [{"message": "rbac: forbidden"}]}, 403)
    assert isinstance(plain, AccessDeniedError)
    assert plain.hint == ""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": "a", "message": "b"}, "b"), ({"message": "b", "errors": ["c"]}, "b"),
        ({"errors": ["c", "d"]}, "c; d"),
        ({"error": [{"message": "a"}, {}, {"message": "a"}, "b"]}, "a; b"), ({}, ""), ([], ""), ("a\n  b", "a b"),
        ({"error": {"message": "deep"}}, "deep"), (5, ""), ("x" * 1_500, "x" * 1_000),
    ],
)  # fmt: skip
def test_the_message_is_found_in_every_shape(body: Any, said: str) -> None:
    assert protocol.message(reply(json.dumps(body).encode(), 422)) == said


def test_a_success_that_is_no_json_or_empty_says_which():
    for status in (200, 299):
        assert protocol.check(reply("x", status)) == b"x"
        for body, said in (("", "empty"), ("<html>", "not the expected JSON")):
            with pytest.raises(QueryError) as caught:
                protocol.decode(reply(body, status), dict)
            assert said in caught.value.message
            assert caught.value.details["status"] == status
            assert "proxy" in caught.value.hint
    for status in (199, 300):
        with pytest.raises(QueryError):
            protocol.check(reply("x", status))


@pytest.mark.parametrize(
    ("status", "doubt"),
    [(200, False), (301, False), (401, False), (404, False), (407, False), (408, True), (409, False), (422, False),
     (429, False), (499, False), (500, True), (501, True), (502, True), (503, True), (504, True), (507, True)],
)  # fmt: skip
def test_a_write_may_have_happened_by_status(status: int, doubt: bool) -> None:
    assert protocol.unsure(reply("", status)) is doubt


# connecting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "found", "noted"),
    [("1.19.0", (1, 19, 0), 0), ("1.18.9", (1, 18, 9), 1), ("1.38", (1, 38, 0), 0), ("2.0.0-rc.1", (2, 0, 0), 0)],
)
def test_a_version_has_two_or_three_numbers(version: str, found: tuple[int, int, int], noted: int) -> None:
    server, features = Answers(reply({"version": version}), reply("", 401)).run(connect.identify(profile("http://h:1")))
    assert (features.version, len(server.notes), server.version) == (found, noted, version)


@pytest.mark.parametrize(
    ("feature", "last_without", "first_with"),
    [
        ("cursor", (1, 17, 99), (1, 18, 0)), ("contains", (1, 20, 99), (1, 21, 0)),
        ("negation", (1, 32, 99), (1, 33, 0)),
        ("complement", (1, 23, 99), (1, 24, 0)), ("aliases", (1, 31, 99), (1, 32, 0)),
        ("literal_patterns", (1, 22, 12), (1, 22, 13)), ("literal_patterns", (1, 23, 4), (1, 23, 5)),
        ("literal_patterns", (1, 21, 99), (1, 24, 0)),
    ],
)  # fmt: skip
def test_a_feature_begins_with_a_release(feature: str, last_without: Any, first_with: Any) -> None:
    assert getattr(Features(last_without), feature) is False
    assert getattr(Features(first_with), feature) is True


@pytest.mark.parametrize("status", [401, 403])
def test_credentials_that_are_refused_are_no_other_product(status: int) -> None:
    kind = AuthenticationError if status == 401 else AccessDeniedError
    with pytest.raises(kind) as caught:
        Answers(reply({"error": [{"message": "no"}]}, status), reply("", 401)).run(
            connect.identify(profile("http://h:1"))
        )
    assert str(status) in str(caught.value.details.get("status", caught.value.message))


def test_another_product_is_named_by_what_it_answered():
    with pytest.raises(ServerNotSupportedError) as caught:
        Answers(reply("<html>", 404), reply("", 401)).run(connect.identify(profile("http://h:1")))
    assert "HTTP 404" in caught.value.message


def test_rights_are_noted_only_where_none_of_them_writes():
    def noted(*actions: str) -> list[str]:
        roles = {"roles": [{"permissions": [{"action": each}]} for each in actions]}
        return Answers(reply({"version": "1.38.0"}), reply(roles)).run(connect.identify(profile("http://h:1")))[0].notes

    assert len(noted("read_data")) == len(noted("read_data", "read_roles")) == 1
    assert noted("read_data", "create_data") == noted("manage_backups", "read_data") == []
    assert "no rights" in noted()[0]


async def test_a_server_that_answers_500_is_unhealthy_and_says_so():
    """W25, W35."""
    async with on_fake() as wv:
        assert wv.fake is not None
        for status, code in ((500, "query-failed"), (403, "access-denied"), (503, "connection-failed")):
            wv.fake.misbehave("answer", on="/v1/meta", status=status, body={"error": [{"message": "broken"}]})
            health = await wv.driver.ping()
            assert (health.ok, health.code) == (False, code)
            assert "broken" in health.reason
            wv.fake.behave()
        assert await wv.driver.ping() == type(health)(ok=True)


@pytest.mark.parametrize("scheme", [AuthScheme.NONE, AuthScheme.BEARER])
async def test_left_over_credentials_of_another_method_are_not_sent(scheme: AuthScheme) -> None:
    """W5: a user and a password that were typed for another method, and a key for none."""
    secrets = Secrets(values={"api_key": "k-admin", "password": "left-over", "token": "left-over"})
    keys = {"k-admin": User("admin", admin=True)} if scheme is AuthScheme.BEARER else {}
    async with FakeWeaviate(**({"keys": keys} if keys else {})) as fake:
        given = profile(fake.url, auth_scheme=scheme, options={"username": "left-over"}, secrets=secrets)
        async with connected(given) as wv:
            assert (await wv.driver.ping()).ok
        sent = {each.headers.get("Authorization") for each in fake.requests}
        assert sent == {"Bearer k-admin" if keys else None}
        assert "left-over" not in str([(each.path, each.query, dict(each.headers)) for each in fake.requests])


async def test_what_the_hosted_service_needs_is_said_by_connecting_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """W34: seen through `connect`, not only by what builds the hint."""

    async def fails(*_: object, **__: object) -> None:
        raise ConnectionFailedError("refused", hint="look")

    monkeypatch.setattr(Http, "request", fails)
    for host, said in (("x.weaviate.cloud", True), ("X.WEAVIATE.IO", True), ("weaviate.cloud.example", False)):
        given = profile("http://h:1")
        given = type(given)(name="l", type="weaviate", host=host, port=443)
        async with Http(given) as http:
            with pytest.raises(ConnectionFailedError) as caught:
                await Driver().connect(given, http, None)
        assert (connect.HOSTED_HINT in caught.value.hint) is said
        assert caught.value.hint.startswith("look")


async def test_a_rejected_key_is_told_by_connecting():
    """W36: with the prefix, once, and with what to type."""
    async with FakeWeaviate(keys={"k": User("admin", admin=True)}) as fake:
        for more, option in (({}, "set Auth Method to API Key"), ({"auth_scheme": AuthScheme.BEARER, "secrets": Secrets(
            values={"api_key": "wrong"})}, "enter the new key")):  # fmt: skip
            with pytest.raises(AuthenticationError) as caught:
                async with connected(profile(fake.url, **more)):
                    pass
            assert caught.value.message.count(AuthenticationError.prefix) == 1
            assert option in caught.value.hint
            assert caught.value.hint.count(connect.HOSTED_HINT) == 1


def test_an_error_about_a_tenant_names_it_and_what_lists_the_others():
    unknown = objects.tenant_unknown("anna", "Book", ["zoe", "ann", "annie", "hannah"])
    assert unknown.message == "'Book' has no tenant 'anna' (did you mean ann or hannah or annie?)"
    assert (unknown.code, unknown.hint, unknown.details) == ("tenant-unknown", "list the tenants", {"tenant": "anna"})
    assert [remedy.arguments for remedy in unknown.remedies] == [{"request": "GET /v1/schema/Book/tenants"}]
    assert objects.tenant_unknown("x", "Book", ["zoe"]).message == "'Book' has no tenant 'x'"
    required = protocol.tenant_required("'Book' has tenants")
    assert (required.code, "name one" in required.hint) == ("tenant-required", True)
