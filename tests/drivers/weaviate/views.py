"""A view of a collection without a server."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from drivers.weaviate.rig import INDEXED, TYPES, properties

from dragoman_weaviate.columns import field_types
from dragoman_weaviate.columns.grid_columns import View
from dragoman_weaviate.protocol import Features


def view(
    types: dict[str, Any] | None = None,
    *,
    version: tuple[int, int, int] = (1, 38, 11),
    index: dict[str, bool] | None = None,
    name: str = "Book",
    **more: Any,
) -> View:
    """Make a view of a collection without a server; flags and tokenization as the server fills them in."""
    filled = []
    for each in properties(TYPES if types is None else types):
        text = each["dataType"][0].startswith("text")
        usual = {"indexFilterable": True, "indexSearchable": text} | ({"tokenization": "word"} if text else {})
        filled.append(usual | each)
    definition = {"class": name, "properties": filled, "invertedIndexConfig": INDEXED if index is None else index}
    text = json.dumps(definition | more)
    return View(name, msgspec.json.decode(text, type=field_types.Collection), text, Features(version))
