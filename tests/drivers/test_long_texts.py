"""A page of long texts, from a server through a confined driver: it is cut, it says so, and each cell is to be had."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch import rig as elasticsearch
from drivers.weaviate import rig as weaviate

from dragoman_api import CellRequest, CutText, Update
from dragoman_api.grid import PageRequest

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, LENGTH = 100, 1_300_000


def text_of(at: int) -> str:
    return f"{at} " + "x" * LENGTH


async def into_elasticsearch(rig: Any) -> None:
    for start in range(0, ROWS, 10):
        lines = [
            f'{{"index":{{"_index":"long","_id":"{at}"}}}}\n{json.dumps({"body": text_of(at)})}\n'
            for at in range(start, start + 10)
        ]
        reply = await rig.raw("POST", "/_bulk?refresh=true", "".join(lines))
        assert reply.status == 200, reply.text[:500]


async def into_weaviate(rig: Any) -> None:
    body = {"class": "Long", "vectorizer": "none", "properties": [{"name": "body", "dataType": ["text"]}]}
    reply = await rig.raw("POST", "/v1/schema", json.dumps(body))
    assert reply.status == 200, reply.text
    for at in range(ROWS):
        about = {"class": "Long", "id": f"00000000-0000-4000-8000-{at:012}", "properties": {"body": text_of(at)}}
        reply = await rig.raw("POST", "/v1/objects", json.dumps(about))
        assert reply.status == 200, reply.text[:500]


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("on_fake", "fill", "name"),
    [
        (partial(elasticsearch.on_fake, "8.19.21"), into_elasticsearch, "long"),
        (weaviate.on_fake, into_weaviate, "Long"),
    ],
    ids=["elasticsearch", "weaviate"],
)
async def test_E22_a_page_of_130_megabytes_is_cut_and_says_so(
    on_fake: Callable[..., Any], fill: Callable[[Any], Any], name: str
) -> None:
    async with on_fake(confined=True) as rig:
        await fill(rig)
        await rig.driver.describe_object(name)
        page = await rig.driver.fetch_page(PageRequest(object=name, limit=ROWS))
        assert len(page.rows) == ROWS
        assert {type(row["body"]) for row in page.rows} == {CutText}
        assert [note.column for note in page.notes if note.code == "cells-cut"] == ["body"]
        row = page.rows[7]
        whole = await rig.driver.fetch_cell(CellRequest(key=row.key, column="body"))
        assert len(whole) > LENGTH
        assert whole.startswith(row["body"].removesuffix("..."))
        [refused] = (await rig.plan(Update(row.key, {"body": row["body"]}))).refusals
        assert "beginning" in refused.reason
