"""Permissions beyond the baseline: asked for, given to the driver's process as asked, and refused without them."""

from __future__ import annotations

import errno
import json
from contextlib import asynccontextmanager

import anyio
import pytest

import wheelhouse
from dragoman.connections.saved_connections import SavedConnection
from dragoman.references import Reference
from dragoman_api.errors import ConfigurationError, DriverCrashedError, Refused
from dragoman_registry.wheels import manifest_checks

CODE = """
import asyncio, json, mmap, resource
from dragoman_api import hookimpl
from dragoman_api.columns import Description
from dragoman_api.connections import Server


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        self.options = profile.options
        return Server("Demo", "1")

    @hookimpl
    async def describe_object(self, name):
        act, _, value = name.partition(" ")
        try:
            found = await getattr(self, act)(value)
        except OSError as error:
            found = [type(error).__name__, error.errno]
        return Description(object=name, columns=[], structure=json.dumps(found))

    async def reach(self, value):
        host, port = value.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        said = await reader.readline()
        writer.close()
        return said.decode()

    async def read(self, value):
        with open(self.options["key_file"] if value == "chosen" else value) as file:
            return file.read()

    async def take(self, value):
        return len(mmap.mmap(-1, int(value) << 20))

    async def spin(self, value):
        while True:
            pass

    async def limits(self, value):
        return [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]
"""

FORM = [*wheelhouse.manifest()["form"], {"name": "key_file", "label": "Key File", "kind": "file"}]
BASELINE = ["net:connection", "secrets:connection"]
REFUSED = ["PermissionError", errno.EACCES]


def driver(*permissions: str, version: str = "1.0.0") -> wheelhouse.Driver:
    return wheelhouse.Driver(
        version=version, code=CODE, hooks=["connect", "describe_object"], form=FORM,
        permissions=[*BASELINE, *permissions],
    )  # fmt: skip


@pytest.fixture
def opened(make_runtime):
    """Open a connection to a driver with these permissions; everything is agreed to, and noted."""

    @asynccontextmanager
    async def enter(*permissions, values=None):
        asked = []

        async def agree(question):
            asked.append(question)
            return True

        async with make_runtime(driver(*permissions), confirm=agree) as runtime:
            runtime.connections.save(SavedConnection(name="demo", type="demo", values=values or {}), replace=True)
            async with runtime.open("demo") as session:

                async def attempt(what):
                    return json.loads((await session.describe(what)).structure)

                attempt.asked, attempt.sandbox = asked, session.sandbox
                yield attempt

    return enter


@pytest.fixture
async def greeting():
    """Yield the port of a server that says hello and nothing more."""

    async def greet(stream):
        async with stream:
            await stream.send(b"hello\n")

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, greet)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


@pytest.mark.slow
async def test_what_a_person_agreed_to_is_given_as_far_as_it_was_asked_for(opened, greeting, tmp_path, monkeypatch):
    (tmp_path / "key.txt").write_text("sesame")
    (tmp_path / "other.txt").write_text("private")
    monkeypatch.setenv("HOME", str(tmp_path))
    hosts = f"net:host=example.org,127.0.0.1:{greeting}"
    wanted = (hosts, "fs:read=key_file", "memory=3072MiB", "cpu=1s")
    async with opened(*wanted, values={"key_file": Reference("path", "~/key.txt")}) as attempt:
        [question] = attempt.asked
        assert question.subject == "permissions"
        assert "(dragoman-demo)" in question.text  # a label may look like another's
        details = " ".join(question.details)
        assert all(words in details for words in (f"127.0.0.1:{greeting}", "key_file", "3072MiB", "1s"))
        assert await attempt(f"reach 127.0.0.1:{greeting}") == "hello\n"
        assert await attempt(f"reach localhost:{greeting}") == REFUSED
        assert await attempt(f"reach 127.0.0.1:{greeting + 1}") == REFUSED
        assert await attempt("reach example.org:80") == REFUSED, "443 where none is named"
        assert await attempt("read chosen") == "sesame", "the path arrives whole: a driver has no home"
        assert attempt.sandbox != "full" or await attempt(f"read {tmp_path}/other.txt") == REFUSED
        assert await attempt("take 2500") == 2500 << 20
        assert await attempt("limits") == [3 << 30, 1]
        with pytest.raises(DriverCrashedError, match="all processor time"), anyio.fail_after(40):
            await attempt("spin")


async def test_without_the_permissions_the_same_is_refused(opened, greeting, tmp_path):
    (tmp_path / "key.txt").write_text("sesame")
    async with opened(values={"key_file": Reference("path", str(tmp_path / "key.txt"))}) as attempt:
        assert "permissions" not in [question.subject for question in attempt.asked]
        assert await attempt(f"reach 127.0.0.1:{greeting}") == REFUSED
        assert attempt.sandbox != "full" or await attempt("read chosen") == REFUSED
        assert await attempt("take 2500") == ["OSError", errno.ENOMEM]
        assert await attempt("limits") == [2 << 30, -1]


@pytest.mark.slow
async def test_a_folder_chosen_as_a_file_opens_nothing(opened, tmp_path):
    with pytest.raises(ConfigurationError, match=r"key_file: .* is a folder"):
        async with opened("fs:read=key_file", values={"key_file": Reference("path", str(tmp_path))}):
            pass


async def test_nothing_is_installed_where_a_permission_is_not_agreed_to(make_runtime):
    async with make_runtime(driver("net:host=example.org")) as runtime:
        with pytest.raises(Refused, match=r"net:host=example\.org"):
            async with runtime.open("demo"):
                pass
        assert runtime.plugins.installed() == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"permissions": [*BASELINE, "fs:read=password"]}, "'password' has to be a field of kind 'file'"),
        ({"permissions": [*BASELINE, "fs:read=host"]}, "'host' has to be a field of kind 'file'"),
        (
            {"form": [*FORM[:2], {"name": "key", "label": "Key", "kind": "file", "default": "/etc/shadow"}]},
            "a person chooses a file",
        ),
        (
            {"form": [*FORM[:2], {"name": "client_certificate", "label": "Key", "default": "/etc/shadow"}]},
            "'client_certificate' has to be a field of kind 'file'",
        ),
    ],
)
def test_a_manifest_cannot_choose_a_file_itself(changes, fault):
    manifest, faults = manifest_checks.check_manifest(json.dumps(wheelhouse.manifest(**changes)).encode())
    assert manifest is None
    assert fault in " ".join(map(str, faults))
