"""What the Prometheus driver answers is what Python makes of the samples: thousands of random calls."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest
from drivers.prometheus.rig import on_server

from .prometheus import KINDS, Oracle

CALLS = 5_000


@pytest.mark.live("prometheus")
@pytest.mark.timeout(1_800)
async def test_every_answer_of_prometheus_holds_the_oracle(live_server: dict[str, Any]) -> None:
    calls = max(1, round(CALLS * float(os.environ.get("DRAGOMAN_ORACLE", "1"))))
    async with on_server(live_server) as rig:
        oracle, differences = Oracle(rig, live_server["url"]), list[str]()
        for seed in range(calls):
            call = oracle.call(Random(seed))
            if reason := await oracle.differs(call):
                differences.append(f"seed {seed}: {reason}\n  {call}")
    print(f"{calls:,} calls on {live_server['engine']}: {dict(oracle.answers)}, {len(differences):,} differences")
    assert not differences, "\n".join(differences[:9])
    assert calls < CALLS or min(oracle.answers[kind] for kind in KINDS) > calls / 20
