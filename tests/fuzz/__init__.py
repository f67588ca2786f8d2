"""Fuzzers over every parser of strangers' bytes: `python -m tests.fuzz --help`.

`table.py` lists the targets; each takes bytes, calls the product's own function, and says which errors are its answer.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.bundled_drivers import PACKAGES

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"

for _folder in (*PACKAGES.values(), ROOT / "tests", ROOT / "tests/support"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))
