"""New indices: the request that makes one, with the mapping of another one, or with none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api import HttpRequest, Plan, PlannedRequest, QueryError
from dragoman_api.json_text import decode, encode
from dragoman_elasticsearch.http_requests import segment

if TYPE_CHECKING:
    from dragoman_api.changes import NewObject

_NAME = re.compile(r'(?![-_+])(?!\.\.?$)[^*,?/\\<>|"#:\s\x00-\x1f\x7f]{1,255}')


class _Index(msgspec.Struct):
    mappings: Raw


def plan_index(new: NewObject) -> Plan:
    """Plan the index; without another one's mapping the server maps each field when a document has it (dynamic).

    Raises:
        QueryError: No index can have the name, or the other object has more than one mapping.
    """
    if not _NAME.fullmatch(new.name) or new.name != new.name.lower():
        raise QueryError(
            f"{new.name!r} cannot be the name of an index", hint="use lower case, without * , ? / and blanks"
        )
    body = None
    if new.like:
        indices = [*decode(new.like, dict[str, _Index]).values()]
        if len(indices) != 1:
            text = f"the rows come from indices with {len(indices)} mappings, and one index has one"
            raise QueryError(text, hint="make the index in the console")
        body = encode({"mappings": indices[0].mappings})
    request = HttpRequest("PUT", f"/{segment(new.name)}", body)
    return Plan(planned=[PlannedRequest(request=request, changes=[])])
