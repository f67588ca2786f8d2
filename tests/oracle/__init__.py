"""The oracle: random calls of a driver, each evaluated again in Python from the stored documents.

`python -m tests.oracle --help`. `columns.py` says what a filter row means for the values of a column, `readings.py`
what a driver's explanations admit, `calls.py` which calls there are and what their answers must be. `elasticsearch.py`
and `weaviate.py` make mappings and documents, `chances.py` random calls for them. `known.py` lists the differences that
are known and open.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

_plugins = (path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
for _folder in (*_plugins, ROOT / "tests", ROOT / "tests/support"):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))
