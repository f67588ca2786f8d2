"""A remedy that installs something fits the program that installed dragoman, and keeps what was added before."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import importlib_metadata  # noqa: F401 - once imported, it reads what is installed in the standard library's place
import pytest

from dragoman.cli.advice import lines
from dragoman_api import installation
from dragoman_api.installation import Installer, add_command, installer, removal_command, upgrade_command

RECEIPT = """[tool]
requirements = [
    { name = "dragoman", extras = ["workbench"], specifier = ">=1" },
    { name = "dragoman-dask", path = "/wheels/dragoman_dask-1.0.0-py3-none-any.whl" },
    { name = "keyring" },
]

[tool.options]
find-links = ["file:///wheels"]
"""
WHEELS = "--find-links file:///wheels"
DASK, DASK_S3 = (f"{name} @ file:///wheels/dragoman_dask-1.0.0-py3-none-any.whl"
                 for name in ("dragoman-dask", "dragoman-dask[s3]"))  # fmt: skip
FROM_A_WHEEL = '[tool]\nrequirements = [{ name = "dragoman", path = "/a b/dragoman-1.0.0-py3-none-any.whl" }]\n'
EDITABLE = """[tool]
requirements = [
    { name = "dragoman", extras = ["otel"], editable = "/src" },
    { name = "dragoman-api", editable = "/src/plugins/api" },
]
"""
INDEXED = """[tool]
requirements = [{ name = "dragoman" }]
python = "3.12"
entrypoints = [{ name = "dragoman", install-path = "/bin/dragoman", from = "dragoman" }]

[tool.options]
index = [
    { url = "https://pypi.example/simple", explicit = false, default = true, format = "simple", authenticate = "auto" },
    { name = "own", url = "https://own.example/simple" },
]
no-index = true
find-links = ["file:///wheels"]
"""
INDEXES = "--default-index https://pypi.example/simple --index own=https://own.example/simple"
PIPX = '{"main_package": {"package": "dragoman", "package_or_url": "dragoman[workbench]"}}'


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An environment of its own, which holds pip; the function writes a record into it."""
    (tmp_path / "site" / "pip").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text("")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return lambda name, text="": (tmp_path / name).write_text(text)


def test_pip_adds_to_the_environment_of_this_interpreter(environment, monkeypatch):
    assert installer() == Installer.PIP
    assert add_command("dragoman[zstd]", "dragoman[arrow]") == "python -m pip install 'dragoman[arrow,zstd]'"
    assert add_command("keyring") == "python -m pip install keyring"
    assert upgrade_command() == "python -m pip install --upgrade dragoman"
    monkeypatch.setenv("PATH", "")  # of a shell that did not activate it
    assert add_command("keyring") == f"{sys.executable} -m pip install keyring"


def test_an_environment_without_pip_is_one_of_uv(environment, tmp_path):
    (tmp_path / "site" / "pip").rmdir()
    assert add_command("dragoman[arrow]") == f"uv pip install --python {sys.executable} 'dragoman[arrow]'"
    assert upgrade_command() == f"uv pip install --python {sys.executable} --upgrade dragoman"


def test_pipx_injects_and_remembers_the_extras_that_it_was_given_before(environment):
    environment("pipx_metadata.json", PIPX)
    assert add_command("dragoman[arrow]") == "pipx inject dragoman 'dragoman[arrow,workbench]'"
    assert add_command("dragoman-dask[s3]", "keyring") == "pipx inject dragoman 'dragoman-dask[s3]' keyring"
    assert (upgrade_command(), removal_command()) == ("pipx upgrade dragoman", "pipx uninstall dragoman")
    environment("pipx_metadata.json", "{")
    assert add_command("dragoman[arrow]") == "pipx inject dragoman 'dragoman[arrow]'"


@pytest.mark.parametrize(
    ("receipt", "requirements", "arguments"),
    [
        (RECEIPT, ["dragoman[arrow]"], f"'dragoman[arrow,workbench]>=1' --with '{DASK}' --with keyring {WHEELS}"),
        (RECEIPT, ["dragoman-dask[s3]", "gcsfs"],
         f"'dragoman[workbench]>=1' --with '{DASK_S3}' --with gcsfs --with keyring {WHEELS}"),
        (FROM_A_WHEEL, ["dragoman[arrow]"], "'dragoman[arrow] @ file:///a%20b/dragoman-1.0.0-py3-none-any.whl'"),
        (EDITABLE, ["dragoman[arrow]"], "--editable '/src[arrow,otel]' --with-editable /src/plugins/api"),
        (INDEXED, ["keyring"],
         f"dragoman --with keyring {INDEXES} --no-index --find-links file:///wheels --python 3.12"),
    ],
)  # fmt: skip
def test_uv_tool_is_given_again_what_it_would_drop(environment, receipt, requirements, arguments):
    environment("uv-receipt.toml", receipt)
    assert add_command(*requirements) == f"uv tool install {arguments}"
    assert (upgrade_command(), removal_command()) == ("uv tool upgrade dragoman", "uv tool uninstall dragoman")


@pytest.mark.parametrize(
    "receipt",
    [
        "[",
        "tool = 1",
        "[tool]",
        "[tool]\nrequirements = 1",
        "[tool]\nrequirements = [1]",
        "[tool]\nrequirements = [{ extras = [] }]",
        '[tool]\nrequirements = [{ name = "dragoman", path = "dragoman-1.0.0-py3-none-any.whl" }]',
        '[tool]\nrequirements = [{ name = "dragoman", git = "https://a:s3cret@git.example/a?rev=main" }]',
        '[tool]\nrequirements = [{ name = "dragoman", url = "https://a:s3cret@own.example/dragoman.whl" }]',
        '[tool]\nrequirements = [{ name = "dragoman", url = "https://own.example/dragoman.whl?token=s3cret" }]',
        '[tool]\nrequirements = [{ name = "dragoman", marker = "s3cret" }]',
        f'{FROM_A_WHEEL}constraints = [{{ name = "anyio" }}]',
        f'{FROM_A_WHEEL}[tool.options]\nindex = [{{ url = "https://a:s3cret@own.example/simple" }}]',
        f'{FROM_A_WHEEL}[tool.options]\nindex = [{{ url = "https://own.example/s3cretQ9zT4kLmWxYv/simple" }}]',
        f'{FROM_A_WHEEL}[tool.options]\nindex = [{{ url = "https://own.example/s3cretQ9.zT4kLmW.xYv/simple" }}]',
        f'{FROM_A_WHEEL}[tool.options]\nindex = [{{ url = "https://own.example/simple#s3cret" }}]',
        f'{FROM_A_WHEEL}[tool.options]\nindex = [{{ url = "https://own.example/simple", explicit = true }}]',
        f'{FROM_A_WHEEL}[tool.options]\nfind-links = ["https://s3cret@own.example/wheels"]',
        f'{FROM_A_WHEEL}[tool.options]\nfind-links = ["https://["]',
        f'{FROM_A_WHEEL}[tool.options]\nexclude-newer = "2026-01-01"',
        f"{FROM_A_WHEEL}[tool]",
        b"\xff",
    ],
)
def test_a_receipt_that_says_more_than_a_command_yields_words_and_no_secret(environment, tmp_path, receipt):
    environment("uv-receipt.toml")
    (tmp_path / "uv-receipt.toml").write_bytes(receipt if isinstance(receipt, bytes) else receipt.encode())
    repeat = "repeat the command `uv tool install` that installed dragoman, with"
    assert add_command("dragoman-dask[s3]", "keyring") == f"{repeat} --with dragoman-dask[s3] --with keyring"
    assert add_command("dragoman[arrow]", "keyring") == f"{repeat} dragoman[arrow] in place of dragoman --with keyring"
    assert [*lines(add_command("keyring"))] == [f"hint: {repeat} --with keyring"]


def test_a_broken_distribution_hinders_no_removal(environment, tmp_path):
    (tmp_path / "site/empty-1.0.dist-info").mkdir()
    nameless = tmp_path / "site/nameless-1.0.dist-info"
    nameless.mkdir()
    (nameless / "METADATA").write_text("Metadata-Version: 2.1\n")
    own = tmp_path / "site/dragoman_dask-1.0.0.dist-info"
    own.mkdir()
    (own / "METADATA").write_text("Metadata-Version: 2.1\nName: dragoman_dask\n")
    assert removal_command() == "python -m pip uninstall dragoman dragoman-dask"


def test_an_environment_for_one_run_is_made_anew(monkeypatch, environment, tmp_path):
    monkeypatch.setattr(sys, "prefix", "/home/a/.cache/uv/archive-v0/CenNOH")
    assert add_command("dragoman[arrow]", "keyring") == "uvx --from 'dragoman[arrow]' --with keyring dragoman"
    assert upgrade_command() == "uvx dragoman@latest"


def test_the_python_of_a_system_is_left_alone(environment, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert installer() == Installer.PIP
    environment("EXTERNALLY-MANAGED")
    assert add_command("dragoman[arrow]", "keyring") == "pipx install 'dragoman[arrow]' --preinstall keyring"
    assert upgrade_command() == "pipx install dragoman"
    (tmp_path / "bin" / "uv").write_text("")
    (tmp_path / "bin" / "uv").chmod(0o755)
    assert add_command("dragoman[arrow]", "keyring") == "uv tool install 'dragoman[arrow]' --with keyring"
    assert upgrade_command() == "uv tool install dragoman"
    assert removal_command().startswith("python -m pip uninstall --break-system-packages")


def test_removing_names_all_distributions_of_dragoman_here():
    words = shlex.split(removal_command())
    assert {"dragoman", "dragoman-api", "dragoman-workbench"} <= {*words[words.index("uninstall") :]}
    assert not {"pluggy", "dragoman_api"} & {*words}


@pytest.mark.slow
def test_the_command_for_this_environment_runs():
    """What is printed here is run: it asks for what is installed, so that nothing is fetched."""
    words = shlex.split(add_command("dragoman-api"))
    if words[0] == "uv":
        pytest.skip("this environment has no pip")
    environment = os.environ | {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    ended = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    assert "already satisfied: dragoman-api" in ended.stdout


def test_only_one_module_knows_how_packages_are_installed():
    """Every other message takes its command from there."""
    root = Path(__file__).parents[2]
    sources = [path for room in ("runtime", "registry", "plugins") for path in (root / room).rglob("dragoman*/**/*.py")]
    assert len(sources) > 200
    own = Path(installation.__file__)
    naming = [path for path in sources if path != own and "node_modules" not in path.parts
              and any(word in path.read_text() for word in ("pip install", "pipx", "uv tool"))]  # fmt: skip
    assert [path.relative_to(root).as_posix() for path in naming] == ["runtime/dragoman/cli/advice.py"]
