"""Opening from the page: a missing driver installs itself with progress, tabs share a session, idle ones close."""

from __future__ import annotations

import contextvars
import itertools
import time
from types import SimpleNamespace

import anyio
import pytest
from aiohttp import web
from msgspec.structs import replace

import wheelhouse
from browsing import shop, signed_in, tab_of
from dragoman import Question, Runtime, SavedConnection
from dragoman_api.errors import ConfigurationError
from dragoman_api.events import PluginEnabled, PluginInstalled, PluginRemoved, PluginRolledBack
from dragoman_api.hookspecs import hookimpl
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_workbench.event_stream import EventStream
from dragoman_workbench.messages.connections import OpenConnection
from dragoman_workbench.open_connections import HOOKS, OpenConnections, _Connection
from dragoman_workbench.questions import Questions
from dragoman_workbench.surfaces import SurfaceRules, read_surface, surface
from dragoman_worker import hooks_and_deadlines


@pytest.fixture
async def fresh_home(home, sample_port):
    """Save the connection in a home without its driver."""
    async with Runtime(home, spare=False) as runtime:
        await runtime.save(shop(sample_port))
    return home


async def test_opening_installs_the_driver_and_tells_every_tab(fresh_home):
    async with signed_in(fresh_home, connection="shop") as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        assert (await tab("state"))["connection"] == "shop"
        opened = await tab("open", connection="shop")
        assert (opened["product"], opened["server_version"]) == ("Elasticsearch", "8.19.21")
        assert opened["sandbox"]
        assert "fetch_page" in opened["hooks"]
        await tab.told("opened", connection="shop")
        names = [event["event"]["name"] for event in tab.events if event["kind"] == "event"]
        assert (
            names.index("plugin.install_started") < names.index("plugin.installed") < names.index("connection.opened")
        )
        assert "plugin.install_progressed" in names
        tasks.cancel_scope.cancel()


async def test_tabs_share_one_session(shop_tab):
    async with tab_of(shop_tab.place) as other:
        await other.enter()
        [opened] = (await other("state"))["open"]
        assert (await other("open", connection="shop")) == opened
        await other("close", connection="shop")
    failure = await shop_tab.failure("objects", connection="shop")
    assert failure["code"] == "connection-closed"
    assert failure["remedy"] == {"action": "open", "label": "Open it", "target": "shop"}


async def test_two_tabs_that_open_at_once_open_once(shop_home):
    async with signed_in(shop_home) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        async with anyio.create_task_group() as both:
            both.start_soon(lambda: tab("open", connection="shop"))
            both.start_soon(lambda: tab("open", connection="shop"))
        names = [event["event"]["name"] for event in tab.events if event["kind"] == "event"]
        assert names.count("connection.opened") == 1
        tasks.cancel_scope.cancel()


async def test_an_idle_connection_closes_and_the_next_request_opens_it_again(shop_home, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.open_connections.IDLE_SECONDS", 0.2)
    monkeypatch.setattr("dragoman_workbench.open_connections.LOOK_SECONDS", 0.05)
    async with signed_in(shop_home) as tab, anyio.create_task_group() as tasks:
        await tab("open", connection="shop")
        await tasks.start(tab.listen)
        with anyio.fail_after(20):
            while (await tab("state"))["open"]:
                await anyio.sleep(0.02)
        assert (await tab("connections"))["connections"][0]["open"] is True
        assert (await tab("objects", connection="shop"))["objects"]
        assert not [event for event in tab.events if event["kind"] == "closed"]
        tasks.cancel_scope.cancel()


async def test_a_server_that_stops_answering_and_answers_again_is_told_to_every_tab(shop_home, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.open_connections.LOOK_SECONDS", 0.05)
    async with signed_in(shop_home) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        async with FakeElasticsearch(version="8.19.21") as attic:
            values = {"host": "127.0.0.1", "port": str(attic.port), "auth_method": "none"}
            fields = {name: {"kind": "value", "value": value} for name, value in values.items()}
            await tab("connections/save", name="attic", type="elasticsearch", fields=fields)
            await tab("open", connection="attic")
        assert await states_of_health(tab, 1) == ["failed"]
        async with FakeElasticsearch(version="8.19.21", port=attic.port):
            assert await states_of_health(tab, 2) == ["failed", "ok"]
        tasks.cancel_scope.cancel()


async def test_a_server_that_hangs_is_told_with_one_check_at_a_time_and_holds_up_no_other_connection(
    shop_home, monkeypatch
):
    async def hanging(*_):
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        try:
            await going_on.wait()
        finally:
            waiting -= 1
        return web.Response(status=503)

    async def counting(*words):
        nonlocal checks
        checks += 1
        return await answer(*words)

    waiting = most = checks = 0
    going_on = anyio.Event()
    monkeypatch.setattr("dragoman_workbench.open_connections.LOOK_SECONDS", 0.05)
    ping = hooks_and_deadlines.HOOKS["ping"]
    monkeypatch.setitem(hooks_and_deadlines.HOOKS, "ping", ping._replace(seconds=2.0))
    async with (
        signed_in(shop_home) as tab,
        FakeElasticsearch() as attic,
        FakeElasticsearch() as cellar,
        anyio.create_task_group() as tasks,
    ):
        await tasks.start(tab.listen)
        for name, server in {"attic": attic, "cellar": cellar}.items():
            values = {"host": "127.0.0.1", "port": str(server.port), "auth_method": "none"}
            fields = {name: {"kind": "value", "value": value} for name, value in values.items()}
            await tab("connections/save", name=name, type="elasticsearch", fields=fields)
            await tab("open", connection=name)
        answer = cellar.answer
        monkeypatch.setattr(cellar, "answer", counting)
        own_answer = attic.answer
        monkeypatch.setattr(attic, "answer", hanging)
        assert await states_of_health(tab, 1) == ["failed"]
        [event] = [e["event"] for e in tab.events if e["kind"] == "event" and "health" in e["event"]["name"]]
        assert event["reason"] == f"127.0.0.1:{attic.port} gave no answer in time"
        assert (most, checks > 5) == (1, True)
        failing = {each["connection"]: each["failing"] for each in (await tab("state"))["open"]}
        assert failing == {"attic": event["reason"], "cellar": ""}
        monkeypatch.setattr(attic, "answer", own_answer)
        going_on.set()
        assert await states_of_health(tab, 2) == ["failed", "ok"]
        tasks.cancel_scope.cancel()


async def test_rejected_credentials_are_not_sent_again_while_nobody_looks(shop_home, monkeypatch):
    async def rejecting(*_):
        rejections.append(1)
        error = {"type": "security_exception", "reason": "unable to authenticate user"}
        return web.json_response({"error": error, "status": 401}, status=401)

    rejections = []
    monkeypatch.setattr("dragoman_workbench.open_connections.LOOK_SECONDS", 0.05)
    async with signed_in(shop_home) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        async with FakeElasticsearch(version="8.19.21") as attic:
            values = {"host": "127.0.0.1", "port": str(attic.port), "auth_method": "none"}
            fields = {name: {"kind": "value", "value": value} for name, value in values.items()}
            await tab("connections/save", name="attic", type="elasticsearch", fields=fields)
            await tab("open", connection="attic")
            monkeypatch.setattr(attic, "answer", rejecting)
            assert await states_of_health(tab, 1) == ["failed"]
            monkeypatch.setattr("dragoman_workbench.open_connections.USED_SECONDS", -1.0)
            await anyio.sleep(0.2)  # a check may be under way
            earlier = len(rejections)
            await anyio.sleep(0.5)
            assert len(rejections) == earlier
        tasks.cancel_scope.cancel()


async def states_of_health(tab, count):
    """Wait until the health of a connection has changed so often, and return what it was each time."""
    with anyio.fail_after(20):
        while True:
            events = [event["event"] for event in tab.events if event["kind"] == "event"]
            states = [event["state"] for event in events if event["name"] == "connection.health_changed"]
            if len(states) >= count:
                return states
            await anyio.sleep(0.02)


async def test_an_opening_that_the_browser_aborts_is_cancelled(fresh_home):
    async with signed_in(fresh_home) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        async with anyio.create_task_group() as opening:
            opening.start_soon(lambda: tab.send("open", {"connection": "shop"}))
            with anyio.fail_after(20):
                while not any(
                    e["kind"] == "event" and e["event"]["name"] == "plugin.install_started" for e in tab.events
                ):
                    await anyio.sleep(0.005)
            opening.cancel_scope.cancel()
        with anyio.fail_after(20):
            while not any(
                e["kind"] == "event" and e["event"]["name"] in ("plugin.install_failed", "connection.closed")
                for e in tab.events
            ):
                await anyio.sleep(0.01)
        assert (await tab("state"))["open"] == []
        assert (await tab("open", connection="shop"))["product"] == "Elasticsearch"
        tasks.cancel_scope.cancel()


async def test_a_connection_that_is_not_there_says_so(tab):
    failure = await tab.failure("open", connection="nothing")
    assert "no connection is called 'nothing'" in failure["message"]


async def test_a_server_that_is_down_is_told_with_its_field(home):
    async with Runtime(home, spare=False) as runtime:
        await runtime.plugins.install("elasticsearch")
        await runtime.save(shop(1))
    async with signed_in(home) as tab:
        failure = await tab.failure("open", connection="shop")
        assert (failure["code"], failure["field"]) == ("connection-failed", "host")


async def test_an_edited_connection_closes(shop_tab, sample_port):
    fields = {
        name: {"kind": "value", "value": value}
        for name, value in {"host": "127.0.0.1", "port": str(sample_port), "auth_method": "none"}.items()
    }
    await shop_tab("connections/save", name="shop", type="elasticsearch", fields=fields, replace="shop")
    assert (await shop_tab("state"))["open"] == []


def guarded(home, text):
    (home / "config" / "config.toml").write_text(text)


async def test_a_production_connection_is_read_only_until_it_is_unlocked(shop_home):
    guarded(shop_home, "[guards.connections.shop]\nproduction = true\n")
    async with signed_in(shop_home) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        opened = await tab("open", connection="shop")
        assert (opened["production"], opened["unlocked_until"]) == (True, None)
        change, numbers = {"kind": "insert", "object": "books", "values": {"title": "New"}}, itertools.count()

        async def apply():
            change["id"] = f"n{next(numbers)}"
            plan = (await tab("changes/plan", connection="shop", changes=[change]))["plan"]
            return await tab.send("changes/apply", {"connection": "shop", "plan": plan})

        status, answer = await apply()
        assert (status, answer["error"]["code"]) == (422, "production-locked")
        assert answer["error"]["remedy"]["action"] == "unlock"
        assert answer["error"]["details"]["connection"] == "shop"
        refusal = await tab.told("event", name="call.refused")
        assert refusal["event"]["automation"] == "read_only"
        text = "DELETE /books/_doc/n1"
        told = await tab("console/execute", connection="shop", text=text)
        assert told["error"]["code"] == "production-locked"
        failure = await tab.failure("unlock", connection="shop", typed="shopp", minutes=5)
        assert failure["code"] == "name-not-typed"
        unlocked = await tab("unlock", connection="shop", typed="shop", minutes=5)
        assert 0 < unlocked["unlocked_until"] - time.time() <= 300
        status, answer = await apply()
        assert (status, answer["outcomes"][0]["status"]) == (200, "applied")
        await tab("unlock", connection="shop", typed="", minutes=0)
        assert (await apply())[0] == 422
        tasks.cancel_scope.cancel()


async def test_the_first_answer_to_each_question_counts_and_none_is_no(monkeypatch):
    questions, answers = Questions(EventStream()), {}

    async def ask(text):
        answers[text] = await questions.ask(Question(subject="change", text=text, details=("DELETE /a", "DELETE /b")))

    async with anyio.create_task_group() as tasks:
        for text in ("first", "second"):
            tasks.start_soon(ask, text)
        await anyio.wait_all_tasks_blocked()
        monkeypatch.setattr("dragoman_workbench.questions.ANSWER_SECONDS", 0)
        await ask("third")
        numbers = {question.text: question.id for question in questions.open}
        assert [question.details for question in questions.open] == [["DELETE /a", "DELETE /b"]] * 2
        told = [questions.answer(numbers["first"], yes=yes) for yes in (False, True)]
        told += [questions.answer(numbers["second"], yes=yes) for yes in (True, False)]
        assert told == [True, False, True, False]
    assert answers == {"third": False, "second": True, "first": False}
    assert not questions.answer(numbers["first"], yes=True)


async def test_reading_a_locked_production_connection_works(shop_home):
    guarded(shop_home, "[guards]\nproduction = true\n")
    async with signed_in(shop_home) as tab:
        await tab("open", connection="shop")
        assert (await tab("page", connection="shop", rows={"object": "books"}))["rows"]
        assert (await tab("console/execute", connection="shop", text="GET /"))["answers"][0]["status"] == 200


async def test_a_read_only_connection_cannot_be_unlocked_by_the_page(shop_home):
    guarded(shop_home, '[guards.connections.shop]\nproduction = true\nread_only = "read-only"\n')
    async with signed_in(shop_home) as tab:
        assert (await tab("open", connection="shop"))["guards"] == ["read-only"]
        await tab("unlock", connection="shop", typed="shop", minutes=5)
        told = await tab("console/execute", connection="shop", text="DELETE /books/_doc/n1")
        assert told["error"]["code"] == "refused"


async def test_the_header_names_every_guard_and_hook_of_a_connection(shop_home):
    limits = "limits = { rows = 1000, bytes = 2000, seconds = 1.5 }"
    guarded(shop_home, f'[guards.connections.shop]\nread_only = "confirm-drops"\naudit = true\n{limits}\n')
    async with signed_in(shop_home) as tab:
        opened = await tab("open", connection="shop")
        words = ["asks before drops", "at most 1,000 rows", "at most 2,000 bytes", "at most 1.5 s", "audit"]
        assert opened["guards"] == words
        assert set(opened["hooks"]) == {*HOOKS}
        assert (opened["production"], opened["unlocked_until"]) == (False, None)


async def test_the_header_says_everything_of_an_open_connection():
    limit = SimpleNamespace(rows=None, bytes=None, seconds=None)
    guards = SimpleNamespace(read_only="read-only", limits=limit, audit=False, production=True)
    settings = SimpleNamespace(guards=SimpleNamespace(of={"shop": guards}.get))
    runtime = SimpleNamespace(settings=settings, locks=SimpleNamespace(until={"shop": 2_000.0}.get))
    connections = OpenConnections(runtime, stream=None, work=None)
    hooks = {*hooks_and_deadlines.HOOKS} - {"complete_console", "close"}
    server = SimpleNamespace(product="Tea", version="8.1", notes=("old", "alone"))
    session = SimpleNamespace(
        type="tea", server=server, plugin="tea-driver", plugin_version="1.2", sandbox="partial: no Landlock",
        warnings=("a", "b"), can=hooks.__contains__, capabilities=frozenset({"tenants", "browse"}),
        console_example="GET /tea",
    )  # fmt: skip
    connections._connections["shop"] = _Connection(session=session, at=1_000.0)
    connections._connections["other"] = _Connection()
    no_views = {"close", "connect", "hold_snapshot", "preview_read", "split_export"}
    opened = connections.about("shop")
    assert {*opened.hooks} == {*hooks_and_deadlines.HOOKS} - no_views - {"complete_console"}
    assert replace(opened, hooks=[]) == OpenConnection(
        connection="shop",
        type="tea",
        product="Tea",
        server_version="8.1",
        server_notes=["old", "alone"],
        plugin="tea-driver",
        plugin_version="1.2",
        sandbox="partial: no Landlock",
        warnings=["a", "b"],
        guards=["read-only"],
        hooks=[],
        capabilities=["browse", "tenants"],
        console_example="GET /tea",
        production=True,
        unlocked_until=2_000.0,
        opened_at=1_000.0,
    )
    assert connections.all() == [opened]
    assert connections.names() == {"shop"}


async def test_a_connection_that_works_is_not_idle(shop_home, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.open_connections.IDLE_SECONDS", 0.1)
    monkeypatch.setattr("dragoman_workbench.open_connections.LOOK_SECONDS", 0.02)

    class Slow:
        @hookimpl
        async def before_call(self, call):
            if call.hook == "count_rows":
                await anyio.sleep(0.4)

    async with signed_in(shop_home, use=[Slow()]) as tab:
        opened = await tab("open", connection="shop")
        await tab("count", connection="shop", rows={"object": "books"})
        assert (await tab("open", connection="shop"))["opened_at"] == opened["opened_at"]


async def test_only_a_marked_connection_can_be_unlocked(shop_tab):
    assert (await shop_tab.failure("unlock", connection="shop", typed="shop"))["code"] == "not-production"


@pytest.mark.parametrize("yes", [True, False])
async def test_a_guard_asks_in_the_page(shop_home, yes):
    guarded(shop_home, '[guards]\nread_only = "confirm-writes"\n')
    async with signed_in(shop_home) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        await tab("open", connection="shop")
        done = {}

        async def run():
            done.update(await tab("console/execute", connection="shop", text="DELETE /books/_doc/none"))

        tasks.start_soon(run)
        question = (await tab.told("question"))["question"]
        assert question["subject"] == "change"
        assert "DELETE /books/_doc/none" in question["details"][0]
        assert (await tab("state"))["questions"] == [question]
        await tab("questions/answer", id=question["id"], yes=yes)
        await tab.told("answered")
        with anyio.fail_after(10):
            while not done:
                await anyio.sleep(0.01)
        assert bool(done["answers"]) is yes
        assert (await tab.failure("questions/answer", id=question["id"], yes=True))["code"] == "not-found"
        tasks.cancel_scope.cancel()


PHONE = "Mozilla/5.0 (Linux; Android 14; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36"
TABLET = "Mozilla/5.0 (Linux; Android 14; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"


@pytest.mark.parametrize(
    ("surface", "headers"),
    [
        ("desktop", {}),
        ("desktop", {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)", "Sec-CH-UA-Mobile": "?0"}),
        ("phone", {"User-Agent": PHONE}),
        ("phone", {"User-Agent": "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Mobile/15E148"}),
        ("phone", {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)", "Sec-CH-UA-Mobile": "?1"}),
        ("tablet", {"User-Agent": TABLET}),
        ("tablet", {"User-Agent": "Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) Mobile/15E148"}),
        ("tablet", {"User-Agent": "Mozilla/5.0 (Tablet; rv:140.0) Gecko/140.0 Firefox/140.0"}),
        ("tablet", {"User-Agent": TABLET, "Sec-CH-UA-Mobile": "?1"}),
    ],
)
def test_P6_a_surface_is_read_from_the_headers_of_the_browser(surface, headers):
    assert read_surface(headers) == surface


async def test_P6_what_changes_a_driver_has_the_registries_asked_again():
    asked, sinks = [], []

    async def for_type(kind):
        asked.append(kind)
        return SimpleNamespace(id=kind, excluded_surfaces=("tablet",))

    rules = SurfaceRules(SimpleNamespace(plugins=SimpleNamespace(for_type=for_type), add_sink=sinks.append))
    installed = PluginInstalled(plugin="a", version="1", sha256="", seconds=0)
    removed, rolled_back = PluginRemoved(plugin="a", version="1"), PluginRolledBack(plugin="a", version="1")
    token = surface.set("phone")
    try:
        for event in (PluginEnabled(plugin="a"), installed, removed, rolled_back):
            sinks[0](event)
            for kind in ("a", "b", "a"):
                await rules.check_type(kind)
        assert asked == ["a", "b"] * 4
        surface.set("tablet")
        with pytest.raises(ConfigurationError, match="b is not available on a tablet"):
            await rules.check_type("b")
        assert asked == ["a", "b"] * 4
    finally:
        surface.reset(token)


@pytest.mark.parametrize(("agent", "surface"), [(PHONE, "phone"), (TABLET, "tablet")])
async def test_P6_a_driver_that_excludes_phones_and_tablets_is_refused_there(home, agent, surface):
    async with Runtime(home, spare=False) as runtime:
        values = {"host": "127.0.0.1", "port": 9, "auth_method": "none"}
        await runtime.save(SavedConnection(name="library", type="weaviate", values=values))
    async with signed_in(home) as tab:
        asked = {"open": {"connection": "library"}, "plugins/install": {"id": "weaviate"}}
        asked["connections/test"] = {"name": "new", "type": "weaviate", "fields": {}}
        for route, body in asked.items():
            status, answer = await tab.send(route, body, **{"User-Agent": agent})
            assert (status, answer["error"]["code"]) == (422, "surface-excluded")
            assert surface in answer["error"]["message"]
        _, shown = await tab.send("plugins/show", {"id": "weaviate"}, **{"User-Agent": agent})
        assert shown["driver"]["unavailable_here"] == f"weaviate is not available on a {surface}"
        _, shown = await tab.send("plugins/show", {"id": "elasticsearch"}, **{"User-Agent": agent})
        assert shown["driver"]["unavailable_here"] == ""
        assert (await tab("plugins/show", id="weaviate"))["driver"]["unavailable_here"] == ""
        assert (await tab.failure("open", connection="library"))["code"] == "connection-failed"


@pytest.mark.slow
async def test_P6_the_registries_are_asked_once_for_the_requests_of_a_phone(shop_home, monkeypatch):
    async with signed_in(shop_home) as tab:
        plugins = tab.place.runtime.plugins
        asked, for_type = [], plugins.for_type

        async def counted(kind):
            asked.append(kind)
            return await for_type(kind)

        monkeypatch.setattr(plugins, "for_type", counted)

        async def use():
            for route in ("open", "objects", "queries"):
                status, answer = await tab.send(route, {"connection": "shop"}, **{"User-Agent": PHONE})
                assert status == 200, answer

        await tab("open", connection="shop")
        await tab("objects", connection="shop")
        assert asked == []
        await use()
        await use()
        assert asked == ["elasticsearch"]
        await tab("close", connection="shop")
        await tab("plugins/remove", id="elasticsearch")
        await use()  # asks before the driver is installed, and once after
        await use()
        assert asked == ["elasticsearch"] * 3


@pytest.mark.slow
async def test_P6_no_route_brings_new_code_of_a_driver_that_is_not_for_phones(home, tmp_path):
    paths = []
    for version in ("1.0.0", "1.1.0"):
        (tmp_path / version).mkdir()
        driver = wheelhouse.Driver("demo", version=version, excluded_surfaces=["phone"])
        paths.append(driver.write(tmp_path / version))
    folder = await anyio.to_thread.run_sync(lambda: wheelhouse.registry(tmp_path / "registry", paths))
    await anyio.to_thread.run_sync(lambda: Runtime(home, spare=False).registries.add(str(folder)))
    async with signed_in(home) as tab:
        await tab("plugins/install", id="demo", version="1.0.0")
        await tab("plugins/pin", id="demo")
        reasons = {}
        for surface, agent in (("phone", PHONE), ("tablet", TABLET)):
            _, told = await tab.send("plugins/updates", {}, **{"User-Agent": agent})
            [offer] = [each for each in told["updates"] if each["id"] == "demo"]
            reasons[surface] = offer["unavailable_here"]
        assert reasons == {"phone": "demo is not available on a phone", "tablet": ""}
        for route in ("plugins/install", "plugins/update", "plugins/rollback", "plugins/repair"):
            status, answer = await tab.send(route, {"id": "demo"}, **{"User-Agent": PHONE})
            assert (status, answer["error"]["code"]) == (422, "surface-excluded"), route
        assert (await tab("plugins/show", id="demo"))["rollback_versions"] == ["1.0.0"]
        await tab("plugins/update", id="demo")
        assert (await tab("plugins/show", id="demo"))["rollback_versions"][0] == "1.1.0"


def test_outside_of_a_request_the_surface_is_a_desktop():
    assert contextvars.Context().run(surface.get) == "desktop"
