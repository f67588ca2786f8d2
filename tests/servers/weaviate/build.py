"""Which server is built."""

from __future__ import annotations

from servers.go_modules import GoServer

VERSION = "1.38.11"

SERVER = GoServer(
    name="weaviate",
    version=VERSION,
    package="github.com/weaviate/weaviate/cmd/weaviate-server",
    needed=(1, 26),
    patience="minutes",
)
