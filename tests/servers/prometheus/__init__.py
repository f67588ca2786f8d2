"""Prometheus of the distribution and the newest one, and the distribution's VictoriaMetrics, which speaks its API."""

from __future__ import annotations

from servers.prometheus.catalog import ENGINES

__all__ = ["ENGINES"]
