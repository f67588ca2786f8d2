"""Makes `python -m servers` (with tests/ on the path) and `python tests/servers` the same thing."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:  # started by its folder: that folder is on the path, and its parent should be instead
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from servers.cli import main

if __name__ == "__main__":
    sys.exit(main())
