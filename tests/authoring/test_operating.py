"""The page for those who run a registry, followed word by word by an operator, and by an author with another home."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import wheelhouse
from dragoman_registry.publisher.verify import verify
from trust_attacks import served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PAGE = Path(__file__).parents[2] / "docs/how-to/run-a-registry.md"
ADDRESS = "https://drivers.example/team"
DIGEST = re.compile(r"--root ([0-9a-f]{64})")


def commands() -> list[str]:
    """Return what the page has a reader type, in order."""
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


class Reader:
    """Types commands where the page has them typed: those of an author in the author's project."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project = folder, folder / "dragoman-meili"

    def type(self, command: str, *, home: str = "operator", cwd: Path | None = None) -> str:
        """Type a line into a shell; it must succeed."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        homes = {"HOME": str(self.folder), "DRAGOMAN_HOME": str(self.folder / home)}
        done = subprocess.run(
            ["bash", "-c", command], cwd=cwd or self.folder, env={"PATH": path, "LANG": "C.UTF-8", **homes},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def publish(self, version: str, command: str) -> str:
        """Publish a version of the author's driver from the author's project."""
        settings, keys = self.project / "pyproject.toml", self.folder / "team.keys"
        settings.write_text(re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', settings.read_text()))
        moved = command.replace("--to team", "--to ../team").replace("ada.pem", "../ada.pem")
        away = keys.rename(self.folder / "drawer")  # an author has none of them
        try:
            return self.type(moved, home="author", cwd=self.project)
        finally:
            away.rename(keys)


def test_every_command_of_the_page_works_in_its_order(tmp_path: Path) -> None:
    reader, said, root = Reader(tmp_path), "", ""
    (tmp_path / "dist").mkdir()
    wheelhouse.Driver("demo").write(tmp_path / "dist")
    reader.type("dragoman driver new meili --type meilisearch --port 7700", home="author")
    with ExitStack() as stack:
        for command in commands():
            if ADDRESS in command:
                if not (tmp_path / "url").exists():
                    (tmp_path / "url").write_text(stack.enter_context(served(tmp_path / "team")))
                root = DIGEST.search(reader.type("dragoman registry verify team --json && cat root.txt"))[1]
                command = DIGEST.sub(f"--root {root}", command.replace(ADDRESS, (tmp_path / "url").read_text()))
            if "driver publish" in command:
                for version in ("0.1.0", "0.2.0"):
                    said = reader.publish(version, command)
                    assert f"waits to be accepted: meili {version}" in said
            elif "driver key" in command:
                said = reader.type(command, home="author")
            else:
                said = reader.type(command)
            if command == "dragoman registry init team":
                (tmp_path / "root.txt").write_text(said)
            if command.startswith("dragoman registry accept"):
                assert "meili  0.2.0" in said
                assert "meilisearch" in reader.type("dragoman plugins browse")
    assert verify(tmp_path / "team") == []
    assert verify(tmp_path / "mirror") == []
    bundled = reader.type("dragoman registry list --json")
    assert "team.zip" in bundled
