"""What is written for a moment lies in a fresh folder of this user, also what a library would put elsewhere."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dragoman.folders import scratch_folder
from dragoman_api.errors import ConfigurationError
from dragoman_dask import clusters


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files that all users share, as /tmp is."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def test_a_scratch_folder_is_fresh_and_private_and_gone_afterwards(temporary):
    with scratch_folder() as first, scratch_folder() as second:
        assert first != second
        for folder in (first, second):
            assert folder.parent == temporary
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            (folder / "x").write_text("x")
    assert list(temporary.iterdir()) == []


def test_no_scratch_folder_lies_where_others_can_replace_it(temporary):
    temporary.chmod(0o777)
    with pytest.raises(ConfigurationError, match="every user can write it"), scratch_folder():
        pass
    assert list(temporary.iterdir()) == []


def test_a_local_cluster_is_told_to_spill_into_a_scratch_folder(temporary):
    pytest.importorskip("distributed")
    with clusters._local(2) as options:
        assert [options["local_directory"]] == [str(folder) for folder in temporary.iterdir()]


CLUSTER = """
import json, os, sys
from pathlib import Path
from dragoman_dask import cluster

def seen(dask_worker):
    import dask, tempfile
    folder = Path(dask_worker.local_directory)
    inside = [str(path) for path in folder.rglob("*")]
    return [str(folder), dask.config.get("temporary-directory"), inside]

if __name__ == "__main__":
    with cluster(workers=1) as client:
        kept = client.submit(lambda: b"x" * 10_000_000, key="kept")
        kept.result()
        client.run(lambda dask_worker: dask_worker.data.evict() and None)
        [told] = client.run(seen).values()
        own = [path for path in Path(told[0]).parents if path.name.startswith("dragoman-")]
        modes = [oct(os.stat(path).st_mode & 0o077) for path in own]
        print(json.dumps([*told, modes]))
"""


@pytest.mark.slow
def test_a_worker_of_a_local_cluster_spills_where_nobody_else_has_been(temporary, tmp_path):
    """Another user's `dask-scratch-space` stays empty, and what a worker loads again lies in a private folder."""
    pytest.importorskip("distributed")
    import json

    planted = temporary / "dask-scratch-space"
    planted.mkdir()
    planted.chmod(0o777)
    script = tmp_path / "script.py"
    script.write_text(CLUSTER)
    env = {name: value for name, value in os.environ.items() if not name.startswith("DASK")}
    env |= {"HOME": str(tmp_path), "DASK_TEMPORARY_DIRECTORY": str(planted)}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=120, check=True)
    where, configured, spilled, modes = json.loads(done.stdout)
    assert Path(where).is_relative_to(temporary)
    assert Path(where).relative_to(temporary).parts[0].startswith("dragoman-")
    assert Path(configured).relative_to(temporary).parts[0].startswith("dragoman-")
    assert any("kept" in path for path in spilled), "the worker spilled"
    assert modes == ["0o0"]
    assert list(planted.iterdir()) == []
    assert list(temporary.iterdir()) == [planted]
