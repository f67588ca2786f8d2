"""Connecting: which server is taken, with which credentials, and what is said when it does not work."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from drivers.elasticsearch.rig import OnServer, Rig, connected, on_fake, profile
from drivers.replies import Answers, reply

from dragoman_api import (
    AuthenticationError,
    ConnectionFailedError,
    HttpRequest,
    ObjectsRequest,
    Profile,
    QueryError,
    Server,
)
from dragoman_api.connections import AuthScheme, Secrets, SslMode
from dragoman_api.errors import AccessDeniedError, ConfigurationError, ServerNotSupportedError
from dragoman_api.kit.exchanges import post
from dragoman_api.remedies import Remedy
from dragoman_elasticsearch import connect
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl import protocol
from dragoman_querydsl.connect import ping
from dragoman_querydsl.protocol import learn, whole_documents
from dragoman_sample.fakes.elasticsearch import ApiKey, FakeElasticsearch, User
from fakes.certificates import Certificates, make_certificates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman_querydsl.protocol import Dialect
    from wording import Wording

HEADER = {"X-Elastic-Product": "Elasticsearch"}


def about(number: str = "8.19.21", *, tagline: str = connect.TAGLINE, **version: str) -> dict[str, Any]:
    return {"name": "n1", "version": {"number": number, "build_flavor": "default", **version}, "tagline": tagline}


def identified(*answers: Any, **options: Any) -> tuple[Server, Dialect]:
    given = Profile(name="shop", type="elasticsearch", host="h", port=9200, options=options)
    return Answers(*answers).run(connect.identify(given))


# E3: which servers are taken


@pytest.mark.parametrize(
    ("number", "headers"),
    [("7.0.0", {}), ("7.10.2", {}), ("7.17.29", HEADER), ("8.7.1", HEADER), ("8.19.21", HEADER), ("9.5.3", HEADER)],
)
def test_E3_versions_7_8_and_9_are_taken(number: str, headers: Mapping[str, str]) -> None:
    found, _ = identified(reply(about(number), headers=headers))
    assert (found.product, found.version, found.notes) == ("Elasticsearch", number, [])


def test_E3_opensearch_is_refused_even_with_the_product_header(wording: Wording) -> None:
    """A server calling itself OpenSearch was seen to send Elastic's header."""
    with pytest.raises(ServerNotSupportedError) as caught:
        identified(reply(about("2.19.1", distribution="opensearch"), headers=HEADER))
    wording(caught.value.message)
    with pytest.raises(ServerNotSupportedError) as caught:
        identified(reply(about("7.10.2", distribution="opensearch"), headers=HEADER))
    wording(caught.value.message)


@pytest.mark.parametrize(
    ("answer", "headers"),
    [
        (about("8.1.0"), {}),  # from 7.14 on the header is required
        (about("7.10.2", tagline="Something else"), {}),
        (about("6.8.23"), HEADER),
        (about("10.0.0"), HEADER),
        (about("x"), HEADER),
        ({"hello": "world"}, {}),
        ([1], {}),
        ("<html>", {}),
    ],
)
def test_E3_anything_else_is_refused_with_the_reason(wording: Wording, answer: Any, headers: Mapping[str, str]) -> None:
    with pytest.raises(ServerNotSupportedError) as caught:
        identified(reply(answer, headers=headers))
    wording(caught.value.message)
    assert caught.value.hint


def test_E3_a_newer_major_is_taken_on_request_with_a_warning() -> None:
    found, _ = identified(reply(about("10.0.0"), headers=HEADER), untested_versions=True)
    assert found.notes == ["Elasticsearch 10.0.0 is newer than this driver and untested"]
    with pytest.raises(ServerNotSupportedError) as caught:
        identified(reply(about("10.0.0"), headers=HEADER))
    assert caught.value.remedies == (Remedy("edit-field", {"field": "untested_versions", "value": True}),)


@pytest.mark.parametrize("said", [False, None, 0, "", "false", "true", 1])
def test_E3_only_an_untested_versions_that_is_on_takes_a_newer_major(said: object) -> None:
    """A person's own `false` is no request, and neither is a value of another kind."""
    with pytest.raises(ServerNotSupportedError):
        identified(reply(about("10.0.0"), headers=HEADER), untested_versions=said)
    found, _ = identified(reply(about("9.9.9"), headers=HEADER), untested_versions=said)
    assert found.version == "9.9.9"


@pytest.mark.parametrize("header", ["", "OpenSearch", "elasticsearch", "Elasticsearch "])
def test_E3_another_word_in_the_product_header_is_none(header: str) -> None:
    with pytest.raises(ServerNotSupportedError):
        identified(reply(about(), headers={"X-Elastic-Product": header}))


def test_serverless_is_taken_with_a_warning() -> None:
    found, _ = identified(reply(about("8.11.0", build_flavor="serverless"), headers=HEADER))
    assert found.notes == ["serverless build: untested"]


@pytest.mark.parametrize(
    ("number", "flavor", "case", "pit"),
    [
        ("7.9.3", "default", False, False),
        ("7.10.2", "default", True, False),
        ("7.10.2", "oss", True, False),
        ("7.11.2", "default", True, False),
        ("7.12.0", "default", True, True),
        ("7.12.1", "oss", True, False),
        ("8.0.0", "default", True, True),
    ],
)
def test_features_follow_the_version(number: str, flavor: str, *, case: bool, pit: bool) -> None:
    headers = HEADER if number.startswith("8") else {}
    _, dialect = identified(reply(about(number, build_flavor=flavor), headers=headers))
    assert (dialect.case_insensitive, dialect.point_in_time) == (case, pit)


async def test_E3_the_fork_is_refused_over_http() -> None:
    async with FakeElasticsearch(opensearch="2.19.1") as fake:
        with pytest.raises(ServerNotSupportedError, match="opensearch"):
            async with connected(profile(fake.url), version="2.19.1"):
                pass


# 403 on GET /: credentials without the cluster privilege `monitor`


def test_credentials_without_monitor_connect_with_what_the_header_tells() -> None:
    answers = Answers(reply({}, 403), reply({"username": "x"}, headers=HEADER))
    found, dialect = answers.run(connect.identify(Profile(name="shop", type="elasticsearch", host="h", port=9200)))
    assert [each.path for each in answers.asked] == ["/", "/_security/_authenticate"], "any credentials may ask this"
    assert dialect.point_in_time
    assert dialect.asks_for_vectors, "which has to be tried"
    assert "monitor" in found.notes[0]
    _, dialect = identified(reply({}, 403), reply({"username": "x"}))
    assert dialect == dialect_of(), "without the header it may be any 7.x"


REFUSED = '{"error":{"reason":"request [/a/_search] contains unrecognized parameter: [_source_exclude_vectors]"}}'


@pytest.mark.parametrize(
    ("status", "body", "whole", "shown"),
    [
        (200, "{}", True, True), (400, REFUSED, True, False), (200, "{}", False, None), (400, REFUSED, False, None),
        (400, '{"error":"no such field"}', True, None), (404, "{}", True, None), (403, REFUSED, True, None),
        (400, '{"error":"unrecognized parameter: [q]"}', True, None), (503, REFUSED, True, None),
    ],
)  # fmt: skip
def test_a_hidden_version_shows_by_the_parameters_that_are_taken(
    status: int, body: str, whole: bool, shown: bool | None
) -> None:
    request = whole_documents(post("/a/_search")) if whole else post("/a/_search")
    hidden = dialect_of((7, 14, 0), hidden=True)
    assert hidden.asks_for_vectors
    after = learn(hidden, request, reply(body, status))
    assert after == msgspec.structs.replace(hidden, leaves_out_vectors=shown)
    assert after.asks_for_vectors == (shown is not False)
    for certain in (dialect_of((9, 2, 0)), dialect_of((8, 0, 0)), dialect_of(hidden=True)):
        assert learn(certain, request, reply(body, status)) is certain
    if shown is not None:
        assert learn(after, request, reply(REFUSED if shown else "{}", 400 if shown else 200)) is after


def test_a_403_of_something_else_is_no_elasticsearch() -> None:
    with pytest.raises(ServerNotSupportedError, match="403"):
        identified(reply("<html>", 403), reply("<html>", 403))


@pytest.mark.parametrize("second", [204, 302, 400, 404, 500, 503])
def test_only_a_200_says_that_credentials_without_monitor_are_good(second: int) -> None:
    script = Answers(reply({}, 403), reply({"username": "x"}, second, HEADER))
    with pytest.raises(ServerNotSupportedError, match=f"403 to GET / and {second} to"):
        script.run(connect.identify(Profile(name="shop", type="elasticsearch", host="h", port=9200)))


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, AuthenticationError), (404, QueryError), (500, QueryError), (502, ConnectionFailedError)],
)
def test_only_a_403_asks_again_who_the_credentials_are(status: int, kind: type[Exception]) -> None:
    for exchange in (
        connect.identify(Profile(name="shop", type="elasticsearch", host="h", port=9200)),
        ping(connect.product),
    ):
        script = Answers(reply("", status))
        with pytest.raises(kind):
            script.run(exchange)  # type: ignore[arg-type]
        assert [each.path for each in script.asked] == ["/"]


# credentials


async def test_E9_user_name_and_password_go_as_basic() -> None:
    basic = {"auth_scheme": AuthScheme.BASIC, "options": {"username": "ada"}}
    async with FakeElasticsearch(users={"ada": User("pä:ss")}) as fake:
        given = profile(fake.url, secrets=Secrets(values={"password": "pä:ss"}), **basic)
        async with connected(given, version="8.19.21"):
            expected = base64.b64encode("ada:pä:ss".encode()).decode()
            assert fake.requests[0].headers["Authorization"] == f"Basic {expected}"


async def test_E10_an_api_key_goes_verbatim() -> None:
    key = ApiKey("id1", "secret")
    async with FakeElasticsearch(api_keys=[key]) as fake:
        given = profile(fake.url, auth_scheme=AuthScheme.API_KEY, secrets=Secrets(values={"api_key": key.encoded}))
        async with connected(given, version="8.19.21"):
            assert fake.requests[0].headers["Authorization"] == f"ApiKey {key.encoded}"


@pytest.mark.parametrize("key", ["", "ApiKey abc", "apikey abc", "ab\nc", "id1:secret"])
async def test_E10_what_cannot_be_a_key_is_refused_and_not_sent(key: str) -> None:
    async with FakeElasticsearch(api_keys=[ApiKey("id1", "secret")]) as fake:
        given = profile(fake.url, auth_scheme=AuthScheme.API_KEY, secrets=Secrets(values={"api_key": key}))
        with pytest.raises(ConfigurationError) as caught:
            async with connected(given, version="8.19.21"):
                pass
        assert fake.requests == []
        assert "secret" not in f"{caught.value.message} {caught.value.hint}"


def test_E10_a_key_in_clear_is_recognised_and_the_encoding_offered(wording: Wording) -> None:
    given = Profile(
        name="s", type="e", host="h", port=1, auth_scheme=AuthScheme.API_KEY, secrets=Secrets(values={"api_key": "a:b"})
    )
    with pytest.raises(ConfigurationError) as caught:
        connect.check_key(given)
    wording(caught.value.message)
    assert "base64" in caught.value.hint


async def test_E11_none_sends_no_credentials() -> None:
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        assert all("Authorization" not in request.headers for request in es.fake.requests)


@pytest.mark.parametrize("version", ["7.10.2", "8.19.21"])
async def test_E39_rejected_credentials_say_so_and_advise_https(wording: Wording, version: str) -> None:
    async with FakeElasticsearch(version=version, users={"ada": "right"}) as fake:
        more = {"auth_scheme": AuthScheme.BASIC, "options": {"username": "ada"}}
        given = profile(fake.url, secrets=Secrets(values={"password": "wrong"}), **more)
        with pytest.raises(AuthenticationError) as caught:
            async with connected(given, version=version):
                pass
    assert caught.value.message.startswith(
        f"Authentication failed: the user name or the password was rejected by 127.0.0.1:{fake.port} (401): "
    )
    wording(caught.value.hint)
    assert "wrong" not in caught.value.message


def test_E39_over_https_the_advice_is_about_the_credentials() -> None:
    given = Profile(name="shop", type="e", host="h", port=1, ssl_mode=SslMode.PREFERRED)
    error = connect.credentials_rejected(AuthenticationError("no"), given)
    assert "HTTPS" not in error.hint
    assert error.message == "Authentication failed: Auth Method None was rejected by h:1 (401): no"


async def test_E39_a_key_that_is_revoked_later_fails_the_next_ping_and_the_next_page() -> None:
    key = ApiKey("id1", "secret")
    async with FakeElasticsearch(api_keys=[key]) as fake:
        given = profile(fake.url, auth_scheme=AuthScheme.API_KEY, secrets=Secrets(values={"api_key": key.encoded}))
        async with connected(given, version="8.19.21") as es:
            name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
            assert (await es.driver.ping()).ok
            key.state = "revoked"
            health = await es.driver.ping()
            assert not health.ok
            assert health.reason.startswith("Authentication failed: the API key was rejected")
            with pytest.raises(AuthenticationError):
                await es.page(name)
            key.state = "valid"


@pytest.mark.parametrize(
    "answer",
    [
        reply("<html>sign in</html>"),
        reply("[]"),
        reply({"status": "ok"}),
        reply(about("8.19.21")),  # without the header of the product
        reply(about("2.19.1", distribution="opensearch"), headers=HEADER),
    ],
)
def test_a_ping_takes_no_answer_of_another_server(answer: Any) -> None:
    with pytest.raises(ServerNotSupportedError):
        Answers(answer).run(ping(connect.product))


@pytest.mark.parametrize("answer", [reply(about("8.19.21"), headers=HEADER), reply("", status=403)])
def test_a_ping_takes_the_server_and_its_refusal_to_tell_of_itself(answer: Any) -> None:
    assert Answers(answer).run(ping(connect.product)).ok


async def test_403_is_a_permission_error_without_the_prefix() -> None:
    users = {"ada": User("pw", cluster=("monitor",), indices={"mine": ("read",)})}
    async with FakeElasticsearch(users=users) as fake:
        more = {"auth_scheme": AuthScheme.BASIC, "options": {"username": "ada"}}
        given = profile(fake.url, secrets=Secrets(values={"password": "pw"}), **more)
        async with connected(given, version="8.19.21") as es:
            with pytest.raises(AccessDeniedError, match=r"indices:admin/mappings/get.*\[other\]") as caught:
                await es.driver.describe_object("other")
            assert not caught.value.message.startswith("Authentication failed")


# transport


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.mark.parametrize("mode", [SslMode.PREFERRED, SslMode.REQUIRED_SKIP_VERIFY])
async def test_E13_any_certificate_will_do(certificates: Certificates, mode: SslMode) -> None:
    async with (
        FakeElasticsearch(tls=certificates) as fake,
        connected(profile(fake.url, ssl_mode=mode), version="8.19.21") as es,
    ):
        assert (await es.driver.ping()).ok


async def test_E14_verify_ca_checks_the_chain_and_verify_identity_the_name(certificates: Certificates) -> None:
    pem = certificates.ca.read_text()
    async with FakeElasticsearch(tls=certificates) as fake:
        for mode, ca, fine in (
            (SslMode.VERIFY_CA, pem, True),
            (SslMode.VERIFY_CA, "", False),
            (SslMode.VERIFY_IDENTITY, pem, False),  # made for localhost, reached as 127.0.0.1
        ):
            given = profile(fake.url, ssl_mode=mode, ca_pem=ca)
            if fine:
                async with connected(given, version="8.19.21"):
                    continue
            with pytest.raises(ConnectionFailedError) as caught:
                async with connected(given, version="8.19.21"):
                    pass
            assert caught.value.message.startswith("Connection failed: ")
            offered = [remedy.arguments.get("value") for remedy in caught.value.remedies]
            assert "Skip TLS Verification" in caught.value.hint or offered == ["verify-ca"]


async def test_E8_skipping_verification_overrides_both_modes_and_is_said(certificates: Certificates) -> None:
    async with FakeElasticsearch(tls=certificates) as fake:
        for mode in (SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY):
            given = profile(fake.url, ssl_mode=mode, skip_tls_verification=True)
            async with connected(given, version="8.19.21") as es:
                assert any("Skip TLS Verification is on" in note.reason for note in es.http.warnings)
                found = await es.driver.connect(given, es.http, None)
                assert found.notes == [], "the host adds the client's warnings, once"


async def test_E12_disabled_is_plain_http_without_fallback(certificates: Certificates) -> None:
    async with FakeElasticsearch(tls=certificates) as fake:
        with pytest.raises(ConnectionFailedError) as caught:
            async with connected(profile(fake.url, ssl_mode=SslMode.DISABLED), version="8.19.21"):
                pass
        assert caught.value.message.startswith(ConnectionFailedError.prefix)
        assert [remedy.arguments["field"] for remedy in caught.value.remedies] == ["ssl_mode"]


async def test_E40_https_to_a_plain_port_advises_disabled(wording: Wording) -> None:
    async with FakeElasticsearch() as fake:
        with pytest.raises(ConnectionFailedError) as caught:
            async with connected(profile(fake.url, ssl_mode=SslMode.PREFERRED), version="8.19.21"):
                pass
        wording(caught.value.message, caught.value.hint)


async def test_E40_nothing_listens(wording: Wording) -> None:
    async with FakeElasticsearch() as fake:
        url = fake.url
    with pytest.raises(ConnectionFailedError) as caught:
        async with connected(profile(url), version="8.19.21"):
            pass
    wording(caught.value.message)


@pytest.mark.parametrize(
    ("status", "headers", "said", "advised"),
    [
        (302, {"Location": "https://login.example/"}, "h:9200 redirects (HTTP 302)", "https://login.example/"),
        (429, {"Retry-After": "20"}, "h:9200 takes no more requests", "wait 20 s"),
        (429, {}, "h:9200 takes no more requests", "wait a minute"),
    ],
)
def test_E40_what_turns_a_connection_away_is_named_with_the_host(
    status: int, headers: dict[str, str], said: str, advised: str
) -> None:
    with pytest.raises(ConnectionFailedError) as caught:
        identified(reply("", status, headers))
    assert said in caught.value.message
    assert advised in caught.value.hint


async def test_a_ping_does_not_wait_as_long_as_a_busy_server_asks() -> None:
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        busy = {"error": {"type": "es_rejected_execution_exception", "reason": "slow down"}, "status": 429}
        es.fake.misbehave("answer", status=429, body=busy, headers={"Retry-After": "20"})
        with anyio.fail_after(10):
            assert (await es.driver.ping()).reason.endswith("slow down")
        es.fake.behave()


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [("html", ConnectionFailedError), ("cut", ConnectionFailedError), ("drop", ConnectionFailedError)],
)
async def test_a_server_that_goes_bad_gets_a_clear_error(trouble: Any, kind: type[Exception]) -> None:
    async with on_fake("8.19.21") as es:
        assert es.fake is not None
        name = await es.index({"n": {"type": "long"}}, [{"n": 1}])
        await es.page(name)
        es.fake.misbehave(trouble)
        with pytest.raises(kind):
            await es.page(name)
        assert not (await es.driver.ping()).ok
        es.fake.behave()
        assert (await es.page(name)).total == 1


async def test_the_connection_sends_plain_json_on_every_version() -> None:
    """The versioned media types are 406 or 400 on some servers."""
    for version in ("7.10.2", "8.19.21"):
        async with on_fake(version) as es:
            assert es.fake is not None
            await es.page(await es.index({"n": {"type": "long"}}, [{"n": 1}]))
            kinds = {request.headers.get("Content-Type") for request in es.fake.requests if request.body}
            assert kinds == {"application/json", "application/x-ndjson"}
            assert all("compatible-with" not in request.headers["Accept"] for request in es.fake.requests)


class TestConnectionOnServer(OnServer):
    async def test_E3_the_server_is_known_by_name_and_version(self, es: Rig, live_server: dict[str, Any]) -> None:
        found = await es.driver.connect(es.driver._profile, es.http, None)
        assert (found.product, found.version) == ("Elasticsearch", live_server["version"])
        assert (await es.driver.ping()).ok

    async def test_E39_rejected_credentials(self, live_server: dict[str, Any]) -> None:
        if not live_server["security"]:
            pytest.skip("no security")
        more = {"auth_scheme": AuthScheme.BASIC, "options": {"username": "elastic"}}
        for given in (
            profile(live_server["url"], secrets=Secrets(values={"password": "wrong"}), **more),
            profile(live_server["url"]),
            profile(
                live_server["url"],
                auth_scheme=AuthScheme.API_KEY,
                secrets=Secrets(values={"api_key": live_server["api_keys"]["revoked"]["encoded"]}),
            ),
        ):
            with pytest.raises(AuthenticationError, match=f"^{AuthenticationError.prefix}"):
                async with connected(given, version=live_server["version"]):
                    pass

    async def test_E15_a_key_that_may_see_some_indices_and_read_others_gets_both_listed(
        self, es: Rig, live_server: dict[str, Any]
    ) -> None:
        if not live_server["security"]:
            pytest.skip("no security")
        seen = await es.index({"a": {"type": "long"}}, [{"a": 1}], name="seen")
        readable = await es.index({"a": {"type": "long"}}, [{"a": 1}, {"a": 2}], name="readable")
        await es.index({"a": {"type": "long"}}, [{"a": 1}], name="foreign")
        rights = [
            {"names": [seen], "privileges": ["view_index_metadata"]}, {"names": [readable], "privileges": ["read"]},
        ]  # fmt: skip
        descriptors = {"r": {"index": rights}}
        made = await es.call("POST", "/_security/api_key", {"name": "r", "role_descriptors": descriptors})
        encoded = base64.b64encode(f"{made['id']}:{made['api_key']}".encode()).decode()
        limited_profile = profile(
            live_server["url"], auth_scheme=AuthScheme.API_KEY, secrets=Secrets(values={"api_key": encoded})
        )
        async with connected(limited_profile, version=live_server["version"]) as limited:
            listed = await limited.driver.list_objects(ObjectsRequest())
        rows = {entry.name: entry.rows for entry in listed}
        codes = [note.code for note in listed.notes]
        if es.version < (8, 0) and seen not in rows:  # 7.10 resolves no name of an index by that right
            assert (rows, codes) == ({readable: 2}, ["objects-hidden"])
        else:
            assert (rows, codes) == ({seen: None, readable: 2}, ["objects-hidden", "rows-unknown"])

    async def test_a_key_that_may_only_read_some_indices_works(self, es: Rig, live_server: dict[str, Any]) -> None:
        """Without `monitor` and without `view_index_metadata`: listing, columns, pages, all from the right to read."""
        if not live_server["security"]:
            pytest.skip("no security")
        name = await es.index(
            {
                "title": {"type": "text", "fields": {"keyword": {"type": "keyword"}}},
                "items": {"type": "nested", "properties": {"qty": {"type": "integer"}}},
            },
            [{"title": "a", "items": [{"qty": 1}, {}]}],
        )
        made = await es.call(
            "POST",
            "/_security/api_key",
            {"name": "r", "role_descriptors": {"r": {"index": [{"names": [name], "privileges": ["read"]}]}}},
        )
        encoded = base64.b64encode(f"{made['id']}:{made['api_key']}".encode()).decode()
        given = profile(
            live_server["url"], auth_scheme=AuthScheme.API_KEY, secrets=Secrets(values={"api_key": encoded})
        )
        async with connected(given, version=live_server["version"]) as limited:
            listed = await limited.driver.list_objects(ObjectsRequest())
            assert [each.name for each in listed] == [name]
            assert [note.code for note in listed.notes] == ["objects-hidden"]
            described = await limited.driver.describe_object(name)
            assert [each.name for each in described.columns][3:] == ["items", "items.qty", "title"]
            assert [note.code for note in described.notes] == ["mapping-hidden"]
            [row] = (await limited.page(name)).rows
            assert (row["title"], row["items.qty"]) == ("a", "[1,null]")


# faults: answers that are errors, by type


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (404, {"error": {"root_cause": [{"type": "index_not_found_exception", "reason": "no such index [x]"}],
                         "type": "index_not_found_exception", "reason": "no such index [x]"}, "status": 404},
         "object-not-found", "no such index [x]"),
        (400, {"error": "no handler found for uri [/x] and method [PUT]"}, "query-failed", "no handler found"),
        (502, "<html>bad gateway</html>", "connection-failed", "HTTP 502"),
        (503, {"error": {"root_cause": [], "type": "search_phase_execution_exception", "reason": "",
                         "caused_by": {"type": "too_many_buckets_exception", "reason": "Trying to create too many"}}},
         "query-failed", "Trying to create too many"),
        (503, {"error": {"root_cause": [{"type": "no_shard_available_action_exception", "reason": None}],
                         "type": "search_phase_execution_exception", "reason": "all shards failed"}},
         "query-failed", "no_shard_available_action_exception"),
        (413, "", "query-failed", "http.max_content_length"),
        (500, "", "query-failed", "HTTP 500"),
        (403, {"error": {"root_cause": [{"type": "cluster_block_exception", "reason": "index [x] blocked by"}],
                         "type": "cluster_block_exception", "reason": "index [x] blocked by"}},
         "query-failed", "index [x] blocked by"),
    ],
)  # fmt: skip
def test_errors_are_classified_by_type_and_keep_the_useful_text(status: int, body: Any, kind: str, text: str) -> None:
    error = protocol.exception(protocol.read(reply(body, status)))
    assert (error.code, text in error.message) == (kind, True), error.message


def test_the_text_of_a_query_error_comes_from_the_shard() -> None:
    cause = {"type": "parse_exception", "reason": "Cannot parse 'k:('\nWas expecting one of:\n <NOT> ..."}
    shard = {"reason": {"type": "query_shard_exception", "reason": "Failed to parse query [k:(]", "caused_by": cause}}
    root = [{"type": "query_shard_exception", "reason": "Failed to parse query [k:(]"}]
    body = {"error": {"root_cause": root, "type": "search_phase_execution_exception", "reason": "all shards failed",
                      "failed_shards": [shard]}}  # fmt: skip
    message = protocol.exception(protocol.read(reply(body, 400))).message
    expected = "server error: query_shard_exception: Failed to parse query [k:(]: Cannot parse 'k:('"
    assert message == expected


@pytest.mark.parametrize(
    ("status", "kind", "busy"),
    [
        (429, "es_rejected_execution_exception", True),
        (429, "circuit_breaking_exception", True),
        (429, "too_many_scroll_contexts_exception", True),
        (429, "cluster_block_exception", False),
        (503, "no_shard_available_action_exception", False),
        (400, "circuit_breaking_exception", False),
    ],
)
def test_waiting_is_decided_by_type_not_by_429(status: int, kind: str, *, busy: bool) -> None:
    body = {"error": {"root_cause": [{"type": kind, "reason": "r"}], "type": kind, "reason": "r"}}
    assert (protocol.retry_after(reply(body, status)) is not None) is busy


def test_too_many_scrolls_say_what_to_do_on_every_version() -> None:
    for status, kind in ((500, "exception"), (429, "too_many_scroll_contexts_exception")):
        text = "Trying to create too many scroll contexts. Must be less than or equal to: [500]."
        body = {"error": {"root_cause": [{"type": kind, "reason": text}], "type": kind, "reason": text}}
        assert text in protocol.exception(protocol.read(reply(body, status))).message


def test_requests_are_what_they_say() -> None:
    assert next(ping(connect.product)) == (HttpRequest("GET", "/"),)
