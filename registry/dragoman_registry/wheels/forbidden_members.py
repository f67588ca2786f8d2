"""Checks of a wheel's members: native code, bytecode, files outside the package, modules that replace others."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from .archive import folded
from .host_environment import provided

if TYPE_CHECKING:
    from .wheel_report import WheelReport

_NATIVE = re.compile(r"\.(so(\.[0-9]+)*|pyd|dll|dylib|exe)$", re.IGNORECASE)
_BYTECODE = re.compile(r"\.py[co]$", re.IGNORECASE)
_AT_START = frozenset(("sitecustomize", "usercustomize"))


def check_members(report: WheelReport, *, native: bool) -> None:
    """Add every member to a report that a wheel may not contain, and every module that it may not replace.

    Args:
        report: Where each member would be installed, and the manifest of a driver.
        native: Whether native code is allowed.
    """
    own = f"{report.dist_info.removesuffix('.dist-info')}.data"
    expected_folder, machine_code = report.name and f"{report.name.stem}.data", {*report.machine_code}
    for name, path in report.placed.items():
        if path.lower().endswith(".pth"):
            report.add("pth-file", f"{name} would run code at interpreter start.")
        if _BYTECODE.search(path) or "__pycache__" in folded(path).split("/"):
            report.add("bytecode", f"{name} is bytecode, or is in __pycache__; a wheel may contain source only.")
        if (_NATIVE.search(path) or name in machine_code) and not native:
            report.add("native-code", f"{name} is native code without the permission native-code.")
        top, _, rest = name.partition("/")
        if folded(top).endswith(".data") and rest:
            scheme, _, inner = rest.partition("/")
            if scheme == "scripts":
                report.add("scripts", f"A driver may not install the command {inner}.")
            elif scheme not in ("purelib", "platlib") or not inner or top != own or top != expected_folder:
                report.add("data-scheme", f"{name} would be installed outside the package.")
    _modules(report)


def _modules(report: WheelReport) -> None:
    tops = {path.partition("/")[0] for path in report.placed.values()}
    modules = {top.partition(".")[0] for top in tops if not top.endswith((".dist-info", ".data"))}
    owners = dict.fromkeys(sys.stdlib_module_names, "the standard library") | provided()
    for module in sorted(modules):
        if report.manifest is not None and module not in report.manifest.import_names:
            report.add("foreign-module", f"{module} is not among import_names.")
        if module in owners:
            report.add("shadows", f"{module} would replace a module of {owners[module]}.")
        elif module in _AT_START:
            report.add("shadows", f"{module} would be imported by every interpreter at its start.")
    for name in sorted(set(report.manifest.import_names) - modules if report.manifest else ()):
        report.add("manifest", f"$.import_names: {name} is not in the wheel.")
