"""Samples sent to a real server by Prometheus's remote write protocol, which VictoriaMetrics takes, too.

The protocol is protobuf in one block of Snappy; the block holds its bytes uncompressed. Samples have to come in the
order of time. https://prometheus.io/docs/specs/prw/remote_write_spec/
"""

from __future__ import annotations

import json
import struct
import time
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.error import HTTPError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
"""The NaN that marks the end of a series."""

_BLOCK = 65_536


def series(
    labels: Mapping[str, str], samples: Iterable[tuple[int, float]] = (), histograms: Iterable[bytes] = ()
) -> bytes:
    """Encode one series: samples are milliseconds and a number, with every bit of a NaN."""
    parts = [_nested(1, _nested(1, name.encode()) + _nested(2, text.encode())) for name, text in sorted(labels.items())]
    parts += [_nested(2, _field(1, 1, _double(value)) + _field(2, 0, _varint(at))) for at, value in samples]
    return _nested(1, b"".join([*parts, *(_nested(4, histogram) for histogram in histograms)]))


def histogram(at: int, *, count: int, total: float, zero: int, deltas: Iterable[int]) -> bytes:
    """Encode a native histogram of schema 0 whose buckets follow one another from 1 on."""
    steps = [*deltas]
    parts = [_field(1, 0, _varint(count)), _field(3, 1, _double(total)), _field(4, 0, _varint(0))]
    parts += [
        _field(5, 1, _double(1e-128)),
        _field(6, 0, _varint(zero)),
        _nested(11, _field(2, 0, _varint(len(steps)))),
    ]
    parts += [_nested(12, b"".join(_varint(_zigzag(step)) for step in steps)), _field(15, 0, _varint(at))]
    return b"".join(parts)


def send(url: str, *encoded: bytes) -> None:
    """Send encoded series."""
    data = b"".join(encoded)
    blocks = [data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK)]
    body = _varint(len(data)) + b"".join(b"\xf4" + struct.pack("<H", len(block) - 1) + block for block in blocks)
    headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
    _opener().open(urllib.request.Request(f"{url}/api/v1/write", body, headers), timeout=30).close()


def settle(url: str, name: str) -> None:
    """Wait until a server finds a metric: VictoriaMetrics shows what it stored after about a second."""
    with suppress(HTTPError), _opener().open(f"{url}/internal/force_flush", timeout=30):
        pass  # Prometheus has no such path
    for _ in range(100):
        if finds(url, name):
            return
        time.sleep(0.1)
    raise TimeoutError(f"{url} does not find {name}")


def finds(url: str, name: str) -> bool:
    """Return whether a server knows a metric."""
    with _opener().open(f"{url}/api/v1/label/__name__/values?start=0", timeout=30) as reply:
        return name in json.load(reply)["data"]


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


def _zigzag(number: int) -> int:
    return (number << 1) ^ (number >> 63)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, kind: int, data: bytes) -> bytes:
    return _varint(number << 3 | kind) + data


def _nested(number: int, data: bytes) -> bytes:
    return _field(number, 2, _varint(len(data)) + data)
