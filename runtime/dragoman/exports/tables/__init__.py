"""Arrow tables from exported rows: the object's description gives the types, and no value is changed to fit."""

from dragoman_api.arrow.schema import without_leaves

from .batches import TableReader

__all__ = ["TableReader", "without_leaves"]
