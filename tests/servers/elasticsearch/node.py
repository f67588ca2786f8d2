"""One running node: its settings, its process, and the record that says how to reach it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import time
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any

from servers.certificates import make_certificates
from servers.elasticsearch.build import java_arguments, plugin_configuration
from servers.elasticsearch.security import make_api_keys, make_users, write_user_files
from servers.faults import EngineError
from servers.processes import Process, free_ports
from servers.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from servers.elasticsearch.lines import Line
    from servers.engines import Options
    from servers.jdks import Jdk

_HOST = "127.0.0.1"
_WRONG_NAME = "127.0.0.2"
"""A second loopback address which no certificate speaks for; only Linux has it without being asked."""


_DISTRIBUTION = {
    "elasticsearch": ("-Des.distribution.flavor=default", "-Des.distribution.type=tar"),
    "opensearch": ("-Dopensearch.distribution.type=tar",),
}
"""What the start script of the stock distribution tells the server about itself."""


class Security(Enum):
    """How a node is protected."""

    NONE = "none"
    HTTP = "http"
    TLS = "tls"


class Node:
    """A node of one line in an empty folder."""

    def __init__(
        self,
        name: str,
        line: Line,
        *,
        security: Security,
        folder: Path,
        options: Options,
        cluster: Sequence[Node] | None = None,
    ) -> None:
        """Write everything that the node reads when it starts.

        Args:
            name: The engine's name.
            line: The version.
            security: How it is protected.
            folder: An empty folder.
            options: How it is started.
            cluster: The running nodes that it joins; none if others will join it; None for a node that stays alone.
        """
        self._name = name
        self._line = line
        self._options = options
        self._home = folder
        self._config = folder / "config"
        self._config.mkdir()
        self._tls = security is Security.TLS
        users = make_users if line.product == "elasticsearch" else _demo_users
        self._users = users() if security is not Security.NONE else {}
        self._port, self._transport = free_ports(2)
        scheme = "https" if self._tls else "http"
        self._url = f"{scheme}://{_HOST}:{self._port}"
        self._wrong_name_url = f"{scheme}://{_WRONG_NAME}:{self._port}" if _hosts()[1:] else None
        settings = _settings(self._port, self._transport) | self._security_settings()
        if cluster is not None:
            own = f"node-{self._transport}"
            settings |= {"node.name": own, "discovery.type": "multi-node"}
            settings |= {"discovery.seed_hosts": [f"{_HOST}:{node._transport}" for node in cluster]}
            settings |= {} if cluster else {"cluster.initial_master_nodes": [own]}
        # JSON is YAML, and quotes every value the way a settings file wants it.
        text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
        (self._config / f"{line.product}.yml").write_text(text)

    @contextmanager
    def running(self, jdk: Jdk) -> Iterator[tuple[Process, dict[str, Any]]]:
        """Run the node: entered, it answers and its keys are made; left, it is gone."""
        began = time.monotonic()
        process = Process(self._name, self._command(jdk), folder=self._home)
        try:
            rest = self._rest()
            process.wait_until(lambda: _is_ready(rest), seconds=self._options.patience)
            record = self._record(process, rest)
            record["started_in"] = round(time.monotonic() - began, 2)
            yield process, record
        finally:
            process.stop()

    def _security_settings(self) -> dict[str, Any]:
        if not self._users:
            # Lines without the security plugin do not know the setting and would not start with it.
            return {"xpack.security.enabled": False} if _has_security(self._line) else {}
        if self._line.product == "opensearch":
            return self._plugin_settings()
        write_user_files(self._config, self._users)
        settings = {
            "xpack.security.enabled": True,
            "xpack.security.authc.api_key.enabled": True,
            # The superuser's password would have to be in a keystore; so `elastic` is a user of the file realm.
            "xpack.security.authc.reserved_realm.enabled": False,
            "xpack.security.transport.ssl.enabled": False,
            "xpack.license.self_generated.type": "basic",
        }
        if self._tls:
            make_certificates(self._config)
            settings |= {
                "xpack.security.http.ssl.enabled": True,
                "xpack.security.http.ssl.key": f"{self._options.certificate}.key",
                "xpack.security.http.ssl.certificate": f"{self._options.certificate}.crt",
            }
        return settings

    def _plugin_settings(self) -> dict[str, Any]:
        """Return the settings of OpenSearch's security plugin, which has TLS between the nodes at least."""
        make_certificates(self._config)
        shutil.copytree(plugin_configuration(self._line), self._config / "opensearch-security")
        name = self._options.certificate
        files = {"cert_filepath": f"{name}.crt", "key_filepath": f"{name}.key", "trustedcas_filepath": "ca.crt"}
        return {
            "plugins.security.ssl.http.enabled": self._tls,
            "plugins.security.allow_default_init_securityindex": True,
            "plugins.security.audit.type": "noop",
            "plugins.security.nodes_dn": [f"CN={name}"],
            **{
                f"plugins.security.ssl.{on}.pem{part}": file
                for on in ("http", "transport")
                for part, file in files.items()
            },
        }

    def _command(self, jdk: Jdk) -> list[str]:
        scratch = self._home / "tmp"
        scratch.mkdir()
        return [
            jdk.tool("java"),
            f"-Xmx{self._options.heap}",
            "-XX:+UseSerialGC",  # starts a third faster than the default on a small heap and two cores
            f"-Djava.io.tmpdir={scratch}",
            *_DISTRIBUTION[self._line.product],
            "-Dio.netty.noUnsafe=true",
            "-Dlog4j2.disable.jmx=true",
            *java_arguments(self._line, self._home),
        ]

    def _rest(self) -> Rest:
        user = self._users.get("superuser")
        basic = base64.b64encode(f"{user['username']}:{user['password']}".encode()).decode() if user else ""
        authority = self._config / "ca.crt" if self._tls else None
        return Rest(self._url, authority=authority, authorization=basic and f"Basic {basic}")

    def _record(self, process: Process, rest: Rest) -> dict[str, Any]:
        status, root = rest.send("GET", "/")
        version = root["version"]["number"] if status == 200 else f"status {status}"
        if version != self._line.version:
            raise EngineError(self._name, f"GET / tells version {version}", tail=process.tail())
        return {
            "type": "opensearch-secured" if self._users and self._line.product == "opensearch" else self._line.product,
            "engine": self._name,
            "version": version,
            "url": self._url,
            "host": _HOST,
            "port": self._port,
            "security": bool(self._users),
            "tls": self._tls,
            "ca_file": str(self._config / "ca.crt") if self._tls else None,
            "stranger_ca_file": str(self._config / "stranger.crt") if self._tls else None,
            "certificate": self._options.certificate if self._tls else None,
            "wrong_name_url": self._wrong_name_url if self._tls else None,
            "users": self._users,
            "api_keys": make_api_keys(rest) if self._users and self._line.product == "elasticsearch" else {},
            "pid": process.pid,
            "supervisor": os.getpid(),
            "data_dir": str(self._home),
        }


def _demo_users() -> dict[str, dict[str, Any]]:
    """Return users that the settings of the security plugin begin with: one may all, one reads every index."""
    names = {"superuser": "admin", "reader": "readall"}
    return {role: {"username": name, "password": name} for role, name in names.items()}


def _settings(port: int, transport: int) -> dict[str, Any]:
    return {
        "cluster.name": "dragoman-tests",
        "node.name": "node",
        "discovery.type": "single-node",
        "network.host": _HOST,
        "http.host": _hosts(),
        "http.publish_host": _HOST,
        "http.port": port,
        "transport.port": transport,
        # A developer's disk is often fuller than the server likes.
        "cluster.routing.allocation.disk.threshold_enabled": False,
    }


def _is_ready(rest: Rest) -> bool:
    """Tell whether the node serves its indices; it listens before it does."""
    try:
        status, health = rest.send("GET", "/_cluster/health?wait_for_status=yellow&timeout=1s")
    except OSError:
        return False
    return status == 200 and not health["timed_out"]


def _hosts() -> list[str]:
    return [_HOST, _WRONG_NAME] if sys.platform == "linux" else [_HOST]


def _has_security(line: Line) -> bool:
    names = [*line.plugins, *(module.classname for module in line.modules)]
    return "org.elasticsearch.xpack.security.Security" in names
