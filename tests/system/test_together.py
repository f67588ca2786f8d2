"""Many at once, and bad company: openers of the same missing driver, impostors, broken files."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from stranger import stranger

pytestmark = pytest.mark.slow


def machine(shell, folder):
    """Return a machine that has only a connections file."""
    (folder / "dragoman/config").mkdir(parents=True)
    text = f'[shop]\ntype = "elasticsearch"\nhost = "127.0.0.1"\nport = {shell.port}\n'
    (folder / "dragoman/config/connections.toml").write_text(text)
    return stranger(folder, cwd=folder, port=shell.port)


def test_ten_processes_opening_the_same_missing_driver_share_one_installation(shell, tmp_path):
    here = machine(shell, tmp_path)
    with ThreadPoolExecutor(10) as pool:
        results = list(pool.map(lambda n: here(f"dragoman --events {n}.ndjson objects shop", code=None), range(10)))
    assert [result.code for result in results] == [0] * 10, [result.err for result in results if result.code]
    fetches = 0
    for number in range(10):
        events = [json.loads(line) for line in (tmp_path / f"{number}.ndjson").read_text().splitlines()]
        fetches += any(event["name"] == "plugin.install_progressed" and event["phase"] == "fetch" for event in events)
        assert sum(event["name"] == "connection.opened" for event in events) == 1
    assert fetches == 1
    trees = [path for path in (tmp_path / "dragoman/data/store/trees").iterdir() if not path.name.startswith(".")]
    assert len(trees) == 2  # the driver, and the wheel that it shares


def test_P1_a_driver_in_the_hosts_environment_is_never_imported(shell, tmp_path):
    impostor = tmp_path / "site/dragoman_elasticsearch"
    impostor.mkdir(parents=True)
    (impostor / "__init__.py").write_text("print('impostor')")
    (impostor / "driver.py").write_text("raise SystemExit('impostor')")
    here = machine(shell, tmp_path)
    here.more["PYTHONPATH"] = str(tmp_path / "site")
    result = here("dragoman objects shop")
    assert "impostor" not in result.out + result.err


def test_a_connections_file_with_a_syntax_error_names_the_line_and_is_left_alone(shell, tmp_path):
    here = machine(shell, tmp_path)
    file = tmp_path / "dragoman/config/connections.toml"
    file.write_text("[shop]\ntype = elasticsearch\n")
    for command in ("objects shop", "connections list", "connections add other --type elasticsearch --yes"):
        result = here(f"dragoman {command}", code=2)
        assert "line 2" in result.err
    assert file.read_text() == "[shop]\ntype = elasticsearch\n"


def test_a_damaged_registry_is_named_and_installed_drivers_go_on(shell, tmp_path):
    here = machine(shell, tmp_path)
    here("dragoman objects shop")
    here(f"dragoman registry init {tmp_path / 'broken'}")
    [catalog] = (tmp_path / "broken/targets").glob("*.catalog")
    catalog.write_text('{"catalog_version": 1, "proj')
    result = here(f"dragoman registry add {tmp_path / 'broken'}", code=1)
    assert "error[integrity-failed]" in result.err
    assert catalog.name in result.err
    unsigned = tmp_path / "unsigned/targets"
    unsigned.mkdir(parents=True)
    (unsigned / "catalog").write_text('{"catalog_version": 1}')
    assert "error[not-signed]" in here(f"dragoman registry add {tmp_path / 'unsigned'}", code=1).err
    assert here("dragoman objects shop").out


def test_no_secret_reaches_a_log_an_event_or_an_error(shell, tmp_path):
    here = machine(shell, tmp_path)
    file = tmp_path / "dragoman/config/connections.toml"
    file.write_text(file.read_text() + 'auth_method = "api-key"\napi_key = { env = "KEY" }\n')
    here.more["KEY"] = "c2VjcmV0LWlkOnNlY3JldC1rZXk="
    result = here("dragoman --events run.ndjson objects shop", code=None)
    everything = result.out + result.err + (tmp_path / "run.ndjson").read_text()
    assert "c2VjcmV0" not in everything
    assert "secret-key" not in everything
