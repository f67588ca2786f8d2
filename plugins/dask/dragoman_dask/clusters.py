"""Clusters: a local one that only this process can use, or an existing one by its address."""

from __future__ import annotations

import logging
import os
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio

from dragoman.extending import scratch_folder
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from distributed import Client

LOCAL = "local"
"""The address that stands for a cluster on this machine, which ends with the export."""

CONNECT_SECONDS = 15
CLOSE_SECONDS = 10


def check_address(address: str, *, insecure: bool) -> None:
    """Refuse an address that is not encrypted, unless insisted on.

    Raises:
        ConfigurationError: Others on the way could read the rows and run code on the workers.
    """
    if address == LOCAL or address.startswith("tls://"):
        return
    if not insecure or "://" not in address:
        raise ConfigurationError(
            f"{address!r} is not the address of an encrypted Dask scheduler",
            hint="use local or tls://HOST:PORT; --insecure-cluster accepts tcp:// in a network that you trust: anyone "
            "who reaches an open scheduler can run code on its workers",
        )


@asynccontextmanager
async def client_of(address: str, *, workers: int | None = None, insecure: bool = False) -> AsyncIterator[Any]:
    """Connect to a cluster, or start a local one.

    A local cluster listens on the loopback with certificates that exist only in its processes, and has no dashboard. An
    existing one takes its certificates from the configuration of Dask (`distributed.comm.tls`).

    Args:
        address: `LOCAL`, or a scheduler's address.
        workers: Processes of a local cluster; by default one for each core.
        insecure: Accept an address that is not encrypted.

    Yields:
        The `distributed.Client` in the loop of the caller.

    Raises:
        ConfigurationError: The address is refused, or no scheduler answers there.
    """
    check_address(address, insecure=insecure)
    from distributed import Client, LocalCluster

    async with AsyncExitStack() as stack:
        if address == LOCAL:
            options = stack.enter_context(_local(workers))
            started = await LocalCluster(**options, asynchronous=True)
            stack.push_async_callback(_closed, started)
            client = await Client(started, asynchronous=True, security=options["security"])
        else:
            stack.enter_context(_quiet())
            with _reaching(address):
                client = await Client(address, asynchronous=True, timeout=CONNECT_SECONDS)
        stack.push_async_callback(_closed, client)
        yield client


@contextmanager
def cluster(address: str = LOCAL, *, workers: int | None = None, insecure: bool = False) -> Iterator[Client]:
    """Connect to a cluster, or start a local one, for code without ``async``; dataframes are then computed there.

    Args:
        address: ``local``, or a scheduler's address.
        workers: Processes of a local cluster; by default one for each core.
        insecure: Accept an address that is not encrypted.

    Yields:
        The `distributed.Client`, which is the current one while the block runs.

    Raises:
        ConfigurationError: The address is refused, or no scheduler answers there.
    """
    check_address(address, insecure=insecure)
    from distributed import Client, LocalCluster

    if address == LOCAL:
        with (
            _local(workers) as options,
            LocalCluster(**options) as started,
            Client(started, security=options["security"]) as client,
        ):
            yield client
        return
    with _reaching(address):
        client = Client(address, timeout=CONNECT_SECONDS)
    with client:
        yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep a client from logging a lost connection with its traceback, which the caller reports."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _reaching(address: str) -> Iterator[None]:
    try:
        yield
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        hint = "check the address, and the certificates in the configuration of Dask (distributed.comm.tls)"
        raise ConfigurationError(f"no Dask scheduler answers at {address}: {error}", hint=hint) from error


@contextmanager
def _local(workers: int | None) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a local cluster: on the loopback, with certificates of its own, without pages.

    Its workers spill pickles, which they load again, so the folder for them must be one that others cannot change.
    """
    import dask
    from distributed import Security

    pages: dict[str, list[str]] = {f"distributed.{role}.http.routes": [] for role in ("scheduler", "worker")}
    with scratch_folder() as scratch, dask.config.set({**pages, "temporary-directory": str(scratch)}):
        yield {
            "n_workers": workers or os.cpu_count() or 1,
            "threads_per_worker": 1,
            "processes": True,
            "host": "127.0.0.1",
            "local_directory": str(scratch),
            "protocol": "tls://",
            "security": Security.temporary(),
            "dashboard_address": None,
            # Dask starts a server for HTTP in any case: here it has no pages, and a port that is free.
            "scheduler_kwargs": {"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            "silence_logs": logging.ERROR,
        }


async def _closed(thing: Any) -> None:
    """Close a client or a cluster, also after a cancellation."""
    with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(Exception):  # its other end may be gone
        await thing.close()
