"""What the Solr driver answers is what Python makes of the stored documents, on the real server."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from drivers.solr.rig import on_server

from .solr import run
from .test_oracle import LIVE, SEED, calls


@pytest.mark.live("solr")
@pytest.mark.timeout(1_800)
async def test_every_answer_holds_the_oracle_of_documents(live_server: dict[str, Any]) -> None:
    """S9-S25: filters, pages, walks, sorts, counts, summaries, exports, cells and changes."""
    async with on_server(live_server) as rig:
        report = await run(rig, seed=SEED, calls=calls(LIVE), say=lambda text: print(text, file=sys.stderr))
    print(report.calls, dict(report.tally), *report.differences[:8], sep="\n")
    assert not report.differences
    assert report.tally["exact"] > report.calls / 10
    assert report.tally["refused"] < report.calls / 2
