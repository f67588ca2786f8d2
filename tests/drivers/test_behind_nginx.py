"""Both drivers behind a real nginx: below a path, and with a client certificate that it asks for (E6, W5)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch import rig as elasticsearch
from drivers.test_behind_a_proxy import connected, work
from drivers.weaviate import rig as weaviate

from dragoman_api.connections import SslMode
from dragoman_api.errors import ConnectionFailedError, DragomanError
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from fakes.certificates import Certificates, make_certificates
from nginx_server import find_nginx, serving
from slow_cases import mostly_slow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from nginx_server import Nginx

DRIVERS = {"elasticsearch": (elasticsearch, FakeElasticsearch), "weaviate": (weaviate, FakeWeaviate)}


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Make an authority, the server's certificate and a client's."""
    find_nginx()
    made = make_certificates(tmp_path_factory.mktemp("certificates"))
    certificate, key = made.client
    (made.folder / "client.pem").write_text(certificate.read_text() + key.read_text())
    return made


@asynccontextmanager
async def behind(driver: str, folder: Path, certs: Certificates, **changes: Any) -> AsyncIterator[tuple[Any, Nginx]]:
    """Connect a driver to a fake server of its kind behind nginx; yield it and nginx."""
    room, fake = DRIVERS[driver]
    protocols = changes.pop("protocols", "TLSv1.2 TLSv1.3")
    async with fake() as server:
        with serving(folder, server.url, certs, prefix="/db/one", protocols=protocols) as nginx:
            given = {
                "ssl_mode": SslMode.VERIFY_IDENTITY,
                "ca_pem": certs.ca.read_text(),
                "client_certificate": str(certs.folder / "client.pem"),
                "options": {"path_prefix": "/db/one"},
                **changes,
            }
            async with connected(driver, room.profile(f"https://localhost:{nginx.port}", **given)) as rig:
                yield rig, nginx
            assert server.faults == []


@pytest.mark.parametrize("protocols", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("driver", ["elasticsearch", "weaviate"])
async def test_E6_W5_everything_works_below_a_path_of_nginx_with_a_client_certificate(
    tmp_path: Path, certs: Certificates, driver: str, protocols: str
) -> None:
    async with behind(driver, tmp_path / "nginx", certs, protocols=protocols) as (rig, nginx):
        assert (await rig.driver.ping()).ok
        await work(rig, driver)
        assert nginx.log
        assert all(line.split()[1].startswith("/db/one/") for line in nginx.log)


@pytest.mark.parametrize("protocols", mostly_slow(["TLSv1.2", "TLSv1.3"], fast=["TLSv1.3"]))
@pytest.mark.parametrize("driver", ["elasticsearch", "weaviate"])
@pytest.mark.parametrize("given", ["none", "foreign"])
async def test_E40_W37_the_error_says_that_nginx_turns_a_client_away_for_its_certificate(
    tmp_path: Path, certs: Certificates, driver: str, protocols: str, given: str
) -> None:
    """It answers with a status and a page of its own, as no database does."""
    client, what = "", "asks for a client certificate"
    if given == "foreign":
        certificate, key = make_certificates(tmp_path / "foreign").client
        (tmp_path / "foreign.pem").write_text(certificate.read_text() + key.read_text())
        client, what = str(tmp_path / "foreign.pem"), "rejects the client certificate"
    with pytest.raises(ConnectionFailedError, match=rf"{what} \(HTTP 400\)") as caught:
        async with behind(driver, tmp_path / "nginx", certs, protocols=protocols, client_certificate=client):
            pass
    assert caught.value.details["sent"] is False
    assert "configure a client certificate" in caught.value.hint


@pytest.mark.parametrize("driver", ["elasticsearch", "weaviate"])
async def test_without_the_path_nothing_but_nginx_answers(tmp_path: Path, certs: Certificates, driver: str) -> None:
    with pytest.raises(DragomanError):
        async with behind(driver, tmp_path / "nginx", certs, options={}):
            pass
    assert {line.split()[-1] for line in _log(tmp_path / "nginx")} == {"404"}


def _log(folder: Path) -> list[str]:
    return [line.split('"')[2].split()[0] for line in (folder / "access.log").read_text().splitlines()]
