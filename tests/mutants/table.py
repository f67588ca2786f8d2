"""Which tests hold which modules: those that decide something, and the files or folders of tests close to them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.support.bundled_drivers import PACKAGES

ROOT = Path(__file__).parents[2]
INSTALLED = ("runtime", "registry", "plugins/api", "plugins/dask", "plugins/mcp", "plugins/workbench")
"""Folders of the packages that the environment has; pytest itself adds those of drivers and of their libraries."""
SOURCES = (*INSTALLED, *(folder.relative_to(ROOT).as_posix() for folder in PACKAGES.values()))

_ELASTICSEARCH = {"connect": "test_connect.py test_strange_answers.py test_error_answers.py"}
_OPENSEARCH = {"driver": "test_driver.py"}
_QUERYDSL = {
    "columns.dates": "writing/test_dates.py grid/test_filters.py grid/test_exactness.py",
    "columns.exactness": "grid test_conformance.py test_unions.py",
    "columns.field_types": "grid test_objects.py test_unions.py writing/test_changes.py writing/test_mixed_changes.py",
    "columns.mapping": "test_objects.py test_unions.py grid exporting/test_exports.py test_conformance.py",
    "columns.grid_columns": "test_objects.py test_unions.py grid",
    "connect": "test_connect.py test_strange_answers.py test_error_answers.py",
    "console_aggregations": "console/test_aggregations.py",
    "console_answers": "console",
    "driver": "grid exporting writing test_changed_objects.py test_strange_answers.py test_connect.py",
    "protocol": "test_connect.py test_strange_answers.py test_error_answers.py test_vectors_apart.py console writing "
    "grid/test_pages.py exporting",
    "export": "exporting",
    "export_shares": "exporting",
    "grid.cells": "grid",
    "grid.clauses": "grid test_conformance.py",
    "grid.deep_pages": "grid test_strange_answers.py",
    "grid.filters": "grid test_conformance.py grid/test_time_ranges.py grid/test_exactness.py",
    "grid.pages": "grid test_strange_answers.py",
    "grid.summaries": "grid/test_summaries.py",
    "objects": "test_objects.py test_unions.py test_error_answers.py",
    "search": "grid test_strange_answers.py exporting writing",
    "writing.apply": "writing test_strange_answers.py",
    "writing.edited_values": "writing",
    "writing.plan": "writing importing",
    "writing.planned_rows": "writing importing",
    "writing.requests": "writing",
    "console_text": "console/test_completion.py console",
}
_WEAVIATE = {
    "columns.field_types": "grid test_objects.py test_collections_in_detail.py test_strange_answers.py writing "
    "test_conformance.py",
    "columns.grid_columns": "test_objects.py test_collections_in_detail.py test_strange_answers.py grid",
    "connect": "test_connect.py test_error_answers.py test_objects.py grid/test_exactness.py grid/test_pages.py",
    "console_answers": "console test_strange_answers.py",
    "protocol": "test_connect.py test_strange_answers.py test_error_answers.py console writing",
    "driver": "test_conformance.py test_objects.py test_changed_objects.py console exporting grid importing writing",
    "export": "exporting test_strange_answers.py",
    "aggregates": "grid",
    "graphql": "grid test_strange_answers.py test_collections_in_detail.py console",
    "grid.exactness": "grid test_conformance.py",
    "grid.filters": "grid test_conformance.py",
    "grid.pages": "grid test_strange_answers.py test_collections_in_detail.py grid/test_pages.py test_conformance.py",
    "grid.summaries": "grid/test_summaries.py",
    "objects": "test_objects.py test_collections_in_detail.py test_strange_answers.py",
    "stored_objects": "grid exporting writing test_strange_answers.py console test_collections_in_detail.py",
    "writing.apply": "writing importing test_strange_answers.py",
    "writing.batches": "writing importing test_strange_answers.py",
    "writing.before_images": "writing importing",
    "writing.edited_values": "writing importing",
    "writing.plan": "writing importing test_strange_answers.py",
    "console_text": "console/test_completion.py console",
}
_API = {
    "_connection_errors": "test_http.py test_http_tls.py test_nodes.py",
    "_http_profile": "test_http.py test_http_settings.py test_oauth.py",
    "_tokens": "test_oauth.py kit/test_sign_in.py",
    "_transport": "test_http.py test_http_settings.py test_http_tls.py test_http_tls_attacks.py test_nodes.py",
    "cells": "test_arrow_pages.py test_memory_driver.py test_changes.py kit/test_views.py",
    "changes": "test_changes.py kit/test_row_changes.py test_http_settings.py",
    "columns": "test_memory_driver.py test_conformance_kit.py kit",
    "endpoints": "test_http_settings.py test_nodes.py test_oauth.py",
    "errors": "test_public_api.py test_http.py kit/test_exchanges.py",
    "exports": "test_memory_driver.py kit",
    "filters": "kit/test_filter_rows.py kit/test_filter_meaning.py kit/test_residual.py",
    "grid": "test_memory_driver.py test_changes.py test_notebook_html.py kit",
    "http": "test_http.py test_http_streams.py test_http_tls.py test_nodes.py",
    "json_text": "test_json_text.py test_arrow_pages.py",
    "masking": "test_masking.py",
    "notebook_html": "test_notebook_html.py",
    "replies": "test_replies.py test_http_settings.py test_http.py test_http_streams.py",
    "tls": "test_http_tls.py test_http_tls_attacks.py",
}
_KIT = {
    "console_places": "test_console_places.py",
    "console_text": "test_console_text.py",
    "cursors": "test_cursors.py test_keyset_walks.py",
    "derived_hooks": "test_derived_hooks.py test_derived_keys.py test_derived_notes.py",
    "exchanges": "test_exchanges.py test_retries.py",
    "retries": "test_retries.py test_rest.py test_exchanges.py",
    "filter_rows": "test_filter_rows.py test_residual.py test_filter_meaning.py test_filter_meaning_of_bytes.py",
    "form_blocks": "test_form_blocks.py test_sign_in.py",
    "line_parts": "test_line_parts.py",
    "operands": "test_operands.py test_periods_and_places.py",
    "residual": "test_residual.py",
    "row_changes": "test_row_changes.py test_outcomes.py",
    "summaries": "test_summaries.py test_bucket_bounds.py",
    "sign_in": "test_sign_in.py",
    "views": "test_views.py test_read_once.py",
    "page_columns": "test_left_out.py test_column_choice.py test_page_bounds.py test_sampled_columns.py",
}
_REGISTRY = {
    "client.install_decision": "client/test_install_decision.py",
    "client.installer": "client/test_installer.py client/test_installed_wheels.py client/test_bound_types.py",
    "client.lockfile": "client/test_lockfile.py client/test_lockfile_in_detail.py client/test_resolver.py",
    "client.resolver": "client/test_resolver.py",
    "client.installed_drivers": "client/test_installed_drivers.py client/test_installer.py",
    "files": "test_filelocks.py test_drafts.py test_private_files.py test_hostile_names.py",
    "index.catalog": "index/test_advisories.py",
    "index.catalog_parser": "index",
    "index.registry_reader": "index",
    "ip_addresses": "test_ip_addresses.py",
    "names": "test_names.py test_hostile_names.py",
    "http_requests": "sources/test_http.py sources/test_answers.py",
    "trust.trust": "trust/test_roles.py",
    "trust.keys": "trust/test_trust.py",
    "trust.tuf_repository": "trust/test_trust.py trust/test_attacks.py",
    "trust.roles": "trust/test_roles.py",
    "trust.tuf_client": "trust/test_trust.py trust/test_attacks.py trust/test_first_use.py",
    "wheels.archive": "wheels client/test_installed_wheels.py",
    "wheels.archive_checks": "wheels client/test_installed_wheels.py",
    "wheels.manifest_checks": "wheels",
    "wheels.metadata_checks": "wheels client/test_installed_wheels.py",
    "wheels.packaging_parsers": "wheels",
}
_EXPORTS = "runtime/test_exports.py runtime/test_exports_values.py runtime/test_exports_resumed.py"
_PARTS = "runtime/parts"
_TABLES = "runtime/test_tables.py runtime/test_tables_values.py"
_LOADS = "runtime/test_loads.py runtime/test_import_files.py drivers/elasticsearch/importing/test_loads.py"
_HOST = {
    "automations.audit": "runtime/test_guards.py runtime/test_automations.py runtime/test_every_call_is_asked.py",
    "automations.guards": "runtime/test_call_limits.py runtime/test_guards.py runtime/test_automations.py",
    "connections.form_values": "runtime/test_saved_connections.py runtime/test_cloud_ids.py "
    "runtime/test_changed_manifests.py",
    "sessions.consents": "runtime/test_consents.py",
    "sessions.object_lists": "runtime/test_object_lists.py",
    "sessions.plans": "runtime/test_change_events.py runtime/test_session_in_process.py",
    "sessions.session": "runtime/test_change_events.py runtime/test_session_in_process.py runtime/test_object_lists.py",
    "cli.errors": "cli/test_machinery.py",
    "cli.import_rows": "cli/test_output.py cli/test_import.py",
    "cli.output": "cli/test_output.py",
    "cli.queries": "cli/test_queries.py",
    "cli.grid": "cli/test_summarize.py cli/test_grid.py",
    "changes.files": "runtime/test_change_files.py runtime/test_change_sets.py",
    "changes.sets": "runtime/test_change_files.py runtime/test_change_sets.py",
    "changes.undo": "runtime/test_change_files.py runtime/test_change_sets.py runtime/test_saving.py",
    "console.expectations": "runtime/test_console_text.py",
    "console.variables": "runtime/test_console_text.py",
    "sessions.driver_calls": "runtime/test_session_in_process.py runtime/test_every_call_is_asked.py "
    "runtime/test_exports_checked.py runtime/test_match_any.py "
    "runtime/test_unknown_outcomes.py",
    "exports.target_files": _EXPORTS,
    "exports.checkpoints": _EXPORTS,
    "exports.csv_lines": "runtime/test_exports_values.py runtime/test_exports.py runtime/test_exports_resumed.py",
    "exports.export_run": "runtime/test_exports_checked.py runtime/test_exports.py "
    "runtime/test_exports_values.py runtime/test_exports_resumed.py",
    "exports.formats": _EXPORTS,
    "sessions.splits": f"{_PARTS} {_TABLES}",
    "exports.arrow_parquet": _TABLES,
    "exports.row_decoder": _TABLES,
    "exports.values": "runtime/test_exports_values.py runtime/test_exports.py runtime/test_tables_values.py",
    "imports.batches": _LOADS,
    "imports.checkpoints": _LOADS,
    "imports.new_objects": "drivers/elasticsearch/importing/test_creations.py runtime/test_import_proposals.py",
    "imports.load_run": _LOADS,
    "imports.loads": _LOADS,
    "imports.parquet": "runtime/test_import_parquet.py runtime/test_import_files.py",
    "imports.column_mapping": "drivers/weaviate/importing/test_loads.py drivers/elasticsearch/importing/test_loads.py",
    "imports.records": f"runtime/test_import_files.py {_LOADS} drivers/elasticsearch/importing/test_kinds.py "
    "drivers/weaviate/importing/test_loads.py",
    "imports.batch_sending": _LOADS,
    "imports.csv_rows": "runtime/test_import_files.py",
    "imports.proposals": "runtime/test_import_proposals.py runtime/test_import_readings.py",
    "imports.reading_trials": "runtime/test_import_proposals.py runtime/test_import_readings.py",
    "imports.readings": "runtime/test_import_readings.py",
    "imports.field_values": "runtime/test_spellings.py runtime/test_import_files.py runtime/test_import_readings.py",
    "imports.sources": "runtime/test_import_files.py",
    "automations.hook_manager": "runtime/test_hook_manager.py",
    "plugins.install_steps": "runtime/test_registries.py cli/test_plugins_decided.py cli/test_plugins_kept.py",
    "spellings": "runtime/test_row_ids.py",
    "sandbox.levels": "worker/test_levels.py",
    "sandbox.launch": "worker/test_launch.py worker/test_reach.py",
    "sandbox.conversation": "worker/test_live_driver.py worker/test_ends.py worker/test_deadlines.py "
    "worker/test_hostile.py",
    "sandbox.reach.address_resolver": "worker/test_reach.py worker/test_broker.py",
    "sandbox.reach.broker": "worker/test_reach.py worker/test_broker.py worker/test_http_proxy.py",
    "sandbox.reach.address_history": "runtime/test_address_history.py",
    "sessions.rows": "runtime/test_session_in_process.py runtime/test_rows.py",
    "sessions.saved_queries": "cli/test_queries.py runtime/test_small_state.py",
    "sessions.selection_codec": "runtime/test_selection_codec.py cli/test_queries.py",
    "sessions.relative_times": "runtime/test_time_spans.py runtime/test_relative_times.py",
    "sessions.selections": "runtime/test_session_in_process.py runtime/test_rows.py runtime/test_time_spans.py",
    "settings": "runtime/test_guards.py runtime/test_settings.py",
    "sessions.whole_reads": "runtime/test_session_in_process.py",
}
_DASK = {
    "clusters": _PARTS,
    "coordinator": _PARTS,
    "exports": f"{_PARTS} runtime/parts/test_stores.py",
    "folder_target": _PARTS,
    "pace": "system/test_back_pressure.py runtime/parts/test_dask_tasks.py",
    "reading": _PARTS,
    "runner": _PARTS,
    "object_store_target": _PARTS,
    "object_stores": "runtime/parts/test_stores.py runtime/parts/test_exports_to_a_store.py",
    "target": _PARTS,
    "workers": _PARTS,
}
_MCP = {
    "answers": "test_reading.py test_changes.py",
    "changes": "test_changes.py test_trouble.py test_http.py",
    "failures": "test_reading.py test_rules.py",
    "protocol": "test_reading.py test_changes.py test_http.py test_trouble.py",
    "rules": "test_rules.py test_changes.py test_reading.py",
    "tools": "test_reading.py test_rules.py",
}
_WORKBENCH = {
    "access": "test_entering.py test_attacked.py",
    "cells": "test_grid.py",
    "downloads": "test_console_and_exports.py",
    "event_stream": "test_attacked.py test_connections.py test_entering.py test_opening.py",
    "failures": "test_attacked.py test_opening.py",
    "open_connections": "test_opening.py",
    "questions": "test_opening.py",
    "remembered": "test_console_and_exports.py",
    "routes.changes": "test_changes.py",
    "routes.connections": "test_connections.py test_opening.py",
    "routes.console": "test_console_and_exports.py",
    "routes.exports": "test_console_and_exports.py test_grid.py",
    "routes.grid": "test_grid.py test_console_and_exports.py",
    "routes.marketplace": "test_marketplace.py test_opening.py",
    "server": "test_attacked.py test_connections.py test_entering.py",
    "serving": "test_entering.py",
    "surfaces": "test_opening.py",
}


STRUCTURE = ("tests/test_architecture.py",)
"""Tests of the structure, which any change may break."""
STORIES = tuple(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests/system").glob("test_*.py")))
"""Tests of whole stories; their drivers are wheels that were built before the change, so they hold no driver."""


_IMPORT = re.compile(r"(?m)^[ ]*from ([\w.]+) import (\([^)]*\)|.*)$")
_NO_NAME = re.compile(r"#.*|[()]")


def _under(package: str, root: str, table: dict[str, str], *others: str) -> dict[str, tuple[str, ...]]:
    return {f"{package}.{module}": (*_named(f"tests/{root}", names), *others) for module, names in table.items()}


def _named(folder: str, names: str) -> list[str]:
    return [test for name in names.split() for test in _files(f"{folder}{name}")]


def _files(name: str) -> list[str]:
    found = [ROOT / name] if name.endswith(".py") else sorted((ROOT / name).glob("test_*.py"))
    return [path.relative_to(ROOT).as_posix() for path in found]


def _importing() -> dict[str, list[str]]:
    """Return the files whose tests import a module or a name of it, in a child's source, too, per module."""
    files: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").glob("*/**/test_*.py")):
        modules = {
            f"{module}{suffix}"
            for module, names in _IMPORT.findall(path.read_text("utf-8"))
            for suffix in ("", *(f".{name.split()[0]}" for name in _NO_NAME.sub("", names).split(",") if name.strip()))
        }
        for module in modules:
            files.setdefault(module, []).append(path.relative_to(ROOT).as_posix())
    return files


def _widened(holding: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Add the tests that import a module to those that are close to it; everybody imports the API."""
    importing = _importing()
    return {
        module: tests
        if module.startswith("dragoman_api.")
        else tuple(dict.fromkeys([*tests, *importing.get(module, ())]))
        for module, tests in holding.items()
    }


@cache
def holding() -> dict[str, tuple[str, ...]]:
    """Return the files of tests that hold a module, by its dotted name; reads every file of tests once."""
    return _widened(
        {
            **_under("dragoman_elasticsearch", "drivers/elasticsearch/", _ELASTICSEARCH, *STRUCTURE),
            **_under("dragoman_opensearch", "drivers/opensearch/", _OPENSEARCH, *STRUCTURE),
            **_under("dragoman_querydsl", "drivers/elasticsearch/", _QUERYDSL, *STRUCTURE),
            **_under("dragoman_weaviate", "drivers/weaviate/", _WEAVIATE, *STRUCTURE),
            **_under("dragoman_api", "api/", _API, *STORIES, *STRUCTURE),
            **_under("dragoman_api.kit", "api/kit/", _KIT, *STORIES, *STRUCTURE),
            **_under("dragoman_registry", "registry/", _REGISTRY, *STORIES, *STRUCTURE),
            **_under("dragoman", "", _HOST, *STORIES, *STRUCTURE),
            **_under("dragoman_dask", "", _DASK, *STORIES, *STRUCTURE),
            **_under("dragoman_mcp", "agents/", _MCP, *STRUCTURE),
            **_under("dragoman_workbench", "workbench/", _WORKBENCH, *STORIES, *STRUCTURE),
        }
    )


def file_of(module: str) -> str:
    """Name a module's file, from the root of the repository."""
    name = module.replace(".", "/") + ".py"
    return next(f"{source}/{name}" for source in SOURCES if (ROOT / source / name).is_file())
