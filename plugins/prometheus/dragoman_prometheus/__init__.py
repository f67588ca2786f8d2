"""The Prometheus driver of dragoman, for VictoriaMetrics, too."""
