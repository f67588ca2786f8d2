"""Bodies that no decoder takes: an operation of a driver fails with an error of the contract, or goes on without."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

import pytest
from drivers.replies import reply
from tests.fuzz.targets.drivers import ELASTICSEARCH, WEAVIATE, carried_out

from corpora import every_row
from dragoman_api.errors import DragomanError

if TYPE_CHECKING:
    from collections.abc import Callable

_DEEP = b'{"a":' * 3_000 + b"1" + b"}" * 3_000
BODIES: dict[str, Callable[[bytes], bytes]] = {
    "texts and keys in Latin-1": lambda body: body.replace(b'":', b'\xb2":'),
    "texts in Latin-1": lambda body: body.replace(b'": "', b'": "\xb2'),
    "a key in Latin-1 besides": lambda body: body[:1] + b'"\xb2":1,' + body[1:],
    "a value nested deeply besides": lambda body: body[:1] + b'"deep":' + _DEEP + b"," + body[1:],
    "every object nested deeply": lambda body: body.replace(b": {", b': {"deep":' + _DEEP + b","),
    "nothing but depth": lambda _: _DEEP,
    "numbers of 5,000 digits": lambda body: body.replace(b": 1", b": " + b"1" * 5_000),
    "a number of 5,000 digits at the end": lambda body: (b": " + b"1" * 5_000).join(body.rsplit(b": 1", 1)),
    "depth at the end": lambda body: (b": " + b"[" * 970 + b"]" * 970).join(body.rsplit(b": 1", 1)),
    "a text in Latin-1 at the end": lambda body: b': "\xb2"'.join(body.rsplit(b": 1", 1)),
    "a key in Latin-1 at the end": lambda body: b': {"\xb2":1}'.join(body.rsplit(b": 1", 1)),
    "numbers beyond floats": lambda body: body.replace(b": 1", b": 1e999"),
    "powers in the place of digits": lambda body: body.replace(b'"12"', '"²"'.encode()),
    "nothing": lambda _: b"",
}
OPERATIONS = [
    pytest.param(make, answers, id=f"{driver}-{name}")
    for driver, (operations, examples) in {"elasticsearch": ELASTICSEARCH, "weaviate": WEAVIATE}.items()
    for name, make in operations().items()
    for answers in [examples[name]]
]


@pytest.mark.parametrize(("operation", "answers"), OPERATIONS)
@pytest.mark.slow
def test_what_cannot_be_decoded_is_an_error_of_the_contract_whatever_was_asked(
    operation: Callable[[], Any], answers: list[Any]
) -> None:
    headers = {"X-Elastic-Product": "Elasticsearch"}
    sound = [reply(answer, 200, headers) for answer in answers]
    with every_row() as row:
        for (name, spoil), status, at in product(BODIES.items(), (200, 400, 503), range(len(answers))):
            spoiled = reply(spoil(json.dumps(answers[at]).encode()), status, headers)
            with row(name, status, at), suppress(DragomanError):  # some can do without what they cannot read
                carried_out(operation(), cycle([*sound[:at], spoiled, *sound[at + 1 :]]))
