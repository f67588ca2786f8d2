"""Connecting: how, with which credentials, and what is said when it does not work or stops working."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import Rig, connected, keyed, needs, on_fake, on_server, profile

import dragoman_weaviate
from dragoman_api import (
    AuthenticationError,
    ConnectionFailedError,
    CountRequest,
    Delete,
    Filter,
    Insert,
    ObjectsRequest,
    PageRequest,
    Profile,
    QueryError,
    Update,
)
from dragoman_api.connections import SslMode
from dragoman_api.errors import AccessDeniedError, ConfigurationError, ServerNotSupportedError, WindowExceededError
from dragoman_api.exports import ExportForm
from dragoman_api.hookspecs import DriverSpec
from dragoman_api.testing.target import hooks_of
from dragoman_sample.fakes.weaviate import FakeWeaviate, Role, User
from dragoman_weaviate import connect, protocol
from dragoman_weaviate.driver import Driver
from fakes.certificates import Certificates, make_certificates

if TYPE_CHECKING:
    from wording import Wording

MANIFEST = json.loads((Path(dragoman_weaviate.__file__).parent / "driver.json").read_text(encoding="utf-8"))
FORM = {each["name"]: each for each in MANIFEST["form"]}
META = {"version": "1.38.11", "hostname": "http://h", "modules": {}}
TOO_MANY: dict[str, Any] = {
    "data": {"Get": {}},
    "errors": [{"locations": [{"column": 6, "line": 1}], "message": "429 Too many requests", "path": ["Get"]}],
}
READABLE = Role("limited", (("read_collections", "Readable*"), ("read_data", "Readable*")))


# the form and the wheel -----------------------------------------------------------------------------------------------


def test_the_form_has_no_database_field():
    """W3: one connection is one instance."""
    assert [*FORM] == [
        "host", "port", "auth_method", "api_key", "token_url", "client_id", "client_secret", "scope", "ssl_mode",
        "skip_tls_verification", "ca_file",
        "client_certificate", "hosts", "path_prefix", "headers", "secret_headers", "delete_route",
    ]  # fmt: skip


def test_the_port_is_8080_and_the_hosted_services_is_named():
    """W4."""
    assert FORM["port"]["default"] == 8080
    assert "443" in FORM["port"]["help"]


def test_the_methods_are_none_and_an_api_key_sent_as_bearer():
    """W5: the key is asked for only where it is sent."""
    assert MANIFEST["auth_methods"] == [
        {"value": "none", "label": "None", "scheme": "none"},
        {"value": "api-key", "label": "API Key", "scheme": "Bearer"},
        {"value": "client-credentials", "label": "OAuth Client Credentials", "scheme": "client-credentials"},
    ]
    assert FORM["api_key"]["visible_if"] == {"auth_method": ["api-key"]}
    assert FORM["auth_method"]["default"] == "none"


def test_there_are_six_ssl_modes_and_a_switch_under_advanced():
    """W6, W7."""
    assert [each["value"] for each in FORM["ssl_mode"]["choices"]] == [mode.value for mode in (
        SslMode.DISABLED, SslMode.PREFERRED, SslMode.REQUIRED_SKIP_VERIFY, SslMode.REQUIRED, SslMode.VERIFY_CA,
        SslMode.VERIFY_IDENTITY,
    )]  # fmt: skip
    assert FORM["ssl_mode"]["default"] == "disabled"
    assert FORM["skip_tls_verification"]["advanced"] is True


def test_the_label_and_where_it_is_not_available():
    """P4, P6."""
    assert MANIFEST["label"] == "Weaviate Driver"
    assert MANIFEST["excluded_surfaces"] == ["phone", "tablet"]


def test_what_it_cannot_do_is_not_claimed():
    """W40: no SQL, no gRPC, no tunnel, no schema edits; the network is the connection's address alone."""
    assert sorted(hooks_of(Driver())) == sorted(MANIFEST["hooks"])
    specified = {name for name in vars(DriverSpec) if not name.startswith("_")}
    assert specified - {*MANIFEST["hooks"]} == {"close", "hold_snapshot"}
    assert MANIFEST["permissions"] == ["net:connection", "net:sign-in", "secrets:connection"]
    assert "raw-filter" not in MANIFEST["capabilities"]


@pytest.mark.parametrize(
    ("status", "headers", "said", "advised"),
    [
        (302, {"Location": "https://login.example/"}, "h:1 redirects (HTTP 302)", "https://login.example/"),
        (429, {"Retry-After": "20"}, "h:1 takes no more requests", "wait 20 s"),
    ],
)
def test_W37_what_turns_a_connection_away_is_named_with_the_host(
    status: int, headers: dict[str, str], said: str, advised: str
) -> None:
    with pytest.raises(ConnectionFailedError) as caught:
        Answers(reply("", status, headers), reply("", 401)).run(connect.identify(profile("http://h:1")))
    assert said in caught.value.message
    assert advised in caught.value.hint


# identifying ----------------------------------------------------------------------------------------------------------


def identified(meta: Any, own: Any = None) -> Any:
    answers = Answers(reply(meta), own or reply("", status=401))
    found = answers.run(connect.identify(profile("http://h:1")))
    assert [each.path for each in answers.asked] == ["/v1/meta", "/v1/users/own-info"]
    return found


def test_the_version_comes_from_a_request_that_needs_the_key():
    """W25: the readiness endpoints never look at it."""
    found, features = identified(META)
    assert (found.product, found.version, found.notes) == ("Weaviate", "1.38.11", [])
    assert features.negation
    assert not protocol.Features((1, 32, 0)).negation


def test_an_old_version_is_taken_with_a_warning():
    assert "untested" in identified(META | {"version": "1.18.6"})[0].notes[0]


@pytest.mark.parametrize("body", ["", "<html>", "[]", {"version": "x"}, {"name": "es", "version": {"number": "8"}}])
def test_something_else_is_refused(wording: Wording, body):
    with pytest.raises(ServerNotSupportedError) as caught:
        identified(body)
    wording(caught.value.message)


def test_what_the_roles_allow_is_said(wording: Wording):
    """Without rights the list of collections is empty, so a note says why."""
    nothing = {"username": "n", "roles": []}
    reads = {"roles": [{"name": "viewer", "permissions": [{"action": "read_data"}, {"action": "read_collections"}]}]}
    writes = {"roles": [{"permissions": [{"action": "read_data"}, {"action": "update_data"}]}]}
    wording(identified(META, reply(nothing))[0].notes[0])
    wording(identified(META, reply(reads))[0].notes[0])
    assert identified(META, reply(writes))[0].notes == []
    for own in (reply({"username": "ro", "roles": None}), reply("<html>"), reply("", status=404)):
        assert identified(META, own)[0].notes == []


@pytest.mark.parametrize("said", ["unauthorized: invalid api key", "unauthorized: invalid api key: invalid token"])
def test_a_rejected_key_says_so_with_the_prefix_and_what_the_hosted_service_needs(wording: Wording, said):
    """W34, W36."""
    given = profile("http://h:8080", **keyed("wrong"))
    error = connect.credentials_rejected(AuthenticationError(said), given)
    assert error.message.startswith("Authentication failed: the API key was rejected by h:8080 (401)")
    assert said in error.message
    wording(error.hint)


def test_a_missing_key_and_a_key_too_many_are_told_apart(wording: Wording):
    """W36: a server without authentication answers 401 to any key, with a text of its own."""
    missing = AuthenticationError("anonymous access not enabled. Please authenticate through one of …")
    error = connect.credentials_rejected(missing, profile("http://h:8080"))
    wording(error.message, error.hint)
    assert error.remedies[0].arguments == {"field": "auth_method", "value": "api-key"}
    extra = AuthenticationError("no authentication scheme is configured (API Key or OIDC), but an 'Authorization' …")
    error = connect.credentials_rejected(extra, profile("http://h:8080", **keyed("k")))
    wording(error.message, error.hint)
    assert error.remedies[0].arguments == {"field": "auth_method", "value": "none"}


@pytest.mark.parametrize("host", ["x.weaviate.cloud", "a.b.weaviate.network"])
def test_the_hosted_service_needs_https_and_a_key(host):
    """W34: said when the connection fails, and only for it."""
    given = Profile(name="l", type="weaviate", host=host, port=443)
    assert connect.HOSTED_HINT in connect.advise(ConnectionFailedError("refused", hint="look"), given).hint
    other = Profile(name="l", type="weaviate", host="db.example", port=443)
    assert connect.advise(ConnectionFailedError("refused", hint="look"), other).hint == "look"


def test_an_empty_key_is_refused_before_anything_is_sent(wording: Wording):
    """W5."""
    from dragoman_api.http import Http

    with pytest.raises(ConfigurationError) as caught:
        Http(profile("http://127.0.0.1:1", **keyed("")))
    wording(caught.value.message)


@pytest.mark.parametrize(
    ("status", "body", "code", "text"),
    [
        (401, '{"code":401,"message":"unauthorized: invalid api key"}', "authentication-failed", "invalid api key"),
        (403, {"error": [{"message": "rbac: forbidden"}]}, "access-denied", "rbac: forbidden"),
        (422, {"code": 601, "message": "id in path must be of type uuid"}, "query-failed", "id in path"),
        (422, {"error": [{"message": "a"}, {"message": "b"}, {"message": "a"}]}, "query-failed", "a; b"),
        (422, {"error": [{"message": "class MT has multi-tenancy enabled, but request was without tenant"}]},
         "tenant-required", "multi-tenancy"),
        (410, {"error": [{"message": "graphql api is not supported in the current cluster configuration"}]},
         "graphql-unavailable", "GraphQL"),
        (404, "", "query-failed", "HTTP 404"),
        (502, "<html>bad gateway</html>", "connection-failed", "502"),
        (500, "plain words", "query-failed", "plain words"),
    ],
)  # fmt: skip
def test_every_shape_of_error_is_understood(status, body, code, text):
    error = protocol.exception(reply(body, status))
    assert error.code == code
    assert text in error.message


# on a fake ------------------------------------------------------------------------------------------------------------

KEYS: dict[str, Any] = {"keys": {"k-admin": User("admin", admin=True), "k-reader": User("reader")}}


async def test_none_sends_no_credentials_and_a_key_is_sent_as_bearer():
    """W5: the key never in the address."""
    for more, expected in (({}, None), (keyed("k-admin"), "Bearer k-admin")):
        async with on_fake(given=more, **(KEYS if more else {})) as wv:
            assert wv.fake is not None
            assert {each.headers.get("Authorization") for each in wv.fake.requests} == {expected}
            assert not [each for each in wv.fake.requests if "k-admin" in each.path + each.query]


async def test_a_key_that_is_wrong_missing_or_too_many_is_told(wording: Wording):
    """W36: `Authentication failed: …`."""
    async with AsyncExitStack() as stack:
        closed = await stack.enter_async_context(FakeWeaviate(**KEYS))
        open_one = await stack.enter_async_context(FakeWeaviate())
        for url, more in ((closed.url, keyed("wrong")), (closed.url, {}), (open_one.url, keyed("any"))):
            with pytest.raises(AuthenticationError) as caught:
                await stack.enter_async_context(connected(profile(url, **more)))
            assert caught.value.message.startswith(AuthenticationError.prefix)
            wording(caught.value.message)


async def test_a_revoked_key_fails_the_next_health_check():
    """W35: with a reason and a code, so that the host can end the connection."""
    async with on_fake(given=keyed("k-admin"), **KEYS) as wv:
        assert wv.fake is not None
        assert (await wv.driver.ping()).ok
        wv.fake.revoke("k-admin")
        health = await wv.driver.ping()
        assert (health.ok, health.code) == (False, "authentication-failed")
        assert "enter the new key" in health.reason or "rejected" in health.reason
        wv.made.clear()


async def test_health_is_meta_with_the_key():
    """W25."""
    async with on_fake(given=keyed("k-admin"), **KEYS) as wv:
        mark = len(wv.log)
        await wv.driver.ping()
        assert [str(each) for each in wv.log[mark:]] == ["GET /v1/meta"]


async def test_a_server_that_is_away_is_a_failed_health():
    """W37: `Connection failed: …`, as a value."""
    async with on_fake() as wv:
        assert wv.fake is not None
        wv.fake.misbehave("drop")
        health = await wv.driver.ping()
        assert (health.ok, health.code) == (False, "connection-failed")
        assert health.reason.startswith("Connection failed: ")
        wv.fake.behave()


async def test_another_server_that_answers_is_a_failed_health():
    """W25: a proxy's page has status 200 too."""
    async with on_fake() as wv:
        assert wv.fake is not None
        for body in ({"status": "ok"}, [], {"version": "new"}):
            wv.fake.misbehave("answer", on="/v1/meta", times=1, status=200, body=body)
            health = await wv.driver.ping()
            assert (health.ok, health.code) == (False, "server-not-supported")
        assert (await wv.driver.ping()).ok


async def test_a_busy_server_is_asked_again():
    async with on_fake() as wv:
        assert wv.fake is not None
        wv.fake.misbehave("answer", on="/v1/meta", times=2, status=429, body={"error": [{"message": "slow down"}]})
        assert (await wv.driver.ping()).ok


async def test_a_ping_does_not_wait_as_long_as_a_busy_server_asks():
    async with on_fake() as wv:
        assert wv.fake is not None
        busy = {"error": [{"message": "slow down"}]}
        wv.fake.misbehave("answer", on="/v1/meta", status=429, body=busy, headers={"Retry-After": "20"})
        with anyio.fail_after(10):
            assert (await wv.driver.ping()).reason.endswith("slow down")
        wv.fake.behave()


async def test_a_search_that_was_one_too_many_is_sent_again():
    async with on_fake() as wv:
        assert wv.fake is not None
        name = await wv.collection({"i": "int", "t": "text"}, [{"i": 1, "t": TOO_MANY["errors"][0]["message"]}])
        page = await wv.page(name, Filter("i", "=", 1))
        searches = [each for each in wv.sent("POST", "/v1/graphql") if "{Get{" in str(each.body)]
        assert len(searches) == 1, "a row that holds the server's words is no refusal"
        wv.fake.misbehave("answer", on="/v1/graphql", times=2, status=200, body=TOO_MANY)
        assert (await wv.page(name, Filter("i", "=", 1))).cells == page.cells
        wv.fake.misbehave("answer", on="/v1/graphql", status=200, body=TOO_MANY)
        with pytest.raises(QueryError, match="429 Too many requests") as caught:
            await wv.page(name, Filter("i", "=", 1))
        assert caught.value.hint.startswith("wait: ")
        wv.fake.behave()


async def test_a_write_is_never_sent_twice():
    async with on_fake() as wv:
        assert wv.fake is not None
        name = await wv.collection({"t": "text"})
        wv.fake.misbehave("answer", on="/v1/objects", status=429, body={"error": [{"message": "slow down"}]})
        [outcome] = await wv.apply(Insert(name, {"t": "tea"}))
        assert outcome.status == "failed"
        assert len(wv.sent("POST", "/v1/objects")) == 1
        wv.fake.behave()


@pytest.mark.parametrize("kind", ["empty", "garbage", "html", "cut", "drop"])
async def test_a_bad_answer_is_a_clear_error_and_nothing_is_lost(kind):
    """W37: a 200 with an empty body, half an answer, a proxy's page."""
    async with on_fake() as wv:
        assert wv.fake is not None
        name = await wv.collection({"i": "int"}, [{"i": 1}, {"i": 2}])
        compiled = await wv.filter(name, Filter("i", ">", 0))
        wv.fake.misbehave(kind)
        for asked in (
            wv.driver.fetch_page(PageRequest(object=name, total=False)),
            wv.driver.fetch_page(PageRequest(object=name, filter=compiled)),
            wv.driver.count_rows(CountRequest(object=name)),
            wv.driver.describe_object(name),
            wv.driver.list_objects(ObjectsRequest()),
        ):
            with pytest.raises((QueryError, ConnectionFailedError)):
                await asked
        with pytest.raises((QueryError, ConnectionFailedError)):
            await wv.export(name)
        wv.fake.behave()
        assert len(await wv.export(name)) == 2


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("mode", [each for each in SslMode if each.https])
async def test_every_mode_but_disabled_is_https(mode: SslMode, certificates: Certificates):
    """W7: Required checks nothing, as Required (skip verify); the two that verify refuse a stranger."""
    async with FakeWeaviate(tls=certificates) as fake:
        if mode.verifies:
            with pytest.raises(ConnectionFailedError) as caught:
                async with connected(profile(fake.url, ssl_mode=mode)):
                    pass
            assert caught.value.message.startswith(ConnectionFailedError.prefix)
            assert "skip" in caught.value.hint.lower()  # W37: what to do about a self-signed certificate
        more = {"skip_tls_verification": True} if mode.verifies else {}  # W6
        async with connected(profile(fake.url, ssl_mode=mode, **more)) as wv:
            assert (await wv.driver.ping()).ok


async def test_plain_http_to_a_tls_port_is_told(certificates: Certificates):
    """W37."""
    async with FakeWeaviate(tls=certificates) as fake:
        with pytest.raises(ConnectionFailedError) as caught:
            async with connected(profile(fake.url, ssl_mode=SslMode.DISABLED)):
                pass
        assert caught.value.message.startswith(ConnectionFailedError.prefix)


async def test_a_key_without_rights_is_told_and_sees_nothing():
    roles = {"keys": {"k": User("nobody")}, "access": "roles"}
    async with on_fake(given=keyed("k"), **roles) as wv:
        found = await wv.driver.list_objects(ObjectsRequest())
        assert (found.objects, [note.code for note in found.notes]) == ([], ["objects-hidden"])


async def test_an_empty_database_hides_nothing_from_those_who_see_all():
    async with on_fake() as anonymous:
        assert (await anonymous.driver.list_objects(ObjectsRequest())).notes == []
    async with on_fake(given=keyed("k"), keys={"k": User("root", admin=True)}, access="roles") as root:
        assert (await root.driver.list_objects(ObjectsRequest())).notes == []


# rules of servers that are set up differently -------------------------------------------------------------------------


async def hold_without_graphql(wv: Rig) -> None:
    name = await wv.collection({"i": "int"}, [{"i": at} for at in range(20)])
    listed = {each.name: each.rows for each in await wv.driver.list_objects(ObjectsRequest())}
    assert listed[name] is None
    page = await wv.page(name)
    assert (len(page.cells), page.total, page.notes[0].code) == (20, None, "total-unknown")
    for asked in (wv.page(name, Filter("i", ">", 1)), wv.driver.count_rows(CountRequest(object=name))):
        with pytest.raises(QueryError) as caught:
            await asked
        assert caught.value.code == "graphql-unavailable"
    assert len(await wv.export(name)) == 20
    [row, *_] = page.rows
    assert [each.status for each in await wv.apply(Update(row.key, {"i": 7}))] == ["applied"]
    [answer] = await wv.console("{ Get { X { i } } }")
    assert answer.status == 422


async def test_without_graphql_all_else_works():
    async with on_fake(graphql=False) as wv:
        await hold_without_graphql(wv)


async def hold_small_window(wv: Rig) -> None:
    name = await wv.collection({"i": "int"}, [{"i": at} for at in range(120)])
    for rows in ([], [Filter("i", ">=", 0)]):
        with pytest.raises(WindowExceededError) as caught:
            await wv.page(name, *rows, limit=51)
        assert caught.value.details["window"] == 50
        assert len((await wv.page(name, *rows, limit=50)).cells) == 50
    seen, cursor = 0, None
    while seen == 0 or cursor:
        page = await wv.driver.fetch_page(PageRequest(object=name, limit=50, offset=seen, cursor=cursor))
        seen, cursor = seen + len(page.cells), page.next
    assert seen == 120
    for rows in ([], [Filter("i", ">=", 0)]):
        ids = [row["id"] for row in await wv.export(name, *rows, form=ExportForm.ROWS)]
        assert len(ids) == len(set(ids)) == 120


async def test_a_smaller_window_of_the_server_is_said_and_an_export_passes_it():
    """W39."""
    async with on_fake(window=50, page=25) as wv:
        await hold_small_window(wv)


async def hold_roles(admin: Rig, limited: Rig) -> None:
    """Hold what a key with rights on some collections may do; its collections begin with Readable."""
    with pytest.raises(AccessDeniedError, match="not filter, sort or count"):
        await limited.page("ReadableBooks", Filter("i", ">", 0))
    page = await limited.page("ReadableBooks")
    assert (len(page.cells), page.total) == (2, None)
    [outcome] = await limited.apply(Update(page.rows[0].key, {"i": 9}))
    assert (outcome.status, "do not allow" in outcome.reason) == ("failed", True)
    assert [each.name for each in await limited.driver.list_objects(ObjectsRequest()) if each.kind == "collection"] == [
        "ReadableBooks"
    ]
    assert [row["i"] for row in (await admin.page("ReadableBooks")).rows] == [row["i"] for row in page.rows]


async def make_readable(admin: Rig) -> None:
    text = [{"name": "i", "dataType": ["int"]}]
    await admin.call("POST", "/v1/schema", {"class": "ReadableBooks", "vectorizer": "none", "properties": text})
    admin.made.append("ReadableBooks")
    await admin.load("ReadableBooks", [{"i": 1}, {"i": 2}])


async def test_a_key_with_few_rights_browses_and_is_told_the_rest():
    """403 is no failed authentication, and changes nothing."""
    users = {"k-admin": User("admin", admin=True), "k": User("limited", roles=(READABLE,))}
    async with on_fake(given=keyed("k-admin"), keys=users, access="roles") as admin:
        assert admin.fake is not None
        await make_readable(admin)
        async with connected(profile(admin.fake.url, **keyed("k"))) as limited:
            await hold_roles(admin, limited)


# on real servers ------------------------------------------------------------------------------------------------------


@pytest.mark.live("weaviate")
class TestConnectionOnServer:
    async def test_the_server_says_its_version(self, live_server: dict[str, Any]):
        """W25."""
        async with on_server(live_server) as wv:
            assert (await wv.driver.ping()).ok
            meta = await wv.call("GET", "/v1/meta")
            assert meta["version"] == live_server["version"]

    async def test_credentials_that_are_not_good_are_told(self, live_server: dict[str, Any]):
        """W36: wrong, missing, rotated, deactivated, deleted, and one too many."""
        keys = live_server["api_keys"]
        bad: list[dict[str, Any]] = [keyed("wrong")]
        bad += [keyed(keys[name]) for name in ("rotated", "deactivated", "deleted") if name in keys]
        bad += [{}] if keys else []
        for more in bad:
            with pytest.raises(AuthenticationError, match=rf"^{AuthenticationError.prefix}.*\(401\)"):
                async with connected(profile(live_server["url"], **more)):
                    pass

    async def test_a_reader_reads_and_is_refused_to_write(self, live_server: dict[str, Any]):
        if "reader" not in live_server["api_keys"]:
            pytest.skip("needs a key that may only read")
        async with on_server(live_server) as admin:
            name = await admin.collection({"i": "int"}, [{"i": 1}])
            async with connected(profile(live_server["url"], **keyed(live_server["api_keys"]["reader"]))) as reader:
                [row] = (await reader.page(name)).rows
                for change in (Update(row.key, {"i": 2}), Insert(name, {"i": 3}), Delete(row.key)):
                    [outcome] = await reader.apply(change)
                    assert outcome.status == "failed"
                    assert "do not allow" in outcome.reason
            assert len(await admin.export(name)) == 1

    async def test_a_key_with_few_rights_browses_and_is_told_the_rest(self, live_server: dict[str, Any]):
        needs(live_server, access="roles")
        keys = live_server["api_keys"]
        async with on_server(live_server) as admin:
            await make_readable(admin)
            async with connected(profile(live_server["url"], **keyed(keys["limited"]))) as limited:
                await hold_roles(admin, limited)
            async with connected(profile(live_server["url"], **keyed(keys["nobody"]))) as nobody:
                assert (await nobody.driver.list_objects(ObjectsRequest())).objects == []

    async def test_modes_of_tls(self, live_server: dict[str, Any]):
        """W6, W7, W37."""
        if not live_server["tls"]:
            with pytest.raises(ConnectionFailedError):
                async with on_server(live_server, ssl_mode=SslMode.PREFERRED):
                    pass
            return
        for mode in SslMode:
            if mode.verifies:
                authority = Path(live_server["ca_file"]).read_text(encoding="utf-8")
                async with on_server(live_server, ssl_mode=mode, ca_pem=authority) as wv:
                    assert (await wv.driver.ping()).ok
                async with on_server(live_server, ssl_mode=mode, skip_tls_verification=True) as wv:
                    assert (await wv.driver.ping()).ok
            if mode.verifies or mode is SslMode.DISABLED:
                with pytest.raises(ConnectionFailedError, match=f"^{ConnectionFailedError.prefix}"):
                    async with on_server(live_server, ssl_mode=mode):
                        pass
            else:
                async with on_server(live_server, ssl_mode=mode) as wv:
                    assert (await wv.driver.ping()).ok

    async def test_without_graphql_all_else_works(self, live_server: dict[str, Any]):
        needs(live_server, DISABLE_GRAPHQL="true")
        async with on_server(live_server) as wv:
            await hold_without_graphql(wv)

    async def test_a_smaller_window_is_said_and_an_export_passes_it(self, live_server: dict[str, Any]):
        """W39."""
        needs(live_server, QUERY_MAXIMUM_RESULTS="50")
        async with on_server(live_server) as wv:
            await hold_small_window(wv)

    async def test_searches_beyond_those_that_the_server_answers_at_a_time_are_sent_again(
        self, live_server: dict[str, Any]
    ):
        needs(live_server, MAXIMUM_CONCURRENT_GET_REQUESTS="1")
        async with on_server(live_server) as wv:
            name = await wv.collection({"i": "int", "t": "text"}, [{"i": at, "t": "x" * 9_000} for at in range(200)])
            said: list[str] = []

            async def search() -> None:
                query = {"query": f"{{Get{{{name}(limit:50){{t}}}}}}"}
                said.append((await wv.raw("POST", "/v1/graphql", query)).text)

            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(search)
            refusals = [each for each in said if TOO_MANY["errors"][0]["message"] in each]
            assert refusals, "the server refused no search, so this test shows nothing"
            assert json.loads(refusals[0])["errors"][0]["message"] == TOO_MANY["errors"][0]["message"]
            for _ in range(5):  # its ranges are read at the same time
                assert sorted(line["i"] for line in await wv.export(name, Filter("i", ">=", 0))) == list(range(200))
