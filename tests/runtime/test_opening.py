"""Opening a saved connection: its driver arrives, starts, answers, and survives its own crashes."""

from __future__ import annotations

import sys

import anyio
import pytest

import wheelhouse
from dragoman.connections.saved_connections import SavedConnection
from dragoman.runtime import Runtime
from dragoman_api.errors import (
    ConfigurationError,
    DriverCrashedError,
    DriverFaultError,
    PluginNotFoundError,
    Refused,
    RegistryError,
)
from dragoman_api.hookspecs import hookimpl
from dragoman_registry.client.installed_drivers import Store

CRASHING = """
import os
from dragoman_api import Description, Object, ObjectList, Server, hookimpl


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        return Server("Demo", "1")

    @hookimpl
    async def list_objects(self, request):
        return ObjectList(objects=[Object(str(os.getpid()))])

    @hookimpl
    async def describe_object(self, name):
        if name == "crash":
            print("last words", flush=True)
            os._exit(7)
        if name == "foreign":
            raise KeyError("oops")
        return Description(object=name, columns=[])
"""


def names(runtime):
    return [event.name for event in runtime.seen if event.name != "plugin.install_progressed"]


async def test_P3_opening_a_saved_connection_installs_its_driver_without_asking(make_runtime):
    async with make_runtime() as runtime:
        async with runtime.open("demo") as session:
            assert [found.name for found in await session.objects()] == ["things"]
            assert session.server.product == "Demo"
            assert session.plugin_version == "1.0.0"
        assert names(runtime) == [
            "plugin.install_started",
            "plugin.installed",
            "connection.opened",
            *["connection.warned"] * (session.sandbox != "full"),
            "connection.closed",
        ]


@pytest.mark.slow
async def test_an_installed_driver_opens_again_without_its_registry(make_runtime, tmp_path):
    async with make_runtime() as runtime:
        async with runtime.open("demo"):
            pass
        (tmp_path / "registry").rename(tmp_path / "gone")
        runtime.seen.clear()
        async with runtime.open("demo") as session:
            assert await session.objects()
        assert "plugin.install_started" not in names(runtime)


async def test_P1_a_driver_lying_in_the_hosts_environment_is_not_used(make_runtime, tmp_path, monkeypatch):
    impostor = tmp_path / "site" / "dragoman_demo"
    impostor.mkdir(parents=True)
    (impostor / "__init__.py").write_text("")
    (impostor / "driver.py").write_text(wheelhouse.CODE.replace('Server("Demo"', 'Server("Impostor"'))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    async with make_runtime() as runtime, runtime.open("demo") as session:
        assert session.server.product == "Demo"
    assert not any(name.startswith("dragoman_demo") for name in sys.modules)


async def test_a_type_that_no_registry_serves_says_where_to_look(make_runtime):
    async with make_runtime() as runtime:
        runtime.connections.save(SavedConnection(name="x", type="nosuch", values={}))
        with pytest.raises(PluginNotFoundError, match="nosuch") as caught:
            async with runtime.open("x"):
                pass
        assert caught.value.hint == "dragoman plugins browse"
        assert names(runtime) == ["connection.failed"]


async def test_a_missing_registry_and_a_missing_driver_name_the_folder(make_runtime, tmp_path):
    runtime = make_runtime()
    (tmp_path / "registry").rename(tmp_path / "gone")
    every = runtime.registries.open()
    runtime.registries.open = lambda: every[:1]  # without the bundled one
    async with runtime:
        with pytest.raises(RegistryError) as caught:
            async with runtime.open("demo"):
                pass
    assert caught.value.code == "offline-missing"
    assert str(tmp_path / "registry") in caught.value.message


async def test_P6_a_driver_is_refused_on_a_surface_it_excludes(make_runtime):
    driver = wheelhouse.Driver(excluded_surfaces=["phone", "tablet"])
    for surface in ("phone", "tablet"):
        async with make_runtime(driver, surface=surface) as runtime:
            with pytest.raises(ConfigurationError, match=f"not available on a {surface}"):
                async with runtime.open("demo"):
                    pass
            runtime.connections.remove("demo")
            runtime.registries.remove("registry")


@pytest.mark.slow
async def test_a_disabled_driver_stays_off_and_says_how_to_switch_it_on(make_runtime):
    async with make_runtime() as runtime:
        await runtime.plugins.install("demo")
        await runtime.plugins.disable("demo")
        with pytest.raises(ConfigurationError, match="disabled") as caught:
            async with runtime.open("demo"):
                pass
        assert caught.value.hint == "dragoman plugins enable demo"
        await runtime.plugins.enable("demo")
        async with runtime.open("demo") as session:
            assert await session.objects()


@pytest.mark.slow
async def test_a_damaged_installation_repairs_itself_on_open(make_runtime):
    async with make_runtime() as runtime:
        generation = await runtime.plugins.install("demo")
        code = generation.trees[0] / "dragoman_demo/driver.py"
        code.chmod(0o644)
        code.write_text("raise SystemExit('tampered')")
        async with runtime.open("demo") as session:
            assert await session.objects()
        assert wheelhouse.CODE.replace("{version}", "1.0.0") == code.read_text()


async def test_a_driver_that_is_not_what_its_manifest_says_is_never_activated(make_runtime):
    driver = wheelhouse.Driver(hooks=["connect", "list_objects", "fetch_page"])
    async with make_runtime(driver) as runtime:
        with pytest.raises(DriverFaultError, match="missing fetch_page"):
            async with runtime.open("demo"):
                pass
        assert runtime.plugins.installed() == []
        assert names(runtime) == ["plugin.install_started", "plugin.install_failed", "connection.failed"]


@pytest.mark.parametrize("phase", [pytest.param("check", marks=pytest.mark.slow), "smoke-test"])
async def test_a_cancelled_installation_has_an_end_too(make_runtime, phase):
    async with make_runtime() as runtime:
        with anyio.CancelScope() as scope:

            def cancel(event):
                if getattr(event, "phase", "") == phase:
                    scope.cancel()

            runtime.add_sink(cancel)
            await runtime.plugins.install("demo")
        assert scope.cancelled_caught
        assert names(runtime) == ["plugin.install_started", "plugin.install_failed"]
        assert runtime.seen[-1].code == "cancelled"
        assert runtime.plugins.installed() == []


@pytest.mark.slow
async def test_an_update_that_fails_leaves_the_installed_version_working(make_runtime, registry):
    async with make_runtime() as runtime:
        await runtime.plugins.install("demo")
        registry(wheelhouse.Driver(version="2.0.0", code="raise RuntimeError('broken release')"))
        with pytest.raises(DriverFaultError):
            await runtime.plugins.update("demo")
        async with runtime.open("demo") as session:
            assert session.plugin_version == "1.0.0"


@pytest.mark.slow
async def test_update_rollback_and_pin_move_between_versions(make_runtime, registry):
    async with make_runtime() as runtime:
        await runtime.plugins.install("demo")
        registry(wheelhouse.Driver(version="1.1.0"))
        assert [entry.state for entry in await runtime.plugins.browse(type="demo")] == ["update"]
        assert [entry.version for entry in await runtime.plugins.update()] == ["1.1.0"]
        assert (await runtime.plugins.rollback("demo")).version == "1.0.0"
        await runtime.plugins.pin("demo", "1.0.0")
        assert [(entry.state, entry.version) for entry in await runtime.plugins.update()] == [("pinned", "1.0.0")]
        async with runtime.open("demo") as session:
            assert session.server.version == "1.0.0"


async def test_a_crash_is_reported_and_the_next_call_meets_a_fresh_driver(make_runtime):
    driver = wheelhouse.Driver(code=CRASHING, hooks=["connect", "list_objects", "describe_object"])
    async with make_runtime(driver) as runtime, runtime.open("demo") as session:
        [before] = await session.objects()
        with pytest.raises(DriverCrashedError, match="last words"):
            await session.describe("crash")
        [after] = await session.objects()
        assert before.name != after.name
        assert [name for name in names(runtime) if name.startswith("plugin.")][-2:] == [
            "plugin.crashed",
            "plugin.restarted",
        ]


@pytest.mark.slow
async def test_a_driver_that_keeps_crashing_is_not_started_for_ever(make_runtime):
    driver = wheelhouse.Driver(code=CRASHING, hooks=["connect", "list_objects", "describe_object"])
    async with make_runtime(driver) as runtime, runtime.open("demo") as session:
        for _ in range(4):
            with pytest.raises(DriverCrashedError):
                await session.describe("crash")
        with pytest.raises(DriverCrashedError, match="within a minute"):
            await session.objects()


@pytest.mark.slow
async def test_a_foreign_exception_in_the_driver_is_a_fault_and_the_driver_goes_on(make_runtime):
    driver = wheelhouse.Driver(code=CRASHING, hooks=["connect", "list_objects", "describe_object"])
    async with make_runtime(driver) as runtime, runtime.open("demo") as session:
        [before] = await session.objects()
        with pytest.raises(DriverFaultError):
            await session.describe("foreign")
        assert [*await session.objects()] == [before]


async def test_installing_is_a_call_that_an_automation_can_veto(make_runtime):
    class NoInstalls:
        @hookimpl
        async def before_call(self, call):
            if call.hook == "install_plugin":
                raise Refused(f"no {call.object} today")

    async with make_runtime(use=[NoInstalls()]) as runtime:
        with pytest.raises(Refused, match="no demo today"):
            async with runtime.open("demo"):
                pass
        assert runtime.plugins.installed() == []


@pytest.mark.slow
async def test_observers_are_told_everything_in_order(make_runtime):
    class Observer:
        def __init__(self):
            self.names = []

        @hookimpl
        async def on_event(self, event):
            await anyio.sleep(0)
            self.names.append(event.name)

    observer = Observer()
    async with make_runtime(use=[observer]) as runtime:
        async with runtime.open("demo"):
            pass
        told = [event.name for event in runtime.seen]
    assert observer.names == told


@pytest.mark.slow
async def test_an_exception_in_the_block_comes_out_as_it_is_and_the_connection_closes(make_runtime):
    runtime = make_runtime()
    with pytest.raises(ZeroDivisionError):
        async with runtime, runtime.open("demo"):
            _ = 1 / 0
    assert names(runtime)[-1] == "connection.closed"


@pytest.mark.slow
async def test_what_runs_is_not_collected_until_it_ends(make_runtime, home):
    async with make_runtime() as runtime:
        async with runtime.open("demo") as session:
            [tree] = [one.trees[0].name for one in await runtime.plugins.why("demo")]
            assert Store(home / "data").trees.leased(tree)
            await session.objects()
        assert not Store(home / "data").trees.leased(tree)


@pytest.mark.parametrize("step", ["start", pytest.param("connect", marks=pytest.mark.slow)])
async def test_a_connection_that_fails_keeps_no_driver_from_being_collected(make_runtime, home, monkeypatch, step):
    async def fail(_):
        raise OSError("nothing can be started")

    code = CRASHING.replace('return Server("Demo", "1")', 'raise KeyError("nobody is there")')
    driver = wheelhouse.Driver(code=code, hooks=["connect", "list_objects", "describe_object"])
    async with make_runtime(driver) as runtime:
        [tree] = (await runtime.plugins.install("demo")).trees
        if step == "start":
            monkeypatch.setattr("dragoman.sessions.live_driver.LiveDriver._start", fail)
        with pytest.raises(OSError if step == "start" else DriverFaultError):
            async with runtime.open("demo"):
                pass
        assert not Store(home / "data").trees.leased(tree.name)


@pytest.mark.slow
async def test_cancelling_an_open_leaves_nothing_running(make_runtime):
    async with make_runtime() as runtime:
        await runtime.plugins.install("demo")
        for seconds in (0.01, 0.05, 0.1, 0.2):
            with anyio.move_on_after(seconds):
                async with runtime.open("demo"):
                    await anyio.sleep(5)
    # the fixture's blocking-call and resource warnings are errors: a leaked process or socket would fail here


async def test_below_full_nothing_is_installed_without_consent(make_runtime, monkeypatch):
    from dragoman.sandbox import levels

    weak = levels.SandboxReport(level=levels.Level.PARTIAL, missing=("no Landlock in this kernel",), permissions={})
    monkeypatch.setattr(levels, "achievable_level", lambda: weak)
    async with make_runtime() as runtime:
        with pytest.raises(Refused, match="no Landlock"):
            async with runtime.open("demo"):
                pass
        runtime.connections.remove("demo")
        runtime.registries.remove("registry")
    asked = []

    async def agree(question):
        asked.append(question)
        return True

    async with make_runtime(confirm=agree) as runtime, runtime.open("demo") as session:
        assert await session.objects()
    assert [question.subject for question in asked] == ["sandbox"]


async def test_require_refuses_to_open_below_full(make_runtime, monkeypatch):
    from dragoman.sandbox import levels

    weak = levels.SandboxReport(level=levels.Level.PARTIAL, missing=("no Landlock in this kernel",), permissions={})
    monkeypatch.setattr(levels, "achievable_level", lambda: weak)
    async with make_runtime(sandbox="require") as runtime:
        with pytest.raises(ConfigurationError, match="requires full"):
            async with runtime.open("demo"):
                pass


def test_a_runtime_over_a_broken_settings_file_names_the_line(home):
    (home / "config").mkdir(parents=True)
    (home / "config/config.toml").write_text('sandbox = "auto"\nregistries = [\n')
    with pytest.raises(ConfigurationError, match=r"config\.toml"):
        Runtime()
    (home / "config/config.toml").write_text('sandbox = "perhaps"\n')
    with pytest.raises(ConfigurationError, match="perhaps"):
        Runtime()


@pytest.mark.slow
async def test_a_fresh_machine_with_a_lock_gets_the_same_bytes(make_runtime, registry, home):
    async with make_runtime() as runtime:
        locked = await runtime.plugins.install("demo")
        registry(wheelhouse.Driver(version="2.0.0"))
        (home / "data/state.db").unlink()  # what is left is plugins.lock
        async with runtime.open("demo") as session:
            assert session.plugin_version == "1.0.0"
        [again] = runtime.plugins.installed()
        assert again.version == locked.version


@pytest.mark.slow
async def test_below_full_a_locked_driver_installs_without_asking(make_runtime, home, monkeypatch):
    from dragoman.sandbox import levels

    async with make_runtime() as runtime:
        await runtime.plugins.install("demo")
        (home / "data/state.db").unlink()
        weak = levels.SandboxReport(level=levels.Level.PARTIAL, missing=("no Landlock in this kernel",), permissions={})
        monkeypatch.setattr(levels, "achievable_level", lambda: weak)
        async with runtime.open("demo") as session:
            assert await session.objects()


@pytest.mark.slow
async def test_a_type_is_served_by_the_project_it_is_bound_to_and_by_no_other(make_runtime, registry, tmp_path):
    async with make_runtime() as runtime:
        squatter = wheelhouse.Driver("other", types=[{"name": "demo", "label": "Demo"}])
        (tmp_path / "second").mkdir()
        second = wheelhouse.registry(tmp_path / "second/registry", [squatter.write(tmp_path / "second")])
        runtime.registries.add(str(second), name="second")
        async with runtime.open("demo") as session:
            assert session.plugin == "demo"


async def test_a_registry_that_cannot_be_read_is_named_and_hides_no_other(make_runtime, tmp_path):
    async with make_runtime() as runtime:
        second = wheelhouse.registry(tmp_path / "second", [wheelhouse.Driver("other").write(tmp_path)])
        runtime.registries.add(str(second), name="second")
        for file in (*second.glob("targets/*.catalog"), *second.glob("targets/*.browse")):
            file.write_text("{")
        assert "demo" in [listing.id for listing in await runtime.plugins.browse()]
        [event] = [event for event in runtime.seen if event.name == "registry.failed"]
        assert (event.registry, event.code) == ("second", "integrity-failed")


REACHING = CRASHING.replace(
    'if name == "crash":',
    """if name.startswith("reach "):
            import asyncio

            for host in name.split()[1:]:
                try:
                    await asyncio.open_connection(host, 443)
                except OSError as error:
                    denial = str(error.errno)
            return Description(object=name, columns=[], structure=denial)
        if name == "crash":""",
)


@pytest.mark.slow
async def test_a_host_that_the_driver_must_not_reach_is_told_and_so_audited(make_runtime):
    driver = wheelhouse.Driver(code=REACHING, hooks=["connect", "list_objects", "describe_object"])
    async with make_runtime(driver) as runtime, runtime.open("demo") as session:
        assert (await session.describe("reach \x1b[2Jhunter2.evil.example")).structure == "13"
        [denied] = [event for event in runtime.seen if event.name == "connection.denied"]
    assert (denied.connection, denied.host, denied.port) == ("demo", "hunter2.evil.example", 443)


@pytest.mark.slow
async def test_a_driver_cannot_fill_the_audit_by_asking(make_runtime):
    driver = wheelhouse.Driver(code=REACHING, hooks=["connect", "list_objects", "describe_object"])
    async with make_runtime(driver) as runtime, runtime.open("demo") as session:
        await session.describe("reach " + " ".join(f"{at % 150}.evil.example" for at in range(300)))
    told = [event.host for event in runtime.seen if event.name == "connection.denied"]
    assert told == [f"{at}.evil.example" for at in range(100)]


@pytest.mark.slow
async def test_an_install_goes_to_a_thread_a_few_times_only(make_runtime, monkeypatch):
    """Each hop is a place where a reader looks for what runs beside it: one decides, two install, one collects."""
    hops, real = [], anyio.to_thread.run_sync

    async def run_sync(function, *arguments, **options):
        hops.append(getattr(function, "__qualname__", repr(function)))
        return await real(function, *arguments, **options)

    monkeypatch.setattr(anyio.to_thread, "run_sync", run_sync)
    async with make_runtime() as runtime, runtime.open("demo"):
        opened = list(hops)
    assert [hop for hop in opened if hop.startswith(("InstallOnOpen", "_Work", "Store"))] == [
        "InstallOnOpen._look",
        "_Work.begin",
        "_Work.activate",
        "Store.collect_unasked",
    ]
    assert len(opened) <= 14, opened


@pytest.mark.slow
async def test_a_connection_whose_user_is_cancelled_is_told_as_closed(make_runtime):
    async with make_runtime() as runtime:
        with anyio.CancelScope() as scope:
            async with runtime.open("demo"):
                scope.cancel()
                await anyio.sleep_forever()
        assert names(runtime)[-1] == "connection.closed"
