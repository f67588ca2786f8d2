"""Bytes that make no sense end the child, and cost the host nothing."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import anyio
import pytest

from dragoman_api.errors import DriverCrashedError, DriverFaultError, SandboxError

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

HEAD = """
import msgspec
pack = msgspec.msgpack.encode
control = socket.socket(fileno=os.dup(int(sys.argv[1])))
control.setblocking(True)
def send(body):
    control.sendall(len(body).to_bytes(4, "little") + body)
"""

ATTACKS = {
    "an empty frame": "control.sendall(bytes(4))",
    "a frame of 4 GiB": "control.sendall(b'\\xff\\xff\\xff\\xff' + bytes(100_000))",
    "no msgpack": "send(b'\\xc1' * 10)",
    "a message of no known kind": "send(pack({'t': 'boo'}))",
    "a field too many": "send(pack({'t': 'res', 'id': 1, 'value': None, 'more': 1}))",
    "an answer to no call": "send(pack({'t': 'res', 'id': 99, 'value': None}))",
    "a message of the start": "send(pack({'t': 'ready', 'hooks': []}))",
    "a second report": "send(pack({'t': 'sandboxed', 'layers': [], 'failures': {}, 'landlock_abi': 7, 'probes': {},"
    " 'missing': []}))",
    "a million levels": "send(b'\\x83\\xa1t\\xa3res\\xa2id\\x01\\xa5value' + b'\\x91' * 1_000_000)",
    "no UTF-8": "send(b'\\x81\\xa1t\\xa2\\xff\\xff')",
    "a result of another type": "send(pack({'t': 'res', 'id': 1, 'value': [1, 2]}))",
    "a piece of an export for a call": "send(pack({'t': 'chunk', 'id': 1, 'size': 1, 'rows': 1}))",
    "a part that belongs nowhere": "send(pack({'t': 'part', 'id': 1, 'path': 'x', 'piece': []}))",
    "a flood of parts for no call": "while True: send(pack({'t': 'part', 'id': 99, 'path': '', 'piece': []}))",
    "a long error": "send(pack({'t': 'err', 'id': 1, 'code': 'x', 'message': 'y' * 100_000}))",
    "bytes where a text is expected": "send(pack({'t': 'err', 'id': 1, 'code': b'x', 'message': 'y'}))",
    "a list as a key": "send(b'\\x81\\x91\\x01\\x01')",
    "300,000 members": "send(pack({'t': 'err', 'id': 1, 'code': 'x', 'message': 'y',"
    " 'details': {str(at): 1 for at in range(300_000)}}))",
    "an extension of no size": "send(pack({'t': 'res', 'id': 1, 'value': msgspec.msgpack.Ext(1, b'')}))",
    "no number as a size": "send(pack({'t': 'chunk', 'id': 1, 'size': float('nan'), 'rows': 1}))",
    "half of a surrogate pair": "send(b'\\x81\\xa1t\\xa3\\xed\\xa0\\x80')",
    "four million nils": "send(b'\\x83\\xa1t\\xa3res\\xa2id\\x01\\xa5value'"
    " + b'\\xdd\\x00\\x3f\\x00\\x00' + b'\\xc0' * 0x3f0000)",
}


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


async def test_nonsense_on_the_control_socket_ends_the_child_and_leaves_the_host_as_it_was(workshop: Workshop) -> None:
    body = HEAD + "exec(name)\ntime.sleep(60)"
    async with workshop.attempting(body) as worker:
        assert worker.hooks
    before = peak()
    for what, attack in ATTACKS.items():
        async with workshop.attempting(body) as worker:
            with pytest.raises(DriverFaultError, match="stopped because it sent"), anyio.fail_after(10):
                await worker.call("describe_object", attack)
            assert worker.ended.is_set(), what
    assert peak() - before < 24 << 10, "KiB; one frame of 4 MiB and its copy are allowed to lie around"


async def test_a_child_that_closes_its_socket_is_ended(workshop: Workshop) -> None:
    async with workshop.attempting("os.close(int(sys.argv[1])); time.sleep(60)") as worker:
        with pytest.raises(SandboxError), anyio.fail_after(3):
            await worker.call("describe_object", "x")


async def test_a_flood_of_output_is_bounded_and_counted(workshop: Workshop) -> None:
    body = """
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        os.write(1, b"spam " * 10_000 + b"\\n")
    return 1
    """
    async with workshop.attempting(body) as worker:
        with anyio.fail_after(10):
            await worker.call("describe_object", "x")
            worst = 0.0
            for _ in range(20):
                began = anyio.current_time()
                await worker.call("ping")
                worst = max(worst, anyio.current_time() - began)
    assert worst < 0.5
    assert sum(map(len, workshop.lines)) < 2 << 20
    assert any("dropped" in line for line in workshop.lines)


async def test_half_an_answer_is_no_answer(workshop: Workshop) -> None:
    body = HEAD + "control.sendall((100).to_bytes(4, 'little') + b'half'); os._exit(0)"
    async with workshop.attempting(body) as worker:
        with pytest.raises(DriverCrashedError) as caught:
            await worker.call("describe_object", "x")
        assert caught.value.details["status"] == "exit status 0"
