"""Samples: servers in a process beside the workbench, and saved connections that go when the servers go."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.to_thread import run_sync

from dragoman import SavedConnection
from dragoman_api.errors import ConfigurationError, DragomanError
from dragoman_api.installation import packages_missing

from .uploads import HELD, is_left

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from anyio.abc import Process

    from dragoman import Runtime

SERVERS = "dragoman_sample.servers"
"""A wheel of its own serves the samples; the workbench knows its command, and imports nothing of it."""
MAX_LINE = 64 << 10
"""Bytes of what it says of its servers."""
START_SECONDS = 120.0
"""The time that the servers have to load their data."""


class SampleConnection(msgspec.Struct, frozen=True, kw_only=True):
    """A sample and the connection that leads to it.

    Attributes:
        values: The fields of the saved connection; none before it is saved.
    """

    name: str
    type: str
    holds: str
    host: str
    port: int
    values: dict[str, str | int | bool | None] = {}

    @property
    def saved(self) -> SavedConnection:
        """The connection as it was added; one that differs in anything is one that a person made of it."""
        values = self.values or {"host": self.host, "port": self.port, "auth_method": "none"}
        return SavedConnection(name=self.name, type=self.type, values=values)


class Samples:
    """The samples of one workbench, which end with it.

    A file says which connections were added: those of a workbench that was killed are removed by the next one.

    Attributes:
        connections: The added connections by name.
    """

    def __init__(self, runtime: Runtime, folder: Path, *, at_once: bool = False) -> None:
        """Begin without samples.

        Args:
            runtime: Holds the saved connections.
            folder: The private folder of the workbenches of this user.
            at_once: They are served from the start.
        """
        self._runtime, self._folder, self._at_once = runtime, folder, at_once
        self._file = folder / f"samples-{os.getpid()}.json"
        self._process: Process | None = None
        self._turn = anyio.Lock()
        self.connections: dict[str, SampleConnection] = {}

    @property
    def offered(self) -> bool:
        """Whether they can be added."""
        return not self.connections and find_spec(SERVERS.partition(".")[0]) is not None

    @property
    def ended(self) -> bool:
        """Whether their process ended before it was told to."""
        return self._process is not None and self._process.returncode is not None

    async def __aenter__(self) -> Self:
        await run_sync(self._remove_of_killed)
        HELD.add(self._file)
        if self._at_once:
            await self.add()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.remove()
        HELD.discard(self._file)

    async def add(self) -> None:
        """Serve the samples and save a connection to each, under a name that is free.

        Raises:
            ConfigurationError: They are not installed, or cannot be served or saved.
        """
        async with self._turn:
            if self.connections:
                return
            if not self.offered:
                raise packages_missing("the samples are not installed", "dragoman[sample]")
            try:
                served = await self._serve()
                self.connections = await run_sync(self._named, served)
                await run_sync(self._note)
                for name, sample in [*self.connections.items()]:
                    saved = await self._runtime.save(sample.saved)  # the form adds what it has by default
                    self.connections[name] = msgspec.structs.replace(sample, values=dict(saved.values))
                    await run_sync(self._note)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._end()
                raise

    async def remove(self) -> None:
        """Remove the connections that were added, unless a person has changed them, and end their servers."""
        async with self._turn:
            await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()  # they keep nothing
            await process.aclose()
        samples, self.connections = [*self.connections.values()], {}
        await run_sync(self._remove, samples, self._file)

    async def _serve(self) -> list[SampleConnection]:
        ports = await run_sync(self._expected_ports)
        command = [sys.executable, "-P", "-m", SERVERS, *map(str, ports)]
        self._process = await anyio.open_process(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        try:
            with anyio.fail_after(START_SECONDS):
                line = await BufferedByteReceiveStream(self._process.stdout).receive_until(b"\n", MAX_LINE)
            return msgspec.json.decode(line, type=list[SampleConnection])
        except TimeoutError as error:
            reason = f"the servers of the samples did not start within {START_SECONDS:g} s"
            raise ConfigurationError(reason, hint="add the samples again, on a less busy machine") from error
        except (anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.EndOfStream, msgspec.MsgspecError) as error:
            raise ConfigurationError("the servers of the samples did not start") from error

    def _expected_ports(self) -> set[int]:
        """Return the ports that saved connections name: a sample never takes the place of a server that is down."""
        values = [value for saved in self._runtime.connections.sifted()[0] for value in saved.values.values()]
        return {value for value in values if type(value) is int and 0 < value < 65_536}

    def _named(self, served: list[SampleConnection]) -> dict[str, SampleConnection]:
        """Return the samples by names that no saved connection has."""
        usable, hidden = self._runtime.connections.sifted()
        taken_names = {*hidden, *(connection.name for connection in usable)}
        samples = {}
        for sample in served:
            spellings = (f"{sample.name}-sample-{number}" for number in range(1, len(taken_names) + 2))
            name = next(name for name in (sample.name, *spellings) if name not in taken_names)
            samples[name] = msgspec.structs.replace(sample, name=name)
        return samples

    def unchanged(self) -> list[str]:
        """Return the names of the added connections that no person has changed. Blocks."""
        return [name for name, sample in self.connections.items() if self._is_unchanged(sample)]

    def _is_unchanged(self, sample: SampleConnection) -> bool:
        saved = self._runtime.connections
        try:
            return saved.get(sample.name) == sample.saved and not saved.has_sections(sample.name)
        except DragomanError:  # a person has removed it, or broken the file
            return False

    def _note(self) -> None:
        text = msgspec.json.encode([*self.connections.values()])
        self._runtime.change_file(self._file, edit=lambda _: text)

    def _remove_of_killed(self) -> None:
        for file in self._folder.glob("samples-*.json"):
            if is_left(file):
                with suppress(OSError, msgspec.MsgspecError):
                    self._remove(msgspec.json.decode(file.read_bytes(), type=list[SampleConnection]), file)

    def _remove(self, samples: list[SampleConnection], file: Path) -> None:
        for sample in filter(self._is_unchanged, samples):
            with suppress(DragomanError):  # a person has removed it, or broken the file
                self._runtime.connections.remove(sample.name)
        file.unlink(missing_ok=True)
