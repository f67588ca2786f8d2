"""`make workbench`: what it starts ends with it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time

import pytest

import wheelhouse

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_workbench_ends_with_the_process_that_started_it(how):
    line = [sys.executable, "-m", "docs.demo.workbench", "--no-browser"]
    with subprocess.Popen(
        line, cwd=wheelhouse.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        assert demo.stdout is not None
        address = next(found for said in demo.stdout if (found := re.search(r"http://127\.0\.0\.1:(\d+)", said)))
        port = int(address[1])
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
        demo.send_signal(how)
        demo.wait(60)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) != 0:
                    return
            time.sleep(0.1)
        pytest.fail("the workbench still listens")
