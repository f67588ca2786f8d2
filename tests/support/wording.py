"""The wording that users read, in golden files.

A test passes the texts it meets to the fixture `wording`, in order. The file `wording.json` beside the fixture's
``conftest.py`` holds them by test. After a change of wording, write the file anew and read its difference::

    DRAGOMAN_WORDING=write .venv/bin/python -m pytest -q -n0 tests/drivers tests/api
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

_PORT = re.compile(r"(?<=127\.0\.0\.1:|\blocalhost:)\d+")


_LONG = 1_000
"""Characters of a text that the golden file holds whole; of a longer one it holds the beginning and the digest."""


def _shortened(text: str) -> str:
    if len(text) <= _LONG:
        return text
    return f"{text[:_LONG]}… {len(text):,} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()}"


class Wording:
    """Compares the texts of one test with its golden file."""

    def __init__(self, file: Path, test: str) -> None:
        self._file, self._test = file, test
        self._golden: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        self._met: list[str] = []
        self._writes = os.environ.get("DRAGOMAN_WORDING") == "write"

    def __call__(self, *texts: str) -> None:
        """Compare the next texts. Ports of the loopback are replaced, since they differ by run."""
        for text in texts:
            whole = text.encode(errors="backslashreplace").decode()  # halves of a surrogate pair cannot be written
            self._met.append(_shortened(_PORT.sub("PORT", whole)))
            if not self._writes:
                expected = self._golden.get(self._test, [])[: len(self._met)]
                assert self._met == expected, "the wording differs from wording.json (see tests/support/wording.py)"

    def finish(self) -> None:
        """Write the texts if asked to."""
        if self._writes:
            golden = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}
            golden[self._test] = self._met
            text = json.dumps(dict(sorted(golden.items())), indent=1, ensure_ascii=False)
            self._file.write_text(text + "\n", encoding="utf-8")


def of_test(request: pytest.FixtureRequest, folder: Path) -> Iterator[Wording]:
    """Provide the wording of one test, from the file in a folder."""
    path = request.path.relative_to(folder).with_suffix("").as_posix()
    made = Wording(folder / "wording.json", f"{path}: {request.node.name}")
    yield made
    made.finish()
