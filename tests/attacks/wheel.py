"""The hostile driver as a wheel, with its manifest, as any author would publish one."""

from __future__ import annotations

from pathlib import Path

from wheelhouse import Driver

SOURCE = Path(__file__).with_name("dragoman_hostile")


def build(folder: Path) -> Path:
    """Write the wheel."""
    files = {f"{SOURCE.name}/{path.name}": path.read_bytes() for path in SOURCE.glob("*.py") if path.stem != "driver"}
    return Driver(
        "hostile",
        code=(SOURCE / "driver.py").read_text(),
        files={**files, f"{SOURCE.name}/ballast.txt": b"not much\n" * 100},
        hooks=["connect", "list_objects", "describe_object", "fetch_page", "export_rows"],
        capabilities=["browse", "export"],
    ).write(folder)
