"""Loads and copies on real engines, through the sandbox: what was exported comes back, also where nothing was yet."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import dragoman
from dragoman import Reference, Runtime, SavedConnection
from dragoman_api.console import ConsoleRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from dragoman.sessions.session import Session

pytestmark = [pytest.mark.one_engine, pytest.mark.timeout(300)]
ROWS = 5_000


def values_for(server: dict[str, Any]) -> dict[str, Any]:
    """Return the form's values for a record of `tests/servers`."""
    values: dict[str, Any] = {"host": server["host"], "port": server["port"]}
    if server["tls"]:
        values |= {"ssl_mode": "verify-identity", "ca_file": Reference("path", server["ca_file"])}
    if server["type"] == "elasticsearch" and server["security"]:
        secret = Reference("env", "LOAD_SECRET")
        values |= {"auth_method": "username-password", "username": "elastic", "password": secret}
    if server["type"] == "weaviate" and server["api_keys"]:
        values |= {"auth_method": "api-key", "api_key": Reference("env", "LOAD_SECRET")}
    return values


@pytest.fixture
async def real(live_server: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Session]:
    if live_server["type"] == "elasticsearch" and live_server["security"]:
        monkeypatch.setenv("LOAD_SECRET", live_server["users"]["superuser"]["password"])
    elif live_server["type"] == "weaviate":
        if live_server["settings"]:
            pytest.skip("this engine is set up for rules of its own")
        monkeypatch.setenv("LOAD_SECRET", live_server["api_keys"].get("admin", ""))
    async with Runtime(spare=False) as runtime:
        runtime.connections.save(
            SavedConnection(name="real", type=live_server["type"], values=values_for(live_server)), replace=True
        )
        async with runtime.open("real") as session:
            yield session


async def send(session: Session, *texts: str) -> None:
    for text in texts:
        for request in await session.parse(text):
            await session.execute(ConsoleRequest(request=request.request, writes=True))


def lines(file: Path, *, id_: str) -> list[dict[str, Any]]:
    """Return the rows of an export in rows, without what differs from one object to another."""
    rows = [json.loads(line, parse_float=str) for line in file.read_bytes().splitlines()]
    outside = ("_index", "class", "creationTimeUnix", "lastUpdateTimeUnix")
    kept = [{name: value for name, value in row.items() if name not in outside} for row in rows]
    return sorted(kept, key=lambda row: row[id_])


async def round_trip(session: Session, names: tuple[str, str, str], folder: Path, **how: Any) -> None:
    """Load rows, copy them to an object that is made, export both, and load one export where nothing was yet."""
    first, second, third = names
    columns, id_ = how["columns"], how["id_"]
    report = await dragoman.load(session, first, file=how["file"], format="rows", create=True)
    assert (report.counts["applied"], report.complete) == (ROWS, True), report
    report = await dragoman.load(session, second, file=folder / second, rows=session.rows(first), create=True)
    assert report.counts["applied"] == ROWS, report
    await send(session, *how["refresh"])
    exports = []
    for name in (first, second):
        exports.append(folder / f"{name}.rows")
        assert (await session.rows(name, columns=columns).export(to=exports[-1], format="rows")).rows == ROWS
    again = await dragoman.load(session, third, file=exports[1], create=True)
    assert again.counts["applied"] == ROWS, again
    await send(session, *how["refresh"])
    exports.append(folder / f"{third}.rows")
    await session.rows(third, columns=columns).export(to=exports[-1], format="rows")
    one, *others = (lines(each, id_=id_) for each in exports)
    assert len(one) == ROWS
    assert all(other == one for other in others)
    conflicts = await dragoman.load(session, third, file=exports[0], on_conflict="skip")
    assert conflicts.counts["skipped"] == ROWS, conflicts


@pytest.mark.live("elasticsearch")
async def test_rows_come_back_and_are_copied_on_elasticsearch(real: Session, tmp_path: Path) -> None:
    file = tmp_path / "o.rows"
    with file.open("w", encoding="utf-8") as out:
        for at in range(ROWS):
            source = f'{{"n": {at}, "price":{at}.10, "big":{2**62 + at}, "title":"Žluťoučký \\ud83d\\udc0e {at}"}}'
            out.write(f'{{"_id":"a/{at} %","_source":{source}}}\n')
    names = ("dragoman-load-one", "dragoman-load-two", "dragoman-load-three")
    await send(real, *(f"DELETE /{name}" for name in names))
    try:
        await round_trip(real, names, tmp_path, file=file, columns=None, id_="_id", refresh=["POST /_refresh"])
        first = (tmp_path / "dragoman-load-three.rows").read_text(encoding="utf-8")
        assert '"price":7.10' in first  # the very digits
        assert "\\ud83d\\udc0e" in first
    finally:
        await send(real, *(f"DELETE /{name}" for name in names))


@pytest.mark.live("weaviate")
async def test_objects_come_back_with_their_vectors_and_are_copied_on_weaviate(real: Session, tmp_path: Path) -> None:
    file = tmp_path / "o.rows"
    with file.open("w", encoding="utf-8") as out:
        for at in range(ROWS):
            row = {
                "id": f"00000000-0000-4000-8000-{at:012x}",
                "properties": {"n": at, "price": at / 7, "title": f"Žluťoučký 🐎 {at}", "tags": ["a", str(at)]},
                "vector": [at / 3, -0.1, 1e-7],
            }
            out.write(json.dumps(row) + "\n")
    names = ("DragomanLoadOne", "DragomanLoadTwo", "DragomanLoadThree")
    await send(real, *(f"DELETE /v1/schema/{name}" for name in names))
    try:
        await round_trip(real, names, tmp_path, file=file, columns=["vector"], id_="id", refresh=[])
    finally:
        await send(real, *(f"DELETE /v1/schema/{name}" for name in names))
