"""The deadline of each hook: after it, the host gives up on the call."""

from __future__ import annotations

DEADLINES = {
    "connect": 60.0,
    "ping": 15.0,
    "close": 5.0,
    "list_objects": 60.0,
    "describe_object": 60.0,
    "compile_filter": 10.0,
    "fetch_page": 120.0,
    "fetch_cell": 120.0,
    "count_rows": 120.0,
    "summarize_column": 120.0,
    "preview_read": 60.0,
    "plan_change": 120.0,
    "apply_change": 600.0,
    "parse_console": 30.0,
    "execute_console": 600.0,
    "complete_console": 15.0,
    "export_rows": 120.0,  # between two parts
    "split_export": 120.0,
    "hold_snapshot": 60.0,
}
"""Seconds by hook."""
