"""The column that orders an object's rows in time, where the index holds the stored instants exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api import Operator as Op

from .field_types import Family, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = ("@timestamp", "timestamp")  # the first is the one of every data stream
_ISO = ("strict_date_optional_time", "date_optional_time")
_HARMLESS = {"date", "format"}  # a range has a format of its own, and bounds as fine as the column


def time_column(fields: Mapping[str, Field], *, stream: bool) -> str:
    """Return the name of the time column; empty if there is none, or one of two.

    Args:
        fields: All fields, by column name.
        stream: All indices belong to data streams.
    """
    candidates = _NAMES[:1] if stream else _NAMES
    names = [name for name in candidates if name in fields and fields[name].family is Family.DATE]
    return names[0] if len(names) == 1 and _exact(fields[names[0]]) else ""


def _exact(field: Field) -> bool:
    """Return whether a range of instants finds exactly the rows whose stored values lie in it."""
    if field.alias or field.computed or field.conflict or Op.BETWEEN not in field.support[0]:
        return False
    harmless = _HARMLESS
    if {*field.types} == {"date"} and all(name.startswith(_ISO) for name in field.formats):
        harmless = harmless | {"ignore_malformed"}  # a full instant is never malformed there
    return {gap.name for gap in field.gaps} <= harmless
