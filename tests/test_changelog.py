"""The changelog grows from fragments, and a release has one version."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from tests.versions import ROOT, versions

CHANGES = ROOT / "docs/changes"
KINDS = ("security", "removed", "deprecated", "added", "changed", "fixed")


def test_the_distributions_of_a_release_have_one_version_and_the_changelog_begins_with_it():
    [version] = {*versions().values()}
    headings = re.findall(r"^## (\S+),", (ROOT / "docs/CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == version or [*CHANGES.glob("+*")]


def test_every_fragment_has_a_kind_and_a_text():
    fragments = [path for path in CHANGES.iterdir() if path.name != "README.md"]
    assert [path.name for path in fragments if not re.fullmatch(rf"\+.+\.(?:{'|'.join(KINDS)})\.md", path.name)] == []
    assert [path.name for path in fragments if not path.read_text().strip()] == []


@pytest.fixture
def checkout(tmp_path):
    """Copy what the changelog is made of, without the fragments of the next release."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/CHANGELOG.md", tmp_path / "docs")
    shutil.copytree(CHANGES, tmp_path / "docs/changes", ignore=shutil.ignore_patterns("+*"))
    return tmp_path


def test_fragments_become_the_newest_entry_and_are_gone(checkout):
    before = (checkout / "docs/CHANGELOG.md").read_text()
    (checkout / "docs/changes/+a.added.md").write_text("`count` takes `--exact`.")
    (checkout / "docs/changes/+b.deprecated.md").write_text("`--old` ends with 2.0: use `--new`.")
    words = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "9.1.0", "--date", "2030-01-02"]
    subprocess.run(words, cwd=checkout, check=True, capture_output=True)
    after = (checkout / "docs/CHANGELOG.md").read_text()
    entry = after.partition("<!-- newer versions stand above -->\n")[2].partition("## 1.0.0")[0]
    lines = [line for line in entry.splitlines() if line]
    assert lines == [
        "## 9.1.0, 2030-01-02", "### Deprecated", "- `--old` ends with 2.0: use `--new`.", "### Added",
        "- `count` takes `--exact`.",
    ]  # fmt: skip
    assert after.replace(entry, "\n") == before
    assert [path.name for path in (checkout / "docs/changes").iterdir()] == ["README.md"]
